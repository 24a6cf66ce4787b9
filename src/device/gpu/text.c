/* Which parts of the prelude stand before a text. Read next: text.h. */
#include "device/gpu/text.h"
#include "device/gpu/gpu.h"

int weft__gpu_parts(weft_language language, unsigned prelude, const char *parts[WEFT_GPU_PARTS]) {
    int n = 0;
    (void)language, (void)prelude; /* one language, and no part beyond it yet */
    parts[n++] = weft__text_prelude_opencl;
    return n;
}
