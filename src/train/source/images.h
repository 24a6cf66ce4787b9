/* Shared by the files that read folders of images: images.c and image_files.c. Must not know: models. Read
 * next: images.c. */
#ifndef WEFT_SRC_TRAIN_SOURCE_IMAGES_H
#define WEFT_SRC_TRAIN_SOURCE_IMAGES_H

#include "train/dataset/dataset.h"

/* Sets the size for all images: that of the configuration, otherwise that of the images read before. 0 if
 * there is neither: the reader then decides. */
void weft__images_size(const weft__config *config, const weft__dataset *dataset,
                       weft_image_folder_options *options);
/* Decides whether the pixels of the images in these folders stay in their files: then x gets a shape but no
 * data. See weft__source_kind. */
weft_status weft__images_begin(weft_context *ctx, const weft__config *config, const char *const *paths,
                               size_t count, weft__dataset *dataset);
/* Takes the paths, or places in tar files, and notes of a split out of a folder. */
weft_status weft__images_take_files(weft_context *ctx, weft__split split, weft_image_folder *folder,
                                    const weft__image_note *notes, weft__dataset *dataset);
/* Moves the paths of images into `inputs`, and if they stay in tar files, their places. */
weft_status weft__images_take_inputs(weft_context *ctx, weft_image_folder *folder, weft__inputs *inputs);

#endif
