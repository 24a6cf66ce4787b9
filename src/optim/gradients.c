/* The gradients of a step, recorded: packed in blocks as the parameters are, and added up over micro-batches
 * and processes. Must not know: formulas of updates, how processes exchange data. Read next: exchange.c,
 * update.c. */
#include <stdio.h>
#include "autodiff/autodiff.h"
#include "optim/optimizer.h"
#include "ops/build.h"

static const char *const where = NULL; /* the loss has the user's location */

static weft_tensor *as(weft_tensor *t, weft_dtype dtype) { return weft__optimizer_as(t, dtype); }

/* ---- of this process ---- */

static weft_tensor *as_floats(weft_tensor *g) {
    if (weft__poisoned(g) || !weft_dtype_is_complex(weft_dtype_of(g))) return g;
    const int64_t n = weft_numel(g);
    return weft_view_as_real_at(where, weft_reshape_at(where, g, 1, &n));
}

/* Fails if the loss depends on no parameter: a step would change nothing, or only decay the weights. */
static weft_status refuse_unreached(const weft_optimizer *opt, weft_tensor *loss, weft_tensor *const *wrt,
                                    size_t n) {
    bool reaches;
    WEFT_TRY(weft__gradient_reaches(loss, wrt, n, &reaches));
    if (reaches) return WEFT_OK;
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && i < 3 && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "",
                                 weft__variable_name(wrt[i]));
    return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                      "%s%s%s: the loss depends on none of the %zu parameters to train (%s%s): compute it "
                      "with the optimizer's module, and without weft_detach on the way",
                      loss->where ? loss->where : "", loss->where ? ": " : "", weft_optimizer_kind(opt), n,
                      names, n > 3 ? ", ..." : "");
}

/* Records the gradients of all parameters, in the order of blocks and offsets. */
static weft_status gradients(weft_optimizer *opt, weft_tensor *loss, weft_tensor **wrt, weft_tensor **grads) {
    size_t n = 0;
    for (size_t b = 0; b < opt->n_blocks; b++)
        for (size_t i = 0; i < opt->blocks[b].count; i++) wrt[n++] = opt->blocks[b].parameters[i];
    WEFT_TRY(weft_gradient(weft__scaled_loss(opt, loss), wrt, n, grads));
    WEFT_TRY(refuse_unreached(opt, loss, wrt, n));
    for (size_t i = 0; i < n; i++) grads[i] = as_floats(grads[i]);
    return WEFT_OK;
}

weft_status weft__optimizer_ensure_sum(weft_context *ctx, weft__block *block, int level) {
    if (block->sums[level]) return WEFT_OK;
    int64_t n = weft_numel(block->values);
    weft_tensor *sum = weft_variable_new(ctx, "gradients", block->wide, 1, &n, NULL);
    WEFT_TRY(weft_tensor_status(sum));
    block->sums[level] = sum;
    return WEFT_OK;
}

/* Packs the gradients of a piece in the parameters' layout, in the wide dtype, and adds the sums that the
 * part takes. grads NULL: there are only these sums. offsets: memory for one number a parameter. */
static weft_tensor *pack_piece(const weft__block *block, const weft__piece *piece, weft_tensor *const *grads,
                               const weft__part *part, int64_t *offsets) {
    weft_tensor *g = NULL;
    for (size_t i = 0; i < piece->count; i++) offsets[i] = block->offsets[piece->first + i] - piece->from;
    if (grads)
        g = as(weft__pack(where, grads + piece->first, offsets, (int)piece->count, piece->n), block->wide);
    for (int l = 0; l < WEFT__LEVELS; l++) {
        if (!(part->take >> l & 1)) continue;
        weft_tensor *sum = block->sums[l];
        if (piece->n < weft_numel(sum)) sum = weft_narrow_at(where, sum, 0, piece->from, piece->n);
        g = g ? at_add(sum, g) : sum;
    }
    return g;
}

/* Records the gradients of a block with the sums that the part takes, from its pieces, which all processes
 * have added up; pieces NULL: from the gradients of this process alone. */
static weft_status block_gradients(weft_optimizer *opt, const weft__block *block, weft_tensor *const *grads,
                                   weft_tensor *const *pieces, const weft__part *part, weft_tensor **g) {
    const weft__piece whole = {.count = block->count, .n = weft_numel(block->values)};
    int64_t *offsets = weft__array(opt->ctx, block->count, sizeof *offsets);
    if (!offsets) return weft__fail_oom(opt->ctx, block->count * sizeof *offsets, "a list of gradients");
    for (size_t i = 0; pieces && i < block->n_pieces; i++) offsets[i] = block->pieces[i].from;
    *g = pieces ? weft__pack(where, pieces, offsets, (int)block->n_pieces, whole.n)
                : pack_piece(block, &whole, grads, part, offsets);
    weft__free(opt->ctx, offsets);
    return WEFT_OK;
}

/* ---- of all processes ---- */

/* A piece, and how many pieces and parameters the optimizer has before it. */
typedef struct placed_piece {
    const weft__block *block;
    const weft__piece *piece;
    size_t pieces, parameters; /* parameters: before its block */
} placed_piece;

static placed_piece piece_with(const weft_optimizer *opt, int number) {
    placed_piece at = {.block = opt->blocks};
    for (;; at.parameters += at.block++->count)
        for (size_t i = 0; i < at.block->n_pieces; i++, at.pieces++) {
            at.piece = &at.block->pieces[i];
            if (at.piece->number == number) return at;
        }
}

/* Records the exchange of all pieces, in the order in which they are ready. */
static weft_status exchange_pieces(weft_optimizer *opt, weft_tensor *const *grads, const weft__part *part,
                                   weft_tensor **pieces) {
    const weft_attr_exchange attr = {.exact = opt->hyper.exact_sum};
    for (int number = 0; number < (int)opt->n_pieces; number++) {
        const placed_piece at = piece_with(opt, number);
        int64_t *offsets = weft__array(opt->ctx, at.piece->count, sizeof *offsets);
        if (!offsets)
            return weft__fail_oom(opt->ctx, at.piece->count * sizeof *offsets, "a list of gradients");
        weft_tensor *own = pack_piece(at.block, at.piece, grads + at.parameters, part, offsets);
        weft__free(opt->ctx, offsets);
        pieces[at.pieces] = weft__exchange(where, own, &attr);
    }
    return WEFT_OK;
}

weft_status weft__optimizer_gradients(weft_optimizer *opt, weft_tensor *loss, const weft__part *part,
                                      weft_tensor **g) {
    size_t n = 0, at = 0, piece = 0;
    const bool exchanges = loss && part->update && weft__optimizer_exchanges(opt);
    for (size_t b = 0; b < opt->n_blocks; b++) n += opt->blocks[b].count;
    weft_tensor **wrt = weft__array(opt->ctx, 3 * n, sizeof *wrt);
    if (!wrt) return weft__fail_oom(opt->ctx, 3 * n * sizeof *wrt, "the list of gradients");
    weft_tensor **grads = wrt + n, **pieces = grads + n;
    weft_status status = loss ? gradients(opt, loss, wrt, grads) : WEFT_OK;
    if (status == WEFT_OK && exchanges) status = exchange_pieces(opt, grads, part, pieces);
    for (size_t b = 0; b < opt->n_blocks && status == WEFT_OK; b++) {
        status = block_gradients(opt, &opt->blocks[b], loss ? grads + at : NULL,
                                 exchanges ? pieces + piece : NULL, part, &g[b]);
        at += opt->blocks[b].count;
        piece += opt->blocks[b].n_pieces;
    }
    weft__free(opt->ctx, wrt);
    return status;
}
