/* Draws random numbers in parallel. Threads claim pieces of fixed size.
 * Must not know: what the numbers are for. Read next: random_fill_tile.c. */
#include <stdatomic.h>

#include "base/isa.h"
#include "base/random_fill.h"
#include "base/threads.h"

#define PIECE 65536 /* elements */

typedef struct drawing {
    weft_random_fill_fn *draw;
    weft_random_kind kind;
    const uint32_t *key;
    double scale;
    int64_t n;
    float *out;
    _Atomic int64_t next; /* the next piece to claim */
} drawing;

static void *draw_pieces(void *user) {
    drawing *d = user;
    for (int64_t first; (first = d->next++ * PIECE) < d->n;)
        d->draw(d->kind, d->key, d->scale, first, d->n - first < PIECE ? d->n - first : PIECE,
                d->out + first);
    return NULL;
}

void weft__random_fill(weft_random_kind kind, uint64_t seed, uint64_t stream, double scale, int64_t n,
                       float *out, int threads) {
    uint32_t key[2];
    weft__philox_key(seed, stream, key);
    drawing d = {
        .draw = WEFT_BY_ISA(weft__random_fill), .kind = kind, .key = key, .scale = scale, .n = n, .out = out};
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    weft__parallel(threads < pieces ? threads : (int)pieces, draw_pieces, &d);
}
