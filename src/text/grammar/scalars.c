/* The bytes of constants, numbers, strings and keys. Must not know: what lies around them. Read next:
 * automaton.c. */
#include <string.h>

#include "text/grammar/automaton.h"

/* Narrows the range of words that begin with the `at` bytes so far to those that go on with a byte. `order`:
 * the indices of the words; NULL: the range itself has them. */
typedef struct words {
    const weft__literal *first;
    size_t stride; /* bytes from one word to the next */
    const uint32_t *order;
} words;

static const weft__literal *word_at(const words *w, uint32_t i) {
    const size_t index = w->order ? w->order[i] : i;
    return (const weft__literal *)(const void *)((const char *)w->first + index * w->stride);
}

/* The byte of word i at a place; -1 behind its end. */
static int byte_at(const words *w, uint32_t i, uint32_t at) {
    const weft__literal *word = word_at(w, i);
    return at < word->bytes ? (unsigned char)word->text[at] : -1;
}

static void narrow(const words *w, uint32_t at, int byte, uint32_t *lo, uint32_t *hi) {
    while (*lo < *hi && byte_at(w, *lo, at) < byte) ++*lo;
    uint32_t end = *lo;
    while (end < *hi && byte_at(w, end, at) == byte) end++;
    *hi = end;
}

/* ---- constants ---- */

static words constants_of(const weft__automaton *a) {
    return (words){a->grammar->constants, sizeof *a->grammar->constants, NULL};
}

weft__step weft__step_constant(const weft__automaton *a, weft__stack_frame *f, unsigned char byte) {
    const words w = constants_of(a);
    uint32_t lo = f->lo, hi = f->hi;
    narrow(&w, f->count, byte, &lo, &hi);
    if (lo == hi) return weft__may_end(a, f) ? WEFT__STEP_OVER : WEFT__STEP_REFUSED;
    f->lo = lo;
    f->hi = hi;
    f->count++;
    return WEFT__STEP_TAKEN;
}

/* ---- numbers ---- */

enum {
    NUMBER_BEGIN,
    NUMBER_MINUS,
    NUMBER_MINUS_ZERO,
    NUMBER_ZERO,
    NUMBER_WHOLE,
    NUMBER_POINT,
    NUMBER_FRACTION,
    NUMBER_E,
    NUMBER_SIGN,
    NUMBER_EXPONENT
};

static weft__step number_go(weft__stack_frame *f, uint8_t state, bool digit) {
    f->count = digit ? (f->state == state ? f->count + 1 : 1) : 0;
    f->state = state;
    return WEFT__STEP_TAKEN;
}

/* Tells whether an integer that begins with the digits so far can lie within its bounds: with k more digits
 * it lies from value * 10^k to value * 10^k + 10^k - 1. */
static bool integer_reaches(const weft__rule *n, bool negative, int64_t value, uint32_t digits) {
    int64_t unit = 1;
    for (; digits <= WEFT__DIGITS; digits++, unit *= 10) {
        const int64_t least = value * unit, most = value * unit + unit - 1;
        if (negative ? -most <= n->high && -least >= n->low : least <= n->high && most >= n->low) return true;
        if (value == 0) break;
    }
    return false;
}

/* Follows a digit before the point. -0 is no integer, and needs a point. */
static weft__step number_whole(weft__stack_frame *f, unsigned char byte, const weft__rule *n) {
    const int64_t value = 10 * (int64_t)f->hash + (byte - '0');
    const bool zero = byte == '0' && f->state != NUMBER_WHOLE, negative = f->value != 0;
    const uint32_t digits = f->state == NUMBER_WHOLE ? f->count + 1 : 1;
    if (digits > WEFT__DIGITS || (n->integer && zero && negative)) return WEFT__STEP_REFUSED;
    if (n->integer && !integer_reaches(n, negative, value, digits)) return WEFT__STEP_REFUSED;
    f->hash = (uint64_t)value;
    return number_go(f, !zero ? NUMBER_WHOLE : negative ? NUMBER_MINUS_ZERO : NUMBER_ZERO, true);
}

static weft__step number_digit(weft__stack_frame *f, unsigned char byte, const weft__rule *n) {
    switch (f->state) {
    case NUMBER_BEGIN:
    case NUMBER_MINUS:
    case NUMBER_WHOLE: return number_whole(f, byte, n);
    case NUMBER_POINT: return number_go(f, NUMBER_FRACTION, true);
    case NUMBER_FRACTION:
        return f->count < WEFT__DIGITS ? number_go(f, NUMBER_FRACTION, true) : WEFT__STEP_REFUSED;
    case NUMBER_E:
    case NUMBER_SIGN: return number_go(f, NUMBER_EXPONENT, true);
    case NUMBER_EXPONENT:
        return f->count < WEFT__EXPONENT_DIGITS ? number_go(f, NUMBER_EXPONENT, true) : WEFT__STEP_REFUSED;
    default: return WEFT__STEP_REFUSED;
    }
}

/* Follows the sign of a number. */
static weft__step number_minus(weft__stack_frame *f, const weft__rule *n) {
    if (n->integer && n->low > -1) return WEFT__STEP_REFUSED;
    f->value = 1;
    return number_go(f, NUMBER_MINUS, false);
}

weft__step weft__step_number(const weft__automaton *a, weft__stack_frame *f, unsigned char byte) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    const bool integer = n->integer;
    const uint8_t s = f->state;
    if (byte >= '0' && byte <= '9') return number_digit(f, byte, n);
    if (s == NUMBER_BEGIN && byte == '-') return number_minus(f, n);
    if (s == NUMBER_E && (byte == '-' || byte == '+')) return number_go(f, NUMBER_SIGN, false);
    if (!integer && byte == '.' && (s == NUMBER_ZERO || s == NUMBER_MINUS_ZERO || s == NUMBER_WHOLE))
        return number_go(f, NUMBER_POINT, false);
    if (!weft__may_end(a, f)) return WEFT__STEP_REFUSED;
    if (!integer && s != NUMBER_EXPONENT && (byte == 'e' || byte == 'E'))
        return number_go(f, NUMBER_E, false);
    return WEFT__STEP_OVER;
}

bool weft__may_end(const weft__automaton *a, const weft__stack_frame *f) {
    if (f->kind == WEFT__FRAME_CONSTANT) {
        const words w = constants_of(a);
        return byte_at(&w, f->lo, f->count) < 0; /* the shortest comes first */
    }
    if (f->kind != WEFT__FRAME_NUMBER) return false;
    const weft__rule *n = &a->grammar->nodes[f->node];
    const int64_t value = f->value ? -(int64_t)f->hash : (int64_t)f->hash;
    if (f->state == NUMBER_ZERO || f->state == NUMBER_WHOLE)
        return !n->integer || (value >= n->low && value <= n->high);
    return f->state == NUMBER_FRACTION || f->state == NUMBER_EXPONENT;
}

/* ---- characters ---- */

/* Follows a byte of a character in UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above
 * U+10FFFF. */
static bool follow_character(weft__stack_frame *f, unsigned char byte) {
    if (f->follow) {
        if (byte < f->lowest || byte > f->highest) return false;
        f->follow--;
        f->lowest = 0x80;
        f->highest = 0xbf;
        return true;
    }
    if (byte < 0x80) return byte >= 0x20;
    if (byte < 0xc2 || byte > 0xf4) return false;
    f->follow = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    f->lowest = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    f->highest = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return true;
}

/* ---- strings ---- */

/* Within \uXXXX the state is STRING_HEX and the number of digits so far; in the second half of a pair of
 * surrogates STRING_LOW and that number. */
enum { STRING_TEXT, STRING_ESCAPE, STRING_PAIR, STRING_PAIR_U, STRING_HEX = 8, STRING_LOW = 16 };

static int hex_value(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Follows a digit of \uXXXX. NUL is refused, since many readers of JSON do so, and surrogates without a
 * partner. */
static weft__step string_hex(weft__stack_frame *f, unsigned char byte) {
    const int digit = hex_value(byte);
    const bool low = f->state >= STRING_LOW;
    const uint32_t value = 16 * f->value + (uint32_t)digit, digits = (f->state & 7u) + 1;
    if (digit < 0 || (digits == 4 && value == 0)) return WEFT__STEP_REFUSED;
    if (low && ((digits == 1 && value != 0xd) || (digits == 2 && value < 0xdc))) return WEFT__STEP_REFUSED;
    if (!low && digits == 2 && value >= 0xdc && value <= 0xdf) return WEFT__STEP_REFUSED;
    f->value = value;
    f->state++;
    if (digits < 4) return WEFT__STEP_TAKEN;
    f->state = !low && value >= 0xd800 && value <= 0xdbff ? STRING_PAIR : STRING_TEXT;
    return WEFT__STEP_TAKEN;
}

static weft__step string_escape(weft__stack_frame *f, unsigned char byte) {
    const bool unicode = byte == 'u';
    if (!unicode && (byte == 0 || !strchr("\"\\/bfnrt", byte))) return WEFT__STEP_REFUSED;
    f->state = unicode ? STRING_HEX : STRING_TEXT;
    f->value = 0;
    return WEFT__STEP_TAKEN;
}

weft__step weft__step_string(const weft__automaton *a, weft__stack_frame *f, unsigned char byte) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    if (f->state == STRING_ESCAPE) return string_escape(f, byte);
    if (f->state == STRING_PAIR || f->state == STRING_PAIR_U) {
        if (byte != (f->state == STRING_PAIR ? '\\' : 'u')) return WEFT__STEP_REFUSED;
        f->state = f->state == STRING_PAIR ? STRING_PAIR_U : STRING_LOW;
        f->value = 0;
        return WEFT__STEP_TAKEN;
    }
    if (f->state != STRING_TEXT) return string_hex(f, byte);
    if (f->follow) return follow_character(f, byte) ? WEFT__STEP_TAKEN : WEFT__STEP_REFUSED;
    if (byte == '"') return f->count >= n->least ? WEFT__STEP_LAST : WEFT__STEP_REFUSED;
    if (f->count >= n->most) return WEFT__STEP_REFUSED;
    if (byte == '\\')
        f->state = STRING_ESCAPE;
    else if (!follow_character(f, byte))
        return WEFT__STEP_REFUSED;
    if (f->count < WEFT__NONE - 1) f->count++;
    return WEFT__STEP_TAKEN;
}

/* ---- keys ---- */

bool weft__property_open(const weft__automaton *a, const weft__stack_frame *object, uint32_t property) {
    const weft__rule *n = &a->grammar->nodes[object->node];
    const weft__property *all = &a->grammar->properties[n->first];
    return property >= object->next && property <= all[object->next].until &&
           weft__fits(a, all[property].node, object->depth + 1u);
}

/* Tells whether the object has an undeclared key of the same hash. */
static bool key_known(const weft__automaton *a, const weft__stack_frame *f, const weft__stack_frame *of) {
    for (uint32_t i = of->keys; i != WEFT__NONE; i = a->pool[i].keys)
        if (a->pool[i].hash == f->hash) return true;
    return false;
}

/* Ends a key at its closing quote. f->lo becomes the index of its property; WEFT__NONE if it is undeclared.
 */
static weft__step key_end(const weft__automaton *a, weft__stack_frame *f, const weft__stack_frame *of,
                          const words *w) {
    const bool declared = f->lo < f->hi && byte_at(w, f->lo, f->count) < 0;
    if (declared) {
        f->lo = w->order[f->lo];
        return weft__property_open(a, of, f->lo) ? WEFT__STEP_LAST : WEFT__STEP_REFUSED;
    }
    if (!f->free || key_known(a, f, of)) return WEFT__STEP_REFUSED;
    f->lo = WEFT__NONE;
    return WEFT__STEP_LAST;
}

weft__step weft__step_key(const weft__automaton *a, weft__stack_frame *f, const weft__stack_frame *of,
                          unsigned char byte) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    const uint32_t *order = n->count ? a->grammar->sorted + n->first : NULL;
    const words w = {n->count ? &a->grammar->properties[n->first].key : NULL, sizeof *a->grammar->properties,
                     order};
    bool open = false;
    if (byte == '"' && !f->follow) {
        const weft__step end = key_end(a, f, of, &w);
        if (end == WEFT__STEP_LAST) return end;
    }
    if (f->lo < f->hi) narrow(&w, f->count, byte, &f->lo, &f->hi);
    for (uint32_t i = f->lo; i < f->hi && !open; i++) open = weft__property_open(a, of, order[i]);
    if (!open && !f->free) return WEFT__STEP_REFUSED;
    /* an undeclared key has no escapes, so that it cannot spell a declared one */
    f->free = f->free && byte != '"' && byte != '\\' && follow_character(f, byte);
    if (!open && !f->free) return WEFT__STEP_REFUSED;
    f->hash = weft__mix64((f->hash ^ byte) + WEFT__GOLDEN);
    if (f->count < WEFT__NONE - 1) f->count++;
    return WEFT__STEP_TAKEN;
}
