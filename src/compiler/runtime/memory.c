/* Memory of the device: the pool of buffers for results, the arena that all programs share, and the message
 * for a full device, which tells what holds the memory. Must not know: devices. Read next: program.c. */
#include <string.h>

#include "base/text.h"
#include "compiler/program.h"
#include "graph/graph.h"

static void put_bytes(weft_text *t, int64_t bytes) {
    const bool small = bytes < 1 << 20;
    weft__put(t, "%.1f %s", (double)bytes / (small ? 0x1p10 : 0x1p20), small ? "KiB" : "MiB");
}

/* "12.0 MiB of layers.0.attention: matmul ..., ..." */
static void put_largest(weft_text *t, const weft_program *program) {
    enum { LARGEST = 3 };
    const program_region *largest[LARGEST];
    const int count = weft__account_largest(program, largest, LARGEST);
    for (int i = 0; i < count; i++) {
        char name[2 * WEFT_COMMAND_TEXT];
        const char *path = weft__account_name(program, largest[i], name, sizeof name);
        weft__put(t, "%s", i ? ", " : "");
        put_bytes(t, largest[i]->bytes);
        weft__put(t, " of %s%s%s", path, *path ? ": " : "", name);
    }
}

/* ---- what lies on the device ---- */

enum { HOLDERS = 4 };

/* Iterates over all living tensors: those kept by the graph, then those of the open scopes. */
typedef struct tensor_walk {
    const weft_scope *scope;
    const weft_tensor *at;
} tensor_walk;

static const weft_tensor *next_stored(tensor_walk *w) {
    for (;;) {
        const weft_tensor *t = w->at;
        if (t) {
            w->at = t->next;
            if (t->leaf == WEFT_LEAF_STORAGE && t->storage && t->storage->buffer) return t;
        } else if (w->scope) {
            w->at = w->scope->nodes;
            w->scope = w->scope->parent;
        } else {
            return NULL;
        }
    }
}

static tensor_walk walk_all(const weft_context *ctx) { return (tensor_walk){ctx->scope, ctx->graph->kept}; }

static size_t memory_bytes_of(const weft_tensor *t) {
    return (size_t)t->numel * weft_dtype_size((weft_dtype)t->dtype);
}

static const char *name_of(const weft_tensor *t) {
    return t->name ? t->name : t->path && *t->path ? t->path : t->where ? t->where : "a result";
}

/* The largest storage that comes after `last` in an order by size. */
static const weft_storage *next_largest(const weft_context *ctx, const weft_storage *last) {
    const weft_storage *found = NULL;
    const weft_tensor *t;
    for (tensor_walk w = walk_all(ctx); (t = next_stored(&w));) {
        const weft_storage *s = t->storage;
        if (last && (s->bytes > last->bytes || (s->bytes == last->bytes && s >= last))) continue;
        if (!found || s->bytes > found->bytes || (s->bytes == found->bytes && s > found)) found = s;
    }
    return found;
}

/* "12.0 MiB of adam m (8 tensors, the largest m.0.weight of 4.0 MiB)" */
static void put_storage(weft_text *text, const weft_context *ctx, const weft_storage *s) {
    char shape[WEFT_SHAPE_TEXT];
    const weft_tensor *t, *whole = NULL, *largest = NULL;
    size_t members = 0;
    for (tensor_walk w = walk_all(ctx); (t = next_stored(&w));) {
        if (t->storage != s) continue;
        if (!whole || memory_bytes_of(t) > memory_bytes_of(whole)) whole = t;
    }
    for (tensor_walk w = walk_all(ctx); (t = next_stored(&w));) {
        if (t->storage != s || t == whole) continue;
        members++;
        if (!largest || memory_bytes_of(t) >= memory_bytes_of(largest))
            largest = t; /* the newest tensors come first */
    }
    put_bytes(text, (int64_t)s->bytes);
    weft__put(text, " of %s", name_of(whole));
    if (!largest) {
        weft__put(text, " %s", weft__tensor_text(whole, shape));
        return;
    }
    weft__put(text, " (%zu tensor%s, the largest %s of ", members, members == 1 ? "" : "s", name_of(largest));
    put_bytes(text, (int64_t)memory_bytes_of(largest));
    weft__put(text, ")");
}

static void put_holders(weft_text *text, const weft_context *ctx) {
    const weft_buffer *arena = ctx->compiler->arena;
    const weft_storage *s = NULL;
    const char *between = "";
    if (arena) {
        put_bytes(text, (int64_t)arena->bytes);
        weft__put(text, " of results of earlier programs");
        between = ", ";
    }
    for (int i = 0; i < HOLDERS && (s = next_largest(ctx, s)); i++, between = ", ") {
        weft__put(text, "%s", between);
        put_storage(text, ctx, s);
    }
    if (!*between) weft__put(text, "nothing");
}

weft_status weft__memory_gone(weft_context *ctx, const weft_program *program) {
    char text[WEFT_ERROR_SIZE];
    weft_text t = weft__text(text, sizeof text);
    weft__put(&t, "%s; on the device: ", weft_last_error(ctx));
    put_holders(&t, ctx);
    if (program) {
        weft__put(&t, "; the largest results of this program: ");
        put_largest(&t, program);
    }
    return weft__fail(
        ctx, WEFT_ERR_OOM, "%s; use %s, or take another device", text,
        program ? "a smaller batch or context, recompute activations or compute the logits in parts "
                  "(train.recompute, train.head_chunks, "
                  "weft_module_recompute, weft_gpt_options)"
                : "a smaller model or batch");
}

weft_status weft__memory_for(weft_context *ctx, weft_status status, const weft_tensor *t) {
    char shape[WEFT_SHAPE_TEXT];
    if (status != WEFT_ERR_OOM) return status;
    return weft__fail(ctx, status, "%s %s: %s", name_of(t), weft__tensor_text(t, shape),
                      weft_last_error(ctx));
}

enum { POOL_LIMIT = 256, POOL_BYTES = 64 << 20 };

static void empty_pool(weft_context *ctx) {
    weft_compiler *compiler = ctx->compiler;
    while (compiler->pool_count)
        ctx->device->ops->buffer_free(ctx->device, compiler->pool[--compiler->pool_count]);
    compiler->pool_bytes = 0;
}

/* Allocates a buffer. If the device is full, frees the pool and tries again. */
static weft_status new_buffer(weft_context *ctx, size_t bytes, weft_buffer **buffer) {
    const weft_status status = ctx->device->ops->buffer_new(ctx->device, bytes, buffer);
    if (status != WEFT_ERR_OOM || !ctx->compiler->pool_count) return status;
    empty_pool(ctx);
    return ctx->device->ops->buffer_new(ctx->device, bytes, buffer);
}

weft_status weft__pool_take(weft_context *ctx, size_t bytes, weft_buffer **buffer) {
    weft_compiler *compiler = ctx->compiler;
    size_t want = bytes ? (bytes + 63) & ~(size_t)63 : 64;
    for (size_t i = compiler->pool_count; i-- > 0;)
        if (compiler->pool[i]->bytes == want) {
            *buffer = compiler->pool[i];
            compiler->pool[i] = compiler->pool[--compiler->pool_count];
            compiler->pool_bytes -= want;
            return WEFT_OK;
        }
    const weft_status status = new_buffer(ctx, want, buffer);
    return status == WEFT_ERR_OOM ? weft__memory_gone(ctx, NULL) : status;
}

void weft__pool_give(weft_context *ctx, weft_buffer *buffer) {
    weft_compiler *compiler = ctx->compiler;
    bool keep = compiler->pool_count < POOL_LIMIT && compiler->pool_bytes + buffer->bytes <= POOL_BYTES &&
                weft__grow(ctx, &compiler->pool, &compiler->pool_capacity, compiler->pool_count,
                           sizeof *compiler->pool);
    if (!keep) {
        ctx->device->ops->buffer_free(ctx->device, buffer);
        return;
    }
    buffer->zero = false;
    compiler->pool[compiler->pool_count++] = buffer;
    compiler->pool_bytes += buffer->bytes;
}

/* ---- arena ---- */

weft_status weft__arena_reserve(const weft_program *program) {
    weft_context *ctx = program->ctx;
    weft_compiler *compiler = ctx->compiler;
    const size_t bytes = program->arena_bytes ? (size_t)program->arena_bytes : 64;
    if (compiler->arena && compiler->arena->bytes >= bytes) return WEFT_OK;
    if (compiler->arena) {
        WEFT_TRY(ctx->device->ops->synchronize(ctx->device));
        ctx->device->ops->buffer_free(ctx->device, compiler->arena);
        compiler->arena = NULL;
    }
    const weft_status status = new_buffer(ctx, bytes, &compiler->arena);
    if (status == WEFT_OK) return WEFT_OK;
    compiler->arena = NULL;
    return status == WEFT_ERR_OOM ? weft__memory_gone(ctx, program) : status;
}
