/* The launches of large reductions on CUDA (kernel/render_team.c, compiler/passes/build.c), made on the null
 * device: enough groups for a large card, wide accesses, columns of folds in registers, one read of a row
 * that several loops need, and the same launch on every card. */
#include "unit/core_help.h"

#include "device/gpu/backend/kernel_source.h"
#include "kernel/source.h"

enum { UNITS = 132, MOST = 64, LARGE = 227 << 10, ROWS = 1024 /* of a head */ };

/* ---- launches ---- */

static struct {
    weft_device_ops ops;
    const weft_device_ops *null;
    weft_target target;
    int aligned; /* bytes of which the operands' addresses are multiples; 0: 16 */
    int count;
    char *source[MOST];
    weft_launch list[MOST];
} seen;

static weft_status build(weft_device *device, const weft_commands *commands, weft_executable **executable) {
    for (int c = 0; c < commands->count; c++) {
        if (commands->list[c].kind != WEFT_COMMAND_KERNEL) continue;
        weft_arena arena;
        weft__arena_init(&arena, device->ctx);
        uint8_t aligned[MOST];
        memset(aligned, seen.aligned ? seen.aligned : 16, sizeof aligned);
        weft_launches launches = {
            .ctx = device->ctx, .arena = &arena, .target = &seen.target, .aligned = aligned};
        assert_ok(weft__render(&launches, commands->list[c].kernel, false));
        for (int l = 0; l < launches.count; l++) {
            assert_true(seen.count < MOST);
            seen.list[seen.count] = launches.list[l];
            seen.source[seen.count++] = strdup(launches.list[l].source);
        }
        weft__free(device->ctx, launches.list);
        weft__arena_free(&arena);
    }
    return seen.null->build(device, commands, executable);
}

static weft_context *open_null(int units, int64_t most_local_bytes) {
    weft_context *ctx = open_device("null:cuda", false);
    seen.null = ctx->device->ops;
    seen.ops = *seen.null;
    seen.ops.build = build;
    ctx->device->ops = &seen.ops;
    seen.target = (weft_target){.dialect = WEFT_DIALECT_CUDA,
                                .lanes = 256,
                                .units = units,
                                .local_bytes = 48 << 10,
                                .most_local_bytes = most_local_bytes,
                                .f64 = true,
                                .capability = 90};
    seen.count = 0;
    return ctx;
}

static void close_null(weft_context *ctx) {
    weft_close(ctx);
    for (int i = 0; i < seen.count; i++) free(seen.source[i]);
    seen.count = 0;
}

static int times(const char *text, const char *word) {
    int n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) n++;
    return n;
}

/* The source of the only launch whose name begins so. */
static int find(const char *name) {
    int found = -1;
    for (int i = 0; i < seen.count; i++) {
        if (strncmp(seen.list[i].name, name, strlen(name)) != 0) continue;
        assert_int_equal(found, -1);
        found = i;
    }
    if (found < 0) fail_msg("no launch %s", name);
    return found;
}

/* ---- graphs ---- */

static void norm_backward(weft_context *ctx, int64_t rows, int64_t n) {
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_BF16, SHAPE(rows, n), NULL), *grad[3];
    weft_tensor *gamma = weft_variable_new(ctx, "g", WEFT_F32, SHAPE(n), NULL);
    weft_tensor *beta = weft_variable_new(ctx, "b", WEFT_F32, SHAPE(n), NULL), *wrt[] = {x, gamma, beta};
    weft_tensor *up = weft_variable_new(ctx, "up", WEFT_BF16, SHAPE(rows, n), NULL);
    weft_tensor *y = weft_cast(weft_layer_norm(x, gamma, beta, 1e-5), WEFT_F32);
    weft_tensor *loss = weft_sum(weft_mul(y, weft_cast(up, WEFT_F32)), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, wrt, 3, grad));
    assert_ok(weft_eval(grad, 3));
}

/* ---- tests ---- */

static void test_norm_backward(void **state) {
    (void)state;
    weft_context *ctx = open_null(UNITS, LARGE);
    norm_backward(ctx, 65536, 768);
    const int fold = find("fold");
    const weft_launch *l = &seen.list[fold];
    const char *text = seen.source[fold], *loop = strstr(text, "for (int f0 = team;");
    assert_true(l->groups[0] >= 4 * UNITS);
    assert_true(l->items[0] >= 128);
    assert_non_null(loop);
    assert_int_equal(times(text, "*fold"), 0);                            /* no columns in memory */
    assert_int_equal(times(text, "W_TEAMS("), 2);                         /* gamma's and beta's columns */
    assert_int_equal(times(text, "W_HOLD_ALIGNED(ushort, uint4, 8,"), 2); /* x and the gradient, once each */
    assert_int_equal(times(loop, "w_get_"), 0);
    assert_int_equal(times(loop, "w_barrier"), 0);
    for (int i = 0; i < seen.count; i++) { /* the sums of the blocks' sums */
        if (strncmp(seen.list[i].name, "row_sum", 7) != 0 || i < fold) continue;
        assert_true(seen.list[i].groups[0] >= 64);
        assert_int_equal(times(seen.source[i], "W_TEAMS_SHARE("), times(seen.source[i], "float t"));
    }
    close_null(ctx);
}

static void test_gradient_norm(void **state) {
    (void)state;
    weft_context *ctx = open_null(UNITS, LARGE);
    weft_tensor *g = weft_variable_new(ctx, "g", WEFT_F32, SHAPE(124475904), NULL);
    weft_tensor *norm = weft_sqrt(weft_sum(weft_square(g), WEFT_ALL_AXES, false));
    assert_ok(weft_eval(&norm, 1));
    const int first = find("row_mul_sum");
    assert_true(seen.list[first].groups[0] >= 4 * UNITS);
    assert_int_equal(times(seen.source[first], "W_READ_ALIGNED(f32, float, uint4, 4,"), 1);
    close_null(ctx);
}

/* The head of a GPT: the loss and its gradient of a part of the rows. Returns the launch. */
static int head(weft_context *ctx, int64_t classes) {
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_BF16, SHAPE(ROWS, classes), NULL), *out[2];
    int32_t target[ROWS] = {0};
    out[0] = weft_cross_entropy(x, weft_from(ctx, WEFT_I32, SHAPE(ROWS), target), NULL);
    assert_ok(weft_gradient(out[0], &x, 1, out + 1));
    assert_ok(weft_eval(out, 2));
    return find("row_max");
}

static void test_head(void **state) {
    static const struct {
        int64_t most, classes;
        int together; /* blocks in a multiprocessor; 0: local memory cannot hold a row */
    } cards[] = {{227 << 10, 25000, 2}, {227 << 10, 50304, 2}, {163 << 10, 50304, 1}, {163 << 10, 30000, 2},
                 {99 << 10, 50304, 1},  {99 << 10, 25000, 2},  {64 << 10, 50304, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(cards); i++) {
        weft_context *ctx = open_null(UNITS, cards[i].most);
        const int l = head(ctx, cards[i].classes);
        const char *text = seen.source[l];
        assert_int_equal(seen.list[l].items[0], 512);
        assert_int_equal(seen.list[l].shared_bytes, cards[i].together ? 2 * cards[i].classes : 0);
        /* The first row is copied before the loop, the others while their predecessors are computed. */
        assert_int_equal(times(text, "W_STASH_COPY("), cards[i].together ? 2 : 0);
        assert_int_equal(times(text, "W_READ_ALIGNED(bf16"), cards[i].together ? 0 : 3);
        assert_int_equal(times(text, "w_exp_near_f32("), 2);
        if (cards[i].together)
            assert_int_equal(seen.list[l].groups[0],
                             weft__ceil_div(ROWS, weft__ceil_div(ROWS, UNITS * cards[i].together)));
        assert_int_equal(times(text, "W_WRITE_ALIGNED(bf16, ushort, uint4, 8,"), 1);
        assert_int_equal(times(text, "w_get_bf16"), 0);
        const char *rounded = strstr(text, " = w_round_bf16("); /* only the store rounds */
        if (rounded) {
            const char *name = rounded;
            char stored[32];
            while (name[-1] != ' ') name--;
            snprintf(stored, sizeof stored, "[e] = %.*s;", (int)(rounded - name), name);
            assert_null(strstr(text, stored));
        }
        close_null(ctx);
    }
}

/* From compute capability 8.0 on, one instruction rounds two numbers to bf16; before, integers do. */
static void test_bf16_instruction(void **state) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    (void)state;
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_CUDA, WEFT_PRELUDE_LANES, parts);
    const char *cuda = NULL, *access = NULL;
    for (int i = 0; i < n; i++) {
        if (strstr(parts[i], "W_FN ushort w_to_bf16(")) access = parts[i];
        if (strstr(parts[i], "#if __CUDA_ARCH__ >= 800")) cuda = strstr(parts[i], "#if __CUDA_ARCH__ >= 800");
    }
    assert_non_null(cuda);
    assert_non_null(strstr(cuda, "cvt.rn.bf16x2.f32"));
    assert_non_null(access);
    assert_non_null(
        strstr(access, "w_pack_two_bf16(void *bits, long i, float v, float next) { ((uint *)bits)"));
    assert_int_equal(times(access, "W_CVT_TWO_BF16("), 2);
}

static void test_norm_forward(void **state) {
    (void)state;
    weft_context *ctx = open_null(UNITS, LARGE);
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_BF16, SHAPE(65536, 768), NULL);
    weft_tensor *gamma = weft_variable_new(ctx, "g", WEFT_BF16, SHAPE(768), NULL);
    weft_tensor *y = weft_layer_norm(x, gamma, gamma, 1e-5);
    assert_ok(weft_eval(&y, 1));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.list[0].items[0], 256); /* eight rows, a warp each */
    assert_int_equal(seen.list[0].groups[0], 65536 / 8);
    assert_non_null(strstr(seen.source[0], "team = w_item(0) / 32;"));
    assert_null(strstr(seen.source[0], "w_barrier"));
    assert_int_equal(times(seen.source[0], "W_HOLD_ALIGNED(ushort, uint4, 8, arg0"), 1);
    assert_int_equal(times(seen.source[0], "W_WRITE_ALIGNED(bf16, ushort, uint4, 8,"), 1);
    close_null(ctx);
}

/* Words of 16 bytes are read at once only where operands are known to be aligned. */
static void test_unaligned(void **state) {
    (void)state;
    seen.aligned = 8;
    weft_context *ctx = open_null(UNITS, LARGE);
    norm_backward(ctx, 65536, 768);
    const char *text = seen.source[find("fold")];
    assert_int_equal(times(text, "W_HOLD(ushort, uint4, 8,"), 2);
    assert_int_equal(times(text, "_ALIGNED("), 0);
    close_null(ctx);
    ctx = open_null(UNITS, LARGE);
    const int l = head(ctx, 50304);
    assert_int_equal(times(seen.source[l], "W_STASH_COPY("), 0);
    seen.aligned = 0;
    close_null(ctx);
}

/* Lanes, teams and blocks change the order of sums, so a card's size must not change them. */
static void test_every_card(void **state) {
    static const int units[] = {1, 16, UNITS, 1000};
    char *first[MOST];
    int count = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(units); i++) {
        weft_context *ctx = open_null(units[i], LARGE);
        norm_backward(ctx, 65536, 768);
        norm_backward(ctx, 900, 1000);
        head(ctx, 50304);
        if (i == 0) count = seen.count;
        assert_int_equal(seen.count, count);
        for (int l = 0; l < count; l++) {
            if (i == 0) first[l] = strdup(seen.source[l]);
            assert_string_equal(seen.source[l], first[l]);
        }
        close_null(ctx);
    }
    for (int l = 0; l < count; l++) free(first[l]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_backward),
        cmocka_unit_test(test_gradient_norm),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_norm_forward),
        cmocka_unit_test(test_bf16_instruction),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_every_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
