/* Logic, shifts, and fields of bits. Read next: arithmetic.c. */
#include "actions.h"
#include "number.h"

/* d[l] = an expression of x, y and z, the operands as unsigned numbers of the instruction's type */
#define BITS(count, expression)                                                                              \
    do {                                                                                                     \
        const unsigned bits = in->type == PREDICATE ? 1 : 8 * ptx_bytes(in->type);                           \
        const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, (count) > 1),                           \
                       *c = ptx_from(w, in, (count) > 2 ? 2 : 0);                                            \
        const uint64_t keep = ptx_mask(bits);                                                                \
        uint64_t *to = ptx_to(w, in, 0);                                                                     \
        EACH_LANE(mask) {                                                                                    \
            const uint64_t x = a[l] & keep, y = b[l], z = c[l];                                              \
            (void)y, (void)z;                                                                                \
            to[l] = (expression)&keep;                                                                       \
        }                                                                                                    \
    } while (0)

/* false and anything is false; true or anything is true. */
static void know_by_one(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool decides) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1);
    if (in->type != PREDICATE) return;
    EACH_LANE(w->lost & mask) {
        const bool by_a = ptx_defined(w, in, 0) >> l & 1 && a[l] == decides;
        const bool by_b = ptx_defined(w, in, 1) >> l & 1 && b[l] == decides;
        if (by_a || by_b) w->lost &= ~(1u << l);
    }
}
void ptx_and(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    know_by_one(w, in, mask, false);
    BITS(2, x & y);
}
void ptx_or(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    know_by_one(w, in, mask, true);
    BITS(2, x | y);
}
void ptx_xor(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(2, x ^ y); }
void ptx_not(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(1, ~x); }
void ptx_cnot(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(1, x == 0); }

/* The bit of the result is bit (a, b, c) of the table. */
static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
    uint64_t all = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1) all |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return all;
}
void ptx_lop3(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *table = ptx_from(w, in, 3);
    BITS(3, lop3(x, y, z, table[l]));
}

/* Shifts by more than the width shift everything out. */
void ptx_shl(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    BITS(2, (uint32_t)y >= bits ? 0 : x << (uint32_t)y);
}
void ptx_shr(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (ptx_is_signed(in->type))
        BITS(2,
             (uint64_t)((int64_t)ptx_integer(in->type, x) >> ((uint32_t)y >= bits ? bits - 1 : (uint32_t)y)));
    else
        BITS(2, (uint32_t)y >= bits ? 0 : x >> (uint32_t)y);
}

/* A funnel shift of the pair (b, a), whose upper half is b. */
static uint32_t funnel(int word, uint64_t low, uint64_t high, uint64_t by) {
    enum { LEFT_WRAP = 1, LEFT_CLAMP, RIGHT_WRAP, RIGHT_CLAMP };
    const bool wrap = word == LEFT_WRAP || word == RIGHT_WRAP;
    const uint64_t both = (uint32_t)high * (1ull << 32) + (uint32_t)low, n = wrap ? by & 31
                                                                             : (uint32_t)by > 32
                                                                                 ? 32
                                                                                 : (uint32_t)by;
    return word == LEFT_WRAP || word == LEFT_CLAMP ? (uint32_t)(n == 32 ? both : both << n >> 32)
                                                   : (uint32_t)(both >> n);
}
void ptx_shf(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(3, funnel(in->word, x, y, z)); }

/* Each nibble of the selector names a byte of (b, a), or the sign of the byte. */
static uint64_t permute(uint64_t a, uint64_t b, uint64_t select) {
    const uint64_t both = (uint32_t)b * (1ull << 32) + (uint32_t)a;
    uint64_t all = 0;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned n = (unsigned)(select >> 4 * i & 15);
        uint64_t byte = both >> 8 * (n & 7) & 255;
        if (n & 8) byte = byte & 128 ? 255 : 0;
        all |= byte << 8 * i;
    }
    return all;
}
void ptx_prmt(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(3, permute(x, y, z)); }

/* Bits [at, at + length) of x, whose sign fills the rest. */
static uint64_t field(ptx_type type, unsigned bits, uint64_t x, uint64_t at, uint64_t length) {
    const bool is_signed = ptx_is_signed(type);
    at &= 255, length &= 255;
    const uint64_t last = at + length - 1 < bits - 1 ? at + length - 1 : bits - 1;
    const bool sign = is_signed && length && x >> last & 1;
    uint64_t all = 0;
    for (unsigned i = 0; i < bits; i++) {
        const bool bit = i < length && at + i < bits ? x >> (at + i) & 1 : sign;
        all |= (uint64_t)bit << i;
    }
    return all;
}
void ptx_bfe(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    BITS(3, field(in->type, bits, x, y, z));
}

/* bfi d, a, b, at, length: b with the lowest `length` bits of a from bit `at` on */
void ptx_bfi(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *length = ptx_from(w, in, 3);
    BITS(3, ((z & 255) >= 64 ? y
                             : (y & ~(ptx_mask(length[l] & 255) << (z & 255))) |
                                   (x & ptx_mask(length[l] & 255)) << (z & 255)));
}

void ptx_popc(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    BITS(1, (uint64_t)__builtin_popcountll(x));
}
void ptx_clz(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    BITS(1, x ? (uint64_t)__builtin_clzll(x) - (64 - bits) : bits);
}
static uint64_t reversed(uint64_t x, unsigned bits) {
    uint64_t all = 0;
    for (unsigned i = 0; i < bits; i++) all |= (x >> i & 1) << (bits - 1 - i);
    return all;
}
void ptx_brev(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { BITS(1, reversed(x, bits)); }

/* The highest bit that differs from the sign, or how far it would have to be shifted. */
static uint64_t highest(const ptx_instruction *in, uint64_t x, unsigned bits) {
    if (ptx_is_signed(in->type) && x >> (bits - 1) & 1) x = ~x & ptx_mask(bits);
    if (!x) return 0xffffffff;
    const uint64_t at = 63 - (uint64_t)__builtin_clzll(x);
    return in->word ? bits - 1 - at : at;
}
void ptx_bfind(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    BITS(1, highest(in, x, bits) & 0xffffffff);
}
