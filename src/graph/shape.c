/* Shapes: broadcasting, axes, and the text of shapes in messages.
 * Must not know: ops, values. Read next: node.c. */
#include <stdio.h>
#include <string.h>
#include "graph/graph.h"

bool weft__broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape) {
    int n = rank_a > rank_b ? rank_a : rank_b;
    for (int i = 0; i < n; i++) { /* from the last dimension */
        int64_t x = i < rank_a ? a[rank_a - 1 - i] : 1, y = i < rank_b ? b[rank_b - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        shape[n - 1 - i] = x == 1 ? y : x;
    }
    *rank = n;
    return true;
}

bool weft__shape_equal(const weft_tensor *a, const weft_tensor *b) {
    return a->rank == b->rank &&
           (a->rank <= 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

const char *weft__shape_text(int rank, const int64_t *shape, char *buffer) {
    size_t n = 0;
    buffer[n++] = '[';
    for (int i = 0; i < rank && i <= WEFT_MAX_RANK; i++) /* an error message may show a shape with one
                                                          * dimension too many */
        n += (size_t)snprintf(buffer + n, WEFT_SHAPE_TEXT - n, i ? ",%lld" : "%lld", (long long)shape[i]);
    snprintf(buffer + n, WEFT_SHAPE_TEXT - n, "]");
    return buffer;
}

const char *weft__tensor_text(const weft_tensor *t, char *buffer) {
    int n = snprintf(buffer, WEFT_SHAPE_TEXT, "%s ", weft_dtype_name((weft_dtype)t->dtype));
    char shape[WEFT_SHAPE_TEXT];
    snprintf(buffer + n, (size_t)(WEFT_SHAPE_TEXT - n), "%s", weft__shape_text(t->rank, t->shape, shape));
    return buffer;
}

bool weft__axis(int axis, int rank, int *out) {
    if (axis < 0) axis += rank;
    *out = axis;
    return axis >= 0 && axis < rank;
}
