/* Positions as numbers: rotary embedding (Su et al., "RoFormer", 2021, eq. 34) and sinusoids (Vaswani et al.,
 * "Attention is all you need", 2017, 3.5). Both are made of other ops. A rotation is one kernel, and its
 * tables of sines and cosines are the same nodes in every layer.
 * Must not know: attention. Read next: nn/attention.c. */
#include "base/option.h"
#include "ops/composite.h"
#include "ops/ops.h"

static weft_tensor *reject_position(const char *name, const char *where, weft_tensor *position) {
    weft_tensor *bad = weft__reject(name, where, &position, 1);
    if (bad || !position) return bad;
    const weft_dtype dtype = weft_dtype_of(position);
    if (dtype == WEFT_I32 || dtype == WEFT_I64) return NULL;
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(position->ctx, where, WEFT_ERR_DTYPE, "%s: position %s must be of i32 or i64", name,
                        weft__tensor_text(position, text));
}

/* The rates base^(-2 i / width), i = 0..width/2-1. */
static weft_tensor *rates(const char *where, weft_context *ctx, int64_t width, double base,
                          weft_dtype dtype) {
    const int64_t pairs = (width + 1) / 2;
    weft_tensor *i = weft_cast_at(where, weft_iota(ctx, WEFT_I32, 1, &pairs), dtype);
    return at_exp(at_mul_scalar(i, -2.0 * log(base) / (double)width));
}

/* Angles: positions (...) times rates (n): (..., n). */
static weft_tensor *angles(const char *where, weft_tensor *position, weft_tensor *rate) {
    if (weft__poisoned(rate)) return rate;
    return at_mul(weft_unsqueeze_at(where, weft_cast_at(where, position, weft_dtype_of(rate)), -1), rate);
}

/* The share of a rate that stays, between 0 (divided by factor) and 1.
 *
 * Llama 3 (Dubey et al. 2024) interpolates by the rotations within the context of the training. YaRN (Peng et
 * al. 2023, eq. 17 to 20, as published models compute it) interpolates by the number of the channel. */
static weft_tensor *share_kept(const char *where, weft_tensor *rate, int64_t width,
                               const weft_rotary_options *o) {
    const double turn = 2 * acos(-1.0), context = (double)o->scaling.context;
    const double slow = o->scaling.slow, fast = o->scaling.fast;
    if (o->scaling.kind == WEFT_ROTARY_LLAMA3) {
        weft_tensor *rotations = at_mul_scalar(rate, context / turn);
        return weft_clamp_at(where, at_mul_scalar(at_add_scalar(rotations, -slow), 1 / (fast - slow)), 0, 1);
    }
    const double per_log = (double)width / (2 * log(o->base));
    const double first = fmax(floor(per_log * log(context / (fast * turn))), 0);
    double last = fmin(ceil(per_log * log(context / (slow * turn))), (double)width - 1);
    if (last == first) last += 0.001;
    weft_tensor *i = weft_cast_at(where, weft_iota(rate->ctx, WEFT_I32, 1, rate->shape), weft_dtype_of(rate));
    weft_tensor *ramp = at_mul_scalar(at_add_scalar(i, -first), 1 / (last - first));
    return at_sub_from(1, weft_clamp_at(where, ramp, 0, 1));
}

/* The rates of `width` rotated channels, scaled for longer texts. */
static weft_tensor *scaled_rates(const char *where, weft_context *ctx, int64_t width,
                                 const weft_rotary_options *o, weft_dtype dtype) {
    weft_tensor *rate = rates(where, ctx, width, o->base, dtype);
    if (o->scaling.kind == WEFT_ROTARY_PLAIN || weft__poisoned(rate)) return rate;
    if (o->scaling.kind == WEFT_ROTARY_LONG)
        return at_div(rate, weft_cast_at(where, o->scaling.divisors, dtype));
    weft_tensor *slower = at_mul_scalar(rate, 1 / o->scaling.factor);
    if (o->scaling.kind == WEFT_ROTARY_LINEAR) return slower;
    return at_add(slower, at_mul(share_kept(where, rate, width, o), at_sub(rate, slower)));
}

/* The positions (T) of the rows of x. */
static weft_tensor *positions_of(const char *where, const weft_tensor *x, weft_tensor *position) {
    weft_tensor *row = weft_iota(x->ctx, WEFT_I32, 1, &x->shape[x->rank - 2]);
    if (!position) return row;
    return position->rank ? position : at_add(weft_cast_at(where, row, weft_dtype_of(position)), position);
}

/* Sets defaults. Returns what is wrong with the options for `width` channels, or NULL. */
static const char *rotary_defaults(weft_rotary_options *o, int64_t width) {
    weft_rotary_scaling *s = &o->scaling;
    const bool yarn = s->kind == WEFT_ROTARY_YARN, bounded = yarn || s->kind == WEFT_ROTARY_LLAMA3;
    o->base = weft__value_or(o->base, 10000);
    if (o->channels == 0) o->channels = width;
    if (!(o->base > 0 && o->base < (double)INFINITY)) return "base must be positive";
    if (o->channels < 2 || o->channels % 2 || o->channels > width)
        return "channels must be even, and not more than a head has";
    if ((unsigned)s->kind > WEFT_ROTARY_LONG) return "scaling.kind is unknown";
    if (s->kind == WEFT_ROTARY_PLAIN) return NULL;
    s->magnitude = weft__value_or(s->magnitude, yarn && s->factor > 1 ? 0.1 * log(s->factor) + 1 : 1);
    if (!(s->magnitude > 0)) return "scaling.magnitude must be positive";
    if (s->kind == WEFT_ROTARY_LONG) {
        const weft_tensor *d = s->divisors;
        return d && d->rank == 1 && d->shape[0] == o->channels / 2 && weft_dtype_of(d) == WEFT_F32
                   ? NULL
                   : "scaling.divisors must be f32, and one for each pair of channels";
    }
    s->slow = weft__value_or(s->slow, 1);
    s->fast = weft__value_or(s->fast, yarn ? 32 : 4);
    if (!(s->factor > 0 && s->factor < (double)INFINITY)) return "scaling.factor must be positive";
    if (bounded && (s->context < 1 || !(s->slow > 0 && s->fast > s->slow) || o->base <= 1))
        return "scaling.context must be positive, slow less than fast, and base more than 1";
    return NULL;
}

static weft_tensor *reject_rotary(const char *where, weft_tensor *x, weft_tensor *position,
                                  weft_rotary_options *o) {
    weft_tensor *bad = reject_float("rotary", where, x);
    if (!bad && x && position) bad = reject_position("rotary", where, position);
    if (!bad && x && position) bad = weft__reject("rotary", where, (weft_tensor *[]){x, position}, 2);
    if (bad || !x) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (x->rank < 2 || x->rank >= WEFT_MAX_RANK || x->shape[x->rank - 1] % 2 != 0)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "rotary: %s is not (..., time, channels) with an even number of channels",
                            weft__tensor_text(x, a));
    if (position && position->rank && (position->rank != 1 || position->shape[0] != x->shape[x->rank - 2]))
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "rotary: position %s must be a scalar, or a vector with one position for each row of %s",
            weft__tensor_text(position, b), weft__tensor_text(x, a));
    if (o->scaling.divisors)
        bad = weft__reject("rotary", where, (weft_tensor *[]){x, o->scaling.divisors}, 2);
    if (bad) return bad;
    const char *wrong = rotary_defaults(o, x->shape[x->rank - 1]);
    return wrong ? weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "rotary: %s", wrong) : NULL;
}

/* The channels of x as pairs: (..., T, 2, D/2), or interleaved (..., T, D/2, 2). */
static weft_tensor *paired(const char *where, weft_tensor *x, bool interleaved) {
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = x->shape[i];
    const int64_t half = shape[x->rank - 1] / 2;
    shape[x->rank - 1] = interleaved ? half : 2;
    shape[x->rank] = interleaved ? 2 : half;
    return weft_reshape_at(where, x, x->rank + 1, shape);
}

/* Rotates the first channels, and leaves the others. */
static weft_tensor *rotate_first(const char *where, weft_tensor *x, weft_tensor *position,
                                 const weft_rotary_options *o) {
    const int64_t rest = x->shape[x->rank - 1] - o->channels;
    weft_tensor *parts[2] = {weft_rotary_at(where, weft_narrow_at(where, x, -1, 0, o->channels), position, o),
                             weft_narrow_at(where, x, -1, o->channels, rest)};
    return weft_concat_at(where, parts, 2, -1);
}

/* Turns each pair: (a, b) becomes (a, b) cos + (-b, a) sin. */
weft_tensor *weft_rotary_at(const char *where, weft_tensor *x, weft_tensor *position,
                            const weft_rotary_options *options) {
    weft_rotary_options o = options ? *options : (weft_rotary_options){0};
    weft_tensor *bad = reject_rotary(where, x, position, &o);
    if (bad || !x) return bad;
    if (o.channels < x->shape[x->rank - 1]) return rotate_first(where, x, position, &o);
    weft_tensor *wide = widen(where, x), *rows = positions_of(where, x, position);
    weft_tensor *angle =
        angles(where, rows, scaled_rates(where, x->ctx, o.channels, &o, weft_dtype_of(wide)));
    const int64_t two = 2, column[2] = {2, 1};
    weft_tensor *sign =
        at_add_scalar(at_mul_scalar(weft_iota(x->ctx, weft_dtype_of(wide), 1, &two), 2.0), -1.0);
    if (!o.interleaved) sign = weft_reshape_at(where, sign, 2, column);
    angle = weft_unsqueeze_at(where, angle, o.interleaved ? -1 : -2);
    weft_tensor *pairs = paired(where, wide, o.interleaved);
    weft_tensor *swapped = weft_flip_at(where, pairs, o.interleaved ? -1 : -2);
    /* A statement of its own: C does not fix the order of arguments, and nodes are recorded in that order. */
    weft_tensor *along = at_mul(pairs, at_cos(angle));
    weft_tensor *y = at_add(along, at_mul(swapped, at_mul(sign, at_sin(angle))));
    if (o.scaling.kind == WEFT_ROTARY_YARN || o.scaling.kind == WEFT_ROTARY_LONG)
        y = at_mul_scalar(y, o.scaling.magnitude);
    return as_dtype(where, weft_reshape_at(where, y, x->rank, x->shape), weft_dtype_of(x));
}

weft_tensor *weft_sinusoids_at(const char *where, weft_tensor *position, int64_t width, double base) {
    weft_tensor *bad = reject_position("sinusoids", where, position);
    if (bad || !position) return bad;
    if (base == 0) base = 10000;
    char text[WEFT_SHAPE_TEXT];
    if (width < 1 || width > INT32_MAX || !(base > 0 && base < (double)INFINITY))
        return weft__poison(position->ctx, where, WEFT_ERR_ARGUMENT,
                            "sinusoids: width %lld and base %g must be positive", (long long)width, base);
    if (position->rank >= WEFT_MAX_RANK - 1)
        return weft__poison(position->ctx, where, WEFT_ERR_SHAPE,
                            "sinusoids: position %s has too many dimensions",
                            weft__tensor_text(position, text));
    const int64_t two = 2;
    weft_tensor *angle =
        weft_unsqueeze_at(where, angles(where, position, rates(where, position->ctx, width, base, WEFT_F32)),
                          -1); /* (..., pairs, 1) */
    weft_tensor *odd = at_eq(weft_iota(position->ctx, WEFT_I32, 1, &two),
                             weft_full_i64(position->ctx, WEFT_I32, 0, NULL, 1));
    weft_tensor *y = at_where(odd, at_cos(angle), at_sin(angle)); /* (..., pairs, 2) */
    if (weft__poisoned(y)) return y;
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < position->rank; i++) shape[i] = position->shape[i];
    shape[position->rank] = 2 * ((width + 1) / 2);
    return weft_narrow_at(where, weft_reshape_at(where, y, position->rank + 1, shape), -1, 0, width);
}
