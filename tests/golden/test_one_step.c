/* docs/one-step.md: what becomes of one training step of XOR. Its text is written by hand. This test writes
 * each block that begins with ```LANGUAGE one-step:NAME, so that it shows what Weft does today.
 *
 * Set UPDATE=1 in the environment to write the blocks again. Look at the difference before you commit it. */
#define _DEFAULT_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/weft.h>
#include "device/c99/c99.h"
#include "golden/source.h"

enum { TEXT = 1 << 17 };
#define PAGE "docs/one-step.md"
#define MARK " one-step:"

/* ---- the step, of which the page shows the lines between the two marks ---- */

static weft_status learn(weft_context *ctx) {
    /* the program of the page begins */
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    static const float first[] = {0.9F, -0.4F, 0.3F, -0.8F, -0.7F, 0.6F, 0.5F, -0.2F};
    static const float second[] = {0.5F, -0.9F, 0.7F, 0.2F};
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 2}, inputs);
    weft_tensor *y = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 1}, targets);
    weft_tensor *w[3] = {weft_variable_new(ctx, "w1", WEFT_F32, 2, (int64_t[]){2, 4}, first),
                         weft_variable_new(ctx, "b1", WEFT_F32, 1, (int64_t[]){4}, NULL),
                         weft_variable_new(ctx, "w2", WEFT_F32, 2, (int64_t[]){4, 1}, second)};
    weft_status status = WEFT_OK;
    for (int step = 0; step < 200 && status == WEFT_OK; step++) {
        weft_scope *scope = weft_scope_open(ctx); /* owns the tensors made below */
        weft_tensor *g[3], *next[3];
        weft_tensor *h = weft_tanh(weft_add(weft_matmul(x, w[0]), w[1]));
        weft_tensor *loss = weft_keep(weft_mse(weft_matmul(h, w[2]), y, WEFT_MEAN));
        status = weft_gradient(loss, w, 3, g);
        for (int i = 0; i < 3; i++) next[i] = weft_sub(w[i], weft_mul_scalar(g[i], 0.3));
        if (status == WEFT_OK) status = weft_assign(w, next, 3); /* the first step compiles a program */
        if (step % 50 == 49) printf("step %3d: loss %.4f\n", step + 1, weft_item(loss));
        weft_free(loss);
        weft_scope_close(scope);
    }
    /* the program of the page ends */
    return status;
}

/* ---- what it becomes ---- */

enum { PROGRAM, GRAPH, PLAN, KERNELS, TILE, C99, CUDA, WGSL, BLOCKS };
static const char *const names[BLOCKS] = {"program", "graph", "plan", "kernels",
                                          "tile",    "c99",   "cuda", "wgsl"};
typedef struct page {
    char texts[BLOCKS][TEXT];
    weft_text block[BLOCKS];
    bool updated, shown; /* the graph has its first update; the kernel that is logged now is on the page */
} page;

/* Sorts what WEFT_DEBUG logs: the graph up to the update of w1, the plan and two kernels. */
static void take(void *user, weft_log_level level, const char *line) {
    page *p = user;
    if (level != WEFT_LOG_DEBUG) return;
    if (strncmp(line, "node ", 5) == 0) {
        if (!p->updated) weft__put(&p->block[GRAPH], "%s\n", line);
        p->updated = p->updated || strstr(line, " sub f32 [2,4]");
        return;
    }
    const bool begins = strncmp(line, "kernel ", 7) == 0, within = p->block[KERNELS].length > 0;
    if (begins) p->shown = strstr(line, " map_add_tanh ") || strstr(line, " row_mul_neg_add_mul_sum ");
    if (!begins && !within)
        weft__put(&p->block[PLAN], "%s\n", line);
    else if (p->shown)
        weft__put(&p->block[KERNELS], "%s\n", line);
}

/* Copies lines of a text: from the first one that begins with `first` to the next that begins with `last`,
 * without the first `indent` columns, and without the backslashes of a macro. */
static void quote(weft_text *to, const char *text, const char *first, const char *last, int indent) {
    bool inside = false;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        inside = inside || strncmp(line, first, strlen(first)) == 0;
        if (!inside) continue;
        size_t length = strcspn(line, "\n");
        while (length && (line[length - 1] == ' ' || line[length - 1] == '\\')) length--;
        weft__put(to, "%.*s\n", (int)length - indent, line + indent);
        if (strncmp(line, last, strlen(last)) == 0) return;
    }
    fail_msg("nothing begins with %s and ends with %s", first, last);
}

static void read_file(const char *name, char text[TEXT]) {
    char path[1024];
    const char *root = getenv("WEFT_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/%s", root ? root : ".", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot read %s", path);
    text[fread(text, 1, TEXT - 1, file)] = 0;
    fclose(file);
}

static void quote_file(weft_text *to, const char *name, const char *first, const char *last, int indent) {
    static char text[TEXT];
    read_file(name, text);
    quote(to, text, first, last, indent);
}

/* Writes the sources of the only kernel with this name. */
static void put_sources(page *p, weft_context *ctx, const char *name) {
    const weft_commands *commands = &ctx->compiler->newest->commands;
    for (int c = 0; c < commands->count; c++) {
        const weft_kernel *kernel = commands->list[c].kernel;
        if (!kernel || strcmp(kernel->name, name) != 0) continue;
        static char text[3][TEXT];
        weft_text cuda = weft__text(text[0], TEXT), wgsl = weft__text(text[1], TEXT),
                  c99 = weft__text(text[2], TEXT);
        golden_source(ctx, &commands->list[c], WEFT_DIALECT_CUDA, &cuda);
        golden_source(ctx, &commands->list[c], WEFT_DIALECT_WGSL, &wgsl);
        if (weft__c99_kernel(ctx, kernel, name, &c99) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
        quote(&p->block[CUDA], text[0], "    const int lane", "}", 0);
        quote(&p->block[WGSL], text[1], "    let lane", "}", 0);
        quote(&p->block[C99], text[2], "static void", "}", 0);
        return;
    }
    fail_msg("no kernel is called %s:\n%s", name, p->texts[PLAN]);
}

static void fill(page *p) {
    weft_context *ctx;
    for (int i = 0; i < BLOCKS; i++) p->block[i] = weft__text(p->texts[i], TEXT);
    setenv("WEFT_DEBUG", "graph,plan,kernels", 1);
    setenv("WEFT_CPU_ISA", "baseline", 1); /* the same on each machine */
    setenv("WEFT_MATMUL", "own", 1);
    const weft_open_options options = {.device = "cpu", .threads = 1, .log = take, .log_user = p};
    if (weft_open(&options, &ctx) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    if (learn(ctx) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
    put_sources(p, ctx, "map_add_tanh");
    weft_close(ctx);
    quote_file(&p->block[PROGRAM], "tests/golden/test_one_step.c", "    static const float inputs", "    }",
               4);
    quote_file(&p->block[TILE], "src/ops/ops.def", "W_ELEM1(TANH,", "W_ELEM1(TANH,", 0);
    quote_file(&p->block[TILE], "src/device/cpu/tile/tiles.c", "        for (int64_t i", "        }", 8);
    quote_file(&p->block[TILE], "src/kernel/prelude_f32.h", "W_FN W_F32 w_tanh_f32", "}", 0);
    for (int i = 0; i < BLOCKS; i++) assert_in_range(p->block[i].length, 1, TEXT - 1);
}

/* ---- the page ---- */

/* Writes the page with new blocks. */
static void put_page(const char *page_text, page *p, weft_text *out) {
    int blocks = 0;
    for (const char *mark; (mark = strstr(page_text, MARK)); blocks++) {
        const char *name = mark + strlen(MARK), *body = strchr(mark, '\n');
        const char *end = body ? strstr(body, "\n```") : NULL;
        int which = 0;
        while (which < BLOCKS && strncmp(name, names[which], strcspn(name, " \n")) != 0) which++;
        if (which == BLOCKS || !end)
            fail_msg(PAGE ": no block is called %.*s", (int)strcspn(name, "\n"), name);
        weft__put(out, "%.*s%s", (int)(body + 1 - page_text), page_text, p->texts[which]);
        page_text = end + 1;
    }
    weft__put(out, "%s", page_text);
    assert_int_equal(blocks, BLOCKS);
}

static void test_page(void **state) {
    static page p;
    static char was[TEXT], is[TEXT];
    char path[1024];
    const char *root = getenv("WEFT_SOURCE_DIR"), *update = getenv("UPDATE");
    (void)state;
    fill(&p);
    read_file(PAGE, was);
    weft_text out = weft__text(is, TEXT);
    put_page(was, &p, &out);
    if (strcmp(was, is) == 0) return;
    if (!update || *update != '1')
        fail_msg(PAGE " does not show what Weft does: run this test with UPDATE=1, and read the page again");
    snprintf(path, sizeof path, "%s/" PAGE, root ? root : ".");
    FILE *file = fopen(path, "wb");
    if (!file || fputs(is, file) < 0 || fclose(file) != 0) fail_msg("cannot write %s", path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
