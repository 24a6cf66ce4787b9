/* Draws line charts as inline SVG: axes with round numbers, one path per series, reduced to what the eye can
 * see. Must not know: runs, files. Read next: report.c. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "train/print.h"
#include "train/report/chart.h"

enum {
    WIDTH = 760,
    HEIGHT = 300,
    LEFT = 62,
    RIGHT = 14,
    TOP = 14,
    BOTTOM = 40,
    COLUMNS = WIDTH - LEFT - RIGHT
};

typedef struct range {
    double low, high, step;
} range;

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

/* Extends low..high to multiples of a step. The step is 1, 2 or 5 times a power of ten, so that there are
 * about `wanted` steps. */
static range round_range(double low, double high, double wanted) {
    if (!(high > low)) {
        double margin = fabs(low) > 0 ? fabs(low) * 0.1 : 1;
        low -= margin;
        high += margin;
    }
    double raw = (high - low) / wanted, power = pow(10, floor(log10(raw))), part = raw / power;
    double step = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
    return (range){floor(low / step) * step, ceil(high / step) * step, step};
}

static bool limits(const weft__series *series, size_t count, range *x, range *y) {
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < series[s].count; i++) {
            if (!isfinite(series[s].y[i]) || !isfinite(series[s].x[i])) continue;
            x_low = fmin(x_low, series[s].x[i]);
            x_high = fmax(x_high, series[s].x[i]);
            y_low = fmin(y_low, series[s].y[i]);
            y_high = fmax(y_high, series[s].y[i]);
        }
    if (!(x_low <= x_high)) return false;
    *x = round_range(x_low, x_high, 8);
    *y = round_range(y_low, y_high, 5);
    return true;
}

static double place_x(range x, double value) {
    return (double)LEFT + (value - x.low) / (x.high - x.low) * (double)COLUMNS;
}
static double place_y(range y, double value) {
    return HEIGHT - BOTTOM - (value - y.low) / (y.high - y.low) * (HEIGHT - BOTTOM - TOP);
}

static void axes(FILE *out, range x, range y, const char *x_label) {
    char text[24];
    int rows = (int)lround((y.high - y.low) / y.step), columns = (int)lround((x.high - x.low) / x.step);
    for (int i = 0; i <= rows && i < 40; i++) {
        double value = y.low + i * y.step, at = place_y(y, value);
        if (fabs(value) < y.step * 1e-9) value = 0;
        fprintf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                WIDTH - RIGHT, at, at);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8, at + 4,
                weft__short_number(value, text));
    }
    for (int i = 0; i <= columns && i < 40; i++) {
        double value = x.low + i * x.step;
        if (fabs(value) < x.step * 1e-9) value = 0;
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", place_x(x, value),
                HEIGHT - BOTTOM + 18, weft__short_number(value, text));
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 4);
    weft__html_text(out, x_label, strlen(x_label));
    fprintf(out, "</text>\n");
}

/* Draws one series. If it has many points, each column of pixels shows the mean of its points. */
static void line(FILE *out, const weft__series *series, range x, range y) {
    double sum_x = 0, sum_y = 0;
    size_t in_column = 0;
    long column = -1;
    bool thin = series->count > 2 * COLUMNS;
    char pen = 'M';
    fprintf(out, "<path class=\"line %s\" d=\"", series->style);
    for (size_t i = 0; i <= series->count; i++) {
        bool last = i == series->count;
        if (!last && (!isfinite(series->y[i]) || !isfinite(series->x[i]))) continue;
        double at_x = last ? 0 : place_x(x, series->x[i]), at_y = last ? 0 : place_y(y, series->y[i]);
        long new_column = last ? -2 : thin ? (long)at_x : (long)i;
        if (new_column != column && in_column > 0) {
            fprintf(out, "%c%.1f %.1f", pen, sum_x / (double)in_column, sum_y / (double)in_column);
            pen = 'L';
            sum_x = sum_y = 0;
            in_column = 0;
        }
        column = new_column;
        sum_x += at_x;
        sum_y += at_y;
        in_column++;
    }
    fprintf(out, "\"/>\n");
    for (size_t i = 0; series->dots && i < series->count; i++) {
        char text[24];
        if (!isfinite(series->y[i]) || !isfinite(series->x[i])) continue;
        fprintf(out, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s: ", series->style,
                place_x(x, series->x[i]), place_y(y, series->y[i]), weft__short_number(series->x[i], text));
        fprintf(out, "%s</title></circle>\n", weft__short_number(series->y[i], text));
    }
}

void weft__chart(FILE *out, const char *title, const char *x_label, const weft__series *series,
                 size_t count) {
    range x, y;
    if (!limits(series, count, &x, &y)) return;
    fprintf(out, "<figure><figcaption>");
    weft__html_text(out, title, strlen(title));
    for (size_t s = 0; s < count; s++) {
        if (!series[s].name || series[s].count == 0) continue;
        fprintf(out, " <span class=\"key %s\">", series[s].style);
        weft__html_text(out, series[s].name, strlen(series[s].name));
        fprintf(out, "</span>");
    }
    fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    weft__html_text(out, title, strlen(title));
    fprintf(out, "\">\n");
    axes(out, x, y, x_label);
    for (size_t s = 0; s < count; s++) line(out, &series[s], x, y);
    fprintf(out, "</svg></figure>\n");
}
