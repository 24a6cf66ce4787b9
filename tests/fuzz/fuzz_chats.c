/* Lines of conversations: whatever a line holds, the ranges that are learned lie in the text, one after the
 * other, and memory is bounded. */
#include "fuzz/bounded.h"
#include "text/chats.h"

static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
                             "{% if add_generation_prompt %}<assistant>{% endif %}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded memory;
    weft_context ctx = bounded_context(&memory, ((size_t)64 << 20) + 1000 * size);
    weft_chat_template *chat;
    weft__chat_line line;
    size_t last = 0;
    if (weft_chat_template_new(&ctx, source, sizeof source - 1, "t", &chat) != WEFT_OK) abort();
    if (weft__chat_line_read(&ctx, "line", (const char *)data, size, chat, &line) == WEFT_OK) {
        if (!line.text.text || line.text.text[line.text.bytes] != 0) abort();
        for (size_t i = 0; i < line.text.answer_count; i++) {
            const weft_chat_range range = line.text.answers[i];
            if (range.begin < last || range.end < range.begin || range.end > line.text.bytes) abort();
            last = range.end;
        }
    }
    weft_chat_text_free(&line.text);
    weft_chat_template_free(chat);
    return 0;
}
