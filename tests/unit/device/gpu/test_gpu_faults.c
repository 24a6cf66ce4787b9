/* weft train on a GPU device where a kernel does not compile or memory runs out. The error is right, nothing
 * hangs, and the saved run resumes to the same losses as an undisturbed run. Lost devices: test_gpu_run.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gpu.h"
#include "unit/io_scratch.h"
#include "train/run/loop.h"
#include "train/run/opened_model.h"

enum { STEPS = 12, ROWS = 40 };

static void write_table(void) {
    FILE *file = fopen(in_scratch("table.csv"), "w");
    assert_non_null(file);
    fprintf(file, "a,b,kind\n");
    for (int i = 0; i < ROWS; i++) fprintf(file, "%d.5,%d,%s\n", i % 7, i % 5, i % 2 ? "odd" : "even");
    fclose(file);
}

/* Trains to the end and saves every third step, or resumes. */
static weft_status train(const char *run, bool resume, weft__train_result *result) {
    char text[9000];
    weft__config config;
    weft__config_init(&config);
    const int n = snprintf(text, sizeof text,
                           "task: classification\ndevice: %s\n"
                           "data: {source: csv, path: %s, val_fraction: 0.2}\n"
                           "model: {type: mlp, hidden: [4]}\n"
                           "train: {steps: %d, batch: 8, eval_every: 6, save_every: 3, log_every: 1}\n"
                           "schedule: {warmup: 2, type: constant}\n",
                           test_gpu(), in_scratch("table.csv"), STEPS);
    weft_status status = resume ? weft__opened_model_config(run, NULL, &config)
                                : weft__config_parse(&config, text, (size_t)n, "test.yaml");
    if (status == WEFT_OK) status = weft__config_resolve(&config);
    assert_int_equal(status, WEFT_OK);
    char *arguments[] = {(char[]){"weft"}, NULL};
    const weft__train_options how = {
        .dir = run, .resume = resume, .quiet = true, .argc = 1, .argv = arguments};
    status = weft__train(&config, &how, result);
    weft__config_free(&config);
    return status;
}

/* Reads step and loss of each line of metrics.csv of a run. */
static void losses(const char *run, char *to, size_t size) {
    char path[9000], line[1000];
    size_t used = 0;
    snprintf(path, sizeof path, "%s/metrics.csv", run);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    to[0] = 0;
    while (fgets(line, sizeof line, file)) {
        char step[32] = "", epoch[32] = "", loss[32] = "";
        if (sscanf(line, "%31[^,],%31[^,],%31[^,\n]", step, epoch, loss) < 3) continue;
        used += (size_t)snprintf(to + used, size - used, "%s %s\n", step, loss);
        assert_true(used < size);
    }
    fclose(file);
}

static bool saved(const char *run) {
    char path[9000];
    snprintf(path, sizeof path, "%s/checkpoints", run);
    DIR *dir = opendir(path);
    bool any = false;
    for (const struct dirent *e; dir && (e = readdir(dir));) any = any || !strncmp(e->d_name, "step-", 5);
    if (dir) closedir(dir);
    return any;
}

/* After the error: the saved run resumes and gives the same losses. If nothing was saved, the run starts
 * again. */
static void goes_on(const char *run, const char *expected) {
    weft__train_result result;
    char got[4000];
    const bool any = saved(run);
    if (!any) remove_all(run);
    assert_int_equal(train(run, any, &result), WEFT_OK);
    losses(run, got, sizeof got);
    assert_string_equal(got, expected);
}

static char whole[4000]; /* losses of the undisturbed run */

static void test_nothing_happens(void **state) {
    (void)state;
    weft__train_result result;
    if (test_without_gpu()) return skip();
    write_table();
    assert_int_equal(train(in_scratch("whole"), false, &result), WEFT_OK);
    losses(in_scratch("whole"), whole, sizeof whole);
    assert_non_null(strstr(whole, "\n12 "));
}

static void test_memory_runs_out(void **state) {
    (void)state;
    int errors = 0;
    if (test_without_gpu()) return skip();
    for (int at = 1;; at += 3) {
        weft__train_result result;
        const char *run = in_scratch("full");
        remove_all(run);
        weft__gpu_hook.fail_allocation = at;
        const weft_status status = train(run, false, &result);
        const bool reached = weft__gpu_hook.fail_allocation == 0;
        weft__gpu_hook.fail_allocation = 0;
        assert_int_equal(status, reached ? WEFT_ERR_OOM : WEFT_OK);
        if (!reached) break;
        errors++;
        goes_on(run, whole);
    }
    print_message("%d errors\n", errors);
    assert_true(errors >= 2);
}

static void test_compiler_refuses(void **state) {
    (void)state;
    int errors = 0;
    if (test_without_gpu()) return skip();
    for (int at = 1;; at++) {
        weft__train_result result;
        const char *run = in_scratch("refused");
        remove_all(run);
        weft__gpu_hook.fail_compile = at;
        const weft_status status = train(run, false, &result);
        const bool reached = weft__gpu_hook.fail_compile == 0;
        weft__gpu_hook.fail_compile = 0;
        assert_int_equal(status, reached ? WEFT_ERR_DEVICE : WEFT_OK);
        if (!reached) break;
        assert_non_null(strstr(result.error, "its compiler refuses kernel"));
        errors++;
        goes_on(run, whole);
    }
    print_message("%d errors\n", errors);
    assert_true(errors >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happens),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_compiler_refuses),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
