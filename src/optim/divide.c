/* Parameters that processes divide among them: ZeRO stage 3 (Rajbhandari et al. 2020, section 5.3), also
 * known as FSDP. Each process keeps only the part of each piece that it updates. The parts of a block lie one
 * after the other, and all processes have as many elements of a piece, so that a program can gather it:
 *
 *     piece                        |  part 0  |  part 1  |  part 2  |     in a program, while it is needed
 *     values, in rank 1                       |  part 1  |                always
 *
 * A process alone cannot read a parameter. weft_read and weft_write are calls of all processes. Must not
 * know: formulas, files. Read next: shard.c, compiler/passes/divided.c. */
#include <string.h>

#include "optim/optimizer.h"
#include "process/group.h"

enum { COPIED_BYTES = 1 << 20 }; /* of one broadcast */

/* A storage of a block whose elements the processes have divided. */
struct weft__division {
    weft_divided divided; /* first: the storage knows only this */
    const weft_optimizer *opt;
    const weft__block *block;
    weft_storage *storage; /* without a buffer */
    weft_tensor *own;      /* the parts of this process, a variable */
};

/* ---- access from outside of programs ---- */

/* Bytes of the storage that one process owns, and that lie in one piece. */
typedef struct owned {
    size_t bytes, at; /* at: their place in the parts of the owner */
    int owner;
} owned;

/* Finds who owns the byte `first`, and how many of the following bytes, at most `bytes`. */
static owned owner_of(const struct weft__division *d, size_t first, size_t bytes) {
    const weft__block *block = d->block;
    const size_t size = weft_dtype_size(weft_dtype_of(d->own));
    size_t i = 0;
    while (i + 1 < block->n_slices && first >= (size_t)block->slices[i + 1].begin * size) i++;
    const weft__slice *slice = &block->slices[i];
    const size_t each = (size_t)slice->each * size, from = first - (size_t)slice->begin * size,
                 left = (size_t)slice->n * size - from, in_part = each - from % each;
    size_t n = left < in_part ? left : in_part;
    if (n > bytes) n = bytes;
    if (n > COPIED_BYTES) n = COPIED_BYTES;
    return (owned){n, (size_t)slice->at * size + from % each, (int)(from / each)};
}

static weft_status divided_read(const weft_divided *divided, size_t first, void *to, size_t bytes) {
    const struct weft__division *d = (const struct weft__division *)divided;
    weft_context *ctx = d->opt->ctx;
    weft_process_group *g = d->opt->group;
    weft__process_group_purpose(g, d->opt->steps, "a parameter that all processes read");
    WEFT_TRY(weft__storage_place(ctx, d->own->storage));
    for (size_t at = 0; at < bytes;) {
        const owned o = owner_of(d, first + at, bytes - at);
        char *piece = (char *)to + at;
        if (o.owner == weft_process_group_rank(g))
            WEFT_TRY(ctx->hooks.download(ctx, d->own->storage->buffer, o.at, piece, o.bytes));
        WEFT_TRY(weft_process_group_broadcast(g, piece, o.bytes, o.owner));
        at += o.bytes;
    }
    return WEFT_OK;
}

static weft_status divided_write(const weft_divided *divided, size_t first, const void *from, size_t bytes) {
    const struct weft__division *d = (const struct weft__division *)divided;
    weft_context *ctx = d->opt->ctx;
    WEFT_TRY(weft__storage_place(ctx, d->own->storage));
    for (size_t at = 0; at < bytes;) {
        const owned o = owner_of(d, first + at, bytes - at);
        if (o.owner == weft_process_group_rank(d->opt->group))
            WEFT_TRY(ctx->hooks.upload(ctx, d->own->storage->buffer, o.at, (const char *)from + at, o.bytes));
        at += o.bytes;
    }
    return WEFT_OK;
}

/* What is left of the parameters when their optimizer is gone. */
static weft_status lost_read(const weft_divided *divided, size_t first, void *to, size_t bytes) {
    (void)divided, (void)first, (void)to, (void)bytes;
    return weft__fail(NULL, WEFT_ERR_STATE,
                      "the parameters were divided among processes by an optimizer that was freed: free it "
                      "after the last use of its module");
}
static weft_status lost_write(const weft_divided *divided, size_t first, const void *from, size_t bytes) {
    (void)from;
    return lost_read(divided, first, NULL, bytes);
}
static const weft_divided lost = {.read = lost_read, .write = lost_write};

/* ---- dividing ---- */

/* Makes the variable that holds the parts of this process, and lets a slice's variables share it. */
static weft_status make_parts(const struct weft__division *d, bool rounded) {
    weft_context *ctx = d->opt->ctx;
    const weft_dtype dtype = weft_dtype_of(d->own);
    const size_t size = weft_dtype_size(dtype);
    for (size_t i = 0; i < d->block->n_slices; i++) {
        weft__slice *slice = &d->block->slices[i];
        weft_tensor **part = rounded ? &slice->rounded : &slice->part;
        weft_divided_piece *piece = &d->divided.pieces[i];
        *piece = (weft_divided_piece){.from = slice->begin, .n = slice->n, .each = slice->each};
        piece->part = weft_variable_new(ctx, "a part of a piece", dtype, 1, &slice->each, NULL);
        WEFT_TRY(weft_tensor_status(piece->part));
        weft__variable_share(piece->part, d->own, (size_t)slice->at * size);
        if (!slice->own) continue;
        if (rounded) *part = weft_variable_new(ctx, "own rounded parameters", dtype, 1, &slice->own, NULL);
        WEFT_TRY(weft_tensor_status(*part));
        weft__variable_share(*part, d->own, (size_t)slice->at * size);
    }
    return WEFT_OK;
}

/* Reads a piece of the whole storage, or makes its first values. */
static weft_status read_piece(const struct weft__division *d, const weft__slice *slice, char *values,
                              size_t bytes) {
    weft_context *ctx = d->opt->ctx;
    const size_t first = (size_t)slice->begin * weft_dtype_size(weft_dtype_of(d->own));
    if (d->storage->buffer) return ctx->hooks.download(ctx, d->storage->buffer, first, values, bytes);
    memset(values, 0, bytes);
    weft__late_values(ctx, d->storage, first, bytes, values);
    return WEFT_OK;
}

/* Keeps the own part of a piece, and adds the piece to a hash. */
static weft_status keep_part(const struct weft__division *d, const weft__slice *slice,
                             weft__hash_stream *stream) {
    weft_context *ctx = d->opt->ctx;
    const size_t size = weft_dtype_size(weft_dtype_of(d->own)), bytes = (size_t)slice->n * size,
                 before = (size_t)(slice->from - slice->begin) * size;
    char *values = weft__alloc(ctx, bytes);
    if (!values) return weft__fail_oom(ctx, bytes, "a piece of the parameters");
    weft_status status = read_piece(d, slice, values, bytes);
    if (status == WEFT_OK) weft__hash_piece(stream, values, bytes);
    if (status == WEFT_OK && slice->own)
        status = ctx->hooks.upload(ctx, d->own->storage->buffer, (size_t)slice->at * size, values + before,
                                   (size_t)slice->own * size);
    weft__free(ctx, values);
    return status;
}

/* Makes the variables of a storage of the block: of its values, or of their rounded copy. */
static weft_status make_division(const weft_optimizer *opt, weft__block *block, weft_tensor *whole,
                                 weft__division **out) {
    weft_context *ctx = opt->ctx;
    const bool rounded = whole == block->rounded;
    weft__division *d = weft__zalloc(ctx, sizeof *d);
    if (!d) return weft__fail_oom(ctx, sizeof *d, "divided parameters");
    *out = d;
    d->opt = opt;
    d->block = block;
    d->storage = whole->storage;
    d->divided = (weft_divided){.identity = ++ctx->identities,
                                .count = block->n_slices,
                                .pieces = weft__array(ctx, block->n_slices, sizeof(weft_divided_piece)),
                                .read = divided_read,
                                .write = divided_write};
    if (!d->divided.pieces) return weft__fail_oom(ctx, block->n_slices, "divided parameters");
    d->own = weft_variable_new(ctx, rounded ? "own rounded parameters" : "own parameters",
                               weft_dtype_of(whole), 1, &block->n_own, NULL);
    WEFT_TRY(weft_tensor_status(d->own));
    WEFT_TRY(weft__storage_place(ctx, d->own->storage));
    return make_parts(d, rounded);
}

/* The storage gives up its memory. */
static void empty_storage(const struct weft__division *d) {
    if (d->storage->buffer) d->opt->ctx->hooks.buffer_free(d->opt->ctx, d->storage->buffer);
    d->storage->buffer = NULL;
    d->storage->divided = &d->divided;
}

weft_status weft__divide_parameters(weft_optimizer *opt, weft__block *block, weft__hash_stream *stream) {
    WEFT_TRY(make_division(opt, block, block->values, &block->divided));
    for (size_t i = 0; i < block->n_slices && !opt->group->planned; i++)
        WEFT_TRY(keep_part(block->divided, &block->slices[i], stream));
    empty_storage(block->divided);
    opt->ctx->divides = true;
    if (!block->rounded) return WEFT_OK;
    WEFT_TRY(make_division(opt, block, block->rounded, &block->divided_rounded));
    empty_storage(block->divided_rounded);
    return weft__round_parts(block);
}

void weft__division_release(weft_context *ctx, weft__division *d) {
    if (!d) return;
    if (d->storage->divided == &d->divided) d->storage->divided = &lost;
    for (size_t i = 0; d->divided.pieces && i < d->divided.count; i++) weft_free(d->divided.pieces[i].part);
    weft_free(d->own);
    weft__free(ctx, d->divided.pieces);
    weft__free(ctx, d);
}

weft_tensor *weft__division_own(const weft__division *d) { return d ? d->own : NULL; }

/* ---- after a change of the parts ---- */

void weft__divided_changed(const weft_optimizer *opt) {
    weft_context *ctx = opt->ctx;
    ctx->epoch++;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        const weft__block *block = &opt->blocks[b];
        block->values->storage->write_epoch = ctx->epoch;
        if (block->rounded) block->rounded->storage->write_epoch = ctx->epoch;
    }
}

weft_status weft__round_parts(const weft__block *block) {
    weft_tensor *to = block->divided_rounded->own;
    weft_scope *scope = weft_scope_open(to->ctx);
    if (!scope) return weft__fail_oom(to->ctx, 0, "a scope");
    weft_tensor *values = weft_cast_at(NULL, block->divided->own, weft_dtype_of(to));
    const weft_status status = weft_assign(&to, &values, 1);
    weft_scope_close(scope);
    if (status == WEFT_OK) block->rounded->storage->write_epoch = to->ctx->epoch;
    return status;
}
