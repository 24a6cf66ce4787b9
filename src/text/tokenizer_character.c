/* The character tokenizer: one id for each distinct code point of the corpus. Ids follow the code points in
 * ascending order, so equal sets of characters always get equal ids. Must not know: files. Read next:
 * tokenizer_byte.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"
#include "base/utf8.h"

#define POINTS 0x110000u /* code points of Unicode */

static weft_status mark(weft_context *ctx, const weft__span *span, uint8_t *seen) {
    uint32_t point;
    for (size_t at = 0; at < span->bytes;) {
        int n = weft__utf8_read(span->text + at, span->bytes - at, &point);
        if (n <= 0) return weft__fail_utf8(ctx, span, at);
        seen[point / 8] |= (uint8_t)(1u << point % 8);
        at += (size_t)n;
    }
    return WEFT_OK;
}

static weft_status tokenizer_character_build(weft_tokenizer *t, const weft__span *spans, size_t count,
                                             size_t max_vocabulary) {
    static const uint8_t none[8];
    uint8_t *seen = weft__zalloc(t->ctx, POINTS / 8);
    (void)max_vocabulary; /* without some character, a text could not be encoded */
    if (!seen) return weft__fail_oom(t->ctx, POINTS / 8, "the characters of a corpus");
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < count; i++) status = mark(t->ctx, &spans[i], seen);
    for (uint32_t point = 0; status == WEFT_OK && point < POINTS; point++) {
        char bytes[4];
        if (point % 64 == 0) /* skips 64 code points at once that do not occur */
            while (point < POINTS && memcmp(seen + point / 8, none, sizeof none) == 0) point += 64;
        if (point >= POINTS) break;
        if (seen[point / 8] >> point % 8 & 1)
            status = weft__tokenizer_add(t, bytes, weft__utf8_write(point, bytes));
    }
    weft__free(t->ctx, seen);
    return status;
}

static weft_status make_index(weft_tokenizer *t, const char *name) {
    if (t->count == 0) return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: empty", name);
    t->points = weft__array(t->ctx, t->count, sizeof *t->points);
    if (!t->points) return weft__fail_oom(t->ctx, t->count * sizeof *t->points, "a vocabulary");
    memset(t->ascii, 0xff, sizeof t->ascii); /* all -1 */
    for (size_t id = 0; id < t->count; id++) {
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        int n = bytes ? weft__utf8_read(token, bytes, &t->points[id]) : 0;
        if (n <= 0 || (size_t)n != bytes)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu is not one character", name,
                              id);
        if (id && t->points[id] <= t->points[id - 1])
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu is not in ascending order",
                              name, id);
        if (t->points[id] < 128) t->ascii[t->points[id]] = (int32_t)id;
    }
    return WEFT_OK;
}

static int by_value(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static int32_t tokenizer_character_find(const weft_tokenizer *t, uint32_t point) {
    if (point < 128) return t->ascii[point];
    const uint32_t *found = bsearch(&point, t->points, t->count, sizeof *found, by_value);
    return found ? (int32_t)(found - t->points) : -1;
}

static weft_status encode(const weft_tokenizer *t, const weft__span *span, weft__ids *out) {
    uint32_t point;
    for (size_t at = 0; at < span->bytes;) {
        int n = weft__utf8_read(span->text + at, span->bytes - at, &point);
        if (n <= 0) return weft__fail_utf8(t->ctx, span, at);
        int32_t id = tokenizer_character_find(t, point);
        if (id < 0)
            return weft__fail(t->ctx, WEFT_ERR_INDEX,
                              "%s: character U+%04" PRIX32
                              " at byte %zu is not one of the %zu that the model knows",
                              span->name, point, at, t->count);
        weft__put_id(out, id);
        at += (size_t)n;
    }
    return WEFT_OK;
}

const weft__tokenizer_type weft__tokenizer_character = {.name = "character",
                                                        .listed = true,
                                                        .build = tokenizer_character_build,
                                                        .index = make_index,
                                                        .encode = encode};
