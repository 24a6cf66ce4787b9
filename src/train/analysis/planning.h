/* Plans the memory that a training step of a configuration needs, without the device itself. Also finds
 * changes of the configuration that would need less. Must not know: loops, run folders, terminals. Read next:
 * planning.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PLANNING_H
#define WEFT_SRC_TRAIN_ANALYSIS_PLANNING_H

#include <weft/memory.h>

#include "train/dataset/dataset.h"

/* Launches of one kind in similar layers. */
typedef struct weft__dear {
    double seconds; /* of all of them together */
    int count;
    bool library;       /* cuBLASLt or cuDNN computes them */
    const char *reason; /* what they wait for longest, such as "memory" */
    char layer[96], what[128];
} weft__dear;

enum { WEFT__DEAREST = 10 };

/* The predicted time of a step on a card that is described (device/gpu/card). */
typedef struct weft__predicted {
    double seconds;                    /* of a step; 0: nothing is predicted */
    double batch_seconds;              /* of its first batch */
    int launches;                      /* of a batch, after those that can be are fused */
    weft__dear dearest[WEFT__DEAREST]; /* of a batch, the longest first */
    int n_dearest;
    double samples; /* a second; tokens of a language model */
    bool tokens;
} weft__predicted;

typedef struct weft__planned {
    char model[64], device[32], detail[400];
    const char *spec;       /* the device as it was asked for; the caller's text */
    bool absent;            /* the device is not in this machine; the plan uses a typical one of its kind */
    uint64_t device_memory; /* bytes; 0: unknown */
    uint64_t parameters, trained; /* all of them; those that are not frozen */
    int64_t batch, parts;         /* samples of a batch; batches of a step in one process */
    bool overlaps;                /* exchanges gradients during the backward pass */
    weft_memory_plan memory;
    weft__predicted time;
} weft__planned;

/* Reads the data as far as a plan needs them. If a language model names its vocabulary and the file does not
 * exist, the vocabulary is enough. */
weft_status weft__planning_data(const weft__config *config, weft__dataset *dataset);

/* Plans a step. `device` is named as in a configuration, or "card:NAME" for a card that is described; NULL:
 * the device of the configuration. For a card the time is predicted, too. If the configuration has several
 * processes, the plan is that of one of them. */
weft_status weft__planning_step(const weft__config *config, const weft__dataset *dataset, const char *device,
                                weft__planned *planned);

/* Returns the part of a device's memory that plans leave free for drivers, libraries and other programs. */
static inline uint64_t weft__planning_reserve(uint64_t memory) { return memory / 16; }

/* ---- predict.c ---- */

/* Predicts the time of the program that was planned last. */
weft_status weft__predict_batch(weft_context *ctx, weft__predicted *predicted);

/* A card that can be planned for. */
typedef struct weft__planning_card {
    char key[32], name[64];
    double memory, bandwidth, tensor; /* bytes; bytes and operations a second */
} weft__planning_card;

/* Returns false behind the last card. */
bool weft__planning_card_at(int i, weft__planning_card *card);

/* ---- changes that need less memory ---- */

typedef struct weft__saving {
    const char *key; /* such as "train.recompute" */
    char value[16];  /* such as "gelu" */
    uint64_t saves, total;
} weft__saving;

enum { WEFT__SAVINGS = 8 };

/* Finds the changes that save memory, the largest saving first, and sets *count. A change that cannot be
 * planned is left out. Returns WEFT_ERR_OOM if the memory of the host is too small. */
weft_status weft__planning_savings(const weft__config *config, const weft__dataset *dataset,
                                   const weft__planned *planned, weft__saving savings[WEFT__SAVINGS],
                                   int *count);

/* Writes advice for an error message, such as "train.recompute=block saves 4.80 GB, ...". The text is "" if
 * no change saves memory. */
void weft__planning_advice(const weft__config *config, const weft__dataset *dataset, const char *device,
                           char *text, size_t size);

/* ---- train.batch: auto ---- */

/* Sets train.batch to the largest batch that fits into `memory_free` bytes minus the reserve: 1, 2, 4 or a
 * multiple of 8, and at most the number of samples. Returns WEFT_ERR_OOM if not even a batch of 1 fits. */
weft_status weft__planning_batch(weft__config *config, const weft__dataset *dataset, const char *device,
                                 uint64_t memory_free);

#endif
