/* Reads folders of PNG and JPEG files as data. Must not know: how images are decoded (weft/data.h). Read
 * next: dataset_table.c. */
#include <string.h>

#include "train/dataset/dataset.h"

/* Returns the shape for all images: that of the configuration, otherwise that of the images read before. NULL
 * if there is neither. */
static const int64_t *shape_wanted(const weft__config *config, const weft__dataset *d) {
    if (config->model_image.count == 3) return config->model_image.values;
    return d->image[0] ? d->image : NULL;
}

weft_status weft__dataset_read_images(weft_context *ctx, const weft__config *config, const char *path,
                                      weft__dataset *d, weft_array *x, weft_array *y, char ***files) {
    weft_image_folder folder;
    weft_image_folder_options options = {.with_classes = y != NULL,
                                         .classes = (const char *const *)d->classes,
                                         .class_count = d->classes ? (size_t)d->outputs : 0};
    const int64_t *shape = shape_wanted(config, d);
    if (shape) {
        options.channels = shape[0];
        options.rows = shape[1];
        options.columns = shape[2];
    }
    weft_status status = weft_read_image_folder(ctx, path, &options, &folder);
    if (status != WEFT_OK) return status;
    if (folder.classes) status = weft__dataset_take_classes(ctx, path, folder.classes, folder.class_count, d);
    *x = folder.images;
    if (y) *y = folder.labels;
    if (files) *files = folder.files;
    folder.images = folder.labels = (weft_array){0};
    if (files) folder.files = NULL;
    weft_image_folder_free(ctx, &folder);
    return status;
}
