/* Ops that a program defines. An expression is recorded as nodes, which the compiler fuses into kernels as
 * any others. An op with gradients of its own, or with a source, is a composite, so that the reverse walk
 * finds these gradients. Only a device that runs the source's dialect takes such a composite whole.
 * Must not know: kernels. Read next: expression.c. */
#include <string.h>
#include <weft/op.h>

#include "ops/composite.h"
#include "ops/expression.h"

struct weft_defined_op {
    weft_context *ctx;
    const char *name;
    int arity;
    uint32_t dtypes;
    bool truth, has_gradient;
    weft_source source; /* text is NULL if the op has no source */
    weft_expression *value, *gradients[WEFT_OP_OPERANDS];
    weft_op_gradient gradient;
    void *user;
    weft_composite forward, backward;
};

static const weft_defined_op *op_of(const void *params) { return ((const weft_defined_params *)params)->op; }

/* Records the expression on operands of one shape. 16-bit operands are computed in f32. */
static weft_tensor *record(const char *where, const weft_expression *e, weft_tensor *const *in, int n) {
    weft_tensor *wide[WEFT_EXPRESSION_OPERANDS];
    for (int i = 0; i < n; i++) {
        wide[i] = widen(where, in[i]);
        if (wide[i]->error) return wide[i];
    }
    weft_tensor *y = weft__expression_record(where, e, wide);
    if (y->error) return y;
    y = weft__expand_to(where, y, in[0]->rank, in[0]->shape); /* for an expression of numbers only */
    return y->error || y->dtype == WEFT_BOOL ? y : as_dtype(where, y, (weft_dtype)in[0]->dtype);
}

static void shape_of(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                     int64_t *dims) {
    (void)output;
    *dtype = op_of(params)->truth ? WEFT_BOOL : (weft_dtype)in[0]->dtype;
    *rank = in[0]->rank;
    memcpy(dims, in[0]->shape, sizeof in[0]->shape);
}

static void custom_expand(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    static const char *const dialects[] = {"OpenCL C", "CUDA C++"};
    const weft_defined_op *op = op_of(params);
    if (op->value)
        out[0] = record(where, op->value, in, op->arity);
    else
        out[0] = weft__poison(op->ctx, where, WEFT_ERR_UNSUPPORTED,
                              "%s: this op has no expression, and its source is %s, which device %s cannot "
                              "run, or its derivative was requested",
                              op->name, dialects[op->source.dialect], op->ctx->hooks.device);
}

/* Records the gradients. in: the operands, the result and its gradient, in the order of the letters of
 * `gradients`. */
static void expand_gradient(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    const weft_defined_op *op = op_of(params);
    weft_tensor *given[WEFT_EXPRESSION_OPERANDS];
    memcpy(given, in, (size_t)(op->arity + 2) * sizeof *in);
    /* Records the result again; the compiler unifies both copies. A second derivative then reaches the
     * operands through this copy, and not once more through the one outside. */
    weft__composite(where, &op->forward, params, in, &given[op->arity]);
    for (int i = 0; i < op->arity; i++) {
        out[i] = NULL;
        if (op->gradients[i]) out[i] = record(where, op->gradients[i], given, op->arity + 2);
    }
    if (op->gradient) op->gradient(given, given[op->arity], given[op->arity + 1], out, op->user);
    char text[WEFT_SHAPE_TEXT];
    for (int i = 0; i < op->arity; i++) {
        if (!out[i])
            out[i] = at_zeros_like(in[i]);
        else if (!out[i]->error && (out[i]->dtype != in[i]->dtype || !weft__shape_equal(out[i], in[i])))
            out[i] =
                weft__poison(op->ctx, where, WEFT_ERR_SHAPE,
                             "%s: its gradient for operand %d is %s; shape and dtype must be the operand's",
                             op->name, i, weft__tensor_text(out[i], text));
    }
}

/* ---- defining ---- */

static const char *kept(weft_context *ctx, const char *text) {
    const size_t bytes = strlen(text) + 1;
    char *copy = weft__arena_alloc(&ctx->graph->nodes, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static weft_status read(weft_defined_op *op, const char *text, const char *letters, bool floats,
                        weft_expression **out) {
    weft_expression *e = weft__arena_alloc(&op->ctx->graph->nodes, sizeof *e);
    if (!e || !(text = kept(op->ctx, text)) || !(letters = kept(op->ctx, letters)))
        return weft__fail_oom(op->ctx, sizeof *e, "the definition of an op");
    e->what = op->name;
    e->text = text;
    e->operands = letters;
    *out = e;
    WEFT_TRY(weft__expression_read(op->ctx, e));
    for (int d = 0; d < 32; d++)
        if (op->dtypes >> d & 1u && (!floats || weft_dtype_is_float((weft_dtype)d)))
            WEFT_TRY(weft__expression_accepts(op->ctx, e, (weft_dtype)d));
    return WEFT_OK;
}

/* Number of characters of a function's name that every compiler tells apart (C17, 5.2.4.1). */
#define SOURCE_NAME_MAX 63

/* Checks and stores the source: it must have one dtype, a function's name and a dialect. */
static weft_status read_source(weft_defined_op *op, const weft_op_options *options) {
    const uint32_t halves = 1u << WEFT_F16 | 1u << WEFT_BF16;
    bool name = !(op->name[0] >= '0' && op->name[0] <= '9');
    for (const char *c = op->name; *c; c++)
        name = name && (*c == '_' || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z'));
    if (!name || !*op->name || strlen(op->name) > SOURCE_NAME_MAX || (op->dtypes & (op->dtypes - 1)) ||
        (op->dtypes & halves) || options->items < 0 || options->items > 256 ||
        (unsigned)options->dialect > WEFT_DIALECT_CUDA || op->truth)
        return weft__fail(op->ctx, WEFT_ERR_ARGUMENT,
                          "%s: a source needs the name of a function (at most %d letters, digits and _), one "
                          "dtype (not f16 or bf16), a dialect, at most 256 items, and numbers as its result",
                          op->name, SOURCE_NAME_MAX);
    op->source = (weft_source){.name = op->name,
                               .text = kept(op->ctx, options->source),
                               .dialect = (int)options->dialect,
                               .items = options->items ? options->items : 64};
    return op->source.text ? WEFT_OK : weft__fail_oom(op->ctx, 1, "the definition of an op");
}

static weft_status define(weft_defined_op *op, const weft_op_options *options) {
    const char *const letters[] = {"", "a", "ab", "abc", "abcd"}, *const more[] = {"", "ayg", "abyg", "abcyg",
                                                                                   "abcdyg"};
    if (options->expression) {
        WEFT_TRY(read(op, options->expression, letters[op->arity], false, &op->value));
        op->truth = op->value->terms[op->value->count - 1].truth;
    }
    if (options->source) WEFT_TRY(read_source(op, options));
    op->has_gradient = op->gradient != NULL;
    for (int i = 0; i < WEFT_OP_OPERANDS; i++) {
        if (!options->gradients[i]) continue;
        if (i >= op->arity || op->gradient || op->truth)
            return weft__fail(op->ctx, WEFT_ERR_ARGUMENT, "%s: a gradient for operand %d: %s", op->name, i,
                              i >= op->arity ? "there is no such operand"
                              : op->truth    ? "a condition has no gradient"
                                             : "a gradient function is given too");
        op->has_gradient = true;
        WEFT_TRY(read(op, options->gradients[i], more[op->arity], true, &op->gradients[i]));
        if (op->gradients[i]->terms[op->gradients[i]->count - 1].truth)
            return weft__fail(op->ctx, WEFT_ERR_ARGUMENT, "%s: \"%s\" is a condition, not a gradient",
                              op->name, options->gradients[i]);
    }
    op->forward = (weft_composite){.name = op->name,
                                   .kind = op->source.text ? WEFT_HEAVY_SOURCE : WEFT_HEAVY_NONE,
                                   .n_outputs = 1,
                                   .params_bytes = sizeof(weft_defined_params),
                                   .shape = shape_of,
                                   .expand = custom_expand,
                                   .gradient = op->has_gradient ? &op->backward : NULL,
                                   .n_inputs = op->arity};
    op->backward = (weft_composite){.name = op->name,
                                    .kind = -1,
                                    .n_outputs = op->arity,
                                    .params_bytes = sizeof(weft_defined_params),
                                    .shape = shape_of,
                                    .expand = expand_gradient,
                                    .forward = &op->forward,
                                    .n_inputs = op->arity + 2};
    return WEFT_OK;
}

weft_status weft_op_define(weft_context *ctx, const weft_op_options *options, weft_defined_op **op) {
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, op);
    *op = NULL;
    WEFT_NEED(ctx, options);
    WEFT_NEED(ctx, options->name);
    if (!options->expression && !options->source)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_op_define: '%s' has neither an expression nor a source", options->name);
    if (options->arity < 1 || options->arity > WEFT_OP_OPERANDS)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_op_define: '%s': arity is %d, not in 1..%d",
                          options->name, options->arity, WEFT_OP_OPERANDS);
    weft_defined_op *made = weft__arena_alloc(&ctx->graph->nodes, sizeof *made);
    if (!made) return weft__fail_oom(ctx, sizeof *made, "the definition of an op");
    const uint32_t floats = 1u << WEFT_F32 | 1u << WEFT_F64 | 1u << WEFT_F16 | 1u << WEFT_BF16;
    *made = (weft_defined_op){.ctx = ctx,
                              .name = kept(ctx, options->name),
                              .arity = options->arity,
                              .dtypes = options->dtypes ? options->dtypes : floats,
                              .gradient = options->gradient,
                              .user = options->user};
    if (!made->name) return weft__fail_oom(ctx, 1, "the definition of an op");
    WEFT_TRY(define(made, options));
    *op = made;
    return WEFT_OK;
}

/* ---- applying ---- */

weft_tensor *weft_op_apply_at(const char *where, const weft_defined_op *op, weft_tensor *const *in) {
    WEFT_NEED_OR_POISON(NULL, where, op);
    WEFT_NEED_OR_POISON(op->ctx, where, in);
    weft_tensor *bad = weft__reject(op->name, where, in, op->arity);
    if (bad || !in[0]) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    int rank = in[0]->rank;
    int64_t shape[WEFT_MAX_RANK];
    memcpy(shape, in[0]->shape, sizeof shape);
    if (in[0]->ctx != op->ctx)
        return weft__poison(in[0]->ctx, where, WEFT_ERR_ARGUMENT, "%s: the op was defined in another context",
                            op->name);
    for (int i = 0; i < op->arity; i++) {
        if (in[i]->dtype != in[0]->dtype || !(op->dtypes >> in[i]->dtype & 1u))
            return weft__poison(op->ctx, where, WEFT_ERR_DTYPE,
                                "%s: operand %d is %s, the first is %s: all must have one dtype, and the op "
                                "must be defined for it",
                                op->name, i, weft__tensor_text(in[i], a), weft__tensor_text(in[0], b));
        if (!weft__broadcast(rank, shape, in[i]->rank, in[i]->shape, &rank, shape))
            return weft__poison(op->ctx, where, WEFT_ERR_SHAPE, "%s: shapes %s and %s do not broadcast",
                                op->name, weft__tensor_text(in[0], a), weft__tensor_text(in[i], b));
    }
    weft_tensor *full[WEFT_OP_OPERANDS], *y;
    for (int i = 0; i < op->arity; i++) {
        full[i] = weft__expand_to(where, in[i], rank, shape);
        if (full[i]->error) return full[i];
    }
    if (!op->has_gradient && !op->source.text) return record(where, op->value, full, op->arity);
    const weft_defined_params params = {op, op->source.text ? &op->source : NULL};
    weft__composite(where, &op->forward, &params, full, &y);
    return y;
}

weft_tensor *(weft_op_apply)(const weft_defined_op *op, weft_tensor *const *in) {
    return weft_op_apply_at(NULL, op, in);
}
