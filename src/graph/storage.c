/* Device storage, and the leaves that are bound to it: data, scalars, variables, blocks of variables.
 * Must not know: devices; it reaches them through the hooks of the context.
 * Read next: variable.h, then optim/layout.c, which packs parameters into blocks. */
#include <string.h>
#include "graph/graph.h"

weft_storage *weft__storage_new(weft_context *ctx, size_t bytes) {
    weft_storage *storage = weft__zalloc(ctx, sizeof *storage);
    if (!storage) return NULL;
    storage->bytes = bytes;
    storage->users = 1;
    return storage;
}

void weft__storage_release(weft_context *ctx, weft_storage *storage) {
    if (!storage || --storage->users > 0) return;
    if (storage->buffer) ctx->hooks.buffer_free(ctx, storage->buffer);
    if (storage->other) ctx->hooks.buffer_free(ctx, storage->other);
    for (size_t i = 0; i < storage->n_late; i++) weft__free(ctx, storage->late[i].with);
    weft__free(ctx, storage->late);
    weft__free(ctx, storage);
}

/* ---- first values ---- */

/* Adds first values to a storage that has room for them. */
static weft_status add_late(weft_context *ctx, weft_storage *storage, const weft_late *late) {
    void *with = weft__alloc(ctx, late->with_bytes);
    if (!with) return weft__fail_oom(ctx, late->with_bytes, "first values");
    memcpy(with, late->with, late->with_bytes);
    storage->late[storage->n_late] = *late;
    storage->late[storage->n_late++].with = with;
    return WEFT_OK;
}

void weft__late_values(weft_context *ctx, const weft_storage *storage, size_t first, size_t bytes, char *to) {
    for (size_t i = 0; i < storage->n_late; i++) {
        const weft_late *late = &storage->late[i];
        if (late->offset >= first && late->offset < first + bytes)
            late->fill(ctx, late->with, to + (late->offset - first));
    }
}

enum { PIECE = 16 << 20 }; /* bytes of a block that the host prepares at a time, unless a variable has more */

/* The end of the piece of first values that begins at byte `from`: where a variable begins, or the end of the
 * storage. */
static size_t first_end(const weft_storage *storage, size_t from) {
    size_t end = storage->bytes;
    for (size_t i = storage->n_late; i-- > 0 && storage->late[i].offset > from;)
        if (end - from > PIECE) end = storage->late[i].offset;
    return end;
}

/* Writes the first values of a storage to its new buffer, which holds zeros. If the host cannot reach the
 * buffer, it prepares piece by piece, so that a large model never lies in its memory as a whole. */
static weft_status storage_fill(weft_context *ctx, const weft_storage *storage, weft_buffer *to) {
    if (!storage->n_late || !storage->bytes) return WEFT_OK;
    char *host = to->host;
    if (host) {
        weft__late_values(ctx, storage, 0, storage->bytes, host);
        return WEFT_OK;
    }
    weft_status status = WEFT_OK;
    for (size_t from = 0, end; from < storage->bytes && status == WEFT_OK; from = end) {
        end = first_end(storage, from);
        char *values = weft__zalloc(ctx, end - from);
        if (!values) return weft__fail_oom(ctx, end - from, "first values");
        weft__late_values(ctx, storage, from, end - from, values);
        status = ctx->hooks.upload(ctx, to, from, values, end - from);
        weft__free(ctx, values);
    }
    return status;
}

/* Fails if processes have divided the storage: no process has it whole. */
static weft_status refuse_divided(weft_context *ctx, const weft_storage *storage) {
    if (!storage->divided) return WEFT_OK;
    return weft__fail(
        ctx, WEFT_ERR_STATE,
        "the parameters are divided among processes (WEFT_SHARD_PARAMETERS), and none of them "
        "has them whole: read them with weft_read in all processes, and change them by steps or "
        "weft_write");
}

weft_status weft__storage_reserve(weft_context *ctx, weft_storage *storage) {
    WEFT_TRY(refuse_divided(ctx, storage));
    return storage->buffer ? WEFT_OK : ctx->hooks.buffer_new(ctx, storage->bytes, false, &storage->buffer);
}

void weft__storage_turn(weft_storage *storage) {
    weft_buffer *last = storage->buffer;
    if (!storage->turns) return;
    storage->buffer = storage->other;
    storage->other = last;
}

weft_status weft__storage_place(weft_context *ctx, weft_storage *storage) {
    if (storage->buffer) return WEFT_OK;
    WEFT_TRY(refuse_divided(ctx, storage));
    weft_buffer *buffer;
    WEFT_TRY(ctx->hooks.buffer_new(ctx, storage->bytes, true, &buffer));
    weft_status status = storage_fill(ctx, storage, buffer);
    if (status == WEFT_OK)
        storage->buffer = buffer;
    else
        ctx->hooks.buffer_free(ctx, buffer);
    return status;
}

/* ---- leaves ---- */

/* Returns a leaf over new storage. With data, the storage holds a copy; without, it has no buffer yet and its
 * first values follow when it is placed. */
static weft_tensor *leaf(weft_context *ctx, const char *op, const char *name, weft_dtype dtype, int rank,
                         const int64_t *shape, const void *data) {
    int64_t numel, bytes;
    if (!ctx || (rank && !shape)) return weft__poison_null(ctx, NULL, op, ctx ? "shape" : "ctx");
    if ((unsigned)dtype >= WEFT_DTYPE_COUNT)
        return weft__poison(ctx, NULL, WEFT_ERR_DTYPE, "%s: unknown dtype %d", op, (int)dtype);
    if (rank < 0 || rank > WEFT_MAX_RANK)
        return weft__poison(ctx, NULL, WEFT_ERR_SHAPE, "%s: rank %d is not in 0..%d", op, rank,
                            WEFT_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0)
            return weft__poison(ctx, NULL, WEFT_ERR_SHAPE, "%s: dimension %d is %lld", op, i,
                                (long long)shape[i]);
    if (!weft__numel(rank, shape, &numel) || !weft__mul(numel, (int64_t)weft_dtype_size(dtype), &bytes))
        return weft__poison(ctx, NULL, WEFT_ERR_SHAPE, "%s: more elements than memory can address", op);
    if (ctx->hooks.check_dtype(ctx, (int)dtype) != WEFT_OK)
        return weft__poison(ctx, NULL, weft_last_status(ctx), "%s: %s", op, weft_last_error(ctx));
    weft_tensor *t = weft__node(ctx, NULL, WEFT_OP_INPUT, dtype, rank, shape, 0, NULL, 0, NULL);
    if (t->error) return t;
    t->leaf = WEFT_LEAF_STORAGE;
    t->name = weft__intern(ctx, name);
    t->storage = weft__storage_new(ctx, (size_t)bytes);
    if (!t->name || !t->storage) return &ctx->graph->oom;
    if (!data || !bytes) return t;
    weft_status status = weft__storage_reserve(ctx, t->storage);
    if (status == WEFT_OK) status = ctx->hooks.upload(ctx, t->storage->buffer, 0, data, (size_t)bytes);
    return status == WEFT_OK ? t : weft__poison(ctx, NULL, status, "%s: %s", op, weft_last_error(ctx));
}

weft_tensor *weft_from(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                       const void *data) {
    if (!data && ctx && rank >= 0 && rank <= WEFT_MAX_RANK && (shape || !rank)) {
        int64_t numel = 0;
        if (weft__numel(rank, shape, &numel) && numel > 0) WEFT_NEED_OR_POISON(ctx, NULL, data);
    }
    return leaf(ctx, "weft_from", "data", dtype, rank, shape, data);
}

weft_tensor *weft_variable_new(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                               const int64_t *shape, const void *data) {
    WEFT_NEED_OR_POISON(NULL, NULL, ctx);
    if (rank != 0) WEFT_NEED_OR_POISON(ctx, NULL, shape);
    weft_tensor *t =
        leaf(ctx, name ? name : "weft_variable_new", name ? name : "variable", dtype, rank, shape, data);
    if (t->error) return t;
    t->flags |= WEFT_NODE_VARIABLE;
    weft__node_is_data(t);
    return weft_keep(t);
}

weft_tensor *weft__variable_filled(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                                   const int64_t *shape,
                                   void (*make)(weft_context *ctx, const void *with, void *values),
                                   const void *with, size_t with_bytes) {
    weft_tensor *t = weft_variable_new(ctx, name, dtype, rank, shape, NULL);
    if (t->error) return t;
    const weft_late late = {0, make, (void *)(uintptr_t)with, with_bytes};
    t->storage->late = weft__array(ctx, 1, sizeof late);
    if (t->storage->late && add_late(ctx, t->storage, &late) == WEFT_OK) return t;
    weft_free(t);
    return &ctx->graph->oom;
}

static weft_attr_const number_of(weft_dtype dtype, double value) {
    int64_t whole = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0;
    if (dtype == WEFT_U64 && value >= 0x1p63 && value < 0x1p64) whole = (int64_t)(uint64_t)value;
    return (weft_attr_const){value, whole};
}

weft_tensor *weft_scalar_of(weft_context *ctx, weft_dtype dtype, double value) {
    WEFT_NEED_OR_POISON(NULL, NULL, ctx);
    if ((unsigned)dtype >= WEFT_DTYPE_COUNT || dtype == WEFT_C64 || dtype == WEFT_C128)
        return weft__poison(ctx, NULL, WEFT_ERR_DTYPE, "weft_scalar: %s is not accepted",
                            weft_dtype_name(dtype));
    if (ctx->hooks.check_dtype(ctx, (int)dtype) != WEFT_OK)
        return weft__poison(ctx, NULL, weft_last_status(ctx), "%s", weft_last_error(ctx));
    weft_tensor *t = weft__node(ctx, NULL, WEFT_OP_INPUT, dtype, 0, NULL, 0, NULL, 0, NULL);
    if (t->error) return t;
    t->leaf = WEFT_LEAF_SCALAR;
    t->value.number = number_of(dtype, value);
    return t;
}

weft_tensor *weft_scalar(weft_context *ctx, float value) {
    WEFT_NEED_OR_POISON(NULL, NULL, ctx);
    return weft_scalar_of(ctx, WEFT_F32, (double)value);
}

weft_status weft_set_scalar(weft_tensor *scalar, double value) {
    WEFT_NEED(NULL, scalar);
    if (scalar->leaf != WEFT_LEAF_SCALAR)
        return weft__fail(scalar->ctx, WEFT_ERR_ARGUMENT,
                          "weft_set_scalar: the tensor was not made by weft_scalar");
    scalar->value.number = number_of((weft_dtype)scalar->dtype, value);
    scalar->epoch = ++scalar->ctx->epoch;
    return WEFT_OK;
}

/* ---- blocks ---- */

int64_t weft__variable_offset(const weft_tensor *variable) {
    return weft_dtype_is_complex((weft_dtype)variable->dtype) ? 2 * variable->offset : variable->offset;
}
const char *weft__variable_name(const weft_tensor *variable) { return variable->name; }

void weft__variable_share(weft_tensor *variable, const weft_tensor *whole, size_t offset) {
    weft__storage_release(variable->ctx, variable->storage);
    variable->storage = whole->storage;
    variable->storage->users++;
    variable->offset = (int64_t)(offset / weft_dtype_size((weft_dtype)variable->dtype));
}

weft_tensor *weft__rounded_part(const char *where, const weft_tensor *variable, weft_dtype dtype) {
    const weft_storage *from = variable->storage;
    const weft_tensor *whole = from ? from->rounded : NULL;
    if (!whole || whole->dtype != dtype) return NULL;
    if (!whole->storage->write_epoch) {
        const weft_status status = from->round(from->rounder);
        if (status != WEFT_OK)
            return weft__poison(variable->ctx, where, status, "%s", weft_last_error(variable->ctx));
    }
    if (whole->storage->write_epoch < from->write_epoch) return NULL;
    weft_tensor *t = weft__node(variable->ctx, where, WEFT_OP_INPUT, dtype, variable->rank, variable->shape,
                                0, NULL, 0, NULL);
    if (t->error) return t;
    t->leaf = WEFT_LEAF_STORAGE;
    t->name = variable->name;
    t->storage = whole->storage;
    t->storage->users++;
    t->offset = variable->offset;
    return t;
}

/* Computes where each variable of a block begins, at multiples of 64 bytes. Writes count + 1 offsets in
 * bytes; the last one is the size of the block, which is also returned. */
static size_t block_layout(weft_tensor *const *variables, size_t count, size_t *offsets) {
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = end;
        end += ((size_t)variables[i]->numel * weft_dtype_size((weft_dtype)variables[i]->dtype) + 63) &
               ~(size_t)63;
    }
    offsets[count] = end;
    return end;
}

/* Copies the values of a variable, or its first values, to host memory that holds zeros. */
static weft_status values_of(weft_context *ctx, const weft_tensor *v, char *to) {
    const weft_storage *storage = v->storage;
    const size_t size = weft_dtype_size((weft_dtype)v->dtype), bytes = (size_t)v->numel * size;
    if (storage->buffer && bytes)
        return ctx->hooks.download(ctx, storage->buffer, (size_t)v->offset * size, to, bytes);
    weft__late_values(ctx, storage, (size_t)v->offset * size, bytes, to);
    return WEFT_OK;
}

/* The first values of a variable that has no buffer. NULL: zeros. */
static const weft_late *late_of(const weft_tensor *v) {
    const weft_storage *storage = v->storage;
    const size_t offset = (size_t)v->offset * weft_dtype_size((weft_dtype)v->dtype);
    for (size_t i = 0; i < storage->n_late; i++)
        if (storage->late[i].offset == offset) return &storage->late[i];
    return NULL;
}

/* Notes how a block gets its first values, later: so processes can divide it before one of them has all of
 * it. */
static weft_status block_late(weft_context *ctx, weft_tensor *const *variables, size_t count,
                              const size_t *offsets, weft_storage *block) {
    block->late = weft__array(ctx, count, sizeof *block->late);
    if (!block->late) return weft__fail_oom(ctx, count * sizeof *block->late, "first values");
    for (size_t i = 0; i < count; i++) {
        const weft_late *late = variables[i]->numel ? late_of(variables[i]) : NULL;
        if (late)
            WEFT_TRY(
                add_late(ctx, block, &(weft_late){offsets[i], late->fill, late->with, late->with_bytes}));
    }
    return WEFT_OK;
}

/* The end of the piece that begins with variable `first`. A piece has at most PIECE bytes, or one
 * variable. */
static size_t piece_end(const size_t *offsets, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && offsets[end + 1] - offsets[first] <= PIECE) end++;
    return end;
}

/* Prepares the values on the host piece by piece, so that a large model never lies in host memory as a
 * whole. */
static weft_status block_upload(weft_context *ctx, weft_tensor *const *variables, size_t count,
                                const size_t *offsets, weft_buffer *to) {
    size_t room = 0;
    for (size_t i = 0, end; i < count; i = end) {
        end = piece_end(offsets, count, i);
        if (offsets[end] - offsets[i] > room) room = offsets[end] - offsets[i];
    }
    char *values = weft__alloc(ctx, room);
    if (!values) return weft__fail_oom(ctx, room, "a piece of a block of variables");
    weft_status status = WEFT_OK;
    for (size_t i = 0, end; i < count && status == WEFT_OK; i = end) {
        end = piece_end(offsets, count, i);
        const size_t from = offsets[i], bytes = offsets[end] - from;
        memset(values, 0, bytes);
        for (size_t k = i; k < end && status == WEFT_OK; k++)
            status = values_of(ctx, variables[k], values + (offsets[k] - from));
        if (status == WEFT_OK) status = ctx->hooks.upload(ctx, to, from, values, bytes);
    }
    weft__free(ctx, values);
    return status;
}

/* Fills a block with the values of its variables. A block of first values gets no buffer yet. Other blocks
 * are written in place if the host can reach their memory, else uploaded. */
static weft_status block_fill(weft_context *ctx, weft_tensor *const *variables, size_t count,
                              const size_t *offsets, weft_storage *block) {
    bool late = true;
    for (size_t i = 0; i < count; i++) WEFT_TRY(refuse_divided(ctx, variables[i]->storage));
    for (size_t i = 0; i < count; i++) late &= !variables[i]->storage->buffer;
    if (late) return block_late(ctx, variables, count, offsets, block);
    WEFT_TRY(weft__storage_place(ctx, block));
    char *host = block->buffer->host;
    if (!host) return block_upload(ctx, variables, count, offsets, block->buffer);
    for (size_t i = 0; i < count; i++) WEFT_TRY(values_of(ctx, variables[i], host + offsets[i]));
    return WEFT_OK;
}

weft_status weft__variables_place(weft_context *ctx, const char *name, weft_tensor *const *variables,
                                  size_t count, weft_tensor **block) {
    const weft_dtype dtype = count ? weft__part_dtype((weft_dtype)variables[0]->dtype) : WEFT_F32;
    for (size_t i = 0; i < count; i++)
        if (!(variables[i]->flags & WEFT_NODE_VARIABLE) ||
            weft__part_dtype((weft_dtype)variables[i]->dtype) != dtype)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "placing '%s': all variables of a block must have one dtype",
                              variables[i]->name ? variables[i]->name : "?");
    size_t *offsets = weft__array(ctx, count + 1, sizeof *offsets);
    if (!offsets) return weft__fail_oom(ctx, count * sizeof *offsets, "a block's layout");
    size_t bytes = block_layout(variables, count, offsets);
    size_t size = weft_dtype_size(dtype);
    int64_t n = (int64_t)(bytes / size);
    weft_tensor *whole = weft_variable_new(ctx, name, dtype, 1, &n, NULL);
    weft_status status = weft_tensor_status(whole);
    if (status == WEFT_OK) status = block_fill(ctx, variables, count, offsets, whole->storage);
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        weft_tensor *v = variables[i];
        weft__variable_share(v, whole, offsets[i]);
        if (whole->storage->write_epoch < v->epoch) whole->storage->write_epoch = v->epoch;
    }
    weft__free(ctx, offsets);
    if (status != WEFT_OK) {
        weft_free(whole);
        return weft__fail(ctx, status, "%s: %s", name, weft_last_error(ctx));
    }
    *block = whole;
    return WEFT_OK;
}
