/* What a loader does to images. It changes training images at random, and normalizes each channel to mean 0
 * and deviation 1. What changes is a function of seed, epoch and sample, and is drawn on the host. The pixels
 * are moved on the device when a batch is gathered. Must not know: files. Read next: image_augment.h. */
#include <string.h>

#include <weft/ops.h>

#include "data/image_augment.h"

#define STREAM_IMAGES UINT64_C(0x696d616765732e77)

/* Checks the options of image_augment.h. */
static weft_status check_augment(const weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    const struct {
        const char *name;
        double value, most;
    } options[] = {
        {"crop", o->crop, 1},         {"rotate", o->rotate, 180},       {"brightness", o->brightness, 1},
        {"contrast", o->contrast, 1}, {"saturation", o->saturation, 1}, {"erase", o->erase, 1},
        {"mixup", o->mixup, 1},       {"cutmix", o->cutmix, 1}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!(options[i].value >= 0 && options[i].value <= options[i].most))
            return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: images.%s is %g; 0 to %g are allowed",
                              options[i].name, options[i].value, options[i].most);
    if (weft__augment_mixes(o) && loader->y.rank == 0)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: mixup and cutmix need targets");
    return WEFT_OK;
}

weft_status weft__images_check(const weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    int64_t pixels, all;
    if (o->channels == 0) return WEFT_OK;
    const int64_t shape[3] = {o->channels, o->rows, o->columns};
    const bool fits =
        o->channels > 0 && o->rows > 0 && o->columns > 0 && weft__numel(3, shape, &pixels) &&
        loader->samples > 0 && !loader->text &&
        loader->x.array.bytes / weft_dtype_size(loader->x.array.dtype) / (size_t)loader->samples ==
            (size_t)pixels;
    if (!fits)
        return weft__fail(loader->ctx, WEFT_ERR_SHAPE,
                          "loader: samples are not images of %lld channels, %lld rows and %lld columns",
                          (long long)o->channels, (long long)o->rows, (long long)o->columns);
    if (o->shift < 0 || o->shift >= o->rows || o->shift >= o->columns || !o->mean != !o->deviation)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "loader: shift %lld must be 0 to less than the extent of the images, and mean and "
                          "deviation must be given together",
                          (long long)o->shift);
    if (!weft__mul(pixels, loader->options.batch, &all) || all > INT32_MAX)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: a batch of %lld images is too large",
                          (long long)loader->options.batch);
    return check_augment(loader);
}

static bool augments(const weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    return !loader->options.in_order &&
           (weft__augment_warps(o) || weft__augment_mixes(o) || o->brightness > 0 || o->contrast > 0 ||
            o->saturation > 0 || o->erase > 0);
}

/* Tells whether whole pixels are moved. A crop and a rotation move pixels by parts of them. */
static bool moves(const weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    return !loader->options.in_order && (o->shift > 0 || o->flip) && !weft__augment_warps(o);
}

/* Returns a kept tensor (channels, 1, 1) of f32. */
static weft_tensor *by_channel(weft_context *ctx, const float *values, int64_t channels) {
    return weft_keep(weft_from(ctx, WEFT_F32, 3, (int64_t[]){channels, 1, 1}, values));
}

static weft_status augment_new(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const int64_t batch = loader->options.batch;
    weft__augment *a = loader->augment = weft__zalloc(ctx, sizeof *a);
    if (!a) return weft__fail_oom(ctx, sizeof *a, "the loader");
    a->values_host = weft__array(ctx, (size_t)batch * WEFT__VALUES, sizeof *a->values_host);
    a->places_host = weft__array(ctx, (size_t)batch * WEFT__PLACES, sizeof *a->places_host);
    if (!a->values_host || !a->places_host)
        return weft__fail_oom(ctx, (size_t)batch * (WEFT__VALUES + WEFT__PLACES) * 4, "the loader");
    a->values = weft_variable_new(ctx, "values", WEFT_F32, 2, (int64_t[]){batch, WEFT__VALUES}, NULL);
    a->places = weft_variable_new(ctx, "places", WEFT_I32, 2, (int64_t[]){batch, WEFT__PLACES}, NULL);
    WEFT_TRY(weft_tensor_status(a->values));
    return weft_tensor_status(a->places);
}

weft_status weft__images_new(weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    weft_context *ctx = loader->ctx;
    if (o->mean) {
        loader->pixel_mean = by_channel(ctx, o->mean, o->channels);
        loader->pixel_deviation = by_channel(ctx, o->deviation, o->channels);
        WEFT_TRY(weft_tensor_status(loader->pixel_mean));
        WEFT_TRY(weft_tensor_status(loader->pixel_deviation));
    }
    if (augments(loader)) WEFT_TRY(augment_new(loader));
    if (!moves(loader)) return WEFT_OK;
    const int64_t shape[2] = {loader->options.batch, WEFT__MOVES};
    loader->moves_host =
        weft__array(ctx, (size_t)loader->options.batch * WEFT__MOVES, sizeof *loader->moves_host);
    if (!loader->moves_host)
        return weft__fail_oom(ctx, (size_t)loader->options.batch * WEFT__MOVES * 4, "the loader");
    loader->moves = weft_variable_new(ctx, "moves", WEFT_I32, 2, shape, NULL);
    return weft_tensor_status(loader->moves);
}

void weft__images_free(weft_loader *loader) {
    weft_free(loader->pixel_mean);
    weft_free(loader->pixel_deviation);
    weft_free(loader->moves);
    weft__free(loader->ctx, loader->moves_host);
    weft__augment *a = loader->augment;
    if (!a) return;
    weft_free(a->values);
    weft_free(a->places);
    weft__free(loader->ctx, a->values_host);
    weft__free(loader->ctx, a->places_host);
    weft__free(loader->ctx, a);
}

/* Maps 15 random bits to a shift from -most to most. */
static int32_t shift(uint32_t bits, int64_t most) {
    return (int32_t)((int64_t)(bits & 0x7fff) * (2 * most + 1) >> 15) - (int32_t)most;
}

static void draw_moves(const weft_image_options *o, const weft__draw_key *k, int32_t to[WEFT__MOVES]) {
    const uint32_t bits = weft__random_u32(k->seed, STREAM_IMAGES, k->epoch, k->sample);
    to[WEFT__DOWN] = shift(bits, o->shift);
    to[WEFT__RIGHT] = shift(bits >> 15, o->shift);
    to[WEFT__MIRRORED] = o->flip && bits >> 31;
}

/* Draws what changes in the images of a batch, and writes it to the device. `count` samples are real. */
static weft_status draw(weft_loader *loader, uint64_t position, int64_t count) {
    const weft_loader_options *o = &loader->options;
    weft__augment *a = loader->augment;
    const int64_t batch = o->batch;
    const int64_t distance = weft__augment_distance(o->seed, position, count);
    weft__loader_starts(loader, position, loader->starts);
    for (int64_t b = 0; b < batch; b++) {
        int32_t moved[WEFT__MOVES];
        const weft__draw_key key = {.seed = o->seed,
                                    .epoch = position / (uint64_t)loader->batches,
                                    .sample = (uint64_t)loader->starts[b]};
        draw_moves(&o->images, &key, moved);
        if (loader->moves) memcpy(loader->moves_host + b * WEFT__MOVES, moved, sizeof moved);
        if (!a) continue;
        int32_t *places = a->places_host + b * WEFT__PLACES;
        weft__augment_draw(&o->images, &key, moved, a->values_host + b * WEFT__VALUES, places);
        places[WEFT__PARTNER] = (int32_t)(b < count ? (b + distance) % count : b);
    }
    if (loader->moves)
        WEFT_TRY(
            weft_write(loader->moves, loader->moves_host, (size_t)(batch * WEFT__MOVES) * sizeof(int32_t)));
    if (!a) return WEFT_OK;
    WEFT_TRY(weft_write(a->values, a->values_host, (size_t)(batch * WEFT__VALUES) * sizeof(float)));
    return weft_write(a->places, a->places_host, (size_t)(batch * WEFT__PLACES) * sizeof(int32_t));
}

static weft_tensor *whole(weft_context *ctx, int64_t value) {
    return weft_full_i64(ctx, WEFT_I32, 0, NULL, value);
}

/* Returns 0, 1, ... along one dimension of four; the other dimensions are 1. */
static weft_tensor *along(weft_context *ctx, int dim, int64_t extent) {
    int64_t shape[4] = {1, 1, 1, 1};
    shape[dim] = extent;
    return weft_reshape(weft_iota(ctx, WEFT_I32, 1, &extent), 4, shape);
}

/* Returns one component of each image's move (WEFT__DOWN, ...) as (N, 1, 1, 1). */
static weft_tensor *move_of(const weft_loader *loader, int which) {
    return weft_reshape(weft_narrow(loader->moves, 1, which, 1), 4,
                        (int64_t[]){loader->options.batch, 1, 1, 1});
}

/* Returns 1 where a place is within 0..extent - 1, else 0. */
static weft_tensor *inside(weft_context *ctx, weft_tensor *place, int64_t extent) {
    return weft_mul(weft_cast(weft_lt(weft_full_like(place, -1), place), WEFT_I32),
                    weft_cast(weft_lt(place, whole(ctx, extent)), WEFT_I32));
}

static weft_tensor *clamped(weft_context *ctx, weft_tensor *place, int64_t extent) {
    return weft_minimum(weft_maximum(place, whole(ctx, 0)), whole(ctx, extent - 1));
}

/* Returns the pixels of the images x (N, C, H, W) at rows and columns that need not be inside. The pixels are
 * gathered by their index in x, which is ((n C + c) H + row) W + column. Places outside the image are clamped
 * to its border for the gather, and then become black. */
static weft_tensor *pixels_at(const weft_loader *loader, weft_tensor *x, weft_tensor *row,
                              weft_tensor *column) {
    const weft_image_options *o = &loader->options.images;
    weft_context *ctx = loader->ctx;
    const int64_t n = loader->options.batch, image = o->channels * o->rows * o->columns, all = n * image;
    weft_tensor *seen = weft_mul(inside(ctx, row, o->rows), inside(ctx, column, o->columns));
    weft_tensor *index = weft_add(weft_mul(along(ctx, 0, n), whole(ctx, image)),
                                  weft_mul(along(ctx, 1, o->channels), whole(ctx, o->rows * o->columns)));
    row = weft_mul(clamped(ctx, row, o->rows), whole(ctx, o->columns));
    index = weft_add(index, weft_add(row, clamped(ctx, column, o->columns)));
    x = weft_gather(weft_reshape(x, 1, &all), index, 0);
    return weft_where(weft_lt(whole(ctx, 0), seen), x, weft_zeros_like(x));
}

/* Shifts and mirrors the images x (N, C, H, W). */
static weft_tensor *moved(const weft_loader *loader, weft_tensor *x) {
    const weft_image_options *o = &loader->options.images;
    weft_context *ctx = loader->ctx;
    weft_tensor *column = along(ctx, 3, o->columns);
    weft_tensor *mirrored = weft_sub(whole(ctx, o->columns - 1), column);
    column = weft_where(weft_lt(whole(ctx, 0), move_of(loader, WEFT__MIRRORED)), mirrored, column);
    column = weft_add(column, move_of(loader, WEFT__RIGHT));
    return pixels_at(loader, x, weft_add(along(ctx, 2, o->rows), move_of(loader, WEFT__DOWN)), column);
}

/* Returns first + by_row y + by_column x for each pixel (y, x) of the result. */
static weft_tensor *places_of(const weft_loader *loader, int first) {
    const weft_image_options *o = &loader->options.images;
    weft_tensor *row = weft_cast(along(loader->ctx, 2, o->rows), WEFT_F32),
                *column = weft_cast(along(loader->ctx, 3, o->columns), WEFT_F32);
    row = weft_mul(row, weft__augment_value(loader, first + 1));
    column = weft_mul(column, weft__augment_value(loader, first + 2));
    return weft_add(weft_add(weft__augment_value(loader, first), row), column);
}

/* Returns the weight of a pixel, which falls to 0 at a distance of 1. */
static weft_tensor *nearness(weft_tensor *place, weft_tensor *pixel) {
    return weft_add_scalar(weft_neg(weft_abs(weft_sub(place, pixel))), 1);
}

/* Crops, scales and rotates the images x (N, C, H, W). Each pixel of the result is interpolated between the
 * four pixels around its place. The result is f32. */
static weft_tensor *warped(const weft_loader *loader, weft_tensor *x) {
    weft_tensor *row = places_of(loader, WEFT__ROW), *column = places_of(loader, WEFT__COLUMN);
    weft_tensor *up = weft_floor(row), *left = weft_floor(column), *result = NULL;
    for (int corner = 0; corner < 4; corner++) {
        const int down = corner / 2, right = corner % 2;
        weft_tensor *y = weft_add_scalar(up, down), *z = weft_add_scalar(left, right);
        weft_tensor *height = nearness(row, y), *width = nearness(column, z);
        weft_tensor *pixel = pixels_at(loader, x, weft_cast(y, WEFT_I32), weft_cast(z, WEFT_I32));
        pixel = weft_mul(weft_cast(pixel, WEFT_F32), weft_mul(height, width));
        result = result ? weft_add(result, pixel) : pixel;
    }
    return result;
}

weft_status weft__images_apply(weft_loader *loader, uint64_t position, weft_batch *batch) {
    const weft_image_options *o = &loader->options.images;
    const int64_t shape[4] = {loader->options.batch, o->channels, o->rows, o->columns};
    weft_tensor *x = batch->x;
    int64_t given[WEFT_MAX_RANK];
    const int rank = weft_rank(x);
    WEFT_TRY(weft_tensor_status(x));
    for (int i = 0; i < rank; i++) given[i] = weft_dim(x, i);
    const bool bytes = weft_dtype_of(x) == WEFT_U8;
    if (loader->moves || loader->augment) WEFT_TRY(draw(loader, position, batch->count));
    if (loader->moves) x = moved(loader, weft_reshape(x, 4, shape));
    if (loader->augment && weft__augment_warps(o)) x = warped(loader, weft_reshape(x, 4, shape));
    if (weft_dtype_of(x) != WEFT_F32) x = weft_cast(x, WEFT_F32);
    if (loader->augment) x = weft__augment_colour(loader, weft_reshape(x, 4, shape), bytes);
    if (loader->options.scale != 0 && loader->options.scale != 1)
        x = weft_mul_scalar(x, loader->options.scale);
    if (o->mean)
        x = weft_div(weft_sub(weft_reshape(x, 4, shape), loader->pixel_mean), loader->pixel_deviation);
    if (loader->augment) x = weft__augment_mix(loader, weft_reshape(x, 4, shape));
    if (loader->augment && weft__augment_mixes(o)) weft__augment_targets(loader, batch);
    batch->x = weft_reshape(x, rank, given);
    if (batch->share) WEFT_TRY(weft_tensor_status(batch->share));
    if (batch->other_y) WEFT_TRY(weft_tensor_status(batch->other_y));
    return weft_tensor_status(batch->x);
}
