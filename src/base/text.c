/* Text in a buffer of limited size, and text from files made safe for a terminal.
 * Must not know: what is written. Read next: utf8.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

weft_text weft__text(char *buffer, size_t size) {
    if (!buffer) size = 0;
    if (size) buffer[0] = '\0';
    return (weft_text){buffer, size, 0};
}

void weft__put(weft_text *text, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    size_t room = text->length < text->size ? text->size - text->length : 0;
    int n = vsnprintf(room ? text->buffer + text->length : NULL, room, fmt, args);
    va_end(args);
    if (n > 0) text->length += (size_t)n;
}

bool weft__join(char *out, size_t bytes, const char *dir, const char *name) {
    int wanted = snprintf(out, bytes, "%s/%s", dir, name);
    return wanted > 0 && (size_t)wanted < bytes;
}

const char *weft__shell_word(const char *text, char *out, size_t bytes) {
    weft_text word = weft__text(out, bytes);
    const bool plain =
        text[0] && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                     "_./=:,@%+-")] == '\0';
    if (!plain) weft__put(&word, "'");
    for (const char *c = text; *c; c++) weft__put(&word, *c == '\'' ? "'\\''" : "%c", *c);
    if (!plain) weft__put(&word, "'");
    return out;
}

bool weft__matches(const char *pattern, const char *text) {
    const char *star = NULL, *retry = NULL; /* the last star, and the text from which it is tried again */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || (*pattern && *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

/* ---- text for people ---- */

static bool steers(uint32_t point) {
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x202a && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069);
}

/* Writes an escape such as "\\u001b". By hand, since printf may allocate and messages about memory come here
 * too. */
static size_t escape(char letter, uint32_t value, int digits, char out[WEFT__ESCAPE]) {
    out[0] = '\\';
    out[1] = letter;
    for (int i = 0; i < digits; i++) out[2 + i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
    return 2 + (size_t)digits;
}

size_t weft__printable_next(const char *text, size_t bytes, const char *kept, char out[WEFT__ESCAPE],
                            size_t *taken) {
    uint32_t point;
    const int length = weft__utf8_read(text, bytes, &point);
    *taken = length > 0 ? (size_t)length : 1;
    if (length <= 0) return escape('x', (unsigned char)*text, 2, out);
    if (!steers(point) || (point && point < 0x80 && strchr(kept, (int)point))) {
        memcpy(out, text, *taken);
        return *taken;
    }
    if (point == '\n' || point == '\r' || point == '\t')
        return escape(point == '\n' ? 'n' : point == '\r' ? 'r' : 't', 0, 0, out);
    return escape('u', point, 4, out);
}

size_t weft__printable(char *out, size_t size, const char *text, size_t bytes, const char *kept) {
    size_t length = 0, used = 0, taken;
    for (; bytes > 0; text += taken, bytes -= taken) {
        char piece[WEFT__ESCAPE];
        const size_t n = weft__printable_next(text, bytes, kept, piece, &taken);
        if (used == length && size && n < size - used) { /* nothing was left out before */
            memcpy(out + used, piece, n);
            used += n;
        }
        length += n;
    }
    if (size) out[used] = '\0';
    return length;
}
