/* Files of preferences, see weft/preferences.h. Must not know: rows of loaders (preferences_pack.c). Read
 * next: preference_line.c. */
#include <string.h>
#include <zlib.h>

#include <weft/preferences.h>

#include "text/chats.h"

#define HEAD ((unsigned)1 << 20) /* bytes of a file that tell what its lines are */

/* Tells whether a line of JSON has the key, given with its quotes. A quote inside a text has a backslash. */
static bool has_key(const char *line, const char *key) {
    for (const char *at = line; (at = strstr(at, key)); at++) {
        const char *after = at + strlen(key);
        after += strspn(after, " \t");
        if (*after == ':' && (at == line || at[-1] != '\\')) return true;
    }
    return false;
}

bool weft_preferences_is(const char *path) {
    gzFile file = path ? gzopen(path, "rb") : NULL; /* reads files that are not packed, too */
    char *head = file ? weft__alloc(NULL, HEAD + 1) : NULL;
    const int bytes = head ? gzread(file, head, HEAD) : -1;
    bool is = false;
    if (bytes > 0) {
        head[bytes] = '\0';
        char *line = head + strspn(head, " \t\r\n");
        line[strcspn(line, "\n")] = '\0';
        is = has_key(line, "\"chosen\"") && has_key(line, "\"rejected\"");
    }
    weft__free(NULL, head);
    if (file) (void)gzclose(file);
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
