/* What the fuzz targets of conversations and of preferences share: a chat template, and what holds for the
 * text of every line that is accepted. */
#ifndef WEFT_FUZZ_ANSWERS_H
#define WEFT_FUZZ_ANSWERS_H

#include "fuzz/bounded.h"
#include "text/chats.h"

static inline weft_chat_template *small_template(weft_context *ctx) {
    static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
                                 "{% if add_generation_prompt %}<assistant>{% endif %}";
    weft_chat_template *chat;
    if (weft_chat_template_new(ctx, source, sizeof source - 1, "t", &chat) != WEFT_OK) abort();
    return chat;
}

/* The ranges that are learned lie in the text, one after the other. */
static inline void check_answers(const weft_chat_text *text) {
    size_t last = 0;
    if (!text->text || text->text[text->bytes] != 0) abort();
    for (size_t i = 0; i < text->answer_count; i++) {
        const weft_chat_range range = text->answers[i];
        if (range.begin < last || range.end < range.begin || range.end > text->bytes) abort();
        last = range.end;
    }
}

#endif
