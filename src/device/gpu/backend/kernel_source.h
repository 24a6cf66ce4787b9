/* Kernel sources for GPUs. They are in files of their own and are built into the library. The build finds the
 * files and writes their declarations.
 *
 *     weft__source_NAME            src/device/gpu/heavy/.../NAME.cl
 *     weft__source_prelude_NAME    src/device/gpu/prelude/NAME.cl or src/kernel/prelude_NAME.h
 *
 * Must not know: what kernels compute. Read next: kernel_source.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_KERNEL_SOURCE_H
#define WEFT_DEVICE_GPU_BACKEND_KERNEL_SOURCE_H

#include <gpu_sources.h>

#endif
