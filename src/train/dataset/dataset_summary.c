/* Makes the summary of the data: the lines that all kinds of data share (classes, split), and the width of
 * lines. Must not know: what a source says about its data (train/source). Read next: train/source/images.c.
 */
#include "train/dataset/dataset_summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "train/dataset/class_weights.h"

#define MARK "..." /* stands for what was cut */

/* ---- lines ---- */

/* Returns the columns of a piece of printable text. An escape is ASCII. */
static int piece_columns(const char *piece, size_t bytes) {
    return (unsigned char)piece[0] >= 0x80 ? 1 : (int)bytes;
}

static int text_columns(const char *text) {
    int columns = 0;
    size_t taken, left = strlen(text);
    for (; left > 0; text += taken, left -= taken) {
        char piece[WEFT__ESCAPE];
        columns += piece_columns(piece, weft__printable_next(text, left, "", piece, &taken));
    }
    return columns;
}

/* Adds text to the line, as far as it fits into `most` columns in all. */
static void put(weft__lines *l, const char *text, int most) {
    size_t taken, left = strlen(text);
    for (; left > 0; text += taken, left -= taken) {
        char piece[WEFT__ESCAPE];
        const size_t bytes = weft__printable_next(text, left, "", piece, &taken);
        const int columns = piece_columns(piece, bytes);
        if (l->columns + columns > most || l->size + bytes >= sizeof l->text) return;
        memcpy(l->text + l->size, piece, bytes);
        l->size += bytes;
        l->columns += columns;
    }
    l->text[l->size] = '\0';
}

/* Adds text to the line. If the text is too long, it is cut and marked. */
static void put_cut(weft__lines *l, const char *text) {
    const bool fits = l->columns + text_columns(text) <= WEFT__SUMMARY_COLUMNS;
    put(l, text, fits ? WEFT__SUMMARY_COLUMNS : WEFT__SUMMARY_COLUMNS - (int)strlen(MARK));
    if (!fits) put(l, MARK, WEFT__SUMMARY_COLUMNS);
    l->full = !fits;
}

void weft__line(weft__lines *l, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l->size > 0 && l->size + 1 < sizeof l->text) l->text[l->size++] = '\n';
    l->columns = 0;
    l->listed = false;
    put_cut(l, text);
}

void weft__line_item(weft__lines *l, bool last, const char *fmt, ...) {
    char item[512];
    va_list args;
    if (l->full) return;
    va_start(args, fmt);
    vsnprintf(item, sizeof item, fmt, args);
    va_end(args);
    const char *between = l->listed ? ", " : "";
    const int room = WEFT__SUMMARY_COLUMNS - l->columns - (int)strlen(between),
              mark = last ? 0 : (int)strlen(", " MARK);
    const bool fits = text_columns(item) + mark <= room;
    put(l, between, WEFT__SUMMARY_COLUMNS);
    if (fits || !l->listed)
        put_cut(l, item);
    else
        put(l, MARK, WEFT__SUMMARY_COLUMNS);
    l->full = !fits;
    l->listed = true;
}

const char *weft__line_file(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path ? path : "";
}

/* ---- what all kinds share ---- */

/* Numbers that a model reads as images are images; files are what their source says. */
static bool is_image(const weft__dataset *d) {
    return d->sample[0] > 0 && (d->source->images || d->source->form != WEFT__FORM_FOLDER);
}

static const char *unit_of(const weft__dataset *d) {
    return is_image(d) ? "image" : d->texts.count == 2 ? "pair" : d->source->unit;
}

/* Puts the classes into the line, with their numbers of samples. The samples that were set aside for
 * validation count too: these are the numbers that the user knows from the file. */
static weft_status put_classes(const weft__dataset *d, const weft__config *config, const char *head,
                               weft__lines *l) {
    int64_t *counts = weft__class_counts(d, config->data_val_path ? WEFT__TRAIN : WEFT__VALIDATION);
    if (!counts) return weft__fail_oom(NULL, (size_t)d->outputs * sizeof *counts, "the classes");
    int64_t least = counts[0], most = counts[0];
    for (int64_t i = 1; i < d->outputs; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    char range[64];
    if (least == most)
        snprintf(range, sizeof range, "%lld", (long long)most);
    else
        snprintf(range, sizeof range, "%lld to %lld", (long long)least, (long long)most);
    weft__line(l, "%s, %s %s%s each: ", head, range, unit_of(d), weft__plural(most));
    for (int64_t i = 0; i < d->outputs && !l->full; i++) {
        char name[24], count[32] = "";
        snprintf(name, sizeof name, "%lld", (long long)i);
        if (least < most) snprintf(count, sizeof count, " (%lld)", (long long)counts[i]);
        weft__line_item(l, i == d->outputs - 1, "%.400s%s", d->classes ? d->classes[i] : name, count);
    }
    weft__free(NULL, counts);
    return WEFT_OK;
}

/* Copies a name, a long one cut. */
static void cut_name(const char *name, char out[32]) {
    const size_t length = strlen(name), most = weft__utf8_cut(name, length, 24);
    snprintf(out, 32, "%.*s%s", (int)most, name, length > most ? MARK : "");
}

static weft_status put_target(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const bool csv = d->source->cells;
    const long long outputs = (long long)d->outputs;
    char name[32], head[96];
    if (d->source->form == WEFT__FORM_CORPUS) return WEFT_OK;
    if (weft__config_is(config, WEFT__TRAIT_NO_TARGETS)) {
        weft__line(l, "target: the input itself");
        return WEFT_OK;
    }
    cut_name(config->data_target ? config->data_target
             : d->table.target   ? d->table.target
                                 : "the last column",
             name);
    if (d->task == WEFT__TASK_CLASSIFICATION) {
        snprintf(head, sizeof head, csv ? "target: %s, %lld classes" : "%s: %lld", csv ? name : "classes",
                 outputs);
        return put_classes(d, config, head, l);
    }
    weft__line(l, "target: %s%s%lld number%s", csv ? name : "", csv ? ", " : "", outputs,
               weft__plural(d->outputs));
    return WEFT_OK;
}

/* Puts the sizes of the parts, and which samples are the validation data. */
static void put_split(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    static const char *const names[WEFT__SPLIT_COUNT] = {"training: ", "validation: ", "test: "};
    const char *unit = unit_of(d);
    weft__line(l, "%s", "");
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        const int64_t n = weft__dataset_samples(d, (weft__split)i);
        const char *how = "";
        if (i == WEFT__VALIDATION && n > 0 && !config->data_val_path)
            how = d->source->loader        ? " (the end of the data)"
                  : config->data_folds > 0 ? " (a fold)"
                                           : " (drawn at random)";
        if (n > 0)
            weft__line_item(l, true, "%s%lld %s%s%s", names[i], (long long)n, unit, weft__plural(n), how);
        else if (i == WEFT__VALIDATION)
            weft__line_item(l, true, "validation: none");
    }
    const int64_t left = weft__dataset_left_out(d, config);
    if (left > 0)
        weft__line(l, "left out in each epoch: %lld %s%s that would not fill a batch", (long long)left, unit,
                   weft__plural(left));
}

/* Puts what is known of samples that are numbers without names. */
static void put_samples(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    int64_t count = weft__dataset_samples(d, WEFT__TRAIN);
    if (!config->data_val_path) count += weft__dataset_samples(d, WEFT__VALIDATION);
    weft__line(l, "data: %lld %ss of %lld numbers, from %.300s", (long long)count, d->source->unit,
               (long long)d->features, weft__line_file(config->data_path));
}

weft_status weft__dataset_summary(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    memset(l, 0, sizeof *l);
    if (weft__dataset_samples(d, WEFT__TRAIN) == 0) { /* a plan can do without the data */
        weft__line(l, "data: none was read; a vocabulary of %lld is assumed",
                   (long long)d->tokens.vocabulary);
        return WEFT_OK;
    }
    if (d->source->lines)
        d->source->lines(d, config, l);
    else if (is_image(d))
        weft__dataset_image_lines(d, config, l);
    else
        put_samples(d, config, l);
    WEFT_TRY(put_target(d, config, l));
    put_split(d, config, l);
    return WEFT_OK;
}
