/* From the record on the device to what the compiler reports. Read next: prelude/opencl.cl. */
#include "device/gpu/gpu.h"

int weft__gpu_path_number(weft_context *ctx, weft_gpu_paths *paths, const char *path) {
    path = weft__intern(ctx, path); /* programs come and go, the table stays as long as the layers are few */
    for (size_t i = 0; i < paths->count; i++)
        if (paths->list[i] == path) return (int)i;
    if (!weft__grow(ctx, &paths->list, &paths->capacity, paths->count, sizeof *paths->list)) return -1;
    paths->list[paths->count] = path;
    return (int)paths->count++;
}

weft_fault weft__gpu_fault(const weft_gpu_faults *record, const weft_gpu_paths *paths) {
    static const char *const whats[] = {
        "a bad value", "gather: index out of range", "div or mod: integer division by zero",
        "scatter-add: index out of range", "update: offset out of range"}; /* W_FAULT_... of the prelude */
    const size_t n = sizeof whats / sizeof *whats;
    const bool known = record->command >= 0 && (size_t)record->command < paths->count;
    return (weft_fault){.set = record->set != 0,
                        .what = whats[record->what > 0 && (size_t)record->what < n ? record->what : 0],
                        .path = known ? paths->list[record->command] : "",
                        .value = record->value,
                        .bound = record->bound,
                        .element = record->element};
}
