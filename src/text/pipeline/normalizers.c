/* The normalizers: each turns a text into another one. Must not know: words, ids. Read next: unicode.c,
 * charsmap.c, then pre_tokenizers.c. */
#include <string.h>

#include "text/bpe.h"
#include "text/pipeline/pipeline.h"

static weft_status run_nfc(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    return weft__normalize_unicode(p, text, bytes, true, false, out);
}
static weft_status run_nfd(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    return weft__normalize_unicode(p, text, bytes, false, false, out);
}
static weft_status run_nfkc(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    return weft__normalize_unicode(p, text, bytes, true, true, out);
}
static weft_status run_nfkd(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    return weft__normalize_unicode(p, text, bytes, false, true, out);
}

static weft_status run_lowercase(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    uint32_t c;
    (void)p;
    for (size_t at = 0; at < bytes;) {
        at += weft__read_point(text, bytes, at, &c);
        weft__put_lowercase(out, c);
    }
    return WEFT_OK;
}

static weft_status run_strip_accents(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    uint32_t c;
    (void)p;
    for (size_t at = 0; at < bytes;) {
        at += weft__read_point(text, bytes, at, &c);
        if (!weft__is_mark(c)) weft__buffer_put_point(out, c);
    }
    return WEFT_OK;
}

static weft_status read_strip(weft__reader *r, const json_t *json, weft__part *p) {
    p->left = p->right = true;
    WEFT_TRY(weft__read_bool(r, json, "strip_left", &p->left));
    return weft__read_bool(r, json, "strip_right", &p->right);
}

static weft_status run_strip(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    uint32_t c;
    size_t begin = 0, end = 0;
    while (p->left && begin < bytes) {
        size_t n = weft__read_point(text, bytes, begin, &c);
        if (!weft__is_space(c)) break;
        begin += n;
    }
    for (size_t at = begin; at < bytes;) {
        at += weft__read_point(text, bytes, at, &c);
        if (!p->right || !weft__is_space(c)) end = at;
    }
    if (end > begin) weft__buffer_put(out, text + begin, end - begin);
    return WEFT_OK;
}

weft_status weft__read_replace(weft__reader *r, const json_t *json, weft__part *p) {
    WEFT_TRY(weft__read_pattern(r, json, &p->regex));
    return weft__read_text(r, json, "content", &p->text);
}

weft_status weft__run_replace(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    weft__search m = weft__search_of(p->regex, text, bytes);
    size_t done = 0;
    bool found = false;
    while (bytes) {
        WEFT_TRY(weft__search_next(&m, &found));
        if (!found) break;
        weft__buffer_put(out, text + done, m.begin - done);
        weft__buffer_put(out, p->text.text, p->text.bytes);
        done = m.end;
    }
    weft__buffer_put(out, text + done, bytes - done);
    return WEFT_OK;
}

static weft_status read_prepend(weft__reader *r, const json_t *json, weft__part *p) {
    return weft__read_text(r, json, "prepend", &p->text);
}

static weft_status run_prepend(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    if (bytes) weft__buffer_put(out, p->text.text, p->text.bytes);
    weft__buffer_put(out, text, bytes);
    return WEFT_OK;
}

static weft_status read_bert(weft__reader *r, const json_t *json, weft__part *p) {
    p->clean = p->chinese = p->lowercase = true;
    WEFT_TRY(weft__read_bool(r, json, "clean_text", &p->clean));
    WEFT_TRY(weft__read_bool(r, json, "handle_chinese_chars", &p->chinese));
    WEFT_TRY(weft__read_bool(r, json, "lowercase", &p->lowercase));
    p->accents = p->lowercase;
    return weft__read_bool(r, json, "strip_accents", &p->accents);
}

static weft_status read_precompiled(weft__reader *r, const json_t *json, weft__part *p) {
    const json_t *map = json_object_get(json, "precompiled_charsmap");
    p->longest = r->t->pipeline->sentencepiece;
    if (!map || json_is_null(map)) return WEFT_OK;
    if (!json_is_string(map))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "precompiled_charsmap must be a string");
    return weft__charsmap_read(r, json_string_value(map), json_string_length(map), &p->charsmap);
}

/* Google's neural machine translation: control characters go, other separators become spaces. */
static weft_status run_nmt(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    uint32_t c;
    (void)p;
    for (size_t at = 0; at < bytes;) {
        at += weft__read_point(text, bytes, at, &c);
        if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f)
            continue;
        bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
        weft__buffer_put_point(out, space ? ' ' : c);
    }
    return WEFT_OK;
}

static weft_status run_byte_level(weft__part *p, const char *text, size_t bytes, weft__buffer *out) {
    (void)p;
    for (size_t i = 0; i < bytes; i++) weft__buffer_put_point(out, weft__bpe_point((unsigned char)text[i]));
    return WEFT_OK;
}

const weft__part_type weft__normalizers[] = {
    {.name = "NFC", .normalize = run_nfc},
    {.name = "NFD", .normalize = run_nfd},
    {.name = "NFKC", .normalize = run_nfkc},
    {.name = "NFKD", .normalize = run_nfkd},
    {.name = "Lowercase", .normalize = run_lowercase},
    {.name = "Strip", .read = read_strip, .normalize = run_strip},
    {.name = "StripAccents", .normalize = run_strip_accents},
    {.name = "Replace", .read = weft__read_replace, .normalize = weft__run_replace},
    {.name = "Prepend", .read = read_prepend, .normalize = run_prepend},
    {.name = "BertNormalizer", .read = read_bert, .normalize = weft__normalize_bert},
    {.name = "Precompiled", .read = read_precompiled, .normalize = weft__charsmap_run},
    {.name = "Nmt", .normalize = run_nmt},
    {.name = "ByteLevel", .normalize = run_byte_level},
    {0},
};
