/* Turns the fault record of a device into a weft_fault.
 * Must not know: OpenCL, CUDA. Read next: gpu/prelude/opencl.cl. */
#include "device/gpu/gpu.h"

_Static_assert(sizeof(w_faults) == 4 * 4 + 3 * 8, "no padding");
_Static_assert(W_FAULT_GATHER == (int)WEFT_FAULT_GATHER && W_FAULT_DIVIDE == (int)WEFT_FAULT_DIVIDE &&
                   W_FAULT_SCATTER == (int)WEFT_FAULT_SCATTER && W_FAULT_UPDATE == (int)WEFT_FAULT_UPDATE,
               "kernels and devices number the kinds of faults alike");

int weft__gpu_path_number(weft_context *ctx, weft_gpu_paths *paths, const char *path) {
    path = weft__intern(ctx, path); /* programs come and go; the table stays, since there are few layers */
    if (!path) return -1;
    for (size_t i = 0; i < paths->count; i++)
        if (paths->list[i] == path) return (int)i;
    if (!weft__grow(ctx, &paths->list, &paths->capacity, paths->count, sizeof *paths->list)) return -1;
    paths->list[paths->count] = path;
    return (int)paths->count++;
}

weft_fault weft__gpu_fault(const w_faults *record, const weft_gpu_paths *paths) {
    const bool named = record->what > WEFT_FAULT_NONE && record->what < WEFT_FAULT_KINDS;
    const bool known = record->command >= 0 && (size_t)record->command < paths->count;
    return (weft_fault){.set = record->set != 0,
                        .kind = named ? (weft_fault_kind)record->what : WEFT_FAULT_NONE,
                        .path = known ? paths->list[record->command] : "",
                        .value = record->value,
                        .bound = record->bound,
                        .element = record->element};
}
