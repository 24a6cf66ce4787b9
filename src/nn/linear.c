/* Layers with a weight matrix: linear and embedding. The weight may be packed (nn/packing.c).
 * Must not know: devices. Read next: module.h, init.c. */
#include <math.h>
#include "nn/module.h"
#include "ops/build.h"

typedef struct linear_own {
    weft__packing packing;
    int64_t in, out;
    bool biased;
} linear_own;

typedef struct embedding_own {
    weft__packing packing;
    int64_t count, width;
} embedding_own;

/* y (..., out) = x (..., in) W^T + b. */
static weft_tensor *linear_forward(weft_module *m, weft_tensor *x) {
    const linear_own *own = m->user;
    const char *where = m->where;
    if (x->rank < 1 || x->shape[x->rank - 1] != own->in) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "linear: the last dimension of input %s must be %lld, the layer's inputs",
                            weft__tensor_text(x, text), (long long)own->in);
    }
    weft_tensor *y = own->packing.count
                         ? weft__packed_product(m, &own->packing, x)
                         : weft_matmul_at(where, x, weft_transpose_at(where, weft__parameter_of(m, 0), 0, 1));
    if (own->biased) y = at_add(y, weft__parameter_of(m, 1));
    return m->n_children ? weft__lora_add(where, m, x, y) : y;
}

weft_module *weft_nn_linear(weft_context *ctx, int64_t in, int64_t out, const weft_linear_options *options) {
    weft_linear_options o = options ? *options : (weft_linear_options){0};
    weft_module *m = weft__module_make(ctx, "linear", linear_forward, sizeof(linear_own));
    if (m->error) return m;
    if (in < 1 || out < 1)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_linear: %lld inputs and %lld outputs: both must be positive",
                                   (long long)in, (long long)out);
    *(linear_own *)m->user = (linear_own){{0}, in, out, !o.no_bias};
    weft_init fan_in = {WEFT_INIT_HE_UNIFORM, 2.2360679774997897}; /* slope sqrt(5) gives +-1/sqrt(in) */
    weft_init weight = weft__init_or(o.weight, fan_in);
    weft_module_parameter(m, "weight", o.dtype, 2, (int64_t[]){out, in}, &weight);
    if (o.no_bias) return m;
    weft_init bias = weft__init_or(o.bias, (weft_init){WEFT_INIT_UNIFORM, 1.0 / sqrt((double)in)});
    weft_module_parameter(m, "bias", o.dtype, 1, &out, &bias);
    return m;
}

/* Rounds after the gather, not before. So the gradients of rows are summed in the table's dtype. Of a packed
 * table, only the rows that are taken are unpacked. */
static weft_tensor *embedding_forward(weft_module *m, weft_tensor *x) {
    const embedding_own *own = m->user;
    weft_tensor *rows = weft_gather_at(m->where, m->parameters[0].variable, x, 0);
    if (own->packing.count) rows = weft_unpack_at(m->where, rows, own->packing.part[0].format);
    return weft__computed(m, rows);
}

weft_tensor *weft__embedding_logits(const char *where, const weft_module *embedding, weft_tensor *x) {
    const embedding_own *own = embedding->user;
    if (own->packing.count) return weft__packed_product(embedding, &own->packing, x);
    weft_tensor *table = weft__computed(embedding, embedding->parameters[0].variable);
    return weft_matmul_at(where, x, weft_transpose_at(where, table, 0, 1));
}

weft_module *weft_nn_embedding(weft_context *ctx, int64_t count, int64_t width,
                               const weft_embedding_options *options) {
    weft_embedding_options o = options ? *options : (weft_embedding_options){0};
    weft_module *m = weft__module_make(ctx, "embedding", embedding_forward, sizeof(embedding_own));
    if (m->error) return m;
    if (count < 1 || width < 1)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_embedding: %lld rows of %lld: both must be positive",
                                   (long long)count, (long long)width);
    *(embedding_own *)m->user = (embedding_own){{0}, count, width};
    weft_init weight = weft__init_or(o.weight, (weft_init){WEFT_INIT_NORMAL, 1.0});
    weft_module_parameter(m, "weight", o.dtype, 2, (int64_t[]){count, width}, &weight);
    return m;
}

/* ---- packed weights ---- */

weft__packing *weft__packing_of(const weft_module *m, int64_t *rows, int64_t *width) {
    if (m->error) return NULL;
    if (m->forward == linear_forward) {
        linear_own *own = m->user;
        *rows = own->out, *width = own->in;
        return &own->packing;
    }
    if (m->forward != embedding_forward) return NULL;
    embedding_own *own = m->user;
    *rows = own->count, *width = own->width;
    return &own->packing;
}
