/* Strict UTF-8, by table 3-7 of the Unicode standard.
 * Must not know: what text is for. Read next: text.c. */
#include "base/utf8.h"

#include <string.h>

/* The length of the sequence that starts with byte c, and the range of its second byte. 0: no sequence
 * does. */
static int first_byte(unsigned char c, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xbf;
    if (c < 0x80) return 1;
    if (c < 0xc2) return 0;
    if (c < 0xe0) return 2;
    if (c < 0xf0) {
        if (c == 0xe0) *low = 0xa0;
        if (c == 0xed) *high = 0x9f;
        return 3;
    }
    if (c == 0xf0) *low = 0x90;
    if (c == 0xf4) *high = 0x8f;
    return c < 0xf5 ? 4 : 0;
}

int weft__utf8_read(const char *p, size_t n, uint32_t *point) {
    unsigned char low, high;
    unsigned char c = (unsigned char)p[0];
    int length = first_byte(c, &low, &high);
    if (length == 0) return -1;
    if (length == 1) {
        *point = c;
        return 1;
    }
    uint32_t v = c & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((size_t)i >= n) return 0;
        c = (unsigned char)p[i];
        if (c < low || c > high) return -i;
        v = v << 6 | (c & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    *point = v;
    return length;
}

size_t weft__utf8_cut(const char *text, size_t bytes, size_t most) {
    if (bytes <= most) return bytes;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--;
    return most;
}

size_t weft__utf8_write(uint32_t point, char out[4]) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

bool weft__is_utf8(const char *text) {
    uint32_t point;
    for (size_t left = strlen(text); left > 0;) {
        const int size = weft__utf8_read(text, left, &point);
        if (size <= 0) return false;
        text += size;
        left -= (size_t)size;
    }
    return true;
}
