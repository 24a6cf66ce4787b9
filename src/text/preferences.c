/* Files of preferences, see weft/preferences.h. Must not know: rows of loaders (preferences_pack.c). Read
 * next: preference_line.c. */
#include <weft/preferences.h>

#include "text/chats.h"
#include "text/json_lines.h"

bool weft_preferences_is(const char *path) {
    weft__buffer object = {0};
    if (path) weft__json_lines_first(path, &object);
    const bool is =
        weft__json_line_has(&object, "\"chosen\"") && weft__json_line_has(&object, "\"rejected\"");
    weft__buffer_free(&object);
    return is;
}

weft_status weft_preferences_read(weft_context *ctx, const char *path, const weft_tokenizer *tokenizer,
                                  const weft_chat_template *chat, weft_chats **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, tokenizer);
    return weft__chats_read(ctx, path, tokenizer, chat, weft__preference_line_read, 2, out);
}
