/* Race detection. For each element that a kernel may write, it records who read it and who wrote it. An
 * access belongs to a row (one parallel index). The row makes it either once, or at one of its reduction
 * indices. Rows run in any order and at the same time, and so do the reduction indices of a row. So if one
 * writes an element, no other may touch it, and it is written once. Arguments may share memory, so reads are
 * looked up by address.
 * Must not know: what is computed. Read next: kernel.c. */
#include "interp/interp.h"

/* An access as a number: 1 + row * (row_length + 1) + (inner + 1). 0 is nobody. Several readers of one row
 * are -1 - row. Readers of different rows are MANY. */
#define MANY INT64_MIN

static int64_t access_of(const weft_shadow *s, int64_t row, int64_t inner) {
    return 1 + row * (s->row_length + 1) + inner + 1;
}
static int64_t row_of(const weft_shadow *s, int64_t access) {
    if (access == MANY) return -1;
    return access < 0 ? -1 - access : (access - 1) / (s->row_length + 1);
}
static int64_t inner_of(const weft_shadow *s, int64_t access) {
    return (access - 1) % (s->row_length + 1) - 1;
}

/* Returns whether a read and a write of the same element are allowed. Both must belong to the same row. There
 * they must have the same reduction index, or one of them is done once for the whole row. */
static bool ordered(const weft_shadow *s, int64_t reader, int64_t writer) {
    if (reader == MANY || row_of(s, reader) != row_of(s, writer)) return false;
    if (inner_of(s, writer) < 0) return true;
    if (reader < 0) return false;
    return inner_of(s, reader) < 0 || inner_of(s, reader) == inner_of(s, writer);
}

weft_status weft__shadow_open(weft_shadow *shadow, weft_context *ctx, const weft_kernel *kernel,
                              void *const *args) {
    const int64_t length = weft__kernel_row_length(kernel);
    *shadow = (weft_shadow){ctx, kernel, args, length, NULL};
    shadow->of = weft__array(ctx, (size_t)kernel->n_args + 1, sizeof *shadow->of);
    if (!shadow->of)
        return weft__fail_oom(ctx, (size_t)kernel->n_args * sizeof *shadow->of, "interp: shadow");
    for (int a = 0; a < kernel->n_args; a++) {
        const size_t n = (size_t)kernel->args[a].elements;
        if (!kernel->args[a].written) continue;
        shadow->of[a] = weft__array(ctx, n, sizeof **shadow->of);
        if (!shadow->of[a]) {
            weft__shadow_close(shadow);
            return weft__fail_oom(ctx, n * sizeof **shadow->of, "interp: shadow");
        }
    }
    return WEFT_OK;
}

void weft__shadow_close(weft_shadow *shadow) {
    for (int a = 0; shadow->of && a < shadow->kernel->n_args; a++) weft__free(shadow->ctx, shadow->of[a]);
    weft__free(shadow->ctx, shadow->of);
    shadow->of = NULL;
}

/* Computes the entries of written argument `of` that an element of argument `arg` overlaps: first..last-1. */
static void overlap(const weft_shadow *s, int of, int arg, int64_t element, int64_t *first, int64_t *last) {
    const int64_t size = (int64_t)weft_dtype_size((weft_dtype)s->kernel->args[arg].dtype);
    const int64_t shadow_size = (int64_t)weft_dtype_size((weft_dtype)s->kernel->args[of].dtype);
    const int64_t n = s->kernel->args[of].elements;
    const int64_t from = (int64_t)((uintptr_t)s->args[arg] - (uintptr_t)s->args[of]) + element * size;
    *first = from < 0 ? 0 : from / shadow_size;
    *last = from + size <= 0 ? 0 : (from + size - 1) / shadow_size + 1;
    if (*last > n) *last = n;
}

const char *weft__shadow_read(weft_shadow *shadow, int arg, int64_t element, int64_t row, int64_t inner) {
    const int64_t me = access_of(shadow, row, inner);
    for (int a = 0; a < shadow->kernel->n_args; a++) {
        int64_t first, last;
        if (!shadow->of[a]) continue;
        overlap(shadow, a, arg, element, &first, &last);
        for (int64_t i = first; i < last; i++) {
            weft_shadow_access *x = &shadow->of[a][i];
            if (x->writer && !ordered(shadow, me, x->writer))
                return "race: reads an element that another index has written";
            if (x->reader == 0 ||
                (x->reader > 0 && row_of(shadow, x->reader) == row && inner_of(shadow, x->reader) < 0))
                x->reader = me;
            else if (row_of(shadow, x->reader) != row)
                x->reader = MANY;
            else if (x->reader != me && inner >= 0)
                x->reader = -1 - row;
        }
    }
    return NULL;
}

const char *weft__shadow_write(weft_shadow *shadow, int arg, int64_t element, int64_t row, int64_t inner) {
    const int64_t me = access_of(shadow, row, inner);
    for (int a = 0; a < shadow->kernel->n_args; a++) {
        int64_t first, last;
        if (!shadow->of[a]) continue;
        overlap(shadow, a, arg, element, &first, &last);
        for (int64_t i = first; i < last; i++) {
            weft_shadow_access *x = &shadow->of[a][i];
            if (x->writer) return "race: an element is written twice";
            if (x->reader && !ordered(shadow, x->reader, me))
                return "race: writes an element that another index has read";
            x->writer = me;
        }
    }
    return NULL;
}
