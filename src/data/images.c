/* What a loader does to images. It shifts and mirrors training images at random, and normalizes each channel
 * to mean 0 and deviation 1. The shift of an image is a function of seed, epoch and sample, and is computed
 * on the host. The pixels are moved on the device when a batch is gathered. Must not know: files. Read next:
 * loader.c. */
#include <weft/ops.h>

#include "data/loader.h"

#define STREAM_IMAGES UINT64_C(0x696d616765732e77)

enum { DOWN, RIGHT, MIRRORED, MOVES };

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
    return WEFT_OK;
}

static bool moves(const weft_loader *loader) {
    const weft_image_options *o = &loader->options.images;
    return !loader->options.in_order && (o->shift > 0 || o->flip);
}

/* Returns a kept tensor (channels, 1, 1) of f32. */
static weft_tensor *by_channel(weft_context *ctx, const float *values, int64_t channels) {
    return weft_keep(weft_from(ctx, WEFT_F32, 3, (int64_t[]){channels, 1, 1}, values));
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
    if (!moves(loader)) return WEFT_OK;
    const int64_t shape[2] = {loader->options.batch, MOVES};
    loader->moves_host = weft__array(ctx, (size_t)loader->options.batch * MOVES, sizeof *loader->moves_host);
    if (!loader->moves_host)
        return weft__fail_oom(ctx, (size_t)loader->options.batch * MOVES * 4, "the loader");
    loader->moves = weft_variable_new(ctx, "moves", WEFT_I32, 2, shape, NULL);
    return weft_tensor_status(loader->moves);
}

void weft__images_free(weft_loader *loader) {
    weft_free(loader->pixel_mean);
    weft_free(loader->pixel_deviation);
    weft_free(loader->moves);
    weft__free(loader->ctx, loader->moves_host);
}

/* Maps 15 random bits to a shift from -most to most. */
static int32_t shift(uint32_t bits, int64_t most) {
    return (int32_t)((int64_t)(bits & 0x7fff) * (2 * most + 1) >> 15) - (int32_t)most;
}

/* Draws the moves of the images of a batch and writes them to the device. */
static weft_status draw(weft_loader *loader, uint64_t position) {
    const weft_loader_options *o = &loader->options;
    const uint64_t epoch = position / (uint64_t)loader->batches;
    /* a batch of all samples is not permuted */
    const bool unordered = !loader->prefetch && o->batch == loader->samples;
    weft__loader_starts(loader, position, loader->starts);
    for (int64_t b = 0; b < o->batch; b++) {
        const uint32_t bits =
            weft__random_u32(o->seed, STREAM_IMAGES, epoch, (uint64_t)(unordered ? b : loader->starts[b]));
        int32_t *to = loader->moves_host + b * MOVES;
        to[DOWN] = shift(bits, o->images.shift);
        to[RIGHT] = shift(bits >> 15, o->images.shift);
        to[MIRRORED] = o->images.flip && bits >> 31;
    }
    return weft_write(loader->moves, loader->moves_host, (size_t)(o->batch * MOVES) * sizeof(int32_t));
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

/* Returns one component of each image's move (DOWN, RIGHT or MIRRORED) as (N, 1, 1, 1). */
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

/* Shifts and mirrors the images x (N, C, H, W). The pixels are gathered by their index in x, which is
 * ((n C + c) H + row) W + column. Places outside the image are clamped to its border for the gather, and then
 * become black. */
static weft_tensor *moved(weft_loader *loader, weft_tensor *x) {
    const weft_image_options *o = &loader->options.images;
    weft_context *ctx = loader->ctx;
    const int64_t n = loader->options.batch, image = o->channels * o->rows * o->columns, all = n * image;
    weft_tensor *column = along(ctx, 3, o->columns);
    weft_tensor *mirrored = weft_sub(whole(ctx, o->columns - 1), column);
    column = weft_where(weft_lt(whole(ctx, 0), move_of(loader, MIRRORED)), mirrored, column);
    column = weft_add(column, move_of(loader, RIGHT));
    weft_tensor *row = weft_add(along(ctx, 2, o->rows), move_of(loader, DOWN));
    weft_tensor *seen = weft_mul(inside(ctx, row, o->rows), inside(ctx, column, o->columns));
    weft_tensor *index = weft_add(weft_mul(along(ctx, 0, n), whole(ctx, image)),
                                  weft_mul(along(ctx, 1, o->channels), whole(ctx, o->rows * o->columns)));
    row = weft_mul(clamped(ctx, row, o->rows), whole(ctx, o->columns));
    index = weft_add(index, weft_add(row, clamped(ctx, column, o->columns)));
    x = weft_gather(weft_reshape(x, 1, &all), index, 0);
    return weft_where(weft_lt(whole(ctx, 0), seen), x, weft_zeros_like(x));
}

weft_status weft__images_apply(weft_loader *loader, uint64_t position, weft_tensor **batch) {
    const weft_image_options *o = &loader->options.images;
    const int64_t shape[4] = {loader->options.batch, o->channels, o->rows, o->columns};
    weft_tensor *x = *batch;
    int64_t given[WEFT_MAX_RANK];
    const int rank = weft_rank(x);
    WEFT_TRY(weft_tensor_status(x));
    for (int i = 0; i < rank; i++) given[i] = weft_dim(x, i);
    if (moves(loader)) {
        WEFT_TRY(draw(loader, position));
        x = moved(loader, weft_reshape(x, 4, shape));
    }
    if (weft_dtype_of(x) != WEFT_F32) x = weft_cast(x, WEFT_F32);
    if (loader->options.scale != 0 && loader->options.scale != 1)
        x = weft_mul_scalar(x, loader->options.scale);
    if (o->mean)
        x = weft_div(weft_sub(weft_reshape(x, 4, shape), loader->pixel_mean), loader->pixel_deviation);
    *batch = weft_reshape(x, rank, given);
    return weft_tensor_status(*batch);
}
