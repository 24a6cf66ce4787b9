/* The part of `weft plan` about a training that several processes share: the memory of one of them. Must not
 * know: how steps are planned. Read next: plan_ranks.c, plan.c. */
#ifndef WEFT_SRC_CLI_PLAN_RANKS_H
#define WEFT_SRC_CLI_PLAN_RANKS_H

#include "base/json.h"
#include "cli/run.h"
#include "train/analysis/planning.h"

/* The plan of one process for a value of train.shard. */
typedef struct weft__rank_plan {
    int ranks;
    char shard[32]; /* the value */
    weft__planned planned;
} weft__rank_plan;

typedef struct weft__rank_plans {
    weft__rank_plan *list; /* free it with weft__free */
    size_t count, capacity;
} weft__rank_plans;

/* Plans for each number of processes of a list such as "8,64,512", and for each value of train.shard. NULL:
 * there is no list, and nothing is planned. `wanted` is where the configuration comes from: keys that follow
 * from the number of processes are set anew for each. */
weft_status weft__plan_ranks(const char *list, const weft__wanted *wanted, const weft__dataset *dataset,
                             const char *device, weft__rank_plans *plans);

void weft__plan_ranks_print(const weft__rank_plans *plans);
json_t *weft__plan_ranks_json(const weft__rank_plans *plans);

/* ---- plan.c ---- */

/* Tells whether a plan fits into the memory of its device, of which a part stays free. */
bool weft__plan_fits(const weft__planned *planned);
json_t *weft__plan_kinds_json(const weft_memory_plan *memory);

/* The unit in which bytes are shown. */
typedef struct weft__plan_unit {
    double bytes;
    const char *name;
} weft__plan_unit;

weft__plan_unit weft__plan_unit_of(double bytes);

#endif
