/* Draws the numbers of random changes of images. Each is a function of seed, epoch and sample, so no order of
 * threads and no resumed run changes it. Must not know: pixels, devices. Read next: image_mix.c. */
#include <math.h>

#include "data/image_augment.h"

#define STREAM_AUGMENT  UINT64_C(0x6175676d656e7400)
#define STREAM_BETA     UINT64_C(0x62657461206f6600)
#define STREAM_PARTNERS UINT64_C(0x706172746e657273)

static const double pi = 3.14159265358979323846;

/* The numbers that an image may need. Each has its own stream, so that a new one changes no other. */
enum what {
    CROP_AREA,
    CROP_RATIO,
    CROP_DOWN,
    CROP_RIGHT,
    ANGLE,
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    IS_ERASED,
    ERASE_AREA,
    ERASE_RATIO,
    ERASE_DOWN,
    ERASE_RIGHT,
    WHICH_MIX,
    CUT_DOWN,
    CUT_RIGHT
};

/* Returns a number between 0 and 1, both excluded. */
static double unit(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t sample) {
    return ((double)weft__random_u32(seed, stream, epoch, sample) + 0.5) / 4294967296.0;
}

static double draw(const weft__draw_key *k, enum what what) {
    return unit(k->seed, STREAM_AUGMENT + what, k->epoch, k->sample);
}

/* Draws from the Beta distribution with both parameters alpha, 0 < alpha <= 1, by rejection (Johnk, 1964).
 * The logarithms keep apart numbers that would underflow. At least half of all attempts are accepted. */
static double draw_beta(const weft__draw_key *k, double alpha) {
    enum { ATTEMPTS = 64 };
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        const double x = log(unit(k->seed, STREAM_BETA + 2 * i, k->epoch, k->sample)) / alpha,
                     y = log(unit(k->seed, STREAM_BETA + 2 * i + 1, k->epoch, k->sample)) / alpha;
        if (exp(x) + exp(y) <= 1) return 1 / (1 + exp(y - x));
    }
    return 0.5;
}

/* A part of an image, in pixels. */
typedef struct window {
    double top, left, height, width;
} window;

/* Draws a window with a share of the area. Its proportions differ from those of the image by up to `stretch`,
 * and it has each place with the same probability. */
static window draw_window(const weft_image_options *o, const weft__draw_key *k, enum what area, double least,
                          double most, double stretch) {
    const double share = least + (most - least) * draw(k, area),
                 ratio = exp((2 * draw(k, area + 1) - 1) * log(stretch));
    window w = {.height = fmin(1, sqrt(share / ratio)) * (double)o->rows,
                .width = fmin(1, sqrt(share * ratio)) * (double)o->columns};
    w.top = draw(k, area + 2) * ((double)o->rows - w.height);
    w.left = draw(k, area + 3) * ((double)o->columns - w.width);
    return w;
}

/* Computes which place of the image each pixel of the result shows: mirrored, within the window of the crop,
 * rotated around the middle of the image, and shifted. */
static void place_pixels(const weft_image_options *o, const weft__draw_key *k, const int32_t *moves,
                         float *values) {
    const double rows = (double)o->rows, columns = (double)o->columns;
    const bool mirrored = moves[WEFT__MIRRORED] != 0;
    const window w = o->crop > 0 ? draw_window(o, k, CROP_AREA, o->crop, 1, 4.0 / 3)
                                 : (window){.height = rows, .width = columns};
    const double angle = o->rotate > 0 ? (2 * draw(k, ANGLE) - 1) * o->rotate * pi / 180 : 0;
    const double down = w.height / rows, across = (mirrored ? -w.width : w.width) / columns;
    /* the middle of pixel (0, 0) of the result, seen from the middle of the image */
    const double y = w.top + down / 2 - rows / 2,
                 x = w.left + (mirrored ? w.width : 0) + across / 2 - columns / 2;
    values[WEFT__ROW] = (float)(sin(angle) * x + cos(angle) * y + (rows - 1) / 2 + moves[WEFT__DOWN]);
    values[WEFT__ROW_Y] = (float)(cos(angle) * down);
    values[WEFT__ROW_X] = (float)(sin(angle) * across);
    values[WEFT__COLUMN] = (float)(cos(angle) * x - sin(angle) * y + (columns - 1) / 2 + moves[WEFT__RIGHT]);
    values[WEFT__COLUMN_Y] = (float)(-sin(angle) * down);
    values[WEFT__COLUMN_X] = (float)(cos(angle) * across);
}

/* Rounds a window to whole pixels within the image. */
static void to_rectangle(const weft_image_options *o, window w, int32_t *rectangle) {
    rectangle[WEFT__TOP] = (int32_t)fmax(0, round(w.top));
    rectangle[WEFT__LEFT] = (int32_t)fmax(0, round(w.left));
    rectangle[WEFT__BOTTOM] = (int32_t)fmin((double)o->rows, round(w.top + w.height));
    rectangle[WEFT__FAR] = (int32_t)fmin((double)o->columns, round(w.left + w.width));
}

static double factor(const weft__draw_key *k, enum what what, double strength) {
    return strength > 0 ? 1 + strength * (2 * draw(k, what) - 1) : 1;
}

/* Mixup (Zhang et al., 2018) blends two images. Cutmix (Yun et al., 2019) replaces a rectangle. If both are
 * wanted, each image gets one of them. */
static void draw_mix(const weft_image_options *o, const weft__draw_key *k, float *values, int32_t *cut) {
    const bool cuts = o->cutmix > 0 && (o->mixup <= 0 || draw(k, WHICH_MIX) < 0.5);
    const double own = draw_beta(k, cuts ? o->cutmix : o->mixup);
    if (!cuts) {
        values[WEFT__BLEND] = values[WEFT__SHARE] = (float)own;
        return;
    }
    const double height = (double)o->rows * sqrt(1 - own), width = (double)o->columns * sqrt(1 - own);
    to_rectangle(o,
                 (window){.top = draw(k, CUT_DOWN) * (double)o->rows - height / 2,
                          .left = draw(k, CUT_RIGHT) * (double)o->columns - width / 2,
                          .height = height,
                          .width = width},
                 cut);
    const double area = (double)(cut[WEFT__BOTTOM] - cut[WEFT__TOP]) * (cut[WEFT__FAR] - cut[WEFT__LEFT]);
    values[WEFT__SHARE] = (float)(1 - area / ((double)o->rows * (double)o->columns));
}

void weft__augment_draw(const weft_image_options *o, const weft__draw_key *k,
                        const int32_t moves[WEFT__MOVES], float values[WEFT__VALUES],
                        int32_t places[WEFT__PLACES]) {
    for (int i = 0; i < WEFT__PLACES; i++) places[i] = 0;
    place_pixels(o, k, moves, values);
    values[WEFT__BRIGHTNESS] = (float)factor(k, BRIGHTNESS, o->brightness);
    values[WEFT__CONTRAST] = (float)factor(k, CONTRAST, o->contrast);
    values[WEFT__SATURATION] = (float)factor(k, SATURATION, o->saturation);
    values[WEFT__BLEND] = values[WEFT__SHARE] = 1;
    if (o->erase > 0 && draw(k, IS_ERASED) < o->erase) /* the limits of Zhong et al., 2020 */
        to_rectangle(o, draw_window(o, k, ERASE_AREA, 0.02, 0.33, 10.0 / 3), places + WEFT__ERASED);
    if (weft__augment_mixes(o)) draw_mix(o, k, values, places + WEFT__CUT);
}

int64_t weft__augment_distance(uint64_t seed, uint64_t position, int64_t count) {
    if (count < 2) return 0;
    return 1 + (int64_t)(unit(seed, STREAM_PARTNERS, 0, position) * (double)(count - 1));
}
