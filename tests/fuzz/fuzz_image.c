/* Any bytes as an image file of each format, decoded in its own size and as 8 x 8. The header may declare
 * 2^27 pixels. */
#include "bounded.h"

#include "data/image_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded b;
    weft_context ctx = bounded_context(&b, ((size_t)1 << 29) + (1 << 24));
    weft__image image;
    uint8_t planes[3 * 8 * 8];
    weft_status status = weft__image_decode(&ctx, data, size, "input", NULL, &image);
    if (status == WEFT_OK && image.rows < 4096) status = weft__image_fit(&ctx, &image, 8, 8, planes);
    weft__image_free(&ctx, &image);
    bounded_check(&b, &ctx, status);
    status = weft__image_decode(&ctx, data, size, "input",
                                &(weft_image_folder_options){.channels = 3, .rows = 8, .columns = 8}, &image);
    if (status == WEFT_OK && image.rows < 4096) status = weft__image_fit(&ctx, &image, 8, 8, planes);
    weft__image_free(&ctx, &image);
    bounded_check(&b, &ctx, status);
    return 0;
}
