/* Sums over processes whose devices are linked, such as cards by NCCL: gradients stay on the devices. A sum
 * is a program of one exchange. Parts are gathered between two programs. Must not know: what is summed. Read
 * next: share.c, process/link.c, docs/design/045-links-between-cards.md.
 */
#include "compiler/program.h"
#include "ops/build.h"
#include "process/group.h"

static const char *const where = NULL;

weft_status weft__sum_linked(weft_tensor *t, bool tree) {
    const weft_attr_exchange attr = {.exact = tree};
    if (weft_numel(t) == 0) return WEFT_OK;
    weft_scope *scope = weft_scope_open(t->ctx);
    if (!scope) return weft__fail_oom(t->ctx, 0, "a scope");
    weft_tensor *sum = weft__exchange(where, t, &attr);
    const weft_status status = weft_assign(&t, &sum, 1);
    weft_scope_close(scope);
    return status;
}

weft_status weft__parts_linked(weft_tensor *whole, size_t first, size_t part, size_t bytes) {
    weft_context *ctx = whole->ctx;
    weft__process_link *link = ctx->link;
    const size_t begin = (size_t)whole->offset * weft_dtype_size(weft_dtype_of(whole)) + first,
                 own = part * (size_t)weft_process_group_rank(weft__process_link_group(link));
    if (bytes == 0) return WEFT_OK;
    WEFT_TRY(weft__storage_place(ctx, whole->storage));
    weft_buffer *buffer = whole->storage->buffer;
    WEFT_TRY(weft_synchronize(ctx));
    whole->storage->write_epoch = whole->epoch = ++ctx->epoch;
    WEFT_TRY(weft__process_link_all_gather(link, buffer, begin + own, buffer, begin, part, bytes));
    return weft__process_link_finish(link);
}

weft_status weft__link_devices(weft_context *ctx, weft_process_group *group) {
    if (weft__process_link_group(ctx->link) == group) return WEFT_OK;
    weft__process_link_close(ctx->link);
    ctx->link = NULL;
    ctx->device->linked = NULL;
    WEFT_TRY(weft__process_link_open(group, ctx->device, &ctx->link));
    ctx->device->linked = weft__process_link_programs(ctx->link);
    return WEFT_OK;
}
