/* The norm of all gradients, and clipping, recorded.
 *
 * If sums are exact, squares are added up in chunks, and the sums of all chunks are one vector, which has one
 * order. So processes that have only some of the chunks can compute the same bits.
 *
 * Must not know: how parameters are updated. Read next: update.c. */
#include "optim/optimizer.h"
#include "ops/build.h"

static const char *const where = NULL;

static weft_tensor *as(weft_tensor *t, weft_dtype dtype) { return weft__optimizer_as(t, dtype); }

static int64_t chunks_in(int64_t n) { return (n + WEFT__CHUNK - 1) / WEFT__CHUNK; }

/* The sums of the squares of each chunk of a vector. */
static weft_tensor *sum_chunks(weft_tensor *g, int64_t n) {
    const int64_t shape[2] = {chunks_in(n), WEFT__CHUNK}, none = 0, rest = shape[0] * WEFT__CHUNK - n;
    if (rest) g = weft_pad_at(where, g, &none, &rest, 0.0);
    g = weft_reshape_at(where, g, 2, shape);
    return weft_sum_at(where, at_mul(g, g), 1, false);
}

/* The sums of chunks that this process has, and where they begin among those of the block. */
typedef struct chunk_list {
    weft_tensor **sums;
    int64_t *begin;
    int count;
    int64_t all; /* chunks of the block */
} chunk_list;

static void list_whole(const weft__block *block, weft_tensor *g, chunk_list *list) {
    for (size_t i = 0; i < block->n_pieces; i++) {
        const weft__piece *piece = &block->pieces[i];
        weft_tensor *own = piece->n < weft_numel(g) ? weft_narrow_at(where, g, 0, piece->from, piece->n) : g;
        list->sums[list->count] = sum_chunks(own, piece->n);
        list->begin[list->count++] = list->all;
        list->all += chunks_in(piece->n);
    }
}

/* Records the sum of the squares of a block's gradients, chunk by chunk. */
static weft_tensor *square_exactly(const weft_optimizer *opt, const weft__block *block, weft_tensor *g) {
    chunk_list list = {.sums = weft__array(opt->ctx, block->n_pieces, sizeof *list.sums),
                       .begin = weft__array(opt->ctx, block->n_pieces, sizeof *list.begin)};
    weft_tensor *all;
    if (!list.sums || !list.begin) {
        all = weft__poison(opt->ctx, where, WEFT_ERR_OOM, "%s: memory is short for the norm of the gradients",
                           weft_optimizer_kind(opt));
    } else {
        list_whole(block, g, &list);
        all = weft__pack(where, list.sums, list.begin, list.count, list.all);
        all = weft_sum_at(where, all, WEFT_ALL_AXES, false);
    }
    weft__free(opt->ctx, list.sums);
    weft__free(opt->ctx, list.begin);
    return all;
}

void weft__norm_and_clip(weft_optimizer *opt, weft_tensor **g, weft__sinks *sinks) {
    if (!opt->norm) return;
    weft_dtype dtype = weft_dtype_of(opt->norm);
    weft_tensor *total = NULL;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft_tensor *square =
            as(opt->hyper.exact_sum ? square_exactly(opt, &opt->blocks[b], g[b])
                                    : weft_sum_at(where, at_mul(g[b], g[b]), WEFT_ALL_AXES, false),
               dtype);
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
