/* The translator to WGSL on any kernel source, behind the prelude. It must return with modules or with a
 * message, and free all memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu/gpu.h"
#include "device/webgpu/wgsl/wgsl.h"
#include "kernel/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the prelude and the input. An input that begins with 0 is the whole source. */
static char *source_of(const uint8_t *data, size_t size) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const bool whole = size && !data[0];
    const int n =
        whole ? 0
              : weft__gpu_prelude_parts(WEFT_DIALECT_WGSL,
                                        WEFT_PRELUDE_LANES | WEFT_PRELUDE_F32 | WEFT_PRELUDE_RANDOM, parts);
    size_t length = 0;
    for (int i = 0; i < n; i++) length += strlen(parts[i]);
    char *text = malloc(length + size + 1), *to = text;
    if (!text) abort();
    for (int i = 0; i < n; i++) to = stpcpy(to, parts[i]);
    memcpy(to, data + whole, size - whole);
    to[size - whole] = 0;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static weft_context ctx;
    weft_wgsl_source *source;
    char message[200];
    char *text = source_of(data, size), *wgsl;
    int binding[WEFT_WGSL_POINTERS];
    const weft_status status = weft__wgsl_read(&ctx, text, &source, message, sizeof message);
    free(text);
    if (status != WEFT_OK) {
        if (status != WEFT_ERR_DEVICE || strncmp(message, "line ", 5) != 0 || source) abort();
        return 0;
    }
    for (int k = 0; k < weft__wgsl_kernels(source); k++)
        for (int shared = 1; shared < 3; shared++) { /* a buffer for each pointer, or for two */
            for (int i = 0; i < WEFT_WGSL_POINTERS; i++) binding[i] = i / shared;
            if (weft__wgsl_print(source, k, binding, &wgsl) == WEFT_OK) weft__free(&ctx, wgsl);
        }
    weft__wgsl_free(source);
    return 0;
}
