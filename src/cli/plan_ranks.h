/* The part of `weft plan` about a training that several processes share: the memory of one of them, and the
 * predicted time of their steps. Must not know: how steps are planned. Read next: plan_ranks.c, plan.c. */
#ifndef WEFT_SRC_CLI_PLAN_RANKS_H
#define WEFT_SRC_CLI_PLAN_RANKS_H

#include "base/json.h"
#include "cli/run.h"
#include "train/analysis/planning.h"
#include "train/analysis/scaling.h"

/* What the arguments ask for. */
typedef struct weft__rank_question {
    const char *list; /* numbers of processes, such as "8,64,512"; NULL: nothing is asked */
    double network;   /* Gbit/s that each process sends; 0: no time is predicted */
    double latency;   /* of a message, in microseconds */
    double step;      /* milliseconds of a measured step of one process; 0: it is predicted for the card */
    const weft__wanted *wanted; /* where the configuration comes from */
    const weft__dataset *dataset;
    const char *device;
} weft__rank_question;

/* The time that a message takes besides its bytes, unless the user tells another: an assumption. */
#define WEFT__PLAN_LATENCY 2.0 /* microseconds */

/* The plan of one process for a value of train.shard. */
typedef struct weft__rank_plan {
    int ranks;
    char shard[32]; /* the value */
    weft__planned planned;
    double step;         /* seconds of a step without an exchange; 0: no time is predicted */
    double samples;      /* of a step of all processes; tokens of a language model */
    weft__scaled scaled; /* the time of a step with an exchange */
} weft__rank_plan;

typedef struct weft__rank_plans {
    weft__rank_plan *list; /* free it with weft__free */
    size_t count, capacity;
} weft__rank_plans;

/* Plans for each number of processes, and for each value of train.shard. Keys that follow from the number of
 * processes are set anew for each. */
weft_status weft__plan_ranks(const weft__rank_question *question, weft__rank_plans *plans);

void weft__plan_ranks_print(const weft__rank_question *question, const weft__rank_plans *plans);
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
