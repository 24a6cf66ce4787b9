/* The run folder: names that are never used twice, records that read back, truncating to a step, the
 * report. */
#define _GNU_SOURCE /* memmem, nftw */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weft/data.h>
#include <weft/io.h>

#include "device/device.h"
#include "io/seal.h"
#include "train/run/events.h"
#include "train/run/history.h"
#include "train/report/report.h"
#include "train/run/run_dir.h"

static char work[64], back[4096];

static int enter(void **state) {
    (void)state;
    strcpy(work, "/tmp/weft-run-XXXXXX");
    if (!getcwd(back, sizeof back) || !mkdtemp(work) || chdir(work) != 0) return -1;
    return 0;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info, (void)type, (void)at;
    return remove(path);
}

static int leave(void **state) {
    (void)state;
    if (chdir(back) != 0) return -1;
    return nftw(work, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static char *slurp(const char *path) {
    weft_bytes bytes;
    assert_int_equal(weft_read_file(NULL, path, 0, &bytes), WEFT_OK);
    char *copy = malloc(bytes.size + 1);
    memcpy(copy, bytes.data, bytes.size + 1);
    weft_bytes_free(NULL, &bytes);
    return copy;
}

static void log_steps(weft__run *run, uint64_t first, uint64_t last) {
    for (uint64_t step = first; step <= last; step++) {
        weft__metrics m = weft__metrics_none(step);
        m.loss = (double)(1.0f / (float)step);
        m.lr = 1e-3;
        m.grad_norm = 0.5;
        m.rate = 1000.25;
        if (step % 10 == 0) m.val_loss = 2.0 / (double)step;
        m.memory_peak = 1 << 20;
        assert_int_equal(weft__run_metrics(run, &m), WEFT_OK);
        assert_int_equal(weft__run_log(run, step, "loss\nis here"), WEFT_OK);
        if (step % 10 == 0) assert_int_equal(weft__run_sample(run, step, "to be <or> & not", 16), WEFT_OK);
    }
}

static void numbers_are_never_used_twice(void **state) {
    (void)state;
    weft__run first, second, third;
    assert_int_equal(weft__run_create(NULL, "gpt-L1-cpu", true, &first), WEFT_OK);
    assert_int_equal(weft__run_create(NULL, "gpt-L1-cpu", true, &second), WEFT_OK);
    assert_string_equal(first.dir, "runs/gpt-L1-cpu-1");
    assert_string_equal(second.dir, "runs/gpt-L1-cpu-2");
    weft__run_close(&first);
    assert_int_equal(weft__run_create(NULL, "gpt-L1-cpu", true, &third), WEFT_OK);
    assert_string_equal(third.dir, "runs/gpt-L1-cpu-3");
    weft__run_close(&second);
    weft__run_close(&third);
}

static void a_run_is_not_overwritten_nor_shared(void **state) {
    (void)state;
    weft__run run, other;
    assert_int_equal(weft__run_open("nowhere", true, &run), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft__run_create("mine", "x", true, &run), WEFT_OK);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: regression\n"), WEFT_OK);
    assert_int_equal(weft__run_create("mine", "x", true, &other), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "weft resume mine"));
    assert_int_equal(weft__run_open("mine", true, &other), WEFT_ERR_BUSY);
    weft__run_close(&run);
    assert_int_equal(weft__run_open("mine", true, &other), WEFT_OK);
    weft__run_close(&other);
}

static void lines_read_back(void **state) {
    (void)state;
    weft__run run;
    weft__history history;
    assert_int_equal(weft__run_create("r", "x", false, &run), WEFT_OK);
    log_steps(&run, 1, 30);
    assert_int_equal(weft__history_read("r", &history), WEFT_OK);
    assert_int_equal(history.count, 30);
    assert_false(history.tokens);
    assert_true((float)history.lines[6].loss == 1.0f / 7.0f);
    assert_true(isnan(history.lines[6].val_loss));
    assert_true(history.lines[29].val_loss == 2.0 / 30.0);
    assert_true(weft__history_best(&history) == 2.0 / 30.0);
    assert_true(history.averages.rate == 1000.25);
    weft__history_free(&history);
    char *csv = slurp("r/metrics.csv");
    assert_int_equal(strncmp(csv, "step,epoch,loss,lr,grad_norm,samples_per_second,", 48), 0);
    assert_non_null(strstr(csv, "\n10,,0.1,0.001,0.5,1000.25,0.2,,,1048576,,,,,,,\n"));
    free(csv);
    weft__run_close(&run);
}

/* Each row of metrics.def is read back as it was written, and a reader of the documentation finds it. */
static void every_metric_is_read_back_and_documented(void **state) {
    (void)state;
    weft__run run;
    weft__history history;
    char path[4096], name[64];
    snprintf(path, sizeof path, "%s/docs/get-started.md", getenv("WEFT_SOURCE_DIR"));
    char *page = slurp(path);
    for (int tokens = 0; tokens < 2; tokens++) {
        weft__metrics m = weft__metrics_none(1);
        for (int i = 0; i < WEFT__METRICS; i++) weft__metric_set(&m, weft__metric_rows[i], i + 0.5);
        assert_int_equal(weft__run_create(tokens ? "t" : "s", "x", tokens, &run), WEFT_OK);
        assert_int_equal(weft__run_metrics(&run, &m), WEFT_OK);
        weft__run_close(&run);
        assert_int_equal(weft__history_read(tokens ? "t" : "s", &history), WEFT_OK);
        assert_int_equal(history.tokens, tokens);
        for (int i = 0; i < WEFT__METRICS; i++) {
            const weft__metric *metric = weft__metric_rows[i];
            snprintf(name, sizeof name, "`%s`", weft__metric_word(metric->name, tokens));
            if (weft__metric_get(&history.lines[0], metric) != i + 0.5 ||
                weft__metric_get(&history.averages, metric) != i + 0.5)
                fail_msg("%s is not read back", name);
            if (!strstr(page, name)) fail_msg("docs/get-started.md lacks %s", name);
        }
        weft__history_free(&history);
    }
    free(page);
}

/* Truncating and repeating the same steps gives the files of an uninterrupted run. */
static void cutting_back_then_going_on_is_as_if_unbroken(void **state) {
    (void)state;
    weft__run whole, cut;
    assert_int_equal(weft__run_create("whole", "x", true, &whole), WEFT_OK);
    log_steps(&whole, 1, 30);
    assert_int_equal(weft__run_create("cut", "x", true, &cut), WEFT_OK);
    log_steps(&cut, 1, 27);
    assert_int_equal(write(cut.metrics, "{\"step\": 28, \"lo", 16), 16); /* torn by a kill */
    assert_int_equal(write(cut.csv, "28,", 3), 3);
    assert_int_equal(weft__run_truncate(&cut, 15), WEFT_OK);
    assert_int_equal(access("cut/samples/step-10.txt", F_OK), 0);
    assert_int_not_equal(access("cut/samples/step-20.txt", F_OK), 0);
    log_steps(&cut, 16, 30);
    static const char *const names[] = {"metrics.jsonl", "metrics.csv"};
    for (int i = 0; i < 2; i++) {
        char a[64], b[64];
        snprintf(a, sizeof a, "whole/%s", names[i]);
        snprintf(b, sizeof b, "cut/%s", names[i]);
        char *one = slurp(a), *two = slurp(b);
        assert_string_equal(one, two);
        free(one);
        free(two);
    }
    char *log = slurp("cut/log.txt");
    size_t lines = 0;
    for (char *c = log; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 30);
    free(log);
    assert_int_equal(weft__run_truncate(&cut, 0), WEFT_OK);
    log = slurp("cut/metrics.csv");
    assert_int_equal(strncmp(log, "step,", 5), 0);
    assert_null(strchr(strchr(log, '\n') + 1, '\n'));
    free(log);
    weft__run_close(&whole);
    weft__run_close(&cut);
}

static long count_text(const char *text, const char *part) {
    long count = 0;
    for (; (text = strstr(text, part)); text++) count++;
    return count;
}

/* Every tag is closed, and nothing is loaded from elsewhere. */
static void report_is_whole(void **state) {
    (void)state;
    weft__run run;
    weft__summary summary = {.model = "gpt <4>",
                             .device = "cpu",
                             .status = "done",
                             .parameters = 1234567,
                             .step = 30,
                             .steps = 30,
                             .seconds = 75,
                             .tokens = true,
                             .phases = {2, {{"train", 70}, {"prepare", 5}}},
                             .parts = {3, {{"matmul", 50}, {"data", 5}, {"host", 20}}}};
    summary.results.val_loss = 1.5;
    summary.results.val_accuracy = summary.results.test_loss = summary.results.test_accuracy = (double)NAN;
    assert_int_equal(weft__run_create("rep", "x", true, &run), WEFT_OK);
    log_steps(&run, 1, 30);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: \"<script>\"\n"), WEFT_OK);
    assert_int_equal(weft__summary_write(&run, &summary), WEFT_OK);
    assert_int_equal(weft__report_write("rep"), WEFT_OK);
    char *html = slurp("rep/report.html");
    static const char *const tags[] = {"figure",  "svg",  "table",  "tr",    "td",   "pre",
                                       "details", "h2",   "div",    "style", "html", "head",
                                       "body",    "span", "script", "g",     "b"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        char open[16], close[16];
        long opened = 0, closed = 0;
        snprintf(open, sizeof open, "<%s", tags[i]);
        snprintf(close, sizeof close, "</%s>", tags[i]);
        for (char *at = html; (at = strstr(at, open)); at++) {
            char after = at[strlen(open)];
            opened += after == '>' || after == ' ';
        }
        for (char *at = html; (at = strstr(at, close)); at++) closed++;
        if (opened != closed) fail_msg("%s: %ld opened, %ld closed", tags[i], opened, closed);
    }
    assert_int_equal(count_text(html, "<script"), 1); /* its own */
    assert_non_null(strstr(html, "task: &quot;&lt;script&gt;"));
    assert_null(strstr(html, "://"));
    assert_null(strstr(html, "nan"));
    assert_non_null(strstr(html, "gpt &lt;4&gt;"));
    assert_non_null(strstr(html, "1 min 15 s"));
    assert_non_null(strstr(html, "If matmul took no time, this run would be 3.00 times faster."));
    assert_non_null(strstr(html, "Sample after step 30"));
    assert_non_null(strstr(html, "to be &lt;or&gt; &amp; not"));
    free(html);
    weft__summary back_again;
    assert_int_equal(weft__summary_read("rep", &back_again), WEFT_OK);
    assert_string_equal(back_again.model, summary.model);
    assert_int_equal(back_again.phases.count, 2);
    assert_int_equal(back_again.parts.count, 3);
    assert_true(back_again.parts.item[0].seconds == 50);
    assert_true(isnan(back_again.results.test_loss));
    weft__run_close(&run);
}

/* The tuner's choices for a card are read back unchanged, or not at all. */
static void choices_come_back(void **state) {
    (void)state;
    weft__run run;
    const weft_tile_choice choices[2] = {
        {.what = "product a",
         .chosen = "x",
         .gain = 1.5,
         .key = {7, ~UINT64_C(0)},
         .kept = {0, 1, 255},
         .bytes = 3},
        {.what = "product b", .chosen = "y", .gain = 1, .key = {9, 0}, .bytes = WEFT_CHOICE_BYTES}};
    weft__summary summary = {
        .model = "m", .device = "cuda:0", .status = "done", .choices = choices, .n_choices = 2};
    assert_int_equal(weft__run_create("choices", "x", true, &run), WEFT_OK);
    assert_int_equal(weft__summary_write(&run, &summary), WEFT_OK);
    weft_tile_choice *read;
    int n;
    assert_int_equal(weft__choices_read("choices", &read, &n), WEFT_OK);
    assert_int_equal(n, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(weft__hash_equal(read[i].key, choices[i].key));
        assert_int_equal(read[i].bytes, choices[i].bytes);
        assert_memory_equal(read[i].kept, choices[i].kept, choices[i].bytes);
    }
    weft__free(NULL, read);
    static const char *const damaged[] = {
        "{}", "[", "{\"tuned\": 3}", "{\"tuned\": [4, {\"key\": \"00\"}]}",
        "{\"tuned\": [{\"key\": \"00000000000000000000000000000000\", \"kept\": \"zz\"}]}"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) { /* then no choice is known */
        char *sealed;
        size_t bytes;
        assert_int_equal(weft__run_write(&run, "summary.json", damaged[i]), WEFT_OK);
        assert_int_equal(weft__choices_read("choices", &read, &n), WEFT_ERR_FORMAT);
        assert_null(read);
        assert_int_equal(n, 0);
        assert_int_equal(weft__seal(NULL, damaged[i], strlen(damaged[i]), &sealed, &bytes), WEFT_OK);
        assert_int_equal(weft__run_write(&run, "summary.json", sealed), WEFT_OK);
        if (weft__choices_read("choices", &read, &n) != WEFT_ERR_FORMAT) assert_true(i >= 2);
        assert_int_equal(n, 0);
        weft__free(NULL, read);
        weft__free(NULL, sealed);
    }
    /* Choices go to the device's library unchecked, so one changed bit must make them invalid. */
    weft_bytes bytes;
    assert_int_equal(weft__summary_write(&run, &summary), WEFT_OK);
    assert_int_equal(weft_read_file(NULL, "choices/summary.json", 0, &bytes), WEFT_OK);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 1;
        assert_int_equal(weft_write_file(NULL, "choices/summary.json", bytes.data, bytes.size), WEFT_OK);
        assert_int_equal(weft__choices_read("choices", &read, &n), WEFT_ERR_FORMAT);
        assert_int_equal(n, 0);
        bytes.data[i] ^= 1;
    }
    weft_bytes_free(NULL, &bytes);
    assert_int_equal(unlink("choices/summary.json"), 0);
    assert_int_equal(weft__choices_read("choices", &read, &n), WEFT_OK);
    assert_int_equal(n, 0);
    weft__free(NULL, read);
    weft__run_close(&run);
}

static size_t events_until(const weft_bytes *bytes, size_t size, uint64_t step) {
    size_t end = 0;
    assert_int_equal(weft__events_until(bytes->data, size, step, &end), WEFT_OK);
    return end;
}

/* Records are complete up to the given step, and a torn record is left out. */
static void events_are_cut_between_records(void **state) {
    (void)state;
    weft__run run;
    weft_bytes bytes;
    assert_int_equal(weft__run_create("ev", "x", true, &run), WEFT_OK);
    log_steps(&run, 1, 12);
    assert_int_equal(weft_read_file(NULL, "ev/" WEFT__EVENTS_FILE, 0, &bytes), WEFT_OK);
    assert_non_null(memmem(bytes.data, 64, "brain.Event:2", 13));
    static const uint8_t head[] = {24, 0, 0,    0,    0,    0,
                                   0,  0, 0xa3, 0x7f, 0x4b, 0x22}; /* length, masked CRC-32C */
    assert_memory_equal(bytes.data, head, sizeof head);
    assert_int_equal(events_until(&bytes, bytes.size, 12), bytes.size);
    size_t all = bytes.size, ten = events_until(&bytes, all, 10), torn = all - 1;
    assert_true(ten < all);
    assert_true(events_until(&bytes, torn, 12) < torn);
    assert_true(events_until(&bytes, torn, 12) > ten);
    for (size_t bit = 0; bit < 8 * (all - ten); bit++) { /* checksums cover every byte of a record */
        bytes.data[ten + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(events_until(&bytes, all, 12) < all);
        bytes.data[ten + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    weft_bytes_free(NULL, &bytes);
    assert_int_equal(weft__run_truncate(&run, 10), WEFT_OK);
    assert_int_equal(weft_read_file(NULL, "ev/" WEFT__EVENTS_FILE, 0, &bytes), WEFT_OK);
    assert_int_equal(bytes.size, ten);
    weft_bytes_free(NULL, &bytes);
    weft__run_close(&run);
}

/* A damaged line is left out and reported. The lines around it are kept, also after truncating. */
static void damaged_lines_are_left_out(void **state) {
    (void)state;
    weft__run run;
    weft__history history;
    weft__summary summary = {.model = "m", .device = "cpu", .status = "running"};
    char text[WEFT__DAMAGE_TEXT];
    assert_int_equal(weft__run_create("bad", "x", true, &run), WEFT_OK);
    log_steps(&run, 1, 2);
    assert_int_equal(write(run.metrics, "nonsense\n", 9), 9);
    assert_int_equal(write(run.csv, "nonsense\n", 9), 9);
    assert_int_equal(write(run.log, "nonsense\n", 9), 9);
    log_steps(&run, 4, 9);
    for (int cut = 0; cut < 2; cut++) {
        assert_int_equal(weft__history_read("bad", &history), WEFT_OK);
        assert_int_equal(history.count, cut ? 4 : 8);
        assert_int_equal(history.lines[2].step, 4);
        assert_int_equal(history.damaged, 1);
        assert_int_equal(history.first_damaged, 3);
        assert_non_null(strstr(weft__history_damage(&history, text), "metrics.jsonl:3 is damaged: "));
        weft__history_free(&history);
        assert_int_equal(weft__run_truncate(&run, 5), WEFT_OK);
    }
    assert_int_equal(weft__summary_write(&run, &summary), WEFT_OK);
    assert_int_equal(weft__report_write("bad"), WEFT_OK);
    char *html = slurp("bad/report.html"), *csv = slurp("bad/metrics.csv"), *log = slurp("bad/log.txt");
    assert_non_null(strstr(html, "metrics.jsonl:3 is damaged"));
    assert_non_null(strstr(csv, "\n5,"));
    assert_null(strstr(csv, "\n6,"));
    assert_non_null(strstr(log, " step 5: "));
    assert_null(strstr(log, " step 6: "));
    free(html);
    free(csv);
    free(log);
    assert_int_equal(write(run.metrics, "nonsense\n", 9), 9); /* a damaged last line is removed */
    assert_int_equal(weft__run_truncate(&run, 2), WEFT_OK);
    assert_int_equal(weft__history_read("bad", &history), WEFT_OK);
    assert_int_equal(history.damaged, 0);
    assert_string_equal(weft__history_damage(&history, text), "");
    weft__history_free(&history);
    weft__run_close(&run);
}

static void numbers_are_short_and_exact(void **state) {
    (void)state;
    char text[WEFT__NUMBER_TEXT];
    assert_string_equal(weft__number_text((double)0.1f, text), "0.1");
    assert_string_equal(weft__number_text(0.1, text), "0.1");
    assert_string_equal(weft__number_text(1.0 / 3.0, text), "0.3333333333333333");
    assert_string_equal(weft__number_text((double)16777216.0f, text), "16777216");
    assert_string_equal(weft__number_text(0, text), "0");
    assert_string_equal(weft__number_text(20, text), "20");
    assert_string_equal(weft__number_text(-3e6, text), "-3000000");
    assert_string_equal(weft__number_text(1e300, text), "1e+300");
}

/* A pipe in the place of a file, with and without a process at its other end, is refused at once, by name. */
static void pipes_in_a_run_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"metrics.jsonl", "metrics.csv", "log.txt", WEFT__EVENTS_FILE};
    char path[4096];
    weft__run run;
    alarm(20); /* ends the test if a call blocks */
    assert_int_equal(weft__run_create("piped", "gpt", true, &run), WEFT_OK);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: classification\n"), WEFT_OK);
    weft__run_close(&run);
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        assert_true(weft__join(path, sizeof path, "piped", names[i / 2]));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        const int reader = i % 2 ? open(path, O_RDONLY | O_NONBLOCK) : -1;
        assert_int_equal(weft__run_open("piped", true, &run), WEFT_ERR_IO);
        assert_non_null(strstr(weft_last_error(NULL), names[i / 2]));
        assert_non_null(strstr(weft_last_error(NULL), "not a regular file"));
        if (reader >= 0) close(reader);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(weft__run_open("piped", true, &run), WEFT_OK);
        weft__run_close(&run);
    }
    assert_int_equal(unlink("piped/lock"), 0);
    assert_int_equal(mkfifo("piped/lock", 0600), 0);
    assert_false(weft_run_lock_held("piped"));
    assert_int_not_equal(weft__run_open("piped", true, &run), WEFT_OK);
    alarm(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_never_used_twice, enter, leave),
        cmocka_unit_test_setup_teardown(a_run_is_not_overwritten_nor_shared, enter, leave),
        cmocka_unit_test_setup_teardown(lines_read_back, enter, leave),
        cmocka_unit_test_setup_teardown(every_metric_is_read_back_and_documented, enter, leave),
        cmocka_unit_test_setup_teardown(cutting_back_then_going_on_is_as_if_unbroken, enter, leave),
        cmocka_unit_test_setup_teardown(report_is_whole, enter, leave),
        cmocka_unit_test_setup_teardown(choices_come_back, enter, leave),
        cmocka_unit_test_setup_teardown(events_are_cut_between_records, enter, leave),
        cmocka_unit_test_setup_teardown(damaged_lines_are_left_out, enter, leave),
        cmocka_unit_test_setup_teardown(pipes_in_a_run_are_refused, enter, leave),
        cmocka_unit_test(numbers_are_short_and_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
