/* The time of an exchange, see scaling.h. It follows process/sum.c and optim/shard.c:
 *
 *     gradients     pieces of 8 MiB, each with an all-to-all and, unless gradients are divided, an all-gather
 *     parameters    divided state: an all-gather of each piece. Divided parameters: two, for the forward and
 *                   for the backward pass
 *
 * In a transfer a process sends a message to each other process, (n - 1) / n of the piece in all. Parameters
 * of a divided state follow the update, so nothing hides their exchange. An exchange of gradients during the
 * backward pass is hidden by it, except for the last piece, which begins when the pass has ended.
 * If gradients are divided, each batch of a step has this exchange; otherwise only their sum has.
 * If parameters are divided, a whole batch hides its exchange, except for the first gather and the last piece
 * of gradients. Must not know: devices, terminals. Read next: process/sum.c. */
#include <math.h>

#include "process/group.h"
#include "train/analysis/scaling.h"

#define NUMBER_BYTES 4.0 /* of a gradient, and of a parameter */

/* Transfers of a piece of the gradients, and of a piece of the updated parameters. */
static const struct {
    int gradients, parameters;
} transfers[] = {[WEFT_SHARD_NONE] = {2, 0},
                 [WEFT_SHARD_OPTIMIZER] = {2, 1},
                 [WEFT_SHARD_GRADIENTS] = {1, 1},
                 [WEFT_SHARD_PARAMETERS] = {1, 2}};

/* Seconds of `count` transfers of so many bytes. */
static double transfers_time(const weft__network *network, int ranks, int count, double bytes) {
    const double others = ranks - 1;
    return count * (bytes * others / ranks / network->rate + others * network->message);
}

/* Seconds in which bytes move between device and host; a rate of 0: there is no way to go. */
static double moved(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

/* Seconds of an exchange of one piece. */
static double piece_time(const weft__network *network, int ranks, int count, double bytes) {
    if (count == 0) return 0;
    return transfers_time(network, ranks, count, bytes) + moved(bytes, network->down) +
           moved(bytes, network->up);
}

weft__scaled weft__scaling_predict(const weft__network *network, const weft__scaled_rank *rank) {
    const double bytes = NUMBER_BYTES * (double)rank->parameters,
                 piece = fmin(bytes, (double)WEFT__PIECE_BYTES), pieces = bytes / piece,
                 last = piece_time(network, rank->ranks, transfers[rank->shard].gradients, piece),
                 shared = piece_time(network, rank->ranks, transfers[rank->shard].parameters, piece),
                 exposed = fmax(0, (pieces - 1) * last - rank->backward) + last;
    if (rank->ranks < 2) return (weft__scaled){0, rank->step, rank->step};
    if (rank->shard == WEFT_SHARD_PARAMETERS) {
        const double all = pieces * (last + shared), ends = shared / 2 + last,
                     batch = rank->step / rank->batches;
        return (weft__scaled){.exchange = rank->batches * all,
                              .after = rank->step + rank->batches * all,
                              .during = rank->step + rank->batches * (ends + fmax(0, all - ends - batch))};
    }
    const int sums = rank->shard == WEFT_SHARD_GRADIENTS ? rank->batches : 1;
    const double all = pieces * (sums * last + shared);
    return (weft__scaled){
        .exchange = all, .after = rank->step + all, .during = rank->step + sums * exposed + pieces * shared};
}
