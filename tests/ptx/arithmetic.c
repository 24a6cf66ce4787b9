/* Arithmetic on integers and floats, comparison, selection, and moves between registers. Read next: float.c.
 */
#include "actions.h"
#include "number.h"

void ptx_unknown(ptx_warp *w, const ptx_instruction *in) {
    (void)in;
    ptx_fault(w, -1, "the interpreter does not know this instruction with this type");
}

/* Computes a float or double for each lane, by the same expression of x and y. */
#define REALS(count, expression32, expression64)                                                             \
    do {                                                                                                     \
        const uint64_t *x_ = ptx_from(w, in, 0), *y_ = ptx_from(w, in, (count)-1);                           \
        uint64_t *to_ = ptx_to(w, in, 0);                                                                    \
        ptx_round_begin(in);                                                                                 \
        if (in->type == F32) EACH_LANE(mask) {                                                               \
                const float x = ptx_float_in(in, x_[l]), y = ptx_float_in(in, y_[l]);                        \
                (void)y;                                                                                     \
                to_[l] = ptx_float_out(in, expression32);                                                    \
            }                                                                                                \
        else if (in->type == F64)                                                                            \
            EACH_LANE(mask) {                                                                                \
                const double x = ptx_double(x_[l]), y = ptx_double(y_[l]);                                   \
                (void)y;                                                                                     \
                to_[l] = ptx_double_bits(expression64);                                                      \
            }                                                                                                \
        else                                                                                                 \
            ptx_unknown(w, in);                                                                              \
        ptx_round_end(in);                                                                                   \
    } while (0)

/* ---- sums ---- */

static bool is_real(const ptx_instruction *in) { return ptx_is_float(in->type); }

/* x + y + carry, for subtraction with the complement of y. The carry flag of a subtraction is its borrow. */
static void sum(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool minus) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1), keep = ptx_mask(8 * ptx_bytes(in->type));
    uint64_t *to = ptx_to(w, in, 0);
    if (!in->word && !(in->flags & CARRY_OUT)) {
        EACH_LANE(mask) to[l] = (minus ? a[l] - b[l] : a[l] + b[l]) & keep;
        return;
    }
    EACH_LANE(mask) {
        const uint32_t bit = 1u << l, flag = in->word && w->carry & bit;
        const ptx_wide x = (ptx_wide)(a[l] & keep), y = (ptx_wide)(b[l] & keep);
        const ptx_wide z = minus ? x - y - flag : x + y + flag;
        if (in->flags & CARRY_OUT) w->carry = z < 0 || z > (ptx_wide)keep ? w->carry | bit : w->carry & ~bit;
        to[l] = (uint64_t)z & keep;
    }
}

/* .sat, for s32 alone */
static void sum_saturated(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool minus) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1);
    uint64_t *to = ptx_to(w, in, 0);
    if (in->type != S32) {
        ptx_unknown(w, in);
        return;
    }
    EACH_LANE(mask) {
        const int64_t x = (int32_t)a[l], y = (int32_t)b[l], z = minus ? x - y : x + y;
        to[l] = (uint32_t)(z > INT32_MAX ? INT32_MAX : z < INT32_MIN ? INT32_MIN : z);
    }
}

void ptx_add(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (is_real(in))
        REALS(2, x + y, x + y);
    else if (in->flags & SAT)
        sum_saturated(w, in, mask, false);
    else
        sum(w, in, mask, false);
}

void ptx_sub(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (is_real(in))
        REALS(2, x - y, x - y);
    else if (in->flags & SAT)
        sum_saturated(w, in, mask, true);
    else
        sum(w, in, mask, true);
}

/* ---- products ---- */

/* The low, high or whole product of two integers. */
static uint64_t product(const ptx_instruction *in, uint64_t a, uint64_t b) {
    const unsigned bits = 8 * ptx_bytes(in->type);
    const uint64_t x = ptx_integer(in->type, a), y = ptx_integer(in->type, b);
    if (in->flags & LOW) return x * y & ptx_mask(bits);
    if (bits < 64)
        return x * y >> (in->flags & HIGH ? bits : 0) & ptx_mask(in->flags & HIGH ? bits : 2 * bits);
    const bool is_signed = ptx_is_signed(in->type);
    const ptx_wide p = is_signed ? (ptx_wide)(int64_t)x * (int64_t)y : (ptx_wide)x * (ptx_wide)y;
    return (uint64_t)(p >> 64);
}

static bool is_product(const ptx_instruction *in) {
    const unsigned bytes = ptx_bytes(in->type);
    return in->flags & (LOW | HIGH | WIDE) && !(in->flags & SAT) && bytes >= 2 &&
           !(in->flags & WIDE && bytes > 4);
}

void ptx_mul(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1);
    uint64_t *to = ptx_to(w, in, 0);
    if (is_real(in))
        REALS(2, x * y, x * y);
    else if (in->flags & WIDE && in->type == S32)
        EACH_LANE(mask) to[l] = (uint64_t)((int64_t)(int32_t)a[l] * (int32_t)b[l]);
    else if (is_product(in))
        EACH_LANE(mask) to[l] = product(in, a[l], b[l]);
    else
        ptx_unknown(w, in);
}

void ptx_mad(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1), *c = ptx_from(w, in, 2);
    const uint64_t keep = ptx_mask(8 * ptx_bytes(in->type) * (in->flags & WIDE ? 2 : 1));
    uint64_t *to = ptx_to(w, in, 0);
    if (is_real(in) || !is_product(in)) {
        ptx_unknown(w, in);
        return;
    }
    EACH_LANE(mask) {
        const uint32_t bit = 1u << l, flag = in->word && w->carry & bit;
        if (in->type == S32 && in->flags == LOW && !in->word) {
            to[l] = (uint32_t)(a[l] * b[l] + c[l]);
            continue;
        }
        const ptx_wide z = (ptx_wide)product(in, a[l], b[l]) + (ptx_wide)(c[l] & keep) + flag;
        if (in->flags & CARRY_OUT) w->carry = z > (ptx_wide)keep ? w->carry | bit : w->carry & ~bit;
        to[l] = (uint64_t)z & keep;
    }
}

/* ---- quotients ---- */

/* A quotient by 0 is not specified. This one has all bits set, as GPUs give it. */
static uint64_t quotient(ptx_type type, uint64_t x, uint64_t y, bool rest) {
    if (!y) return rest ? x : ~0ull;
    if (!ptx_is_signed(type)) return rest ? x % y : x / y;
    if ((int64_t)y == -1) return rest ? 0 : 0 - x;
    return (uint64_t)(rest ? (int64_t)x % (int64_t)y : (int64_t)x / (int64_t)y);
}

static void divide(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool rest) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1), keep = ptx_mask(8 * ptx_bytes(in->type));
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask)
    to[l] = quotient(in->type, ptx_integer(in->type, a[l]), ptx_integer(in->type, b[l]), rest) & keep;
}

/* div.approx: above 2^126 the reciprocal of y is 0. */
static float divide_roughly(const ptx_instruction *in, float x, float y) {
    if (in->flags & APPROX && fabsf(y) > 0x1p126f && !isinf(y)) return isinf(x) ? NAN : copysignf(0, x * y);
    return x / y;
}

void ptx_div(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (is_real(in))
        REALS(2, divide_roughly(in, x, y), x / y);
    else
        divide(w, in, mask, false);
}

void ptx_rem(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { divide(w, in, mask, true); }

/* ---- minimum, maximum, signs ---- */

/* The other one if one is NaN, unless NaN wins; -0 is less than 0. */
#define LESSER(x, y, nan)                                                                                    \
    (x != x || y != y ? (nan || (x != x && y != y) ? x + y                                                   \
                         : x != x                  ? y                                                       \
                                                   : x)                                                                       \
     : x == y         ? (signbit(x) ? x : y)                                                                 \
     : x < y          ? x                                                                                    \
                      : y)
#define GREATER(x, y, nan)                                                                                   \
    (x != x || y != y ? (nan || (x != x && y != y) ? x + y                                                   \
                         : x != x                  ? y                                                       \
                                                   : x)                                                                       \
     : x == y         ? (signbit(x) ? y : x)                                                                 \
     : x > y          ? x                                                                                    \
                      : y)

static void choose(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool greater) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1);
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask) {
        const uint64_t x = ptx_integer(in->type, a[l]), y = ptx_integer(in->type, b[l]);
        const bool less = ptx_is_signed(in->type) ? (int64_t)x < (int64_t)y : x < y;
        to[l] = (less != greater ? x : y) & ptx_mask(8 * ptx_bytes(in->type));
    }
}

void ptx_min(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const bool nan = in->flags & NAN_WINS;
    if (is_real(in))
        REALS(2, LESSER(x, y, nan), LESSER(x, y, nan));
    else
        choose(w, in, mask, false);
}

void ptx_max(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const bool nan = in->flags & NAN_WINS;
    if (is_real(in))
        REALS(2, GREATER(x, y, nan), GREATER(x, y, nan));
    else
        choose(w, in, mask, true);
}

void ptx_abs(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), keep = ptx_mask(8 * ptx_bytes(in->type));
    uint64_t *to = ptx_to(w, in, 0);
    if (is_real(in))
        REALS(1, fabsf(x), fabs(x));
    else
        EACH_LANE(mask) {
            const uint64_t x = ptx_integer(in->type, a[l]);
            to[l] = ((int64_t)x < 0 ? 0 - x : x) & keep;
        }
}

void ptx_neg(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), keep = ptx_mask(8 * ptx_bytes(in->type));
    uint64_t *to = ptx_to(w, in, 0);
    if (is_real(in))
        REALS(1, -x, -x);
    else
        EACH_LANE(mask) to[l] = (0 - a[l]) & keep;
}

/* ---- comparison and selection ---- */

/* order: -1 less, 0 equal, 1 greater, 2 one is NaN */
static bool holds(ptx_compare compare, int order) {
    const bool nan = order == 2, less = order < 0, more = order == 1;
    switch (compare) {
    case EQ: return order == 0;
    case NE: return less || more;
    case LT: return less;
    case LE: return less || order == 0;
    case GT: return more;
    case GE: return more || order == 0;
    case EQU: return nan || order == 0;
    case NEU: return order != 0;
    case LTU: return nan || less;
    case LEU: return !more;
    case GTU: return nan || more;
    case GEU: return !less;
    case NUM: return !nan;
    case UNORDERED: return nan;
    }
    return false;
}

#define ORDER(x, y) ((x) < (y) ? -1 : (x) > (y) ? 1 : (x) == (y) ? 0 : 2)

static int compare_as(const ptx_instruction *in, uint64_t a, uint64_t b) {
    const ptx_type type = in->type;
    if (type == F32) {
        const float x = ptx_float_in(in, a), y = ptx_float_in(in, b);
        return ORDER(x, y);
    }
    if (type == F64) {
        const double x = ptx_double(a), y = ptx_double(b);
        return ORDER(x, y);
    }
    const uint64_t x = ptx_integer(type, a), y = ptx_integer(type, b);
    return ptx_is_signed(type) ? ORDER((int64_t)x, (int64_t)y) : ORDER(x, y);
}

/* setp.COMPARE[.and|or|xor] p[|q], a, b[, c]: p is the result with c, q that of the opposite. */
void ptx_setp(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { ALONE, AND, OR, XOR };
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1),
                   *c = in->word ? ptx_from(w, in, 2) : NULL;
    uint64_t *p = ptx_to(w, in, 0), *q = in->n_to > 1 ? ptx_to(w, in, 1) : NULL;
    if (in->type == F16 || in->type == BF16 || !in->compare || (in->word && in->n_from != 3)) {
        ptx_unknown(w, in);
        return;
    }
    EACH_LANE(mask) {
        const bool yes = holds(in->compare, compare_as(in, a[l], b[l])), more = c && c[l];
        p[l] = in->word == AND   ? yes && more
               : in->word == OR  ? yes || more
               : in->word == XOR ? yes != more
                                 : yes;
        if (q)
            q[l] = in->word == AND   ? !yes && more
                   : in->word == OR  ? !yes || more
                   : in->word == XOR ? yes == more
                                     : !yes;
    }
}

/* Only the operand that is selected must have a value. */
void ptx_selp(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1), *c = ptx_from(w, in, 2);
    uint64_t *to = ptx_to(w, in, 0);
    w->lost = mask & ~ptx_defined(w, in, 2);
    EACH_LANE(mask) w->lost |= ~ptx_defined(w, in, c[l] ? 0 : 1) & 1u << l;
    EACH_LANE(mask) to[l] = (c[l] ? a[l] : b[l]) & in->keep;
}

/* Copies a register, splits it into a vector, or joins a vector. */
void ptx_mov(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const unsigned parts = in->n_to > 1 ? in->n_to : in->n_from, bits = 8 * ptx_bytes(in->type) / parts;
    if (in->n_to > 1 && in->n_from > 1) {
        ptx_unknown(w, in);
    } else if (parts == 1) {
        const uint64_t *a = ptx_from(w, in, 0);
        uint64_t *to = ptx_to(w, in, 0);
        EACH_LANE(mask) to[l] = a[l] & in->keep;
    } else if (in->n_to > 1) {
        const uint64_t *a = ptx_from(w, in, 0);
        for (unsigned k = 0; k < parts; k++) {
            uint64_t *to = ptx_to(w, in, (int)k);
            if (to != a || k + 1 == parts) EACH_LANE(mask) to[l] = a[l] >> k * bits & ptx_mask(bits);
        }
    } else {
        uint64_t all[LANES] = {0}, *to = ptx_to(w, in, 0);
        for (unsigned k = 0; k < parts; k++) {
            const uint64_t *a = ptx_from(w, in, (int)k);
            EACH_LANE(mask) all[l] |= (a[l] & ptx_mask(bits)) << k * bits;
        }
        EACH_LANE(mask) to[l] = all[l];
    }
}
