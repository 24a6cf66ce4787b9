/* A file of tokens in memory. If it is accepted, all its tokens must be readable. */
#include "bounded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded b;
    weft_context ctx = bounded_context(&b, 4096);
    size_t begin = 0, width = 0;
    weft_status status = weft__parse_tokens(&ctx, data, size, "input", &begin, &width);
    bounded_check(&b, &ctx, status);
    if (status != WEFT_OK) return 0;
    if (begin > size || (width != 2 && width != 4) || (size - begin) % width) abort();
    volatile uint8_t sum = 0;
    for (size_t i = begin; i < size; i++) sum = (uint8_t)(sum + data[i]);
    return 0;
}
