/* Seals and checks texts, see seal.h. Must not know: what the text means. Read next: sum.h. */
#include <stdio.h>
#include <string.h>

#include "io/seal.h"
#include "io/sum.h"

/* The body "{...\n}\n" becomes "{...,\n \"checksum\": \"SUM\"\n}\n". The part after the comma has a fixed
 * length. */
#define SEAL_BEFORE "\n \"checksum\": \""
#define SEAL_AFTER  "\"\n}\n"
#define SEAL_SIZE   (sizeof SEAL_BEFORE - 1 + WEFT__SUM_TEXT - 1 + sizeof SEAL_AFTER - 1)

weft_status weft__seal(weft_context *ctx, const char *body, size_t body_bytes, char **text, size_t *bytes) {
    size_t kept = body_bytes;
    weft__sum sum;
    char digits[WEFT__SUM_TEXT];
    *text = NULL;
    while (kept && (body[kept - 1] == '\n' || body[kept - 1] == '}')) {
        kept--;
        if (body[kept] == '}') break; /* only the last bracket */
    }
    while (kept && body[kept - 1] == '\n') kept--;
    char *out = weft__alloc(ctx, kept + 1 + SEAL_SIZE + 1);
    if (!out) return weft__fail_oom(ctx, kept + 1 + SEAL_SIZE + 1, "a sealed text");
    memcpy(out, body, kept);
    out[kept++] = ',';
    weft__sum_init(&sum);
    weft__sum_all(&sum, out, kept);
    weft__sum_text(&sum, digits);
    snprintf(out + kept, SEAL_SIZE + 1, "%s%s%s", SEAL_BEFORE, digits, SEAL_AFTER);
    *text = out;
    *bytes = kept + SEAL_SIZE;
    return WEFT_OK;
}

weft_status weft__seal_check(weft_context *ctx, const char *path, const char *text, size_t bytes) {
    weft__sum sum;
    char digits[WEFT__SUM_TEXT], seal[SEAL_SIZE + 1];
    if (bytes <= SEAL_SIZE)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: checksum: missing, the file is truncated", path);
    weft__sum_init(&sum);
    weft__sum_all(&sum, text, bytes - SEAL_SIZE);
    weft__sum_text(&sum, digits);
    snprintf(seal, sizeof seal, "%s%s%s", SEAL_BEFORE, digits, SEAL_AFTER);
    const char *found = text + bytes - SEAL_SIZE;
    if (memcmp(found, seal, SEAL_SIZE) == 0) return WEFT_OK;
    if (memcmp(found, SEAL_BEFORE, sizeof SEAL_BEFORE - 1) != 0)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: checksum: not at the end of the file: truncated, appended to, or edited",
                          path);
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: checksum: the file's bytes do not match it: damaged or edited", path);
}
