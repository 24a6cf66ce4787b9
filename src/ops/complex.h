/* Complex numbers as pairs of parts, for the files that compute with them.
 * Must not know: devices. Read next: complex.c. */
#ifndef WEFT_OPS_COMPLEX_H
#define WEFT_OPS_COMPLEX_H

#include "ops/ops.h"

typedef struct weft_pair {
    weft_tensor *re, *im;
} weft_pair;

weft_pair weft__complex_times(const char *where, weft_pair a, weft_pair b);

/* ---- complex_functions.c ---- */
weft_pair weft__complex_exp(const char *where, weft_pair z);
weft_pair weft__complex_log(const char *where, weft_pair z);
weft_pair weft__complex_sqrt(const char *where, weft_pair z);
weft_pair weft__complex_pow(const char *where, weft_pair z, weft_pair w);
weft_pair weft__complex_sin(const char *where, weft_pair z);
weft_pair weft__complex_cos(const char *where, weft_pair z);
weft_pair weft__complex_tanh(const char *where, weft_pair z);

#endif
