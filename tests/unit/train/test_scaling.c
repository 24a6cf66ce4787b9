/* The predicted time of an exchange, against the formula of docs/performance.md worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/analysis/scaling.h"

static void near(double value, double wanted) {
    if (!(value > wanted * (1 - 1e-12) && value < wanted * (1 + 1e-12)))
        fail_msg("%.15g, wanted %.15g", value, wanted);
}

#define MIB 1048576.0

static double exchange_of(const weft__network *network, const weft__scaled_rank *rank) {
    return weft__scaling_predict(network, rank).exchange;
}
static double step_of(const weft__network *network, const weft__scaled_rank *rank) {
    return weft__scaling_predict(network, rank).step;
}

/* 64 MiB of gradients are 8 pieces. With 4 processes a transfer of a piece sends 6 MiB in 3 messages. */
static const weft__network network = {.rate = 6e3 * MIB, .message = 1e-4};
static const double transfer = 1e-3 + 3e-4;
static weft__scaled_rank rank_of(weft_shard shard, int batches) {
    return (weft__scaled_rank){.ranks = 4,
                               .shard = shard,
                               .overlaps = true,
                               .parameters = 16 << 20,
                               .gathered = 4,
                               .batches = batches,
                               .step = 1,
                               .backward = 5e-3};
}

static void test_formula(void **state) {
    (void)state;
    weft__scaled_rank rank = rank_of(WEFT_SHARD_NONE, 2);
    const double piece = 2 * transfer;
    near(exchange_of(&network, &rank), 8 * piece);
    near(step_of(&network, &rank), 1 + 7 * piece - 5e-3 + piece);
    rank.backward = 1;
    near(step_of(&network, &rank), 1 + piece); /* all but the last piece are hidden */
    rank.overlaps = false;
    near(step_of(&network, &rank), 1 + 8 * piece);
    rank.shard = WEFT_SHARD_OPTIMIZER;
    near(exchange_of(&network, &rank), 8 * 1.5 * piece);
    near(step_of(&network, &rank), 1 + 8 * 1.5 * piece);
    rank.overlaps = true;
    near(exchange_of(&network, &rank), 8 * piece);
    near(step_of(&network, &rank), 1 + transfer + 8 * transfer);
}

/* Divided gradients are exchanged for each batch, in one transfer. Divided parameters are gathered twice for
 * each batch; layers that compute in 16 bits gather half as many bytes. */
static void test_batches(void **state) {
    (void)state;
    weft__scaled_rank rank = rank_of(WEFT_SHARD_GRADIENTS, 3);
    near(exchange_of(&network, &rank), 8 * (3 + 1) * transfer);
    near(step_of(&network, &rank), 1 + 3 * (7 * transfer - 5e-3 + transfer) + 8 * transfer);
    rank.shard = WEFT_SHARD_PARAMETERS;
    near(exchange_of(&network, &rank), 3 * 8 * 3 * transfer);
    near(step_of(&network, &rank), 1 + 3 * 2 * transfer); /* a first gather and a last sum */
    rank.step = 0.03;
    near(step_of(&network, &rank), 0.03 + 3 * (8 * 3 * transfer - 0.01));
    rank.gathered = 2;
    near(exchange_of(&network, &rank), 3 * 8 * (transfer + 2 * (5e-4 + 3e-4)));
    near(step_of(&network, &rank), 0.03 + 3 * (8 * (transfer + 2 * (5e-4 + 3e-4)) - 0.01));
}

/* Gradients that fill no piece are one. One process has no exchange. */
static void test_ends(void **state) {
    (void)state;
    const weft__network slow = {.rate = 1e6};
    weft__scaled_rank rank = {
        .ranks = 2, .overlaps = true, .parameters = 1000, .batches = 1, .step = 1, .backward = 0.5};
    near(exchange_of(&slow, &rank), 4e-3);
    near(step_of(&slow, &rank), 1 + 4e-3);
    rank.ranks = 1;
    near(step_of(&slow, &rank), 1);
    near(1 + exchange_of(&slow, &rank), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula), cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
