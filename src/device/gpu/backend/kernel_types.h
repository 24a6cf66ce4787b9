/* The integers of structs that C code fills in and kernels read.
 *
 * Such a struct has one definition, in a header NAME_params.h next to its template. C code includes the
 * header. Kernel source includes it with the same line, which the build replaces by the header
 * (tools/embed.cmake). In kernel source, gpu/prelude/common.cl defines the integers.
 *
 * Rules for a header NAME_params.h:
 *
 * - It holds macros and structs, and includes nothing else.
 * - A struct begins with `typedef struct w_name {` at the start of a line: fused launches rename it
 *   (backend/fused_launch.c).
 * - Fields have the types below. Wider fields come first, and there is no padding. C code asserts the size.
 * - C code passes the struct with STRUCT (backend/template.h). In W_NUMBERS it follows the operands' offsets.
 *
 * Must not know: templates. Read next: backend/template.h, gpu/heavy/scan_params.h. */
#ifndef WEFT_DEVICE_GPU_BACKEND_KERNEL_TYPES_H
#define WEFT_DEVICE_GPU_BACKEND_KERNEL_TYPES_H

#include <stdint.h>

typedef int32_t w_i32;
typedef uint32_t w_u32;
typedef int64_t w_i64;

_Static_assert(_Alignof(w_i64) == 8, "kernels align 64-bit fields to 8 bytes");

#endif
