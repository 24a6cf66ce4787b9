/* Draws the curves of several runs over each other. Must not know: run folders, configurations. Read next:
 * chart.c. */
#include <math.h>
#include <string.h>

#include "train/report/chart.h"
#include "train/report/overlay.h"
#include "train/report/page.h"

enum { COLOURS = 8 };

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfaf8;--fg:#22252a;--dim:#6b7280;--edge:#e3e0da;--card:#fff;"
    "--s0:#2563c4;--s1:#d1560f;--s2:#178a5c;--s3:#8b3fc4;--s4:#a87c00;--s5:#c2255c;--s6:#0b8aa0;--s7:#6b7280}"
    "\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171b;--fg:#e6e4df;--dim:#9aa1ab;--edge:#2d3138;"
    "--card:#1c1f24;--s0:#6ea8fe;--s1:#f59e5b;--s2:#4cc38a;--s3:#c79bf2;--s4:#e3c04b;--s5:#f783ac;--s6:#"
    "5cc8dc;"
    "--s7:#aab1bb}}\n"
    "body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--bg);color:var(--fg);"
    "font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem}\n"
    "figure{margin:1rem 0;background:var(--card);border:1px solid "
    "var(--edge);border-radius:.6rem;padding:.8rem}\n"
    "figcaption{font-weight:600}.key{font-weight:400;font-size:.85rem;margin-left:.9rem;display:inline-block}"
    ".key:before{content:'';display:inline-block;width:.9rem;height:.2rem;margin-right:.35rem;"
    "vertical-align:middle;background:currentColor}\n"
    "svg{width:100%;height:auto}svg text{fill:var(--dim);font-size:12px}.grid{stroke:var(--edge)}\n"
    ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}.dot{fill:currentColor}\n"
    ".line.points{stroke:none}.line.dashed{stroke-dasharray:6 3}.line.dotted{stroke-dasharray:2 3}\n"
    ".s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}.s4{color:var(--s4)}"
    ".s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}\n";

/* The classes of a curve: a colour, then the same colours dashed, then dotted. */
static const char *const styles[3 * COLOURS] = {
    "s0",        "s1",        "s2",        "s3",        "s4",        "s5",        "s6",        "s7",
    "s0 dashed", "s1 dashed", "s2 dashed", "s3 dashed", "s4 dashed", "s5 dashed", "s6 dashed", "s7 dashed",
    "s0 dotted", "s1 dotted", "s2 dotted", "s3 dotted", "s4 dotted", "s5 dotted", "s6 dotted", "s7 dotted"};

typedef struct overlay {
    const char *title;
    const weft__overlaid *runs;
    size_t count;
    const weft__scatter *scatters;
    size_t scatter_count;
    weft__series *series; /* [count] */
    double *x, *y;        /* [lines of all runs] */
} overlay;

/* Draws one metric of all runs. Evaluations are few, so each gets a dot. */
static void metric_chart(FILE *out, const overlay *o, const weft__metric *metric, const char *title,
                         bool dots) {
    size_t used = 0;
    for (size_t r = 0; r < o->count; r++) {
        const weft__history *h = o->runs[r].history;
        const size_t first = used;
        for (size_t i = 0; i < h->count; i++) {
            const double value = weft__metric_get(&h->lines[i], metric);
            if (!isfinite(value)) continue;
            o->x[used] = (double)h->lines[i].step;
            o->y[used++] = value;
        }
        o->series[r] = (weft__series){
            o->runs[r].name, styles[r % (3 * COLOURS)], o->x + first, o->y + first, used - first, dots};
    }
    weft__chart(out, title, "step", o->series, o->count);
}

static weft_status put_overlay(FILE *out, void *user) {
    const overlay *o = user;
    fprintf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    weft__html_text(out, o->title, strlen(o->title));
    fprintf(out, "</title>\n<style>%s</style></head><body>\n<h1>", style);
    weft__html_text(out, o->title, strlen(o->title));
    fprintf(out, "</h1>\n");
    for (size_t i = 0; i < o->scatter_count; i++) {
        const weft__scatter *s = &o->scatters[i];
        const weft__series points = {NULL, "s0 points", s->x, s->y, s->count, true};
        weft__chart(out, s->title, s->x_label, &points, 1);
    }
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        const char *title = weft__metric_word(metric->title, false);
        if (strcmp(metric->name[0], "val_loss") == 0) title = "Validation loss";
        if (metric->part == WEFT__PART_VALIDATION && title) metric_chart(out, o, metric, title, true);
    }
    for (int i = 0; i < WEFT__METRICS; i++)
        if (strcmp(weft__metric_rows[i]->name[0], "loss") == 0)
            metric_chart(out, o, weft__metric_rows[i], "Training loss", false);
    fprintf(out, "</body></html>\n");
    return WEFT_OK;
}

weft_status weft__overlay_write(const char *path, const char *title, const weft__overlaid *runs, size_t count,
                                const weft__scatter *scatters, size_t scatter_count) {
    size_t lines = 1;
    for (size_t r = 0; r < count; r++) lines += runs[r].history->count;
    overlay o = {title, runs, count, scatters, scatter_count, NULL, NULL, NULL};
    o.series = weft__array(NULL, count + 1, sizeof *o.series);
    o.x = weft__array(NULL, lines, 2 * sizeof *o.x);
    o.y = o.x ? o.x + lines : NULL;
    const weft_status status = o.series && o.x
                                   ? weft__page_write(path, put_overlay, &o)
                                   : weft__fail_oom(NULL, 2 * lines * sizeof *o.x, "the curves of the runs");
    weft__free(NULL, o.series);
    weft__free(NULL, o.x);
    return status;
}
