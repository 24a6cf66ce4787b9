/* Lines of preferences: whatever a line holds, the ranges of both answers lie in their texts, one after the
 * other, and memory is bounded. */
#include "fuzz/answers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded memory;
    weft_context ctx = bounded_context(&memory, ((size_t)64 << 20) + 1000 * size);
    weft_chat_template *chat = small_template(&ctx);
    weft__chat_line lines[2];
    const weft_status status =
        weft__preference_line_read(&ctx, "line", (const char *)data, size, chat, lines);
    for (int side = 0; side < 2; side++) {
        if (status == WEFT_OK) check_answers(&lines[side].text);
        weft_chat_text_free(&lines[side].text);
    }
    weft_chat_template_free(chat);
    return 0;
}
