/* Any bytes as a gzip stream, by itself and as a compressed idx and npy file (whose headers bound the
 * output). */
#include "bounded.h"

static void unpack(const uint8_t *data, size_t size, weft__declared_fn declared) {
    bounded b;
    /* while a buffer grows, the old and the new one exist; also zlib's window and tables, and the header */
    weft_context ctx = bounded_context(&b, declared ? size * 1032 * 2 + (1 << 17)
                                                    : 3 * (size * 32 + (64 << 20)) + (4 << 20));
    weft_bytes out;
    weft_status status = weft__gunzip(&ctx, data, size, "input", declared, 0, &out);
    if (status == WEFT_OK && out.data[out.size] != 0) abort();
    weft_bytes_free(&ctx, &out);
    bounded_time(&b, size);
    bounded_check(&b, &ctx, status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unpack(data, size, NULL);
    unpack(data, size, weft__idx_declared);
    unpack(data, size, weft__npy_declared);
    return 0;
}
