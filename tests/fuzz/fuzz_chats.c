/* Lines of conversations: whatever a line holds, the ranges that are learned lie in the text, one after the
 * other, and memory is bounded. */
#include "fuzz/answers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded memory;
    weft_context ctx = bounded_context(&memory, ((size_t)64 << 20) + 1000 * size);
    weft_chat_template *chat = small_template(&ctx);
    weft__chat_line line;
    if (weft__chat_line_read(&ctx, "line", (const char *)data, size, chat, &line) == WEFT_OK)
        check_answers(&line.text);
    weft_chat_text_free(&line.text);
    weft_chat_template_free(chat);
    return 0;
}
