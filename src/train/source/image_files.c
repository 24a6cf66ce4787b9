/* Images whose pixels stay in their files, for data that are larger than memory. Each file is read once
 * before training, which gives the statistics and the hash of the data, and finds bad files. Loaders then
 * decode the files of each batch. Must not know: how images are decoded (data/image_pixels.h). Read next:
 * images.c. */
#include <string.h>

#include "data/parse.h"
#include "train/source/images.h"

int weft__dataset_sharers = 1;

/* Images stay in files if all of them would take more than this part of the free memory. Setting validation
 * data aside takes as much again for a moment. */
enum { PART = 4 };

/* Adds the bytes that the images of a folder would take in memory. If the folder cannot be read, the reader
 * will report it. */
static weft_status add_needed(weft_context *ctx, const weft__config *config, const weft__dataset *d,
                              const char *path, double *needed) {
    weft_image_folder folder;
    weft_image_folder_options options = {.in_files = true};
    weft__images_size(config, d, &options);
    const weft_status status = weft_read_image_folder(ctx, path, &options, &folder);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? status : WEFT_OK;
    /* an autoencoder has f32 inputs and targets */
    double bytes = weft__config_is(config, WEFT__TRAIT_NO_TARGETS) ? 2 * sizeof(float) : 1;
    for (int i = 0; i < folder.images.rank; i++) bytes *= (double)folder.images.shape[i];
    *needed += bytes;
    weft_image_folder_free(ctx, &folder);
    return WEFT_OK;
}

weft_status weft__images_begin(weft_context *ctx, const weft__config *config, const char *const *paths,
                               size_t count, weft__dataset *d) {
    d->in_files = config->data_in_files == WEFT__IN_FILES_TRUE;
    d->memory_needed = 0;
    d->memory_free = 0;
    if (config->data_in_files != WEFT__IN_FILES_AUTO && !d->in_files) return WEFT_OK;
    for (size_t i = 0; i < count; i++)
        if (paths[i]) WEFT_TRY(add_needed(ctx, config, d, paths[i], &d->memory_needed));
    if (d->in_files) return WEFT_OK;
    const uint64_t left = weft__host_memory_free() / (uint64_t)weft__dataset_sharers;
    d->in_files = left > 0 && d->memory_needed > (double)left / PART;
    if (d->in_files) d->memory_free = left;
    return WEFT_OK;
}

/* Copies `count` elements of `size` bytes into an array of bytes. */
static weft_status rows_of(weft_context *ctx, const void *from, int64_t count, size_t size, weft_array *out) {
    WEFT_TRY(weft_array_new(ctx, WEFT_U8, 2, (int64_t[]){count, (int64_t)size}, out));
    memcpy(out->data, from, out->bytes);
    return WEFT_OK;
}

weft_status weft__images_take_files(weft_context *ctx, weft__split split, weft_image_folder *folder,
                                    const weft__image_note *notes, weft__dataset *d) {
    const int64_t count = folder->images.shape[0];
    char **names = d->names[split] = folder->files;
    d->shards[split] = folder->shards;
    folder->files = NULL;
    folder->shards = NULL;
    WEFT_TRY(rows_of(ctx, notes, count, sizeof *notes, &d->notes[split]));
    if (names) return rows_of(ctx, names, count, sizeof *names, &d->paths[split]);
    return rows_of(ctx, folder->members, count, sizeof *folder->members, &d->members[split]);
}

/* Makes the list of the names of images in tar files. */
static weft_status list_names(weft_context *ctx, const weft_image_folder *folder, char ***out) {
    const size_t count = (size_t)folder->images.shape[0];
    weft_bytes *names = weft__array(ctx, count, sizeof *names);
    const char **list = weft__array(ctx, count, sizeof *list);
    weft_status status =
        names && list ? WEFT_OK : weft__fail_oom(ctx, count * sizeof *names, "names of images");
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        status = weft_image_member_name(ctx, folder->shards, &folder->members[i], &names[i]);
        list[i] = (const char *)names[i].data;
    }
    if (status == WEFT_OK && !(*out = weft__strings_pack(ctx, list, count)))
        status = weft__fail_oom(ctx, 0, "names of images");
    for (size_t i = 0; names && i < count; i++) weft_bytes_free(ctx, &names[i]);
    weft__free(ctx, names);
    weft__free(ctx, list);
    return status;
}

weft_status weft__images_take_inputs(weft_context *ctx, weft_image_folder *folder, weft__inputs *inputs) {
    if (!folder->shards) {
        inputs->files = folder->files;
        folder->files = NULL;
        return WEFT_OK;
    }
    WEFT_TRY(list_names(ctx, folder, &inputs->files));
    inputs->shards = folder->shards;
    inputs->members = folder->members;
    folder->shards = NULL;
    folder->members = NULL;
    return WEFT_OK;
}

weft_status weft__dataset_pixels(const weft__dataset *d, weft__split split, int64_t sample, uint8_t **room,
                                 const uint8_t **pixels) {
    const size_t bytes = (size_t)(d->sample[0] * d->sample[1] * d->sample[2]);
    if (!d->in_files) {
        *pixels = (const uint8_t *)d->x[split].data + (size_t)sample * bytes;
        return WEFT_OK;
    }
    if (!*room && !(*room = weft__array(NULL, bytes, 1))) return weft__fail_oom(NULL, bytes, "an image");
    const weft_image_folder_options size = {
        .channels = d->sample[0], .rows = d->sample[1], .columns = d->sample[2], .max_pixels = d->max_pixels};
    const weft__image_note *note = (const weft__image_note *)d->notes[split].data + sample;
    char *bad = NULL;
    const weft_image_member *members = d->members[split].data;
    weft__image_files file = {.paths = members ? NULL : (char *const *)d->paths[split].data + sample,
                              .shards = d->shards[split],
                              .members = members ? members + sample : NULL,
                              .count = 1,
                              .options = &size,
                              .hashes = &note->hash};
    memcpy(file.shape, d->sample, sizeof file.shape);
    WEFT_TRY(weft__images_read(NULL, &file, *room, &bad));
    *pixels = *room;
    if (!bad) return WEFT_OK;
    const weft_status status = weft__fail(NULL, WEFT_ERR_FORMAT, "%s", bad);
    weft__free(NULL, bad);
    return status;
}
