/* Reads folders of images as data. Must not know: how images are decoded (weft/data.h). Read
 * next: image_files.c. */
#include <stdio.h>
#include <string.h>

#include "data/shard_files.h"
#include "train/dataset/dataset_summary.h"
#include "train/source/images.h"

void weft__images_size(const weft__config *config, const weft__dataset *d,
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
    if (d->memory_free)
        weft__line(l, "%s %.3g GB, %.3g GB of memory are free", head, gb * d->memory_needed,
                   gb * (double)d->memory_free);
    else
        weft__line(l, "%s %.3g GB", head, gb * d->memory_needed);
}

void weft__dataset_image_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    int64_t count = weft__dataset_samples(d, WEFT__TRAIN);
    const int64_t channels = d->sample[0];
    const bool scaled = weft__source_of(config)->files && config->model_image.count == 3;
    if (!config->data_val_path) count += weft__dataset_samples(d, WEFT__VALIDATION);
    weft__line(l, "data: %lld images, %s%lld x %lld, %lld channel%s, from %.300s", (long long)count,
               scaled ? "scaled to " : "", (long long)d->sample[1], (long long)d->sample[2],
               (long long)channels, weft__plural(channels), weft__line_file(config->data_path));
    if (d->tars) weft__line_item(l, true, " (%lld tar file%s)", (long long)d->tars, weft__plural(d->tars));
    if (d->in_files) put_in_files(d, l);
    put_skipped(d->skipped, l);
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
    weft__images_size(f->config, d, &options);
    WEFT_TRY(read_folder(ctx, f->path, &options, d, &scan, &folder));
    weft_status status = tell_bad(ctx, f->config, f->path, &folder);
    if (status == WEFT_OK && folder.classes)
        status = weft__dataset_take_classes(ctx, f->path, folder.classes, folder.class_count, d);
    for (size_t i = 0; i < folder.skipped_count; i++) weft__skipped_count(&d->skipped, folder.skipped[i]);
    if (folder.shards) weft__skipped_add(&d->skipped, weft__shards_skipped(folder.shards));
    d->skipped.bad += (int64_t)folder.bad_count;
    if (folder.shards && f->split == WEFT__TRAIN) d->tars = (int64_t)weft__shards_count(folder.shards);
    if (status == WEFT_OK && f->inputs) status = weft__images_take_inputs(ctx, &folder, f->inputs);
    if (status == WEFT_OK && d->in_files && !f->inputs)
        status = weft__images_take_files(ctx, f->split, &folder, scan.notes, d);
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
    .begin = weft__images_begin,
    .file = images_file,
    .lines = weft__dataset_image_lines,
};
