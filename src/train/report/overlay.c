/* Draws the curves of several runs over each other. Must not know: run folders, configurations. Read next:
 * chart.c. */
#include <math.h>
#include <string.h>

#include "train/report/chart.h"
#include "train/report/overlay.h"
#include "train/report/page.h"

enum { STYLES = 24 };

/* The classes of a curve in report.css: eight colours, then the same colours dashed, then dotted. */
static const char *const styles[STYLES] = {"s0",  "s1",  "s2",  "s3",  "s4",  "s5",  "s6",  "s7",
                                           "s8",  "s9",  "s10", "s11", "s12", "s13", "s14", "s15",
                                           "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23"};

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
    double last = 0;
    for (size_t r = 0; r < o->count; r++) {
        const weft__history *h = o->runs[r].history;
        const size_t first = used;
        for (size_t i = 0; i < h->count; i++) {
            const double value = weft__metric_get(&h->lines[i], metric);
            if (!isfinite(value)) continue;
            o->x[used] = (double)h->lines[i].step;
            last = fmax(last, o->x[used]);
            o->y[used++] = value;
        }
        o->series[r] = (weft__series){o->runs[r].name, styles[r % STYLES], o->x + first,
                                      o->y + first,    used - first,       dots};
    }
    weft__chart(out, title, last, o->series, o->count);
}

static weft_status put_overlay(FILE *out, void *user) {
    const overlay *o = user;
    fputs(o->scatters ? WEFT__PAGE_BEGIN : WEFT__PAGE_BY("compare"), out); /* scatters are of a sweep */
    weft__page_head(out, o->title);
    fprintf(out, "<body>\n<h1>");
    weft__html_text(out, o->title, strlen(o->title));
    fprintf(out, "</h1>\n");
    for (size_t i = 0; i < o->scatter_count; i++) {
        const weft__scatter *s = &o->scatters[i];
        weft__points(out, s->title, s->x_label, s->x, s->y, s->count);
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
    weft__page_end(out);
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
