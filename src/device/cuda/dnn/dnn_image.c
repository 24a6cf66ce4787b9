/* Convolutions by cuDNN. Each problem has a plan, which is stored in memory and on disk. A call executes the
 * plan instead of launches. All else is left to Weft's own templates, and a line in the log says why. f32
 * stays f32: engines that round before they multiply are used only if the context allows TF32.
 * Must not know: graphs of operations. Read next: dnn_convolution.c, dnn_heavy.c. */
#include <stdio.h>

#include "device/cuda/dnn/dnn_choice.h"
#include "device/cuda/dnn/dnn_convolution.h"
#include "device/cuda/dnn/dnn_heavy.h"
#include "device/gpu/driver/run.h"

/* A problem and its plan. */
typedef struct weft_dnn_image {
    weft_call call;
    weft_hash key;
    weft_dnn_convolution what;
    weft_dnn_plan plan; /* without one, the template computes it */
} weft_dnn_image;

/* For each direction, the ids (1 x, 2 w, 3 y) of the operands. The last one is written. */
static const int ids[3][3] = {
    [WEFT_CONV_FORWARD] = {1, 2, 3}, [WEFT_CONV_INPUT] = {3, 2, 1}, [WEFT_CONV_WEIGHT] = {1, 3, 2}};

static weft_dnn_convolution convolution_of(const weft_heavy_conv *c, bool tf32) {
    weft_dnn_convolution to = {.pass = (weft_conv_pass)c->pass,
                               .dtype = c->dtype,
                               .tf32 = tf32 && c->dtype == WEFT_F32,
                               .n = c->n,
                               .height = c->x[0],
                               .width = c->x[1],
                               .c = c->groups * c->in,
                               .k = c->groups * c->out,
                               .r = c->size[0],
                               .s = c->size[1],
                               .groups = c->groups};
    for (int d = 0; d < 2; d++)
        to.stride[d] = c->stride[d], to.padding[d] = c->padding[d], to.dilation[d] = c->dilation[d];
    return to;
}

/* Returns whether y has the extents that cuDNN computes from x. They differ for the gradient of an input
 * whose last rows are in no window. */
static bool extents_fit(const weft_heavy_conv *c) {
    for (int d = 0; d < 2; d++) {
        const int64_t span = c->dilation[d] * (c->size[d] - 1) + 1;
        if (c->y[d] != (c->x[d] + 2 * c->padding[d] - span) / c->stride[d] + 1) return false;
    }
    return c->n > 0;
}

bool weft__dnn_suits_convolution(const weft_heavy_conv *c) { return c->dtype != WEFT_F64 && extents_fit(c); }

static CUresult dnn_image_run(weft__cuda *d, const weft_call *call, void *const *addresses, CUstream stream) {
    const weft_dnn_image *w = (const weft_dnn_image *)call;
    char message[WEFT_DNN_MESSAGE];
    int64_t names[3];
    void *values[4];
    (void)stream; /* it is the stream of the handle */
    for (int i = 0; i < 3; i++) names[i] = ids[w->what.pass][i];
    for (int i = 0; i < 4; i++) values[i] = (void *)(uintptr_t) * (const CUdeviceptr *)addresses[i];
    if (!weft__dnn_execute(weft__dnn_of(d)->card.handle, &w->plan, 3, names, values, values[3], message))
        return 0;
    snprintf(d->said, sizeof d->said, "cuDNN: %.190s", message);
    return CUDA_ERROR_UNKNOWN;
}

static weft_hash key_of(const weft_dnn_convolution *what, bool fast) {
    const int64_t facts[] = {what->pass,        what->dtype,       what->tf32,
                             what->n,           what->height,      what->width,
                             what->c,           what->k,           what->r,
                             what->s,           what->groups,      what->stride[0],
                             what->stride[1],   what->padding[0],  what->padding[1],
                             what->dilation[0], what->dilation[1], fast};
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, "convolution");
    weft__hash_bytes(&key, facts, sizeof facts);
    return key;
}

static void dnn_image_describe(weft_dnn_graph *graph, const void *what) {
    weft__dnn_convolution_graph(graph, what);
}

static void dnn_image_plan(weft__cuda *d, weft_dnn_image *w, const char *path) {
    static const char *const names[] = {"convolution", "a convolution's gradient with respect to its input",
                                        "a convolution's gradient with respect to its weight"};
    static const char *const short_names[] = {"", " dx", " dw"};
    const weft_dnn_convolution *c = &w->what;
    const int64_t h = weft__dnn_convolution_extent(c, 0), v = weft__dnn_convolution_extent(c, 1);
    const size_t size = weft_dtype_size((weft_dtype)c->dtype);
    const size_t counts[3] = {(size_t)(c->n * c->height * c->width * c->c),
                              (size_t)(c->k * c->r * c->s * (c->c / c->groups)),
                              (size_t)(c->n * h * v * c->k)};
    weft_dnn_problem problem = {
        .key = weft__dnn_key(d),
        .request = {.workspace = weft__dnn_memory(d), .notes = weft__dnn_convolution_notes(c)},
        .describe = dnn_image_describe,
        .what = c,
        .work = (double)counts[2] * (double)(c->r * c->s) * (double)(c->c / c->groups),
        .f16 = c->dtype == WEFT_F16};
    char message[WEFT_DNN_MESSAGE];
    if (d->fast) problem.request.notes &= ~(1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    weft__hash_bytes(&problem.key, &w->key, sizeof w->key);
    snprintf(problem.name, sizeof problem.name, "convolution%s %s %lldx%lldx%lldx%lld %lldx%lld %lld",
             short_names[c->pass], weft_dtype_name((weft_dtype)c->dtype), (long long)c->n, (long long)c->c,
             (long long)c->height, (long long)c->width, (long long)c->r, (long long)c->s, (long long)c->k);
    for (int i = 0; i < 3; i++) weft__dnn_problem_add(&problem, i + 1, counts[i] * size, size);
    const bool done = weft__dnn_choose(d, &problem, &w->plan, message);
    if (!done)
        weft__log(d->gpu.base.ctx, WEFT_LOG_INFO,
                  "%s: %s of %lld x %lld x %lld x %lld by %lld x %lld to %lld channels%s%s runs on Weft's "
                  "own kernel, not "
                  "cuDNN's: %s",
                  d->gpu.base.name, names[c->pass], (long long)c->n, (long long)c->c, (long long)c->height,
                  (long long)c->width, (long long)c->r, (long long)c->s, (long long)c->k,
                  path && path[0] ? ", " : "", path ? path : "", message);
}

/* Returns the problem of a convolution, or NULL when memory is short. */
static weft_dnn_image *image_of(weft__cuda *d, const weft_dnn_convolution *what, const char *path) {
    weft_context *ctx = d->gpu.base.ctx;
    weft_dnn *dnn = weft__dnn_of(d);
    const weft_hash key = key_of(what, d->fast);
    for (size_t i = 0; i < dnn->n_images; i++)
        if (weft__hash_equal(dnn->images[i]->key, key)) return dnn->images[i];
    if (!weft__grow(ctx, &dnn->images, &dnn->images_capacity, dnn->n_images, sizeof(weft_dnn_image *)))
        return NULL;
    weft_dnn_image *w = weft__zalloc(ctx, sizeof *w);
    if (!w) return NULL;
    *w = (weft_dnn_image){.call = {.run = dnn_image_run}, .key = key, .what = *what};
    dnn->images[dnn->n_images++] = w;
    dnn_image_plan(d, w, path);
    return w;
}

weft_status weft__dnn_offer_convolution(weft__cuda *d, weft_launches *launches, const weft_heavy *heavy) {
    static const char *const names[] = {"cudnn_convolution", "cudnn_convolution_input",
                                        "cudnn_convolution_weight"};
    const weft_heavy_conv *c = &heavy->as.conv;
    weft_argument arguments[4];
    if (!weft__dnn_suits_convolution(c)) return WEFT_OK;
    const weft_dnn_convolution what = convolution_of(c, d->gpu.base.tf32);
    weft_dnn_image *w = image_of(d, &what, heavy->path);
    if (!w) return weft__fail_oom(d->gpu.base.ctx, sizeof *w, "cuDNN's part of a program");
    if (!w->plan.descriptor) return WEFT_OK;
    for (int i = 0; i < 3; i++)
        arguments[i] =
            (weft_argument){.kind = WEFT_ARGUMENT_OPERAND, .index = i, .dtype = c->dtype, .written = i == 2};
    arguments[3] = (weft_argument){.kind = WEFT_ARGUMENT_SCRATCH, .dtype = WEFT_F32, .written = true};
    launches->scratch_bytes = w->plan.workspace + 256;
    return weft__launch(launches, &(weft_launch){.name = names[what.pass],
                                                 .call = &w->call,
                                                 .arguments = arguments,
                                                 .n_arguments = 4,
                                                 .groups = {1, 1, 1},
                                                 .items = {1, 1, 1}});
}

void weft__dnn_images_free(weft__cuda *d) {
    const weft_dnn *dnn = weft__dnn_of(d);
    for (size_t i = 0; i < dnn->n_images; i++) {
        weft__dnn_plan_free(&dnn->images[i]->plan);
        weft__free(d->gpu.base.ctx, dnn->images[i]);
    }
    weft__free(d->gpu.base.ctx, dnn->images);
}
