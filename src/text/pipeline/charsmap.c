/* The normalizer Precompiled: a map of characters that SentencePiece compiled. The map holds the size of a
 * trie, the trie as a double array (Darts-clone, github.com/s-yata/darts-clone), and the new texts, each
 * ended by NUL. It is applied as in the crate spm_precompiled: a short grapheme cluster is replaced as a
 * whole if the map has a prefix of it. SentencePiece itself replaces the
 * longest match at each place. Must not know: pipelines. Read next: pre_tokenizers.c. */
#include <string.h>
#include <utf8proc.h>

#include "text/pipeline/pipeline.h"

struct weft__charsmap {
    uint32_t *units; /* [count] */
    size_t count;
    char *texts; /* [bytes], the last is NUL */
    size_t bytes;
};

/* ---- reading ---- */

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 to `out`, which has room for 3/4 of the bytes. */
static bool base64_decode(const char *text, size_t bytes, unsigned char *out, size_t *used) {
    uint32_t bits = 0;
    int count = 0;
    *used = 0;
    while (bytes && text[bytes - 1] == '=') bytes--;
    for (size_t i = 0; i < bytes; i++) {
        int value = base64_value(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[(*used)++] = (unsigned char)(bits >> count);
        }
    }
    return true;
}

static uint32_t read_u32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

weft_status weft__charsmap_read(weft__reader *r, const char *base64, size_t bytes,
                                struct weft__charsmap **out) {
    weft_context *ctx = r->t->ctx;
    size_t size = 0;
    unsigned char *data = weft__alloc(ctx, bytes + 4);
    struct weft__charsmap *map = weft__zalloc(ctx, sizeof *map);
    if (!data || !map) goto oom;
    *out = map;
    size_t trie = 0;
    bool good = base64_decode(base64, bytes, data, &size) && size > 4;
    if (good) trie = read_u32(data);
    good = good && trie <= size - 4 && trie % 4 == 0 && trie > 0;
    if (!good) {
        weft__free(ctx, data);
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "precompiled_charsmap is damaged");
    }
    map->count = trie / 4;
    map->bytes = size - 4 - trie + 1;
    map->units = weft__array(ctx, map->count, sizeof *map->units);
    map->texts = weft__zalloc(ctx, map->bytes);
    if (!map->units || !map->texts) {
        weft__free(ctx, data);
        return weft__fail_oom(ctx, size, "precompiled_charsmap");
    }
    const weft__span texts = {r->name, (const char *)data + 4 + trie, map->bytes - 1};
    weft_status status = weft__check_utf8(ctx, &texts);
    if (status != WEFT_OK) {
        weft__free(ctx, data);
        return status;
    }
    for (size_t i = 0; i < map->count; i++) map->units[i] = read_u32(data + 4 + 4 * i);
    memcpy(map->texts, data + 4 + trie, map->bytes - 1);
    weft__free(ctx, data);
    return WEFT_OK;
oom:
    weft__free(ctx, data);
    weft__free(ctx, map);
    return weft__fail_oom(ctx, bytes, "precompiled_charsmap");
}

void weft__charsmap_free(weft_context *ctx, struct weft__charsmap *map) {
    if (!map) return;
    weft__free(ctx, map->units);
    weft__free(ctx, map->texts);
    weft__free(ctx, map);
}

/* ---- the double array ---- */

static size_t unit_offset(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 0x200) >> 6); }

/* Returns the new text of the shortest prefix of `text` that the map has, or of the longest; NULL: none. */
static const char *charsmap_find(const struct weft__charsmap *map, const char *text, size_t bytes,
                                 bool longest, size_t *matched) {
    const char *found = NULL;
    size_t at = unit_offset(map->units[0]);
    for (size_t i = 0; i < bytes && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        at ^= c;
        if (at >= map->count) break;
        uint32_t unit = map->units[at];
        if ((unit & 0x800000ffu) != c) break;
        at ^= unit_offset(unit);
        if (at >= map->count) break;
        if (!(unit >> 8 & 1)) continue;
        size_t value = map->units[at] & 0x7fffffffu;
        if (value >= map->bytes || ((unsigned char)map->texts[value] & 0xc0) == 0x80) break;
        found = map->texts + value;
        *matched = i + 1;
        if (!longest) break;
    }
    return found;
}

/* ---- applying ---- */

/* Returns the length of the grapheme cluster at `at`. */
static size_t grapheme(const char *text, size_t bytes, size_t at) {
    uint32_t before, next;
    utf8proc_int32_t state = 0;
    size_t n = weft__read_point(text, bytes, at, &before), total = n;
    while (at + total < bytes) {
        n = weft__read_point(text, bytes, at + total, &next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)next, &state)) break;
        total += n;
        before = next;
    }
    return total;
}

weft_status weft__charsmap_run(weft__part *part, const char *text, size_t bytes, weft__buffer *out) {
    const struct weft__charsmap *map = part->charsmap;
    size_t matched;
    if (!map) {
        weft__buffer_put(out, text, bytes);
        return WEFT_OK;
    }
    for (size_t at = 0; at < bytes && part->longest;) {
        const char *to = charsmap_find(
            map, text + at, bytes - at < WEFT__AFFIX_MAX ? bytes - at : WEFT__AFFIX_MAX, true, &matched);
        uint32_t c;
        if (!to) matched = weft__read_point(text, bytes, at, &c);
        weft__buffer_put(out, to ? to : text + at, to ? strlen(to) : matched);
        at += matched;
    }
    for (size_t at = 0; at < bytes && !part->longest;) {
        size_t cluster = grapheme(text, bytes, at);
        const char *to = cluster < 6 ? charsmap_find(map, text + at, cluster, false, &matched) : NULL;
        if (to) {
            weft__buffer_put(out, to, strlen(to));
            at += cluster;
            continue;
        }
        for (size_t end = at + cluster; at < end;) {
            uint32_t c;
            size_t n = weft__read_point(text, bytes, at, &c);
            to = charsmap_find(map, text + at, n, false, &matched);
            if (to)
                weft__buffer_put(out, to, strlen(to));
            else
                weft__buffer_put(out, text + at, n);
            at += n;
        }
    }
    return WEFT_OK;
}
