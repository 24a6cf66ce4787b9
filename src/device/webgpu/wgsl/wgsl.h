/* Kernel source (kernel/source.h), translated to WGSL, the language of WebGPU.
 *
 * A source is the C dialect of the templates and of rendered kernels behind the WGSL prelude. It is read
 * once. Then it is printed for a launch: WebGPU binds buffers, not pointers, and a buffer that a launch
 * writes must not be bound twice. So the caller says which pointer parameters lie in the same buffer. These
 * share a binding and differ in an offset. Must not know: the WebGPU API. */
#ifndef WEFT_DEVICE_WEBGPU_WGSL_WGSL_H
#define WEFT_DEVICE_WEBGPU_WGSL_WGSL_H

#include "base/base.h"

typedef struct weft_wgsl_source weft_wgsl_source;

enum { WEFT_WGSL_POINTERS = 60 }; /* of a kernel, at most */

/* A kernel of a source. */
typedef struct weft_wgsl_kernel {
    const char *name;
    int n_pointers; /* pointer parameters, in order; the last parameter is a struct of numbers or absent */
    bool written[WEFT_WGSL_POINTERS]; /* whether it stores through the pointer */
    int number_bytes;                 /* of the struct of numbers, with C's layout; 0: there is none */
    int items[3];                     /* of a work-group */
    int local_bytes;                  /* workgroup memory */
} weft_wgsl_kernel;

/* Reads a source: preprocesses, parses and checks it. On failure the status is WEFT_ERR_DEVICE and `message`
 * says what is not supported and at which line of the text. The source owns its memory. */
weft_status weft__wgsl_read(weft_context *ctx, const char *text, weft_wgsl_source **source, char *message,
                            size_t bytes);
void weft__wgsl_free(weft_wgsl_source *source);
int weft__wgsl_kernels(const weft_wgsl_source *source);
const weft_wgsl_kernel *weft__wgsl_kernel(const weft_wgsl_source *source, int index);

/* Prints kernel `index` as one module with the entry point "main".
 * binding[i] is the binding (0, 1, ..) of pointer parameter i; pointers with the same number share one
 * buffer.
 *
 * Bindings:
 *
 * - group 0, binding b: buffer b, an array of u32, for each binding b that a pointer has
 * - group 1, binding 0: words of 32 bits, padded with zeros to a multiple of 16 bytes
 *
 * The words:
 *
 * - 0 to 2: the number of work-groups in x, y, z that the launch asked for
 * - 3: 0, which compilers must not know
 * - 4 to 63: for each pointer parameter, its first byte in its buffer
 * - from 64 on: the struct of numbers as in memory
 *
 * A launch may have more work-groups than WebGPU's 65,535 in a dimension: the caller dispatches a 3-D grid
 * with at least x * y * z work-groups, and the text numbers them linearly and returns from those that are too
 * many. *wgsl is allocated with weft__alloc. */
enum { WEFT_WGSL_GROUP_WORDS = 4, WEFT_WGSL_NUMBERS_AT = WEFT_WGSL_GROUP_WORDS + WEFT_WGSL_POINTERS };
weft_status weft__wgsl_print(const weft_wgsl_source *source, int index, const int *binding, char **wgsl);

#endif
