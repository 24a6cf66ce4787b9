/* Writes report.html: what the run was, how training went, and the results. It is one file without scripts
 * and without network access. Must not know: the loop. It only reads the run folder, as anybody could. Read
 * next: train/run/progress.c. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static const char style[] =
    ":root{color-scheme:light "
    "dark;--bg:#fbfaf8;--fg:#22252a;--dim:#6b7280;--line:#e3e0da;--card:#fff;--a:#2563c4;"
    "--b:#d1560f;--c:#178a5c}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171b;--fg:#e6e4df;--dim:#9aa1ab;--line:#2d3138;--card:#"
    "1c1f24;"
    "--a:#6ea8fe;--b:#f59e5b;--c:#4cc38a}}\n"
    "body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--bg);color:var(--fg);font:16px/1.5 "
    "system-ui,sans-serif}\n"
    "h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .6rem}.sub{color:var(--dim);margin:.2rem "
    "0 1.4rem}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.8rem}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.7rem .9rem}\n"
    ".card b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}.card span{color:var(--dim);"
    "font-size:.85rem}\n"
    "figure{margin:1rem 0;background:var(--card);border:1px solid "
    "var(--line);border-radius:.6rem;padding:.8rem}\n"
    "figcaption{font-weight:600}.key{font-weight:400;font-size:.85rem;margin-left:.9rem}.key:before{content:'"
    "';"
    "display:inline-block;width:.9rem;height:.2rem;margin-right:.35rem;vertical-align:middle;background:"
    "currentColor}\n"
    "svg{width:100%;height:auto}svg text{fill:var(--dim);font-size:12px}.grid{stroke:var(--line)}\n"
    ".line{fill:none;stroke-width:1.8;stroke-linejoin:round}.line.raw{stroke:var(--a);opacity:.28;stroke-"
    "width:1}\n"
    ".line.a{stroke:var(--a)}.line.b{stroke:var(--b)}.line.c{stroke:var(--c)}.dot.b{fill:var(--b)}.dot.c{"
    "fill:var(--c)}"
    ".dot.a{fill:var(--a)}.key.a{color:var(--a)}.key.b{color:var(--b)}.key.c{color:var(--c)}\n"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px "
    "solid "
    "var(--line);font-variant-numeric:tabular-nums}td.n,th.n{text-align:right}\n"
    ".bar{background:var(--a);height:.6rem;border-radius:.3rem;min-width:1px}\n"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.9rem;overflow:auto;"
    "font-size:.85rem;white-space:pre-wrap}summary{cursor:pointer;font-weight:600}\n";

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

/* The accuracy of the last evaluation; NaN if there was none. */
static double last_accuracy(const weft__history *h) {
    for (size_t i = h->count; i-- > 0;)
        if (isfinite(h->lines[i].val_accuracy)) return h->lines[i].val_accuracy;
    return (double)NAN;
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
    fprintf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    weft__html_text(out, name, strlen(name));
    fprintf(out, "</title>\n<style>%s</style></head><body>\n<h1>", style);
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
    shown_card(out, "validation accuracy", WEFT__NOTATION_PERCENT, 2, last_accuracy(h));
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

/* Computes a running mean over about a fortieth of the curve. With few lines the window is short, so the mean
 * does not lag behind. */
static void smooth(const double *in, size_t count, double *out) {
    double weight = fmin(1, fmax(0.05, 40 / (double)(count + 1))), mean = (double)NAN;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(in[i])) mean = isfinite(mean) ? mean + weight * (in[i] - mean) : in[i];
        out[i] = isfinite(in[i]) ? mean : (double)NAN;
    }
}

/* Draws the charts of single metrics, part after part. `values` has room for a column. */
static void single_charts(FILE *out, const weft__history *h, const double *x, double *values) {
    static const weft__metric_part parts[] = {WEFT__PART_VALIDATION, WEFT__PART_TRAINING, WEFT__PART_CARD};
    for (size_t i = 0; i < sizeof parts / sizeof *parts * WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i % WEFT__METRICS];
        const char *title = weft__metric_word(metric->title, h->tokens);
        if (!title || metric->part != parts[i / WEFT__METRICS]) continue;
        column(h, metric, values);
        weft__series one = {NULL, metric->style, x, values, h->count, false};
        weft__chart(out, title, "step", &one, 1);
    }
}

static weft_status charts(FILE *out, const weft__history *h) {
    double *x = weft__array(NULL, 4 * h->count + 1, sizeof *x);
    if (!x) return weft__fail_oom(NULL, 4 * h->count * sizeof *x, "the report's curves");
    double *a = x + h->count, *b = a + h->count, *c = b + h->count;
    for (size_t i = 0; i < h->count; i++) {
        x[i] = (double)h->lines[i].step;
        a[i] = h->lines[i].loss;
        c[i] = h->lines[i].val_loss;
    }
    smooth(a, h->count, b);
    weft__series loss[] = {{NULL, "raw", x, a, h->count, false},
                           {"training", "a", x, b, h->count, false},
                           {"validation", "b", x, c, h->count, true}};
    weft__chart(out, "Loss", "step", loss, 3);
    single_charts(out, h, x, a);
    weft__free(NULL, x);
    return WEFT_OK;
}

static void shares(FILE *out, const weft__shares *s) {
    double percent[WEFT__SHARES];
    weft__shares_percent(s, percent);
    fprintf(out, "<table>\n");
    for (size_t i = 0; i < s->count; i++) {
        if (!(s->item[i].seconds > 0)) continue;
        fprintf(out, "<tr><td>");
        weft__html_text(out, s->item[i].name, strlen(s->item[i].name));
        fprintf(out,
                "</td><td class=\"n\">%.3f s</td><td class=\"n\">%.1f %%</td><td style=\"width:50%%\"><div "
                "class=\"bar\" style=\"width:%.1f%%\"></div></td></tr>\n",
                s->item[i].seconds, percent[i], percent[i]);
    }
    fprintf(out, "</table>\n");
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
    fprintf(out, "<h2></h2><details><summary>%s</summary><pre>", title);
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
    times(out, summary);
    WEFT_TRY(samples(out, dir));
    WEFT_TRY(file_section(out, dir, "config.yaml", "Configuration, and where each value came from"));
    WEFT_TRY(file_section(out, dir, "env.json", "Machine and versions"));
    fprintf(out, "</body></html>\n");
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
