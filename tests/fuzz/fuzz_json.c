/* A byte for the type wanted, then any bytes as a JSON file with the matrix "x" or a matrix alone. */
#include "bounded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const weft_json_options o = {.key = data[0] & 1 ? "x" : NULL,
                                 .type = (weft_json_type)((data[0] >> 1) % 5)};
    bounded b;
    weft_context ctx = bounded_context(&b, 128 * size + 4096); /* jansson takes 230 bytes for "{}," */
    weft_array a;
    weft_status status = weft__parse_json(&ctx, data + 1, size - 1, "input", &o, 1, &a);
    if (status == WEFT_OK) bounded_walk(&a);
    weft_array_free(&ctx, &a);
    bounded_check(&b, &ctx, status);
    return 0;
}
