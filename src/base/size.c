/* Sizes of shapes and buffers. Only this file multiplies and adds them, so that an overflow is refused when a
 * tensor is recorded and never reaches an allocation.
 * Must not know: tensors. Read next: random.c. */
#include "base/base.h"

/* Whether a pointer difference can hold the size. */
static bool valid(int64_t v) { return v >= 0 && v <= (int64_t)PTRDIFF_MAX; }

bool weft__mul(int64_t a, int64_t b, int64_t *out) {
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) || !valid(product)) return false;
    *out = product;
    return true;
}

bool weft__add(int64_t a, int64_t b, int64_t *out) {
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) || !valid(sum)) return false;
    *out = sum;
    return true;
}

/* A zero among the extents hides no overflow of the others, since their product is the largest stride. */
bool weft__numel(int rank, const int64_t *shape, int64_t *out) {
    int64_t span = 1, signs = 0;
    bool empty = false, over = rank < 0;
    for (int i = 0; i < rank; i++) { /* without a branch, since every recorded node comes here */
        const bool none = shape[i] == 0;
        empty |= none;
        signs |= shape[i];
        over |= __builtin_mul_overflow(span, shape[i] + none, &span);
    }
    if (over || signs < 0 || !valid(span)) return false;
    *out = empty ? 0 : span;
    return true;
}
