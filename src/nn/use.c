/* Using modules: making variables at the first use, forward calls with the layer's path and random stream,
 * buffers, modes, freezing, and lists of parameters.
 * Must not know: what layers compute, optimizers. Read next: state.c, graph/assignment.c. */
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "nn/module.h"
#include "ops/build.h"

/* ---- first use ---- */

/* "prefix.name", or name if the prefix is empty; interned. */
static const char *join(weft_context *ctx, const char *prefix, const char *name) {
    if (!*prefix) return weft__intern(ctx, name);
    size_t a = strlen(prefix), b = strlen(name);
    char *text = weft__alloc(ctx, a + b + 2);
    if (!text) return NULL;
    memcpy(text, prefix, a);
    text[a] = '.';
    memcpy(text + a + 1, name, b + 1);
    const char *interned = weft__intern(ctx, text);
    weft__free(ctx, text);
    return interned;
}

/* The number of used roots that have the same name. It is hashed into the streams, so that two networks of
 * one kind start with different weights. */
static uint64_t root_number(const weft_module *root) {
    uint64_t n = 0;
    for (const weft_module *m = root->ctx->modules; m; m = m->next)
        n += m != root && m->used && strcmp(m->name, root->name) == 0;
    return n;
}

static weft_status make_variable(weft_module *m, weft__parameter *p, uint64_t number) {
    weft_hash h;
    weft__hash_init(&h);
    weft__hash_str(&h, "init");
    weft__hash_str(&h, p->full);
    weft__hash_u64(&h, number);
    weft_tensor *v = weft__init_variable(m->ctx, p, h.a);
    WEFT_TRY(weft_tensor_status(v));
    p->variable = v;
    return WEFT_OK;
}

static weft_status use_tree(weft_module *m, const char *prefix, uint64_t number) {
    weft_context *ctx = m->ctx;
    m->path = *prefix ? prefix : m->name;
    for (size_t i = 0; i < m->n_parameters; i++) {
        weft__parameter *p = &m->parameters[i];
        if (!p->full && !(p->full = join(ctx, prefix, p->name)))
            return weft__fail_oom(ctx, strlen(prefix), "a parameter's name");
        if (!p->variable) WEFT_TRY(make_variable(m, p, number));
    }
    for (size_t i = 0; i < m->n_children; i++) {
        const char *path = join(ctx, prefix, m->children[i]->name);
        if (!path) return weft__fail_oom(ctx, strlen(prefix), "a layer's path");
        WEFT_TRY(use_tree(m->children[i], path, number));
    }
    return WEFT_OK;
}

weft_status weft__module_use(weft_module *m) {
    WEFT_TRY(weft_module_status(m));
    weft_module *root = weft__module_root(m);
    if (root->used) return WEFT_OK;
    WEFT_TRY(weft_module_status(root));
    WEFT_TRY(use_tree(root, "", root_number(root)));
    root->used = true;
    return WEFT_OK;
}

bool weft__module_elsewhere(const weft_module *m) {
    while (m && !m->elsewhere) m = m->parent;
    return m != NULL;
}

weft_status weft_module_prepare(weft_module *m) {
    WEFT_NEED(NULL, m);
    return weft__module_use(m);
}

const char *weft_module_path(weft_module *m) {
    return m && weft__module_use(m) == WEFT_OK && m->path ? m->path : "";
}

/* ---- forward ---- */

/* NULL if m can run on x; else a poisoned tensor. */
static weft_tensor *reject_call(const char *where, weft_module *m, weft_tensor *x) {
    if (x->error) return x;
    if (m->ctx && m->ctx != x->ctx)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                            "forward: the input of %s belongs to another context; copy it with weft_to",
                            m->kind);
    if (weft__module_use(m) == WEFT_OK) return NULL;
    char text[WEFT_ERROR_SIZE];
    snprintf(text, sizeof text, "%s", weft_last_error(NULL));
    return weft__poison(x->ctx, where, weft_last_status(NULL), "%s", text);
}

weft_tensor *weft__computed(const weft_module *m, weft_tensor *t) {
    const bool narrows = m->compute != WEFT_F32 && t && weft_dtype_of(t) == WEFT_F32;
    return narrows ? weft__rounded_at(m->where, t, m->compute) : t;
}

/* Casts t at the border between modules that compute in different dtypes. */
static weft_tensor *cross(const char *where, weft_tensor *t, weft_dtype from, weft_dtype to) {
    return from == to || !t || weft_dtype_of(t) != from ? t : weft_cast_at(where, t, to);
}

uint32_t weft__recompute_begin(const weft_module *m, weft_recompute kind) {
    if (m->evaluating || m->recompute < kind) return m->ctx->graph->segment;
    return weft__segment_begin(m->ctx, m->recompute == WEFT_RECOMPUTE_BLOCK ? WEFT_SEGMENT_BLOCK
                                                                            : WEFT_SEGMENT_CHEAP);
}

weft_tensor *weft_forward_at(const char *where, weft_module *m, weft_tensor *x) {
    WEFT_NEED_OR_POISON(weft_context_of(x), where, m);
    WEFT_NEED_OR_POISON(m->ctx, where, x);
    weft_tensor *bad = reject_call(where, m, x);
    if (bad) return bad;
    weft_context *ctx = m->ctx;
    const char *path = ctx->path, *outer_where = m->where;
    const bool training = ctx->training, running = m->running;
    const uint64_t assigned = ctx->graph->assignments_made;
    m->running = true;
    ctx->path = m->path; /* names the layer in errors, and its random stream */
    ctx->training = !m->evaluating && !weft__module_root(m)->decoding;
    m->where = where;
    const uint32_t segment =
        weft__recompute_begin(m, m->cheap ? (weft_recompute)m->cheap : WEFT_RECOMPUTE_BLOCK);
    const weft_dtype outside = m->parent ? m->parent->compute : WEFT_F32;
    weft_tensor *y = m->forward(m, cross(where, x, outside, m->compute));
    weft__assignments_belong(ctx, assigned, y);
    y = cross(where, y, m->compute, outside);
    weft__segment_end(ctx, segment);
    if (!weft__poisoned(y)) {
        m->ran = true;
        m->out_rank = y->rank;
        for (int i = 0; i < y->rank; i++) m->out_shape[i] = y->shape[i];
    }
    if (!y) y = weft__poison(ctx, where, WEFT_ERR_ARGUMENT, "forward: module '%s' returned NULL", m->kind);
    m->where = outer_where;
    m->running = running;
    ctx->training = training;
    ctx->path = path;
    return y;
}

#undef weft_forward
weft_tensor *weft_forward(weft_module *m, weft_tensor *x) { return weft_forward_at(NULL, m, x); }

/* ---- buffers that forward passes assign ---- */

weft_tensor *weft__buffer_of(const weft_module *m, size_t i) {
    weft_tensor *variable = m->parameters[i].variable;
    weft_tensor *next = m->running ? weft__assignment_of(variable) : NULL;
    return next ? weft_detach_at(m->where, next) : variable;
}

/* Finds a buffer that the running forward pass of m may assign. */
static weft_status find_buffer(weft_module *m, const char *name, weft_tensor **variable) {
    WEFT_TRY(weft__module_use(m));
    if (!m->running)
        return weft__fail(m->ctx, WEFT_ERR_STATE, "%s: '%s' is assigned outside of its forward function",
                          m->kind, name);
    for (size_t i = 0; i < m->n_parameters; i++)
        if (m->parameters[i].buffer && strcmp(m->parameters[i].name, name) == 0) {
            *variable = m->parameters[i].variable;
            return WEFT_OK;
        }
    return weft__fail(m->ctx, WEFT_ERR_ARGUMENT, "%s: no buffer '%s'", m->kind, name);
}

weft_status weft_module_assign(weft_module *m, const char *name, weft_tensor *value) {
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    weft_tensor *variable = NULL;
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, name);
    WEFT_NEED(m->ctx, value);
    WEFT_TRY(weft_module_status(m));
    WEFT_TRY(find_buffer(m, name, &variable));
    WEFT_TRY(weft_tensor_status(value));
    if (value->ctx != m->ctx)
        return weft__fail(m->ctx, WEFT_ERR_ARGUMENT, "%s: the value of '%s' belongs to another context",
                          m->kind, name);
    if (!weft__shape_equal(variable, value) || variable->dtype != value->dtype)
        return weft__fail(m->ctx, WEFT_ERR_SHAPE, "%s: cannot assign %s to '%s', which is %s", m->kind,
                          weft__tensor_text(value, a), name, weft__tensor_text(variable, b));
    return m->ctx->training ? weft__assignment_add(variable, value) : WEFT_OK;
}

/* ---- modes ---- */

void weft_module_set_training(weft_module *m, bool training) {
    if (!m || !m->ctx) return;
    m->evaluating = !training;
    for (size_t i = 0; i < m->n_children; i++) weft_module_set_training(m->children[i], training);
}

static bool has_unit(const weft_module *m) {
    bool found = m->unit;
    for (size_t i = 0; i < m->n_children && !found; i++) found = has_unit(m->children[i]);
    return found;
}

static void recompute_tree(weft_module *m, weft_recompute what) {
    const bool blocks = what == WEFT_RECOMPUTE_BLOCK;
    m->recompute = (uint8_t)(blocks && !m->unit ? WEFT_RECOMPUTE_NONE : what);
    for (size_t i = 0; i < m->n_children; i++)
        recompute_tree(m->children[i], blocks && m->unit ? WEFT_RECOMPUTE_NONE : what);
}

weft_status weft_module_recompute(weft_module *m, weft_recompute what) {
    WEFT_NEED(NULL, m);
    WEFT_TRY(weft_module_status(m));
    if ((unsigned)what > WEFT_RECOMPUTE_BLOCK)
        return weft__fail(m->ctx, WEFT_ERR_ARGUMENT, "weft_module_recompute: unknown policy %d", (int)what);
    recompute_tree(m, what);
    if (what == WEFT_RECOMPUTE_BLOCK && !has_unit(m)) m->recompute = WEFT_RECOMPUTE_BLOCK;
    return WEFT_OK;
}

/* Sets the dtype of computation in a tree. Returns whether this changes anything. */
static bool compute_tree(weft_module *m, weft_dtype dtype) {
    bool changes = m->compute != dtype;
    m->compute = dtype;
    for (size_t i = 0; i < m->n_children; i++) changes |= compute_tree(m->children[i], dtype);
    return changes;
}

weft_status weft_module_compute(weft_module *m, weft_dtype dtype) {
    WEFT_NEED(NULL, m);
    WEFT_TRY(weft_module_status(m));
    if (dtype != WEFT_F32 && dtype != WEFT_BF16 && dtype != WEFT_F16)
        return weft__fail(m->ctx, WEFT_ERR_UNSUPPORTED,
                          "weft_module_compute: %s computes in f32, bf16 or f16, not in %s", m->kind,
                          weft_dtype_name(dtype));
    if (compute_tree(m, dtype)) weft__module_root(m)->freezes++; /* optimizers then round again */
    return WEFT_OK;
}

bool weft_module_is_training(const weft_module *m) { return m && m->ctx && !m->evaluating; }

static void freeze_tree(weft_module *m, bool frozen) {
    for (size_t i = 0; i < m->n_parameters; i++) m->parameters[i].frozen = frozen;
    for (size_t i = 0; i < m->n_children; i++) freeze_tree(m->children[i], frozen);
}

void weft_module_freeze(weft_module *m, bool frozen) {
    if (!m || !m->ctx) return;
    freeze_tree(m, frozen);
    weft__module_root(m)->freezes++;
}

uint64_t weft_module_freeze_count(const weft_module *m) {
    if (!m) return 0;
    while (m->parent) m = m->parent;
    return m->freezes;
}

/* ---- lists of parameters ---- */

static size_t count_tree(const weft_module *m) {
    size_t n = m->n_parameters;
    for (size_t i = 0; i < m->n_children; i++) n += count_tree(m->children[i]);
    return n;
}

/* Parameter i of the tree, in depth-first order. The tree must have more than i. */
static weft__parameter *nth(weft_module *m, size_t i, weft_module **owner) {
    if (i < m->n_parameters) {
        *owner = m;
        return &m->parameters[i];
    }
    i -= m->n_parameters;
    for (size_t c = 0; c < m->n_children; c++) {
        size_t n = count_tree(m->children[c]);
        if (i < n) return nth(m->children[c], i, owner);
        i -= n;
    }
    return NULL;
}

size_t weft_parameter_count(weft_module *m) { return weft__module_use(m) == WEFT_OK ? count_tree(m) : 0; }

bool weft_parameter_get(weft_module *m, size_t i, weft_parameter_info *info) {
    weft_module *owner = NULL;
    weft__parameter *p = weft__module_use(m) == WEFT_OK ? nth(m, i, &owner) : NULL;
    if (!p || !info) return false;
    *info = (weft_parameter_info){
        .name = p->full,
        .tensor = p->variable,
        .module = owner,
        .frozen = p->frozen,
        .buffer = p->buffer,
        .compute = owner->compute == WEFT_F32 || weft_dtype_is_complex(p->dtype) ? p->dtype : owner->compute};
    return true;
}

bool weft_parameter_find(weft_module *m, const char *name, weft_parameter_info *info) {
    for (size_t i = 0; name && weft_parameter_get(m, i, info); i++)
        if (strcmp(info->name, name) == 0) return true;
    return false;
}

weft_status weft_module_freeze_matching(weft_module *m, const char *pattern, bool frozen) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, pattern);
    return weft__module_freeze_matching(m, __func__, pattern, frozen);
}

weft_status weft__module_freeze_matching(weft_module *m, const char *caller, const char *pattern,
                                         bool frozen) {
    WEFT_TRY(weft_module_prepare(m));
    const size_t count = count_tree(m);
    const char *name = "";
    size_t matched = 0;
    for (size_t i = 0; i < count; i++) {
        weft_module *owner;
        weft__parameter *p = nth(m, i, &owner);
        if (p->buffer) continue;
        name = p->full;
        if (!weft__matches(pattern, name)) continue;
        p->frozen = frozen;
        matched++;
    }
    if (matched == 0)
        return weft__fail(m->ctx, WEFT_ERR_ARGUMENT,
                          "%s: no parameter matches '%.100s'; the last one is '%s'", caller, pattern, name);
    weft__module_root(m)->freezes++;
    return WEFT_OK;
}

int64_t weft_parameter_elements(weft_module *m, bool trainable_only) {
    int64_t total = 0;
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(m, i, &info); i++)
        if (!info.buffer && !(trainable_only && info.frozen)) total += weft_numel(info.tensor);
    return total;
}

weft_tensor *weft_parameter(weft_module *m, const char *name) {
    WEFT_NEED_OR_POISON(NULL, NULL, m);
    if (!m->ctx) return weft__poison(NULL, NULL, weft_module_status(m), "weft_parameter: %s", m->error->text);
    const char *where = m->where;
    WEFT_NEED_OR_POISON(m->ctx, where, name);
    if (weft__module_use(m) != WEFT_OK)
        return weft__poison(m->ctx, where, weft_last_status(m->ctx), "%s",
                            m->error ? m->error->text : m->kind);
    for (size_t i = 0; i < m->n_parameters; i++)
        if (strcmp(m->parameters[i].name, name) == 0)
            return m->parameters[i].buffer ? weft__buffer_of(m, i) : weft__parameter_of(m, i);
    return weft__poison(m->ctx, where, WEFT_ERR_ARGUMENT, "%s: no parameter '%s'", m->kind, name);
}
