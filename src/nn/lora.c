/* Low-rank adapters (Hu et al., "LoRA: Low-rank adaptation of large language models", 2021):
 *
 *     y = W x + (alpha / r) B A x
 *
 * Only A (r, in) and B (rows, r) are trained. An adapter is a child of its linear layer. It may add to a part
 * of the rows, since a GPT packs projections: of queries, keys and values, and of gate and up.
 * Must not know: files. Read next: linear.c, published/save.c. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"
#include "nn/module.h"
#include "ops/build.h"

typedef struct lora_own {
    int64_t first, rows, of; /* the rows of W that the adapter adds to, and the rows of W */
    double scale, dropout;
} lora_own;

/* Indices of the children. */
enum { LORA_A, LORA_B };

/* The part that the adapter adds, as a tensor with all rows: 0 elsewhere. `axis` is the dimension of the
 * rows. */
static weft_tensor *among_rows(const char *where, const lora_own *own, weft_tensor *t, int axis) {
    int64_t before[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
    if (weft__poisoned(t) || own->rows == own->of) return t;
    before[axis < 0 ? t->rank + axis : axis] = own->first;
    after[axis < 0 ? t->rank + axis : axis] = own->of - own->first - own->rows;
    return weft_pad_at(where, t, before, after, 0);
}

static weft_tensor *lora_forward(weft_module *m, weft_tensor *x) {
    const lora_own *own = m->user;
    const char *where = m->where;
    const weft_dtype outer = weft_dtype_of(x), inner = m->compute != WEFT_F32 ? m->compute : WEFT_F32;
    if (m->ctx->training && own->dropout > 0) x = weft_dropout_at(where, x, own->dropout);
    if (outer != inner && outer != WEFT_F64) x = weft_cast_at(where, x, inner);
    weft_tensor *y =
        weft_forward_at(where, m->children[LORA_B], weft_forward_at(where, m->children[LORA_A], x));
    if (weft__poisoned(y)) return y;
    if (own->scale != 1) y = at_mul_scalar(y, own->scale);
    return weft_dtype_of(y) == outer ? y : weft_cast_at(where, y, outer);
}

bool weft__is_lora(const weft_module *m) { return m->forward == lora_forward; }

weft_tensor *weft__lora_add(const char *where, const weft_module *linear, weft_tensor *x, weft_tensor *y) {
    for (size_t i = 0; i < linear->n_children && !weft__poisoned(y); i++) {
        weft_module *m = linear->children[i];
        if (!weft__is_lora(m)) continue;
        weft_tensor *more = weft_forward_at(where, m, x);
        if (weft__poisoned(more)) return more;
        y = at_add(y, among_rows(where, m->user, more, -1));
    }
    return y;
}

weft_tensor *weft__lora_merged(const weft_module *linear, weft_tensor *weight) {
    const char *where = NULL;
    for (size_t i = 0; i < linear->n_children && !weft__poisoned(weight); i++) {
        const weft_module *m = linear->children[i];
        const lora_own *own = m->user;
        if (!weft__is_lora(m)) continue;
        weft_tensor *a = m->children[LORA_A]->parameters[0].variable,
                    *b = m->children[LORA_B]->parameters[0].variable;
        weft_tensor *more = at_mul_scalar(weft_matmul_at(where, b, a), own->scale);
        if (weft__poisoned(more)) return more;
        more = among_rows(where, own, more, 0);
        weight = at_add(weft_cast_at(where, weight, weft_dtype_of(more)), more);
    }
    return weight;
}

weft__lora weft__lora_form(const weft_module *lora) {
    const lora_own *own = lora->user;
    return (weft__lora){lora->children[LORA_A]->parameters[0].shape[0], own->first, own->rows, own->scale,
                        own->dropout};
}

/* ---- making ---- */

static const weft_linear_options plain_linear = {.no_bias = true};
static const weft_linear_options zero_linear = {.no_bias = true, .weight = {WEFT_INIT_ZEROS, 0}};

/* Adds an adapter to a linear layer with `in` inputs and `of` outputs. */
static weft_status lora_attach(weft_module *linear, const char *name, lora_own own, int64_t in,
                               int64_t rank) {
    weft_context *ctx = linear->ctx;
    weft_module *m = weft__module_make(ctx, "lora", lora_forward, sizeof own);
    if (!m->error) *(lora_own *)m->user = own;
    weft_module_child(m, "lora_A", weft_nn_linear(ctx, in, rank, &plain_linear));
    weft_module_child(m, "lora_B", weft_nn_linear(ctx, rank, own.rows, &zero_linear));
    weft_module_child(linear, name, m);
    WEFT_TRY(weft_module_status(linear));
    weft_module_freeze(m, false);
    return WEFT_OK;
}

static weft_module *child_named(const weft_module *m, const char *name) {
    for (size_t i = 0; m && i < m->n_children; i++)
        if (strcmp(m->children[i]->name, name) == 0) return m->children[i];
    return NULL;
}

/* What an adapter can stand beside, by the names of published models. */
static const char *const lora_targets[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                           "gate_proj", "up_proj", "down_proj"};
enum { Q, K, V, O, GATE, UP, DOWN, LORA_TARGETS };

/* Adds the adapter of a target to a block. A model whose MLP has no gate has no gate_proj; its up_proj is all
 * of c_fc. */
static weft_status lora_block(weft_module *block, int target, const weft_gpt_options *gpt,
                              const weft_lora_options *o) {
    const bool of_attention = target <= O;
    const weft_module *branch = child_named(block, of_attention ? "attn" : "mlp");
    weft_module *linear = child_named(branch, target == O || target == DOWN ? "c_proj"
                                              : of_attention                ? "c_attn"
                                                                            : "c_fc");
    if (!linear || linear->n_parameters == 0) return WEFT_OK;
    int64_t shape[2];
    const int64_t d = weft__head_width(&gpt->form, gpt->width, gpt->heads);
    if (!weft__packing_of(linear, &shape[0], &shape[1])) return WEFT_OK;
    const int64_t queries = gpt->heads * d, keys = (gpt->kv_heads ? gpt->kv_heads : gpt->heads) * d;
    lora_own own = {0, shape[0], shape[0], o->alpha / (double)o->rank, o->dropout};
    if (target == GATE && !gpt->gated) return WEFT_OK;
    if (target == Q) own.rows = queries;
    if (target == K || target == V) own.first = target == K ? queries : queries + keys, own.rows = keys;
    if (gpt->gated && (target == GATE || target == UP)) own.rows = shape[0] / 2;
    if (gpt->gated && target == UP) own.first = own.rows;
    return lora_attach(linear, lora_targets[target], own, shape[1], o->rank);
}

/* Whether one of the names and patterns asks for a target in a block. */
static bool is_wanted(const weft_module *block, const char *target, const char *asked) {
    char path[256];
    snprintf(path, sizeof path, "%s.%s", block->name, target);
    return strcmp(asked, target) == 0 || weft__matches(asked, path);
}

/* Checks that a name or pattern asks for something. */
static weft_status check_target(const weft_module *gpt, const char *asked) {
    for (size_t b = 0; asked && b < gpt->n_children; b++)
        for (int t = 0; gpt->children[b]->unit && t < LORA_TARGETS; t++)
            if (is_wanted(gpt->children[b], lora_targets[t], asked)) return WEFT_OK;
    return weft__fail(
        gpt->ctx, WEFT_ERR_ARGUMENT,
        "weft_gpt_lora: the target '%.40s' is unknown: give q_proj, k_proj, v_proj, o_proj, gate_proj, "
        "up_proj, down_proj, or a pattern such as h.0.*_proj",
        asked ? asked : "NULL");
}

static weft_status lora_check(weft_module *gpt, const weft_lora_options *o) {
    weft_context *ctx = gpt->ctx;
    if (!weft__gpt_options_of(gpt) || gpt->used)
        return weft__fail(
            ctx, gpt->used ? WEFT_ERR_STATE : WEFT_ERR_ARGUMENT,
            "weft_gpt_lora: the module must be made by weft_nn_gpt or weft_published_new, and not be "
            "used or loaded before");
    if (o->rank < 1 || o->rank > 65536 || !(o->dropout >= 0 && o->dropout < 1) || o->target_count < 0 ||
        (o->target_count > 0 && !o->targets))
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "weft_gpt_lora: rank %lld must be from 1 to 65536, dropout %g from 0 to less than 1, and "
            "targets a list of %d names",
            (long long)o->rank, o->dropout, o->target_count);
    return WEFT_OK;
}

weft_status weft_gpt_lora(weft_module *gpt, const weft_lora_options *options) {
    static const char *const usual[] = {"q_proj", "v_proj"};
    WEFT_NEED(NULL, gpt);
    WEFT_TRY(weft_module_status(gpt));
    weft_lora_options o = options ? *options : (weft_lora_options){0};
    if (o.rank == 0) o.rank = 8;
    o.alpha = weft__value_or(o.alpha, (double)o.rank);
    if (!o.targets && o.target_count == 0) o.targets = usual, o.target_count = 2;
    WEFT_TRY(lora_check(gpt, &o));
    for (int i = 0; i < o.target_count; i++) WEFT_TRY(check_target(gpt, o.targets[i]));
    weft_module_freeze(gpt, true);
    for (size_t b = 0; b < gpt->n_children; b++) {
        weft_module *block = gpt->children[b];
        for (int t = 0; block->unit && t < LORA_TARGETS; t++) { /* only transformer blocks are units */
            bool wanted = false;
            for (int i = 0; i < o.target_count; i++)
                wanted = wanted || is_wanted(block, lora_targets[t], o.targets[i]);
            if (wanted) WEFT_TRY(lora_block(block, t, weft__gpt_options_of(gpt), &o));
        }
    }
    return WEFT_OK;
}

/* ---- merging ---- */

/* Adds the adapters of a linear layer to its weight, and frees them. */
static weft_status merge_layer(weft_module *linear) {
    int64_t rows, width;
    if (weft__packing_of(linear, &rows, &width)->count)
        return weft__fail(linear->ctx, WEFT_ERR_UNSUPPORTED,
                          "weft_gpt_merge_lora: %s: the weight is packed, and cannot hold the sum",
                          linear->path);
    weft_scope *scope = weft_scope_open(linear->ctx);
    weft_tensor *weight = linear->parameters[0].variable;
    weft_tensor *merged = weft_cast(weft__lora_merged(linear, weight), weft_dtype_of(weight));
    const weft_status status = weft_assign(&weight, &merged, 1);
    weft_scope_close(scope);
    for (size_t i = linear->n_children; status == WEFT_OK && i-- > 0;)
        if (weft__is_lora(linear->children[i])) weft__module_remove(linear->children[i]);
    return status;
}

/* Merges the adapters of m and below. */
static weft_status merge_below(weft_module *m) {
    if (m->elsewhere) return WEFT_OK;
    for (size_t i = 0; i < m->n_children; i++) {
        if (weft__is_lora(m->children[i])) return merge_layer(m);
        WEFT_TRY(merge_below(m->children[i]));
    }
    return WEFT_OK;
}

static bool has_lora(const weft_module *m) {
    bool has = weft__is_lora(m);
    for (size_t i = 0; i < m->n_children && !has; i++) has = has_lora(m->children[i]);
    return has;
}

weft_status weft_gpt_merge_lora(weft_module *gpt) {
    WEFT_NEED(NULL, gpt);
    WEFT_TRY(weft_module_status(gpt));
    if (!weft__gpt_options_of(gpt))
        return weft__fail(gpt->ctx, WEFT_ERR_ARGUMENT, "weft_gpt_merge_lora: the module is no gpt");
    if (!has_lora(gpt)) return WEFT_OK;
    if (weft__module_root(gpt)->on_free)
        return weft__fail(gpt->ctx, WEFT_ERR_STATE,
                          "weft_gpt_merge_lora: an optimizer or a cache uses the gpt: free it before");
    WEFT_TRY(weft_module_prepare(gpt));
    WEFT_TRY(merge_below(gpt));
    weft_module_freeze(gpt, false);
    return WEFT_OK;
}
