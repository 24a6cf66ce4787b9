/* Reads folders of images: one subfolder per class, or only images. Must not know: how image files are
 * encoded. Read next: image_pixels.c. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "data/image_pixels.h"
#include "data/parse.h"
#include "io/publish.h"

#define DEPTH_MAX 16 /* levels of folders; ends the walk when a link points to a folder above */
#define SCAN_BYTES                                                                                           \
    ((size_t)16 << 20) /* pixels that a scan holds at once, at least an image for each thread */

/* A list of strings. Each string is allocated separately. */
typedef struct names {
    char **at;
    size_t count, capacity;
} names;

static void names_free(weft_context *ctx, names *n) {
    for (size_t i = 0; i < n->count; i++) weft__free(ctx, n->at[i]);
    weft__free(ctx, n->at);
    *n = (names){0};
}

static weft_status names_add(weft_context *ctx, names *n, char *name) {
    if (name && weft__grow(ctx, &n->at, &n->capacity, n->count, sizeof *n->at)) {
        n->at[n->count++] = name;
        return WEFT_OK;
    }
    weft__free(ctx, name);
    return weft__fail_oom(ctx, 0, "names of images");
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static char *join(weft_context *ctx, const char *folder, const char *name) {
    const size_t size = strlen(folder), more = strlen(name);
    char *path = weft__alloc(ctx, size + more + 2);
    if (!path) return NULL;
    memcpy(path, folder, size);
    path[size] = '/';
    memcpy(path + size + 1, name, more + 1);
    return path;
}

static bool is_image(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Adds the paths of all folders and image files in a folder, each sorted by bytes. A file counts as an image
 * by its name. Everything else is skipped, and so are names that begin with a dot. */
static weft_status list(weft_context *ctx, const char *folder, names *folders, names *files, names *skipped) {
    DIR *dir = weft__opendir(folder);
    const size_t before = files->count;
    weft_status status = WEFT_OK;
    struct stat what;
    if (!dir) return weft__fail_io(ctx, "open", folder, errno);
    int error = 0;
    for (const struct dirent *e; status == WEFT_OK && (e = weft__next_entry(dir, &error));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *path = join(ctx, folder, e->d_name);
        const bool hidden = e->d_name[0] == '.';
        if (path && !hidden && stat(path, &what) != 0) {
            status = weft__fail_io(ctx, "access", path, errno);
            weft__free(ctx, path);
        } else if (path && !hidden && S_ISDIR(what.st_mode)) {
            status = names_add(ctx, folders, path);
        } else {
            const bool image = path && !hidden && S_ISREG(what.st_mode) && is_image(e->d_name);
            status = names_add(ctx, image ? files : skipped, path);
        }
    }
    closedir(dir);
    if (status == WEFT_OK && error) status = weft__fail_io(ctx, "list", folder, error);
    if (folders->count) qsort(folders->at, folders->count, sizeof *folders->at, by_bytes);
    if (files->count > before) qsort(files->at + before, files->count - before, sizeof *files->at, by_bytes);
    return status;
}

/* Adds all images of a folder: first its own, then those of its subfolders. An empty folder is skipped. */
static weft_status image_folder_collect(weft_context *ctx, const char *folder, int depth, names *files,
                                        names *skipped) {
    names folders = {0};
    const size_t before = files->count + skipped->count;
    weft_status status = list(ctx, folder, &folders, files, skipped);
    for (size_t i = 0; status == WEFT_OK && i < folders.count; i++)
        status = depth < DEPTH_MAX
                     ? image_folder_collect(ctx, folders.at[i], depth + 1, files, skipped)
                     : weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this folder lies more than %d folders deep",
                                  folders.at[i], DEPTH_MAX);
    if (status == WEFT_OK && files->count + skipped->count == before)
        status = names_add(ctx, skipped, join(ctx, folder, ""));
    names_free(ctx, &folders);
    return status;
}

/* ---- classes ---- */

typedef struct found {
    names files, skipped;
    names classes;
    int32_t *labels; /* [files.count] */
    size_t capacity;
} found;

/* Gives all files from index `from` on the label `class`. */
static weft_status label_as(weft_context *ctx, found *f, size_t from, size_t class) {
    for (size_t i = from; i < f->files.count; i++) {
        if (!weft__grow(ctx, &f->labels, &f->capacity, i, sizeof *f->labels))
            return weft__fail_oom(ctx, f->files.count * sizeof *f->labels, "classes of images");
        f->labels[i] = (int32_t) class;
    }
    return WEFT_OK;
}

static weft_status class_number(weft_context *ctx, const weft_image_folder_options *o, const char *path,
                                found *f, size_t *number) {
    const char *name = strrchr(path, '/') + 1;
    if (!o->classes) {
        *number = f->classes.count;
        return names_add(ctx, &f->classes, weft__strdup(ctx, name));
    }
    for (*number = 0; *number < o->class_count; ++*number)
        if (strcmp(o->classes[*number], name) == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no class of the training data has this name", path);
}

/* Finds the classes: each folder in `path` is a class. */
static weft_status find_classes(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                                found *f) {
    names folders = {0}, stray = {0};
    size_t number = 0;
    weft_status status = list(ctx, path, &folders, &stray, &f->skipped);
    if (status == WEFT_OK && stray.count > 0)
        status =
            weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this image is not in the folder of a class", stray.at[0]);
    if (status == WEFT_OK && folders.count == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT,
                            "%s: this folder holds no folders: each class needs one with its images", path);
    for (size_t i = 0; status == WEFT_OK && i < folders.count; i++) {
        const size_t before = f->files.count;
        status = class_number(ctx, o, folders.at[i], f, &number);
        if (status == WEFT_OK) status = image_folder_collect(ctx, folders.at[i], 1, &f->files, &f->skipped);
        if (status == WEFT_OK && f->files.count == before)
            status = weft__fail(ctx, WEFT_ERR_FORMAT,
                                "%s: this folder holds no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)",
                                folders.at[i]);
        if (status == WEFT_OK) status = label_as(ctx, f, before, number);
    }
    names_free(ctx, &folders);
    names_free(ctx, &stray);
    return status;
}

static weft_status image_folder_find(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                                     found *f) {
    struct stat what;
    if (o->with_classes) return find_classes(ctx, path, o, f);
    if (stat(path, &what) != 0) return weft__fail_io(ctx, "open", path, errno);
    if (!S_ISDIR(what.st_mode)) return names_add(ctx, &f->files, weft__strdup(ctx, path));
    WEFT_TRY(image_folder_collect(ctx, path, 0, &f->files, &f->skipped));
    if (f->files.count > 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this folder holds no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)", path);
}

/* ---- images that cannot be read ---- */

/* Removes the files that have a reason in `bad`, with their pixels or notes, and labels. */
static void remove_bad(weft_context *ctx, found *f, char *const *bad, weft_array *images,
                       weft__image_note *notes) {
    const size_t bytes = images->bytes / f->files.count;
    uint8_t *pixels = images->data;
    size_t kept = 0;
    for (size_t i = 0; i < f->files.count; i++) {
        if (bad[i]) {
            weft__free(ctx, f->files.at[i]);
            continue;
        }
        f->files.at[kept] = f->files.at[i];
        if (f->labels) f->labels[kept] = f->labels[i];
        if (pixels && kept < i) memcpy(pixels + kept * bytes, pixels + i * bytes, bytes);
        if (notes) notes[kept] = notes[i];
        kept++;
    }
    f->files.count = kept;
    images->shape[0] = (int64_t)kept;
    images->bytes = kept * bytes;
}

/* Reports images that cannot be read, unless the options skip them and each class keeps an image. */
static weft_status check_bad(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                             const found *f, char *const *bad) {
    size_t count = 0, first = f->files.count;
    for (size_t i = f->files.count; i-- > 0;)
        if (bad[i]) first = i, count++;
    if (count > 0 && (!o->skip_bad || count == f->files.count))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu of %zu images cannot be read; the first: %s", path,
                          count, f->files.count, bad[first]);
    for (size_t i = 0, end; f->labels && i < f->files.count; i = end) {
        bool good = false;
        for (end = i; end < f->files.count && f->labels[end] == f->labels[i]; end++) good = good || !bad[end];
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
        some.paths += at;
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
                               found *f, weft__image_scan *scan, weft_image_folder *out) {
    const size_t count = f->files.count;
    weft__image_files files = {.paths = f->files.at, .count = count, .options = o};
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
static char **packed(weft_context *ctx, const names *n) {
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
    found f = {0};
    *out = (weft_image_folder){0};
    if (scan) scan->notes = NULL;
    weft_status status = image_folder_check_options(ctx, o);
    if (status == WEFT_OK) status = image_folder_find(ctx, path, o, &f);
    if (status == WEFT_OK) status = read_pixels(ctx, path, o, &f, scan, out);
    const int64_t count = (int64_t)f.files.count;
    if (status == WEFT_OK && o->with_classes) status = weft_array_new(ctx, WEFT_I32, 1, &count, &out->labels);
    if (status == WEFT_OK && o->with_classes) memcpy(out->labels.data, f.labels, out->labels.bytes);
    if (status == WEFT_OK) {
        if (f.skipped.count) qsort(f.skipped.at, f.skipped.count, sizeof *f.skipped.at, by_bytes);
        out->files = packed(ctx, &f.files);
        out->class_count = f.classes.count;
        out->classes = packed(ctx, &f.classes);
        out->skipped_count = f.skipped.count;
        out->skipped = packed(ctx, &f.skipped);
        if (!out->files || (out->class_count && !out->classes) || (out->skipped_count && !out->skipped))
            status = weft__fail_oom(ctx, 0, "names of images");
    }
    names_free(ctx, &f.files);
    names_free(ctx, &f.skipped);
    names_free(ctx, &f.classes);
    weft__free(ctx, f.labels);
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
    *images = (weft_image_folder){0};
}
