/* Reads the pixels of images that were found, or notes what they hold, and leaves out images that cannot be
 * read. Must not know: how image files are encoded. Read next: image_pixels.c. */
#include <string.h>

#include "base/threads.h"
#include "data/image_found.h"
#include "data/image_pixels.h"
#include "data/image_shards.h"
#include "data/parse.h"

#define SCAN_BYTES                                                                                           \
    ((size_t)16 << 20) /* pixels that a scan holds at once, at least an image for each thread */

/* ---- images that cannot be read ---- */

/* Removes the files that have a reason in `bad`, with their pixels or notes, and labels. */
static void remove_bad(weft_context *ctx, weft__image_found *f, char *const *bad, weft_array *images,
                       weft__image_note *notes) {
    const size_t count = weft__image_found_count(f), bytes = images->bytes / count;
    uint8_t *pixels = images->data;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (bad[i]) {
            if (!f->shards) weft__free(ctx, f->files.at[i]);
            continue;
        }
        if (f->shards)
            f->members[kept] = f->members[i];
        else
            f->files.at[kept] = f->files.at[i];
        if (f->labels) f->labels[kept] = f->labels[i];
        if (pixels && kept < i) memcpy(pixels + kept * bytes, pixels + i * bytes, bytes);
        if (notes) notes[kept] = notes[i];
        kept++;
    }
    *(f->shards ? &f->member_count : &f->files.count) = kept;
    images->shape[0] = (int64_t)kept;
    images->bytes = kept * bytes;
}

/* Reports images that cannot be read, unless the options skip them and each class keeps an image. */
static weft_status check_bad(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                             const weft__image_found *f, char *const *bad) {
    const size_t all = weft__image_found_count(f);
    size_t count = 0, first = all;
    for (size_t i = all; i-- > 0;)
        if (bad[i]) first = i, count++;
    if (count > 0 && (!o->skip_bad || count == all))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu of %zu images cannot be read; the first: %s", path,
                          count, all, bad[first]);
    for (size_t i = 0, end; f->labels && i < all; i = end) {
        bool good = false;
        for (end = i; end < all && f->labels[end] == f->labels[i]; end++) good = good || !bad[end];
        if (!good)
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no image of a class can be read; the first: %s",
                              path, bad[i]);
    }
    return WEFT_OK;
}

/* Copies the reasons into the result. */
static weft_status keep_reasons(weft_context *ctx, char **bad, size_t count, weft_image_folder *out) {
    for (size_t i = 0; i < count; i++) {
        char *reason = bad[i];
        bad[i] = NULL;
        if (reason) bad[out->bad_count++] = reason;
    }
    if (out->bad_count == 0) return WEFT_OK;
    out->bad = weft__strings_pack(ctx, (const char *const *)bad, out->bad_count);
    return out->bad ? WEFT_OK : weft__fail_oom(ctx, 0, "names of images");
}

/* Reads the pixels of all files, a few at a time, without keeping them. */
static weft_status scan_files(weft_context *ctx, const weft__image_files *files, weft__image_scan *scan,
                              char **bad) {
    const size_t bytes = (size_t)(files->shape[0] * files->shape[1] * files->shape[2]),
                 threads = (size_t)weft__default_threads(), fit = SCAN_BYTES / bytes;
    size_t most = fit > threads ? fit : threads;
    if (most > files->count) most = files->count;
    uint8_t *planes = weft__array(ctx, most, bytes);
    scan->notes = weft__array(ctx, files->count, sizeof *scan->notes);
    weft_status status = planes && scan->notes ? WEFT_OK : weft__fail_oom(ctx, most * bytes, "images");
    for (size_t at = 0; status == WEFT_OK && at < files->count; at += most) {
        weft__image_files some = *files;
        if (some.paths) some.paths += at;
        if (some.members) some.members += at;
        some.count = files->count - at < most ? files->count - at : most;
        some.notes = scan->notes + at;
        status = weft__images_read(ctx, &some, planes, bad + at);
        for (size_t i = 0; status == WEFT_OK && scan->pixels && i < some.count; i++)
            if (!bad[at + i]) weft__hash_piece(scan->pixels, planes + i * bytes, bytes);
    }
    weft__free(ctx, planes);
    return status;
}

/* Reads the pixels of all files, or scans them, and leaves out what cannot be read. */
static weft_status read_pixels(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                               weft__image_found *f, weft__image_scan *scan, weft_image_folder *out) {
    const size_t count = weft__image_found_count(f);
    weft__image_files files = {
        .paths = f->files.at, .shards = f->shards, .members = f->members, .count = count, .options = o};
    WEFT_TRY(weft__images_shape(ctx, &files));
    const int64_t shape[4] = {(int64_t)count, files.shape[0], files.shape[1], files.shape[2]};
    if (scan || o->in_files) {
        weft_array *images = &out->images;
        *images = (weft_array){.dtype = WEFT_U8, .rank = 4};
        memcpy(images->shape, shape, sizeof shape);
        if (!scan) return WEFT_OK;
    } else {
        WEFT_TRY(weft_array_new(ctx, WEFT_U8, 4, shape, &out->images));
    }
    char **bad = weft__array(ctx, count, sizeof *bad);
    if (!bad) return weft__fail_oom(ctx, count * sizeof *bad, "images");
    memset(bad, 0, count * sizeof *bad);
    weft_status status =
        scan ? scan_files(ctx, &files, scan, bad) : weft__images_read(ctx, &files, out->images.data, bad);
    if (status == WEFT_OK) status = check_bad(ctx, path, o, f, bad);
    if (status == WEFT_OK) remove_bad(ctx, f, bad, &out->images, scan ? scan->notes : NULL);
    if (status == WEFT_OK) status = keep_reasons(ctx, bad, count, out);
    for (size_t i = 0; i < count; i++) weft__free(ctx, bad[i]);
    weft__free(ctx, bad);
    return status;
}

/* ---- reading a folder ---- */

/* Returns the strings in one block; NULL if there are none, or when memory is short. */
static char **packed(weft_context *ctx, const weft__names *n) {
    return n->count ? weft__strings_pack(ctx, (const char *const *)n->at, n->count) : NULL;
}

static weft_status image_folder_check_options(weft_context *ctx, const weft_image_folder_options *o) {
    const int64_t shape[3] = {o->channels ? o->channels : 1, o->rows, o->columns};
    int64_t bytes;
    if ((o->channels == 0 || o->channels == 1 || o->channels == 3) && !o->rows == !o->columns &&
        o->rows >= 0 && o->columns >= 0 && weft__numel(3, shape, &bytes))
        return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "images of %lld channels, %lld rows and %lld columns: give 1 (grey) or 3 (red, green, "
                      "blue) channels, and rows and columns together",
                      (long long)o->channels, (long long)o->rows, (long long)o->columns);
}

weft_status weft__read_image_folder(weft_context *ctx, const char *path,
                                    const weft_image_folder_options *options, weft__image_scan *scan,
                                    weft_image_folder *out) {
    const weft_image_folder_options defaults = {0}, *o = options ? options : &defaults;
    weft__image_found f = {0};
    weft__names tars = {0};
    *out = (weft_image_folder){0};
    if (scan) scan->notes = NULL;
    weft_status status = image_folder_check_options(ctx, o);
    if (status == WEFT_OK) status = weft__shard_paths(ctx, path, &tars);
    if (status == WEFT_OK)
        status = tars.count ? weft__image_shards_find(ctx, path, &tars, o, &f)
                            : weft__image_folder_find(ctx, path, o, &f);
    weft__names_free(ctx, &tars);
    if (status == WEFT_OK) status = read_pixels(ctx, path, o, &f, scan, out);
    const int64_t count = (int64_t)weft__image_found_count(&f);
    if (status == WEFT_OK && o->with_classes) status = weft_array_new(ctx, WEFT_I32, 1, &count, &out->labels);
    if (status == WEFT_OK && o->with_classes) memcpy(out->labels.data, f.labels, out->labels.bytes);
    if (status == WEFT_OK) {
        weft__names_sort(&f.skipped, 0);
        out->files = packed(ctx, &f.files);
        out->class_count = f.classes.count;
        out->classes = packed(ctx, &f.classes);
        out->skipped_count = f.skipped.count;
        out->skipped = packed(ctx, &f.skipped);
        out->shards = f.shards;
        out->members = f.members;
        f.shards = NULL;
        f.members = NULL;
        if ((!out->files && !out->shards) || (out->class_count && !out->classes) ||
            (out->skipped_count && !out->skipped))
            status = weft__fail_oom(ctx, 0, "names of images");
    }
    weft__image_found_free(ctx, &f);
    if (status == WEFT_OK) return WEFT_OK;
    weft_image_folder_free(ctx, out);
    if (scan) weft__free(ctx, scan->notes);
    if (scan) scan->notes = NULL;
    return status;
}

weft_status weft_read_image_folder(weft_context *ctx, const char *path,
                                   const weft_image_folder_options *options, weft_image_folder *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_image_folder){0};
    WEFT_NEED(ctx, path);
    return weft__read_image_folder(ctx, path, options, NULL, out);
}

void weft_image_folder_free(weft_context *ctx, weft_image_folder *images) {
    if (!images) return;
    weft_array_free(ctx, &images->images);
    weft_array_free(ctx, &images->labels);
    weft__free(ctx, images->classes);
    weft__free(ctx, images->files);
    weft__free(ctx, images->skipped);
    weft__free(ctx, images->bad);
    weft__free(ctx, images->members);
    weft__shards_free(ctx, images->shards);
    *images = (weft_image_folder){0};
}
