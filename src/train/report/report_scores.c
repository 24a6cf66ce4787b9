/* Shows scores.json as HTML tables, and pictures.json. Must not know: how scores are computed. Read next:
 * scores.c and pictures.c, which make these files. */
#include <string.h>

#include "io/sealed.h"
#include "train/print.h"
#include "train/report/chart.h"
#include "train/report/report_scores.h"
#include "train/report/scores.h"

enum { CLASSES_SHOWN = 40, CONFUSIONS_SHOWN = 20 };

static void cell(FILE *out, const json_t *value) {
    if (json_is_integer(value))
        fprintf(out, "<td class=\"n\">%lld</td>", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "<td class=\"n\">%.4f</td>", json_real_value(value));
    else
        fprintf(out, "<td class=\"n\">-</td>");
}

void weft__report_text(FILE *out, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (text) weft__html_text(out, text, strlen(text));
}

static void name_cell(FILE *out, const char *tag, const json_t *class) {
    fprintf(out, "<%s><div class=\"name\">", tag);
    weft__report_text(out, class, "class");
    fprintf(out, "</div></%s>", tag);
}

static void class_table(FILE *out, const json_t *classes) {
    const size_t count = json_array_size(classes);
    if (count > CLASSES_SHOWN)
        fprintf(out, "<p>The first %d of %zu classes: scores.json has all of them.</p>\n", CLASSES_SHOWN,
                count);
    fprintf(out, "<div class=\"wide\"><table><tr><th>class</th>");
    for (int k = 0; k < WEFT__CLASS_SCORES; k++)
        fprintf(out, "<th class=\"n\">%s</th>", weft__class_score_rows[k].label);
    fprintf(out, "<th class=\"n\">samples</th>");
    fprintf(out, "</tr>\n");
    for (size_t i = 0; i < count && i < CLASSES_SHOWN; i++) {
        const json_t *class = json_array_get(classes, i);
        fprintf(out, "<tr>");
        name_cell(out, "td", class);
        for (int k = 0; k < WEFT__CLASS_SCORES; k++)
            cell(out, json_object_get(class, weft__class_score_rows[k].key));
        cell(out, json_object_get(class, "samples"));
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table></div>\n");
}

/* ---- confusion ---- */

static long long confused(const json_t *confusion, size_t row, size_t column) {
    return json_integer_value(json_array_get(json_array_get(confusion, row), column));
}

/* Writes a row of the confusion matrix. The colour of a cell is its share of the samples of the true class.
 */
static void confusion_row(FILE *out, const json_t *confusion, size_t row, size_t count) {
    long long samples = 0;
    for (size_t j = 0; j < count; j++) samples += confused(confusion, row, j);
    for (size_t j = 0; j < count; j++) {
        const long long here = confused(confusion, row, j);
        fprintf(out, "<td class=\"n %s\" style=\"--share:%.2f\">%lld</td>", row == j ? "right" : "wrong",
                samples > 0 ? (double)here / (double)samples : 0, here);
    }
}

static void confusion_table(FILE *out, const json_t *classes, const json_t *confusion) {
    const size_t count = json_array_size(classes);
    fprintf(out,
            "<p>Confusion matrix: rows are true classes, columns are predicted classes. The colour is the "
            "share of the true class.</p>\n<div class=\"wide\"><table class=\"confusion\"><tr><th></th>");
    for (size_t i = 0; i < count; i++) name_cell(out, "th", json_array_get(classes, i));
    fprintf(out, "</tr>\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "<tr>");
        name_cell(out, "th", json_array_get(classes, i));
        confusion_row(out, confusion, i, count);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table></div>\n");
}

/* Lists the most frequent confusions, where the matrix would be too large to look at. */
static void confusion_list(FILE *out, const json_t *classes, const json_t *confusion) {
    struct {
        size_t row, column;
        long long samples;
    } most[CONFUSIONS_SHOWN + 1]; /* the last one falls out */
    const size_t count = json_array_size(classes);
    size_t listed = 0;
    for (size_t i = 0; i < count * count; i++) {
        const long long samples = confused(confusion, i / count, i % count);
        if (i / count == i % count || samples == 0) continue;
        size_t at = listed;
        for (; at > 0 && most[at - 1].samples < samples; at--) most[at] = most[at - 1];
        most[at].row = i / count;
        most[at].column = i % count;
        most[at].samples = samples;
        if (listed < CONFUSIONS_SHOWN) listed++;
    }
    fprintf(out,
            "<p>The most frequent mistakes: scores.json has the confusion matrix.</p>\n<div class=\"wide\">"
            "<table><tr><th>true class</th><th>predicted class</th><th class=\"n\">samples</th></tr>\n");
    for (size_t i = 0; i < listed; i++) {
        fprintf(out, "<tr>");
        name_cell(out, "td", json_array_get(classes, most[i].row));
        name_cell(out, "td", json_array_get(classes, most[i].column));
        fprintf(out, "<td class=\"n\">%lld</td></tr>\n", most[i].samples);
    }
    fprintf(out, "</table></div>\n");
}

/* ---- pictures ---- */

static void image(FILE *out, const char *png) {
    fprintf(out, "<img alt=\"\" src=\"data:image/png;base64,");
    if (png) weft__html_text(out, png, strlen(png));
    fprintf(out, "\">");
}

static void mistakes(FILE *out, const json_t *list) {
    if (json_array_size(list) == 0) return;
    fprintf(out, "<h2>Worst mistakes</h2>\n<p>The wrong classes with the highest probability.</p>\n"
                 "<div class=\"pictures\">\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *m = json_array_get(list, i);
        fprintf(out, "<figure class=\"picture\">");
        image(out, json_string_value(json_object_get(m, "png")));
        fprintf(out, "<figcaption><span>is ");
        weft__report_text(out, m, "class");
        fprintf(out, "</span> <span>predicted: ");
        weft__report_text(out, m, "predicted");
        fprintf(out, "</span> <span>%.2f %%</span></figcaption></figure>\n",
                json_number_value(json_object_get(m, "probability")) * 100);
    }
    fprintf(out, "</div>\n");
}

static void examples(FILE *out, const json_t *list) {
    if (json_array_size(list) == 0) return;
    fprintf(out, "<h2>Examples of the training data</h2>\n<div class=\"pictures\">\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *class = json_array_get(list, i), *pngs = json_object_get(class, "pngs");
        fprintf(out, "<figure class=\"picture examples\">");
        for (size_t j = 0; j < json_array_size(pngs); j++)
            image(out, json_string_value(json_array_get(pngs, j)));
        fprintf(out, "<figcaption>");
        weft__report_text(out, class, "class");
        fprintf(out, "</figcaption></figure>\n");
    }
    fprintf(out, "</div>\n");
}

/* ---- sections ---- */

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
    const json_t *confusion = json_object_get(scores, "confusion");
    if (!confusion) return;
    if (json_array_size(classes) <= CLASSES_SHOWN)
        confusion_table(out, classes, confusion);
    else
        confusion_list(out, classes, confusion);
}

/* Shows a sealed file of the run. A damaged one is named in the report. */
weft_status weft__report_json(FILE *out, const char *dir, const char *name, void put(FILE *, const json_t *),
                              const char *remedy) {
    weft__json json;
    json_t *all;
    const weft_status status = weft__sealed_read(NULL, dir, name, &json, &all);
    put(out, all);
    weft__json_close(&json);
    if (status == WEFT_ERR_FORMAT) fprintf(out, "<p>%s is damaged or was edited%s.</p>\n", name, remedy);
    return status == WEFT_ERR_FORMAT || status == WEFT_ERR_STATE ? WEFT_OK : status;
}

static void sections(FILE *out, const json_t *all) {
    section(out, all, "validation", "Validation data");
    section(out, all, "test", "Test data");
}

static void pictures(FILE *out, const json_t *all) {
    mistakes(out, json_object_get(all, "mistakes"));
    examples(out, json_object_get(all, "examples"));
}

weft_status weft__report_scores(FILE *out, const char *dir) {
    return weft__report_json(out, dir, "scores.json", sections, ": 'weft eval' computes the scores again");
}

weft_status weft__report_pictures(FILE *out, const char *dir) {
    return weft__report_json(out, dir, "pictures.json", pictures, ": its pictures are not shown");
}
