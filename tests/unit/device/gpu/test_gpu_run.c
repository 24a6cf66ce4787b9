/* weft train on a GPU device that gets lost. At any moment the command ends with the right exit status and
 * message. Its last checkpoint is valid, and the run can resume on another device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "gpu.h"
#include "unit/io_scratch.h"
#include "train/run/history.h"

enum { ROWS = 60, STEPS = 40, SAVE_EVERY = 10 };

static const weft__command command = {.name = "train"};

static void write_input(void) {
    FILE *table = fopen(in_scratch("table.csv"), "w"), *config = fopen(in_scratch("mlp.yaml"), "w");
    assert_true(table && config);
    fprintf(table, "a,b,kind\n");
    for (int i = 0; i < ROWS; i++) fprintf(table, "%d.5,%d,%s\n", i % 7, i % 5, i % 2 ? "odd" : "even");
    fprintf(config,
            "task: classification\n"
            "data: {source: csv, path: %s, val_fraction: 0.2}\n"
            "model: {type: mlp, hidden: [8]}\n"
            "train: {steps: %d, batch: 8, eval_every: 10, save_every: %d, log_every: 5}\n",
            in_scratch("table.csv"), STEPS, SAVE_EVERY);
    assert_int_equal(fclose(table) | fclose(config), 0);
}

static int train(const char *run, char *device) {
    char *argv[] = {"train", (char *)(uintptr_t)in_scratch("mlp.yaml"), "--device", device,
                    "--run", (char *)(uintptr_t)in_scratch(run),        "--quiet"};
    return weft__command_train(&command, sizeof argv / sizeof *argv, argv);
}

static int resume(const char *run, char *device) {
    char *argv[] = {"resume", (char *)(uintptr_t)in_scratch(run), "--device", device, "--strict", "--quiet"};
    return weft__command_resume(&command, sizeof argv / sizeof *argv, argv);
}

/* Both runs must have logged the same losses. */
static void same_losses(const char *run, const char *other) {
    weft__history a, b;
    assert_int_equal(weft__history_read(in_scratch(run), &a), WEFT_OK);
    assert_int_equal(weft__history_read(in_scratch(other), &b), WEFT_OK);
    assert_true(a.count >= STEPS / 5);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        assert_int_equal(a.lines[i].step, b.lines[i].step);
        assert_true(fabs(a.lines[i].loss - b.lines[i].loss) < 1e-4);
    }
    weft__history_free(&a);
    weft__history_free(&b);
}

/* stderr of the last command, which is one line. */
static char message[1000];
static int said_by(int (*call)(const char *run, char *device), const char *run, char *device) {
    fflush(stderr);
    const int kept = dup(STDERR_FILENO), file = open(in_scratch("stderr"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    const int code = call(run, device);
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    const ssize_t size = pread(file, message, sizeof message - 1, 0);
    message[size > 0 ? size : 0] = '\0';
    for (char *end; strncmp(message, "weft: ", 6) != 0 && (end = strstr(message, " generated.\n"));) {
        end += strlen(" generated.\n"); /* the driver's compiler counts its warnings there */
        memmove(message, end, strlen(end) + 1);
    }
    close(kept);
    close(file);
    return code;
}

static void test_device_is_lost_in_weft_train(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    setenv("WEFT_KERNEL_CACHE", in_scratch("kernels"), 1); /* so each kernel is compiled once */
    write_input();
    assert_int_equal(train("cpu", "cpu"), WEFT__EXIT_DONE);
    int lost = 0, resumed = 0, saved = 0;
    for (int submissions = 4;; submissions += submissions / 3) { /* submissions until it is lost */
        char run[32];
        snprintf(run, sizeof run, "lost-%d", submissions);
        weft__gpu_hook.lose_device = submissions;
        const int code = said_by(train, run, test_gpu());
        const bool reached = weft__gpu_hook.lose_device == 1;
        weft__gpu_hook.lose_device = 0;
        assert_int_equal(code, reached ? WEFT__EXIT_DEVICE : WEFT__EXIT_DONE);
        if (!reached) {
            same_losses(run, "cpu");
            break;
        }
        lost++;
        char device[32];
        snprintf(device, sizeof device, "%s:0: ", test_gpu());
        assert_non_null(strstr(message, device));
        assert_non_null(strstr(message, "the device is lost"));
        assert_ptr_equal(strchr(message, '\n'), message + strlen(message) - 1);
        char config[64];
        snprintf(config, sizeof config, "%s/config.yaml", run);
        if (access(in_scratch(config), R_OK) != 0) continue; /* before the run folder was made */
        saved += strstr(message, "; the checkpoint of step ") != NULL;
        assert_int_equal(resume(run, "cpu"), WEFT__EXIT_DONE);
        same_losses(run, "cpu");
        resumed++;
    }
    assert_true(lost > resumed && resumed > saved && saved >= 2);
    print_message("lost %d times, resumed %d times, %d times from a checkpoint\n", lost, resumed, saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_device_is_lost_in_weft_train, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
