/* Strings with Python's meaning: they are rows of characters, and white space and case are Unicode's.
 *
 * Must not know: other values. Read next: filters_text.c, methods.c. */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/pipeline/pipeline.h"
#include "text/template/jinja.h"

size_t weft__jinja_characters(jinja_string s) {
    size_t count = 0;
    for (size_t i = 0; i < s.bytes; i++) count += ((unsigned char)s.text[i] & 0xc0u) != 0x80u;
    return count;
}

size_t weft__jinja_character(jinja_string s, size_t at) {
    size_t n = 1;
    while (at + n < s.bytes && ((unsigned char)s.text[at + n] & 0xc0u) == 0x80u) n++;
    return n;
}

static uint32_t point_at(jinja_string s, size_t at, size_t *n) {
    uint32_t c = 0;
    *n = weft__jinja_character(s, at);
    (void)weft__utf8_read(s.text + at, *n, &c);
    return c;
}

/* Whether a character goes: white space, or one of `characters`. */
static bool is_trimmed(jinja_string s, size_t at, const jinja_string *characters, size_t *n) {
    const uint32_t c = point_at(s, at, n);
    if (!characters) return weft__is_space(c) || (c >= 0x1c && c <= 0x1f);
    for (size_t i = 0, m; i < characters->bytes; i += m)
        if (point_at(*characters, i, &m) == c) return true;
    return false;
}

jinja_string weft__jinja_trim(jinja_string s, const jinja_string *characters, bool left, bool right) {
    size_t begin = 0, end = s.bytes, n;
    while (left && begin < end && is_trimmed(s, begin, characters, &n)) begin += n;
    while (right && end > begin) {
        size_t at = end - 1;
        while (at > begin && ((unsigned char)s.text[at] & 0xc0u) == 0x80u) at--;
        if (!is_trimmed(s, at, characters, &n)) break;
        end = at;
    }
    return (jinja_string){s.text + begin, end - begin};
}

size_t weft__jinja_search(jinja_string s, jinja_string part, size_t at) {
    if (part.bytes > s.bytes) return SIZE_MAX;
    if (part.bytes == 0) return at <= s.bytes ? at : SIZE_MAX;
    for (; at + part.bytes <= s.bytes; at++) {
        const char *c = memchr(s.text + at, part.text[0], s.bytes - part.bytes - at + 1);
        if (!c) break;
        at = (size_t)(c - s.text);
        if (memcmp(c, part.text, part.bytes) == 0) return at;
    }
    return SIZE_MAX;
}

/* ---- case ---- */

static bool strings_is_letter(uint32_t c) {
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

/* Writes a character in upper case. U+00DF is the only common one that becomes two. */
static weft_status put_upper(jinja_run *run, jinja_text *text, uint32_t c, bool title) {
    char out[4];
    if (c == 0xdf) return weft__jinja_write(run, text, title ? "Ss" : "SS", 2);
    const utf8proc_int32_t point = (utf8proc_int32_t)c;
    const size_t n =
        weft__utf8_write((uint32_t)(title ? utf8proc_totitle(point) : utf8proc_toupper(point)), out);
    return weft__jinja_write(run, text, out, n);
}

static weft_status put_lower(jinja_run *run, jinja_text *text, uint32_t c) {
    char out[4];
    if (c == 0x130) return weft__jinja_write(run, text, "i\xcc\x87", 3);
    return weft__jinja_write(run, text, out,
                             weft__utf8_write((uint32_t)utf8proc_tolower((utf8proc_int32_t)c), out));
}

/* Whether jinja2's filter title begins a word after this character. */
static bool divides_words(uint32_t c) {
    return weft__is_space(c) || c == '-' || (c < 128 && c && strchr("({[<", (int)c));
}

weft_status weft__jinja_case(jinja_run *run, jinja_string s, jinja_case how, jinja_value *out) {
    jinja_text text = {0};
    bool begins = true;
    for (size_t at = 0, n; at < s.bytes; at += n) {
        const uint32_t c = point_at(s, at, &n);
        const bool first = how == CASE_CAPITAL ? at == 0 : begins;
        if (how == CASE_UPPER || (how != CASE_LOWER && first))
            WEFT_TRY(put_upper(run, &text, c, how != CASE_UPPER));
        else
            WEFT_TRY(put_lower(run, &text, c));
        begins = how == CASE_TITLE ? !strings_is_letter(c) : divides_words(c);
    }
    return weft__jinja_string(run, &text, out);
}

weft_status weft__jinja_replace(jinja_run *run, jinja_string s, jinja_string from, jinja_string to,
                                int64_t count, jinja_value *out) {
    jinja_text text = {0};
    size_t at = 0;
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64 * (1 + from.bytes / 64)));
    while (count != 0) {
        const size_t found = weft__jinja_search(s, from, at);
        if (found == SIZE_MAX) break;
        WEFT_TRY(weft__jinja_work(run, 1));
        WEFT_TRY(weft__jinja_write(run, &text, s.text + at, found - at));
        WEFT_TRY(weft__jinja_write(run, &text, to.text, to.bytes));
        at = found + from.bytes;
        if (count > 0) count--;
        if (from.bytes == 0) { /* the empty string is before each character, and at the end */
            if (at >= s.bytes) break;
            const size_t n = weft__jinja_character(s, at);
            WEFT_TRY(weft__jinja_write(run, &text, s.text + at, n));
            at += n;
        }
    }
    WEFT_TRY(weft__jinja_write(run, &text, s.text + at, s.bytes - at));
    return weft__jinja_string(run, &text, out);
}

/* ---- lines ---- */

bool weft__jinja_line(jinja_string s, size_t *at, bool ended, jinja_string *out) {
    const size_t begin = *at;
    size_t end = begin, n = 0;
    if (begin >= s.bytes) return false;
    for (; end < s.bytes; end += n) {
        const uint32_t c = point_at(s, end, &n);
        if ((c < '\n' || c > '\r') && (c < 0x1c || c > 0x1e) && c != 0x85 && c != 0x2028 && c != 0x2029)
            continue;
        *at = end + n;
        if (c == '\r' && *at < s.bytes && s.text[*at] == '\n') ++*at;
        *out = (jinja_string){s.text + begin, (ended ? *at : end) - begin};
        return true;
    }
    *at = end;
    *out = (jinja_string){s.text + begin, end - begin};
    return true;
}
