/* weft plan: shows what a training step needs of a device's memory, which changes would save memory, and how
 * much work the step is. Nothing is put on the device. Must not know: how steps are planned. Read next:
 * train/analysis/planning.c. */
#include <stdlib.h>
#include <string.h>

#include "cli/plan_ranks.h"
#include "train/dataset/dataset_summary.h"
#include "train/model/model.h"

typedef weft__plan_unit unit;

weft__plan_unit weft__plan_unit_of(double bytes) {
    return bytes >= 1e9 ? (unit){1e9, "GB"} : bytes >= 1e6 ? (unit){1e6, "MB"} : (unit){1e3, "kB"};
}

static double in(unit u, uint64_t bytes) { return (double)bytes / u.bytes; }

bool weft__plan_fits(const weft__planned *p) {
    const uint64_t memory = p->device_memory, total = weft_memory_total(&p->memory);
    return memory == 0 || total <= memory - weft__planning_reserve(memory);
}

/* ---- for people ---- */

static void print_kinds(const weft__planned *p, unit u) {
    const unit card = weft__plan_unit_of((double)p->device_memory);
    weft__print(stdout, "\n%-18s %9s\n", "at its peak", u.name);
    for (int k = 0; k < WEFT_MEMORY_KINDS; k++)
        weft__print(stdout, "%-18s %9.2f\n", weft_memory_name((weft_memory_kind)k),
                    in(u, p->memory.kinds[k]));
    weft__print(stdout, "%-18s %9.2f", "all", in(u, weft_memory_total(&p->memory)));
    if (p->device_memory)
        weft__print(stdout, "  of %.1f %s: %s", in(card, p->device_memory), card.name,
                    weft__plan_fits(p) ? "fits"
                                       : "does not fit (1/16 stays free for the driver and other programs)");
    weft__print(stdout, "\n");
}

static void print_largest(const weft__planned *p, unit u) {
    weft__print(stdout, "\n%-9s %5s  %-12s %s\n", u.name, "", "", "the largest");
    for (int i = 0; i < p->memory.n_largest; i++) {
        const weft_memory_buffer *b = &p->memory.largest[i];
        weft__print(stdout, "%-9.2f %4dx  %-12s %s%s%s\n", in(u, b->bytes), b->count,
                    weft_memory_name(b->kind), b->layer, b->layer[0] ? ": " : "", b->what);
    }
}

static void print_work(const weft_program_work *w) {
    double all = 0;
    for (int k = 0; k < WEFT_WORK_COUNT; k++) all += w->bytes[k];
    const unit u = weft__plan_unit_of(all);
    weft__print(stdout, "\n%-13s %9s %9s %9s\n", "a step", "commands", "GFLOP", u.name);
    for (int k = 0; k < WEFT_WORK_COUNT; k++)
        if (w->commands[k])
            weft__print(stdout, "%-13s %9llu %9.4g %9.4g\n", weft_work_name((weft_work)k),
                        (unsigned long long)w->commands[k], 1e-9 * w->flops[k], w->bytes[k] / u.bytes);
    if (w->launches) weft__print(stdout, "%llu launches\n", (unsigned long long)w->launches);
}

static void print_time(const weft__predicted *t) {
    if (!(t->seconds > 0)) return;
    weft__print(stdout, "\npredicted, not measured: %.4g ms a step, %.4g %s a second\n", 1e3 * t->seconds,
                t->samples, t->tokens ? "tokens" : "samples");
    weft__print(stdout, "%9s %6s %6s  %-15s %-8s %s\n", "us", "%", "", "waits for", "by", "launch  # layer");
    for (int i = 0; i < t->n_dearest; i++) {
        const weft__dear *d = &t->dearest[i];
        weft__print(stdout, "%9.4g %6.1f %5dx  %-15s %-8s %s%s%s\n", 1e6 * d->seconds,
                    100 * d->seconds / t->batch_seconds, d->count, d->reason, d->library ? "library" : "weft",
                    d->what, d->layer[0] ? "  # " : "", d->layer);
    }
    weft__print(stdout, "%9.4g %6.1f in all launches of a batch, %d of them\n", 1e6 * t->batch_seconds, 100.0,
                t->launches);
}

static void print_text(const weft__planned *p, const char *data, const weft__saving *savings, int count,
                       const weft__rank_question *question, const weft__rank_plans *ranks) {
    char parameters[24];
    weft__print(stdout, "%s, %s parameters: a step of %lld x %lld samples, planned for %s\n", p->model,
                weft__short_number((double)p->parameters, parameters), (long long)p->parts,
                (long long)p->batch, p->device);
    weft__print(stdout, "%s\n%s: %s\n", data, p->device, p->detail);
    const unit u = weft__plan_unit_of((double)weft_memory_total(&p->memory));
    print_kinds(p, u);
    print_largest(p, u);
    if (count) weft__print(stdout, "\nchanges that would save memory\n");
    for (int i = 0; i < count; i++)
        weft__print(stdout, "%s: %s saves %.2f %s; %.2f %s remain\n", savings[i].key, savings[i].value,
                    in(u, savings[i].saves), u.name, in(u, savings[i].total), u.name);
    weft__plan_ranks_print(question, ranks);
    print_work(&p->memory.program);
    print_time(&p->time);
}

/* ---- for programs ---- */

json_t *weft__plan_kinds_json(const weft_memory_plan *m) {
    json_t *kinds = json_object();
    for (int k = 0; k < WEFT_MEMORY_KINDS; k++)
        json_object_set_new(kinds, weft_memory_name((weft_memory_kind)k),
                            json_integer((json_int_t)m->kinds[k]));
    return kinds;
}

static json_t *largest_json(const weft_memory_plan *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->n_largest; i++) {
        const weft_memory_buffer *b = &m->largest[i];
        json_array_append_new(list, json_pack("{s:I, s:i, s:s, s:s, s:s}", "bytes", (json_int_t)b->bytes,
                                              "count", b->count, "kind", weft_memory_name(b->kind), "layer",
                                              b->layer, "what", b->what));
    }
    return list;
}

static json_t *savings_json(const weft__saving *savings, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "key", savings[i].key, "value",
                                              savings[i].value, "saves", (json_int_t)savings[i].saves,
                                              "total", (json_int_t)savings[i].total));
    return list;
}

static json_t *work_json(const weft_program_work *w) {
    json_t *work = json_pack("{s:I}", "launches", (json_int_t)w->launches);
    for (int k = 0; k < WEFT_WORK_COUNT; k++)
        json_object_set_new(work, weft_work_name((weft_work)k),
                            json_pack("{s:I, s:f, s:f}", "commands", (json_int_t)w->commands[k], "flops",
                                      w->flops[k], "bytes", w->bytes[k]));
    return work;
}

static json_t *time_json(const weft__predicted *t) {
    if (!(t->seconds > 0)) return json_null();
    json_t *list = json_array();
    for (int i = 0; i < t->n_dearest; i++) {
        const weft__dear *d = &t->dearest[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:f, s:f, s:s, s:b}", "layer", d->layer,
                                              "what", d->what, "count", d->count, "seconds", d->seconds,
                                              "share", d->seconds / t->batch_seconds, "reason", d->reason,
                                              "library", d->library));
    }
    return json_pack("{s:f, s:f, s:i, s:f, s:o}", "step_seconds", t->seconds, "batch_seconds",
                     t->batch_seconds, "launches", t->launches,
                     t->tokens ? "tokens_per_second" : "samples_per_second", t->samples, "dearest", list);
}

static weft_status cli_plan_print_json(const weft__planned *p, const weft__saving *savings, int count,
                                       const weft__rank_plans *ranks) {
    const weft_memory_plan *m = &p->memory;
    weft__json json;
    char *text;
    weft__json_build(&json, NULL);
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "model",
                  p->model, "parameters", (json_int_t)p->parameters, "batch", (json_int_t)p->batch,
                  "accumulate", (json_int_t)p->parts, "device", p->device, "detail", p->detail, "absent",
                  p->absent, "device_memory", (json_int_t)p->device_memory, "fits", weft__plan_fits(p),
                  "total", (json_int_t)weft_memory_total(m), "memory", weft__plan_kinds_json(m), "largest",
                  largest_json(m), "savings", savings_json(savings, count), "work", work_json(&m->program),
                  "predicted", time_json(&p->time), "ranks", weft__plan_ranks_json(ranks));
    WEFT_TRY(
        weft__json_text(&json, object, JSON_INDENT(1) | JSON_REAL_PRECISION(12), "the plan", &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

/* ---- the command ---- */

enum { CARD_NAME = 1024 };

static void list_cards(void) {
    weft__planning_card c;
    for (int i = 0; weft__planning_card_at(i, &c); i++)
        weft__print(stdout, "%-8s  %-24s %5.0f GB  %5.0f GB/s  %5.0f TFLOP/s (bf16, tensor cores)\n", c.key,
                    c.name, 1e-9 * c.memory, 1e-9 * c.bandwidth, 1e-12 * c.tensor);
}

/* Sets train.batch if it is auto, as if all memory of the device were free. */
static weft_status settle_batch(weft__config *config, const weft__dataset *dataset, const char *device) {
    weft__planned one;
    if (config->train_batch) return WEFT_OK;
    config->train_batch = 1;
    WEFT_TRY(weft__planning_step(config, dataset, device, &one));
    return weft__planning_batch(config, dataset, one.spec, one.device_memory);
}

/* The arguments of the command. */
typedef struct plan_arguments {
    weft__wanted wanted;
    const char *card; /* "card:NAME", or NULL */
    weft__rank_question ranks;
    bool json;
} plan_arguments;

static weft_status cli_plan_show(plan_arguments *a, const weft__config *config, const weft__dataset *dataset,
                                 const char *device, const weft__planned *planned) {
    weft__lines lines;
    weft__saving savings[WEFT__SAVINGS];
    weft__rank_plans ranks;
    int count = 0;
    WEFT_TRY(weft__planning_savings(config, dataset, planned, savings, &count));
    WEFT_TRY(weft__dataset_summary(dataset, config, &lines));
    a->ranks.wanted = &a->wanted;
    a->ranks.dataset = dataset;
    a->ranks.device = device;
    weft_status status = weft__plan_ranks(&a->ranks, &ranks);
    if (status == WEFT_OK && a->json)
        status = cli_plan_print_json(planned, savings, count, &ranks);
    else if (status == WEFT_OK)
        print_text(planned, lines.text, savings, count, &a->ranks, &ranks);
    weft__free(NULL, ranks.list);
    return status;
}

static weft_status cli_plan(plan_arguments *a, weft__config *config) {
    weft__dataset dataset;
    weft__planned planned;
    const char *device = a->card ? a->card : config->devices.count ? config->devices.values[0] : NULL;
    weft_status status = weft__model_vocab(config);
    if (status != WEFT_OK) return status;
    status = weft__planning_data(config, &dataset);
    if (status == WEFT_OK) status = settle_batch(config, &dataset, device);
    if (status == WEFT_OK) status = weft__planning_step(config, &dataset, device, &planned);
    if (status == WEFT_OK) status = cli_plan_show(a, config, &dataset, device, &planned);
    weft__dataset_free(NULL, &dataset);
    return status;
}

int weft__command_plan(const weft__command *command, int argc, char **argv) {
    plan_arguments a = {.wanted.config = getenv("WEFT_CONFIG"), .ranks.latency = WEFT__PLAN_LATENCY};
    const char *card = NULL;
    char named[CARD_NAME];
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&a.wanted),
        WEFT__DEVICE_OPTION(&a.wanted.device),
        {"--card C", WEFT__OPTION_TEXT, &card,
         "plan for this card, and predict the time; a name, a file that describes one, or list"},
        {"--ranks N,N,...", WEFT__OPTION_TEXT, &a.ranks.list,
         "also show the memory of one process, if N processes train together"},
        {"--network G", WEFT__OPTION_NUM, &a.ranks.network,
         "with --ranks: predict the time of a step; each process sends G Gbit/s"},
        {"--latency US", WEFT__OPTION_NUM, &a.ranks.latency,
         "with --network: the latency of a message, in microseconds; default: 2"},
        {"--step-time MS", WEFT__OPTION_NUM, &a.ranks.step,
         "with --network: the measured time of a step of one process, in ms; default: predicted for --card"},
        {"--json", WEFT__OPTION_FLAG, &a.json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (card && strcmp(card, "list") == 0) {
        list_cards();
        return WEFT__EXIT_DONE;
    }
    if (card && (size_t)snprintf(named, sizeof named, "card:%s", card) >= sizeof named) {
        weft__complain("--card: the name is too long");
        return WEFT__EXIT_USAGE;
    }
    if (a.ranks.network > 0 && !a.ranks.list) {
        weft__complain(
            "plan: --network predicts the steps of several processes: give their number with --ranks");
        return WEFT__EXIT_USAGE;
    }
    if (!weft__cli_has_config(command, &a.wanted)) return WEFT__EXIT_USAGE;
    if (card) a.card = named;
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__cli_config(&config, &a.wanted);
    if (status == WEFT_OK) status = cli_plan(&a, &config);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    weft__config_free(&config);
    return code;
}
