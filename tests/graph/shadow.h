/* The shadow interpreter: an eager interpreter of recorded graphs, in f64 and 64-bit integers. It is the
 * reference of the random graph tests. It walks the nodes themselves, so it shares no code with compiler and
 * devices, and knows no kernels or programs.
 *
 * With each float it keeps a bound: how far a correct device may differ (the classes of the tolerance table).
 * The bound is infinite where rounding can change the result at will, for example in a comparison that
 * rounding may turn over, or on overflow. */
#ifndef WEFT_TESTS_GRAPH_SHADOW_H
#define WEFT_TESTS_GRAPH_SHADOW_H

#include "graph/graph.h"

typedef struct shadow_value {
    int64_t n;
    double *f;  /* values of a float tensor */
    int64_t *i; /* values of an integer or bool tensor */
    double *e;  /* error bound of f; for integers 0 (exact) or infinite (any value is right) */
    bool loose; /* fusion may change the bits: a float sum in some order, or a 16-bit float that is not stored
                 */
} shadow_value;

typedef struct shadow shadow;

shadow *shadow_new(void);
void shadow_free(shadow *s);

/* The values of t, valid as long as the shadow. The graph of t must not have been evaluated. For an unknown
 * op, prints a message and returns NULL. */
const shadow_value *shadow_of(shadow *s, weft_tensor *t);

/* Wraps v to the range of an integer dtype. */
int64_t shadow_wrap(weft_dtype dtype, int64_t v);

#endif
