/* Descriptions of graphics cards, and how long a launch takes on one: a roofline with occupancy. Plans are
 * priced without the card. Must not know: graphs, drivers, other devices than cards. Read next: card.c,
 * facts.c, price.c, docs/performance.md. */
#ifndef WEFT_DEVICE_GPU_CARD_CARD_H
#define WEFT_DEVICE_GPU_CARD_CARD_H

#include "kernel/source.h"

/* A card. Rates are per second, sizes in bytes, times in seconds. */
typedef struct weft_card {
    char key[32], name[64];
    int capability;          /* 90 for 9.0 */
    int units;               /* multiprocessors */
    int threads, blocks;     /* that a multiprocessor holds at most */
    double clock;            /* boost clock, Hz */
    double memory;           /* bytes of the card */
    double bandwidth;        /* of this memory */
    double l2, l2_bandwidth; /* the cache that all multiprocessors share */
    double rate[WEFT_UNITS]; /* operations of each unit */
    double shared;           /* shared memory of a block, at most */
    double node, alone; /* an empty launch as a node of a graph that waits for the node before it; the same by
                         * itself, as the host submits it */
    bool libraries;     /* cuBLASLt and cuDNN are installed */
} weft_card;

/* ---- card.c ---- */

/* Finds a card by its key, in any case. If there is none, reads the file of that name. Its form is in
 * docs/devices.md. The message of an error names the cards that are known. */
weft_status weft__card_find(weft_context *ctx, const char *name, weft_card *card);
/* Copies the card in row i of the table. Returns false behind the last one. */
bool weft__card_at(int i, weft_card *card);
/* Returns what kernel source depends on. */
weft_target weft__card_target(const weft_card *card);

/* ---- facts.c ---- */

/* Parts of a unit's rate that code reaches; their sources are in facts.c. */
/* shape: batch, m, n, k. */
double weft__card_library_matmul(const weft_card *card, weft_unit unit, const double shape[4]);
double weft__card_library_attention(bool backward, bool fast);
double weft__card_library_convolution(void);
#define WEFT_CARD_LIBRARY_LEAST 3e-6 /* seconds of a call, besides launching */

/* Joins the facts of a further entry of a fused launch. */
void weft__facts_join(weft_launch_facts *to, const weft_launch_facts *entry, bool concurrent);

/* ---- price.c ---- */

/* What a launch waits for longest. */
#define WEFT_CARD_REASONS(X)                                                                                 \
    X(MEMORY, "memory")             /* bytes of memory */                                                    \
    X(CACHE, "cache")               /* bytes of the L2 cache */                                              \
    X(COMPUTE, "compute")           /* operations of matmuls, tensor cores included */                       \
    X(INSTRUCTIONS, "instructions") /* all other work of work-items */                                       \
    X(LATENCY, "latency")           /* too few bytes under way, or waiting in steps */                       \
    X(BLOCKS, "too few blocks")     /* multiprocessors without work */                                       \
    X(LAUNCH, "launch")             /* launching takes longer than the work */

typedef enum weft_card_reason {
#define WEFT_CARD_REASON_(id, text) WEFT_CARD_##id,
    WEFT_CARD_REASONS(WEFT_CARD_REASON_)
#undef WEFT_CARD_REASON_
        WEFT_CARD_REASON_COUNT
} weft_card_reason;

const char *weft__card_reason(weft_card_reason reason);

typedef struct weft_card_price {
    double seconds;                                       /* with launching it as a node of a graph */
    double memory, cache, compute, instructions, waiting; /* each part alone; the longest one counts */
    double launch;
    double again;             /* bytes of later passes that do not find them with their multiprocessor */
    int64_t blocks, resident; /* blocks; as many run at the same time */
    weft_card_reason reason;
} weft_card_price;

/* Prices a launch. `cached`: all that the step moves stays in the L2 cache. */
weft_card_price weft__card_price(const weft_card *card, const weft_launch *launch, bool cached);

#endif
