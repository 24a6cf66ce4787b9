/* Red zones, with WEFT_DEBUG=memory. Results of a program then lie in the arena side by side. A zone is
 * before and behind each, and none takes the place of an earlier one. Before a run the whole arena holds NaN,
 * so that a read of what no kernel wrote shows in the results. After the run the zones must hold it still.
 * Must not know: kernels. Read next: program.c, passes/plan_memory.c. */
#include <string.h>

#include "compiler/program.h"

enum { NAN_BYTE = 0xff };

weft_status weft__zones_fill(weft_program *program) {
    weft_context *ctx = program->ctx;
    const size_t bytes = (size_t)program->arena_bytes;
    if (!bytes) return WEFT_OK;
    char *nans = weft__alloc(ctx, bytes);
    if (!nans) return weft__fail_oom(ctx, bytes, "red zones");
    memset(nans, NAN_BYTE, bytes);
    const weft_status status = ctx->device->ops->upload(ctx->device, ctx->compiler->arena, 0, nans, bytes);
    weft__free(ctx, nans);
    return status;
}

/* Fails if one of `bytes` bytes has changed. */
static weft_status check_zone(const weft_program *program, const program_region *region, const char *zone,
                              size_t bytes, const char *side) {
    char name[256];
    size_t i = 0;
    while (i < bytes && (unsigned char)zone[i] == NAN_BYTE) i++;
    if (i == bytes) return WEFT_OK;
    const char *path = weft__account_name(program, region, name, sizeof name);
    return weft__fail(
        program->ctx, WEFT_ERR_INTERNAL,
        "WEFT_DEBUG=memory: a kernel wrote %s the end of %s%s%s, %lld bytes at byte %lld of the "
        "arena, into byte %zu of the red zone",
        side, path, *path ? ": " : "", name, (long long)region->bytes, (long long)region->offset, i);
}

static weft_status check_all(const weft_program *program, const char *arena) {
    int64_t end = 0;                                   /* of the region before */
    for (int i = 0; i < program->regions.count; i++) { /* they are sorted by offset */
        const program_region *r = &program->regions.list[i];
        WEFT_TRY(check_zone(program, i ? r - 1 : r, arena + end, (size_t)(r->offset - end),
                            i ? "beyond" : "before the start or beyond"));
        end = r->offset + r->bytes;
    }
    const program_region *last = &program->regions.list[program->regions.count - 1];
    return check_zone(program, last, arena + end, (size_t)(program->arena_bytes - end), "beyond");
}

weft_status weft__zones_check(const weft_program *program) {
    weft_context *ctx = program->ctx;
    const size_t bytes = (size_t)program->arena_bytes;
    if (!bytes) return WEFT_OK;
    char *arena = weft__alloc(ctx, bytes);
    if (!arena) return weft__fail_oom(ctx, bytes, "red zones");
    weft_status status = ctx->device->ops->download(ctx->device, ctx->compiler->arena, 0, arena, bytes);
    if (status == WEFT_OK) status = check_all(program, arena);
    weft__free(ctx, arena);
    return status;
}
