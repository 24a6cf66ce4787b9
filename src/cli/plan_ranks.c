/* weft plan --ranks: the memory of one of several processes, a row for each value of train.shard. Must not
 * know: how processes exchange data. Read next: plan_ranks.h, train/analysis/planning.c. */
#include <stdlib.h>
#include <string.h>

#include "cli/plan_ranks.h"
#include "train/model/model.h"

enum { RANKS_MOST = 1 << 20 };

/* ---- planning ---- */

/* Reads the next number of the list, and moves behind its comma. */
static weft_status next_ranks(const char **list, int *ranks) {
    char *end;
    const long long n = strtoll(*list, &end, 10);
    if (end == *list || (*end && *end != ',') || (*end && !end[1]) || n < 2 || n > RANKS_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "--ranks: '%s': give numbers of processes, from 2 to %d, with commas between them",
                          *list, RANKS_MOST);
    *ranks = (int)n;
    *list = *end ? end + 1 : end;
    return WEFT_OK;
}

static weft_status plan_rows(const weft__config *config, const weft__dataset *dataset, const char *device,
                             weft__rank_plans *plans) {
    weft__config changed = *config; /* borrows all strings */
    char word[32];
    for (int shard = 0; weft__config_choice(WEFT__KEY_train_shard, shard, word)[0]; shard++) {
        if (!weft__grow(NULL, &plans->list, &plans->capacity, plans->count, sizeof *plans->list))
            return weft__fail_oom(NULL, sizeof *plans->list, "the plan of a process");
        weft__rank_plan *row = &plans->list[plans->count];
        changed.train_shard = shard;
        *row = (weft__rank_plan){.ranks = config->processes};
        memcpy(row->shard, word, sizeof word);
        WEFT_TRY(weft__planning_step(&changed, dataset, device, &row->planned));
        plans->count++;
    }
    return WEFT_OK;
}

static weft_status plan_ranks(int ranks, const weft__wanted *wanted, const weft__dataset *dataset,
                              const char *device, weft__rank_plans *plans) {
    weft__config config;
    weft__wanted silent = *wanted;
    silent.silent = true;
    weft__config_init(&config);
    config.processes = ranks;
    weft_status status = weft__cli_config(&config, &silent);
    if (status == WEFT_OK) status = weft__model_vocab(&config);
    if (status == WEFT_OK) status = plan_rows(&config, dataset, device, plans);
    weft__config_free(&config);
    return status;
}

weft_status weft__plan_ranks(const char *list, const weft__wanted *wanted, const weft__dataset *dataset,
                             const char *device, weft__rank_plans *plans) {
    int ranks = 0;
    *plans = (weft__rank_plans){0};
    while (list && *list) {
        WEFT_TRY(next_ranks(&list, &ranks));
        WEFT_TRY(plan_ranks(ranks, wanted, dataset, device, plans));
    }
    return WEFT_OK;
}

/* ---- showing ---- */

static void print_heads(const weft__rank_plan *row, const char *unit) {
    weft__print(stdout, "\none of %d processes: %lld x %lld samples of a step, %s at its peak\n", row->ranks,
                (long long)row->planned.parts, (long long)row->planned.batch, unit);
    weft__print(stdout, "%-11s", "train.shard");
    for (int k = 0; k < WEFT_MEMORY_KINDS; k++)
        weft__print(stdout, "  %s", weft_memory_name((weft_memory_kind)k));
    weft__print(stdout, "  %9s  %s\n", "all", "host, for the exchange");
}

static void print_row(const weft__rank_plan *row, weft__plan_unit u) {
    const weft_memory_plan *m = &row->planned.memory;
    weft__print(stdout, "%-11s", row->shard);
    for (int k = 0; k < WEFT_MEMORY_KINDS; k++)
        weft__print(stdout, "  %*.2f", (int)strlen(weft_memory_name((weft_memory_kind)k)),
                    (double)m->kinds[k] / u.bytes);
    weft__print(stdout, "  %9.2f  %9.2f%s\n", (double)weft_memory_total(m) / u.bytes,
                (double)m->exchange / u.bytes, weft__plan_fits(&row->planned) ? "" : "  does not fit");
}

void weft__plan_ranks_print(const weft__rank_plans *plans) {
    weft__plan_unit u = {1, ""};
    for (size_t i = 0; i < plans->count; i++) {
        const weft__rank_plan *row = &plans->list[i];
        const bool first = i == 0 || row->ranks != row[-1].ranks;
        if (first) u = weft__plan_unit_of((double)weft_memory_total(&row->planned.memory));
        if (first) print_heads(row, u.name);
        print_row(row, u);
    }
}

json_t *weft__plan_ranks_json(const weft__rank_plans *plans) {
    json_t *list = json_array();
    for (size_t i = 0; i < plans->count; i++) {
        const weft__rank_plan *row = &plans->list[i];
        const weft_memory_plan *m = &row->planned.memory;
        json_array_append_new(list, json_pack("{s:i, s:s, s:I, s:I, s:b, s:I, s:I, s:o}", "ranks", row->ranks,
                                              "shard", row->shard, "batch", (json_int_t)row->planned.batch,
                                              "accumulate", (json_int_t)row->planned.parts, "fits",
                                              weft__plan_fits(&row->planned), "total",
                                              (json_int_t)weft_memory_total(m), "exchange",
                                              (json_int_t)m->exchange, "memory", weft__plan_kinds_json(m)));
    }
    return list;
}
