/* GPT-2's alphabet of bytes, and the tokens and merges written in it. Must not know: how texts are encoded,
 * what files look like. Read next: tokenizer_gpt2.c. */
#include <string.h>

#include "text/bpe.h"
#include "base/utf8.h"

/* The 68 bytes that are not printable are 0 to ' ', 0x7f to 0xa0, and 0xad. In this order they become U+0100,
 * U+0101, ... */
enum { OTHERS = 0x100, SECOND = OTHERS + 0x21, THIRD = SECOND + 0x22 };

uint32_t weft__bpe_point(unsigned char byte) {
    if (byte <= ' ') return OTHERS + byte;
    if (byte >= 0x7f && byte <= 0xa0) return SECOND + (uint32_t)byte - 0x7f;
    return byte == 0xad ? THIRD : byte;
}

int weft__bpe_byte(uint32_t point) {
    uint32_t byte = point;
    if (point >= OTHERS) byte = point - OTHERS;
    if (point >= SECOND) byte = point - SECOND + 0x7f;
    if (point >= THIRD) byte = point - THIRD + 0xad;
    return byte < 256 && weft__bpe_point((unsigned char)byte) == point ? (int)byte : -1;
}

size_t weft__bpe_print(const char *token, size_t bytes, char *out) {
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++)
        used += weft__utf8_write(weft__bpe_point((unsigned char)token[i]), out + used);
    return used;
}

/* Converts text in the alphabet to bytes. `out` has room for as many bytes as the text. Returns false if the
 * text is empty or has a character outside the alphabet. */
static bool read_written(const char *text, size_t bytes, char *out, size_t *used) {
    *used = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t point = 0;
        int n = weft__utf8_read(text + at, bytes - at, &point), byte = n > 0 ? weft__bpe_byte(point) : -1;
        if (byte < 0) return false;
        out[(*used)++] = (char)(unsigned char)byte;
        at += (size_t)n;
    }
    return *used > 0;
}

weft_status weft__bpe_add_token(weft_tokenizer *t, const char *name, const char *text, size_t bytes) {
    size_t used;
    char *token = weft__alloc(t->ctx, bytes + 1);
    if (!token) return weft__fail_oom(t->ctx, bytes, "a vocabulary");
    weft_status status;
    if (read_written(text, bytes, token, &used))
        status = weft__tokenizer_add(t, token, used);
    else
        status = weft__fail(
            t->ctx, WEFT_ERR_FORMAT,
            "%s: vocabulary: id %zu, '%.40s', is not written in the characters that GPT-2 uses for bytes",
            name, t->count, text);
    weft__free(t->ctx, token);
    return status;
}

/* Returns the id of a token in the alphabet, or -1 if there is none. */
static int32_t id_of(const weft_tokenizer *t, const char *text, size_t bytes, char *room, size_t *used) {
    return read_written(text, bytes, room, used) ? t->slots[weft__tokenizer_slot(t, room, *used)] : -1;
}

weft_status weft__bpe_begin(weft_tokenizer *t, const char *name) {
    t->bpe = weft__zalloc(t->ctx, sizeof *t->bpe);
    if (!t->bpe) return weft__fail_oom(t->ctx, sizeof *t->bpe, "a tokenizer");
    if (t->count == 0) return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: empty", name);
    return weft__tokenizer_tabulate(t, name);
}

weft_status weft__bpe_add_merge(weft_tokenizer *t, const char *name, const char *where, size_t number,
                                const char *text, size_t bytes) {
    weft__bpe *b = t->bpe;
    const char *space = bytes ? memchr(text, ' ', bytes) : NULL;
    if (!space)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT,
                          "%s: %s %zu: expected two tokens with a space between them", name, where, number);
    if (!weft__grow(t->ctx, &b->merges.list, &b->merges.capacity, b->merges.count, sizeof *b->merges.list))
        return weft__fail_oom(t->ctx, b->merges.count * sizeof *b->merges.list, "merges");
    char *room = weft__alloc(t->ctx, bytes + 1);
    if (!room) return weft__fail_oom(t->ctx, bytes, "merges");
    size_t first = (size_t)(space - text), left = 0, right = 0;
    weft__merge merge = {-1, -1, -1, 0};
    merge.left = id_of(t, text, first, room, &left);
    merge.right = merge.left < 0 ? -1 : id_of(t, space + 1, bytes - first - 1, room + left, &right);
    if (merge.right >= 0) merge.made = t->slots[weft__tokenizer_slot(t, room, left + right)];
    weft__free(t->ctx, room);
    if (merge.made < 0)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT,
                          "%s: %s %zu: %s: the two files belong to different vocabularies", name, where,
                          number,
                          merge.right >= 0 ? "the merged token is not in the vocabulary"
                                           : "one of the two tokens is not in the vocabulary");
    b->merges.list[b->merges.count++] = merge;
    return WEFT_OK;
}
