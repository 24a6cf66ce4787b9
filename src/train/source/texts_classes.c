/* The classes of texts: which there are, and whether the head of the published model is for them. Must not
 * know: texts, models' weights. Read next: texts.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/parse.h"
#include "published/published.h"
#include "train/source/texts.h"

typedef struct reading {
    const weft__texts_table *t;
    weft__dataset *d;
    weft__labels labels;
    int32_t *y;         /* [rows]; at first the numbers of labels */
    const char **names; /* [labels.count] in the order of the classes */
    int32_t *ids;       /* [labels.count] the class of each label */
} reading;

/* Reads a label that is a whole number. */
static bool parse_whole(const char *text, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0 && (*text == '-' || (*text >= '0' && *text <= '9'));
}

/* ---- known classes ---- */

static weft_status refuse_class(const reading *r, size_t row, const char *label) {
    char what[700], names[400] = "";
    const weft__dataset *d = r->d;
    if (d->classes)
        weft__list_names(d->classes, (size_t)d->outputs, names, sizeof names);
    else
        snprintf(names, sizeof names, "0 to %lld", (long long)d->outputs - 1);
    snprintf(what, sizeof what, "class \"%.100s\", but the classes of the training data are %s", label,
             names);
    return weft__texts_fail(r->t, row, r->t->target, what);
}

/* Finds the class of a label among those of the training data. */
static weft_status find_class(reading *r, size_t row, const char *label) {
    uint32_t number;
    long long id;
    if (r->d->classes && weft__labels_find(&r->labels, label, strlen(label), &number))
        r->y[row] = (int32_t)number;
    else if (!r->d->classes && parse_whole(label, &id) && id >= 0 && id < r->d->outputs)
        r->y[row] = (int32_t)id;
    else
        return refuse_class(r, row, label);
    return WEFT_OK;
}

static weft_status add_label(reading *r, size_t row, const char *label) {
    uint32_t number;
    const weft_status status = weft__labels_add(&r->labels, label, strlen(label), &number);
    if (status == WEFT_ERR_FORMAT)
        return weft__texts_fail(r->t, row, r->t->target,
                                "more than 65,536 different classes: is this a column of texts?");
    r->y[row] = (int32_t)number;
    return status;
}

/* ---- new classes ---- */

/* Whether the labels are the numbers from 0 on, which are classes without names. */
static bool are_numbers(const weft__labels *l, int32_t *ids) {
    for (size_t i = 0; i < l->count; i++) {
        const char *label = weft__label(l, i);
        long long id;
        if (!parse_whole(label, &id) || id < 0 || id >= (long long)l->count || (label[0] == '0' && label[1]))
            return false;
        ids[i] = (int32_t)id; /* labels differ, so all ids are taken */
    }
    return true;
}

static int by_value(const void *a, const void *b) {
    const long long x = strtoll(*(const char *const *)a, NULL, 10),
                    y = strtoll(*(const char *const *)b, NULL, 10);
    return (x > y) - (x < y);
}

/* Puts the names in order: whole numbers by their values, other names by their bytes. */
static void order_names(reading *r) {
    const weft__labels *l = &r->labels;
    bool whole = true;
    long long value;
    for (size_t i = 0; i < l->count; i++) {
        r->names[i] = weft__label(l, l->order[i]);
        whole = whole && parse_whole(r->names[i], &value);
    }
    if (whole) qsort(r->names, l->count, sizeof *r->names, by_value);
}

/* Whether the names of a head tell nothing: LABEL_0, LABEL_1, ... */
static bool is_generic(char *const *names, size_t count) {
    char generic[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(generic, sizeof generic, "LABEL_%zu", i);
        if (strcmp(names[i], generic) != 0) return false;
    }
    return true;
}

/* Puts the names in the order of the head's classes. False: the head has other classes. */
static bool follow_head(reading *r, char *const *head) {
    const size_t count = r->labels.count;
    for (size_t i = 0; i < count; i++) {
        size_t j = i;
        while (j < count && strcasecmp(head[i], r->names[j]) != 0) j++;
        if (j == count) return false;
        const char *found = r->names[j];
        r->names[j] = r->names[i];
        r->names[i] = found;
    }
    return true;
}

/* Decides whether the head of the published model is kept. `named`: the classes have names. */
static weft_status choose_head(reading *r, bool named) {
    char **head;
    size_t count;
    weft__dataset *d = r->d;
    WEFT_TRY(weft__published_labels(r->t->ctx, r->t->config->published, &head, &count));
    d->texts.head_classes = (int64_t)count;
    d->texts.new_head = count != r->labels.count;
    if (!d->texts.new_head && named && !is_generic(head, count) && !follow_head(r, head)) {
        d->texts.new_head = true;
        order_names(r); /* again: some may have changed their places */
    }
    weft__free(r->t->ctx, head);
    return WEFT_OK;
}

static weft_status one_class(const reading *r) {
    return weft__fail(
        r->t->ctx, WEFT_ERR_FORMAT,
        "%s: all %zu texts are of one class, \"%.100s\", so there is nothing to learn: give texts "
        "of at least two classes",
        r->t->path, r->t->table.rows, weft__label(&r->labels, 0));
}

/* Makes the labels of the training file the classes. */
static weft_status assign_classes(reading *r) {
    const size_t count = r->labels.count;
    weft__dataset *d = r->d;
    if (count < 2) return one_class(r);
    const bool numbers = are_numbers(&r->labels, r->ids);
    if (!numbers) order_names(r);
    WEFT_TRY(choose_head(r, !numbers));
    d->outputs = (int64_t)count;
    if (!numbers) {
        for (size_t i = 0; i < count; i++) {
            uint32_t number;
            if (weft__labels_find(&r->labels, r->names[i], strlen(r->names[i]), &number))
                r->ids[number] = (int32_t)i;
        }
        WEFT_TRY(weft__dataset_take_classes(r->t->ctx, r->t->path, (char *const *)r->names, count, d));
    }
    for (size_t row = 0; row < r->t->table.rows; row++) r->y[row] = r->ids[r->y[row]];
    return WEFT_OK;
}

/* ---- a file ---- */

static weft_status read_labels(reading *r) {
    const weft__texts_table *t = r->t;
    const bool known = r->d->outputs > 0;
    uint32_t number;
    for (int64_t i = 0; known && r->d->classes && i < r->d->outputs; i++)
        WEFT_TRY(weft__labels_add(&r->labels, r->d->classes[i], strlen(r->d->classes[i]), &number));
    for (size_t row = 0; row < t->table.rows; row++) {
        const char *label = t->table.cells[row * t->table.column_count + t->target];
        if (!label || !label[0]) return weft__texts_fail(t, row, t->target, "the class is missing");
        WEFT_TRY(known ? find_class(r, row, label) : add_label(r, row, label));
    }
    if (known) return WEFT_OK;
    r->names = weft__array(t->ctx, r->labels.count, sizeof *r->names);
    r->ids = weft__array(t->ctx, r->labels.count, sizeof *r->ids);
    if (!r->names || !r->ids) return weft__fail_oom(t->ctx, r->labels.count * 16, "the classes");
    return assign_classes(r);
}

weft_status weft__texts_classes(const weft__texts_table *t, weft__dataset *d, weft_array *y) {
    const int64_t rows = (int64_t)t->table.rows;
    WEFT_TRY(weft_array_new(t->ctx, WEFT_I32, 1, &rows, y));
    reading r = {.t = t, .d = d, .labels = {.ctx = t->ctx}, .y = y->data};
    const weft_status status = read_labels(&r);
    weft__labels_free(&r.labels);
    weft__free(t->ctx, r.names);
    weft__free(t->ctx, r.ids);
    return status;
}
