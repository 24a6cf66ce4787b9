/* Finds images in tar files, one file after the other: lists the members, sorts them by their names as in a
 * folder, and keeps for each image where it is, in 16 bytes, and its class. The names of one tar file at a
 * time are in memory. Must not know: how image files are encoded, libarchive. Read next: shard_classes.c. */
#include "data/image_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"

enum { BLOCK = 512, CLASS_BYTES = 256 /* most bytes of a class */ };

/* A member of the tar file that is being read: an image, or the class of one. */
typedef struct entry {
    union {
        size_t at; /* in indexing.names, while it grows */
        const char *text;
    } name;
    uint64_t header, data, size;
    bool class; /* a file .cls */
} entry;

typedef struct indexing {
    weft_context *ctx;
    const weft_image_folder_options *options;
    weft__image_found *found;
    size_t shard;
    weft__buffer names;
    entry *entries;
    size_t count, capacity;
    size_t member_capacity;
    weft__shard_words words;
} indexing;

static const char *shard_path(const indexing *x) { return weft__shards_path(x->found->shards, x->shard); }

/* ---- the members of one tar file ---- */

static const char *file_name(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* The bytes of a name up to the first dot of its last part: what the members of a sample share. */
static size_t stem_size(const char *name) {
    const char *file = file_name(name);
    return (size_t)(file - name) + strcspn(file, ".");
}

static bool is_hidden(const char *name) { return name[0] == '.' || strstr(name, "/.") != NULL; }
static bool is_class(const char *name) { return strcasecmp(name + stem_size(name), ".cls") == 0; }

/* Tells whether nothing but its ending follows the stem of an image: 7.jpg, but not 7.mask.jpg. */
static bool is_plain(const entry *e) {
    return strrchr(file_name(e->name.text), '.') == e->name.text + stem_size(e->name.text);
}

static weft_status add_entry(void *user, const weft__tar_member *m) {
    indexing *x = user;
    weft__skipped *skipped = weft__shards_skipped(x->found->shards);
    const char *name = m->name, *path = shard_path(x);
    const bool class = is_class(name);
    if (is_hidden(name)) {
        skipped->hidden++;
        return WEFT_OK;
    }
    if (!class && !weft__is_image_name(file_name(name))) {
        weft__skipped_kind(skipped, file_name(name), 1);
        return WEFT_OK;
    }
    if (m->no_bytes)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                          "%s/%s: this member is %s: pack the tar file with the files themselves (tar "
                          "--dereference --hard-dereference)",
                          path, name, m->no_bytes);
    if (m->size > UINT32_MAX || (m->data - m->header) / BLOCK > UINT16_MAX)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT, "%s/%s: %llu bytes are too many for an image", path, name,
                          (unsigned long long)m->size);
    if (!weft__grow(x->ctx, &x->entries, &x->capacity, x->count, sizeof *x->entries))
        return weft__fail_oom(x->ctx, (x->count + 1) * sizeof *x->entries, "members of a tar file");
    x->entries[x->count++] = (entry){
        .name.at = x->names.bytes, .header = m->header, .data = m->data, .size = m->size, .class = class};
    weft__buffer_put(&x->names, name, strlen(name) + 1);
    return weft__buffer_check(&x->names);
}

/* The order of a folder: in each folder first the files, then the folders, by the bytes of their names. */
static int by_path(const void *left, const void *right) {
    const char *a = ((const entry *)left)->name.text, *b = ((const entry *)right)->name.text;
    size_t same = 0, begin;
    while (a[same] && a[same] == b[same]) same++;
    for (begin = same; begin > 0 && a[begin - 1] != '/';) begin--;
    const bool a_folder = strchr(a + begin, '/') != NULL, b_folder = strchr(b + begin, '/') != NULL;
    if (a_folder != b_folder) return a_folder ? 1 : -1;
    const int x = a[same] == '/' ? 0 : (unsigned char)a[same],
              y = b[same] == '/' ? 0 : (unsigned char)b[same];
    return x - y;
}

static weft_status sort_entries(indexing *x) {
    for (size_t i = 0; i < x->count; i++) x->entries[i].name.text = x->names.text + x->entries[i].name.at;
    if (x->count) qsort(x->entries, x->count, sizeof *x->entries, by_path);
    for (size_t i = 1; i < x->count; i++)
        if (strcmp(x->entries[i - 1].name.text, x->entries[i].name.text) == 0)
            return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                              "%s/%s: two members of the tar file have this name: remove one", shard_path(x),
                              x->entries[i].name.text);
    return WEFT_OK;
}

/* ---- images and their words ---- */

static weft_status add_image(indexing *x, const entry *e, uint32_t word) {
    weft__image_found *f = x->found;
    const size_t count = f->member_count;
    if (!weft__grow(x->ctx, &f->members, &x->member_capacity, count, sizeof *f->members) ||
        (x->options->with_classes && !weft__grow(x->ctx, &f->labels, &f->capacity, count, sizeof *f->labels)))
        return weft__fail_oom(x->ctx, (count + 1) * sizeof *f->members, "the places of images");
    f->members[count] = (weft_image_member){.header = e->header,
                                            .size = (uint32_t)e->size,
                                            .shard = (uint16_t)x->shard,
                                            .blocks = (uint16_t)((e->data - e->header) / BLOCK)};
    if (x->options->with_classes) f->labels[count] = (int32_t)word;
    f->member_count++;
    return WEFT_OK;
}

static weft_status add_word(indexing *x, const entry *e, const char *text, size_t size, uint32_t *word) {
    const weft_status status = weft__labels_add(&x->words.words, text, size, word);
    if (status != WEFT_ERR_FORMAT) return status;
    return weft__fail(x->ctx, status, "%s/%s: there are more than %d %s", shard_path(x), e->name.text,
                      WEFT__LABELS_MAX, x->words.texts ? "classes" : "folders");
}

static weft_status bad_class(const indexing *x, const entry *e, const char *why) {
    return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                      "%s/%s: %s: write a name, or a number from 0 on, of at most %d bytes", shard_path(x),
                      e->name.text, why, CLASS_BYTES - 1);
}

/* Tells whether a text looks like a number, but is not one of a class: -1, 2.5. */
static bool is_other_number(const char *text) {
    const size_t sign = text[0] == '-' || text[0] == '+', whole = strspn(text + sign, "0123456789");
    const char *rest = text + sign + whole;
    if (whole == 0) return false;
    return rest[0] == '.' ? rest[1 + strspn(rest + 1, "0123456789")] == '\0' : rest[0] == '\0' && sign > 0;
}

static weft_status read_class(indexing *x, const entry *e, uint32_t *word) {
    char text[CLASS_BYTES] = "";
    if (e->size >= sizeof text) return bad_class(x, e, "this file is too large for a class");
    WEFT_TRY(weft__shards_read(x->ctx, x->found->shards, x->shard, e->data, text, (size_t)e->size));
    size_t from = strspn(text, " \t\r\n"), end = strlen(text);
    if (end < e->size) return bad_class(x, e, "this file holds bytes that are no class");
    while (end > from && strchr(" \t\r\n", text[end - 1])) end--;
    text[end] = '\0';
    if (end == from) return bad_class(x, e, "this file of a class is empty");
    for (size_t i = from; i < end; i++)
        if ((unsigned char)text[i] < 32 || text[i] == 127)
            return bad_class(x, e, "this file holds bytes that are no class");
    if (is_other_number(text + from)) return bad_class(x, e, "this number is no class");
    if (text[from + strspn(text + from, "0123456789")] == '\0') /* 007 is 7 */
        while (text[from] == '0' && text[from + 1]) from++;
    return add_word(x, e, text + from, end - from, word);
}

/* Adds the image of a sample: the members `from` to `end` - 1, which share a stem. Other images of the sample
 * have a longer ending, such as .mask.png, and are skipped. */
static weft_status add_sample(indexing *x, size_t from, size_t end) {
    const entry *class = NULL, *image = NULL, *first = NULL;
    size_t plain = 0, images = 0;
    for (size_t i = from; i < end; i++) {
        const entry *e = &x->entries[i];
        if (e->class && class)
            return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                              "%s/%s: this image has a second class, in %s: remove one", shard_path(x),
                              e->name.text, file_name(class->name.text));
        if (e->class) class = e;
        if (e->class) continue;
        images++;
        if (!first) first = e;
        if (!is_plain(e)) continue;
        if (plain++ > 0)
            return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                              "%s/%s: this sample has another image, %s: keep one in each sample",
                              shard_path(x), e->name.text, file_name(image->name.text));
        image = e;
    }
    if (images == 1) image = first;
    for (size_t i = from; i < end; i++)
        if (!x->entries[i].class && &x->entries[i] != image)
            weft__skipped_kind(weft__shards_skipped(x->found->shards), x->entries[i].name.text, 1);
    if (!image) { /* a class without an image */
        if (class) weft__skipped_kind(weft__shards_skipped(x->found->shards), class->name.text, 1);
        return WEFT_OK;
    }
    uint32_t word = 0;
    if (x->options->with_classes && !class)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                          "%s/%s: this image has no class: others have one in a member with the ending .cls",
                          shard_path(x), image->name.text);
    if (x->options->with_classes) WEFT_TRY(read_class(x, class, &word));
    return add_image(x, image, word);
}

static weft_status add_samples(indexing *x) {
    for (size_t i = 0, end; i < x->count; i = end) {
        const char *name = x->entries[i].name.text;
        const size_t size = stem_size(name);
        for (end = i + 1; end < x->count; end++) {
            const char *other = x->entries[end].name.text;
            if (stem_size(other) != size || memcmp(other, name, size) != 0) break;
        }
        WEFT_TRY(add_sample(x, i, end));
    }
    return WEFT_OK;
}

static weft_status add_images(indexing *x) {
    for (size_t i = 0; i < x->count; i++) {
        const entry *e = &x->entries[i];
        const size_t file = (size_t)(file_name(e->name.text) - e->name.text);
        uint32_t word = 0;
        if (x->options->with_classes) WEFT_TRY(add_word(x, e, e->name.text, file ? file - 1 : 0, &word));
        WEFT_TRY(add_image(x, e, word));
    }
    return WEFT_OK;
}

static weft_status index_shard(indexing *x) {
    weft__image_found *f = x->found;
    const size_t before = f->member_count;
    bool texts = false;
    x->count = 0;
    weft__buffer_set(&x->names, "", 0);
    WEFT_TRY(weft__shards_list(x->ctx, f->shards, x->shard, add_entry, x));
    WEFT_TRY(sort_entries(x));
    for (size_t i = 0; i < x->count; i++) texts = texts || x->entries[i].class;
    if (x->options->with_classes && before > 0 && texts != x->words.texts)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                          "%s: this tar file has %s members with the ending .cls, unlike %s: give all images "
                          "their classes in the same way",
                          shard_path(x), texts ? "" : "no", weft__shards_path(f->shards, 0));
    x->words.texts = texts;
    WEFT_TRY(texts ? add_samples(x) : add_images(x));
    if (f->member_count > before) return WEFT_OK;
    return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                      "%s: this tar file holds no images (.png, .jpg, .jpeg, .gif, .webp, .bmp)",
                      shard_path(x));
}

weft_status weft__image_shards_find(weft_context *ctx, const char *path, const weft__names *paths,
                                    const weft_image_folder_options *options, weft__image_found *found) {
    indexing x = {.ctx = ctx, .options = options, .found = found, .names = {.ctx = ctx}};
    x.words.words.ctx = ctx;
    weft_status status = weft__shards_new(ctx, paths, &found->shards);
    for (x.shard = 0; status == WEFT_OK && x.shard < paths->count; x.shard++) status = index_shard(&x);
    weft__buffer_free(&x.names);
    weft__free(ctx, x.entries);
    if (status == WEFT_OK && options->with_classes)
        status = weft__shard_classes(ctx, path, &x.words, options, found);
    weft__labels_free(&x.words.words);
    /* a file that changes meanwhile is no error of the program */
    return status == WEFT_ERR_STATE ? weft__fail(ctx, WEFT_ERR_FORMAT, "%s", weft_last_error(ctx)) : status;
}
