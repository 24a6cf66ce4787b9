/* Kernel sources for GPUs, which lie in files of their own and are built into the library. weft__text_NAME is
 * NAME.cl below src/device/gpu/heavy. weft__text_prelude_NAME is src/device/gpu/prelude/NAME.cl or
 * src/kernel/prelude_NAME.h. The build finds the files and writes their declarations. */
#ifndef WEFT_DEVICE_GPU_BACKEND_TEXT_H
#define WEFT_DEVICE_GPU_BACKEND_TEXT_H

#include <gpu_texts.h>

#endif
