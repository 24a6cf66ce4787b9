/* The norm of all gradients, and clipping, recorded. Must not know: how parameters are updated. Read next:
 * update.c. */
#include "optim/optimizer.h"
#include "ops/build.h"

static const char *const where = NULL;

static weft_tensor *as(weft_tensor *t, weft_dtype dtype) { return weft__optimizer_as(t, dtype); }

void weft__norm_and_clip(weft_optimizer *opt, weft_tensor **g, weft__sinks *sinks) {
    if (!opt->norm) return;
    weft_dtype dtype = weft_dtype_of(opt->norm);
    weft_tensor *total = NULL;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft_tensor *square = as(weft_sum_at(where, at_mul(g[b], g[b]), WEFT_ALL_AXES, false), dtype);
        total = total ? at_add(total, square) : square;
    }
    weft_tensor *norm = weft_sqrt_at(where, total);
    weft__optimizer_sink(sinks, opt->norm, norm);
    if (opt->hyper.clip <= 0.0) return;
    weft_tensor *limit = weft_full_like_at(where, norm, opt->hyper.clip);
    weft_tensor *factor = at_div(limit, at_add_scalar(norm, 1e-6));
    factor = weft_minimum_at(where, factor, weft_full_like_at(where, factor, 1.0));
    for (size_t b = 0; b < opt->n_blocks; b++) g[b] = at_mul(g[b], as(factor, opt->blocks[b].wide));
}
