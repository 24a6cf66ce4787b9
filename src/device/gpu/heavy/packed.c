/* Matmuls of a few rows by packed matrices for the GPU backends, as in decoding. With more rows, a fused
 * kernel unpacks the matrix and a matmul reads the numbers: then each number is unpacked once. Must not know:
 * OpenCL, CUDA. Read next: packed.cl, heavy/packed.h. */
#include <stdio.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/packed_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

enum {
    ROWS_MOST = 8,
    WIDE = 16 /* work-items of a column */
};

_Static_assert(sizeof(w_packed) == 3 * 8 + 2 * 4, "no padding");

bool weft__gpu_packed_takes(const weft_target *target, const weft_heavy_packed *packed) {
    return packed->multiply && packed->m <= ROWS_MOST && packed->k > 0 && target->lanes % WIDE == 0;
}

static const char *gpu_packed_source_of(weft_launches *launches, const weft_heavy_packed *p) {
    const weft_packed_info *info = weft__packed_info(p->format);
    char head[160];
    snprintf(head, sizeof head,
             "#define %s\n#define ROWS %d\n#define WIDE %d\n#define BLOCK %d\n#define BYTES %d\n", info->name,
             (int)p->m, WIDE, (int)info->elements, (int)info->bytes);
    return weft__gpu_template_source(launches, WEFT_F32, head, weft__source_packed);
}

weft_status weft__gpu_packed(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_packed *p = &heavy->as.packed;
    if (p->m == 0 || p->n == 0) return WEFT_OK;
    const int items = launches->target->lanes;
    const w_packed of = {.n = p->n,
                         .k = p->k,
                         .row_bytes = weft__packed_row(weft__packed_info(p->format), p->k),
                         .sink = sink};
    weft_argument arguments[] = {READS(WEFT_PACKED_X, WEFT_F32), READS(WEFT_PACKED_MATRIX, WEFT_U8),
                                 WRITES(WEFT_PACKED_OUT, WEFT_F32), STRUCT(of), FAULT};
    const char *source = gpu_packed_source_of(launches, p);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a packed matmul");
    return weft__launch(launches, &(weft_launch){.name = "packed",
                                                 .source = source,
                                                 .prelude = weft__gpu_prelude(WEFT_F32),
                                                 ARGUMENTS(arguments),
                                                 .groups = {weft__ceil_div(p->n, items / WIDE), 1, 1},
                                                 .items = {items, 1, 1}});
}
