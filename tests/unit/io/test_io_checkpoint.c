/* Checkpoints: reading back what was saved; every changed bit, truncation or addition is found; a save that
 * fails or is killed at any point leaves the earlier checkpoint intact; listing, falling back to an older
 * one, removing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <weft/io.h>

#include "base/base.h"
#include "unit/failing_alloc.h"
#include "io/checkpoint.h"
#include "io/seal.h"
#include "io_faulty.h"
#include "unit/io_scratch.h"

static const int64_t shape_w[] = {4, 8}, shape_b[] = {5};
static float weight[32];
static const uint16_t bias[5] = {1, 2, 3, 4, 5};
static const int64_t count_value = 77;

static const weft_entry model[] = {
    {.name = "layers.0.weight", .dtype = WEFT_F32, .rank = 2, .shape = shape_w, .data = weight},
    {.name = "layers.0.bias", .dtype = WEFT_BF16, .rank = 1, .shape = shape_b, .data = bias},
};
static const weft_entry optimizer[] = {
    {.name = "layers.0.weight.m", .dtype = WEFT_F32, .rank = 2, .shape = shape_w, .data = weight},
    {.name = "steps", .dtype = WEFT_I64, .data = &count_value},
};

static weft_status save_through(const weft__io *io, const char *run, uint64_t step) {
    const weft_checkpoint_state state = {.step = step,
                                         .seed = UINT64_MAX,
                                         .data_position = 12345,
                                         .config_hash = "abc",
                                         .data_hash = "0123456789abcdef0123456789abcdef0123456789abcdef",
                                         .extra = "{\"lr\": 1e-05, \"list\": [1, -2, null]}"};
    for (int i = 0; i < 32; i++) weight[i] = (float)step + (float)i;
    return weft__checkpoint_write(NULL, io, run, &state, model, 2, optimizer, 2);
}

static weft_status save(const char *run, uint64_t step) { return save_through(NULL, run, step); }

/* Makes a new run folder of that name. */
static const char *run_folder(const char *name) {
    const char *run = in_scratch(name);
    remove_all(run);
    assert_int_equal(weft_make_folder(NULL, run), WEFT_OK);
    return run;
}

/* ---- saving and opening ---- */

static void test_round_trip(void **state) {
    (void)state;
    const char *run = run_folder("round");
    assert_int_equal(save(run, 7), WEFT_OK);
    weft_checkpoint *c;
    assert_int_equal(weft_checkpoint_open(NULL, in_scratch("round/checkpoints/step-7"), &c), WEFT_OK);
    const weft_checkpoint_state *s = weft_checkpoint_state_of(c);
    assert_int_equal(s->step, 7);
    assert_true(s->seed == UINT64_MAX);
    assert_int_equal(s->data_position, 12345);
    assert_int_equal(s->ranks, 1);
    assert_string_equal(s->config_hash, "abc");
    assert_int_equal(strlen(s->data_hash), 48);
    assert_non_null(strstr(s->extra, "\"list\":[1,-2,null]"));
    size_t i;
    float got[32];
    assert_true(weft_safetensors_find(weft_checkpoint_model(c), "layers.0.weight", &i));
    assert_int_equal(weft_safetensors_read(weft_checkpoint_model(c), i, 0, got, sizeof got), WEFT_OK);
    assert_memory_equal(got, weight, sizeof got);
    int64_t steps = 0;
    assert_true(weft_safetensors_find(weft_checkpoint_optimizer(c), "steps", &i));
    assert_int_equal(weft_safetensors_read(weft_checkpoint_optimizer(c), i, 0, &steps, 8), WEFT_OK);
    assert_int_equal(steps, 77);
    weft_checkpoint_close(c);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("round/checkpoints/step-7")), WEFT_OK);
}

static void test_large_and_empty(void **state) {
    (void)state;
    const char *run = run_folder("large");
    const int64_t shape[] = {3, 1 << 18};
    const size_t bytes = 3u << 20; /* 3 MiB of f32: several blocks */
    float *big = malloc(bytes + 4);
    assert_non_null(big);
    for (size_t i = 0; i < bytes / 4; i++) big[i] = (float)i;
    const weft_entry e = {.name = "big", .dtype = WEFT_F32, .rank = 2, .shape = shape, .data = big};
    const weft_checkpoint_state s = {.step = 0};
    assert_int_equal(weft_checkpoint_write(NULL, run, &s, &e, 1, NULL, 0), WEFT_OK);
    const char *dir = in_scratch("large/checkpoints/step-0");
    weft_checkpoint *c;
    assert_int_equal(weft_checkpoint_open(NULL, dir, &c), WEFT_OK);
    assert_int_equal(weft_safetensors_count(weft_checkpoint_optimizer(c)), 0);
    assert_string_equal(weft_checkpoint_state_of(c)->extra, "{}");
    weft_checkpoint_close(c);
    free(big);
    size_t n = 0;
    const char *path = in_scratch("large/checkpoints/step-0/model.safetensors");
    char *data = slurp(path, &n);
    data[n - 1] ^= 1;
    assert_true(spill(path, data, n));
    free(data);
    assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "'big'"));
}

static void test_refused_state(void **state) {
    (void)state;
    const char *run = run_folder("refused");
    const weft_checkpoint_state bad[] = {
        {.step = UINT64_MAX}, {.data_position = UINT64_MAX}, {.extra = "[]"}, {.extra = "{\"a\":1,\"a\":2}"},
        {.extra = "{"},       {.config_hash = "\xff"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft_checkpoint_write(NULL, run, &bad[i], model, 2, NULL, 0), WEFT_ERR_ARGUMENT);
    size_t count = 9;
    assert_int_equal(weft_checkpoint_list(NULL, run, NULL, 0, &count), WEFT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(count_hidden(in_scratch("refused/checkpoints")), 0);
}

/* The same state gives the same bytes, whenever and wherever it is saved. */
static void test_deterministic(void **state) {
    (void)state;
    const char *one = run_folder("same-1"), *two = run_folder("same-2");
    assert_int_equal(save(one, 3), WEFT_OK);
    assert_int_equal(save(two, 3), WEFT_OK);
    const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json"};
    for (int i = 0; i < 3; i++) {
        char path[9000];
        size_t n1 = 0, n2 = 0;
        snprintf(path, sizeof path, "%s/checkpoints/step-3/%s", one, names[i]);
        char *x = slurp(path, &n1);
        snprintf(path, sizeof path, "%s/checkpoints/step-3/%s", two, names[i]);
        char *y = slurp(path, &n2);
        assert_int_equal(n1, n2);
        assert_memory_equal(x, y, n1);
        free(x);
        free(y);
    }
}

/* ---- damage ---- */

/* The checkpoint is refused, and the message names the file and an array or field in it. */
static void assert_refused(const char *dir, const char *file, const char *what, size_t at) {
    weft_status status = weft_checkpoint_verify(NULL, dir);
    const char *message = weft_last_error(NULL);
    static const char *const named[] = {"tensor '", "header: ", "size: ", "checksum: "};
    bool field = false;
    for (size_t i = 0; i < 4; i++) field |= strstr(message, named[i]) != NULL;
    if (status != WEFT_ERR_FORMAT || !strstr(message, file) || !field)
        fail_msg("%s: %s %zu: status %s, message '%s'", file, what, at, weft_status_name(status), message);
}

static void test_every_bit_cut_and_byte(void **state) {
    (void)state;
    (void)run_folder("bits");
    assert_int_equal(save(in_scratch("bits"), 1), WEFT_OK);
    char dir[8300];
    snprintf(dir, sizeof dir, "%s", in_scratch("bits/checkpoints/step-1"));
    const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json"};
    size_t flips = 0, cuts = 0, total = 0;
    for (int k = 0; k < 3; k++) {
        char path[8400];
        size_t n = 0;
        snprintf(path, sizeof path, "%s/%s", dir, names[k]);
        char *data = slurp(path, &n);
        assert_non_null(data);
        total += n;
        for (size_t bit = 0; bit < 8 * n; bit++, flips++) {
            data[bit / 8] ^= (char)(1 << bit % 8);
            assert_true(spill(path, data, n));
            assert_refused(dir, names[k], "bit", bit);
            data[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < n; cut++, cuts++) {
            assert_true(spill(path, data, cut));
            assert_refused(dir, names[k], "cut", cut);
        }
        for (int extra = 0; extra < 256; extra++) {
            data[n] = (char)extra;
            assert_true(spill(path, data, n + 1));
            assert_refused(dir, names[k], "appended byte", (size_t)extra);
        }
        assert_true(spill(path, data, n));
        free(data);
        assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_OK);
    }
    print_message("checkpoint of %zu bytes: %zu bits, %zu cuts, 768 appended bytes: all refused\n", total,
                  flips, cuts);
    assert_true(total >= 2048);
}

/* Replaces bytes by other bytes, also white space by other white space, and swaps ranges of bytes between
 * files. */
static void test_other_damage(void **state) {
    (void)state;
    (void)run_folder("other");
    assert_int_equal(save(in_scratch("other"), 1), WEFT_OK);
    char dir[8300], path[8400], second[8400];
    snprintf(dir, sizeof dir, "%s", in_scratch("other/checkpoints/step-1"));
    snprintf(path, sizeof path, "%s/state.json", dir);
    size_t n = 0, m = 0;
    char *data = slurp(path, &n);
    for (size_t i = 0; i < n; i++) {
        const char old = data[i], others[] = {' ', '\t', '\n', '\r', '0', '"', 0};
        for (size_t k = 0; k < sizeof others; k++) {
            if (others[k] == old) continue;
            data[i] = others[k];
            assert_true(spill(path, data, n));
            assert_refused(dir, "state.json", "byte", i);
        }
        data[i] = old;
    }
    assert_true(spill(path, data, n));
    free(data);
    assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_OK);

    /* one file replaced by the other, one missing, one from another checkpoint */
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    snprintf(second, sizeof second, "%s/optimizer.safetensors", dir);
    data = slurp(path, &n);
    char *foreign = slurp(second, &m);
    assert_true(spill(path, foreign, m));
    assert_refused(dir, "model.safetensors", "swapped", 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "model.safetensors"));
    assert_int_equal(symlink("optimizer.safetensors", path), 0);
    assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_ERR_FORMAT);
    assert_int_equal(unlink(path), 0);
    assert_true(spill(path, data, n));
    assert_int_equal(weft_checkpoint_verify(NULL, dir), WEFT_OK);
    free(data);
    free(foreign);
    assert_int_equal(rename(dir, in_scratch("other/checkpoints/step-2")), 0);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("other/checkpoints/step-2")), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "step: 1"));
    assert_int_equal(rename(in_scratch("other/checkpoints/step-2"), in_scratch("other/best")), 0);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("other/best")), WEFT_OK);
}

/* A file in a newer format, with a valid checksum, is reported as such. */
static void test_newer_format(void **state) {
    (void)state;
    (void)run_folder("newer");
    assert_int_equal(save(in_scratch("newer"), 1), WEFT_OK);
    const char *path = in_scratch("newer/checkpoints/step-1/state.json");
    size_t n = 0, sealed = 0;
    char *data = slurp(path, &n), *text = NULL;
    data[n] = 0;
    char *format = strstr(data, "\"format\": 1"), *end = strstr(data, ",\n \"checksum\"");
    assert_non_null(format);
    assert_non_null(end);
    format[10] = '3';
    memcpy(end, "\n}\n", 4);
    assert_int_equal(weft__seal(NULL, data, strlen(data), &text, &sealed), WEFT_OK);
    assert_true(spill(path, text, sealed));
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("newer/checkpoints/step-1")),
                     WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(NULL), "format: 3"));
    weft__free(NULL, text);
    free(data);
}

/* ---- saves that fail or are killed ---- */

static void test_every_call_fails(void **state) {
    (void)state;
    const int errors[] = {EIO, ENOSPC};
    const char *run = run_folder("fails");
    assert_int_equal(save(run, 1), WEFT_OK);
    for (int e = 0; e < 2; e++) {
        bool more = true;
        for (int at = 1; more; at++) {
            faulty f = {.at = at, .error = errors[e]};
            weft__io io = faulty_io(&f);
            weft_status status = save_through(&io, in_scratch("fails"), 2);
            more = f.calls >= at;
            weft_checkpoint *c;
            assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch("fails"), true, &c), WEFT_OK);
            uint64_t step = weft_checkpoint_state_of(c)->step;
            weft_checkpoint_close(c);
            assert_true(step == 1 || step == 2);
            if (!more) assert_int_equal(status, WEFT_OK);
            if (status == WEFT_OK) assert_int_equal(step, 2);
            remove_all(in_scratch("fails/checkpoints/step-2"));
            (void)weft__remove_stale(NULL, in_scratch("fails/checkpoints"));
            assert_int_equal(count_hidden(in_scratch("fails/checkpoints")), 0);
        }
    }
}

/* A disk or memory that flips a bit: the save must find it before it publishes the checkpoint and removes
 * the older one. */
static void test_every_write_lies(void **state) {
    (void)state;
    weft_checkpoint *c;
    int at = 1;
    (void)run_folder("lies");
    assert_int_equal(save(in_scratch("lies"), 1), WEFT_OK);
    for (;; at++) {
        faulty f = {.at = at, .lies = true};
        weft__io io = faulty_io(&f);
        const weft_status status = save_through(&io, in_scratch("lies"), 1);
        if (f.calls < at) break;
        if (status != WEFT_ERR_IO || !strstr(weft_last_error(NULL), "do not read back"))
            fail_msg("write %d: %s, %s", at, weft_status_name(status), weft_last_error(NULL));
        assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch("lies"), true, &c), WEFT_OK);
        weft_checkpoint_close(c);
        assert_int_equal(count_hidden(in_scratch("lies/checkpoints")), 0);
    }
    assert_true(at > 20);
    const char *path = in_scratch("lies/one.safetensors");
    assert_int_equal(weft_safetensors_write(NULL, path, model, 1, NULL, 0), WEFT_OK);
    for (at = 1;; at++) {
        weft_safetensors *one;
        faulty f = {.at = at, .lies = true};
        weft__io io = faulty_io(&f);
        const weft_status status = weft__safetensors_write(NULL, &io, path, model, 2, NULL, 0);
        if (f.calls < at) break;
        assert_int_equal(status, WEFT_ERR_IO);
        assert_non_null(strstr(weft_last_error(NULL), "do not read back"));
        assert_int_equal(weft_safetensors_open(NULL, path, &one), WEFT_OK);
        assert_int_equal(weft_safetensors_count(one), 1);
        weft_safetensors_close(one);
    }
    assert_true(at > 4);
}

static void test_killed_at_every_call(void **state) {
    (void)state;
    int killed = 0;
    (void)run_folder("killed");
    assert_int_equal(save(in_scratch("killed"), 1), WEFT_OK);
    for (int at = 1;; at++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            faulty f = {.at = at};
            weft__io io = faulty_io(&f);
            _exit(save_through(&io, in_scratch("killed"), 2) == WEFT_OK ? 0 : 1);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        weft_checkpoint *c;
        assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch("killed"), true, &c), WEFT_OK);
        weft_checkpoint_close(c);
        assert_true(count_hidden(in_scratch("killed/checkpoints")) <= 1);
        weft_run_lock *lock;
        assert_int_equal(weft_run_lock_take(NULL, in_scratch("killed"), &lock), WEFT_OK);
        weft_run_lock_release(lock);
        assert_int_equal(count_hidden(in_scratch("killed/checkpoints")), 0);
        if (!WIFSIGNALED(result)) {
            assert_int_equal(WEXITSTATUS(result), 0);
            break;
        }
        killed++;
        remove_all(in_scratch("killed/checkpoints/step-2"));
    }
    print_message("killed at %d calls of a save\n", killed);
    assert_true(killed >= 15);
}

/* ---- the checkpoints of a run ---- */

static void note(void *user, weft_log_level level, const char *message) {
    if (level == WEFT_LOG_WARNING) strncat(user, message, 1500);
}

static void test_fall_back(void **state) {
    (void)state;
    char log[8192] = "";
    weft_context ctx = {.caller.log = note, .caller.log_user = log};
    weft_checkpoint *c;
    (void)run_folder("back");
    assert_int_equal(weft_checkpoint_open_newest(&ctx, in_scratch("back"), false, &c), WEFT_ERR_STATE);
    for (uint64_t step = 8; step <= 10; step++) assert_int_equal(save(in_scratch("back"), step), WEFT_OK);
    assert_int_equal(truncate(in_scratch("back/checkpoints/step-10/model.safetensors"), 300), 0);
    assert_int_equal(weft_checkpoint_open_newest(&ctx, in_scratch("back"), true, &c), WEFT_ERR_FORMAT);
    assert_string_equal(log, "");
    assert_int_equal(weft_checkpoint_open_newest(&ctx, in_scratch("back"), false, &c), WEFT_OK);
    assert_int_equal(weft_checkpoint_state_of(c)->step, 9);
    assert_non_null(strstr(log, "step-10"));
    assert_non_null(strstr(log, "layers.0.weight"));
    weft_checkpoint_close(c);
    for (int step = 8; step <= 9; step++) {
        char path[64];
        snprintf(path, sizeof path, "back/checkpoints/step-%d/state.json", step);
        assert_int_equal(truncate(in_scratch(path), 10), 0);
    }
    assert_int_equal(weft_checkpoint_open_newest(&ctx, in_scratch("back"), false, &c), WEFT_ERR_FORMAT);
    assert_null(c);
    assert_non_null(strstr(weft_last_error(&ctx), "step-10"));
}

/* Allows files again as soon as the newest checkpoint was given up. */
static struct rlimit usual;

static void relent(void *user, weft_log_level level, const char *message) {
    (void)user, (void)level, (void)message;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

/* Too many open files do not count as damage, so no older checkpoint is taken. Running out of memory does
 * not either, so the best checkpoint is not pruned. */
static void test_no_damage(void **state) {
    (void)state;
    weft_context noisy = {.caller.log = relent};
    weft_checkpoint *c = NULL;
    char run[8300], dir[8400];
    snprintf(run, sizeof run, "%s", run_folder("whole"));
    snprintf(dir, sizeof dir, "%s", in_scratch("whole/checkpoints/step-2"));
    for (uint64_t step = 1; step <= 2; step++) assert_int_equal(save(run, step), WEFT_OK);
    assert_int_equal(weft_checkpoint_mark_best(NULL, run, 1), WEFT_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    int free_fd = open(dir, O_RDONLY);
    assert_true(free_fd >= 0);
    assert_int_equal(close(free_fd), 0);
    int whole = 0;
    for (int more = 1; more <= 4; more++) { /* the folder and its files are opened one after the other */
        const struct rlimit few = {.rlim_cur = (rlim_t)(free_fd + more), .rlim_max = usual.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        const weft_status status = weft_checkpoint_open_newest(&noisy, run, false, &c);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        if (status == WEFT_OK)
            assert_int_equal(weft_checkpoint_state_of(c)->step, 2);
        else
            assert_int_equal(status, WEFT_ERR_IO);
        whole += status == WEFT_OK;
        weft_checkpoint_close(c);
    }
    assert_true(whole >= 1 && whole <= 3);
    assert_int_equal(save(run, 3), WEFT_OK);
    failing_alloc f;
    for (f.fail_at = 1;; f.fail_at++) {
        f.calls = f.live = 0;
        weft_context ctx = {.caller.alloc = failing_realloc, .caller.alloc_user = &f};
        const weft_status status = weft_checkpoint_prune(&ctx, run, 1);
        assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("whole/checkpoints/step-1")), WEFT_OK);
        if (status == WEFT_OK) break;
        assert_int_equal(status, WEFT_ERR_OOM);
    }
    assert_true(f.fail_at > 4);
}

/* A run folder that was removed is not made again. */
static void test_no_run_folder(void **state) {
    (void)state;
    assert_int_equal(save(in_scratch("gone"), 1), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "gone/checkpoints: No such file"));
    assert_int_not_equal(access(in_scratch("gone"), F_OK), 0);
}

static void test_list_and_prune(void **state) {
    (void)state;
    uint64_t steps[8];
    size_t count = 1;
    (void)run_folder("list");
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("list"), steps, 8, &count), WEFT_OK);
    assert_int_equal(count, 0);
    const uint64_t order[] = {100, 9, 20, 1000, 0};
    for (int i = 0; i < 5; i++) assert_int_equal(save(in_scratch("list"), order[i]), WEFT_OK);
    assert_int_equal(weft_make_folder(NULL, in_scratch("list/checkpoints/step-007")), WEFT_OK);
    assert_int_equal(weft_make_folder(NULL, in_scratch("list/checkpoints/step-")), WEFT_OK);
    assert_int_equal(weft_make_folder(NULL, in_scratch("list/checkpoints/step-99999999999999999999")),
                     WEFT_OK);
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("list"), steps, 8, &count), WEFT_OK);
    const uint64_t sorted[] = {1000, 100, 20, 9, 0};
    assert_int_equal(count, 5);
    assert_memory_equal(steps, sorted, sizeof sorted);
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("list"), steps, 2, &count), WEFT_OK);
    assert_int_equal(count, 5);
    assert_memory_equal(steps, sorted, 16);
    assert_int_equal(save(in_scratch("list"), 100), WEFT_OK); /* replaced */
    assert_int_equal(weft_checkpoint_prune(NULL, in_scratch("list"), 0), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_checkpoint_prune(NULL, in_scratch("list"), 2), WEFT_OK);
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("list"), steps, 8, &count), WEFT_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(steps, sorted, 16);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("list/checkpoints/step-100")), WEFT_OK);
    assert_int_equal(count_hidden(in_scratch("list/checkpoints")), 0);
}

/* Nothing is written, marked or removed behind a symbolic link in a run. Reading may follow a link. */
static void test_linked_checkpoints(void **state) {
    (void)state;
    uint64_t steps[8];
    size_t count;
    (void)run_folder("mine");
    for (uint64_t step = 1; step <= 3; step++) assert_int_equal(save(in_scratch("mine"), step), WEFT_OK);
    (void)run_folder("foreign");
    assert_true(spill(in_scratch("mine/checkpoints/.a.77.0123456789abcdef.tmp"), "x", 1));
    assert_int_equal(symlink("../mine/checkpoints", in_scratch("foreign/checkpoints")), 0);
    const char *run = in_scratch("foreign"), *const link = "foreign/checkpoints is a symbolic link";
    weft_run_lock *lock;
    assert_int_equal(weft_run_lock_take(NULL, run, &lock), WEFT_OK);
    assert_int_equal(save(run, 4), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), link));
    assert_int_equal(weft_checkpoint_mark_best(NULL, run, 3), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), link));
    assert_int_equal(weft_checkpoint_prune(NULL, run, 1), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), link));
    weft_run_lock_release(lock);
    assert_int_equal(weft_checkpoint_list(NULL, run, steps, 8, &count), WEFT_OK);
    assert_int_equal(count, 3);
    assert_int_equal(count_hidden(in_scratch("mine/checkpoints")), 1);
}

/* A checkpoint that cannot be removed does not stop the removal of others. A checkpoint newer than the run
 * does not count. */
static void test_prune_goes_on(void **state) {
    (void)state;
    uint64_t steps[8];
    size_t count;
    (void)run_folder("prune");
    for (uint64_t step = 1; step <= 6; step++) assert_int_equal(save(in_scratch("prune"), step), WEFT_OK);
    assert_int_equal(weft__checkpoint_prune(NULL, in_scratch("prune"), 2, 5), WEFT_OK);
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("prune"), steps, 8, &count), WEFT_OK);
    assert_true(count == 3 && steps[0] == 6 && steps[1] == 5 && steps[2] == 4);
    assert_int_equal(unlink(in_scratch("prune/checkpoints/step-5/model.safetensors")), 0);
    assert_int_equal(weft_make_folder(NULL, in_scratch("prune/checkpoints/step-5/model.safetensors/2/3/4/5")),
                     WEFT_OK);
    assert_int_equal(weft_checkpoint_prune(NULL, in_scratch("prune"), 1), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "checkpoints/step-5: Directory not empty"));
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("prune"), steps, 8, &count), WEFT_OK);
    assert_true(count == 1 && steps[0] == 6);
}

static void test_the_best_is_spared(void **state) {
    (void)state;
    char run[512];
    uint64_t best = 7, steps[8];
    size_t count;
    weft_checkpoint *c;
    snprintf(run, sizeof run, "%s", run_folder("best"));
    assert_false(weft_checkpoint_best(run, &best));
    assert_int_equal(weft_checkpoint_open_best(NULL, run, &c), WEFT_ERR_STATE);
    for (uint64_t step = 1; step <= 4; step++) {
        assert_int_equal(save(run, step), WEFT_OK);
        if (step <= 2) assert_int_equal(weft_checkpoint_mark_best(NULL, run, step), WEFT_OK);
        assert_int_equal(weft_checkpoint_prune(NULL, run, 1), WEFT_OK);
    }
    assert_int_equal(weft_checkpoint_list(NULL, run, steps, 8, &count), WEFT_OK);
    assert_int_equal(count, 2);
    assert_true(steps[0] == 4 && steps[1] == 2);
    assert_true(weft_checkpoint_best(run, &best) && best == 2);
    assert_int_equal(weft_checkpoint_open_best(NULL, run, &c), WEFT_OK);
    assert_int_equal(weft_checkpoint_state_of(c)->step, 2);
    weft_checkpoint_close(c);
    assert_int_equal(weft_checkpoint_mark_best(NULL, run, 3), WEFT_ERR_STATE); /* removed in the meantime */
    assert_true(weft_checkpoint_best(run, &best) && best == 2);
    assert_int_equal(count_hidden(in_scratch("best/checkpoints")), 0);
    assert_int_equal(weft_checkpoint_mark_best(NULL, NULL, 3), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_checkpoint_open_best(NULL, NULL, &c), WEFT_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_large_and_empty),
        cmocka_unit_test(test_refused_state),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_every_bit_cut_and_byte),
        cmocka_unit_test(test_other_damage),
        cmocka_unit_test(test_newer_format),
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_every_write_lies),
        cmocka_unit_test(test_killed_at_every_call),
        cmocka_unit_test(test_fall_back),
        cmocka_unit_test(test_no_damage),
        cmocka_unit_test(test_no_run_folder),
        cmocka_unit_test(test_list_and_prune),
        cmocka_unit_test(test_linked_checkpoints),
        cmocka_unit_test(test_prune_goes_on),
        cmocka_unit_test(test_the_best_is_spared),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
