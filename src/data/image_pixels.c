/* Decodes many image files at once, on all cores. Must not know: folders, classes. Read next:
 * image_file.c. */
#include <stdatomic.h>
#include <string.h>

#include "base/threads.h"
#include "data/image_file.h"
#include "data/image_pixels.h"
#include "data/shard_files.h"

/* Gives the name of image i for messages. `room` is freed by the caller. */
static weft_status name_image(weft_context *ctx, const weft__image_files *files, size_t i, weft_bytes *room,
                              const char **name) {
    *room = (weft_bytes){0};
    if (!files->shards) {
        *name = files->paths[i];
        return WEFT_OK;
    }
    WEFT_TRY(weft_image_member_name(ctx, files->shards, &files->members[i], room));
    *name = (const char *)room->data;
    return WEFT_OK;
}

/* Reads an image. If rows and columns are wanted, it may be smaller than the file, but not than these. */
static weft_status read_image(weft_context *ctx, const weft__image_files *files, size_t i, const char *name,
                              const weft_image_folder_options *wanted, weft__image *out) {
    weft_bytes bytes;
    *out = (weft__image){0};
    WEFT_TRY(files->shards ? weft__shards_image(ctx, files->shards, &files->members[i], &bytes)
                           : weft_read_file(ctx, name, 0, &bytes));
    const weft_status status = weft__image_decode(ctx, bytes.data, bytes.size, name, wanted, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}

/* Tells whether this failure is the fault of one file, and not of the machine or the options. */
static bool is_bad(weft_status status) { return status == WEFT_ERR_FORMAT || status == WEFT_ERR_IO; }

weft_status weft__images_shape(weft_context *ctx, weft__image_files *files) {
    const weft_image_folder_options *o = files->options;
    weft__image image = {.channels = o->channels, .rows = o->rows, .columns = o->columns};
    if (!o->channels || !o->rows) {
        const weft_image_folder_options whole = {.channels = o->channels, .max_pixels = o->max_pixels};
        weft_status status = WEFT_ERR_FORMAT;
        for (size_t i = 0; i < files->count && is_bad(status); i++)
            status = read_image(ctx, files, i, files->shards ? "an image" : files->paths[i], &whole, &image);
        if (!is_bad(status)) WEFT_TRY(status);
        if (status != WEFT_OK)
            image = (weft__image){.rows = 1, .columns = 1, .channels = 1}; /* all are bad */
        weft__free(ctx, image.pixels);
    }
    files->shape[0] = image.channels;
    files->shape[1] = o->rows ? o->rows : weft__image_rows(&image);
    files->shape[2] = o->rows ? o->columns : weft__image_columns(&image);
    return WEFT_OK;
}

/* Writes the note of an image. Sums are exact: an image has less than 2^48 pixels. */
static void take_note(const int64_t shape[3], const uint8_t *planes, weft__image_note *note) {
    const size_t pixels = (size_t)(shape[1] * shape[2]);
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_bytes(&hash, planes, (size_t)shape[0] * pixels);
    *note = (weft__image_note){.hash = hash.a};
    for (int64_t c = 0; c < shape[0]; c++)
        for (size_t i = 0; i < pixels; i++) {
            const uint64_t v = *planes++;
            note->sums[c] += v, note->squares[c] += v * v;
        }
}

/* Notes what image i holds, and compares it with what was noted before. */
static weft_status examine(weft_context *ctx, const weft__image_files *files, size_t i, const char *name,
                           const uint8_t *planes) {
    weft__image_note note;
    if (!files->notes && !files->hashes) return WEFT_OK;
    take_note(files->shape, planes, &note);
    if (files->notes) files->notes[i] = note;
    if (!files->hashes || note.hash == files->hashes[i]) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: the image has changed since it was read first: restore the file, or begin again",
                      name);
}

/* Reads one image, resizes it and writes it to `planes`. *bad tells whether the file itself is at fault. ctx
 * is NULL when several threads do this at once. */
static weft_status place(weft_context *ctx, const weft__image_files *files, size_t i, const char *name,
                         uint8_t *planes, bool *bad) {
    const weft_image_folder_options *o = files->options;
    const int64_t *shape = files->shape;
    weft__image image;
    weft_status status = read_image(ctx, files, i, name, o, &image);
    *bad = is_bad(status);
    WEFT_TRY(status);
    const int64_t rows = weft__image_rows(&image), columns = weft__image_columns(&image);
    if (image.channels > shape[0] || (!o->rows && (rows != shape[1] || columns != shape[2])))
        status = weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: this image has %lld channels, %lld rows and %lld columns, but the first image has %lld, "
            "%lld and %lld: set the size that all images get (model.image of a configuration)",
            name, (long long)image.channels, (long long)rows, (long long)columns, (long long)shape[0],
            (long long)shape[1], (long long)shape[2]);
    if (status == WEFT_OK) status = weft__image_fit(ctx, &image, shape[1], shape[2], planes);
    if (status == WEFT_OK && image.channels < shape[0]) /* a grey image among coloured ones */
        for (int64_t c = 1; c < shape[0]; c++)
            memcpy(planes + c * shape[1] * shape[2], planes, (size_t)(shape[1] * shape[2]));
    weft__image_free(ctx, &image);
    return status == WEFT_OK ? examine(ctx, files, i, name, planes) : status;
}

enum { UNREAD, READ, BAD };

typedef struct reading {
    const weft__image_files *files;
    uint8_t *planes, *state;       /* state [count] */
    _Atomic int64_t next, stopped; /* the next file; a file that stops the reading */
} reading;

static void *read_files(void *user) {
    reading *r = user;
    const int64_t bytes = r->files->shape[0] * r->files->shape[1] * r->files->shape[2];
    for (int64_t i; (i = r->next++) < r->stopped;) {
        bool bad;
        const char *name = r->files->shards ? "an image" : r->files->paths[i]; /* no message is kept */
        const weft_status status = place(NULL, r->files, (size_t)i, name, r->planes + i * bytes, &bad);
        if (status == WEFT_OK || bad)
            r->state[i] = bad ? BAD : READ;
        else
            r->stopped = i;
    }
    return NULL;
}

/* Reads again what the threads could not read. The message of a failure belongs to the thread that met it, so
 * the caller must meet the failure too. A temporary failure does no harm this way. */
static weft_status read_again(weft_context *ctx, const weft__image_files *files, size_t i, uint8_t *planes,
                              char **bad) {
    weft_bytes room;
    const char *name;
    bool is_at_fault = false;
    weft_status status = name_image(ctx, files, i, &room, &name);
    if (status == WEFT_OK) status = place(ctx, files, i, name, planes, &is_at_fault);
    weft_bytes_free(ctx, &room);
    /* a tar file that changes is at fault as a whole, and no reason to leave out an image */
    if (status == WEFT_ERR_STATE) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s", weft_last_error(ctx));
    if (!is_at_fault) return status;
    *bad = weft__strdup(ctx, weft_last_error(ctx));
    return *bad ? WEFT_OK : weft__fail_oom(ctx, 0, "images");
}

weft_status weft__images_read(weft_context *ctx, const weft__image_files *files, uint8_t *planes,
                              char **bad) {
    const size_t bytes = (size_t)(files->shape[0] * files->shape[1] * files->shape[2]);
    const int most = weft__default_threads();
    uint8_t *state = weft__zalloc(ctx, files->count);
    if (!state) return weft__fail_oom(ctx, files->count, "images");
    reading r = {.files = files, .planes = planes, .state = state, .stopped = (int64_t)files->count};
    weft__parallel((size_t)most < files->count ? most : (int)files->count, read_files, &r);
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < files->count; i++)
        if (state[i] != READ) status = read_again(ctx, files, i, planes + i * bytes, &bad[i]);
    weft__free(ctx, state);
    return status;
}
