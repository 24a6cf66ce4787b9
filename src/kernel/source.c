/* Lists of launches. Must not know: what is launched. Read next: source.h. */
#include <string.h>

#include "kernel/source.h"

static bool keep_numbers(weft_launches *launches, weft_argument *a) {
    void *kept = a->kind == WEFT_ARGUMENT_STRUCT ? weft__arena_alloc(launches->arena, (size_t)a->i) : NULL;
    if (kept) a->numbers = memcpy(kept, a->numbers, (size_t)a->i);
    return kept || a->kind != WEFT_ARGUMENT_STRUCT;
}

weft_status weft__launch(weft_launches *launches, const weft_launch *launch) {
    weft_context *ctx = launches->ctx;
    const size_t bytes = (size_t)launch->n_arguments * sizeof *launch->arguments;
    weft_argument *arguments = weft__arena_alloc(launches->arena, bytes + 1);
    if (!arguments || !weft__grow(ctx, &launches->list, &launches->capacity, (size_t)launches->count,
                                  sizeof *launches->list))
        return weft__fail_oom(ctx, bytes + sizeof *launch, "a launch");
    if (bytes) memcpy(arguments, launch->arguments, bytes);
    for (int i = 0; i < launch->n_arguments; i++)
        if (!keep_numbers(launches, &arguments[i]))
            return weft__fail_oom(ctx, (size_t)arguments[i].i, "a launch");
    weft_launch *added = &launches->list[launches->count++];
    *added = *launch;
    added->arguments = arguments;
    return WEFT_OK;
}
