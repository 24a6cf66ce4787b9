/* XOR in KANN, with the settings of `weft bench xor10000`: 2-8-1, batch 4, plain gradient descent with rate
 * 0.5, one step per epoch. Must not know: Weft. bench/table builds it with a checkout of
 * github.com/attractivechaos/kann: cc -O3 -march=native -IKANN kann_xor.c KANN/kann.c KANN/kautodiff.c -lm
 * -o kann_xor */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "kann.h"

enum { STEPS = 10000, BLOCK = 100 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    float x[8], y[4], *all_x[] = {x}, *all_y[] = {y}, first = 0, loss = 0;
    double seconds[STEPS / BLOCK];
    kann_srand(1);
    kad_node_t *hidden = kad_tanh(kann_layer_dense(kann_layer_input(2), 8));
    kann_t *net = kann_new(kann_layer_cost(hidden, 1, KANN_C_CEB), 0);
    int parameters = kann_size_var(net);
    kann_set_batch_size(net, 4);
    kann_switch(net, 1);
    kann_feed_bind(net, KANN_F_IN, 0, all_x);
    kann_feed_bind(net, KANN_F_TRUTH, 0, all_y);
    for (int b = 0; b < STEPS / BLOCK; b++) {
        double from = now();
        for (int i = 0; i < BLOCK; i++) {
            memcpy(x, inputs, sizeof x);
            memcpy(y, targets, sizeof y);
            loss = kann_cost(net, 0, 1);
            for (int p = 0; p < parameters; p++) net->x[p] -= 0.5f * net->g[p];
            if (b == 0 && i == 0) first = loss;
        }
        seconds[b] = (now() - from) / BLOCK;
    }
    qsort(seconds, STEPS / BLOCK, sizeof *seconds, ascending);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"workload\": \"xor10000\", \"peer\": \"kann\", \"version\": \"%s\", \"threads\": 1, "
           "\"seconds_per_step_min\": %.6g, \"seconds_per_step_median\": %.6g, \"loss_first\": %.6g, "
           "\"loss_last\": %.6g, \"peak_rss_mb\": %.1f}\n",
           KANN_VERSION, seconds[0], seconds[STEPS / BLOCK / 2], first, loss, usage.ru_maxrss / 1024.0);
    kann_delete(net);
    return 0;
}
