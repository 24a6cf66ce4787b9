/* Exchange with other processes: out = the sum of the inputs of all processes, element by element. If the
 * exchange has a part, each process receives only its own part of the sum (a reduce-scatter). If it gathers,
 * out = the inputs of all processes, one after the other (an all-gather). The command
 * only starts the exchange. A later command of the kind WAIT waits for its end, so the device computes in
 * between. Must not know: devices, processes. Read next: heavy.h, device/device.h (weft_exchanger). */
#ifndef WEFT_HEAVY_EXCHANGE_H
#define WEFT_HEAVY_EXCHANGE_H

#include <weft/dtype.h>

enum { WEFT_EXCHANGE_INPUT, WEFT_EXCHANGE_OUT, WEFT_EXCHANGE_OPERANDS };

/* input is a vector of n elements, and so is out. With a part, out has `part` elements: rank i receives those
 * from i * part on. If the exchange gathers, out has n elements of each process, in the order of the
 * ranks. */
typedef struct weft_heavy_exchange {
    uint8_t dtype; /* f32 or f64; of a gather: any */
    bool gather;
    bool exact;        /* adds in a binary tree over the processes */
    bool in_place;     /* input and out are one buffer */
    int number, count; /* its place among the exchanges of its program, which run in this order; the plan sets
                        * both */
    uint64_t order;    /* hash of all exchanges of the program; 0: none of them gathers. The plan sets it */
    int64_t n;
    int64_t part; /* elements of a process; 0: each has all */
} weft_heavy_exchange;

/* How linked devices make an exact sum. Each process adds up a part of the numbers, which it receives from
 * all: at most `at_once` of them at a time. The last `rest` numbers are few, and each process receives and
 * adds up all of them. */
typedef struct weft__exchange_parts {
    int64_t part, at_once, rest;
} weft__exchange_parts;
weft__exchange_parts weft__exchange_divide(const weft_heavy_exchange *exchange, int processes);
/* Returns the bytes that it receives at once. 0: the sum is not exact, and needs no memory. */
int64_t weft__exchange_received(const weft_heavy_exchange *exchange, int processes);

#endif
