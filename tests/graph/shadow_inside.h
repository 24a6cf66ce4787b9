/* Shared by the two files of the shadow interpreter: shadow.c (graph walk, movement, indexing) and
 * shadow_rows.c (numbers). */
#ifndef WEFT_TESTS_GRAPH_SHADOW_INSIDE_H
#define WEFT_TESTS_GRAPH_SHADOW_INSIDE_H

#include "graph/shadow.h"

/* One element: a float f with error bound e, or an integer i. */
typedef struct number {
    double f, e;
    int64_t i;
} number;

/* Row `op` of the op table, on operands of `dtype`. A bool result is in i. */
number shadow_row(int op, weft_dtype dtype, number a, number b, number c);
number shadow_cast(weft_dtype from, weft_dtype to, number a);
/* Reduces n elements by `op`. */
number shadow_reduce(int op, weft_dtype dtype, const number *x, int64_t n);
/* The sum of n products a[i] b[i]. */
number shadow_dot(weft_dtype dtype, const number *a, const number *b, int64_t n);
/* The sum of n elements, added in order. */
number shadow_chain(weft_dtype dtype, const number *x, int64_t n);

#endif
