/* What a training step of a configuration takes of a device's memory, planned without the device, and what
 * would take less. Read next: planning.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PLANNING_H
#define WEFT_SRC_TRAIN_ANALYSIS_PLANNING_H

#include <weft/memory.h>

#include "train/dataset/dataset.h"

typedef struct weft__planned {
    char model[64], device[32], detail[400];
    bool absent;            /* no such device is here: it stands for those of its kind */
    uint64_t device_memory; /* bytes, 0: not known */
    uint64_t parameters;
    int64_t batch, parts; /* samples in a batch, batches in a step */
    weft_memory_plan memory;
} weft__planned;

/* The data, as far as a plan needs them: where there is no file, a gpt's vocabulary alone. */
weft_status weft__planning_data(const weft__config *config, weft__dataset *dataset);

/* Plans a step for a device, as the configuration names it; NULL: for the configuration's. */
weft_status weft__planning_step(const weft__config *config, const weft__dataset *dataset, const char *device,
                                weft__planned *planned);

/* Of a device's memory what is not to be planned with: drivers, libraries and others want some. */
static inline uint64_t weft__planning_reserve(uint64_t memory) { return memory / 16; }

/* ---- what would take less ---- */

typedef struct weft__saving {
    const char *key; /* "train.recompute" */
    char value[16];  /* "gelu" */
    uint64_t saves, total;
} weft__saving;

enum { WEFT__SAVINGS = 8 };

/* Those that save anything, the most first, *count of them. A change that cannot be planned saves nothing;
 * WEFT_ERR_OOM where the host's memory runs out. */
weft_status weft__planning_savings(const weft__config *config, const weft__dataset *dataset,
                                   const weft__planned *planned, weft__saving savings[WEFT__SAVINGS],
                                   int *count);

/* "train.recompute: block would save 4.8 GB; ...", for an error; "" where nothing would. */
void weft__planning_advice(const weft__config *config, const weft__dataset *dataset, const char *device,
                           char *text, size_t size);

/* ---- train.batch: auto ---- */

/* Makes train.batch the largest that fits into `free` bytes but for the reserve: 1, 2, 4 or a multiple of 8,
 * no more than there are samples. WEFT_ERR_OOM where not even 1 does. */
weft_status weft__planning_batch(weft__config *config, const weft__dataset *dataset, const char *device,
                                 uint64_t memory_free);

#endif
