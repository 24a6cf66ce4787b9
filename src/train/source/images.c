/* Folders of images, and tar files of them. Pixels stay in their files if the data are larger than memory.
 * Then each file is read once before training, which gives the statistics and the hash of the data, and finds
 * bad files. Loaders decode the files of each batch. Must not know: how images are decoded (weft/data.h,
 * data/image_pixels.h). Read next: dataset/dataset_table.c. */
#include <stdio.h>
#include <string.h>

#include "data/parse.h"
#include "data/shard_files.h"
#include "train/dataset/dataset_summary.h"

/* Sets the size for all images: that of the configuration, otherwise that of the images read before. 0 if
 * there is neither: the reader then decides. */
static void image_size(const weft__config *config, const weft__dataset *d,
                       weft_image_folder_options *options) {
    const int64_t *shape = config->model_image.count == 3 ? config->model_image.values : d->image;
    options->channels = shape[0];
    options->rows = shape[1];
    options->columns = shape[2];
    options->max_pixels = config->data_image_pixels;
}

/* ---- what was skipped ---- */

static void put_skipped(weft__skipped s, weft__lines *l) {
    const char *ending;
    if (s.files > 0)
        weft__line(l, "skipped: %lld file%s of other kinds: ", (long long)s.files, weft__plural(s.files));
    for (int64_t files; (files = weft__skipped_take(&s, &ending)) > 0;)
        weft__line_item(l, s.files == 0, "%lld %s", (long long)files, ending);
    if (s.files > 0) weft__line_item(l, true, "%lld more", (long long)s.files);
    if (s.bad > 0)
        weft__line(l, "left out: %lld image%s that cannot be read", (long long)s.bad, weft__plural(s.bad));
    if (s.hidden + s.empty == 0) return;
    weft__line(l, "skipped: ");
    if (s.hidden)
        weft__line_item(l, !s.empty, "%lld hidden name%s (with a dot in front)", (long long)s.hidden,
                        weft__plural(s.hidden));
    if (s.empty) weft__line_item(l, true, "%lld empty folder%s", (long long)s.empty, weft__plural(s.empty));
}

/* Tells that the pixels stay in their files, and why. */
static void put_in_files(const weft__dataset *d, weft__lines *l) {
    static const char head[] = "decoded for each batch (data.in_files):";
    const double gb = 1e-9;
    if (d->images.memory_free)
        weft__line(l, "%s %.3g GB, %.3g GB of memory are free", head, gb * d->images.memory_needed,
                   gb * (double)d->images.memory_free);
    else
        weft__line(l, "%s %.3g GB", head, gb * d->images.memory_needed);
}

void weft__dataset_image_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    int64_t count = weft__dataset_samples(d, WEFT__TRAIN);
    const int64_t channels = d->sample[0];
    const bool scaled = weft__source_of(config)->files && config->model_image.count == 3;
    if (!config->data_val_path) count += weft__dataset_samples(d, WEFT__VALIDATION);
    weft__line(l, "data: %lld images, %s%lld x %lld, %lld channel%s, from %.300s", (long long)count,
               scaled ? "scaled to " : "", (long long)d->sample[1], (long long)d->sample[2],
               (long long)channels, weft__plural(channels), weft__line_file(config->data_path));
    if (d->images.tars)
        weft__line_item(l, true, " (%lld tar file%s)", (long long)d->images.tars,
                        weft__plural(d->images.tars));
    if (d->in_files) put_in_files(d, l);
    put_skipped(d->images.skipped, l);
}

/* ---- images that stay in their files ---- */

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
    image_size(config, d, &options);
    const weft_status status = weft_read_image_folder(ctx, path, &options, &folder);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? status : WEFT_OK;
    /* an autoencoder has f32 inputs and targets */
    double bytes = weft__config_is(config, WEFT__TRAIT_NO_TARGETS) ? 2 * sizeof(float) : 1;
    for (int i = 0; i < folder.images.rank; i++) bytes *= (double)folder.images.shape[i];
    *needed += bytes;
    weft_image_folder_free(ctx, &folder);
    return WEFT_OK;
}

/* Decides whether the pixels of the images in these folders stay in their files: then x gets a shape but no
 * data. */
static weft_status images_begin(weft_context *ctx, const weft__config *config, const char *const *paths,
                                size_t count, weft__dataset *d) {
    d->in_files = config->data_in_files == WEFT__IN_FILES_TRUE;
    d->images.memory_needed = 0;
    d->images.memory_free = 0;
    if (config->data_in_files != WEFT__IN_FILES_AUTO && !d->in_files) return WEFT_OK;
    for (size_t i = 0; i < count; i++)
        if (paths[i]) WEFT_TRY(add_needed(ctx, config, d, paths[i], &d->images.memory_needed));
    if (d->in_files) return WEFT_OK;
    const uint64_t left = weft__host_memory_free() / (uint64_t)weft__dataset_sharers;
    d->in_files = left > 0 && d->images.memory_needed > (double)left / PART;
    if (d->in_files) d->images.memory_free = left;
    return WEFT_OK;
}

/* Copies `count` elements of `size` bytes into an array of bytes. */
static weft_status rows_of(weft_context *ctx, const void *from, int64_t count, size_t size, weft_array *out) {
    WEFT_TRY(weft_array_new(ctx, WEFT_U8, 2, (int64_t[]){count, (int64_t)size}, out));
    memcpy(out->data, from, out->bytes);
    return WEFT_OK;
}

/* Takes the paths, or places in tar files, and notes of a split out of a folder. */
static weft_status take_files(weft_context *ctx, weft__split split, weft_image_folder *folder,
                              const weft__image_note *notes, weft__dataset *d) {
    const int64_t count = folder->images.shape[0];
    char **names = d->images.names[split] = folder->files;
    d->images.shards[split] = folder->shards;
    folder->files = NULL;
    folder->shards = NULL;
    WEFT_TRY(rows_of(ctx, notes, count, sizeof *notes, &d->images.notes[split]));
    if (names) return rows_of(ctx, names, count, sizeof *names, &d->images.paths[split]);
    return rows_of(ctx, folder->members, count, sizeof *folder->members, &d->images.members[split]);
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

/* Moves the paths of images into `inputs`, and if they stay in tar files, their places. */
static weft_status take_inputs(weft_context *ctx, weft_image_folder *folder, weft__inputs *inputs) {
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
    const weft_image_folder_options size = {.channels = d->sample[0],
                                            .rows = d->sample[1],
                                            .columns = d->sample[2],
                                            .max_pixels = d->images.max_pixels};
    const weft__image_note *note = (const weft__image_note *)d->images.notes[split].data + sample;
    char *bad = NULL;
    const weft_image_member *members = d->images.members[split].data;
    weft__image_files file = {.paths = members ? NULL : (char *const *)d->images.paths[split].data + sample,
                              .shards = d->images.shards[split],
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

/* ---- reading ---- */

void (*weft__dataset_tell)(const char *line);

/* Lists the images that cannot be read. Fails if they must not be left out. */
static weft_status tell_bad(weft_context *ctx, const weft__config *config, const char *path,
                            const weft_image_folder *folder) {
    enum { LISTED = 20 };
    const size_t count = folder->bad_count, listed = count < LISTED ? count : LISTED;
    char line[WEFT_ERROR_SIZE];
    for (size_t i = 0; i < listed && weft__dataset_tell; i++) {
        snprintf(line, sizeof line, "%s%s", config->data_skip_bad ? "left out: " : "", folder->bad[i]);
        weft__dataset_tell(line);
    }
    snprintf(line, sizeof line, "and %zu more", count - listed);
    if (count > listed && weft__dataset_tell) weft__dataset_tell(line);
    if (count == 0 || config->data_skip_bad) return WEFT_OK;
    return weft__fail(
        ctx, WEFT_ERR_FORMAT,
        "%s: %zu image%s cannot be read: repair or remove %s, or set data.skip_bad: true to train without %s",
        path, count, weft__plural((int64_t)count), count > 1 ? "them" : "it", count > 1 ? "them" : "it");
}

/* Reads the pixels of a folder, or scans them if they stay in their files. */
static weft_status read_folder(weft_context *ctx, const char *path, const weft_image_folder_options *options,
                               const weft__dataset *d, weft__image_scan *scan, weft_image_folder *folder) {
    weft__hash_stream pixels = {.hash = d->hashing};
    if (!d->in_files) return weft_read_image_folder(ctx, path, options, folder);
    if (d->hashing) scan->pixels = &pixels;
    WEFT_TRY(weft__read_image_folder(ctx, path, options, scan, folder));
    if (d->hashing) weft__hash_end(&pixels);
    return WEFT_OK;
}

static weft_status images_file(const weft__source_file *f) {
    weft_context *ctx = f->ctx;
    weft__dataset *d = f->dataset;
    weft_image_folder folder;
    weft__image_scan scan = {0};
    weft_image_folder_options options = {.with_classes = f->y != NULL,
                                         .skip_bad = true,
                                         .classes = (const char *const *)d->classes,
                                         .class_count = d->classes ? (size_t)d->outputs : 0};
    image_size(f->config, d, &options);
    WEFT_TRY(read_folder(ctx, f->path, &options, d, &scan, &folder));
    weft_status status = tell_bad(ctx, f->config, f->path, &folder);
    if (status == WEFT_OK && folder.classes)
        status = weft__dataset_take_classes(ctx, f->path, folder.classes, folder.class_count, d);
    for (size_t i = 0; i < folder.skipped_count; i++)
        weft__skipped_count(&d->images.skipped, folder.skipped[i]);
    if (folder.shards) weft__skipped_add(&d->images.skipped, weft__shards_skipped(folder.shards));
    d->images.skipped.bad += (int64_t)folder.bad_count;
    if (folder.shards && f->split == WEFT__TRAIN) d->images.tars = (int64_t)weft__shards_count(folder.shards);
    if (status == WEFT_OK && f->inputs) status = take_inputs(ctx, &folder, f->inputs);
    if (status == WEFT_OK && d->in_files && !f->inputs)
        status = take_files(ctx, f->split, &folder, scan.notes, d);
    if (status == WEFT_OK) {
        *f->x = folder.images;
        if (f->y) *f->y = folder.labels;
        folder.images = folder.labels = (weft_array){0};
    }
    weft__free(ctx, scan.notes);
    weft_image_folder_free(ctx, &folder);
    return status;
}

/* Every folder is taken for one of images, unless it is a table. */
static bool images_guess(const weft__path_facts *path) {
    return path->folder || weft__path_ends(path, ".tar");
}

const weft__source_kind weft__data_images = {
    .form = WEFT__FORM_FOLDER,
    .unit = "image",
    .plural = "images",
    .keys = {WEFT__KEY_data_in_files, WEFT__KEY_data_image_pixels},
    .images = true,
    .files = true,
    .guess = images_guess,
    .begin = images_begin,
    .file = images_file,
    .lines = weft__dataset_image_lines,
};
