/* Finds the images of a folder: one subfolder per class, or only images. Must not know: how image files are
 * encoded. Read next: image_read.c. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/image_found.h"
#include "io/publish.h"

#define DEPTH_MAX 16 /* levels of folders; ends the walk when a link points to a folder above */

bool weft__is_image_name(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Adds the paths of all folders and image files in a folder, each sorted by bytes. A file counts as an image
 * by its name. Everything else is skipped, and so are names that begin with a dot. */
static weft_status list(weft_context *ctx, const char *folder, weft__names *folders, weft__names *files,
                        weft__names *skipped) {
    DIR *dir = weft__opendir(folder);
    const size_t before = files->count;
    weft_status status = WEFT_OK;
    struct stat what;
    if (!dir) return weft__fail_io(ctx, "open", folder, errno);
    int error = 0;
    for (const struct dirent *e; status == WEFT_OK && (e = weft__next_entry(dir, &error));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *path = weft__path_join(ctx, folder, e->d_name);
        const bool hidden = e->d_name[0] == '.';
        if (path && !hidden && stat(path, &what) != 0) {
            status = weft__fail_io(ctx, "access", path, errno);
            weft__free(ctx, path);
        } else if (path && !hidden && S_ISDIR(what.st_mode)) {
            status = weft__names_add(ctx, folders, path);
        } else {
            const bool image = path && !hidden && S_ISREG(what.st_mode) && weft__is_image_name(e->d_name);
            status = weft__names_add(ctx, image ? files : skipped, path);
        }
    }
    closedir(dir);
    if (status == WEFT_OK && error) status = weft__fail_io(ctx, "list", folder, error);
    weft__names_sort(folders, 0);
    weft__names_sort(files, before);
    return status;
}

/* Adds all images of a folder: first its own, then those of its subfolders. An empty folder is skipped. */
static weft_status image_folder_collect(weft_context *ctx, const char *folder, int depth, weft__names *files,
                                        weft__names *skipped) {
    weft__names folders = {0};
    const size_t before = files->count + skipped->count;
    weft_status status = list(ctx, folder, &folders, files, skipped);
    for (size_t i = 0; status == WEFT_OK && i < folders.count; i++)
        status = depth < DEPTH_MAX
                     ? image_folder_collect(ctx, folders.at[i], depth + 1, files, skipped)
                     : weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this folder lies more than %d folders deep",
                                  folders.at[i], DEPTH_MAX);
    if (status == WEFT_OK && files->count + skipped->count == before)
        status = weft__names_add(ctx, skipped, weft__path_join(ctx, folder, ""));
    weft__names_free(ctx, &folders);
    return status;
}

/* ---- classes ---- */

/* Gives all files from index `from` on the label `class`. */
static weft_status label_as(weft_context *ctx, weft__image_found *f, size_t from, size_t class) {
    for (size_t i = from; i < f->files.count; i++) {
        if (!weft__grow(ctx, &f->labels, &f->capacity, i, sizeof *f->labels))
            return weft__fail_oom(ctx, f->files.count * sizeof *f->labels, "classes of images");
        f->labels[i] = (int32_t) class;
    }
    return WEFT_OK;
}

static weft_status class_number(weft_context *ctx, const weft_image_folder_options *o, const char *path,
                                weft__image_found *f, size_t *number) {
    const char *name = strrchr(path, '/') + 1;
    if (!o->classes) {
        *number = f->classes.count;
        return weft__names_add(ctx, &f->classes, weft__strdup(ctx, name));
    }
    for (*number = 0; *number < o->class_count; ++*number)
        if (strcmp(o->classes[*number], name) == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no class of the training data has this name", path);
}

/* Finds the classes: each folder in `path` is a class. */
static weft_status find_classes(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                                weft__image_found *f) {
    weft__names folders = {0}, stray = {0};
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
    weft__names_free(ctx, &folders);
    weft__names_free(ctx, &stray);
    return status;
}

weft_status weft__image_folder_find(weft_context *ctx, const char *path, const weft_image_folder_options *o,
                                    weft__image_found *f) {
    struct stat what;
    if (o->with_classes) return find_classes(ctx, path, o, f);
    if (stat(path, &what) != 0) return weft__fail_io(ctx, "open", path, errno);
    if (!S_ISDIR(what.st_mode)) return weft__names_add(ctx, &f->files, weft__strdup(ctx, path));
    WEFT_TRY(image_folder_collect(ctx, path, 0, &f->files, &f->skipped));
    if (f->files.count > 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this folder holds no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)", path);
}
