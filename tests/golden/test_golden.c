/* Golden kernels. The plans and kernels of about forty small graphs are stored as text files in this folder.
 * Their kernel sources are in opencl/ (NAME.cl with vectors, NAME.items.cl of some with work-items) and
 * cuda/. So a change of the compiler or the renderer shows as a readable difference.
 *
 * Set UPDATE=1 in the environment to write the files again. Look at the difference before you commit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/ops.h>
#include "base/text.h"
#include "compiler/program.h"
#include "kernel/source.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

/* The tensors that the graphs use, and the values that they evaluate or assign. */
typedef struct board {
    weft_context *ctx;
    weft_tensor *a, *b;     /* f32 [8,16] */
    weft_tensor *row, *col; /* f32 [16], [8,1] */
    weft_tensor *cube, *w;  /* f32 [3,8,16], [16,12] */
    weft_tensor *big;       /* f32 [4,20000] */
    weft_tensor *tall, *up; /* f32 [512,16] */
    weft_tensor *table, *y; /* f32 [10240,4], [10240,1] */
    weft_tensor *mask, *i;  /* bool, i32 [8,16] */
    weft_tensor *index;     /* i32 [5] */
    weft_tensor *half;      /* f16 [8,16] */
    weft_tensor *p, *m;     /* variables, f32 [64] */
    weft_tensor *g;         /* f32 [64] */
    weft_tensor *out[5], *variable[4], *value[4];
    int n, n_assign;
} board;

static weft_tensor *zeros(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    void *data = calloc(80000, 8);
    weft_tensor *t = weft_from(ctx, dtype, rank, shape, data);
    free(data);
    return t;
}

static void out(board *s, weft_tensor *t) { s->out[s->n++] = t; }

static void assign(board *s, weft_tensor *variable, weft_tensor *value) {
    s->variable[s->n_assign] = variable;
    s->value[s->n_assign++] = value;
}

/* Outputs y and its gradients with respect to x, z and v, weighted by b, or by up. v may be NULL. */
static void with_gradients_of(board *s, weft_tensor *y, weft_tensor *x, weft_tensor *z, weft_tensor *v) {
    weft_tensor *wrt[3] = {x, z, v}, *grads[3] = {NULL, NULL, NULL}, *by = weft_dim(y, 0) > 8 ? s->up : s->b,
                *loss = weft_sum(weft_mul(y, by), WEFT_ALL_AXES, false);
    size_t n = v ? 3 : z ? 2 : 1;
    if (weft_gradient(loss, wrt, n, grads) != WEFT_OK) fail_msg("%s", weft_last_error(s->ctx));
    out(s, y);
    for (size_t k = 0; k < n; k++) out(s, grads[k]);
}

/* Assigns w and b after a step of gradient descent, and outputs the loss before the step. */
static void linear_step_of(board *s, weft_tensor *x, weft_tensor *y, bool logistic) {
    weft_tensor *w = weft_slice(s->row, NULL, (int64_t[]){4}, NULL);
    weft_tensor *b = weft_slice(s->row, NULL, (int64_t[]){1}, NULL), *wrt[2] = {w, b}, *grads[2];
    weft_tensor *p = weft_add(weft_matmul(x, weft_reshape(w, SHAPE(4, 1))), b);
    weft_tensor *loss = logistic ? weft_bce_with_logits(p, y, WEFT_MEAN) : weft_mse(p, y, WEFT_MEAN);
    if (weft_gradient(loss, wrt, 2, grads) != WEFT_OK) fail_msg("%s", weft_last_error(s->ctx));
    out(s, loss);
    for (int k = 0; k < 2; k++) out(s, weft_sub(wrt[k], weft_mul_scalar(grads[k], 0.1)));
}

static void linear_step(board *s, bool logistic) { linear_step_of(s, s->table, s->y, logistic); }

/* With a number of rows that no number of blocks divides. */
static void linear_step_prime(board *s) {
    weft_tensor *x = weft_slice(s->table, NULL, (int64_t[]){10007, 4}, NULL);
    linear_step_of(s, x, weft_slice(s->y, NULL, (int64_t[]){10007, 1}, NULL), false);
}

static void with_gradients(board *s, weft_tensor *y, weft_tensor *x, weft_tensor *z) {
    with_gradients_of(s, y, x, z, NULL);
}

/* ---- the graphs: GOLDEN(file name, statements) ---- */
#define GRAPHS                                                                                               \
    GOLDEN(add, out(s, weft_add(s->a, s->b)))                                                                \
    GOLDEN(broadcast, out(s, weft_mul(weft_add(s->a, s->row), s->col)))                                      \
    GOLDEN(scalar_input, out(s, weft_mul(s->a, weft_scalar(s->ctx, 3))))                                     \
    GOLDEN(gelu, out(s, weft_gelu(s->a)))                                                                    \
    GOLDEN(gelu_gradient, with_gradients(s, weft_gelu(s->a), s->a, NULL))                                    \
    GOLDEN(silu_gradient, with_gradients(s, weft_silu(s->a), s->a, NULL))                                    \
    GOLDEN(rotary, out(s, weft_rotary(s->cube, NULL, NULL)))                                                 \
    GOLDEN(softplus, out(s, weft_softplus(s->a)))                                                            \
    GOLDEN(where, out(s, weft_where(s->mask, s->a, weft_neg(s->b))))                                         \
    GOLDEN(integers, out(s, weft_mod(weft_shr(weft_mul_scalar(s->i, 3), s->i), weft_add_scalar(s->i, 5))))   \
    GOLDEN(casts, out(s, weft_cast(weft_mul(weft_cast(s->half, WEFT_F32), s->a), WEFT_F16)))                 \
    GOLDEN(transpose, out(s, weft_add(weft_transpose(s->a, 0, 1), weft_reshape(s->b, SHAPE(16, 8)))))        \
    GOLDEN(flip_slice, out(s, weft_slice(s->a, (int64_t[]){-1, 1}, NULL, (int64_t[]){-2, 3})))               \
    GOLDEN(pad, out(s, weft_pad(s->a, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 7)))                             \
    GOLDEN(concat, out(s, weft_concat((weft_tensor *[]){s->a, s->b, s->a}, 3, 1)))                           \
    GOLDEN(                                                                                                  \
        parts,                                                                                               \
        out(s, weft_concat((weft_tensor *[]){weft_exp(s->tall), weft_mul(weft_exp(s->tall), s->up)}, 2, 1))) \
    GOLDEN(stack, out(s, weft_stack((weft_tensor *[]){s->a, weft_exp(s->b)}, 2, 0)))                         \
    GOLDEN(reshape_of_transpose, out(s, weft_exp(weft_reshape(weft_transpose(s->a, 0, 1), SHAPE(4, 32)))))   \
    GOLDEN(iota, out(s, weft_add(weft_iota(s->ctx, WEFT_I32, SHAPE(8, 16)), s->i)))                          \
    GOLDEN(random_uniform, out(s, weft_random_uniform(s->ctx, SHAPE(8, 16))))                                \
    GOLDEN(sum_rows, out(s, weft_sum(s->a, 1, false)))                                                       \
    GOLDEN(sum_columns, out(s, weft_sum(s->a, 0, false)))                                                    \
    GOLDEN(sum_all, out(s, weft_sum(s->a, WEFT_ALL_AXES, false)))                                            \
    GOLDEN(sum_in_two_stages, out(s, weft_sum(s->big, 1, false)))                                            \
    GOLDEN(sum_middle, out(s, weft_sum(s->cube, 1, true)))                                                   \
    GOLDEN(max_gradient, with_gradients(s, weft_max(s->a, 1, true), s->a, NULL))                             \
    GOLDEN(argmax, out(s, weft_argmax(s->a, 1, false)))                                                      \
    GOLDEN(variance, out(s, weft_var(s->a, 1, 0, false)))                                                    \
    GOLDEN(softmax, out(s, weft_softmax(s->a, -1)))                                                          \
    GOLDEN(softmax_gradient, with_gradients(s, weft_softmax(s->a, -1), s->a, NULL))                          \
    GOLDEN(softmax_first_axis, out(s, weft_softmax(s->a, 0)))                                                \
    GOLDEN(layer_norm, out(s, weft_layer_norm(s->a, s->row, s->row, 1e-5)))                                  \
    GOLDEN(layer_norm_gradient,                                                                              \
           with_gradients(s, weft_layer_norm(s->a, s->row, s->row, 1e-5), s->a, s->row))                     \
    GOLDEN(layer_norm_columns,                                                                               \
           with_gradients_of(s, weft_layer_norm(s->tall, s->row, weft_neg(s->row), 1e-5), s->tall, s->row,   \
                             NULL))                                                                          \
    GOLDEN(bias_gelu_columns, with_gradients(s, weft_gelu(weft_add(s->tall, s->row)), s->row, s->tall))      \
    GOLDEN(linear_regression, linear_step(s, false))                                                         \
    GOLDEN(linear_regression_prime, linear_step_prime(s))                                                    \
    GOLDEN(logistic_regression, linear_step(s, true))                                                        \
    GOLDEN(rms_norm, out(s, weft_rms_norm(s->a, s->row, 1e-5)))                                              \
    GOLDEN(cross_entropy_gradient,                                                                           \
           with_gradients(s, weft_cross_entropy(s->a, weft_argmax(s->b, 1, false), NULL), s->a, NULL))       \
    GOLDEN(bce, out(s, weft_bce_with_logits(s->a, s->b, WEFT_MEAN)))                                         \
    GOLDEN(gather, out(s, weft_gather(s->a, s->index, 0)))                                                   \
    GOLDEN(gather_gradient,                                                                                  \
           with_gradients(s, weft_sum(weft_square(weft_gather(s->a, s->index, 0)), 0, true), s->a, NULL))    \
    GOLDEN(scatter_add,                                                                                      \
           out(s, weft_scatter_add(s->a, s->index, weft_slice(s->b, NULL, (int64_t[]){5, 16}, NULL), 0)))    \
    GOLDEN(matmul_bias_relu, out(s, weft_relu(weft_add(weft_matmul(s->a, s->w),                              \
                                                       weft_slice(s->row, NULL, (int64_t[]){12}, NULL)))))   \
    GOLDEN(matmul_gradient,                                                                                  \
           with_gradients(s, weft_sum(weft_matmul(s->cube, s->w), -1, true), s->cube, s->w))                 \
    GOLDEN(attention, out(s, weft_attention(weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            &(weft_attention_options){.causal = true})))                     \
    GOLDEN(update, out(s, weft_update(s->a, weft_slice(s->b, NULL, (int64_t[]){2, 16}, NULL),                \
                                      weft_scalar_of(s->ctx, WEFT_I32, 3), 0)))                              \
    GOLDEN(momentum, (assign(s, s->m, weft_add(weft_mul_scalar(s->m, 0.9), s->g)),                           \
                      assign(s, s->p,                                                                        \
                             weft_sub(s->p, weft_mul(weft_scalar(s->ctx, 1),                                 \
                                                     weft_add(weft_mul_scalar(s->m, 0.9), s->g))))))         \
    GOLDEN(swap, (assign(s, s->m, s->p), assign(s, s->p, s->m)))

#define GOLDEN(name, statement)                                                                              \
    static void graph_##name(board *s) { statement; }
GRAPHS
#undef GOLDEN

static const struct {
    const char *name;
    void (*make)(board *s);
} graphs[] = {
#define GOLDEN(name, statement) {#name, graph_##name},
    GRAPHS
#undef GOLDEN
};

/* ---- golden text ---- */

enum { PLAN, VECTORS, ITEMS, CUDA, TEXTS }; /* kind of golden text */

/* Graphs whose OpenCL C is also stored for work-items: one for each sort of kernel. */
static const char *const as_items[] = {"add",
                                       "pad",
                                       "gather",
                                       "transpose",
                                       "softmax",
                                       "sum_middle",
                                       "sum_columns",
                                       "layer_norm_columns",
                                       "matmul_bias_relu"};

static weft_status render_epilogue(weft_launches *launches, const weft_heavy_matmul *mm) {
    weft_epilogue epilogue;
    WEFT_TRY(weft__render_epilogue(launches, mm->epilogue, mm->product, mm->n, &epilogue));
    return weft__launch(launches, &(weft_launch){.source = epilogue.source});
}

/* The sources of a program's kernels and of matmul epilogues. Each follows its kernel form, which is a
 * comment. */
static char *rendered(weft_context *ctx, const weft_program *program, int which) {
    const weft_target target = {.dialect = which == CUDA ? WEFT_DIALECT_CUDA : WEFT_DIALECT_OPENCL,
                                .vectors = which == VECTORS,
                                .lanes = which == VECTORS ? 16
                                         : which == ITEMS ? 64
                                                          : 256,
                                .units = 4,
                                .f64 = true};
    const size_t size = 1 << 16;
    char *text = calloc(1, size), form[1 << 13];
    weft_text out = weft__text(text, size);
    for (int c = 0; c < program->commands.count; c++) {
        const weft_command *command = &program->commands.list[c];
        const weft_kernel *kernel = weft__command_kernel(command);
        weft_arena arena;
        if (!kernel) continue;
        weft__arena_init(&arena, ctx);
        weft_launches launches = {.ctx = ctx, .arena = &arena, .target = &target};
        const weft_status status = command->kernel ? weft__render(&launches, kernel, command->sink)
                                                   : render_epilogue(&launches, &command->heavy.as.matmul);
        if (status != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
        weft__kernel_print(kernel, form, sizeof form);
        weft__put(&out, "/*\n%s*/\n", form);
        if (!command->kernel) weft__put(&out, "#define S float\n#define S16 float16\n"); /* from the matmul */
        for (int l = 0; l < launches.count; l++) weft__put(&out, "%s\n", launches.list[l].source);
        weft__free(ctx, launches.list);
        weft__arena_free(&arena);
    }
    if (out.length >= size) fail_msg("a text is longer than %zu", size);
    return text;
}

static char *printed(const char *name, void (*make)(board *s), int which) {
    board s = {0};
    if (weft_open(&(weft_open_options){.device = "interp"}, &s.ctx) != WEFT_OK)
        fail_msg("%s", weft_last_error(NULL));
    weft_scope *scope = weft_scope_open(s.ctx);
    s.a = zeros(s.ctx, WEFT_F32, SHAPE(8, 16));
    s.b = zeros(s.ctx, WEFT_F32, SHAPE(8, 16));
    s.row = zeros(s.ctx, WEFT_F32, SHAPE(16));
    s.col = zeros(s.ctx, WEFT_F32, SHAPE(8, 1));
    s.cube = zeros(s.ctx, WEFT_F32, SHAPE(3, 8, 16));
    s.w = zeros(s.ctx, WEFT_F32, SHAPE(16, 12));
    s.big = zeros(s.ctx, WEFT_F32, SHAPE(4, 20000));
    s.tall = zeros(s.ctx, WEFT_F32, SHAPE(512, 16));
    s.up = zeros(s.ctx, WEFT_F32, SHAPE(512, 16));
    s.table = zeros(s.ctx, WEFT_F32, SHAPE(10240, 4));
    s.y = zeros(s.ctx, WEFT_F32, SHAPE(10240, 1));
    s.mask = zeros(s.ctx, WEFT_BOOL, SHAPE(8, 16));
    s.i = zeros(s.ctx, WEFT_I32, SHAPE(8, 16));
    s.index = zeros(s.ctx, WEFT_I32, SHAPE(5));
    s.half = zeros(s.ctx, WEFT_F16, SHAPE(8, 16));
    s.p = weft_variable_new(s.ctx, "p", WEFT_F32, SHAPE(64), NULL);
    s.m = weft_variable_new(s.ctx, "m", WEFT_F32, SHAPE(64), NULL);
    s.g = zeros(s.ctx, WEFT_F32, SHAPE(64));
    make(&s);
    weft_status status =
        s.n_assign ? weft_assign(s.variable, s.value, (size_t)s.n_assign) : weft_eval(s.out, (size_t)s.n);
    if (status != WEFT_OK) fail_msg("%s: %s", name, weft_last_error(s.ctx));
    const weft_program *program = s.ctx->compiler->newest;
    char *text;
    if (which == PLAN) {
        size_t length = weft__program_print(program, DEBUG_PLAN | DEBUG_KERNELS, NULL, 0);
        text = calloc(length + 1, 1);
        weft__program_print(program, DEBUG_PLAN | DEBUG_KERNELS, text, length + 1);
    } else {
        text = rendered(s.ctx, program, which);
    }
    weft_scope_close(scope);
    weft_close(s.ctx);
    return text;
}

static void path_of(char *path, size_t size, const char *name, int which) {
    static const char *const folders[TEXTS] = {"", "opencl/", "opencl/", "cuda/"};
    static const char *const ends[TEXTS] = {".txt", ".cl", ".items.cl", ".cu"};
    const char *root = getenv("WEFT_SOURCE_DIR");
    snprintf(path, size, "%s/tests/golden/%s%s%s", root ? root : ".", folders[which], name, ends[which]);
}

static char *stored(const char *path) {
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(text, 1, (1 << 16) - 1, file) : 0;
    text[n] = 0;
    if (file) fclose(file);
    return text;
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) fail_msg("cannot write %s", path);
}

/* Prints the first lines that differ. */
static void show_difference(const char *name, const char *was, const char *is) {
    int line = 1;
    while (*was && *was == *is) {
        const char *end_was = strchr(was, '\n'), *end_is = strchr(is, '\n');
        if (!end_was || !end_is || end_was - was != end_is - is ||
            strncmp(was, is, (size_t)(end_was - was)) != 0)
            break;
        was = end_was + 1;
        is = end_is + 1;
        line++;
    }
    print_error("%s, line %d:\n- %.*s\n+ %.*s\n", name, line, (int)strcspn(was, "\n"), was,
                (int)strcspn(is, "\n"), is);
}

static bool is_wanted(const char *name, int which) {
    if (which != ITEMS) return true;
    for (size_t i = 0; i < sizeof as_items / sizeof *as_items; i++)
        if (strcmp(name, as_items[i]) == 0) return true;
    return false;
}

/* Returns 1 if the text differs from the stored one. */
static int differs(const char *name, void (*make)(board *s), int which) {
    const char *update = getenv("UPDATE");
    char path[1024], *is = printed(name, make, which);
    path_of(path, sizeof path, name, which);
    char *was = stored(path);
    bool differ = strcmp(was, is) != 0;
    if (differ && update && *update == '1') {
        write_file(path, is);
        differ = false;
    } else if (differ) {
        show_difference(path, was, is);
    }
    free(was);
    free(is);
    return differ;
}

static void test_golden(void **state) {
    (void)state;
    int differ = 0, n = 0;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (int which = PLAN; which < TEXTS; which++) {
            if (!is_wanted(graphs[i].name, which)) continue;
            differ += differs(graphs[i].name, graphs[i].make, which);
            n++;
        }
    printf("golden: cells=%d fail=%d\n", n, differ);
    if (differ)
        print_error("if the new kernels are right, run this test with UPDATE=1 and commit the files\n");
    assert_int_equal(differ, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
