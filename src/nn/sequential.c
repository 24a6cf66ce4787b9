/* Modules that run their children one after the other: sequential and MLP.
 * Must not know: what children compute. Read next: module.h. */
#include <stdarg.h>
#include <stdio.h>
#include "nn/module.h"

/* No network has more. A larger count is a mistake, and the list would be read past its end. */
enum { MOST_LAYERS = 65535 };

static weft_tensor *sequential_forward(weft_module *m, weft_tensor *x) {
    for (size_t i = 0; i < m->n_children; i++) x = weft_forward_at(m->where, m->children[i], x);
    return x;
}

void weft__module_append(weft_module *m, weft_module *child) {
    char name[32];
    snprintf(name, sizeof name, "%zu", m->n_children);
    weft_module_child(m, name, child);
}

static weft_module *sequential(weft_context *ctx, const char *name) {
    weft_module *m = weft__module_make(ctx, "sequential", sequential_forward, 0);
    if (m->error || !name || !*name) return m;
    const char *known = weft__intern(ctx, name);
    if (!known) return weft__module_poison(m, WEFT_ERR_OOM, "%s: out of memory", name);
    m->name = known;
    return m;
}

weft_module *weft_nn_sequential(weft_context *ctx, const char *name, ...) {
    weft_module *m = sequential(ctx, name);
    va_list args;
    va_start(args, name);
    for (weft_module *child; (child = va_arg(args, weft_module *)) != NULL;) weft__module_append(m, child);
    va_end(args);
    return m;
}

weft_module *weft_nn_sequential_of(weft_context *ctx, const char *name, weft_module *const *children,
                                   size_t count) {
    weft_module *m = sequential(ctx, name);
    if (!m->error && (count > MOST_LAYERS || (count > 0 && !children)))
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_sequential_of: children is %s, count is %zu; give at most %d layers",
            children ? "given" : "NULL", count, MOST_LAYERS);
    for (size_t i = 0; i < count && !m->error; i++) weft__module_append(m, children[i]);
    return m;
}

weft_module *weft_nn_mlp(weft_context *ctx, const int64_t *sizes, int count,
                         const weft_mlp_options *options) {
    weft_mlp_options o = options ? *options : (weft_mlp_options){0};
    weft_module *m = weft__module_make(ctx, "mlp", sequential_forward, 0);
    if (m->error) return m;
    if (!sizes || count < 2 || count > MOST_LAYERS)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_mlp: sizes is %s, count is %d; give 2 to %d sizes",
                                   sizes ? "given" : "NULL", count, MOST_LAYERS);
    weft_linear_options linear = {.no_bias = o.no_bias, .dtype = o.dtype, .weight = o.weight};
    for (int i = 0; i + 1 < count; i++) {
        weft__module_append(m, weft_nn_linear(ctx, sizes[i], sizes[i + 1], &linear));
        if (i + 2 == count) break;
        weft__module_append(
            m, weft_nn_activation(ctx, o.activation == WEFT_ACTIVATION_DEFAULT ? WEFT_RELU : o.activation));
        if (o.dropout != 0.0) weft__module_append(m, weft_nn_dropout(ctx, o.dropout));
    }
    return m;
}
