/* Changes colours of images, erases rectangles, and mixes images of a batch, all on the device. Must not
 * know: how numbers are drawn (image_draws.c). Read next: images.c. */
#include <weft/ops.h>

#include "data/image_augment.h"

static weft_tensor *column_of(weft_tensor *numbers, int which, int64_t batch) {
    return weft_reshape(weft_narrow(numbers, 1, which, 1), 4, (int64_t[]){batch, 1, 1, 1});
}

weft_tensor *weft__augment_value(const weft_loader *loader, int which) {
    return column_of(loader->augment->values, which, loader->options.batch);
}

/* Returns the brightness of each pixel, (batch, 1, rows, columns): the luma of three channels, or their
 * mean. */
static weft_tensor *luma(const weft_loader *loader, weft_tensor *x) {
    static const float weights[3] = {0.299F, 0.587F, 0.114F};
    if (loader->options.images.channels != 3) return weft_mean(x, 1, true);
    weft_tensor *by_channel = weft_from(loader->ctx, WEFT_F32, 3, (int64_t[]){3, 1, 1}, weights);
    return weft_sum(weft_mul(x, by_channel), 1, true);
}

/* Moves x away from `middle`, or towards it. */
static weft_tensor *spread(weft_tensor *x, weft_tensor *middle, weft_tensor *factor) {
    return weft_add(middle, weft_mul(weft_sub(x, middle), factor));
}

weft_tensor *weft__augment_colour(const weft_loader *loader, weft_tensor *x, bool bytes) {
    const weft_image_options *o = &loader->options.images;
    if (o->brightness > 0) x = weft_mul(x, weft__augment_value(loader, WEFT__BRIGHTNESS));
    if (o->contrast > 0) {
        weft_tensor *mean = weft_mean(weft_mean(luma(loader, x), 3, true), 2, true);
        x = spread(x, mean, weft__augment_value(loader, WEFT__CONTRAST));
    }
    if (o->saturation > 0 && o->channels == 3)
        x = spread(x, luma(loader, x), weft__augment_value(loader, WEFT__SATURATION));
    const bool changed = o->brightness > 0 || o->contrast > 0 || (o->saturation > 0 && o->channels == 3);
    return changed && bytes ? weft_clamp(x, 0, 255) : x;
}

/* Returns whether a place along one dimension is from `first` up to before `end`, as 1 or 0. */
static weft_tensor *between(const weft_loader *loader, int dim, int64_t extent, int first, int end) {
    const int64_t batch = loader->options.batch;
    int64_t shape[4] = {1, 1, 1, 1};
    shape[dim] = extent;
    weft_tensor *places = loader->augment->places,
                *at = weft_reshape(weft_iota(loader->ctx, WEFT_I32, 1, &extent), 4, shape);
    weft_tensor *before = weft_cast(weft_lt(at, column_of(places, first, batch)), WEFT_I32),
                *within = weft_cast(weft_lt(at, column_of(places, end, batch)), WEFT_I32);
    return weft_sub(within, weft_mul(before, within));
}

/* Returns where the pixels are within the rectangle, as booleans (batch, 1, rows, columns). */
static weft_tensor *is_within(const weft_loader *loader, int rectangle) {
    const weft_image_options *o = &loader->options.images;
    weft_tensor *row = between(loader, 2, o->rows, rectangle + WEFT__TOP, rectangle + WEFT__BOTTOM),
                *column = between(loader, 3, o->columns, rectangle + WEFT__LEFT, rectangle + WEFT__FAR);
    return weft_lt(weft_full_i64(loader->ctx, WEFT_I32, 0, NULL, 0), weft_mul(row, column));
}

static weft_tensor *of_partner(const weft_loader *loader, weft_tensor *x) {
    weft_tensor *partner =
        weft_reshape(weft_narrow(loader->augment->places, 1, WEFT__PARTNER, 1), 1, &loader->options.batch);
    return weft_gather(x, partner, 0);
}

weft_tensor *weft__augment_mix(const weft_loader *loader, weft_tensor *x) {
    const weft_image_options *o = &loader->options.images;
    if (o->erase > 0) x = weft_where(is_within(loader, WEFT__ERASED), weft_zeros_like(x), x);
    if (!weft__augment_mixes(o)) return x;
    weft_tensor *other = of_partner(loader, x), *mixed = x;
    if (o->mixup > 0) mixed = spread(x, other, weft__augment_value(loader, WEFT__BLEND));
    return o->cutmix > 0 ? weft_where(is_within(loader, WEFT__CUT), other, mixed) : mixed;
}

void weft__augment_targets(const weft_loader *loader, weft_batch *batch) {
    batch->other_y = of_partner(loader, batch->y);
    batch->share = weft_reshape(weft__augment_value(loader, WEFT__SHARE), 1, &loader->options.batch);
}
