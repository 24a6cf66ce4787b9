/* Renders epilogues: a function of the place and value of one element of a matmul.
 * Templates of matmuls call it (source.h). Sizes, strides and constants are arguments, as in all kernels.
 * Must not know: templates. Read next: epilogue.c, render.c. */
#include <stdio.h>

#include "kernel/render.h"

#define PRODUCT_BYTES 320 /* most bytes of the matmul's own arguments */

/* Writes the indices. All parallel indices but the last come from the row. */
static void put_indices(weft_render *r) {
    const int column = r->kernel->n_parallel - 1;
    const char *type = weft__index_type(r);
    int left = 0;
    char x[8];
    for (int d = 0; d < column; d++) left += r->kernel->extent[d] != 1;
    const bool several = left > 1;
    if (several) weft__put_line(r, "%s rest = (%s)row;", type, type);
    for (int d = column - 1; d >= 0; d--) {
        if (r->kernel->extent[d] == 1) continue;
        if (--left > 0)
            weft__put_digit(r, d);
        else
            weft__put_line(r, "const %s %s = (%s)%s;", type, weft__render_index(r, d, x), type,
                           several ? "rest" : "row");
    }
    weft__put_line(r, "const %s %s = column;", type, weft__render_index(r, column, x));
}

static void put_function(weft_render *r) {
    weft__put(&r->text, "/* %s */\n", r->kernel->name);
    weft__put(
        &r->text,
        "W_FN void epilogue(w_i64 row, int column, S value, EPILOGUE_POINTERS const w_epilogue of) {\n");
    r->indent = 1;
    weft__put_constants(r);
    put_indices(r);
    weft__put_unit(r);
    r->indent = 0;
    weft__put_line(r, "}");
}

static void put_all(weft_render *r) {
    weft__put(&r->text, "typedef struct w_epilogue {\n");
    weft__put_members(r);
    weft__put(&r->text, "} w_epilogue;\n#define EPILOGUE_POINTERS");
    weft__put_pointers(r, " ");
    weft__put(&r->text, "\n#define EPILOGUE_NAMES");
    for (int a = 0; a < r->kernel->n_args; a++)
        if (a != r->product || r->kernel->args[a].written) weft__put(&r->text, " arg%d_,", a);
    weft__put(&r->text, "\n");
    put_function(r);
}

/* Writes the function once to find its arguments. Then writes all of the source twice: to learn its length,
 * and into memory. */
static const char *write_source(weft_render *r) {
    put_function(r);
    if (weft__render_argument_bytes(r) > WEFT_RENDER_BYTES - PRODUCT_BYTES) {
        r->literal = true;
        r->n_numbers = 0;
        put_function(r);
    }
    r->text = weft__text(NULL, 0);
    put_all(r);
    const size_t size = r->text.length + 1;
    char *memory = weft__arena_alloc(r->launches->arena, size);
    if (!memory || r->failed) return NULL;
    r->text = weft__text(memory, size);
    put_all(r);
    return memory;
}

static weft_status render(weft_render *r, weft_epilogue *out) {
    WEFT_TRY(weft__render_choose(r));
    out->source = write_source(r);
    out->prelude = weft__render_prelude(r);
    const size_t most = (size_t)r->kernel->n_args + r->n_numbers + 1;
    out->arguments = weft__arena_alloc(r->launches->arena, most * sizeof *out->arguments);
    if (!out->source || !out->arguments)
        return weft__fail_oom(r->launches->ctx, most * sizeof *out->arguments,
                              "the kernel source of an epilogue");
    out->n_arguments = (int)(weft__render_arguments(r, out->arguments) - out->arguments);
    return WEFT_OK;
}

weft_status weft__render_epilogue(weft_launches *launches, const weft_kernel *kernel, int product, int64_t n,
                                  weft_epilogue *out) {
    weft_kernel in_rows;
    if (!weft__kernel_in_rows(launches->arena, kernel, n, &in_rows))
        return weft__fail_oom(launches->ctx, sizeof in_rows, "an epilogue");
    weft_render r = {
        .launches = launches, .target = launches->target, .kernel = &in_rows, .product = product};
    const weft_status status = render(&r, out);
    weft__render_free(&r);
    return status;
}
