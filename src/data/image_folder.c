/* Reads folders of images: one subfolder per class, or only images. Must not know: how image files are
 * encoded. Read next: image_file.c. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "data/image_file.h"
#include "io/publish.h"

#define DEPTH_MAX 16 /* levels of folders; ends the walk when a link points to a folder above */

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
            status = weft__fail_io(ctx, "look at", path, errno);
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
        status = depth < DEPTH_MAX ? image_folder_collect(ctx, folders.at[i], depth + 1, files, skipped)
                                   : weft__fail(ctx, WEFT_ERR_FORMAT, "%s: more than %d folders deep",
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
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: is not in the folder of a class", stray.at[0]);
    if (status == WEFT_OK && folders.count == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT,
                            "%s: has no folders: each class needs a folder with its images", path);
    for (size_t i = 0; status == WEFT_OK && i < folders.count; i++) {
        const size_t before = f->files.count;
        status = class_number(ctx, o, folders.at[i], f, &number);
        if (status == WEFT_OK) status = image_folder_collect(ctx, folders.at[i], 1, &f->files, &f->skipped);
        if (status == WEFT_OK && f->files.count == before)
            status = weft__fail(ctx, WEFT_ERR_FORMAT,
                                "%s: has no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)", folders.at[i]);
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
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: has no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)", path);
}

/* ---- pixels ---- */

static weft_status read_image(weft_context *ctx, const char *path, int64_t channels, weft__image *out) {
    weft_bytes bytes;
    *out = (weft__image){0};
    WEFT_TRY(weft_read_file(ctx, path, 0, &bytes));
    const weft_status status = weft__image_decode(ctx, bytes.data, bytes.size, path, channels, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}

/* Reads one image, resizes it and writes it to `planes`. ctx is NULL when several threads do this at once. */
static weft_status image_folder_place(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                                      const int64_t shape[3], uint8_t *planes) {
    weft__image image;
    WEFT_TRY(read_image(ctx, path, o->channels, &image));
    weft_status status = WEFT_OK;
    const int64_t rows = weft__image_rows(&image), columns = weft__image_columns(&image);
    if (image.channels > shape[0] || (!o->rows && (rows != shape[1] || columns != shape[2])))
        status =
            weft__fail(ctx, WEFT_ERR_FORMAT,
                       "%s: has %lld channels, %lld rows and %lld columns, but the first image has %lld, "
                       "%lld and %lld: set the size that all images get (model.image of a configuration)",
                       path, (long long)image.channels, (long long)rows, (long long)columns,
                       (long long)shape[0], (long long)shape[1], (long long)shape[2]);
    if (status == WEFT_OK) status = weft__image_fit(ctx, &image, shape[1], shape[2], planes);
    if (status == WEFT_OK && image.channels < shape[0]) /* a grey image among coloured ones */
        for (int64_t c = 1; c < shape[0]; c++)
            memcpy(planes + c * shape[1] * shape[2], planes, (size_t)(shape[1] * shape[2]));
    weft__image_free(ctx, &image);
    return status;
}

/* Returns the strings in one block; NULL if there are none, or when memory is short. */
static char **packed(weft_context *ctx, const names *n) {
    return n->count ? weft__strings_pack(ctx, (const char *const *)n->at, n->count) : NULL;
}

/* Returns the common shape: what the options ask for, otherwise the shape of the first image. */
static weft_status shape_of(weft_context *ctx, const char *first, const weft_image_folder_options *o,
                            int64_t shape[3]) {
    weft__image image = {.channels = o->channels, .rows = o->rows, .columns = o->columns};
    if (!o->channels || !o->rows) {
        WEFT_TRY(read_image(ctx, first, o->channels, &image));
        weft__free(ctx, image.pixels);
    }
    shape[0] = image.channels;
    shape[1] = o->rows ? o->rows : weft__image_rows(&image);
    shape[2] = o->rows ? o->columns : weft__image_columns(&image);
    return WEFT_OK;
}

typedef struct reading {
    const names *files;
    const weft_image_folder_options *options;
    const int64_t *shape; /* [4] */
    uint8_t *pixels;
    _Atomic int64_t next, failed; /* the next file; the first file that could not be read */
} reading;

static void *read_files(void *user) {
    reading *r = user;
    const int64_t bytes = r->shape[1] * r->shape[2] * r->shape[3];
    /* Files are taken in order. When file i fails, all files before it are already read or are being read. */
    for (int64_t i; (i = r->next++) < r->failed;) {
        if (image_folder_place(NULL, r->files->at[i], r->options, r->shape + 1, r->pixels + i * bytes) ==
            WEFT_OK)
            continue;
        int64_t failed = r->failed;
        while (i < failed && !atomic_compare_exchange_weak(&r->failed, &failed, i)) continue;
    }
    return NULL;
}

static weft_status read_all(weft_context *ctx, const names *files, const weft_image_folder_options *o,
                            weft_array *images) {
    int64_t shape[4] = {(int64_t)files->count};
    WEFT_TRY(shape_of(ctx, files->at[0], o, shape + 1));
    WEFT_TRY(weft_array_new(ctx, WEFT_U8, 4, shape, images));
    reading r = {.files = files, .options = o, .shape = shape, .pixels = images->data, .failed = shape[0]};
    const int most = weft__default_threads();
    weft__parallel(most < shape[0] ? most : (int)shape[0], read_files, &r);
    /* Repeats from the first failure on. The message of a failure belongs to the thread that met it, so the
     * caller must meet the failure too. A temporary failure does no harm this way. */
    const int64_t bytes = shape[1] * shape[2] * shape[3];
    for (int64_t i = r.failed; i < shape[0]; i++)
        WEFT_TRY(image_folder_place(ctx, files->at[i], o, shape + 1, r.pixels + i * bytes));
    return WEFT_OK;
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

weft_status weft_read_image_folder(weft_context *ctx, const char *path,
                                   const weft_image_folder_options *options, weft_image_folder *out) {
    const weft_image_folder_options defaults = {0}, *o = options ? options : &defaults;
    found f = {0};
    WEFT_NEED(ctx, out);
    *out = (weft_image_folder){0};
    WEFT_NEED(ctx, path);
    weft_status status = image_folder_check_options(ctx, o);
    if (status == WEFT_OK) status = image_folder_find(ctx, path, o, &f);
    if (status == WEFT_OK) status = read_all(ctx, &f.files, o, &out->images);
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
    if (status != WEFT_OK) weft_image_folder_free(ctx, out);
    return status;
}

void weft_image_folder_free(weft_context *ctx, weft_image_folder *images) {
    if (!images) return;
    weft_array_free(ctx, &images->images);
    weft_array_free(ctx, &images->labels);
    weft__free(ctx, images->classes);
    weft__free(ctx, images->files);
    weft__free(ctx, images->skipped);
    *images = (weft_image_folder){0};
}
