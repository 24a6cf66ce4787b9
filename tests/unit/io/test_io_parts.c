/* Checkpoints that several processes write, on ranks that are threads: any reader sees whole arrays; damaged
 * files and parts that do not fit together are found; if a rank fails or does not come, nothing is published,
 * and all ranks say the same. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/checkpoint.h"
#include "io/seal.h"
#include "io_faulty.h"
#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "unit/process/threads.h"

/* ---- what is saved ---- */

enum { M = 32, V = 7 }; /* elements of two arrays */

static const int64_t shape_m[] = {4, 8}, shape_v[] = {V};
static float m[M];
static uint16_t v[V];
static const int64_t steps = 77;

/* What the ranks do. Rank r has the elements cuts[r]..cuts[r + 1] of m. */
typedef struct saving {
    char run[8192];
    uint64_t step;
    const int64_t *cuts;
    int64_t overlap;                /* rank 1 begins so many elements early; -1: it leaves one out */
    int fails;                      /* the rank that misbehaves; -1: none */
    faulty *fault;                  /* its I/O, or NULL */
    failing_alloc *memory;          /* its memory, or NULL */
    weft_status before;             /* what it did before has failed */
    bool absent;                    /* it does not come */
    weft_status status[RANKS_MOST]; /* what each rank got */
    char error[RANKS_MOST][WEFT_ERROR_SIZE];
} saving;

static void save_rank(weft_process_group *g, void *user) {
    saving *s = user;
    const int rank = weft_process_group_rank(g);
    const bool fails = rank == s->fails;
    const int64_t from = s->cuts[rank] - (rank == 1 ? s->overlap : 0), n = s->cuts[rank + 1] - from;
    const weft_entry_part place = {from, 2, shape_m};
    const weft_entry entries[] = {
        {.name = "m", .dtype = WEFT_F32, .rank = 1, .shape = &n, .data = m + from, .part = &place},
        {.name = "v", .dtype = WEFT_BF16, .rank = 1, .shape = shape_v, .data = v},
        {.name = "steps", .dtype = WEFT_I64, .data = &steps},
    };
    const weft_entry model = {.name = "w", .dtype = WEFT_F32, .rank = 2, .shape = shape_m, .data = m};
    const weft_checkpoint_state state = {.step = s->step, .ranks = (uint32_t)weft_process_group_size(g)};
    weft_context ctx = {.caller.alloc = failing_realloc, .caller.alloc_user = s->memory};
    weft__io io;
    if (fails && s->absent) return;
    if (fails && s->fault) io = faulty_io(s->fault);
    if (fails && s->before) weft__fail(NULL, s->before, "the state cannot be read");
    s->status[rank] = weft__checkpoint_write_group(
        fails && s->memory ? &ctx : NULL, fails && s->fault ? &io : NULL, g, fails ? s->before : WEFT_OK,
        rank ? NULL : s->run, rank ? NULL : &state, rank ? NULL : &model, rank == 0, entries, rank ? 1 : 3);
    snprintf(s->error[rank], WEFT_ERROR_SIZE, "%s", weft_last_error(NULL));
}

static const int64_t cuts4[] = {0, 9, 11, 30, M}, cuts2[] = {0, 5, M}, none2[] = {0, M, M};

static saving saving_in(const char *run, uint64_t step, const int64_t *cuts) {
    saving s = {.step = step, .cuts = cuts, .fails = -1};
    snprintf(s.run, sizeof s.run, "%s", in_scratch(run));
    for (int i = 0; i < M; i++) m[i] = (float)step + (float)i;
    for (int i = 0; i < V; i++) v[i] = (uint16_t)(7 * i);
    return s;
}

/* Saves, and checks that all ranks got the same. Returns what they got. */
static weft_status save_in(saving *s, int size) {
    run_threads(size, s->absent ? 0.2 : 0, save_rank, s);
    for (int i = 1; i < size && !s->absent; i++) {
        assert_int_equal(s->status[i], s->status[0]);
        if (s->status[0]) assert_string_equal(s->error[i], s->error[0]);
    }
    return s->status[0];
}

static void make_run(const char *name) {
    remove_all(in_scratch(name));
    assert_int_equal(weft_make_folder(NULL, in_scratch(name)), WEFT_OK);
}

static void save_good(const char *run, uint64_t step, int size) {
    saving s = saving_in(run, step, size == 4 ? cuts4 : step == 2 ? none2 : cuts2);
    const weft_status status = save_in(&s, size);
    if (status != WEFT_OK) fail_msg("%s", s.error[0]);
}

/* Checks all arrays of a checkpoint, and each range of one that is divided. */
static void check_arrays(weft_checkpoint *c, uint64_t step) {
    weft_safetensors *o = weft_checkpoint_optimizer(c);
    weft_entry_info info;
    float got[M];
    uint16_t got_v[V];
    int64_t got_steps;
    size_t at;
    assert_int_equal(weft_checkpoint_state_of(c)->step, step);
    assert_int_equal(weft_safetensors_count(o), 3);
    assert_true(weft_safetensors_find(o, "m", &at) && weft_safetensors_entry(o, at, &info));
    assert_true(info.dtype == WEFT_F32 && info.rank == 2 && info.shape[0] == 4 && info.shape[1] == 8 &&
                info.bytes == sizeof got);
    for (size_t from = 0; from <= M; from++)
        for (size_t n = 0; n <= M - from; n++) {
            assert_int_equal(weft_safetensors_read(o, at, 4 * from, got, 4 * n), WEFT_OK);
            for (size_t i = 0; i < n; i++) assert_true(got[i] == (float)step + (float)(from + i));
        }
    assert_int_equal(weft_safetensors_read(o, at, 4, got, sizeof got), WEFT_ERR_INDEX);
    assert_true(weft_safetensors_find(o, "v", &at));
    assert_int_equal(weft_safetensors_read(o, at, 0, got_v, sizeof got_v), WEFT_OK);
    assert_memory_equal(got_v, v, sizeof v);
    assert_true(weft_safetensors_find(o, "steps", &at));
    assert_int_equal(weft_safetensors_read(o, at, 0, &got_steps, sizeof got_steps), WEFT_OK);
    assert_int_equal(got_steps, 77);
}

static void check_newest(const char *run, uint64_t step) {
    weft_checkpoint *c;
    assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch(run), false, &c), WEFT_OK);
    check_arrays(c, step);
    weft_checkpoint_close(c);
}

/* ---- saving and reading ---- */

static void test_whole_arrays(void **state) {
    (void)state;
    uint64_t best;
    size_t count;
    make_run("whole");
    save_good("whole", 1, 4);
    save_good("whole", 2, 2);
    check_newest("whole", 2);
    assert_int_equal(
        access(in_scratch("whole/checkpoints/step-1/optimizer-00004-of-00004.safetensors"), R_OK), 0);
    assert_int_equal(
        access(in_scratch("whole/checkpoints/step-2/optimizer-00003-of-00002.safetensors"), R_OK), -1);
    assert_int_equal(weft_checkpoint_mark_best(NULL, in_scratch("whole"), 1), WEFT_OK);
    save_good("whole", 3, 4);
    save_good("whole", 3, 2); /* replaces all four files */
    check_newest("whole", 3);
    assert_int_equal(
        access(in_scratch("whole/checkpoints/step-3/optimizer-00004-of-00004.safetensors"), R_OK), -1);
    assert_int_equal(weft_checkpoint_prune(NULL, in_scratch("whole"), 1), WEFT_OK);
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("whole"), NULL, 0, &count), WEFT_OK);
    assert_int_equal(count, 2);
    assert_true(weft_checkpoint_best(in_scratch("whole"), &best) && best == 1);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("whole/checkpoints/best")), WEFT_OK);
    assert_int_equal(count_hidden(in_scratch("whole/checkpoints")), 0);
}

/* Only weft_checkpoint_write_group knows what to do with parts. */
static void test_refused_parts(void **state) {
    (void)state;
    const int64_t n = 4;
    const weft_checkpoint_state about = {.step = 1};
    const weft_entry_part bad[] = {
        {29, 2, shape_m}, {-1, 2, shape_m}, {0, 9, shape_m}, {0, 1, NULL}, {0, 0, NULL}};
    weft_entry e = {.name = "m", .dtype = WEFT_F32, .rank = 1, .shape = &n, .data = m, .part = bad};
    make_run("refused");
    assert_int_equal(weft_checkpoint_write(NULL, in_scratch("refused"), &about, NULL, 0, &e, 1),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "weft_checkpoint_write_group"));
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("refused/one"), &e, 1, NULL, 0),
                     WEFT_ERR_ARGUMENT);
    weft__folder *folder;
    weft__manifest_file file;
    weft_arena arena;
    weft__arena_init(&arena, NULL);
    assert_int_equal(weft__checkpoint_begin(NULL, NULL, in_scratch("refused"), 1, &folder), WEFT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e.part = &bad[i];
        assert_int_equal(weft__checkpoint_write_file(&arena, folder, "a", &e, 1, false, &file),
                         WEFT_ERR_ARGUMENT);
    }
    weft__folder_abandon(folder);
    weft__arena_free(&arena);
    assert_int_equal(count_hidden(in_scratch("refused/checkpoints")), 0);
}

/* Ranks that disagree about their parts: what they wrote must not be published. */
static void test_parts_that_do_not_fit(void **state) {
    (void)state;
    const struct {
        int64_t overlap;
        const char *message;
    } cases[] = {
        {2, "tensor 'm': optimizer-00001-of-00004.safetensors and optimizer-00002-of-00004.safetensors both "
            "have its element 9"},
        {-1, "tensor 'm': no file has its elements 11 to 11"}};
    static const int64_t cuts[] = {0, 11, 20, 30, M}, short_cuts[] = {0, 11, 20, 30, M - 1};
    make_run("unfit");
    for (size_t i = 0; i < 2; i++) {
        saving s = saving_in("unfit", 2, cuts);
        s.overlap = cases[i].overlap;
        assert_int_equal(save_in(&s, 4), WEFT_ERR_IO);
        assert_non_null(strstr(s.error[3], cases[i].message));
        assert_int_equal(count_hidden(in_scratch("unfit/checkpoints")), 0);
    }
    saving s = saving_in("unfit", 2, short_cuts);
    assert_int_equal(save_in(&s, 4), WEFT_ERR_IO);
    assert_non_null(strstr(s.error[0], "no file has its elements 31 to 31"));
    size_t count;
    assert_int_equal(weft_checkpoint_list(NULL, in_scratch("unfit"), NULL, 0, &count), WEFT_OK);
    assert_int_equal(count, 0);
}

/* ---- damage ---- */

/* The newest checkpoint is refused with a message that names `what`, and the one before it is taken. */
static void assert_falls_back(const char *what) {
    weft_checkpoint *c;
    assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch("hurt"), true, &c), WEFT_ERR_FORMAT);
    if (!strstr(weft_last_error(NULL), what)) fail_msg("'%s' lacks '%s'", weft_last_error(NULL), what);
    check_newest("hurt", 1);
}

static void test_damaged_files(void **state) {
    (void)state;
    char path[8300];
    size_t n = 0;
    make_run("hurt");
    save_good("hurt", 1, 2);
    save_good("hurt", 2, 4);
    (void)saving_in("hurt", 1, cuts2); /* what check_newest expects */
    for (int k = 1; k <= 4; k++) {
        char name[64];
        snprintf(name, sizeof name, "optimizer-%05d-of-00004.safetensors", k);
        snprintf(path, sizeof path, "%s/%s", in_scratch("hurt/checkpoints/step-2"), name);
        char *data = slurp(path, &n);
        assert_non_null(data);
        for (size_t byte = 0; byte<n; byte += n> 200 ? 7 : 3) {
            data[byte] ^= 16;
            assert_true(spill(path, data, n));
            assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("hurt/checkpoints/step-2")),
                             WEFT_ERR_FORMAT);
            assert_non_null(strstr(weft_last_error(NULL), name));
            data[byte] ^= 16;
        }
        assert_true(spill(path, data, n - 1));
        assert_falls_back(name);
        assert_int_equal(unlink(path), 0);
        assert_falls_back("missing: the checkpoint is incomplete");
        assert_true(spill(path, data, n));
        free(data);
        assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("hurt/checkpoints/step-2")), WEFT_OK);
    }
    /* the files of two ranks change places */
    char one[8300];
    snprintf(one, sizeof one, "%s",
             in_scratch("hurt/checkpoints/step-2/optimizer-00003-of-00004.safetensors"));
    assert_int_equal(rename(path, in_scratch("hurt/aside")), 0);
    assert_int_equal(rename(one, path), 0);
    assert_int_equal(rename(in_scratch("hurt/aside"), one), 0);
    assert_falls_back("optimizer-00003-of-00004.safetensors");
}

/* Replaces a text in the manifest of step 2, which gets a valid checksum again. */
static void change_manifest(const char *old, const char *new) {
    const char *path = in_scratch("hurt/checkpoints/step-2/state.json");
    size_t n = 0, sealed = 0;
    char *data = slurp(path, &n), *text = NULL, changed[16384];
    data[n] = 0;
    char *end = strstr(data, ",\n \"checksum\""), *at = strstr(data, old);
    assert_non_null(end);
    if (!at) fail_msg("no '%s' in the manifest", old);
    memcpy(end, "\n}\n", 4);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - data), data, new, at + strlen(old));
    assert_int_equal(weft__seal(NULL, changed, strlen(changed), &text, &sealed), WEFT_OK);
    assert_true(spill(path, text, sealed));
    weft__free(NULL, text);
    free(data);
}

static void test_damaged_manifest(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *message;
    } cases[] = {
        {"\"from\": 11", "\"from\": 10", "both have its element 10"},
        {"\"from\": 11", "\"from\": 12", "no file has its elements 11 to 11"},
        {"\"from\": 30", "\"from\": 31", "from: the part reaches past the end of its array"},
        {"\"from\": 30", "\"from\": -1", "from: must be an unsigned integer"},
        {"\"from\": 30", "\"from\": \"x\"", "from: must be an unsigned integer"},
        {"\"of\": [\n      4,\n      8\n     ]", "\"of\": [32]",
         "parts of arrays of different shapes or dtypes"},
        {"\"of\": [\n      4,\n      8\n     ]", "\"of\": 32", "of: must be an array"},
        {"\"of\": [\n      4,\n      8\n     ]", "\"of\": [4294967296, 4294967296]",
         "past the end of its array"},
        {"optimizer-00004-of-00004", "optimizer-00004-of-00005", "not the file expected at this place"},
        {"optimizer-00002-of-00004", "optimizer-00001-of-00004", "not the file expected at this place"},
        {"\"name\": \"w\"", "\"name\": \"w\", \"from\": 1, \"of\": [4]", "w: shape: a part must be a row"},
    };
    make_run("hurt");
    save_good("hurt", 1, 2);
    save_good("hurt", 2, 4);
    (void)saving_in("hurt", 1, cuts2); /* what check_newest expects */
    const char *path = in_scratch("hurt/checkpoints/step-2/state.json");
    size_t n = 0;
    char *good = slurp(path, &n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_manifest(cases[i].old, cases[i].new);
        assert_falls_back(cases[i].message);
        assert_true(spill(in_scratch("hurt/checkpoints/step-2/state.json"), good, n));
    }
    free(good);
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("hurt/checkpoints/step-2")), WEFT_OK);
    change_manifest("\"format\": 2", "\"format\": 3");
    assert_int_equal(weft_checkpoint_verify(NULL, in_scratch("hurt/checkpoints/step-2")),
                     WEFT_ERR_UNSUPPORTED);
}

/* ---- ranks that fail ---- */

/* Each call of each rank fails in turn: all ranks get the same error, and the last complete checkpoint stays.
 */
static void test_every_call_fails(void **state) {
    (void)state;
    make_run("fails");
    save_good("fails", 1, 2);
    for (int rank = 0; rank < 2; rank++)
        for (int at = 1, more = 1; more; at++) {
            faulty f = {.at = at, .error = ENOSPC};
            saving s = saving_in("fails", 2, cuts2);
            s.fails = rank;
            s.fault = &f;
            const weft_status status = save_in(&s, 2);
            more = f.calls >= at;
            weft_checkpoint *c;
            assert_int_equal(weft_checkpoint_open_newest(NULL, in_scratch("fails"), true, &c), WEFT_OK);
            const uint64_t step = weft_checkpoint_state_of(c)->step;
            weft_checkpoint_close(c);
            assert_true(step == 1 || step == 2);
            if (!more) assert_int_equal(status, WEFT_OK);
            if (status == WEFT_OK) assert_int_equal(step, 2);
            if (status && rank) {
                assert_non_null(strstr(s.error[0], "rank 1 ("));
                assert_int_equal(step, 1);
                assert_int_equal(count_hidden(in_scratch("fails/checkpoints")), 0);
            }
            remove_all(in_scratch("fails/checkpoints/step-2"));
            (void)weft__remove_stale(NULL, in_scratch("fails/checkpoints"));
        }
}

static void test_a_write_lies(void **state) {
    (void)state;
    int refused = 0;
    make_run("lies");
    for (int at = 1, more = 1; more; at++) {
        faulty f = {.at = at, .lies = true};
        saving s = saving_in("lies", 2, cuts2);
        s.fails = 1;
        s.fault = &f;
        const weft_status status = save_in(&s, 2);
        more = f.calls >= at;
        assert_int_equal(status, more ? WEFT_ERR_IO : WEFT_OK);
        if (more) assert_non_null(strstr(s.error[0], "rank 1 ("));
        if (more) assert_non_null(strstr(s.error[0], "do not read back"));
        refused += more;
    }
    assert_true(refused > 2);
}

static void test_memory_is_short(void **state) {
    (void)state;
    make_run("short");
    for (int rank = 0; rank < 2; rank++)
        for (int at = 1 + rank, more = 1; more; at += 6) { /* each takes as long as a save */
            failing_alloc f = {.fail_at = at};
            saving s = saving_in("short", 2, cuts2);
            s.fails = rank;
            s.memory = &f;
            const weft_status status = save_in(&s, 2);
            more = f.calls >= at;
            assert_int_equal(f.live, 0);
            assert_true(status == WEFT_OK || status == WEFT_ERR_OOM);
            if (!more) assert_int_equal(status, WEFT_OK);
            assert_int_equal(count_hidden(in_scratch("short/checkpoints")), 0);
        }
}

static void test_failed_before(void **state) {
    (void)state;
    make_run("before");
    for (int rank = 0; rank < 4; rank++) {
        saving s = saving_in("before", 1, cuts4);
        s.fails = rank;
        s.before = WEFT_ERR_DEVICE;
        assert_int_equal(save_in(&s, 4), WEFT_ERR_DEVICE);
        assert_non_null(strstr(s.error[2], "the state cannot be read"));
        assert_true((strstr(s.error[2], "rank ") != NULL) == (rank > 0));
    }
    saving s = saving_in("nowhere", 1, cuts4);
    assert_int_equal(save_in(&s, 4), WEFT_ERR_IO);
    assert_non_null(strstr(s.error[3], "nowhere/checkpoints: No such file"));
}

/* A rank that does not come: the others run into their time limit, and nothing is published. */
static void test_absent_rank(void **state) {
    (void)state;
    make_run("absent");
    save_good("absent", 1, 4);
    for (int rank = 0; rank < 4; rank += 2) {
        saving s = saving_in("absent", 2, cuts4);
        s.fails = rank;
        s.absent = true;
        assert_int_equal(save_in(&s, 4), rank ? WEFT_ERR_TIMEOUT : WEFT_OK);
        for (int i = 0; i < 4; i++) assert_int_equal(s.status[i], i == rank ? WEFT_OK : WEFT_ERR_TIMEOUT);
        assert_non_null(
            strstr(s.error[1], rank ? "a checkpoint: no answer from rank 2 (" : "no answer from rank 0 ("));
        (void)saving_in("absent", 1, cuts4);
        check_newest("absent", 1);
        assert_int_equal(count_hidden(in_scratch("absent/checkpoints")), 0);
    }
}

/* A process alone writes whole arrays. */
static void test_alone(void **state) {
    (void)state;
    const weft_checkpoint_state about = {.step = 1};
    const weft_entry e = {.name = "v", .dtype = WEFT_BF16, .rank = 1, .shape = shape_v, .data = v};
    make_run("alone");
    assert_int_equal(weft_checkpoint_write_group(NULL, NULL, in_scratch("alone"), &about, NULL, 0, &e, 1),
                     WEFT_OK);
    assert_int_equal(access(in_scratch("alone/checkpoints/step-1/optimizer.safetensors"), R_OK), 0);
    assert_int_equal(weft_checkpoint_write_group(NULL, NULL, NULL, &about, NULL, 0, &e, 1),
                     WEFT_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_arrays),
        cmocka_unit_test(test_refused_parts),
        cmocka_unit_test(test_parts_that_do_not_fit),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_damaged_manifest),
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_a_write_lies),
        cmocka_unit_test(test_memory_is_short),
        cmocka_unit_test(test_failed_before),
        cmocka_unit_test(test_absent_rank),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
