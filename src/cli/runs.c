/* weft runs: a line for each run of a folder, sorted and filtered. Must not know: how runs are trained. Read
 * next: facts.c. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/facts.h"
#include "cli/grid.h"
#include "io/publish.h"
#include "train/run/opened_model.h"

#define PATH_BYTES 4096

typedef struct listed_run {
    char *name;
    bool known; /* the facts are there */
    weft__facts facts;
    size_t inside; /* no run itself: the number of runs in this folder */
    char error[WEFT_ERROR_SIZE];
} listed_run;

typedef struct run_list {
    listed_run *items;
    size_t count, capacity;
} run_list;

typedef struct run_wish {
    const char *root, *sort, *status;
    char type[80]; /* "model.type=TYPE", or "" */
    weft__repeated where;
    bool reverse, json;
} run_wish;

/* ---- reading ---- */

/* Refuses an assignment that no configuration can have. */
static weft_status check_value(const char *assignment, const char *where) {
    weft__config config;
    weft__config_init(&config);
    const weft_status status = weft__config_assign(&config, assignment, where);
    weft__config_free(&config);
    return status;
}

/* Tells whether the run's configuration has this value, however it is written. */
static bool has_value(const char *dir, const char *assignment) {
    weft__config config, wanted;
    char values[2][512], name[64];
    const size_t size = strcspn(assignment, "=");
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 63, assignment);
    const weft__config_key key = weft__config_find(name);
    weft__config_init(&config);
    weft__config_init(&wanted);
    const bool has = weft__config_set(&wanted, assignment) == WEFT_OK &&
                     weft__opened_model_config(dir, NULL, &config) == WEFT_OK &&
                     strcmp(weft__config_value(&config, key, values[0], sizeof values[0]),
                            weft__config_value(&wanted, key, values[1], sizeof values[1])) == 0;
    weft__config_free(&wanted);
    weft__config_free(&config);
    return has;
}

static bool wanted_run(const run_wish *wish, const char *dir, const listed_run *run) {
    bool wanted = !wish->status || (run->known && strcmp(run->facts.summary.status, wish->status) == 0);
    wanted = wanted && (!wish->type[0] || has_value(dir, wish->type));
    for (size_t i = 0; i < wish->where.count && wanted; i++) wanted = has_value(dir, wish->where.values[i]);
    return wanted;
}

static size_t count_runs(const char *folder) {
    char path[PATH_BYTES];
    size_t count = 0;
    int error = 0;
    DIR *dir = weft__opendir(folder);
    if (!dir) return 0;
    for (const struct dirent *entry; (entry = weft__next_entry(dir, &error));)
        count += entry->d_name[0] != '.' && weft__join(path, sizeof path, folder, entry->d_name) &&
                 weft__is_run(path);
    closedir(dir);
    return count;
}

static weft_status add_run(const run_wish *wish, const char *name, run_list *list) {
    char dir[PATH_BYTES];
    if (!weft__join(dir, sizeof dir, wish->root, name)) return WEFT_OK;
    const bool run = weft__is_run(dir), some = wish->status || wish->type[0] || wish->where.count;
    const size_t inside = run || some ? 0 : count_runs(dir);
    if (!run && inside == 0) return WEFT_OK;
    if (!weft__grow(NULL, &list->items, &list->capacity, list->count, sizeof *list->items))
        return weft__fail_oom(NULL, list->count * sizeof *list->items, "the list of runs");
    listed_run *item = &list->items[list->count];
    *item = (listed_run){.name = weft__strdup(NULL, name), .inside = inside};
    if (!item->name) return weft__fail_oom(NULL, strlen(name) + 1, "the name of a run");
    list->count++;
    if (!run) return WEFT_OK;
    item->known = weft__facts_read(dir, &item->facts) == WEFT_OK;
    if (!item->known) snprintf(item->error, sizeof item->error, "%s", weft_last_error(NULL));
    if (wanted_run(wish, dir, item)) return WEFT_OK;
    list->count--;
    weft__facts_free(&item->facts);
    weft__free(NULL, item->name);
    return WEFT_OK;
}

static weft_status read_list(const run_wish *wish, DIR *dir, run_list *list) {
    int error = 0;
    for (const struct dirent *entry; (entry = weft__next_entry(dir, &error));)
        if (entry->d_name[0] != '.') WEFT_TRY(add_run(wish, entry->d_name, list));
    return error ? weft__fail_io(NULL, "list", wish->root, error) : WEFT_OK;
}

/* ---- sorting ---- */

static int falling(double a, double b) { /* unknown numbers come last */
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

static int by_name(const void *a, const void *b) {
    return weft__natural_order(((const listed_run *)a)->name, ((const listed_run *)b)->name);
}

/* The best, longest, newest and largest come first. Equal runs go by name. */
#define ORDER(function, expression)                                                                          \
    static int function(const void *a, const void *b) {                                                      \
        const weft__facts *x = &((const listed_run *)a)->facts, *y = &((const listed_run *)b)->facts;        \
        const int order = (expression);                                                                      \
        return order ? order : by_name(a, b);                                                                \
    }
ORDER(by_result, weft__facts_better(y, x) - weft__facts_better(x, y))
ORDER(by_loss, falling(-x->best, -y->best))
ORDER(by_steps, falling((double)x->summary.step, (double)y->summary.step))
ORDER(by_time, falling(x->summary.seconds, y->summary.seconds))
ORDER(by_start, falling((double)x->started, (double)y->started))
ORDER(by_weights, falling((double)x->summary.parameters, (double)y->summary.parameters))

static const struct {
    const char *name;
    int (*compare)(const void *a, const void *b);
} orders[] = {{"name", by_name}, {"result", by_result}, {"loss", by_loss},      {"steps", by_steps},
              {"time", by_time}, {"started", by_start}, {"weights", by_weights}};
enum { ORDERS = sizeof orders / sizeof *orders };

static weft_status sort_list(const run_wish *wish, run_list *list) {
    size_t chosen = 0;
    while (chosen < ORDERS && strcmp(orders[chosen].name, wish->sort) != 0) chosen++;
    if (chosen == ORDERS)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "runs: --sort %.40s: give name, result, loss, steps, time, started or weights",
                          wish->sort);
    if (list->count > 0) qsort(list->items, list->count, sizeof *list->items, orders[chosen].compare);
    for (size_t i = 0, j = list->count; wish->reverse && i + 1 < j; i++) {
        const listed_run last = list->items[--j];
        list->items[j] = list->items[i];
        list->items[i] = last;
    }
    return WEFT_OK;
}

/* ---- printing ---- */

static void put_run(weft__grid *grid, const listed_run *run) {
    const weft__facts *f = &run->facts;
    char text[WEFT__FACT_TEXT], number[24];
    weft__grid_put(grid, "%s", run->name);
    weft__grid_put(grid, "%s", f->summary.status);
    weft__grid_put(grid, "%llu/%llu", (unsigned long long)f->summary.step,
                   (unsigned long long)f->summary.steps);
    weft__grid_put(grid, "%s", weft__facts_result(f, text));
    weft__grid_put(grid, "%s", weft__facts_time(f->summary.seconds, text));
    weft__grid_put(grid, "%s", weft__facts_started(f, text));
    weft__grid_put(grid, "%s", weft__short_number((double)f->summary.parameters, number));
}

/* Tells of runs inside a folder of the list. */
static void print_inside(const run_wish *wish, const listed_run *run) {
    char path[PATH_BYTES];
    if (!weft__join(path, sizeof path, wish->root, run->name)) return;
    weft__print(stdout, "%zu run%s in %s: ", run->inside, run->inside == 1 ? "" : "s", path);
    weft__print_command(stdout, "runs", path, NULL);
    weft__print(stdout, "\n");
}

static weft_status print_list(const run_wish *wish, const run_list *list) {
    static const char *const names[] = {"run", "status", "steps", "result", "time", "started", "weights"};
    enum { COLUMNS = sizeof names / sizeof *names };
    static const size_t leave[] = {6, 4, 5, 2}; /* where the terminal is too narrow, in this order */
    weft__grid grid = {.columns = COLUMNS, .right = {[2] = true, [4] = true, [6] = true}};
    for (size_t i = 0; i < COLUMNS; i++) weft__grid_put(&grid, "%s", names[i]);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].known) put_run(&grid, &list->items[i]);
    const size_t room = weft__grid_room(stdout);
    for (size_t i = 0; i < sizeof leave / sizeof *leave && room && weft__grid_width(&grid) > room; i++)
        grid.hidden[leave[i]] = true;
    const weft_status status = grid.status;
    if (status == WEFT_OK) weft__grid_print(stdout, &grid, 0);
    weft__grid_free(&grid);
    for (size_t i = 0; i < list->count; i++) {
        const listed_run *run = &list->items[i];
        if (run->error[0]) weft__print(stdout, "%s: %s\n", run->name, run->error);
        if (run->inside) print_inside(wish, run);
    }
    return status;
}

static weft_status print_json(const run_wish *wish, const run_list *list) {
    char dir[PATH_BYTES], *text;
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const listed_run *run = &list->items[i];
        if (!weft__join(dir, sizeof dir, wish->root, run->name)) continue;
        json_array_append_new(
            array, run->known    ? weft__facts_json(dir, &run->facts)
                   : run->inside ? json_pack("{s:s, s:I}", "folder", dir, "runs", (json_int_t)run->inside)
                                 : json_pack("{s:s, s:s}", "run", dir, "error", run->error));
    }
    WEFT_TRY(weft__json_text(&json, json_pack("{s:o}", "runs", array), JSON_REAL_PRECISION(9), "the runs",
                             &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

int weft__command_runs(const weft__command *command, int argc, char **argv) {
    run_wish wish = {.root = WEFT__RUNS_ROOT, .sort = "name"};
    const char *model = NULL;
    int code = 0;
    const weft__option options[] = {
        {"[FOLDER]", WEFT__OPTION_ARG, &wish.root, "the folder of the runs; default: runs"},
        {"--sort KEY", WEFT__OPTION_TEXT, &wish.sort,
         "name, result, loss, steps, time, started or weights: the best, longest, newest, largest first"},
        {"--reverse", WEFT__OPTION_FLAG, &wish.reverse, "the other way round"},
        {"--model TYPE", WEFT__OPTION_TEXT, &model, "only models of this type, such as gpt"},
        {"--status S", WEFT__OPTION_TEXT, &wish.status,
         "only runs that are done, running, stopped, 'stopped early', diverged, failed or killed"},
        {"--where KEY=VALUE", WEFT__OPTION_TEXTS, &wish.where,
         "only runs whose configuration has this value; can be given several times"},
        {"--json", WEFT__OPTION_FLAG, &wish.json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (model) snprintf(wish.type, sizeof wish.type, "model.type=%.60s", model);
    weft_status status = model ? check_value(wish.type, "--model") : WEFT_OK;
    for (size_t i = 0; i < wish.where.count && status == WEFT_OK; i++)
        status = check_value(wish.where.values[i], "--where");
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    DIR *dir = weft__opendir(wish.root);
    if (!dir && errno != ENOENT) return weft__give_up(NULL, weft__fail_io(NULL, "list", wish.root, errno));
    if (!dir) {
        weft__complain("%s: no such folder: 'weft train' creates runs", wish.root);
        return WEFT__EXIT_NOTHING;
    }
    run_list list = {0};
    status = read_list(&wish, dir, &list);
    closedir(dir);
    if (status == WEFT_OK) status = sort_list(&wish, &list);
    if (status == WEFT_OK) status = (wish.json ? print_json : print_list)(&wish, &list);
    for (size_t i = 0; i < list.count; i++) {
        weft__facts_free(&list.items[i].facts);
        weft__free(NULL, list.items[i].name);
    }
    weft__free(NULL, list.items);
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}
