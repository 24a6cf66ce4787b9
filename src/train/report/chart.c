/* Writes line charts as inline SVG, whose coordinates are the numbers themselves. report.js adds round axes,
 * values and zoom; without it a chart shows its curves and their limits. Must not know: runs, files. Read
 * next: report.js. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "train/print.h"
#include "train/report/chart.h"

#define COLUMNS 600 /* a longer curve is reduced to this number of points: a screen shows no more */

void weft__html_text(FILE *out, const char *text, size_t bytes) {
    size_t taken;
    for (; bytes > 0; text += taken, bytes -= taken) {
        char piece[WEFT__ESCAPE];
        const size_t n = weft__printable_next(text, bytes, "\n\t", piece, &taken);
        if (*piece == '<')
            fputs("&lt;", out);
        else if (*piece == '>')
            fputs("&gt;", out);
        else if (*piece == '&')
            fputs("&amp;", out);
        else if (*piece == '"')
            fputs("&quot;", out);
        else
            fwrite(piece, 1, n, out);
    }
}

typedef struct range {
    double low, high;
} range;

/* Tells whether there is a point, and the limits of y. Limits of equal numbers are put around them, but not
 * beyond 0 and 1, which end most measures. */
static bool limits(const weft__series *series, size_t count, range *y) {
    *y = (range){INFINITY, -INFINITY};
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < series[s].count; i++) {
            if (!isfinite(series[s].y[i])) continue;
            y->low = fmin(y->low, series[s].y[i]);
            y->high = fmax(y->high, series[s].y[i]);
        }
    if (!(y->low <= y->high)) return false;
    if (y->low < y->high) return true;
    const double at = y->low, margin = at != 0 ? fabs(at) * 0.1 : 1;
    y->low = at >= 0 ? fmax(at - margin, 0) : at - margin;
    y->high = at > 0 && at <= 1 ? fmin(at + margin, 1) : at + margin;
    return true;
}

/* Returns the number of points that are drawn, or that are reduced to COLUMNS points. */
static size_t points(const weft__series *series) {
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) count += isfinite(series->y[i]) != 0;
    return count;
}

static bool reduced(const weft__series *series) { return points(series) > 2 * COLUMNS; }

/* Writes a point of a path. The first one is written twice, which draws a dot if no other follows. */
static void point(FILE *out, bool first, double x, double y) {
    if (first) fprintf(out, "M%.10g %.6g", x, y);
    fprintf(out, "L%.10g %.6g", x, y);
}

/* Draws one series. If it has many points, each column shows the mean of its points. */
static void line(FILE *out, const weft__series *series, double x_high) {
    const bool thin = reduced(series);
    double sum_x = 0, sum_y = 0, in_column = 0, column = -1;
    bool first = true;
    fprintf(out, "<path class=\"line %s\" d=\"", series->style);
    for (size_t i = 0; i <= series->count; i++) {
        const bool last = i == series->count;
        if (!last && !isfinite(series->y[i])) continue;
        const double next = last   ? -2
                            : thin ? fmin(floor(series->x[i] / x_high * COLUMNS), COLUMNS - 1)
                                   : (double)i;
        if (next != column && in_column > 0) {
            point(out, first, sum_x / in_column, sum_y / in_column);
            first = false;
            sum_x = sum_y = in_column = 0;
        }
        if (last) break;
        column = next;
        sum_x += series->x[i];
        sum_y += series->y[i];
        in_column++;
    }
    fprintf(out, "\"/>\n");
    if (!series->dots || thin) return;
    fprintf(out, "<path class=\"dot %s\" d=\"", series->style);
    for (size_t i = 0; i < series->count; i++)
        if (isfinite(series->y[i])) fprintf(out, "M%.10g %.6gh0", series->x[i], series->y[i]);
    fprintf(out, "\"/>\n");
}

static void caption(FILE *out, const char *title, const weft__series *series, size_t count) {
    fprintf(out, "<figcaption>");
    weft__html_text(out, title, strlen(title));
    for (size_t s = 0; s < count; s++) {
        if (!series[s].name || points(&series[s]) == 0) continue;
        fprintf(out, " <span class=\"key %s\">", series[s].style);
        weft__html_text(out, series[s].name, strlen(series[s].name));
        fprintf(out, "</span>");
    }
    if (reduced(series))
        fprintf(out, " <span class=\"note\">each point is the mean of about %zu</span>",
                (points(series) + COLUMNS / 2) / COLUMNS);
    fprintf(out, "</figcaption>\n");
}

/* Writes the begin of a figure, with the limits of y. */
static void open_plot(FILE *out, const char *style, const char *title, const weft__series *series,
                      size_t count, range y) {
    char text[24];
    fprintf(out, "<figure%s>", style);
    caption(out, title, series, count);
    fprintf(out, "<div class=\"plot\">\n<div class=\"y\"><span style=\"top:0\">%s</span>",
            weft__short_number(y.high, text));
    fprintf(out, "<span style=\"top:100%%\">%s</span></div>\n", weft__short_number(y.low, text));
}

void weft__chart(FILE *out, const char *title, double x_high, const weft__series *series, size_t count) {
    range y;
    char text[24];
    if (!limits(series, count, &y)) return;
    if (!(x_high > 0)) x_high = 1;
    open_plot(out, " class=\"chart\"", title, series, count, y);
    fprintf(out, "<svg viewBox=\"0 %.9g %.10g %.9g\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
            -y.high, x_high, y.high - y.low);
    weft__html_text(out, title, strlen(title));
    fprintf(out, "\"><g transform=\"scale(1 -1)\">\n");
    for (size_t s = 0; s < count; s++)
        if (points(&series[s]) > 0) line(out, &series[s], x_high);
    fprintf(out, "</g></svg>\n<div class=\"x\"><span style=\"left:0\">0</span>");
    fprintf(out, "<span style=\"left:100%%\">%s</span></div></div></figure>\n",
            weft__short_number(x_high, text));
}

void weft__points(FILE *out, const char *title, const char *label, const double *x, const double *y,
                  size_t count) {
    const weft__series all = {NULL, "s0", x, y, count, true};
    range across = {INFINITY, -INFINITY}, up;
    char text[24];
    if (!limits(&all, 1, &up)) return;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(y[i])) continue;
        across.low = fmin(across.low, x[i]);
        across.high = fmax(across.high, x[i]);
    }
    if (!(across.low < across.high)) across = (range){across.low - 0.5, across.low + 0.5};
    open_plot(out, "", title, &all, 1, up);
    fprintf(out, "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    weft__html_text(out, title, strlen(title));
    fprintf(out, "\"><path class=\"dot s0\" d=\"");
    for (size_t i = 0; i < count; i++)
        if (isfinite(y[i]))
            fprintf(out, "M%.6g %.6gh0", 1000 * (x[i] - across.low) / (across.high - across.low),
                    1000 * (up.high - y[i]) / (up.high - up.low));
    fprintf(out, "\"/></svg>\n<div class=\"x of\" data-label=\"");
    weft__html_text(out, label, strlen(label));
    fprintf(out, "\"><span style=\"left:0\">%s</span>", weft__short_number(across.low, text));
    fprintf(out, "<span class=\"end\" style=\"left:100%%\">%s</span></div></div></figure>\n",
            weft__short_number(across.high, text));
}
