/* Writes report.html: what the run was, how training went, and the results. It is one file that loads nothing
 * from elsewhere; its style and script are built in. Must not know: the loop. It only reads the run folder,
 * as anybody could. Read next: train/report/report.js. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/data.h>
#include <weft/io.h>

#include "io/publish.h"
#include "train/print.h"
#include "train/report/chart.h"
#include "train/report/page.h"
#include "train/run/history.h"
#include "train/report/report.h"
#include "train/report/report_scores.h"

#define PATH_BYTES    4096
#define SAMPLE_MAX    20000u /* bytes of a sample that are shown */
#define SAMPLES_SHOWN 3

static void card(FILE *out, const char *label, const char *value) {
    fprintf(out, "<div class=\"card\"><b>");
    weft__html_text(out, value, strlen(value));
    fprintf(out, "</b><span>%s</span></div>\n", label);
}

static void shown_card(FILE *out, const char *label, weft__notation notation, int digits, double value) {
    char text[WEFT__SHOWN_BYTES];
    if (isfinite(value)) card(out, label, weft__shown_number(notation, digits, value, text));
}

static void number_card(FILE *out, const char *label, double value) {
    shown_card(out, label, WEFT__NOTATION_SHORT, 0, value);
}

static void duration_text(double seconds, char out[32]) {
    long whole = lround(seconds);
    if (whole >= 3600)
        snprintf(out, 32, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(out, 32, "%ld min %02ld s", whole / 60, whole % 60);
    else
        snprintf(out, 32, "%.1f s", seconds);
}

static void head(FILE *out, const char *dir, const weft__summary *s, const weft__history *h) {
    char text[64];
    const char *slash = strrchr(dir, '/'), *name = slash && slash[1] ? slash + 1 : dir;
    fputs(WEFT__PAGE_BEGIN, out);
    weft__page_head(out, name);
    if (strcmp(s->status, "running") == 0)
        fprintf(out, "<body data-written=\"%lld\">\n<h1>", (long long)time(NULL));
    else
        fprintf(out, "<body>\n<h1>");
    weft__html_text(out, name, strlen(name));
    fprintf(out, "</h1>\n<p class=\"sub\">");
    weft__html_text(out, s->model, strlen(s->model));
    fprintf(out, " on ");
    weft__html_text(out, s->device, strlen(s->device));
    fprintf(out, ", trained with Weft %s: ", weft_version());
    weft__html_text(out, s->status, strlen(s->status));
    fprintf(out, "</p>\n");
    char damage[WEFT__DAMAGE_TEXT];
    if (h->damaged) fprintf(out, "<p>%s</p>\n", weft__history_damage(h, damage));
    fprintf(out, "<div class=\"cards\">\n");
    for (int i = 0; i < WEFT__RESULTS; i++) {
        const weft__result *r = &weft__result_rows[i];
        shown_card(out, r->label, r->notation, r->digits, weft__result_get(&s->results, r));
    }
    snprintf(text, sizeof text, "%llu of %llu", (unsigned long long)s->step, (unsigned long long)s->steps);
    card(out, "steps", text);
    number_card(out, "last loss", h->count > 0 ? h->lines[h->count - 1].loss : (double)NAN);
    number_card(out, "best loss", weft__history_best(h));
    number_card(out, "parameters", (double)s->parameters);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const char *label = weft__metric_word(weft__metric_rows[i]->card, s->tokens);
        if (label) number_card(out, label, weft__metric_get(&h->averages, weft__metric_rows[i]));
    }
    duration_text(s->seconds, text);
    if (isfinite(s->seconds)) card(out, "time", text);
    fprintf(out, "</div>\n");
}

static void column(const weft__history *h, const weft__metric *metric, double *values) {
    for (size_t i = 0; i < h->count; i++) values[i] = weft__metric_get(&h->lines[i], metric);
}

#define WINDOW_MOST 64 /* lines on each side */

/* Computes a running mean over a fortieth of the curve, centred, so that it does not lag behind. At the
 * beginning, where curves are steep, the window is narrower, and at the end it has one side. Returns the
 * number of lines of the full window. */
static size_t smooth(const double *in, size_t count, double *out) {
    const size_t half = count / 80 < WINDOW_MOST ? count / 80 : WINDOW_MOST;
    for (size_t i = 0; i < count; i++) {
        const size_t k = half < i ? half : i;
        double sum = 0, numbers = 0;
        for (size_t j = i - k; j <= i + k && j < count; j++) {
            if (!isfinite(in[j])) continue;
            sum += in[j];
            numbers++;
        }
        out[i] = isfinite(in[i]) ? sum / numbers : (double)NAN;
    }
    return 2 * half + 1;
}

/* Draws the charts of single metrics, part after part. `values` has room for a column. */
static void single_charts(FILE *out, const weft__history *h, const double *x, double *values) {
    static const weft__metric_part parts[] = {WEFT__PART_VALIDATION, WEFT__PART_TRAINING, WEFT__PART_CARD};
    fprintf(out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < sizeof parts / sizeof *parts * WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i % WEFT__METRICS];
        const char *title = weft__metric_word(metric->title, h->tokens);
        if (!title || metric->part != parts[i / WEFT__METRICS] || h->count == 0) continue;
        column(h, metric, values);
        weft__series one = {NULL, metric->style, x, values, h->count, false};
        weft__chart(out, title, x[h->count - 1], &one, 1);
    }
    fprintf(out, "</div>\n");
}

static weft_status charts(FILE *out, const weft__history *h) {
    double *x = weft__array(NULL, 4 * h->count + 1, sizeof *x);
    char mean[64];
    if (!x) return weft__fail_oom(NULL, 4 * h->count * sizeof *x, "the report's curves");
    double *a = x + h->count, *b = a + h->count, *c = b + h->count;
    for (size_t i = 0; i < h->count; i++) {
        x[i] = (double)h->lines[i].step;
        a[i] = h->lines[i].loss;
        c[i] = h->lines[i].val_loss;
    }
    const size_t window = smooth(a, h->count, b);
    snprintf(mean, sizeof mean, "training, mean of %zu lines of the log", window);
    const weft__series loss[] = {{"training", "raw", x, a, h->count, false},
                                 {window > 1 ? mean : "training", "a", x, b, h->count, false},
                                 {"validation", "b", x, c, h->count, true}};
    const size_t first = window == 1; /* a mean of one line is the line itself */
    if (h->count > 0) weft__chart(out, "Loss", x[h->count - 1], loss + first, 3 - first);
    single_charts(out, h, x, a);
    weft__free(NULL, x);
    return WEFT_OK;
}

static void shares(FILE *out, const weft__shares *s) {
    double percent[WEFT__SHARES];
    weft__shares_percent(s, percent);
    fprintf(out, "<div class=\"wide\"><table>\n");
    for (size_t i = 0; i < s->count; i++) {
        if (!(s->item[i].seconds > 0)) continue;
        fprintf(out, "<tr><td>");
        weft__html_text(out, s->item[i].name, strlen(s->item[i].name));
        fprintf(out,
                "</td><td class=\"n\">%.3f s</td><td class=\"n\">%.1f %%</td><td class=\"share\"><div "
                "class=\"bar\" style=\"width:%.1f%%\"></div></td></tr>\n",
                s->item[i].seconds, percent[i], percent[i]);
    }
    fprintf(out, "</table></div>\n");
}

static void times(FILE *out, const weft__summary *s) {
    if (weft__shares_total(&s->parts) > 0) {
        fprintf(out, "<h2>Where the time went</h2>\n");
        shares(out, &s->parts);
        double faster = weft__shares_without(&s->parts, "matmul");
        if (faster > 0)
            fprintf(out, "<p>If matmul took no time, this run would be %.2f times faster.</p>\n", faster);
    }
    if (!(weft__shares_total(&s->phases) > 0)) return;
    fprintf(out, "<h2>The same time, by phase</h2>\n");
    shares(out, &s->phases);
}

/* Writes the last error into the report if a file cannot be read. Only "out of memory" ends the report. */
static weft_status missing(FILE *out, weft_status status) {
    const char *why = weft_last_error(NULL);
    if (status == WEFT_OK || status == WEFT_ERR_OOM) return status;
    fprintf(out, "<p class=\"missing\">");
    weft__html_text(out, why, strlen(why));
    fprintf(out, "</p>\n");
    return WEFT_OK;
}

static weft_status read_part(FILE *out, const char *path, size_t most, weft_bytes *bytes) {
    *bytes = (weft_bytes){0};
    return missing(out, weft_read_file(NULL, path, most, bytes));
}

static weft_status file_section(FILE *out, const char *dir, const char *name, const char *title) {
    char path[PATH_BYTES];
    weft_bytes bytes;
    if (!weft__join(path, sizeof path, dir, name)) return WEFT_OK;
    WEFT_TRY(read_part(out, path, 1u << 20, &bytes));
    fprintf(out, "<details><summary>%s</summary><pre>", title);
    weft__html_text(out, (const char *)bytes.data, bytes.size);
    fprintf(out, "</pre></details>\n");
    weft_bytes_free(NULL, &bytes);
    return WEFT_OK;
}

/* Adds the newest samples, newest first. */
static weft_status samples(FILE *out, const char *dir) {
    char folder[PATH_BYTES], path[PATH_BYTES], name[64];
    unsigned long long steps[SAMPLES_SHOWN] = {0};
    size_t count = 0;
    if (!weft__join(folder, sizeof folder, dir, "samples")) return WEFT_OK;
    DIR *listing = weft__opendir(folder);
    if (!listing) return errno == ENOENT ? WEFT_OK : missing(out, weft__fail_io(NULL, "list", folder, errno));
    int error = 0;
    for (const struct dirent *entry; (entry = weft__next_entry(listing, &error));) {
        if (strncmp(entry->d_name, "step-", 5) != 0) continue;
        unsigned long long step = strtoull(entry->d_name + 5, NULL, 10);
        size_t at = count < SAMPLES_SHOWN ? count++ : SAMPLES_SHOWN - 1;
        if (at == SAMPLES_SHOWN - 1 && count == SAMPLES_SHOWN && steps[at] > step) continue;
        for (; at > 0 && steps[at - 1] < step; at--) steps[at] = steps[at - 1];
        steps[at] = step;
    }
    closedir(listing);
    if (error) WEFT_TRY(missing(out, weft__fail_io(NULL, "list", folder, error)));
    for (size_t i = 0; i < count; i++) {
        weft_bytes bytes;
        snprintf(name, sizeof name, "step-%llu.txt", steps[i]);
        if (!weft__join(path, sizeof path, folder, name)) continue;
        WEFT_TRY(read_part(out, path, 1u << 24, &bytes));
        fprintf(out, "<h2>Sample after step %llu</h2><pre>", steps[i]);
        weft__html_text(out, (const char *)bytes.data, bytes.size < SAMPLE_MAX ? bytes.size : SAMPLE_MAX);
        fprintf(out, "</pre>\n");
        weft_bytes_free(NULL, &bytes);
    }
    return WEFT_OK;
}

static weft_status put_report(FILE *out, const char *dir, const weft__summary *summary,
                              const weft__history *history) {
    head(out, dir, summary, history);
    WEFT_TRY(charts(out, history));
    WEFT_TRY(weft__report_scores(out, dir));
    WEFT_TRY(weft__report_pictures(out, dir));
    times(out, summary);
    WEFT_TRY(weft__report_processes(out, dir));
    WEFT_TRY(samples(out, dir));
    WEFT_TRY(file_section(out, dir, "config.yaml", "Configuration, and where each value came from"));
    WEFT_TRY(file_section(out, dir, "env.json", "Machine and versions"));
    weft__page_end(out);
    return WEFT_OK;
}

typedef struct report_parts {
    const char *dir;
    weft__summary summary;
    weft__history history;
} report_parts;

static weft_status put_parts(FILE *out, void *user) {
    const report_parts *parts = user;
    return put_report(out, parts->dir, &parts->summary, &parts->history);
}

weft_status weft__report_write(const char *dir) {
    report_parts parts = {.dir = dir};
    char path[PATH_BYTES];
    if (!weft__join(path, sizeof path, dir, "report.html"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", dir);
    WEFT_TRY(weft__history_read(dir, &parts.history));
    weft_status status = weft__summary_read(dir, &parts.summary);
    if (status == WEFT_OK) status = weft__page_write(path, put_parts, &parts);
    weft__history_free(&parts.history);
    return status;
}
