/* Random changes of training images, beyond the shift and flip of images.c. image_draws.c draws numbers on
 * the host. images.c and image_mix.c change the pixels on the device by them. Must not know: files. Read
 * next: image_draws.c. */
#ifndef WEFT_SRC_DATA_IMAGE_AUGMENT_H
#define WEFT_SRC_DATA_IMAGE_AUGMENT_H

#include "data/loader.h"

enum { WEFT__DOWN, WEFT__RIGHT, WEFT__MIRRORED, WEFT__MOVES };

/* The numbers of an image. Pixel (y, x) of the result comes from row ROW + ROW_Y y + ROW_X x of the image,
 * and so on. The pixels of a rectangle are those from its top and left up to before its bottom and right. */
enum {
    WEFT__ROW,
    WEFT__ROW_Y,
    WEFT__ROW_X,
    WEFT__COLUMN,
    WEFT__COLUMN_Y,
    WEFT__COLUMN_X,
    WEFT__BRIGHTNESS,
    WEFT__CONTRAST,
    WEFT__SATURATION,
    WEFT__BLEND, /* the share of the own image, outside of the rectangle of cutmix */
    WEFT__SHARE, /* the share of the own target */
    WEFT__VALUES
};
enum { WEFT__TOP, WEFT__LEFT, WEFT__BOTTOM, WEFT__FAR, WEFT__RECTANGLE };
enum {
    WEFT__ERASED,                                /* a rectangle */
    WEFT__CUT = WEFT__RECTANGLE,                 /* a rectangle with the pixels of the partner */
    WEFT__PARTNER = WEFT__CUT + WEFT__RECTANGLE, /* number of the sample in the batch */
    WEFT__PLACES
};

struct weft__augment {
    weft_tensor *values, *places; /* on the device: f32 (batch, VALUES), i32 (batch, PLACES) */
    float *values_host;
    int32_t *places_host;
};

/* What a random number is a function of. */
typedef struct weft__draw_key {
    uint64_t seed, epoch, sample;
} weft__draw_key;

/* Draws the numbers of an image, except its partner. `moves` has its shift and flip. */
void weft__augment_draw(const weft_image_options *o, const weft__draw_key *key,
                        const int32_t moves[WEFT__MOVES], float values[WEFT__VALUES],
                        int32_t places[WEFT__PLACES]);
/* Draws how far the partner of a sample is from it, 1 to count - 1; 0 if count is 1. */
int64_t weft__augment_distance(uint64_t seed, uint64_t position, int64_t count);

static inline bool weft__augment_warps(const weft_image_options *o) { return o->crop > 0 || o->rotate > 0; }
static inline bool weft__augment_mixes(const weft_image_options *o) { return o->mixup > 0 || o->cutmix > 0; }

/* ---- image_mix.c; x is f32 (batch, channels, rows, columns) ---- */

/* Returns a number of each image as (batch, 1, 1, 1). */
weft_tensor *weft__augment_value(const weft_loader *loader, int which);
/* Changes brightness, contrast and saturation. `bytes`: pixels are 0 to 255. */
weft_tensor *weft__augment_colour(const weft_loader *loader, weft_tensor *x, bool bytes);
/* Erases rectangles of normalized images, then mixes images. */
weft_tensor *weft__augment_mix(const weft_loader *loader, weft_tensor *x);
/* Sets the second targets of mixed images, and their shares. */
void weft__augment_targets(const weft_loader *loader, weft_batch *batch);

#endif
