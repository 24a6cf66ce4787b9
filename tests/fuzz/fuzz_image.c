/* Any bytes as an image file of each format, decoded in its own size and as 8 x 8. Whatever a header
 * declares, a file takes a few bytes for each pixel that is allowed. */
#include "bounded.h"

#include "data/image_file.h"

enum { PIXELS = 1 << 20, PIXEL_BYTES = 4, FITTING = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const weft_image_folder_options options[] = {
        {.max_pixels = PIXELS}, {.max_pixels = PIXELS, .channels = 3, .rows = 8, .columns = 8}};
    for (int i = 0; i < 2; i++) {
        bounded b;
        weft_context ctx = bounded_context(&b, PIXELS * PIXEL_BYTES + FITTING);
        weft__image image;
        uint8_t planes[3 * 8 * 8];
        weft_status status = weft__image_decode(&ctx, data, size, "input", &options[i], &image);
        if (status == WEFT_OK && image.rows < 4096) status = weft__image_fit(&ctx, &image, 8, 8, planes);
        weft__image_free(&ctx, &image);
        bounded_time(&b, size);
        bounded_check(&b, &ctx, status);
    }
    return 0;
}
