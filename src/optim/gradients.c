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

weft_status weft__optimizer_ensure_sum(const weft_optimizer *opt, weft__block *block, int level) {
    if (block->sums[level]) return WEFT_OK;
    const bool own = weft__optimizer_divides_gradients(opt) || level == WEFT__RECEIVED;
    const int64_t n = own ? block->n_own : weft_numel(block->values);
    weft_tensor *sum = weft_variable_new(opt->ctx, "gradients", block->wide, 1, &n, NULL);
    WEFT_TRY(weft_tensor_status(sum));
    block->sums[level] = sum;
    return WEFT_OK;
}

/* Adds the sums that the part takes to n gradients, which begin at `from` in the sums. g NULL: there are only
 * the sums. */
static weft_tensor *add_sums(const weft__block *block, const weft__part *part, weft_tensor *g, int64_t from,
                             int64_t n) {
    for (int l = 0; l < WEFT__SUMS; l++) {
        if (!(part->take >> l & 1)) continue;
        weft_tensor *sum = block->sums[l];
        if (n < weft_numel(sum)) sum = weft_narrow_at(where, sum, 0, from, n);
        g = g ? at_add(sum, g) : sum;
    }
    return g;
}

/* Packs the gradients of a piece in the parameters' layout, in the wide dtype. offsets: memory for one number
 * a parameter. */
static weft_tensor *pack_piece(const weft__block *block, const weft__piece *piece, weft_tensor *const *grads,
                               int64_t *offsets) {
    for (size_t i = 0; i < piece->count; i++) offsets[i] = block->offsets[piece->first + i] - piece->from;
    return as(weft__pack(where, grads + piece->first, offsets, (int)piece->count, piece->n), block->wide);
}

/* Records the gradients of a block with the sums that the part takes, from those of this process alone. grads
 * NULL: there are only the sums. offsets: memory for one number a parameter. */
static weft_tensor *own_gradients(const weft__block *block, weft_tensor *const *grads, const weft__part *part,
                                  int64_t *offsets) {
    const weft__piece whole = {.count = block->count, .n = weft_numel(block->values)};
    return add_sums(block, part, grads ? pack_piece(block, &whole, grads, offsets) : NULL, 0,
                    part->own ? block->n_own : whole.n);
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

/* Records the exchange of all pieces, in the order in which they are ready. The sums of earlier micro-batches
 * are added before, unless they are divided: then they are added later. offsets: memory for one number a
 * parameter. */
static void exchange_pieces(const weft_optimizer *opt, weft_tensor *const *grads, const weft__part *part,
                            weft_tensor **pieces, int64_t *offsets) {
    const bool divided = weft__optimizer_divides_gradients(opt);
    for (int number = 0; number < (int)opt->n_pieces; number++) {
        const placed_piece at = piece_with(opt, number);
        weft_attr_exchange attr = {.exact = opt->hyper.exact_sum};
        weft_tensor *own = pack_piece(at.block, at.piece, grads + at.parameters, offsets);
        if (part->own) attr.part = at.block->slices[at.piece - at.block->pieces].each;
        if (!divided) own = add_sums(at.block, part, own, at.piece->from, at.piece->n);
        pieces[at.pieces] = weft__exchange(where, own, &attr);
    }
}

/* Joins the pieces of a block, which all processes have added up. offsets: memory for one number a piece. */
static weft_tensor *join_pieces(const weft_optimizer *opt, const weft__block *block,
                                weft_tensor *const *pieces, const weft__part *part, int64_t *offsets) {
    const int64_t n = part->own ? block->n_own : weft_numel(block->values);
    for (size_t i = 0; i < block->n_pieces; i++)
        offsets[i] = part->own ? block->slices[i].at : block->pieces[i].from;
    weft_tensor *g = weft__pack(where, pieces, offsets, (int)block->n_pieces, n);
    return weft__optimizer_divides_gradients(opt) ? add_sums(block, part, g, 0, n) : g;
}

weft_status weft__optimizer_gradients(weft_optimizer *opt, weft_tensor *loss, const weft__part *part,
                                      weft_tensor **g) {
    size_t n = 0, at = 0, piece = 0;
    const bool due = part->update || part->exchange || weft__optimizer_divides_gradients(opt),
               exchanges = loss && due && weft__optimizer_exchanges(opt);
    for (size_t b = 0; b < opt->n_blocks; b++) n += opt->blocks[b].count;
    weft_tensor **wrt = weft__array(opt->ctx, 3 * n, sizeof *wrt);
    int64_t *offsets = weft__array(opt->ctx, n, sizeof *offsets);
    weft_tensor **grads = wrt ? wrt + n : NULL, **pieces = wrt ? grads + n : NULL;
    weft_status status =
        wrt && offsets ? WEFT_OK : weft__fail_oom(opt->ctx, 3 * n * sizeof *wrt, "the list of gradients");
    if (status == WEFT_OK && loss) status = gradients(opt, loss, wrt, grads);
    if (status == WEFT_OK && exchanges) exchange_pieces(opt, grads, part, pieces, offsets);
    for (size_t b = 0; b < opt->n_blocks && status == WEFT_OK; b++) {
        const weft__block *block = &opt->blocks[b];
        g[b] = exchanges ? join_pieces(opt, block, pieces + piece, part, offsets)
                         : own_gradients(block, loss ? grads + at : NULL, part, offsets);
        at += block->count;
        piece += block->n_pieces;
    }
    weft__free(opt->ctx, wrt);
    weft__free(opt->ctx, offsets);
    return status;
}
