/* Lines of preferences: whatever a line holds, the ranges of both answers lie in their texts, one after the
 * other, and memory is bounded. */
#include "fuzz/bounded.h"
#include "text/chats.h"

static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
                             "{% if add_generation_prompt %}<assistant>{% endif %}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded memory;
    weft_context ctx = bounded_context(&memory, ((size_t)64 << 20) + 1000 * size);
    weft_chat_template *chat;
    weft__chat_line lines[2];
    if (weft_chat_template_new(&ctx, source, sizeof source - 1, "t", &chat) != WEFT_OK) abort();
    const weft_status status =
        weft__preference_line_read(&ctx, "line", (const char *)data, size, chat, lines);
    for (int side = 0; side < 2; side++) {
        const weft_chat_text *text = &lines[side].text;
        size_t last = 0;
        if (status == WEFT_OK && (!text->text || text->text[text->bytes] != 0)) abort();
        for (size_t i = 0; i < text->answer_count && status == WEFT_OK; i++) {
            const weft_chat_range range = text->answers[i];
            if (range.begin < last || range.end < range.begin || range.end > text->bytes) abort();
            last = range.end;
        }
        weft_chat_text_free(&lines[side].text);
    }
    weft_chat_template_free(chat);
    return 0;
}
