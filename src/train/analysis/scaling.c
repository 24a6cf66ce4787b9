/* The time of an exchange, see scaling.h. It follows process/sum.c and optim/shard.c:
 *
 *     gradients     pieces of 8 MiB, each with an all-to-all and, unless a process needs only its part, an
 *                   all-gather
 *     parameters    divided state: an all-gather of each piece. Divided parameters: two, for the forward and
 *                   for the backward pass
 *
 * In a transfer a process sends a message to each other process, (n - 1) / n of the piece in all. Parameters
 * of a divided state follow the update, so nothing hides their exchange. Devices that exchange gradients
 * during the backward pass hide the exchange, except for the last piece, which begins when the pass has
 * ended. If gradients are divided, each batch of a step has this exchange; otherwise only their sum has. If
 * parameters are divided, a whole batch hides its exchange, except for the first gather and the last piece of
 * gradients. Must not know: devices, terminals. Read next: process/sum.c. */
#include <math.h>

#include "process/group.h"
#include "train/analysis/scaling.h"

#define NUMBER_BYTES 4.0 /* of a gradient, and of a parameter */

/* Transfers of a piece of the gradients, and of a piece of the updated parameters. Devices that exchange
 * after the backward pass add up all gradients for all processes. */
static const struct {
    int gradients, afterwards, parameters;
} transfers[] = {[WEFT_SHARD_NONE] = {2, 2, 0},
                 [WEFT_SHARD_OPTIMIZER] = {1, 2, 1},
                 [WEFT_SHARD_GRADIENTS] = {1, 1, 1},
                 [WEFT_SHARD_PARAMETERS] = {1, 1, 2}};

/* Seconds of `count` transfers of a piece of so many bytes. */
static double piece_time(const weft__network *network, int ranks, int count, double bytes) {
    const double others = ranks - 1;
    return count * (bytes * others / ranks / network->rate + others * network->message);
}

weft__scaled weft__scaling_predict(const weft__network *network, const weft__scaled_rank *rank) {
    const bool divided = rank->shard == WEFT_SHARD_PARAMETERS;
    const double count = (double)rank->parameters, bytes = NUMBER_BYTES * count,
                 piece = fmin(bytes, (double)WEFT__PIECE_BYTES), pieces = bytes / piece,
                 each = divided ? rank->gathered * count / pieces : piece,
                 last = piece_time(network, rank->ranks,
                                   rank->overlaps ? transfers[rank->shard].gradients
                                                  : transfers[rank->shard].afterwards,
                                   piece),
                 shared = piece_time(network, rank->ranks, transfers[rank->shard].parameters, each);
    if (rank->ranks < 2) return (weft__scaled){0, rank->step};
    const int sums = rank->shard >= WEFT_SHARD_GRADIENTS ? rank->batches : 1;
    const double gradients = pieces * last, parameters = pieces * shared;
    if (divided) {
        const double all = gradients + parameters, ends = shared / 2 + last, batch = rank->step / sums,
                     shown = rank->overlaps ? ends + fmax(0, all - ends - batch) : all;
        return (weft__scaled){.exchange = sums * all, .step = rank->step + sums * shown};
    }
    const double shown = rank->overlaps ? fmax(0, gradients - last - rank->backward) + last : gradients;
    return (weft__scaled){.exchange = sums * gradients + parameters,
                          .step = rank->step + sums * shown + parameters};
}
