/* Opens and closes a context, which consists of graph, device and compiler. Sets the hooks through which
 * lower folders call upward. Must not know: how a device works. Read next: eval.c, memory.c. */
#define _GNU_SOURCE /* secure_getenv */
#include <stdlib.h>
#include <string.h>
#include "compiler/profile/profile.h"
#include "process/group.h"

/* ---- hooks ---- */

/* Memory fresh from the system is zero already, so it is not written. */
static weft_status hook_buffer_new(weft_context *ctx, size_t bytes, bool zeroed, weft_buffer **buffer) {
    WEFT_TRY(weft__pool_take(ctx, bytes, buffer));
    if (!zeroed || (*buffer)->zero) return WEFT_OK;
    weft_status status = ctx->device->ops->zero(ctx->device, *buffer, 0, bytes);
    if (status != WEFT_OK) weft__pool_give(ctx, *buffer);
    return status;
}

static weft_status hook_upload(weft_context *ctx, weft_buffer *to, size_t offset, const void *from,
                               size_t bytes) {
    WEFT_TRY(weft__device_usable(ctx->device));
    ctx->device->uploads++;
    ctx->device->bytes_up += bytes;
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_UPLOAD);
    weft_status status = ctx->device->ops->upload(ctx->device, to, offset, from, bytes);
    weft__profile_leave(ctx, span);
    return status;
}

static weft_status wait_for_device(weft_context *ctx) {
    WEFT_TRY(weft__device_usable(ctx->device));
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_DEVICE);
    weft_status status = ctx->device->ops->synchronize(ctx->device);
    weft__profile_leave(ctx, span);
    return status;
}

weft_status weft__download_all(weft_context *ctx, const weft_piece *pieces, size_t n) {
    WEFT_TRY(weft__device_usable(ctx->device));
    ctx->device->downloads += n;
    for (size_t i = 0; i < n; i++) ctx->device->bytes_down += pieces[i].bytes;
    if (ctx->compiler->profile && ctx->device->asynchronous) WEFT_TRY(wait_for_device(ctx));
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_DOWNLOAD);
    weft_status status = weft__device_download_all(ctx->device, pieces, n);
    weft__profile_leave(ctx, span);
    if (status == WEFT_OK && ctx->device->asynchronous) status = weft__report_fault(ctx);
    return status;
}

static weft_status hook_download(weft_context *ctx, const weft_buffer *from, size_t offset, void *to,
                                 size_t bytes) {
    return weft__download_all(ctx, &(weft_piece){from, offset, to, bytes}, 1);
}

static weft_status hook_check_dtype(weft_context *ctx, int dtype) {
    return ctx->device->ops->check_dtype(ctx->device, (weft_dtype)dtype);
}

/* ---- open and close ---- */

static weft_status open_compiler(weft_context *ctx, const weft_open_options *options) {
    weft_compiler *compiler = weft__zalloc(ctx, sizeof *compiler);
    if (!compiler) return weft__fail_oom(ctx, sizeof *compiler, "the compiler");
    ctx->compiler = compiler;
    compiler->fuse = !options->no_fusion;
    const char *debug = secure_getenv("WEFT_DEBUG");
    if (debug && ctx->caller.log) {
        if (strstr(debug, "graph")) compiler->debug |= DEBUG_GRAPH;
        if (strstr(debug, "kernels")) compiler->debug |= DEBUG_KERNELS;
        if (strstr(debug, "plan")) compiler->debug |= DEBUG_PLAN;
        if (strstr(debug, "launch")) compiler->debug |= DEBUG_LAUNCH;
    }
    if (debug && strstr(debug, "memory")) compiler->debug |= DEBUG_MEMORY;
    return WEFT_OK;
}

static weft_status open_parts(weft_context *ctx, const weft_open_options *options) {
    WEFT_TRY(open_compiler(ctx, options));
    WEFT_TRY(weft__device_open(ctx, options->device, options, &ctx->device));
    ctx->hooks.eval = NULL;
    ctx->hooks.buffer_new = hook_buffer_new;
    ctx->hooks.buffer_free = weft__pool_give;
    ctx->hooks.upload = hook_upload;
    ctx->hooks.download = hook_download;
    ctx->hooks.check_dtype = hook_check_dtype;
    ctx->hooks.device = ctx->device->name;
    return weft__graph_open(ctx);
}

static weft_status eval_hook(weft_context *ctx, weft_tensor *const *tensors, size_t count) {
    (void)ctx;
    return weft_eval(tensors, count);
}

weft_status weft_open(const weft_open_options *options, weft_context **out) {
    static const weft_open_options none;
    if (!out) return weft__fail_null(NULL, "weft_open", "ctx");
    *out = NULL;
    if (!options) options = &none;
    weft_context *ctx =
        options->alloc ? options->alloc(options->alloc_user, NULL, sizeof *ctx) : malloc(sizeof *ctx);
    if (!ctx) return weft__fail_oom(NULL, sizeof *ctx, "a context");
    memset(ctx, 0, sizeof *ctx);
    ctx->caller.alloc = options->alloc;
    ctx->caller.alloc_user = options->alloc_user;
    ctx->caller.log = options->log;
    ctx->caller.log_user = options->log_user;
    ctx->caller.interrupted = options->interrupted;
    ctx->caller.interrupted_user = options->interrupted_user;
    ctx->random.seed = options->seed;
    ctx->path = "";
    ctx->training = true;
    const double from = weft__profile_now();
    weft_status status = open_parts(ctx, options);
    ctx->open_seconds = 1e-9 * (weft__profile_now() - from);
    ctx->hooks.eval = eval_hook;
    if (status != WEFT_OK) {
        weft_close(ctx);
        return status;
    }
    *out = ctx;
    return WEFT_OK;
}

static void close_compiler(weft_context *ctx) {
    weft_compiler *compiler = ctx->compiler;
    if (!compiler) return;
    if (ctx->device) {
        weft__cache_free(ctx, compiler);
        while (compiler->pool_count)
            ctx->device->ops->buffer_free(ctx->device, compiler->pool[--compiler->pool_count]);
        if (compiler->arena) ctx->device->ops->buffer_free(ctx->device, compiler->arena);
    }
    weft__free(ctx, compiler->pool);
    weft__free(ctx, compiler->stack);
    weft__free(ctx, compiler->walk.leaves);
    weft__free(ctx, compiler->walk.due);
    weft__free(ctx, compiler);
    ctx->compiler = NULL;
}

void weft_close(weft_context *ctx) {
    if (!ctx) return;
    if (ctx->compiler) weft_profile_stop(ctx->compiler->profile);
    if (ctx->hooks.modules_free) ctx->hooks.modules_free(ctx);
    weft__tombstones_free(ctx);
    while (ctx->compiler && ctx->compiler->by_hand) weft_program_free(ctx->compiler->by_hand);
    weft__graph_close(ctx);
    close_compiler(ctx);
    weft__process_link_close(ctx->link);
    if (ctx->device) ctx->device->linked = NULL;
    if (ctx->device) ctx->device->ops->close(ctx->device);
    weft__strings_free(ctx);
    weft_alloc_fn alloc = ctx->caller.alloc;
    if (alloc)
        alloc(ctx->caller.alloc_user, ctx, 0);
    else
        free(ctx);
}

void weft_seed(weft_context *ctx, uint64_t seed, uint64_t step) {
    if (!ctx) return;
    ctx->random.seed = seed;
    ctx->random.step = step;
    ctx->random.ordinal = 0;
}

const char *weft_device_of(const weft_context *ctx) { return ctx ? ctx->device->name : ""; }

weft_status weft_synchronize(weft_context *ctx) {
    WEFT_NEED(NULL, ctx);
    WEFT_TRY(wait_for_device(ctx));
    return weft__report_fault(ctx);
}
