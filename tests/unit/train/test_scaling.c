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

/* 64 MiB of gradients are 8 pieces. With 4 processes a transfer of a piece sends 6 MiB in 3 messages. */
static void test_formula(void **state) {
    (void)state;
    const weft__network network = {.rate = 6e3 * MIB, .message = 1e-4};
    weft__scaled_rank rank = {.ranks = 4, .parameters = 16 << 20, .batches = 2, .step = 1, .backward = 5e-3};
    const double piece = 2 * (1e-3 + 3e-4);
    weft__scaled s = weft__scaling_predict(&network, &rank);
    near(s.exchange, 8 * piece);
    near(s.after, 1 + 8 * piece);
    near(s.during, 1 + 7 * piece - 5e-3 + piece);
    rank.backward = 1;
    near(weft__scaling_predict(&network, &rank).during, 1 + piece); /* all but the last piece are hidden */
    rank.shard = WEFT_SHARD_OPTIMIZER;
    s = weft__scaling_predict(&network, &rank);
    near(s.exchange, 8 * 1.5 * piece);
    near(s.during, 1 + piece + 8 * 0.5 * piece);
}

/* Divided gradients are exchanged for each batch, in one transfer. Divided parameters are gathered twice for
 * each batch. */
static void test_batches(void **state) {
    (void)state;
    const weft__network network = {.rate = 6e3 * MIB, .message = 1e-4};
    const double transfer = 1e-3 + 3e-4;
    weft__scaled_rank rank = {.ranks = 4,
                              .shard = WEFT_SHARD_GRADIENTS,
                              .parameters = 16 << 20,
                              .batches = 3,
                              .step = 1,
                              .backward = 5e-3};
    weft__scaled s = weft__scaling_predict(&network, &rank);
    near(s.exchange, 8 * (3 + 1) * transfer);
    near(s.during, 1 + 3 * (7 * transfer - 5e-3 + transfer) + 8 * transfer);
    rank.shard = WEFT_SHARD_PARAMETERS;
    s = weft__scaling_predict(&network, &rank);
    near(s.after, 1 + 3 * 8 * 3 * transfer);
    near(s.during, 1 + 3 * 2 * transfer); /* a first gather and a last sum */
    rank.step = 0.03;
    near(weft__scaling_predict(&network, &rank).during, 0.03 + 3 * (8 * 3 * transfer - 0.01));
}

/* A piece also goes to the host and back. Gradients that fill no piece are one. One process has no exchange.
 */
static void test_host(void **state) {
    (void)state;
    const weft__network network = {.rate = 1e9, .down = 4e6, .up = 2e6};
    weft__scaled_rank rank = {.ranks = 2, .parameters = 1000, .batches = 1, .step = 1, .backward = 0.5};
    near(weft__scaling_predict(&network, &rank).exchange, 4e-6 + 1e-3 + 2e-3);
    near(weft__scaling_predict(&network, &rank).during, 1 + 4e-6 + 3e-3);
    rank.ranks = 1;
    near(weft__scaling_predict(&network, &rank).after, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula), cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
