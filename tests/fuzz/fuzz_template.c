/* The input is a template and, after a NUL, a conversation in JSON; without one, a fixed one is used.
 * Whatever the template does, it must end, its memory is bounded, and the text must be UTF-8 with ranges
 * inside it. */
#include <stdlib.h>
#include <string.h>

#include <weft/chat.h>

#include "base/utf8.h"
#include "fuzz/bounded.h"

static const char fixed[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"s\\u00e9\"}, {\"role\": \"user\", "
    "\"content\": [{\"type\": \"text\", \"text\": \"a b\"}]}, {\"role\": \"assistant\", "
    "\"content\": \"x</think>y\", \"n\": 1.5}], \"tools\": [{\"a\": {\"b\": [1, null]}}]}";

static void check(const weft_chat_text *text) {
    size_t last = 0;
    for (size_t at = 0; at < text->bytes;) {
        uint32_t point;
        const int n = weft__utf8_read(text->text + at, text->bytes - at, &point);
        if (n <= 0) abort();
        at += (size_t)n;
    }
    if (text->text[text->bytes] != '\0') abort();
    for (size_t i = 0; i < text->answer_count; i++) {
        if (text->answers[i].begin > text->answers[i].end || text->answers[i].end > text->bytes) abort();
        last = text->answers[i].end;
    }
    if (last > text->bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded memory;
    weft_context ctx = bounded_context(&memory, (size_t)1 << 30);
    const char *source = (const char *)data, *end = size ? memchr(source, '\0', size) : NULL;
    const size_t bytes = end ? (size_t)(end - source) : size;
    const char *conversation = end ? end + 1 : fixed;
    const size_t conversation_bytes = end ? size - bytes - 1 : sizeof fixed - 1;
    const weft_chat_options options = {.add_generation_prompt = size % 2 == 0, .time = 1700000000};
    weft_chat_template *chat;
    weft_chat_text text;
    weft_status status = weft_chat_template_new(&ctx, source, bytes, "input", &chat);
    if (status == WEFT_OK) {
        status = weft_chat_template_set(chat, "bos_token", "<s>");
        if (status == WEFT_OK)
            status = weft_chat_template_render(chat, conversation, conversation_bytes, &options, &text);
        if (status == WEFT_OK) {
            check(&text);
            weft_chat_text_free(&text);
            if (weft_chat_template_answers(chat, conversation, conversation_bytes, &options, &text) ==
                WEFT_OK) {
                check(&text);
                weft_chat_text_free(&text);
            }
        }
        weft_chat_template_free(chat);
    }
    bounded_time(&memory, size);
    if (memory.live != 0) abort();
    return 0;
}
