/* Line charts over steps as inline SVG. Must not know: runs, files. Read next: chart.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_CHART_H
#define WEFT_SRC_TRAIN_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct weft__series {
    const char *name;  /* name in the legend; NULL: no entry */
    const char *style; /* CSS class of the line: a, b, c, raw, or s0 to s23 */
    const double *x, *y;
    size_t count; /* number of points; points whose y is not finite are skipped */
    bool dots;    /* marks each point, for curves with few points */
} weft__series;

/* Writes a <figure> with a chart of the series over the steps 0 to x_high. Writes nothing if there is no
 * point. */
void weft__chart(FILE *out, const char *title, double x_high, const weft__series *series, size_t count);

/* Writes a <figure> with points at any x, `label` below them. Writes nothing if there is no point. */
void weft__points(FILE *out, const char *title, const char *label, const double *x, const double *y,
                  size_t count);

/* Writes text with the special characters of HTML replaced. */
void weft__html_text(FILE *out, const char *text, size_t bytes);

#endif
