/* Inputs of a loader that stay in image files. The files of a batch are decoded on all cores, while the
 * device computes the batch before. Must not know: devices. Read next: loader_prefetch.c. */
#include <string.h>

#include "data/image_pixels.h"
#include "data/loader.h"

weft_status weft__loader_check_files(weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    weft_array *x = &loader->x.array;
    const int64_t shape[4] = {x->rank > 0 ? x->shape[0] : 0, o->channels, o->rows, o->columns};
    int64_t bytes, own;
    const bool fits = x->dtype == WEFT_U8 && !x->data && (o->channels == 1 || o->channels == 3) &&
                      weft__numel(4, shape, &bytes) && weft__numel(x->rank, x->shape, &own) && own == bytes &&
                      bytes > 0;
    if (!fits)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "loader: images.%s needs inputs of u8 without data, and images.channels (1 or "
                          "3), rows and columns",
                          o->files ? "files" : "members");
    if (o->members && (o->files || !o->shards))
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "loader: images.members needs images.shards, and no images.files");
    for (int64_t i = 0; o->files && i < shape[0]; i++)
        if (!o->files[i])
            return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: images.files[%lld] is NULL",
                              (long long)i);
    x->bytes = (size_t)bytes;
    return WEFT_OK;
}

void weft__loader_expect(weft_loader *loader, const weft__image_note *notes, bool reproduces) {
    loader->notes = notes;
    loader->reproduces = reproduces;
}

weft_status weft__loader_decode(const weft_loader *loader, const int64_t *starts, uint8_t *planes) {
    const weft_image_options *o = &loader->options.images;
    const size_t batch = (size_t)loader->options.batch;
    const weft_image_folder_options size = {
        .channels = o->channels, .rows = o->rows, .columns = o->columns, .max_pixels = o->max_pixels};
    char **paths = o->files ? weft__array(NULL, batch, sizeof *paths) : NULL,
         **bad = weft__zalloc(NULL, batch * sizeof *bad);
    weft_image_member *members = o->files ? NULL : weft__array(NULL, batch, sizeof *members);
    uint64_t *hashes = loader->notes ? weft__array(NULL, batch, sizeof *hashes) : NULL;
    const bool made = (paths || members) && bad && (hashes || !loader->notes);
    weft_status status = made ? WEFT_OK : weft__fail_oom(NULL, batch * sizeof *bad, "images");
    for (size_t b = 0; made && b < batch; b++) {
        if (paths) memcpy(&paths[b], &o->files[starts[b]], sizeof *paths);
        if (members) members[b] = o->members[starts[b]];
        if (hashes) hashes[b] = loader->notes[starts[b]].hash;
    }
    const weft__image_files files = {.paths = paths,
                                     .shards = members ? o->shards : NULL,
                                     .members = members,
                                     .count = batch,
                                     .options = &size,
                                     .shape = {o->channels, o->rows, o->columns},
                                     .hashes = hashes};
    if (status == WEFT_OK) status = weft__images_read(NULL, &files, planes, bad);
    for (size_t b = 0; bad && b < batch; b++) {
        if (bad[b] && status == WEFT_OK) status = weft__fail(NULL, WEFT_ERR_FORMAT, "%s", bad[b]);
        weft__free(NULL, bad[b]);
    }
    weft__free(NULL, bad);
    weft__free(NULL, hashes);
    weft__free(NULL, members);
    weft__free(NULL, paths);
    return status;
}
