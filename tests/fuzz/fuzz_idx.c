/* Any bytes as an idx file. */
#include "bounded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded b;
    weft_context ctx = bounded_context(&b, 2 * size + 4096);
    weft_array a;
    weft_status status = weft__parse_idx(&ctx, data, size, "input", &a);
    if (status == WEFT_OK) bounded_walk(&a);
    weft_array_free(&ctx, &a);
    bounded_check(&b, &ctx, status);
    return 0;
}
