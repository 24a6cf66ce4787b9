/* Golden kernels. The plans and kernels of about forty small graphs are stored as text files in this folder.
 * Their kernel sources are in cuda/, and of some in opencl/ and wgsl/. So a change of the compiler or the
 * renderer shows as a readable difference.
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
#include "base/text.h"
#include "compiler/program.h"
#include "golden/graphs.h"
#include "golden/source.h"

/* ---- golden text ---- */

enum { PLAN, OPENCL, CUDA, WGSL, TEXTS }; /* kind of golden text */

/* Graphs whose OpenCL C is stored, and whose kernels are translated to WGSL: one for each sort of kernel. */
static const char *const some[] = {"add",
                                   "pad",
                                   "gather",
                                   "transpose",
                                   "softmax",
                                   "sum_middle",
                                   "sum_columns",
                                   "layer_norm_columns",
                                   "matmul_bias_relu"};

/* The sources of a program's kernels and of matmul epilogues. Each follows its kernel form, which is a
 * comment. */
static char *rendered(weft_context *ctx, const weft_program *program, int which) {
    const size_t size = 1 << 16;
    char *text = calloc(1, size), form[1 << 13];
    weft_text out = weft__text(text, size);
    for (int c = 0; c < program->commands.count; c++) {
        const weft_command *command = &program->commands.list[c];
        const weft_kernel *kernel = weft__command_kernel(command);
        if (!kernel || (which == WGSL && !command->kernel)) continue;
        weft__kernel_print(kernel, form, sizeof form);
        weft__put(&out, "/*\n%s*/\n", form);
        if (!command->kernel) weft__put(&out, "#define S float\n"); /* from the matmul */
        golden_source(ctx, command,
                      which == CUDA   ? WEFT_DIALECT_CUDA
                      : which == WGSL ? WEFT_DIALECT_WGSL
                                      : WEFT_DIALECT_OPENCL,
                      &out);
    }
    if (out.length >= size) fail_msg("a text is longer than %zu", size);
    return text;
}

static char *printed(const char *name, void (*make)(golden_board *s), int which) {
    golden_board s = {0};
    if (weft_open(&(weft_open_options){.device = "interp"}, &s.ctx) != WEFT_OK)
        fail_msg("%s", weft_last_error(NULL));
    weft_scope *scope = weft_scope_open(s.ctx);
    golden_fill(&s, false);
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
    static const char *const folders[TEXTS] = {"", "opencl/", "cuda/", "wgsl/"};
    static const char *const ends[TEXTS] = {".txt", ".cl", ".cu", ".wgsl"};
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
    if (which != OPENCL && which != WGSL) return true;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (strcmp(name, some[i]) == 0) return true;
    return false;
}

/* Returns 1 if the text differs from the stored one. */
static int differs(const char *name, void (*make)(golden_board *s), int which) {
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
    for (int i = 0; i < golden_count; i++)
        for (int which = PLAN; which < TEXTS; which++) {
            if (!is_wanted(golden_graphs[i].name, which)) continue;
            differ += differs(golden_graphs[i].name, golden_graphs[i].make, which);
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
