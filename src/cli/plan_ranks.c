/* weft plan --ranks: the memory of one of several processes, and their predicted time, a row for each value
 * of train.shard. Must not know: how processes exchange data. Read next: plan_ranks.h,
 * train/analysis/planning.c. */
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

/* The share of a batch that its backward pass takes: two matmuls for each matmul of the forward pass. */
#define BACKWARD_SHARE (2.0 / 3)

/* Finds the time of a step without an exchange. It is that of one process that trains alone. */
static weft_status plan_alone(const weft__rank_question *q, const weft__config *config, double *step) {
    weft__config alone = *config; /* borrows all strings */
    weft__planned planned;
    *step = 1e-3 * q->step;
    if (!(q->network > 0) || *step > 0) return WEFT_OK;
    alone.train_accumulate = config->train_accumulate / config->processes;
    alone.processes = 0;
    WEFT_TRY(weft__planning_step(&alone, q->dataset, q->device, &planned));
    *step = planned.time.seconds;
    if (*step > 0) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "--network: there is no time of a step: choose a card with --card, or give a time that "
                      "you have measured with --step-time");
}

static void plan_scale(const weft__rank_question *q, const weft__config *config, double step,
                       weft__rank_plan *row) {
    const bool tokens = config->task == WEFT__TASK_LANGUAGE_MODEL;
    const weft__network network = {.rate = 1e9 / 8 * q->network, .message = 1e-6 * q->latency};
    const weft__scaled_rank rank = {.ranks = row->ranks,
                                    .shard = (weft_shard)config->train_shard,
                                    .overlaps = row->planned.overlaps,
                                    .parameters = row->planned.trained,
                                    .gathered = (double)weft_dtype_size(weft__model_compute(config)),
                                    .batches = (int)row->planned.parts,
                                    .step = step,
                                    .backward = BACKWARD_SHARE * step / (double)row->planned.parts};
    const int64_t each = tokens ? weft__dataset_row_tokens(q->dataset, config) : 1;
    row->step = step;
    row->samples = (double)row->ranks * (double)(row->planned.parts * row->planned.batch * each);
    row->scaled = weft__scaling_predict(&network, &rank);
}

static weft_status plan_rows(const weft__rank_question *q, const weft__config *config,
                             weft__rank_plans *plans) {
    weft__config changed = *config; /* borrows all strings */
    char word[32];
    double step;
    WEFT_TRY(plan_alone(q, config, &step));
    for (int shard = 0; weft__config_choice(WEFT__KEY_train_shard, shard, word)[0]; shard++) {
        if (!weft__grow(NULL, &plans->list, &plans->capacity, plans->count, sizeof *plans->list))
            return weft__fail_oom(NULL, sizeof *plans->list, "the plan of a process");
        weft__rank_plan *row = &plans->list[plans->count];
        changed.train_shard = shard;
        *row = (weft__rank_plan){.ranks = config->processes};
        memcpy(row->shard, word, sizeof word);
        const weft_status status = weft__planning_step(&changed, q->dataset, q->device, &row->planned);
        if (status == WEFT_ERR_UNSUPPORTED && shard >= WEFT_SHARD_GRADIENTS) break; /* the device cannot */
        WEFT_TRY(status);
        if (q->network > 0) plan_scale(q, &changed, step, row);
        plans->count++;
    }
    return WEFT_OK;
}

static weft_status plan_for(const weft__rank_question *q, int ranks, weft__rank_plans *plans) {
    weft__config config;
    weft__wanted silent = *q->wanted;
    silent.silent = true;
    weft__config_init(&config);
    config.processes = ranks;
    weft_status status = weft__cli_config(&config, &silent);
    if (status == WEFT_OK) status = weft__model_vocab(&config);
    if (status == WEFT_OK) status = plan_rows(q, &config, plans);
    weft__config_free(&config);
    return status;
}

weft_status weft__plan_ranks(const weft__rank_question *q, weft__rank_plans *plans) {
    const char *list = q->list;
    int ranks = 0;
    *plans = (weft__rank_plans){0};
    while (list && *list) {
        WEFT_TRY(next_ranks(&list, &ranks));
        WEFT_TRY(plan_for(q, ranks, plans));
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

static void print_scaling(const weft__rank_question *q, const weft__rank_plans *plans) {
    const bool tokens = plans->count && plans->list[0].planned.time.tokens;
    const char *items = tokens ? "tokens/s" : "samples/s";
    if (!plans->count || !(plans->list[0].step > 0)) return;
    weft__print(
        stdout,
        "\npredicted, not measured: each process sends %g Gbit/s, a message takes %g us, a step without "
        "an exchange %.4g ms\n",
        q->network, q->latency, 1e3 * plans->list[0].step);
    weft__print(stdout, "%6s  %-11s  %11s  %9s  %9s  %5s\n", "ranks", "train.shard", "exchange ms",
                "ms a step", items, "%");
    for (size_t i = 0; i < plans->count; i++) {
        const weft__rank_plan *row = &plans->list[i];
        weft__print(stdout, "%6d  %-11s  %11.4g  %9.4g  %9.4g  %5.1f%s\n", row->ranks, row->shard,
                    1e3 * row->scaled.exchange, 1e3 * row->scaled.step, row->samples / row->scaled.step,
                    100 * row->step / row->scaled.step,
                    weft__plan_fits(&row->planned) ? "" : "  does not fit");
    }
    weft__print(stdout, "%%: the rate, as a part of what processes without an exchange would have; %s\n",
                plans->list[0].planned.overlaps ? "the exchange of gradients is hidden by the backward pass"
                                                : "gradients are exchanged after the backward pass");
}

void weft__plan_ranks_print(const weft__rank_question *q, const weft__rank_plans *plans) {
    weft__plan_unit u = {1, ""};
    for (size_t i = 0; i < plans->count; i++) {
        const weft__rank_plan *row = &plans->list[i];
        const bool first = i == 0 || row->ranks != row[-1].ranks;
        if (first) u = weft__plan_unit_of((double)weft_memory_total(&row->planned.memory));
        if (first) print_heads(row, u.name);
        print_row(row, u);
    }
    print_scaling(q, plans);
}

static json_t *scaled_json(const weft__rank_plan *row) {
    const weft__scaled *s = &row->scaled;
    if (!(row->step > 0)) return json_null();
    return json_pack("{s:f, s:f, s:f, s:b, s:f}", "step_alone_seconds", row->step, "exchange_seconds",
                     s->exchange, "step_seconds", s->step, "overlaps", row->planned.overlaps, "samples",
                     row->samples);
}

json_t *weft__plan_ranks_json(const weft__rank_plans *plans) {
    json_t *list = json_array();
    for (size_t i = 0; i < plans->count; i++) {
        const weft__rank_plan *row = &plans->list[i];
        const weft_memory_plan *m = &row->planned.memory;
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:I, s:I, s:b, s:I, s:I, s:o, s:o}", "ranks", row->ranks, "shard",
                            row->shard, "batch", (json_int_t)row->planned.batch, "accumulate",
                            (json_int_t)row->planned.parts, "fits", weft__plan_fits(&row->planned), "total",
                            (json_int_t)weft_memory_total(m), "exchange", (json_int_t)m->exchange, "memory",
                            weft__plan_kinds_json(m), "predicted", scaled_json(row)));
    }
    return list;
}
