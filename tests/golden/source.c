/* Renders the kernel of a command for a card that is only described. Read next: kernel/source.h. */
#include "golden/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "device/gpu/gpu.h"
#include "device/webgpu/wgsl/wgsl.h"
#include "kernel/source.h"

enum { OPERANDS_MOST = 64 };

/* Puts the module of each kernel of a launch. */
static void put_wgsl(weft_context *ctx, weft_text *out, const weft_launch *launch) {
    static char source[1 << 18];
    static int binding[WEFT_WGSL_POINTERS];
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    char message[400], *wgsl;
    weft_wgsl_source *read;
    weft_text text = weft__text(source, sizeof source);
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_WGSL, launch->prelude, parts);
    for (int i = 0; i < WEFT_WGSL_POINTERS; i++) binding[i] = i;
    for (int i = 0; i < n; i++) weft__put(&text, "%s", parts[i]);
    weft__put(&text, "%s", launch->source);
    if (weft__wgsl_read(ctx, source, &read, message, sizeof message) != WEFT_OK) fail_msg("%s", message);
    for (int k = 0; k < weft__wgsl_kernels(read); k++) {
        if (weft__wgsl_print(read, k, binding, &wgsl) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
        weft__put(out, "%s\n", wgsl);
        weft__free(ctx, wgsl);
    }
    weft__wgsl_free(read);
}

static weft_status render_epilogue(weft_launches *launches, const weft_heavy_matmul *mm) {
    weft_epilogue epilogue;
    WEFT_TRY(weft__render_epilogue(launches, mm->epilogue, mm->product, mm->n, &epilogue));
    return weft__launch(launches, &(weft_launch){.source = epilogue.source});
}

void golden_source(weft_context *ctx, const weft_command *command, weft_dialect dialect, weft_text *out) {
    const weft_target target = {.dialect = dialect,
                                .lanes = dialect == WEFT_DIALECT_CUDA ? 256 : 64,
                                .units = 4,
                                .f64 = dialect != WEFT_DIALECT_WGSL};
    uint8_t aligned[OPERANDS_MOST];
    memset(aligned, 16, sizeof aligned); /* as values of a program are */
    weft_arena arena;
    weft__arena_init(&arena, ctx);
    weft_launches launches = {.ctx = ctx, .arena = &arena, .target = &target, .aligned = aligned};
    const weft_status status = command->kernel ? weft__render(&launches, command->kernel, command->sink)
                                               : render_epilogue(&launches, &command->heavy.as.matmul);
    if (status != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
    for (int l = 0; l < launches.count; l++)
        if (dialect == WEFT_DIALECT_WGSL)
            put_wgsl(ctx, out, &launches.list[l]);
        else
            weft__put(out, "%s\n", launches.list[l].source);
    weft__free(ctx, launches.list);
    weft__arena_free(&arena);
}
