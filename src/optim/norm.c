/* The norm of all gradients, and clipping, recorded.
 *
 * In a step of several micro-batches the norm has the same bits for any number of processes, also if each of
 * them has only its part of the gradients. Squares are added up in chunks, which never belong to two
 * processes. The sums of all chunks are one vector, which has one order:
 *
 *     gradients      | piece 0             | piece 1    |
 *     chunks         |   0    1    2    3  |   4    5   |
 *     of rank 0 of 2 |  sum  sum   0    0  |  sum   0   |    exchanged: added up over the ranks
 *
 * Must not know: how parameters are updated. Read next: update.c, shard.c. */
#include "optim/optimizer.h"
#include "ops/build.h"
#include "process/group.h"

static const char *const where = NULL;

static weft_tensor *as(weft_tensor *t, weft_dtype dtype) { return weft__optimizer_as(t, dtype); }

static int64_t chunks_in(int64_t n) { return (n + WEFT__CHUNK - 1) / WEFT__CHUNK; }

enum { ADDED = 16 }; /* numbers at once; two times are a chunk */
_Static_assert(ADDED *ADDED == WEFT__CHUNK, "a chunk is added up in two steps");

/* Adds up axis 1 of ADDED elements, or their squares. A reduction would add in an order that depends on the
 * number of chunks, which differs between processes. */
static weft_tensor *add_axis(weft_tensor *x, bool squares) {
    weft_tensor *sums[ADDED];
    for (int i = 0; i < ADDED; i++) {
        sums[i] = weft_narrow_at(where, x, 1, i, 1);
        if (squares) sums[i] = at_mul(sums[i], sums[i]);
    }
    for (int n = ADDED / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) sums[i] = at_add(sums[i], sums[i + n]);
    return sums[0];
}

/* The sums of the squares of each chunk of a vector. */
static weft_tensor *sum_chunks(weft_tensor *g, int64_t n) {
    const int64_t count = chunks_in(n), none = 0, rest = count * WEFT__CHUNK - n;
    const int64_t squares[3] = {count, ADDED, ADDED}, sums[2] = {count, ADDED};
    if (rest) g = weft_pad_at(where, g, &none, &rest, 0.0);
    g = add_axis(weft_reshape_at(where, g, 3, squares), true);
    g = add_axis(weft_reshape_at(where, g, 2, sums), false);
    return weft_reshape_at(where, g, 1, &count);
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

static void list_own(const weft__block *block, weft_tensor *g, int rank, chunk_list *list) {
    weft_tensor *sums = sum_chunks(g, weft_numel(g));
    for (size_t i = 0; i < block->n_slices; i++) {
        const weft__slice *slice = &block->slices[i];
        const int64_t of = chunks_in(slice->n), each = slice->each / WEFT__CHUNK, before = rank * each,
                      own = of < before          ? 0
                            : of - before < each ? of - before
                                                 : each;
        if (own) {
            list->sums[list->count] = weft_narrow_at(where, sums, 0, slice->at / WEFT__CHUNK, own);
            list->begin[list->count++] = list->all + before;
        }
        list->all += of;
    }
}

/* Records the sum of the squares of a block's gradients, chunk by chunk. own: g has the own parts alone. */
static weft_tensor *square_chunks(const weft_optimizer *opt, const weft__block *block, weft_tensor *g,
                                  bool own) {
    const weft_attr_exchange attr = {.exact = opt->hyper.exact_sum};
    chunk_list list = {.sums = weft__array(opt->ctx, block->n_pieces, sizeof *list.sums),
                       .begin = weft__array(opt->ctx, block->n_pieces, sizeof *list.begin)};
    weft_tensor *all;
    if (!list.sums || !list.begin) {
        all = weft__poison(opt->ctx, where, WEFT_ERR_OOM, "%s: memory is short for the norm of the gradients",
                           weft_optimizer_kind(opt));
    } else {
        if (own)
            list_own(block, g, weft_process_group_rank(opt->group), &list);
        else
            list_whole(block, g, &list);
        all = list.count ? weft__pack(where, list.sums, list.begin, list.count, list.all)
                         : weft_full(opt->ctx, block->wide, 1, &list.all, 0.0);
        if (own) all = weft__exchange(where, all, &attr);
        all = weft_sum_at(where, all, WEFT_ALL_AXES, false);
    }
    weft__free(opt->ctx, list.sums);
    weft__free(opt->ctx, list.begin);
    return all;
}

uint64_t weft__norm_exchange_bytes(const weft_optimizer *opt, const weft__block *block) {
    int64_t all = 0;
    if (!opt->norm || !weft__optimizer_receives_parts(opt)) return 0;
    for (size_t i = 0; i < block->n_slices; i++) all += chunks_in(block->slices[i].n);
    return weft__process_group_sum_bytes(opt->group, block->wide, (size_t)all, opt->hyper.exact_sum);
}

void weft__norm_and_clip(weft_optimizer *opt, weft_tensor **g, bool own, int parts, weft__sinks *sinks) {
    if (!opt->norm) return;
    const bool chunks = parts > 1 || own;
    weft_dtype dtype = weft_dtype_of(opt->norm);
    weft_tensor *total = NULL;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft_tensor *square = as(chunks ? square_chunks(opt, &opt->blocks[b], g[b], own)
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
