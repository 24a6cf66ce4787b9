/* Kernel sources for GPUs. They are in files of their own and are built into the library. The build finds the
 * files and writes their declarations.
 *
 *     weft__text_NAME            src/device/gpu/heavy/.../NAME.cl
 *     weft__text_prelude_NAME    src/device/gpu/prelude/NAME.cl or src/kernel/prelude_NAME.h
 *
 * Must not know: what kernels compute. Read next: text.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_TEXT_H
#define WEFT_DEVICE_GPU_BACKEND_TEXT_H

#include <gpu_texts.h>

#endif
