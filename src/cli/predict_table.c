/* The table that weft predict prints: tabs, csv or JSON lines. Must not know: how answers are computed. Read
 * next: predict.c. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/predict.h"
#include "train/report/scores.h"

weft__predict_output weft__predict_form(const char *path) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (dot && strcmp(dot, ".csv") == 0) return WEFT__PREDICT_COMMAS;
    return dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".jsonl") == 0) ? WEFT__PREDICT_JSON
                                                                            : WEFT__PREDICT_TABS;
}

static bool has_classes(const weft__predict_table *t) {
    return t->dataset->task == WEFT__TASK_CLASSIFICATION;
}

/* Returns the name of a number to predict: that of the target, or "prediction". Several are counted. */
static const char *number_name(const weft__predict_table *t, int64_t i, char out[40]) {
    if (t->dataset->outputs == 1) return t->dataset->table.target ? t->dataset->table.target : "prediction";
    snprintf(out, 40, "prediction %lld", (long long)i + 1);
    return out;
}

/* ---- lines ---- */

/* Writes a field. Names are written unchanged if the output is a file or a pipe, because programs read it
 * too. Between tabs, a tab or a line break within a name would begin another field. */
static void put_field(const weft__predict_table *t, bool first, const char *text) {
    const bool commas = t->options.form == WEFT__PREDICT_COMMAS;
    if (!first) weft__print_text(t->out, commas ? "," : "\t", 1);
    if (commas && strpbrk(text, ",\"\r\n")) {
        weft__print_text(t->out, "\"", 1);
        for (const char *at = text; *at; at++) {
            if (*at == '"') weft__print_text(t->out, "\"", 1);
            weft__print_text(t->out, at, 1);
        }
        weft__print_text(t->out, "\"", 1);
        return;
    }
    for (size_t n; !commas && text[n = strcspn(text, "\t\r\n")]; text += n + 1) {
        weft__print_text(t->out, text, n);
        weft__print_text(t->out, " ", 1);
    }
    weft__print_text(t->out, text, strlen(text));
}

static void put_number(const weft__predict_table *t, bool first, const char *form, double value) {
    char text[32];
    snprintf(text, sizeof text, form, value);
    put_field(t, first, text);
}

/* The digits that a predicted number has in front of those that the model knows: large numbers, such as
 * seconds since 1970, may differ little. */
static int digits_ahead(const weft__dataset *d, int64_t output) {
    const double ratio = d->scaling.target_mean
                             ? fabs(d->scaling.target_mean[output]) / d->scaling.target_deviation[output]
                             : 0;
    return ratio > 10 ? (int)fmin(log10(ratio), 8) : 0;
}

static weft_status end_line(const weft__predict_table *t) {
    if (weft__print_text(t->out, "\n", 1)) return WEFT_OK;
    *t->reader_left = errno == EPIPE;
    return weft__fail(NULL, WEFT_ERR_IO, "standard output: %s", strerror(errno));
}

/* Tells whether a line begins with the answer. */
static bool is_first(const weft__predict_table *t) { return !t->with_files && !t->options.id; }

weft_status weft__predict_table_begin(const weft__predict_table *t) {
    char name[40];
    if (t->options.form == WEFT__PREDICT_JSON || t->options.no_header) return WEFT_OK;
    if (t->with_files) put_field(t, true, "file");
    if (t->options.id) put_field(t, !t->with_files, t->options.id);
    if (has_classes(t)) {
        put_field(t, is_first(t), "class");
        put_field(t, false, "probability");
    }
    for (int64_t i = 0; i < t->dataset->outputs; i++) {
        if (!has_classes(t)) put_field(t, i == 0 && is_first(t), number_name(t, i, name));
        if (has_classes(t) && t->options.probabilities)
            put_field(t, false, weft__class_name(t->dataset, i, name));
    }
    return end_line(t);
}

static int64_t likeliest(const double *probabilities, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (probabilities[i] > probabilities[best]) best = i;
    return best;
}

static weft_status put_json(const weft__predict_table *t, const char *file, const char *id,
                            const double *answers) {
    const int64_t outputs = t->dataset->outputs;
    weft__json json;
    char name[40], *text;
    size_t bytes, ahead = 0;
    weft__json_build(&json, NULL);
    json_t *object = json_object(), *each = json_object();
    if (t->with_files) json_object_set_new(object, "file", json_string(file));
    if (t->options.id) json_object_set_new(object, t->options.id, json_string(id));
    if (has_classes(t)) {
        const int64_t best = likeliest(answers, outputs);
        json_object_set_new(object, "class", json_string(weft__class_name(t->dataset, best, name)));
        json_object_set_new(object, "probability", json_real(answers[best]));
    }
    for (int64_t i = 0; i < outputs; i++) {
        const size_t own = (size_t)digits_ahead(t->dataset, i);
        ahead = own > ahead ? own : ahead;
        json_object_set_new(each,
                            has_classes(t) ? weft__class_name(t->dataset, i, name) : number_name(t, i, name),
                            json_real(answers[i]));
    }
    json_object_set_new(object, has_classes(t) ? "probabilities" : "predictions", each);
    WEFT_TRY(weft__json_text(&json, object, JSON_COMPACT | JSON_REAL_PRECISION(9 + ahead), "a prediction",
                             &text, &bytes));
    weft__print_text(t->out, text, bytes);
    weft__free(NULL, text);
    return end_line(t);
}

weft_status weft__predict_table_row(const weft__predict_table *t, const char *file, const char *id,
                                    const double *answers) {
    const int64_t outputs = t->dataset->outputs, best = likeliest(answers, outputs);
    char name[40], form[16];
    if (t->options.form == WEFT__PREDICT_JSON) return put_json(t, file, id, answers);
    if (t->with_files) put_field(t, true, file);
    if (t->options.id) put_field(t, !t->with_files, id);
    if (has_classes(t)) {
        put_field(t, is_first(t), weft__class_name(t->dataset, best, name));
        put_number(t, false, "%.4f", answers[best]);
    }
    for (int64_t i = 0; i < outputs; i++) {
        snprintf(form, sizeof form, "%%.%dg", 7 + digits_ahead(t->dataset, i));
        if (!has_classes(t)) put_number(t, i == 0 && is_first(t), form, answers[i]);
        if (has_classes(t) && t->options.probabilities) put_number(t, false, "%.6g", answers[i]);
    }
    return end_line(t);
}
