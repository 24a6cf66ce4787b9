/* Writes the definitions that stand before a template's source.
 * Must not know: operations. Read next: template.h, gpu/heavy/storage.cl. */
#include "device/gpu/backend/template.h"

#include <string.h>

#include "base/text.h"
#include "device/gpu/backend/kernel_source.h"
#include "device/gpu/heavy/storage_params.h"

/* Integers wrap, so they are added as unsigned integers. */
static const struct storage {
    const char *stored, *sum;
    int format;
} storage[] = {
    [WEFT_F32] = {"float", "float", FORMAT_SAME},   [WEFT_F64] = {"double", "double", FORMAT_SAME},
    [WEFT_F16] = {"w_u16", "float", FORMAT_F16},    [WEFT_BF16] = {"w_u16", "float", FORMAT_BF16},
    [WEFT_I8] = {"uchar", "uchar", FORMAT_SAME},    [WEFT_U8] = {"uchar", "uchar", FORMAT_SAME},
    [WEFT_I16] = {"ushort", "ushort", FORMAT_SAME}, [WEFT_U16] = {"ushort", "ushort", FORMAT_SAME},
    [WEFT_I32] = {"uint", "uint", FORMAT_SAME},     [WEFT_U32] = {"uint", "uint", FORMAT_SAME},
    [WEFT_I64] = {"ulong", "ulong", FORMAT_SAME},   [WEFT_U64] = {"ulong", "ulong", FORMAT_SAME},
};

bool weft__gpu_knows(const weft_target *target, weft_dtype dtype) {
    const size_t known = sizeof storage / sizeof *storage;
    return (size_t)dtype < known && storage[dtype].stored && (dtype != WEFT_F64 || target->f64);
}

weft_dtype weft__gpu_sum_dtype(weft_dtype dtype) {
    return dtype == WEFT_F16 || dtype == WEFT_BF16 ? WEFT_F32 : dtype;
}

unsigned weft__gpu_prelude(weft_dtype dtype) { return dtype == WEFT_F64 ? WEFT_PRELUDE_F64 : 0; }

const char *weft__gpu_template_source(weft_launches *launches, weft_dtype dtype, const char *more,
                                      const char *source) {
    const size_t size = 512 + strlen(more) + strlen(weft__source_storage) + strlen(source);
    const struct storage *s = &storage[dtype];
    char *whole = weft__arena_alloc(launches->arena, size);
    if (!whole) return NULL;
    weft_text to = weft__text(whole, size);
    weft__put(&to, "#define T %s\n#define S %s\n#define FORMAT %d\n#define ITEMS %d\n%s%s%s", s->stored,
              s->sum, s->format, launches->target->lanes, more, weft__source_storage, source);
    return whole;
}
