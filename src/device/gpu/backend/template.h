/* What the templates of heavy operations share: arguments of launches, and the definitions that choose a
 * dtype.
 * Must not know: operations. Read next: gpu/heavy/scatter.c, the simplest template. */
#ifndef WEFT_DEVICE_GPU_BACKEND_TEMPLATE_H
#define WEFT_DEVICE_GPU_BACKEND_TEMPLATE_H

#include "kernel/source.h"

#define READS(i, type)                                                                                       \
    { .kind = WEFT_ARGUMENT_OPERAND, .index = (i), .dtype = (uint8_t)(type) }
#define WRITES(i, type)                                                                                      \
    { .kind = WEFT_ARGUMENT_OPERAND, .index = (i), .dtype = (uint8_t)(type), .written = true }
#define SCRATCH(at, type)                                                                                    \
    { .kind = WEFT_ARGUMENT_SCRATCH, .i = (at), .dtype = (uint8_t)(type), .written = true }
#define I32(v)                                                                                               \
    { .kind = WEFT_ARGUMENT_I32, .i = (v) }
#define I64(v)                                                                                               \
    { .kind = WEFT_ARGUMENT_I64, .i = (v) }
#define F32(v)                                                                                               \
    { .kind = WEFT_ARGUMENT_F32, .f = (v) }
#define STRUCT(of)                                                                                           \
    { .kind = WEFT_ARGUMENT_STRUCT, .i = sizeof(of), .numbers = &(of) }
#define FAULT                                                                                                \
    { .kind = WEFT_ARGUMENT_FAULT }
#define ARGUMENTS(list) .arguments = (list), .n_arguments = (int)(sizeof(list) / sizeof *(list))

/* template.c: returns a kernel source in the arena, or NULL when memory is short. It consists of definitions
 * of T, S, FORMAT (gpu/heavy/storage.cl) and ITEMS, then `more`, storage.cl and `source`. */
const char *weft__gpu_template_source(weft_launches *launches, weft_dtype dtype, const char *more,
                                      const char *source);
/* Returns the parts of the prelude that LOAD and STORE need. */
unsigned weft__gpu_prelude(weft_dtype dtype);
/* Returns whether templates support the dtype and the device has it. */
bool weft__gpu_knows(const weft_target *target, weft_dtype dtype);
weft_dtype weft__gpu_sum_dtype(weft_dtype dtype); /* S of gpu/heavy/storage.cl */

#endif
