/* Resamples images: first along columns, then along rows. Then turns them upright. Must not know: files. Read
 * next: image_folder.c. */
#include <math.h>
#include <string.h>

#include "data/image_file.h"

/* A line of output pixels, computed from a part of a line of input pixels. Output pixel i is the weighted sum
 * of `taps` input pixels from first[i] on. */
typedef struct line {
    int64_t size, taps; /* taps per pixel; a tap outside the source has weight 0 */
    int64_t *first;
    float *weights; /* [size][taps]; the weights of one pixel add up to 1 */
} line;

static void line_free(weft_context *ctx, line *l) {
    weft__free(ctx, l->first);
    weft__free(ctx, l->weights);
}

/* Computes the taps of `size` output pixels. They show the range from `from` to `from + length` of a line of
 * `whole` input pixels. Returns false when memory is short. */
static bool line_new(weft_context *ctx, int64_t whole, double from, double length, int64_t size, line *l) {
    const double step = length / (double)size, reach = step > 1 ? step : 1;
    *l = (line){.size = size, .taps = weft__smaller((int64_t)ceil(reach) * 2 + 1, whole)};
    l->first = weft__array(ctx, (size_t)size, sizeof *l->first);
    l->weights = weft__array(ctx, (size_t)size, (size_t)l->taps * sizeof *l->weights);
    if (!l->first || !l->weights) return false;
    /* The filter is a triangle of half-width `reach` around the middle of output pixel i. Dividing by the sum
     * makes the weights add up to 1 at the borders too. */
    for (int64_t i = 0; i < size; i++) {
        const double middle = from + ((double)i + 0.5) * step;
        const int64_t first = (int64_t)floor(middle - reach + 0.5);
        float *weights = l->weights + i * l->taps;
        double sum = 0;
        l->first[i] = weft__larger(0, weft__smaller(first, whole - l->taps));
        for (int64_t k = 0; k < l->taps; k++)
            sum += fmax(0, 1 - fabs((double)(l->first[i] + k) + 0.5 - middle) / reach);
        for (int64_t k = 0; k < l->taps; k++) {
            const double away = fabs((double)(l->first[i] + k) + 0.5 - middle);
            weights[k] = (float)(fmax(0, 1 - away / reach) / sum);
        }
    }
    return true;
}

/* Resamples each row to the new width. `out` is [rows][columns][channels]. */
static void resample_rows(const weft__image *p, const line *across, float *out) {
    const int64_t channels = p->channels;
    for (int64_t y = 0; y < p->rows; y++)
        for (int64_t x = 0; x < across->size; x++) {
            const uint8_t *from = p->pixels + (y * p->columns + across->first[x]) * channels;
            const float *weights = across->weights + x * across->taps;
            for (int64_t c = 0; c < channels; c++, out++) {
                float sum = 0;
                for (int64_t k = 0; k < across->taps; k++) sum += weights[k] * (float)from[k * channels + c];
                *out = sum;
            }
        }
}

static void resample_columns(const weft__image *p, const line *across, const line *down, const float *in,
                             uint8_t *planes) {
    const int64_t channels = p->channels, width = across->size * channels;
    for (int64_t y = 0; y < down->size; y++)
        for (int64_t i = 0; i < width; i++) {
            const float *from = in + down->first[y] * width + i, *weights = down->weights + y * down->taps;
            float sum = 0.5F; /* rounds to the nearest; weights are not negative and add up to 1 */
            for (int64_t k = 0; k < down->taps; k++) sum += weights[k] * from[k * width];
            planes[(i % channels * down->size + y) * across->size + i / channels] =
                (uint8_t)(sum < 255 ? sum : 255);
        }
}

static void to_planes(const weft__image *p, uint8_t *planes) {
    const int64_t pixels = p->rows * p->columns;
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t i = 0; i < pixels; i++) *planes++ = p->pixels[i * p->channels + c];
}

/* Crops and resamples the pixels as they are stored. */
static weft_status fit_stored(weft_context *ctx, const weft__image *p, int64_t rows, int64_t columns,
                              uint8_t *planes) {
    line across = {0}, down = {0};
    if (rows == p->rows && columns == p->columns) {
        to_planes(p, planes);
        return WEFT_OK;
    }
    const double width = fmin((double)p->columns, (double)p->rows * (double)columns / (double)rows),
                 height = fmin((double)p->rows, (double)p->columns * (double)rows / (double)columns);
    float *narrow = weft__array(ctx, (size_t)p->rows, (size_t)(columns * p->channels) * sizeof *narrow);
    const bool made = narrow &&
                      line_new(ctx, p->columns, ((double)p->columns - width) / 2, width, columns, &across) &&
                      line_new(ctx, p->rows, ((double)p->rows - height) / 2, height, rows, &down);
    if (made) resample_rows(p, &across, narrow);
    if (made) resample_columns(p, &across, &down, narrow, planes);
    line_free(ctx, &across);
    line_free(ctx, &down);
    weft__free(ctx, narrow);
    return made ? WEFT_OK : weft__fail_oom(ctx, (size_t)(p->rows * columns * p->channels) * 4, "resampling");
}

/* Writes an upright plane of rows x columns. `from` is the plane as it was stored. */
static void turn(const uint8_t *from, int orientation, int64_t rows, int64_t columns, uint8_t *to) {
    const bool swapped = orientation > 4, up = (1 << orientation & (1 << 3 | 1 << 4 | 1 << 6 | 1 << 7)) != 0,
               left = (1 << orientation & (1 << 2 | 1 << 3 | 1 << 7 | 1 << 8)) != 0;
    const int64_t height = swapped ? columns : rows, width = swapped ? rows : columns;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            const int64_t down = swapped ? x : y, across = swapped ? y : x;
            *to++ = from[(up ? height - 1 - down : down) * width + (left ? width - 1 - across : across)];
        }
}

weft_status weft__image_fit(weft_context *ctx, const weft__image *p, int64_t rows, int64_t columns,
                            uint8_t *planes) {
    const bool swapped = p->orientation > 4;
    const int64_t plane = rows * columns;
    if (p->orientation <= 1) return fit_stored(ctx, p, rows, columns, planes);
    uint8_t *stored = weft__array(ctx, (size_t)p->channels, (size_t)plane);
    if (!stored) return weft__fail_oom(ctx, (size_t)(p->channels * plane), "resampling");
    const weft_status status = fit_stored(ctx, p, swapped ? columns : rows, swapped ? rows : columns, stored);
    for (int64_t c = 0; status == WEFT_OK && c < p->channels; c++)
        turn(stored + c * plane, p->orientation, rows, columns, planes + c * plane);
    weft__free(ctx, stored);
    return status;
}
