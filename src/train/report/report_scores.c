/* Shows scores.json as HTML tables. Must not know: how scores are computed. Read next: scores.c, which writes
 * scores.json. */
#include <string.h>

#include "io/sealed.h"
#include "train/print.h"
#include "train/report/chart.h"
#include "train/report/report_scores.h"
#include "train/report/scores.h"

#define CLASSES_SHOWN 40

static void cell(FILE *out, const json_t *value) {
    if (json_is_integer(value))
        fprintf(out, "<td class=\"n\">%lld</td>", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "<td class=\"n\">%.4f</td>", json_real_value(value));
    else
        fprintf(out, "<td class=\"n\">-</td>");
}

static void name_cell(FILE *out, const char *tag, const json_t *class) {
    const char *name = json_string_value(json_object_get(class, "class"));
    fprintf(out, "<%s>", tag);
    if (name) weft__html_text(out, name, strlen(name));
    fprintf(out, "</%s>", tag);
}

static void class_table(FILE *out, const json_t *classes) {
    fprintf(out, "<table><tr><th>class</th>");
    for (int k = 0; k < WEFT__CLASS_SCORES; k++)
        fprintf(out, "<th class=\"n\">%s</th>", weft__class_score_rows[k].label);
    fprintf(out, "<th class=\"n\">samples</th>");
    fprintf(out, "</tr>\n");
    for (size_t i = 0; i < json_array_size(classes) && i < CLASSES_SHOWN; i++) {
        const json_t *class = json_array_get(classes, i);
        fprintf(out, "<tr>");
        name_cell(out, "td", class);
        for (int k = 0; k < WEFT__CLASS_SCORES; k++)
            cell(out, json_object_get(class, weft__class_score_rows[k].key));
        cell(out, json_object_get(class, "samples"));
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table>\n");
}

static void confusion_table(FILE *out, const json_t *classes, const json_t *confusion) {
    const size_t count = json_array_size(classes);
    if (count > CLASSES_SHOWN) {
        fprintf(out, "<p>%zu classes: scores.json has all of them%s.</p>\n", count,
                confusion ? ", and the confusion matrix" : "");
        return;
    }
    fprintf(out, "<p>Confusion matrix: rows are true classes, columns are predicted "
                 "classes.</p>\n<table><tr><th></th>");
    for (size_t i = 0; i < count; i++) name_cell(out, "th", json_array_get(classes, i));
    fprintf(out, "</tr>\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "<tr>");
        name_cell(out, "th", json_array_get(classes, i));
        for (size_t j = 0; j < count; j++) cell(out, json_array_get(json_array_get(confusion, i), j));
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table>\n");
}

static void number_card(FILE *out, const char *label, const json_t *value) {
    char text[24];
    if (!json_is_number(value)) return;
    fprintf(out, "<div class=\"card\"><b>%s</b><span>%s</span></div>\n",
            weft__short_number(json_number_value(value), text), label);
}

/* Writes the scores that are single numbers: loss, accuracy, R2 and so on. */
static void numbers(FILE *out, const json_t *scores) {
    fprintf(out, "<div class=\"cards\">\n");
    number_card(out, "samples", json_object_get(scores, "samples"));
    for (int i = 0; i < WEFT__SCORES; i++)
        number_card(out, weft__score_rows[i].label, json_object_get(scores, weft__score_rows[i].key));
    fprintf(out, "</div>\n");
}

static void section(FILE *out, const json_t *all, const char *key, const char *title) {
    const json_t *scores = json_object_get(all, key), *classes = json_object_get(scores, "classes");
    if (!json_is_object(scores)) return;
    fprintf(out, "<h2>%s</h2>\n", title);
    numbers(out, scores);
    if (!json_is_array(classes)) return;
    class_table(out, classes);
    confusion_table(out, classes, json_object_get(scores, "confusion"));
}

weft_status weft__report_scores(FILE *out, const char *dir) {
    weft__json json;
    json_t *all;
    weft_status status = weft__sealed_read(NULL, dir, "scores.json", &json, &all);
    section(out, all, "validation", "Validation data");
    section(out, all, "test", "Test data");
    weft__json_close(&json);
    if (status == WEFT_ERR_FORMAT)
        fprintf(out, "<p>scores.json is damaged or was edited: 'weft eval' computes the scores again.</p>\n");
    return status == WEFT_ERR_FORMAT || status == WEFT_ERR_STATE ? WEFT_OK : status;
}
