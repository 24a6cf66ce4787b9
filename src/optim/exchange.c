/* Gradients that leave for the other processes while a step still computes. A block is divided into pieces of
 * whole parameters. Each piece is exchanged as soon as its gradients are there. The backward pass computes
 * the gradients of the last layers first, so their piece has number 0.
 *
 *     backward    [ layer 3 ][ layer 2 ][ layer 1 ]
 *     exchange               [   0    ][   1    ][   2    ]
 *
 * Must not know: formulas. Read next: gradients.c, process/exchange.c. */
#include "optim/optimizer.h"
#include "process/group.h"

enum {
    PIECES = 16,          /* of a block, if it is large enough */
    PIECE_LEAST = 1 << 16 /* bytes */
};

bool weft__optimizer_takes_exchanges(const weft_optimizer *opt) {
    const weft_device *device = opt->ctx->device;
    const weft_heavy heavy = {.kind = WEFT_HEAVY_EXCHANGE, .as.exchange = {.dtype = WEFT_F32, .count = 1}};
    return device->ops->takes(opt->ctx->device, &heavy);
}

bool weft__optimizer_exchanges(const weft_optimizer *opt) {
    return opt->group && weft__optimizer_takes_exchanges(opt);
}

bool weft__optimizer_receives_parts(const weft_optimizer *opt) {
    return weft__optimizer_sharded(opt) && weft__optimizer_exchanges(opt);
}

weft_status weft__make_pieces(weft_optimizer *opt, weft__block *block, weft__slot *const *sorted) {
    const int64_t n = weft_numel(block->values), each = (int64_t)weft_dtype_size(block->wide),
                  small = PIECE_LEAST / each, least = n / PIECES > small ? n / PIECES : small;
    block->pieces = weft__array(opt->ctx, block->count, sizeof *block->pieces);
    if (!block->pieces)
        return weft__fail_oom(opt->ctx, block->count * sizeof *block->pieces, "pieces of gradients");
    for (size_t i = 0; i < block->count; i++) {
        weft__piece *piece = &block->pieces[block->n_pieces];
        const bool again =
            i > 0 && sorted[i] < sorted[i - 1] && n > small; /* a range begins in layer 0 again */
        if (i > 0 && (again || block->offsets[i] - piece[-1].from >= least)) {
            piece[-1].n = block->offsets[i] - piece[-1].from;
        } else if (i > 0) {
            piece[-1].count++;
            continue;
        }
        const size_t slot = (size_t)(sorted[i] - opt->slots);
        *piece = (weft__piece){.first = i, .count = 1, .from = block->offsets[i], .earliest = slot};
        block->n_pieces++;
    }
    weft__piece *last = &block->pieces[block->n_pieces - 1];
    last->n = n - last->from;
    return WEFT_OK;
}

void weft__number_pieces(weft_optimizer *opt) {
    opt->n_pieces = 0;
    for (size_t b = 0; b < opt->n_blocks; b++)
        for (size_t i = 0; i < opt->blocks[b].n_pieces; i++, opt->n_pieces++) {
            weft__piece *piece = &opt->blocks[b].pieces[i];
            piece->number = 0;
            for (size_t c = 0; c < opt->n_blocks; c++)
                for (size_t k = 0; k < opt->blocks[c].n_pieces; k++)
                    piece->number += opt->blocks[c].pieces[k].earliest > piece->earliest;
        }
}
