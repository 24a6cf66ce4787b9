/* The first byte selects the dtype, the rest is a JSON file: the matrix "x" in an object, or a matrix by
 * itself. The reader must accept exactly the JSON that jansson accepts. */
#include <jansson.h>

#include "bounded.h"
#include "io/json_read.h"

static void compare(const char *text, size_t size) {
    weft__json_reader r;
    weft__json_begin(&r, NULL, text, size);
    const bool taken = weft__json_check(&r), deep = r.problem && strstr(r.problem, "levels");
    weft__json_end(&r);
    json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (!deep && taken != (tree != NULL)) {
        fprintf(stderr, "taken: %d, by jansson: %d\n", taken, tree != NULL);
        abort();
    }
    json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (!memchr(data + 1, 0, size - 1)) compare((const char *)data + 1, size - 1);
    const weft_json_options o = {.key = data[0] & 1 ? "x" : NULL,
                                 .type = (weft_json_type)((data[0] >> 1) % 5)};
    bounded b;
    weft_context ctx = bounded_context(&b, 8 * size + 4096);
    weft_array a;
    weft_status status = weft__parse_json(&ctx, data + 1, size - 1, "input", &o, 1, &a);
    if (status == WEFT_OK) bounded_walk(&a);
    weft_array_free(&ctx, &a);
    bounded_check(&b, &ctx, status);
    return 0;
}
