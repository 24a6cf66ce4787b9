/* Any bytes as an npy file. Most mutations keep the length of the header valid, so that they get past it. */
#include "bounded.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded b;
    weft_context ctx = bounded_context(&b, 3 * size + 4096);
    weft_array a;
    weft_status status = weft__parse_npy(&ctx, data, size, "input", &a);
    if (status == WEFT_OK) bounded_walk(&a);
    weft_array_free(&ctx, &a);
    bounded_check(&b, &ctx, status);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 0 || size < 12) return size;
    size_t start = data[6] == 1 ? 10 : 12;
    const uint8_t *newline = memchr(data + start, '\n', size - start);
    if (!newline) return size;
    size_t length = (size_t)(newline + 1 - data) - start;
    data[8] = (uint8_t)(length & 0xff);
    data[9] = (uint8_t)(length >> 8);
    if (start == 12) data[10] = data[11] = 0;
    return size;
}
