/* The gradient check of the tests: weft_gradcheck, with its result printed. Include this header after
 * cmocka.h. */
#ifndef WEFT_TESTS_GRADCHECK_H
#define WEFT_TESTS_GRADCHECK_H

#include <math.h>
#include <stdio.h>
#include <weft/gradcheck.h>
#include "device.h"

/* The largest error that a correct gradient may have. weft/gradcheck.h says why f32 needs more. */
static double gradcheck_accepted(weft_context *ctx) { return test_within(ctx, 1e-7, 2e-3); }

/* The largest error over at most about `most` elements of each variable. After an error, prints it and
 * returns NaN. */
static double gradcheck(weft_context *ctx, weft_loss_graph_fn loss, void *user, weft_tensor *const *variables,
                        size_t count, int64_t most) {
    weft_gradcheck_worst worst;
    if (weft_gradcheck(ctx, loss, user, variables, count, &(weft_gradcheck_options){.most = most}, &worst) !=
        WEFT_OK) {
        printf("gradcheck: %s\n", weft_last_error(ctx));
        return (double)NAN;
    }
    if (!(worst.error <= gradcheck_accepted(ctx)))
        printf("gradcheck: variable %zu element %lld: analytic %.12g, numeric %.12g\n", worst.variable,
               (long long)worst.element, worst.analytic, worst.numeric);
    return worst.error;
}

#endif
