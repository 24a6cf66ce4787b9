/* Resamples images row by row, and turns them upright. Must not know: files. Read
 * next: image_folder.c. */
#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "data/image_file.h"
#include "data/image_lines.h"

enum { BLOCK = 2 * WEFT__TILE }; /* output rows that are computed together */

static const weft__line_loops *line_loops(void) { return WEFT_BY_ISA(weft__line_loops); }

static void sums_free(weft_context *ctx, weft__line_sums *s) {
    weft__free(ctx, s->first);
    weft__free(ctx, s->count);
    weft__free(ctx, s->weights);
}

/* Returns the weight of an input pixel, `distance` away from the middle of an output pixel. Not fmax: the
 * call of the library took a tenth of the time of a small image. */
static double triangle(double distance, double reach) {
    const double height = 1 - fabs(distance) / reach;
    return height > 0 ? height : 0;
}

/* Sets the weights of output i, whose middle is at `middle` of the input. They add up to `one`, at the
 * borders too. Input pixels that have no weight are left out. */
static void set_weights(weft__line_sums *s, int64_t i, int64_t whole, double middle, double reach,
                        double one) {
    uint32_t *weights = s->weights + i * s->taps;
    int64_t first = weft__larger(0, weft__smaller((int64_t)floor(middle - reach + 0.5), whole - s->taps));
    double sum = 0, until = 0;
    for (int64_t k = 0; k < s->taps; k++) sum += triangle((double)(first + k) + 0.5 - middle, reach);
    int64_t begin = s->taps, end = 0;
    uint32_t given = 0;
    for (int64_t k = 0; k < s->taps; k++) {
        until += triangle((double)(first + k) + 0.5 - middle, reach);
        const uint32_t share = (uint32_t)(until / sum * one + 0.5); /* of the pixels until this one */
        weights[k] = share - given;
        given = share;
        if (weights[k] == 0) continue;
        begin = weft__smaller(begin, k);
        end = k + 1;
    }
    for (int64_t k = begin; k < end; k++) weights[k - begin] = weights[k];
    s->first[i] = first + begin;
    s->count[i] = end - begin;
}

/* Computes how `size` output pixels come from a line of `whole` input pixels. They show its range from `from`
 * to `from + length`. The filter is a triangle of half-width `reach` around the middle of an output pixel.
 * Returns false when memory is short. */
static bool sums_new(weft_context *ctx, int64_t whole, double from, double length, int64_t size,
                     weft__line_sums *s) {
    const double step = length / (double)size, reach = step > 1 ? step : 1;
    *s = (weft__line_sums){.size = size, .taps = weft__smaller((int64_t)ceil(2 * reach), whole)};
    s->first = weft__array(ctx, (size_t)size, sizeof *s->first);
    s->count = weft__array(ctx, (size_t)size, sizeof *s->count);
    s->weights = weft__array(ctx, (size_t)size, (size_t)s->taps * sizeof *s->weights);
    if (!s->first || !s->count || !s->weights) return false;
    const double one = s->taps <= WEFT__TAPS_NARROW ? WEFT__ONE_NARROW : WEFT__ONE_WIDE;
    for (int64_t i = 0; i < size; i++) set_weights(s, i, whole, from + ((double)i + 0.5) * step, reach, one);
    return true;
}

static int64_t whole_tiles(int64_t n) { return (n + WEFT__TILE - 1) / WEFT__TILE * WEFT__TILE; }

/* Pixels [rows][columns][channels]: those of an image, or a plane of it. */
typedef struct pixels {
    const uint8_t *at;
    int64_t columns, channels;
} pixels;

/* Resamples pixels. `down` makes its output rows from input rows, and `across` its columns.
 *
 *     input --down--> rows [BLOCK][x, channel] --transpose--> [x, channel][BLOCK] --across-->
 *     [x, channel][BLOCK] --transpose--> planes [channel][BLOCK][x]
 *
 * So both sums add lines of neighbouring bytes. Returns false when memory is short. */
static bool resample(weft_context *ctx, pixels p, const weft__line_sums *down, const weft__line_sums *across,
                     uint8_t *planes) {
    const weft__line_loops *loops = line_loops();
    const int64_t channels = p.channels, columns = across->size, rows = down->size;
    int64_t first = p.columns, end = 0; /* of the input columns that are needed */
    for (int64_t x = 0; x < columns; x++) {
        first = weft__smaller(first, across->first[x]);
        end = weft__larger(end, across->first[x] + across->count[x]);
    }
    const int64_t height = weft__smaller(BLOCK, whole_tiles(rows)), line = channels * height,
                  bytes = (end - first) * channels, stride = whole_tiles(bytes);
    uint8_t *lines = weft__zalloc(ctx, (size_t)(height * stride)),
            *turned = weft__alloc(ctx, (size_t)(stride * height)),
            *sums = weft__zalloc(ctx, (size_t)(whole_tiles(columns) * line));
    const bool made = lines && turned && sums;
    for (int64_t y = 0; made && y < rows; y += height) {
        const int64_t count = weft__smaller(height, rows - y);
        loops->sum(down, y, y + count, bytes, p.at + first * channels, p.columns * channels, lines, stride);
        loops->transpose(lines, stride, height, stride, turned, height);
        loops->sum(across, 0, columns, line, turned - first * line, line, sums, line);
        for (int64_t c = 0; c < channels; c++)
            loops->transpose(sums + c * height, line, columns, count, planes + (c * rows + y) * columns,
                             columns);
    }
    weft__free(ctx, lines);
    weft__free(ctx, turned);
    weft__free(ctx, sums);
    return made;
}

/* The sums that crop and resample an image. */
typedef struct fit {
    weft__line_sums down, across;
} fit;

static void fit_free(weft_context *ctx, fit *f) {
    sums_free(ctx, &f->down);
    sums_free(ctx, &f->across);
}

/* Computes the sums for pixels each of which stands for `down` x `across` pixels of the image. Returns false
 * when memory is short. */
static bool fit_new(weft_context *ctx, const weft__image *p, int down, int across, int64_t rows,
                    int64_t columns, fit *f) {
    const double width = fmin((double)p->columns, (double)p->rows * (double)columns / (double)rows),
                 height = fmin((double)p->rows, (double)p->columns * (double)rows / (double)columns),
                 left = ((double)p->columns - width) / 2, top = ((double)p->rows - height) / 2;
    *f = (fit){0};
    return sums_new(ctx, (p->rows + down - 1) / down, top / down, height / down, rows, &f->down) &&
           sums_new(ctx, (p->columns + across - 1) / across, left / across, width / across, columns,
                    &f->across);
}

/* Resamples luma and chroma, and makes colours of them. */
static bool fit_planes(weft_context *ctx, const weft__image *p, int64_t rows, int64_t columns,
                       uint8_t *planes) {
    const int64_t size = rows * columns;
    fit luma, chroma = {0};
    bool made = fit_new(ctx, p, 1, 1, rows, columns, &luma) &&
                fit_new(ctx, p, p->chroma_down, p->chroma_across, rows, columns, &chroma);
    for (int c = 0; made && c < 3; c++) {
        const weft__image_plane plane = weft__image_plane_of(p, c);
        const fit *f = c ? &chroma : &luma;
        made =
            resample(ctx, (pixels){plane.pixels, plane.columns, 1}, &f->down, &f->across, planes + c * size);
    }
    if (made) line_loops()->colour(planes, planes + size, planes + 2 * size, size);
    fit_free(ctx, &luma);
    fit_free(ctx, &chroma);
    return made;
}

/* Crops and resamples the pixels as they are stored. */
static weft_status fit_stored(weft_context *ctx, const weft__image *p, int64_t rows, int64_t columns,
                              uint8_t *planes) {
    bool made;
    if (p->chroma_across) {
        made = fit_planes(ctx, p, rows, columns, planes);
    } else {
        fit f;
        made = fit_new(ctx, p, 1, 1, rows, columns, &f) &&
               resample(ctx, (pixels){p->pixels, p->columns, p->channels}, &f.down, &f.across, planes);
        fit_free(ctx, &f);
    }
    return made ? WEFT_OK : weft__fail_oom(ctx, (size_t)(p->columns * p->channels), "resampling");
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
