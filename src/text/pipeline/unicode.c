/* Properties and normal forms of characters, by utf8proc, and the normalizer of BERT. Must not know:
 * pipelines. Read next: normalizers.c. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/pipeline/pipeline.h"

/* ---- properties ---- */

bool weft__is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

bool weft__is_word(uint32_t c) {
    if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
        (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c || c == 0x200d)
        return true; /* letters in circles and squares, joiners */
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
    }
}

bool weft__is_numeric(uint32_t c) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
           category == UTF8PROC_CATEGORY_NO;
}

bool weft__is_punctuation(uint32_t c) {
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool weft__is_mark(uint32_t c) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

void weft__put_lowercase(weft__buffer *out, uint32_t c) {
    if (c == 0x130) { /* the only character whose lower case is two characters */
        weft__buffer_put(out, "i\xcc\x87", 3);
        return;
    }
    weft__buffer_put_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

/* ---- normal forms ---- */

/* Normalizes a run of characters. part->points holds its code points. */
static weft_status normalize_run(weft__part *part, const char *text, size_t bytes, int options,
                                 weft__buffer *out) {
    weft__buffer *room = &part->points;
    utf8proc_ssize_t count = 0;
    for (size_t wanted = bytes + 64;; wanted = (size_t)count) {
        if (room->capacity < (wanted + 1) * sizeof(utf8proc_int32_t)) {
            char *grown = weft__realloc(out->ctx, room->text, (2 * wanted + 1) * sizeof(utf8proc_int32_t));
            if (!grown) return weft__fail_oom(out->ctx, wanted, "a text");
            room->text = grown;
            room->capacity = (2 * wanted + 1) * sizeof(utf8proc_int32_t);
        }
        count = utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes,
                                   (utf8proc_int32_t *)(void *)room->text, (utf8proc_ssize_t)wanted,
                                   (utf8proc_option_t)options);
        if (count <= (utf8proc_ssize_t)wanted) break;
    }
    utf8proc_int32_t *points = (utf8proc_int32_t *)(void *)room->text;
    if (count >= 0 && (options & UTF8PROC_COMPOSE))
        count = utf8proc_normalize_utf32(points, count, (utf8proc_option_t)options);
    if (count < 0)
        return weft__fail(out->ctx, WEFT_ERR_INTERNAL, "tokenizer: utf8proc cannot normalize a text: %s",
                          utf8proc_errmsg(count));
    for (utf8proc_ssize_t i = 0; i < count; i++) weft__buffer_put_point(out, (uint32_t)points[i]);
    return WEFT_OK;
}

/* ASCII stays as it is, but the last ASCII character before others may be composed with them. */
weft_status weft__normalize_unicode(weft__part *part, const char *text, size_t bytes, bool compose,
                                    bool compatible, weft__buffer *out) {
    const int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                        (compatible ? UTF8PROC_COMPAT : 0);
    for (size_t at = 0; at < bytes;) {
        size_t other = at;
        while (other < bytes && (unsigned char)text[other] < 0x80) other++;
        size_t begin = other < bytes && other > at ? other - 1 : other;
        weft__buffer_put(out, text + at, begin - at);
        while (other < bytes && (unsigned char)text[other] >= 0x80) other++;
        if (other > begin) WEFT_TRY(normalize_run(part, text + begin, other - begin, options, out));
        at = other;
    }
    return WEFT_OK;
}

/* ---- BERT ---- */

static bool is_chinese(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* Whether BERT removes a character: NUL, U+FFFD, and categories C, but for white space. */
static bool is_dirt(uint32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    if (c == 0 || c == 0xfffd) return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CO;
}

weft_status weft__normalize_bert(weft__part *part, const char *text, size_t bytes, weft__buffer *out) {
    weft__buffer *room = &part->room;
    uint32_t c;
    weft__buffer_set(room, NULL, 0);
    for (size_t at = 0; at < bytes;) {
        at += weft__read_point(text, bytes, at, &c);
        if (part->clean && is_dirt(c)) continue;
        if (part->clean && weft__is_space(c)) c = ' ';
        bool apart = part->chinese && is_chinese(c);
        if (apart) weft__buffer_put(room, " ", 1);
        weft__buffer_put_point(room, c);
        if (apart) weft__buffer_put(room, " ", 1);
    }
    WEFT_TRY(weft__buffer_check(room));
    const char *from = room->text;
    size_t size = room->bytes;
    if (part->accents) {
        weft__buffer_set(&part->text, NULL, 0);
        WEFT_TRY(weft__normalize_unicode(part, from, size, false, false, &part->text));
        WEFT_TRY(weft__buffer_check(&part->text));
        from = part->text.text;
        size = part->text.bytes;
    }
    for (size_t at = 0; at < size;) {
        at += weft__read_point(from, size, at, &c);
        if (part->accents && utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MN) continue;
        if (part->lowercase)
            weft__put_lowercase(out, c);
        else
            weft__buffer_put_point(out, c);
    }
    return WEFT_OK;
}

size_t weft__read_point(const char *text, size_t bytes, size_t at, uint32_t *point) {
    if ((unsigned char)text[at] < 0x80) {
        *point = (unsigned char)text[at];
        return 1;
    }
    int n = weft__utf8_read(text + at, bytes - at, point);
    if (n > 0) return (size_t)n;
    *point = 0xfffd; /* only a piece that a pattern cut within a character can have this */
    return 1;
}
