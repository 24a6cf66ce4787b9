/* How elements lie in memory: values of FORMAT.
 * Must not know: operations. Read next: backend/template.c, storage.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_STORAGE_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_STORAGE_PARAMS_H

#define FORMAT_SAME 0 /* as they are computed with */
#define FORMAT_F16  1
#define FORMAT_BF16 2

#endif
