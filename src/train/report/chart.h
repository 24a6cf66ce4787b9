/* Line charts as inline SVG. Must not know: runs, files. Read next: chart.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_CHART_H
#define WEFT_SRC_TRAIN_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct weft__series {
    const char *name;  /* in the legend; NULL: not listed */
    const char *style; /* CSS class of the line: a, b, c, or raw */
    const double *x, *y;
    size_t count; /* points; those that are not finite are left out */
    bool dots;    /* marks each point, for curves of few points */
} weft__series;

/* Writes one <figure> with a chart of the series over a common x axis; nothing when there is no point. */
void weft__chart(FILE *out, const char *title, const char *x_label, const weft__series *series, size_t count);

/* Writes text with the characters that HTML gives a meaning replaced. */
void weft__html_text(FILE *out, const char *text, size_t bytes);

/* "1.2M", "350k", "0.001": short numbers for people. Returns out. */
const char *weft__short_number(double value, char out[24]);

#endif
