/* The translator's entry: reads a source, prints its kernels. Read next: tokens.h. */
#include "device/webgpu/wgsl/wgsl.h"

#include <stdio.h>
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

struct weft_wgsl_source {
    weft_context *ctx;
    weft_arena arena;
    const weft_wgsl_tree *tree;
    int n_kernels;
    weft_wgsl_kernel *kernels;
    const weft_wgsl_function **functions; /* of the kernels */
};

static void read_all(weft_wgsl_run *run, weft_wgsl_source *s, const char *text) {
    weft__wgsl_builtin_types(run);
    const weft_wgsl_tokens tokens = weft__wgsl_tokens(run, text);
    const weft_wgsl_tokens expanded = weft__wgsl_preprocess(run, &tokens);
    s->tree = weft__wgsl_parse(run, &expanded);
    for (const weft_wgsl_function *f = s->tree->functions; f; f = f->next) s->n_kernels += f->kernel;
    if (!s->n_kernels) weft__wgsl_fail(run, expanded.list[expanded.count - 1].line, "the text has no kernel");
    s->kernels = weft__wgsl_alloc(run, (size_t)s->n_kernels * sizeof *s->kernels);
    s->functions = weft__wgsl_alloc(run, (size_t)s->n_kernels * sizeof(weft_wgsl_function *));
    int k = s->n_kernels;
    for (const weft_wgsl_function *f = s->tree->functions; f; f = f->next)
        if (f->kernel) s->functions[--k] = f;
}

/* Checks a kernel by printing it, into memory of its own. */
static weft_status check(weft_wgsl_source *s, int k, char *message, size_t bytes) {
    weft_arena arena;
    volatile weft_status status = WEFT_OK; /* the jump must not clobber it */
    weft__arena_init(&arena, s->ctx);
    weft_wgsl_run *run = weft__alloc(s->ctx, sizeof *run);
    if (!run) return WEFT_ERR_OOM;
    *run = (weft_wgsl_run){.ctx = s->ctx, .arena = &arena, .message = message, .message_bytes = bytes};
    if (setjmp(run->escape))
        status = run->no_memory ? WEFT_ERR_OOM : WEFT_ERR_DEVICE;
    else
        weft__wgsl_module(run, s->tree, s->functions[k], NULL, &s->kernels[k]);
    weft__free(s->ctx, run);
    weft__arena_free(&arena);
    return status;
}

weft_status weft__wgsl_read(weft_context *ctx, const char *text, weft_wgsl_source **source, char *message,
                            size_t bytes) {
    weft_wgsl_source *s = weft__alloc(ctx, sizeof *s);
    weft_wgsl_run *run = weft__alloc(ctx, sizeof *run);
    volatile weft_status status = WEFT_OK; /* the jump must not clobber it */
    *source = NULL;
    if (bytes) snprintf(message, bytes, "out of memory");
    if (!s || !run) {
        weft__free(ctx, s);
        weft__free(ctx, run);
        return WEFT_ERR_OOM;
    }
    *s = (weft_wgsl_source){.ctx = ctx};
    weft__arena_init(&s->arena, ctx);
    *run = (weft_wgsl_run){.ctx = ctx, .arena = &s->arena, .message = message, .message_bytes = bytes};
    if (setjmp(run->escape))
        status = run->no_memory ? WEFT_ERR_OOM : WEFT_ERR_DEVICE;
    else
        read_all(run, s, text);
    for (int k = 0; status == WEFT_OK && k < s->n_kernels; k++) status = check(s, k, message, bytes);
    weft__free(ctx, run);
    if (status != WEFT_OK) {
        weft__wgsl_free(s);
        return status;
    }
    *source = s;
    return WEFT_OK;
}

void weft__wgsl_free(weft_wgsl_source *source) {
    if (!source) return;
    weft__arena_free(&source->arena);
    weft__free(source->ctx, source);
}

int weft__wgsl_kernels(const weft_wgsl_source *source) { return source->n_kernels; }

const weft_wgsl_kernel *weft__wgsl_kernel(const weft_wgsl_source *source, int index) {
    return &source->kernels[index];
}

weft_status weft__wgsl_print(const weft_wgsl_source *source, int index, const int *binding, char **wgsl) {
    char message[256] = "";
    weft_wgsl_kernel facts;
    weft_arena arena;
    volatile weft_status status = WEFT_OK; /* the jump must not clobber it */
    *wgsl = NULL;
    weft__arena_init(&arena, source->ctx);
    weft_wgsl_run *run = weft__alloc(source->ctx, sizeof *run);
    if (!run) return weft__fail_oom(source->ctx, sizeof *run, "a kernel in WGSL");
    *run = (weft_wgsl_run){
        .ctx = source->ctx, .arena = &arena, .message = message, .message_bytes = sizeof message};
    if (setjmp(run->escape)) {
        status = run->no_memory ? weft__fail_oom(source->ctx, 4096, "a kernel in WGSL")
                                : weft__fail(source->ctx, WEFT_ERR_DEVICE, "webgpu: kernel %s: %s",
                                             source->kernels[index].name, message);
    } else {
        const char *text = weft__wgsl_module(run, source->tree, source->functions[index], binding, &facts);
        const size_t size = strlen(text) + 1;
        *wgsl = weft__alloc(source->ctx, size);
        if (*wgsl)
            memcpy(*wgsl, text, size);
        else
            status = weft__fail_oom(source->ctx, size, "a kernel in WGSL");
    }
    weft__free(source->ctx, run);
    weft__arena_free(&arena);
    return status;
}
