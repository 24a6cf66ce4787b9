/* Batches on the device. Decides which samples a batch holds, uploads the data set once, and gathers batches
 * there. Must not know: files (loader_open.c), threads (loader_prefetch.c). Read next: loader_prefetch.c. */
#include <stdlib.h>
#include <string.h>

#include <weft/ops.h>

#include "base/option.h"
#include "compiler/profile/profile.h"
#include "data/loader.h"
#include "data/parse.h"
#include "data/tokens.h"
#include "device/device.h"
#include "graph/graph.h"

#define DEVICE_BYTES (INT64_C(1) << 30)

/* Random streams: the order of rows, and the starts of windows. */
#define STREAM_ROWS    UINT64_C(0x726f77732e776566)
#define STREAM_WINDOWS UINT64_C(0x77696e646f77732e)

/* ---- which samples ---- */

/* Returns a random integer below `below`. It is the upper half of the product of `below` and 64 random bits;
 * the bias is below 2^-32. */
static int64_t random_below(const weft_loader *loader, uint64_t sample, int64_t below) {
    uint64_t seed = loader->options.seed;
    uint64_t bits = (uint64_t)weft__random_u32(seed, STREAM_WINDOWS, 0, 2 * sample) << 32 |
                    weft__random_u32(seed, STREAM_WINDOWS, 0, 2 * sample + 1);
    uint64_t low = bits & UINT32_MAX, high = bits >> 32, n = (uint64_t)below;
    uint64_t middle =
        (low * (n & UINT32_MAX) >> 32) + (high * (n & UINT32_MAX) & UINT32_MAX) + low * (n >> 32);
    return (int64_t)(high * (n >> 32) + (high * (n & UINT32_MAX) >> 32) + (middle >> 32));
}

int64_t weft__loader_count(const weft_loader *loader, uint64_t position) {
    const int64_t most = loader->options.batch * (loader->text ? loader->context : 1);
    if (loader->text && !loader->options.in_order) return most;
    const int64_t all = loader->text ? loader->tokens - 1 : loader->samples,
                  left = all - (int64_t)(position % (uint64_t)loader->batches) * most;
    return left < 0 ? 0 : weft__smaller(left, most);
}

/* Samples of text are windows. Their starts depend on the options:
 *
 *     streams    sample b reads part b of the text, window after window
 *     in_order   window after window, once through the text
 *     otherwise  random windows
 *
 * Samples of arrays are rows, in order or by a random permutation that depends on the epoch. */
int64_t weft__loader_starts(const weft_loader *loader, uint64_t position, int64_t *starts) {
    const weft_loader_options *o = &loader->options;
    uint64_t batches = (uint64_t)loader->batches, epoch = position / batches;
    const int64_t first = (int64_t)(position % batches) * o->batch;
    for (int64_t b = 0; b < o->batch; b++) {
        int64_t sample = first + b;
        if (loader->text && o->streams) {
            starts[b] = b * (loader->tokens / o->batch) + (int64_t)(position % batches) * loader->context;
            continue;
        }
        if (loader->text && !o->in_order) {
            uint64_t number = position * (uint64_t)o->batch + (uint64_t)b;
            starts[b] = random_below(loader, number, loader->tokens - loader->context);
            continue;
        }
        if (sample >= loader->samples) sample = 0; /* padding */
        if (loader->text) {
            starts[b] = sample * loader->context;
            continue;
        }
        if (!o->in_order && o->batch != loader->samples) /* a batch of all samples needs no order */
            sample = (int64_t)weft__permute(o->seed, STREAM_ROWS + epoch, (uint64_t)loader->samples,
                                            (uint64_t)sample);
        starts[b] = sample;
    }
    return weft__loader_count(loader, position);
}

/* Copies windows of mapped tokens. Past the end of the text its last token repeats. */
static weft_status copy_mapped(const weft_loader *loader, const weft__side *side, const int64_t *starts,
                               int32_t *to) {
    const size_t context = (size_t)loader->context;
    for (int64_t b = 0; b < loader->options.batch; b++, to += context) {
        int64_t from = starts[b] + (int64_t)(side->first / side->stride);
        size_t left = from < loader->tokens ? (size_t)(loader->tokens - from) : 0;
        size_t whole = left < context ? left : context;
        if (whole) WEFT_TRY(weft__tokens_get(loader->mapped, loader->mapped_first + from, whole, to));
        for (size_t at = whole; at < context; at++)
            WEFT_TRY(weft__tokens_get(loader->mapped, loader->mapped_first + loader->tokens - 1, 1, to + at));
    }
    return WEFT_OK;
}

weft_status weft__loader_copy(const weft_loader *loader, const weft__side *side, const int64_t *starts,
                              void *out) {
    if (loader->mapped) return copy_mapped(loader, side, starts, out);
    char *to = out;
    const char *base = side->array.data;
    size_t end = side->array.bytes;
    for (int64_t b = 0; b < loader->options.batch; b++, to += side->bytes) {
        size_t from = side->first + (size_t)starts[b] * side->stride;
        size_t whole = from >= end ? 0 : end - from < side->bytes ? end - from : side->bytes;
        memcpy(to, base + from, whole);
        for (size_t at = whole; at < side->bytes; at += side->stride) /* past the end of a text */
            memcpy(to + at, base + end - side->stride, side->stride);
    }
    return WEFT_OK;
}

/* ---- making ---- */

/* Returns the number of batches of an epoch. No step spans two epochs: the last step gets empty batches or,
 * with drop_last, is left out. */
static int64_t epoch_batches(const weft_loader *loader) {
    const int64_t batch = loader->options.batch, of = (int64_t)loader->of,
                  all = loader->samples / batch + (loader->samples % batch > 0);
    if (loader->text || !loader->options.drop_last) return weft__ceil_div(all, of) * of;
    const int64_t whole = loader->samples / batch;
    return whole < of ? whole : whole - whole % of;
}

/* Checks an array of the caller and sets its size in bytes. The caller gives the right size or 0. */
static weft_status loader_measure(weft_context *ctx, const char *what, weft_array *array) {
    int64_t count;
    if (!weft__array_elements(array, &count))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: dtype, shape and bytes (%zu) of the %s do not fit together", array->bytes,
                          what);
    array->bytes = (size_t)count * weft_dtype_size(array->dtype);
    return WEFT_OK;
}

/* Converts i64 to i32. The result is an array that the loader owns. */
static weft_status narrow(weft_context *ctx, const char *what, weft__side *side) {
    WEFT_TRY(loader_measure(ctx, what, &side->array));
    if (side->array.dtype != WEFT_I64) return WEFT_OK;
    weft_array made;
    WEFT_TRY(weft_array_new(ctx, WEFT_I32, side->array.rank, side->array.shape, &made));
    const int64_t *from = side->array.data;
    int32_t *to = made.data;
    for (size_t i = 0; i < made.bytes / sizeof *to; i++) {
        if (from[i] < INT32_MIN || from[i] > INT32_MAX) {
            weft_array_free(ctx, &made);
            return weft__fail(ctx, WEFT_ERR_INDEX,
                              "loader: element %zu of the %s is %lld, which does not fit i32", i, what,
                              (long long)from[i]);
        }
        to[i] = (int32_t)from[i];
    }
    weft_array_free(ctx, &side->owned);
    side->owned = side->array = made;
    return WEFT_OK;
}

/* Computes the layout of a batch of rows of an array. */
static weft_status lay_rows(weft_loader *loader, weft__side *side) {
    int64_t rows = side->array.shape[0];
    side->rank = side->array.rank;
    memcpy(side->shape, side->array.shape, sizeof side->array.shape);
    side->shape[0] = loader->options.batch;
    side->bytes = side->stride = rows > 0 ? side->array.bytes / (size_t)rows : 0;
    int64_t total;
    if (!weft__mul((int64_t)side->bytes, loader->options.batch, &total))
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: a batch of %lld samples is too large",
                          (long long)loader->options.batch);
    return WEFT_OK;
}

static weft_status check_classes(weft_loader *loader) {
    const weft_array *y = &loader->y.array;
    int64_t classes = loader->options.classes;
    if (classes == 0 || !y->data) return WEFT_OK;
    if (y->dtype != WEFT_I32 && y->dtype != WEFT_U8)
        return weft__fail(loader->ctx, WEFT_ERR_DTYPE, "loader: classes must be i32, i64 or u8, not %s",
                          weft_dtype_name(y->dtype));
    size_t count = y->bytes / weft_dtype_size(y->dtype);
    for (size_t i = 0; i < count; i++) {
        int32_t value = y->dtype == WEFT_I32 ? ((const int32_t *)y->data)[i] : ((const uint8_t *)y->data)[i];
        if (value < 0 || value >= classes)
            return weft__fail(loader->ctx, WEFT_ERR_INDEX,
                              "loader: the class of sample %zu is %d, but classes are 0 to %lld",
                              i * (size_t)y->shape[0] / count, value, (long long)classes - 1);
    }
    return WEFT_OK;
}

/* Prepares batches that are gathered in host memory. A batch goes to the device in one upload:
 *
 *     | x | up to 63 bytes of padding | y, aligned to 64 bytes | */
static weft_status make_gathered(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const int64_t rows = loader->options.batch, x = rows * (int64_t)loader->x.bytes, border = -x & 63;
    const int64_t y = loader->y.rank > 0 ? rows * (int64_t)loader->y.bytes : 0;
    int64_t bytes;
    if (!weft__add(x, border, &bytes) || !weft__add(bytes, y, &bytes))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "loader: a batch of %lld samples is too large",
                          (long long)rows);
    loader->y.at = (size_t)(x + border);
    loader->gathered = weft_variable_new(ctx, "batch", WEFT_U8, 1, &bytes, NULL);
    WEFT_TRY(weft_tensor_status(loader->gathered));
    loader->gathered->storage->turns = ctx->device->overlaps;
    weft__side *sides[] = {&loader->x, &loader->y};
    for (int i = 0; i < 2; i++) {
        weft__side *side = sides[i];
        if (side->rank == 0) continue;
        side->batch = weft_variable_new(ctx, "batch", side->array.dtype, side->rank, side->shape, NULL);
        WEFT_TRY(weft_tensor_status(side->batch));
        weft__variable_share(side->batch, loader->gathered, side->at);
    }
    return weft__prefetch_new(loader, &loader->prefetch);
}

/* Prepares batches that are gathered on the device: uploads each whole array, and makes a variable for the
 * indices of a batch's samples. */
static weft_status make_resident(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    weft__side *sides[] = {&loader->x, &loader->y};
    for (int i = 0; i < 2; i++) {
        weft__side *side = sides[i];
        if (side->rank == 0 || (loader->text && i == 1)) continue;
        void *data = side->array.data;
        if (loader->mapped) {
            data = weft__alloc(ctx, side->array.bytes);
            if (!data) return weft__fail_oom(ctx, side->array.bytes, "the tokens");
            const weft_status status =
                weft__tokens_get(loader->mapped, loader->mapped_first, (size_t)loader->tokens, data);
            if (status != WEFT_OK) {
                weft__free(ctx, data);
                return weft__fail(ctx, status, "%s", weft_last_error(NULL));
            }
        }
        side->all = weft_keep(weft_from(ctx, side->array.dtype, side->array.rank, side->array.shape, data));
        if (loader->mapped) weft__free(ctx, data);
        WEFT_TRY(weft_tensor_status(side->all));
    }
    loader->index_host = weft__array(ctx, (size_t)loader->options.batch, sizeof *loader->index_host);
    if (!loader->index_host) return weft__fail_oom(ctx, (size_t)loader->options.batch * 4, "the loader");
    loader->index = weft_variable_new(ctx, "index", WEFT_I32, loader->text ? 2 : 1,
                                      (int64_t[]){loader->options.batch, 1}, NULL);
    return weft_tensor_status(loader->index);
}

/* Uploads the data set if it is small enough. Otherwise the prefetch thread gathers batches in host
 * memory. */
static weft_status make_slots(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const int64_t batch = loader->options.batch;
    const int64_t limit = loader->options.device_bytes ? loader->options.device_bytes : DEVICE_BYTES;
    const size_t bytes = loader->x.array.bytes + (loader->text ? 0 : loader->y.array.bytes);
    const int64_t reach = loader->text ? loader->tokens : loader->samples;
    loader->starts = weft__array(ctx, (size_t)batch, sizeof *loader->starts);
    if (!loader->starts) return weft__fail_oom(ctx, (size_t)batch * sizeof *loader->starts, "the loader");
    if (loader->padded > 0) {
        if (batch > INT32_MAX / loader->padded)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "loader: a batch of %lld is too large",
                              (long long)batch);
        loader->count = weft_keep(weft_scalar_of(ctx, WEFT_I32, 0));
        WEFT_TRY(weft_tensor_status(loader->count));
    }
    const bool resident =
        !weft__loader_in_files(loader) && limit >= 0 && bytes <= (size_t)limit && reach <= INT32_MAX;
    return resident ? make_resident(loader) : make_gathered(loader);
}

static weft_status loader_start(weft_context *ctx, const weft_loader_options *options, weft_loader **out) {
    if (!options || options->batch < 1)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: options.batch must say how many samples a batch has");
    if (weft__value_or(options->scale, 1) == 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: options.scale must not be the number 0: all inputs would be 0");
    if (options->classes < 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: options.classes is %lld; give the number of classes, or 0",
                          (long long)options->classes);
    weft_loader *loader = weft__zalloc(ctx, sizeof *loader);
    if (!loader) return weft__fail_oom(ctx, sizeof *loader, "a loader");
    loader->ctx = ctx;
    loader->options = *options;
    if (options->seed == 0) loader->options.seed = ctx->random.seed;
    weft__loader_share(loader, 0);
    *out = loader;
    return WEFT_OK;
}

static weft_status loader_finish(weft_loader **out, weft_status status) {
    if (status == WEFT_OK) status = weft__images_check(*out);
    if (status == WEFT_OK) status = make_slots(*out);
    if (status == WEFT_OK) status = weft__images_new(*out);
    if (status == WEFT_OK) status = weft__loader_numbers_new(*out);
    if (status == WEFT_OK) status = weft__loader_skip_new(*out);
    if (status == WEFT_OK) return WEFT_OK;
    weft_loader_free(*out);
    *out = NULL;
    return status;
}

/* Checks how long the samples are. */
static weft_status check_lengths(const weft_loader *loader) {
    const int32_t *lengths = loader->options.lengths;
    const int64_t most = loader->x.rank > 1 ? loader->x.shape[loader->x.rank - 1] : 0;
    for (int64_t i = 0; lengths && i < loader->samples; i++)
        if (loader->x.rank < 2 || lengths[i] < 1 || lengths[i] > most)
            return weft__fail(
                loader->ctx, WEFT_ERR_ARGUMENT,
                "loader: the length of sample %lld is %d; inputs must be (N, ..., T), and lengths 1 "
                "to T",
                (long long)i, lengths[i]);
    return WEFT_OK;
}

static weft_status take_arrays(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const weft_loader_options *o = &loader->options;
    WEFT_TRY(weft__loader_in_files(loader) ? weft__loader_check_files(loader)
                                           : narrow(ctx, "inputs", &loader->x));
    if (loader->y.array.data) WEFT_TRY(narrow(ctx, "targets", &loader->y));
    loader->samples = loader->x.array.shape[0];
    loader->batches = epoch_batches(loader);
    if (loader->batches == 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: %lld samples do not fill a batch of %lld: use a smaller batch",
                          (long long)loader->samples, (long long)o->batch);
    loader->padded = loader->samples / o->batch < loader->batches;
    WEFT_TRY(lay_rows(loader, &loader->x));
    if (loader->y.array.data) WEFT_TRY(lay_rows(loader, &loader->y));
    WEFT_TRY(check_lengths(loader));
    return check_classes(loader);
}

weft_status weft_loader_new(weft_context *ctx, const weft_array *inputs, const weft_array *targets,
                            const weft_loader_options *options, weft_loader **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, inputs);
    WEFT_TRY(loader_start(ctx, options, out));
    weft_status status = WEFT_OK;
    if ((!inputs->data && !weft__loader_in_files(*out)) || inputs->rank < 1) {
        status = weft__fail(ctx, WEFT_ERR_ARGUMENT, "loader: inputs must be an array of samples, (N, ...)");
    } else if (targets && (targets->rank < 1 || targets->shape[0] != inputs->shape[0])) {
        status =
            weft__fail(ctx, WEFT_ERR_SHAPE, "loader: %lld inputs, but %lld targets",
                       (long long)inputs->shape[0], targets->rank < 1 ? 1LL : (long long)targets->shape[0]);
    } else {
        (*out)->x.array = *inputs;
        if (targets) (*out)->y.array = *targets;
        status = take_arrays(*out);
    }
    return loader_finish(out, status);
}

/* Prepares windows of tokens. If ids is NULL, the tokens are the mapped ones of the loader. */
static weft_status take_tokens(weft_loader *loader, const int32_t *ids, size_t count, int64_t context) {
    int64_t n = (int64_t)count, batch = loader->options.batch, total;
    if (context < 1 || context > n - 1)
        return weft__fail(
            loader->ctx, WEFT_ERR_ARGUMENT,
            "the text has %lld tokens, too few for windows of %lld: use a longer text or a shorter context",
            (long long)n, (long long)context);
    if (!weft__mul(batch, context, &total) || !weft__mul(total, 8, &total))
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT, "loader: %lld windows of %lld are too many",
                          (long long)batch, (long long)context);
    weft_array array = {WEFT_I32, 1, {n}, NULL, count * sizeof *ids};
    memcpy(&array.data, &ids, sizeof ids); /* the loader never writes to the data of an array */
    loader->text = true;
    loader->options.images.files = NULL;
    loader->options.images.members = NULL;
    loader->options.lengths = NULL;
    loader->context = context;
    loader->tokens = n;
    loader->samples = loader->options.in_order ? (n - 2) / context + 1 : n / context;
    loader->batches = epoch_batches(loader);
    if (loader->options.streams) {
        loader->options.in_order = false;
        loader->batches = (n / batch - 1) / context;
        loader->samples = loader->batches * batch;
        if (loader->batches < 1)
            return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                              "the text has %lld tokens, too few for %lld streams with windows of %lld: use "
                              "a longer text, a smaller batch or a shorter context",
                              (long long)n, (long long)batch, (long long)context);
    }
    loader->padded = loader->options.in_order ? context : 0;
    weft__side side = {.array = array,
                       .stride = sizeof *ids,
                       .bytes = (size_t)context * sizeof *ids,
                       .rank = 2,
                       .shape = {batch, context}};
    loader->x = loader->y = side;
    loader->y.first = sizeof *ids;
    return WEFT_OK;
}

weft_status weft_loader_mapped(weft_context *ctx, const weft_tokens *tokens, int64_t first, int64_t count,
                               int64_t context, const weft_loader_options *options, weft_loader **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, tokens);
    WEFT_TRY(loader_start(ctx, options, out));
    weft_status status = WEFT_OK;
    if (first < 0 || count < 0 || first > weft_tokens_count(tokens) - count) {
        status = weft__fail(ctx, WEFT_ERR_ARGUMENT, "loader: the files do not have %lld tokens from %lld on",
                            (long long)count, (long long)first);
    } else {
        (*out)->mapped = tokens;
        (*out)->mapped_first = first;
        status = take_tokens(*out, NULL, (size_t)count, context);
    }
    return loader_finish(out, status);
}

weft_status weft_loader_tokens(weft_context *ctx, const int32_t *ids, size_t count, int64_t context,
                               const weft_loader_options *options, weft_loader **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(NULL, ctx);
    WEFT_NEED_ARRAY(ctx, ids, count);
    WEFT_TRY(loader_start(ctx, options, out));
    return loader_finish(out, take_tokens(*out, ids, count, context));
}

void weft_loader_free(weft_loader *loader) {
    if (!loader) return;
    weft_context *ctx = loader->ctx;
    weft__prefetch_free(loader->prefetch);
    weft__side *sides[] = {&loader->x, &loader->y};
    for (int i = 0; i < 2; i++) {
        weft_free(sides[i]->all);
        weft_free(sides[i]->batch);
        weft_array_free(ctx, &sides[i]->owned);
    }
    weft__images_free(loader);
    weft__loader_numbers_free(loader);
    weft__free(ctx, loader->real);
    weft_free(loader->gathered);
    weft_free(loader->index);
    weft_free(loader->count);
    weft_free(loader->divisor);
    weft__free(ctx, loader->starts);
    weft__free(ctx, loader->index_host);
    weft__free(ctx, loader);
}

/* ---- batches ---- */

/* Makes the mask of a batch. Padding is always at the end: real samples come first, and in the last window of
 * a text its real tokens come first. */
static weft_tensor *mask_of(weft_loader *loader, int64_t count) {
    const int64_t rows = loader->options.batch, elements = rows * loader->padded;
    if (!loader->count || weft_set_scalar(loader->count, (double)count) != WEFT_OK) return NULL;
    weft_tensor *mask = weft_lt(weft_iota(loader->ctx, WEFT_I32, 1, &elements), loader->count);
    if (loader->text) mask = weft_reshape(mask, 2, (int64_t[]){rows, loader->padded});
    return weft_cast(mask, WEFT_F32);
}

/* Gathers the rows of side->all at the index. For text, gathers the windows that begin `ahead` tokens after
 * the index. */
static weft_tensor *loader_gather(weft_loader *loader, const weft__side *side, int ahead) {
    if (!loader->text) return weft_gather(side->all, loader->index, 0);
    int64_t shape[2] = {1, loader->context};
    weft_tensor *places = weft_add(loader->index, weft_iota(loader->ctx, WEFT_I32, 2, shape));
    if (ahead > 0) places = weft_add(places, weft_full_i64(loader->ctx, WEFT_I32, 0, NULL, ahead));
    if (loader->options.in_order)
        places = weft_minimum(places, weft_full_i64(loader->ctx, WEFT_I32, 0, NULL, loader->tokens - 1));
    return weft_gather(side->all, places, 0);
}

static weft_status get_gathered(weft_loader *loader, uint64_t position, weft_batch *batch) {
    const void *bytes = weft__prefetch_get(loader->prefetch, position, &batch->count);
    if (!bytes) return weft_last_status(loader->ctx);
    weft__storage_turn(loader->gathered->storage);
    const weft_status status = weft_write(loader->gathered, bytes, (size_t)weft_numel(loader->gathered));
    if (status != WEFT_OK) weft__storage_turn(loader->gathered->storage); /* the last batch is still valid */
    WEFT_TRY(status);
    batch->x = loader->x.batch;
    batch->y = loader->y.batch;
    return WEFT_OK;
}

static weft_status get_on_device(weft_loader *loader, uint64_t position, weft_batch *batch) {
    size_t rows = (size_t)loader->options.batch;
    bool same = loader->indexed;
    if (!loader->text && loader->options.batch == loader->samples && loader->batches == 1) {
        batch->count = loader->samples;
        batch->x = loader->x.all;
        batch->y = loader->y.all;
        return WEFT_OK;
    }
    batch->count = weft__loader_starts(loader, position, loader->starts);
    for (size_t b = 0; b < rows; b++) {
        same = same && loader->index_host[b] == (int32_t)loader->starts[b];
        loader->index_host[b] = (int32_t)loader->starts[b];
    }
    loader->indexed = same; /* the index on the device is invalid until weft_write succeeds */
    if (!same) WEFT_TRY(weft_write(loader->index, loader->index_host, rows * sizeof(int32_t)));
    loader->indexed = true;
    batch->x = loader_gather(loader, &loader->x, 0);
    if (loader->y.rank > 0)
        batch->y = loader_gather(loader, loader->text ? &loader->x : &loader->y, loader->text);
    return WEFT_OK;
}

/* The smallest size from `length` on of 16, 24, 32, 48, 64, 96, ..., at most `most`. */
static int64_t size_for(int64_t length, int64_t most) {
    int64_t size = 16;
    while (size < length) size = size % 3 == 0 ? size / 3 * 4 : size / 2 * 3;
    return size < most ? size : most;
}

/* Leaves out the ends of the samples, where none of the batch has anything. */
static void cut_samples(weft_loader *loader, uint64_t position, weft_batch *batch) {
    int64_t longest = 1;
    weft__loader_starts(loader, position, loader->starts);
    for (int64_t b = 0; b < loader->options.batch; b++) {
        const int64_t length = loader->options.lengths[loader->starts[b]];
        if (length > longest) longest = length;
    }
    loader->uncut = batch->x;
    batch->x = weft_narrow(batch->x, -1, 0, size_for(longest, loader->x.shape[loader->x.rank - 1]));
}

static weft_status get(weft_loader *loader, uint64_t position, weft_batch *batch) {
    *batch = (weft_batch){.epoch = (int64_t)(position / (uint64_t)loader->batches)};
    WEFT_TRY(loader->prefetch ? get_gathered(loader, position, batch)
                              : get_on_device(loader, position, batch));
    batch->weight = (double)batch->count;
    if (!loader->weights.batch) batch->mask = mask_of(loader, batch->count);
    WEFT_TRY(weft__loader_numbers_get(loader, position, batch));
    if (loader->real) weft__loader_skip_apply(loader, position, batch);
    if (loader->options.lengths) cut_samples(loader, position, batch);
    if (loader->options.images.channels) {
        WEFT_TRY(weft__images_apply(loader, position, batch));
    } else if (loader->options.scale != 0) {
        if (weft_dtype_of(batch->x) != WEFT_F32) batch->x = weft_cast(batch->x, WEFT_F32);
        if (loader->options.scale != 1) batch->x = weft_mul_scalar(batch->x, loader->options.scale);
    }
    if (loader->reproduces) batch->y = batch->x;
    WEFT_TRY(weft_tensor_status(batch->x));
    if (batch->y) WEFT_TRY(weft_tensor_status(batch->y));
    return batch->mask ? weft__loader_divisor_get(loader, position, batch) : WEFT_OK;
}

weft_status weft_loader_get(weft_loader *loader, uint64_t position, weft_batch *batch) {
    WEFT_NEED(NULL, loader);
    WEFT_NEED(loader->ctx, batch);
    weft__span span = weft__profile_enter(loader->ctx, WEFT__DOING_DATA);
    weft_status status = get(loader, position, batch);
    weft__profile_leave(loader->ctx, span);
    return status;
}

/* ---- queries ---- */

int64_t weft_loader_batches(const weft_loader *loader) { return loader ? loader->batches : 0; }
int64_t weft_loader_samples(const weft_loader *loader) { return loader ? loader->samples : 0; }
int64_t weft_loader_batch_size(const weft_loader *loader) { return loader ? loader->options.batch : 0; }
bool weft_loader_on_device(const weft_loader *loader) { return loader && !loader->prefetch; }

int weft_loader_sample_shape(const weft_loader *loader, int64_t shape[WEFT_ARRAY_MAX_RANK]) {
    if (!loader) return 0;
    for (int i = 1; shape && i < loader->x.rank; i++) shape[i - 1] = loader->x.shape[i];
    return loader->x.rank - 1;
}
