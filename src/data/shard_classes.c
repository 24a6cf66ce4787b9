/* The classes of images in tar files. Each image has a word: the folder of the member, or the text of its
 * file .cls. Folders become classes by the part below those that all members share. Must not know: tar files.
 * Read next: image_read.c. */
#include <stdio.h>
#include <string.h>

#include "data/image_shards.h"

typedef struct classing {
    weft_context *ctx;
    const char *path;
    const weft__shard_words *words;
    const weft_image_folder_options *options;
    weft__image_found *found;
    size_t depth;       /* folders above those of the classes */
    weft__labels names; /* of the classes */
    int32_t *class_of;  /* [words] */
    size_t count;       /* classes */
} classing;

/* Reports what is wrong with a word, and names an image that has it. */
static weft_status refuse(const classing *c, size_t word, const char *why) {
    size_t i = 0;
    weft_bytes name;
    while (c->found->labels[i] != (int32_t)word) i++;
    WEFT_TRY(weft_image_member_name(c->ctx, c->found->shards, &c->found->members[i], &name));
    const weft_status status = weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: %s", (const char *)name.data, why);
    weft_bytes_free(c->ctx, &name);
    return status;
}

/* ---- folders ---- */

/* Finds a part of a path: part 0 is the first folder. Returns its size, 0 if the path has fewer parts. */
static size_t path_part(const char *path, size_t part, const char **begin) {
    for (; part > 0; part--) {
        path = strchr(path, '/');
        if (!path) return 0;
        path++;
    }
    *begin = path;
    return strcspn(path, "/");
}

/* Counts the folders that all paths begin with, but leaves each path at least one part. */
static size_t shared_depth(const classing *c) {
    const weft__labels *words = &c->words->words;
    for (size_t depth = 0;; depth++) {
        const char *first = "", *part = "", *below;
        const size_t size = path_part(weft__label(words, 0), depth, &first);
        for (size_t i = 0; i < words->count; i++) {
            const char *path = weft__label(words, i);
            if (path_part(path, depth, &part) != size || memcmp(part, first, size) != 0 ||
                path_part(path, depth + 1, &below) == 0)
                return depth;
        }
    }
}

/* With given classes, the folders of the classes are the highest ones that are all among them: a part of the
 * data may lack classes, so that its members share more folders. */
static size_t known_depth(const classing *c, size_t shared) {
    const weft__labels *words = &c->words->words;
    for (size_t depth = 0; depth < shared; depth++) {
        const char *part = "";
        uint32_t number;
        bool known = true;
        for (size_t i = 0; known && i < words->count; i++) {
            const size_t size = path_part(weft__label(words, i), depth, &part);
            known = weft__labels_find(&c->names, part, size, &number);
        }
        if (known) return depth;
    }
    return shared;
}

/* ---- words to classes ---- */

static bool is_number(const char *word) { return word[strspn(word, "0123456789")] == '\0'; }

/* The name of the class of a word. Returns its size. */
static size_t class_name(const classing *c, size_t word, const char **name) {
    *name = weft__label(&c->words->words, word);
    return c->words->texts ? strlen(*name) : path_part(*name, c->depth, name);
}

static weft_status too_many(const classing *c) {
    return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: there are more than %d classes", c->path,
                      WEFT__LABELS_MAX);
}

/* Numbers are the classes themselves. Those that no image has are classes, too. */
static weft_status take_numbers(classing *c) {
    const weft__labels *words = &c->words->words;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = weft__label(words, i);
        char why[128];
        snprintf(why, sizeof why, "its class is %.40s, but numbers of classes are 0 to %d", word,
                 WEFT__LABELS_MAX - 1);
        if (strlen(word) > 5) return refuse(c, i, why);
        for (const char *digit = word; *digit; digit++) c->class_of[i] = 10 * c->class_of[i] + *digit - '0';
        if (c->class_of[i] >= WEFT__LABELS_MAX) return refuse(c, i, why);
        if ((size_t)c->class_of[i] >= c->count) c->count = (size_t)c->class_of[i] + 1;
    }
    for (size_t i = 0; i < c->count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        WEFT_TRY(weft__names_add(c->ctx, &c->found->classes, weft__strdup(c->ctx, name)));
    }
    return WEFT_OK;
}

/* Adds the classes of all words to c->names, if they may be new, and gives each word its number there. */
static weft_status find_names(classing *c, bool may_be_new) {
    for (size_t i = 0; i < c->words->words.count; i++) {
        const char *name;
        char why[128], shown[WEFT__EXCERPT];
        uint32_t number = 0;
        const size_t size = class_name(c, i, &name);
        if (size == 0)
            return refuse(
                c, i,
                "this image has no class: put it into the folder of a class, or add a member with the "
                "same name and the ending .cls");
        snprintf(why, sizeof why, "no class of the training data is called %s",
                 weft__excerpt(shown, name, size));
        const weft_status status = may_be_new ? weft__labels_add(&c->names, name, size, &number) : WEFT_OK;
        if (status == WEFT_ERR_FORMAT) return too_many(c);
        WEFT_TRY(status);
        if (!may_be_new && !weft__labels_find(&c->names, name, size, &number)) return refuse(c, i, why);
        c->class_of[i] = (int32_t)number;
    }
    return WEFT_OK;
}

/* Numbers the classes by the bytes of their names. */
static weft_status take_names(classing *c) {
    WEFT_TRY(find_names(c, true));
    c->count = c->names.count;
    int32_t *rank = weft__array(c->ctx, c->count, sizeof *rank);
    if (!rank) return weft__fail_oom(c->ctx, c->count * sizeof *rank, "classes");
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < c->count; i++) {
        const char *name = weft__label(&c->names, c->names.order[i]);
        rank[c->names.order[i]] = (int32_t)i;
        status = weft__names_add(c->ctx, &c->found->classes, weft__strdup(c->ctx, name));
    }
    for (size_t i = 0; i < c->words->words.count; i++) c->class_of[i] = rank[c->class_of[i]];
    weft__free(c->ctx, rank);
    return status;
}

static weft_status take_given(classing *c) {
    c->count = c->options->class_count;
    for (size_t i = 0; i < c->count; i++) {
        const char *name = c->options->classes[i];
        uint32_t number;
        const weft_status status = weft__labels_add(&c->names, name, strlen(name), &number);
        if (status == WEFT_ERR_FORMAT) return too_many(c);
        WEFT_TRY(status);
        if (number != i) return weft__fail(c->ctx, WEFT_ERR_ARGUMENT, "classes: two are called %s", name);
    }
    if (!c->words->texts) c->depth = known_depth(c, c->depth);
    return find_names(c, false);
}

static weft_status choose_classes(classing *c) {
    const weft__labels *words = &c->words->words;
    size_t numbers = 0, number = 0, name = 0;
    if (!c->words->texts) c->depth = shared_depth(c);
    if (c->options->classes) return take_given(c);
    if (!c->words->texts) return take_names(c);
    for (size_t i = words->count; i-- > 0;) /* the first of both kinds */
        if (is_number(weft__label(words, i)))
            numbers++, number = i;
        else
            name = i;
    if (numbers == words->count) return take_numbers(c);
    if (numbers == 0) return take_names(c);
    char why[128], shown[WEFT__EXCERPT];
    const char *text = weft__label(words, name);
    snprintf(why, sizeof why, "its class is %s, but others are numbers, as %.10s: use one kind",
             weft__excerpt(shown, text, strlen(text)), weft__label(words, number));
    return refuse(c, name, why);
}

/* ---- the order of the images ---- */

/* Sorts the images by class. Images of the same class keep their order. */
static weft_status sort_images(classing *c) {
    weft__image_found *f = c->found;
    bool sorted = true;
    for (size_t i = 0; i < f->member_count; i++) {
        f->labels[i] = c->class_of[f->labels[i]];
        sorted = sorted && (i == 0 || f->labels[i - 1] <= f->labels[i]);
    }
    if (sorted) return WEFT_OK;
    size_t *at = weft__array(c->ctx, c->count + 1, sizeof *at);
    weft_image_member *members = weft__array(c->ctx, f->member_count, sizeof *members);
    if (at && members) {
        for (size_t i = 0; i < f->member_count; i++) at[f->labels[i] + 1]++;
        for (size_t i = 0; i < c->count; i++) at[i + 1] += at[i];
        for (size_t i = 0; i < f->member_count; i++) members[at[f->labels[i]]++] = f->members[i];
        for (size_t i = 0, class = 0; i < f->member_count; i++) { /* at[class] now is the end of a class */
            while (at[class] <= i) class ++;
            f->labels[i] = (int32_t) class;
        }
        weft__free(c->ctx, f->members);
        f->members = members;
    } else {
        weft__free(c->ctx, members);
    }
    weft__free(c->ctx, at);
    return at && members ? WEFT_OK
                         : weft__fail_oom(c->ctx, f->member_count * sizeof *members, "the order of images");
}

weft_status weft__shard_classes(weft_context *ctx, const char *path, const weft__shard_words *words,
                                const weft_image_folder_options *options, weft__image_found *found) {
    classing c = {.ctx = ctx, .path = path, .words = words, .options = options, .found = found};
    c.names.ctx = ctx;
    c.class_of = weft__array(ctx, words->words.count, sizeof *c.class_of);
    weft_status status =
        c.class_of ? WEFT_OK : weft__fail_oom(ctx, words->words.count * sizeof *c.class_of, "classes");
    if (status == WEFT_OK) status = choose_classes(&c);
    if (status == WEFT_OK) status = sort_images(&c);
    weft__labels_free(&c.names);
    weft__free(ctx, c.class_of);
    return status;
}
