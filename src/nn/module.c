/* The tree of modules: making, poisoning, joining and freeing modules.
 * Must not know: values of parameters. Read next: use.c. */
#include <string.h>
#include "nn/module.h"

/* The module that a constructor returns if there is no memory for a poisoned one. Never written to. */
static const weft_error no_memory = {WEFT_ERR_OOM, "out of memory while making a module"};
static const weft_module no_module = {
    .kind = "none", .name = "none", .error = (weft_error *)(uintptr_t)&no_memory};

static bool is_real(const weft_module *m) { return m && m->ctx; }

weft_module *weft__module_without_context(const char *function) {
    static _Thread_local weft_module poison;
    weft__fail_null(NULL, function, "ctx");
    poison = (weft_module){.kind = "none", .name = "none", .error = weft__orphan_error()};
    return &poison;
}

/* ---- making ---- */

static void unlink_root(weft_module *m) {
    for (weft_module **at = &m->ctx->modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            m->next = NULL;
            return;
        }
}

static void free_tree(weft_module *m) {
    weft_context *ctx = m->ctx;
    while (m->on_free) {
        weft__on_free *entry = m->on_free;
        m->on_free = entry->next;
        entry->call(entry->user);
        weft__free(ctx, entry);
    }
    for (size_t i = m->n_children; i-- > 0;) free_tree(m->children[i]);
    for (size_t i = 0; i < m->n_parameters; i++) weft_free(m->parameters[i].variable);
    if (m->owns_user) weft__free(ctx, m->user);
    weft__free(ctx, m->children);
    weft__free(ctx, m->parameters);
    if (m->error != &no_memory) weft__free(ctx, m->error);
    weft__free(ctx, m);
}

void weft_module_free(weft_module *m) {
    if (!is_real(m) || m->parent) return;
    unlink_root(m);
    free_tree(m);
}

void weft__module_remove(weft_module *child) {
    weft_module *m = child->parent;
    size_t i = 0;
    while (m->children[i] != child) i++;
    memmove(m->children + i, m->children + i + 1, (--m->n_children - i) * sizeof *m->children);
    free_tree(child);
}

static void free_all(weft_context *ctx) {
    while (ctx->modules) weft_module_free(ctx->modules);
}

weft_module *weft_module_new(weft_context *ctx, const char *kind, weft_forward_fn forward, void *user) {
    if (!ctx) return weft__module_without_context(__func__);
    weft_module *m = weft__zalloc(ctx, sizeof *m);
    if (!m) {
        weft__fail_oom(ctx, sizeof *m, "a module");
        return (weft_module *)(uintptr_t)&no_module;
    }
    m->ctx = ctx;
    const char *known = weft__intern(ctx, kind ? kind : "module");
    m->kind = known ? known : "module";
    m->name = m->kind;
    m->forward = forward;
    m->user = user;
    m->height = 1;
    m->next = ctx->modules;
    ctx->modules = m;
    ctx->hooks.modules_free = free_all;
    if (!known) return weft__module_poison(m, WEFT_ERR_OOM, "%s: out of memory", kind);
    if (kind && forward) return m;
    return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_module_new: %s is NULL, but it must be given",
                               kind ? "forward" : "kind");
}

weft_module *weft__module_make(weft_context *ctx, const char *kind, weft_forward_fn forward,
                               size_t own_bytes) {
    if (!ctx) return weft__module_without_context(kind);
    weft_module *m = weft_module_new(ctx, kind, forward, NULL);
    if (m->error || !own_bytes) return m;
    m->user = weft__zalloc(ctx, own_bytes);
    m->owns_user = true;
    return m->user ? m : weft__module_poison(m, WEFT_ERR_OOM, "%s: out of memory", kind);
}

weft_module *weft__module_poison(weft_module *m, weft_status status, const char *fmt, ...) {
    if (m->error) return m;
    va_list args;
    va_start(args, fmt);
    weft__failv(m->ctx, status, fmt, args);
    va_end(args);
    weft_error *error = weft__alloc(m->ctx, sizeof *error);
    if (error) *error = m->ctx->error;
    m->error = error ? error : (weft_error *)(uintptr_t)&no_memory; /* poisoned without its cause */
    return m;
}

weft_status weft_module_on_free(weft_module *m, void (*call)(void *user), void *user) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, call);
    if (!is_real(m)) return weft_module_status(m);
    weft__on_free *entry = weft__zalloc(m->ctx, sizeof *entry);
    if (!entry) return weft__fail_oom(m->ctx, sizeof *entry, "a module");
    *entry = (weft__on_free){m->on_free, call, user};
    m->on_free = entry;
    return WEFT_OK;
}

void weft_module_cancel_free(weft_module *m, void (*call)(void *user), void *user) {
    for (weft__on_free **at = is_real(m) ? &m->on_free : NULL; at && *at; at = &(*at)->next)
        if ((*at)->call == call && (*at)->user == user) {
            weft__on_free *entry = *at;
            *at = entry->next;
            weft__free(m->ctx, entry);
            return;
        }
}

/* ---- asking ---- */

weft_status weft_module_status(const weft_module *m) {
    WEFT_NEED(NULL, m);
    if (m->error) return weft__fail(m->ctx, m->error->status, "%s", m->error->text);
    return WEFT_OK;
}

weft_module *weft__module_root(weft_module *m) {
    while (m->parent) m = m->parent;
    return m;
}

weft_context *weft_module_context(const weft_module *m) { return m ? m->ctx : NULL; }
const char *weft_module_kind(const weft_module *m) { return m ? m->kind : ""; }
void *weft_module_user(const weft_module *m) { return m ? m->user : NULL; }

weft_module *weft_module_child_get(const weft_module *m, size_t i) {
    return m && i < m->n_children ? m->children[i] : NULL;
}

/* ---- joining ---- */

/* Whether a child or parameter of that name may be added. Poisons m if its tree is in use or the name is
 * taken. */
static bool may_add(weft_module *m, const char *what, const char *name) {
    if (m->error || !is_real(m)) return false;
    if (!name || !*name) {
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_module_%s: name is %s, but a %s of %s needs one",
                            what, name ? "empty" : "NULL", what, m->kind);
        return false;
    }
    if (weft__module_root(m)->used) {
        weft__module_poison(m, WEFT_ERR_STATE, "%s: %s '%s' comes too late: the model was already used",
                            m->kind, what, name);
        return false;
    }
    bool taken = false;
    for (size_t i = 0; i < m->n_children; i++) taken |= strcmp(m->children[i]->name, name) == 0;
    for (size_t i = 0; i < m->n_parameters; i++) taken |= strcmp(m->parameters[i].name, name) == 0;
    if (taken) weft__module_poison(m, WEFT_ERR_ARGUMENT, "%s: the name '%s' is taken", m->kind, name);
    return !taken;
}

/* The depth of the tree after adding the child. */
static int depth_with(const weft_module *m, const weft_module *child) {
    int depth = child->height;
    for (; m; m = m->parent) depth++;
    return depth;
}

static void raise_heights(weft_module *m, int height) {
    for (; m && m->height < ++height; m = m->parent) m->height = height;
}

weft_module *weft_module_child(weft_module *m, const char *name, weft_module *child) {
    WEFT_NEED_OR(child, NULL, m);
    if (!child) {
        if (is_real(m))
            weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                "weft_module_child: child is NULL, but it must be given ('%s' of %s)",
                                name ? name : "", m->kind);
        return child;
    }
    if (child->error && is_real(m) && !m->error)
        weft__module_poison(m, child->error->status, "%s", child->error->text);
    if (!may_add(m, "child", name) || !is_real(child)) return child;
    if (child->parent || child->used || child->ctx != m->ctx || child == weft__module_root(m)) {
        weft__module_poison(
            m, WEFT_ERR_STATE,
            "%s: child '%s' (%s) already has a parent, was already used, or belongs to another context",
            m->kind, name, child->kind);
        return child;
    }
    if (depth_with(m, child) > WEFT_MODULE_DEPTH) {
        weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "%s: child '%s' (%s) makes a tree of modules %d levels deep, the limit is %d; put layers "
            "side by side in one weft_nn_sequential",
            m->kind, name, child->kind, depth_with(m, child), WEFT_MODULE_DEPTH);
        return child;
    }
    const char *known = weft__intern(m->ctx, name);
    if (!known || !weft__grow(m->ctx, &m->children, &m->cap_children, m->n_children, sizeof *m->children)) {
        weft__module_poison(m, WEFT_ERR_OOM, "%s: out of memory for child '%s'", m->kind, name);
        return child;
    }
    unlink_root(child);
    if (m->compute != WEFT_F32) weft_module_compute(child, m->compute);
    child->parent = m;
    raise_heights(m, child->height);
    child->name = known;
    m->children[m->n_children++] = child;
    return child;
}

static bool is_trainable(weft_dtype dtype) {
    return weft_dtype_is_float(dtype) || weft_dtype_is_complex(dtype);
}

static weft_status add_parameter(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                 const int64_t *shape, const weft_init *init, bool buffer) {
    int64_t numel = 0;
    if (!may_add(m, buffer ? "buffer" : "parameter", name)) return weft_module_status(m);
    const char *known = weft__intern(m->ctx, name);
    if (rank != 0 && !shape)
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "weft_module_%s: shape is NULL, but it must be given ('%s' of %s)",
                            buffer ? "buffer" : "parameter", name, m->kind);
    else if (rank < 0 || rank > WEFT_MAX_RANK || !weft__numel(rank, shape, &numel))
        weft__module_poison(m, WEFT_ERR_SHAPE, "%s: '%s' has no valid shape", m->kind, name);
    else if ((unsigned)dtype >= WEFT_DTYPE_COUNT || (!buffer && !is_trainable(dtype)))
        weft__module_poison(m, WEFT_ERR_DTYPE,
                            "%s: parameter '%s' cannot be %s, it must be a float or complex", m->kind, name,
                            weft_dtype_name(dtype));
    else if (!known ||
             !weft__grow(m->ctx, &m->parameters, &m->cap_parameters, m->n_parameters, sizeof *m->parameters))
        weft__module_poison(m, WEFT_ERR_OOM, "%s: out of memory for parameter '%s'", m->kind, name);
    if (m->error) return weft_module_status(m);
    weft__parameter *p = &m->parameters[m->n_parameters++];
    *p = (weft__parameter){.name = known, .dtype = dtype, .rank = rank, .buffer = buffer};
    if (rank) memcpy(p->shape, shape, (size_t)rank * sizeof *shape);
    if (init) p->init = *init;
    if (p->init.kind == WEFT_INIT_DEFAULT)
        p->init = buffer ? (weft_init){WEFT_INIT_ZEROS, 0.0}
                         : (weft_init){WEFT_INIT_HE_UNIFORM, 2.2360679774997897};
    return WEFT_OK;
}

weft_status weft_module_parameter(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                  const int64_t *shape, const weft_init *init) {
    WEFT_NEED(NULL, m);
    return add_parameter(m, name, dtype, rank, shape, init, false);
}

weft_status weft_module_buffer(weft_module *m, const char *name, weft_dtype dtype, int rank,
                               const int64_t *shape, const weft_init *init) {
    WEFT_NEED(NULL, m);
    return add_parameter(m, name, dtype, rank, shape, init, true);
}
