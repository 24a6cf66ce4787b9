/* Numbers of option structs: 0 is the default, and WEFT_ZERO the number 0.
 * Must not know: what the numbers are for. Read next: include/weft/base.h. */
#ifndef WEFT_SRC_BASE_OPTION_H
#define WEFT_SRC_BASE_OPTION_H

#include <math.h>
#include <weft/base.h>

static inline bool weft__is_unset(double value) { return value == 0 && !signbit(value); }

/* What an option says; never a negative zero. */
static inline double weft__value_or(double value, double otherwise) {
    return weft__is_unset(value) ? otherwise : value + 0.0;
}

/* A number as an option that says just this number. */
static inline double weft__given(double value) { return value == 0 ? WEFT_ZERO : value; }

#endif
