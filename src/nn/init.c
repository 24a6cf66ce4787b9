/* First values of parameters. The host draws them from the Philox stream of (seed, name), straight into their
 * place, when they are first needed. They are the same on every device. Formulas: Glorot and Bengio,
 * "Understanding the difficulty of training deep feedforward neural networks", 2010, eq. 16; He et al.,
 * "Delving deep into rectifiers", 2015, eq. 10 and 14.
 * Must not know: layers. Read next: base/random.c, base/random_fill.c. */
#include <math.h>
#include "base/option.h"
#include "base/random_fill.h"
#include "device/device.h"
#include "nn/module.h"

/* Fan-in and fan-out of a parameter of shape (out, in, rest...). A vector counts as (1, n). */
static void fans(const weft__parameter *p, double *in, double *out) {
    double rest = 1.0;
    for (int i = 2; i < p->rank; i++) rest *= (double)p->shape[i];
    *in = (p->rank >= 2 ? (double)p->shape[1] : p->rank == 1 ? (double)p->shape[0] : 1.0) * rest;
    *out = (p->rank >= 2 ? (double)p->shape[0] : 1.0) * rest;
    if (*in < 1.0) *in = 1.0;
    if (*out < 1.0) *out = 1.0;
}

/* Standard deviation of the Xavier and He initialisers. */
static double deviation(const weft__parameter *p) {
    double in, out, value = p->init.value;
    fans(p, &in, &out);
    if (p->init.kind == WEFT_INIT_XAVIER_UNIFORM || p->init.kind == WEFT_INIT_XAVIER_NORMAL)
        return weft__value_or(value, 1) * sqrt(2.0 / (in + out));
    return sqrt(2.0 / ((1.0 + value * value) * in));
}

typedef enum { FILL, UNIFORM, NORMAL } shape_of_draw;

/* The distribution: the constant *scale, uniform in +-*scale, or normal with deviation *scale. */
static shape_of_draw distribution(const weft__parameter *p, double *scale) {
    double value = p->init.value;
    switch (p->init.kind) {
    case WEFT_INIT_UNIFORM: *scale = weft__value_or(value, 1); return UNIFORM;
    case WEFT_INIT_NORMAL: *scale = weft__value_or(value, 1); return NORMAL;
    case WEFT_INIT_XAVIER_UNIFORM:
    case WEFT_INIT_HE_UNIFORM: *scale = sqrt(3.0) * deviation(p); return UNIFORM;
    case WEFT_INIT_XAVIER_NORMAL:
    case WEFT_INIT_HE_NORMAL: *scale = deviation(p); return NORMAL;
    case WEFT_INIT_ONES: *scale = 1.0; return FILL;
    case WEFT_INIT_CONSTANT: *scale = value; return FILL;
    case WEFT_INIT_DEFAULT:
    case WEFT_INIT_ZEROS: break;
    }
    *scale = 0.0;
    return FILL;
}

static void init_store(weft_dtype dtype, void *out, int64_t i, double value) {
    switch (dtype) {
    case WEFT_F32: ((float *)out)[i] = (float)value; return;
    case WEFT_F64: ((double *)out)[i] = value; return;
    case WEFT_F16: ((uint16_t *)out)[i] = weft_f32_to_f16((float)value); return;
    case WEFT_BF16: ((uint16_t *)out)[i] = weft_f32_to_bf16((float)value); return;
    case WEFT_I8: ((int8_t *)out)[i] = (int8_t)value; return;
    case WEFT_I16: ((int16_t *)out)[i] = (int16_t)value; return;
    case WEFT_I32: ((int32_t *)out)[i] = (int32_t)value; return;
    case WEFT_I64: ((int64_t *)out)[i] = (int64_t)value; return;
    case WEFT_U8: ((uint8_t *)out)[i] = (uint8_t)value; return;
    case WEFT_U16: ((uint16_t *)out)[i] = (uint16_t)value; return;
    case WEFT_U32: ((uint32_t *)out)[i] = (uint32_t)value; return;
    case WEFT_U64: ((uint64_t *)out)[i] = (uint64_t)value; return;
    case WEFT_BOOL: ((bool *)out)[i] = value != 0.0; return;
    case WEFT_C64:
        ((float *)out)[2 * i] = (float)value;
        ((float *)out)[2 * i + 1] = 0.0f;
        return;
    case WEFT_C128:
        ((double *)out)[2 * i] = value;
        ((double *)out)[2 * i + 1] = 0.0;
        return;
    case WEFT_DTYPE_COUNT: return;
    }
}

/* Number of draws for one number. The parts of a complex number are drawn one after the other, as in PyTorch:
 * uniform in +-scale each, or normal with half of the variance each. Changes *dtype to that of the parts. */
static int64_t draws_of_a_number(weft_dtype *dtype, double *scale, shape_of_draw draw) {
    if (!weft_dtype_is_complex(*dtype) || draw == FILL) return 1;
    if (draw == NORMAL) *scale *= sqrt(0.5);
    *dtype = weft__part_dtype(*dtype);
    return 2;
}

typedef struct drawing {
    weft__parameter parameter;
    uint64_t seed, stream;
} drawing;

static void draw_values(weft_context *ctx, const void *with, void *values) {
    const drawing *d = with;
    weft_dtype dtype = d->parameter.dtype;
    double scale;
    shape_of_draw draw = distribution(&d->parameter, &scale);
    int64_t numel = draws_of_a_number(&dtype, &scale, draw);
    for (int i = 0; i < d->parameter.rank; i++) numel *= d->parameter.shape[i];
    if (dtype == WEFT_F32 && draw != FILL) {
        weft__random_fill(draw == NORMAL ? WEFT_RANDOM_NORMAL : WEFT_RANDOM_UNIFORM, d->seed, d->stream,
                          scale, numel, values, ctx->device->threads);
        return;
    }
    for (int64_t i = 0; i < numel; i++) {
        double value = scale;
        if (draw == UNIFORM)
            value =
                scale *
                (2.0 * (double)weft__unit_float(weft__random_u32(d->seed, d->stream, 0, (uint64_t)i)) - 1.0);
        else if (draw == NORMAL)
            value = scale * weft__random_normal(d->seed, d->stream, 0, (uint64_t)i);
        init_store(dtype, values, i, value);
    }
}

weft_tensor *weft__init_variable(weft_context *ctx, const weft__parameter *p, uint64_t stream) {
    if (p->init.kind == WEFT_INIT_ZEROS || ctx->device->computes_nothing)
        return weft_variable_new(ctx, p->full, p->dtype, p->rank, p->shape, NULL);
    double scale;
    if (distribution(p, &scale) != FILL && !weft_dtype_is_float(weft__part_dtype(p->dtype)))
        return weft__poison(ctx, NULL, WEFT_ERR_DTYPE, "%s: a buffer of %s cannot be drawn at random",
                            p->full, weft_dtype_name(p->dtype));
    const drawing d = {*p, ctx->random.seed, stream};
    return weft__variable_filled(ctx, p->full, p->dtype, p->rank, p->shape, draw_values, &d, sizeof d);
}
