/* An eager interpreter of recorded graphs, in f64 with integers in 64 bits: the reference of the random graph
 * tests. It walks the nodes themselves, so it shares nothing with compiler and devices. Next to each float it
 * carries how far a correct device may be from it (the classes of the tolerance table); a value that no bound
 * holds for (a comparison that rounding may turn over, an overflow) has an infinite one. Knows no kernels and
 * no programs. */
#ifndef WEFT_TESTS_GRAPH_SHADOW_H
#define WEFT_TESTS_GRAPH_SHADOW_H

#include "graph/graph.h"

typedef struct shadow_value {
    int64_t n;
    double *f;  /* of a float tensor */
    int64_t *i; /* of an integer or bool tensor */
    double *e;  /* largest right error of f; of integers 0 (exact) or infinite (anything goes) */
    bool loose; /* fusion may change its bits: a sum of floats was added in some order, or a 16-bit float not
                   stored */
} shadow_value;

typedef struct shadow shadow;

shadow *shadow_new(void);
void shadow_free(shadow *s);

/* The values of t, whose graph must not have been evaluated; NULL (and a printed reason) for an op it does
 * not know. They live as long as the shadow. */
const shadow_value *shadow_of(shadow *s, weft_tensor *t);

/* Wraps to an integer dtype. */
int64_t shadow_wrap(weft_dtype dtype, int64_t v);

#endif
