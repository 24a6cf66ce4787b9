/* The table of a model: layers, the shapes of their last outputs, parameters.
 * Must not know: how layers compute. Read next: module.h. */
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "nn/module.h"

/* Writes 1234567 as "1,234,567" into a buffer of 32 bytes. */
static const char *grouped(int64_t n, char *buffer) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) buffer[at++] = ',';
        buffer[at++] = digits[i];
    }
    buffer[at] = 0;
    return buffer;
}

static int64_t own_elements(const weft_module *m) {
    int64_t n = 0;
    for (size_t i = 0; i < m->n_parameters; i++)
        if (!m->parameters[i].buffer) n += m->parameters[i].variable->numel;
    return n;
}

static void line(weft_text *t, const weft_module *m, int depth, int width) {
    char number[32], shape[WEFT_SHAPE_TEXT];
    int64_t n = own_elements(m);
    weft__put(t, "%*s%-*s  %-18s %-18s %14s ", 2 * depth, "", width - 2 * depth, m->name, m->kind,
              m->ran ? weft__shape_text(m->out_rank, m->out_shape, shape) : "", n ? grouped(n, number) : "");
    for (size_t i = 0; i < m->n_parameters; i++) {
        const weft__parameter *p = &m->parameters[i];
        weft__put(t, " %s %s%s%s", p->name, weft__shape_text(p->rank, p->shape, shape),
                  p->frozen ? " frozen" : "", p->buffer ? " buffer" : "");
    }
    weft__put(t, "\n");
    for (size_t i = 0; i < m->n_children; i++) line(t, m->children[i], depth + 1, width);
}

static int64_t in_buffers(const weft_module *m) {
    int64_t n = 0;
    for (size_t i = 0; i < m->n_parameters; i++)
        if (m->parameters[i].buffer) n += m->parameters[i].variable->numel;
    for (size_t i = 0; i < m->n_children; i++) n += in_buffers(m->children[i]);
    return n;
}

static int widest(const weft_module *m, int depth) {
    int width = 2 * depth + (int)strlen(m->name);
    for (size_t i = 0; i < m->n_children; i++) {
        int w = widest(m->children[i], depth + 1);
        if (w > width) width = w;
    }
    return width;
}

int64_t weft_summary(weft_module *m, char *buffer, size_t size) {
    if (weft__module_use(m) != WEFT_OK) return -1;
    weft_text t = weft__text(buffer, size);
    int width = widest(m, 0);
    if (width < 5) width = 5;
    char all[32], trained[32];
    int64_t total = weft_parameter_elements(m, false), trainable = weft_parameter_elements(m, true);
    weft__put(&t, "%-*s  %-18s %-18s %14s  shapes\n", width, "layer", "kind", "output", "parameters");
    line(&t, m, 0, width);
    weft__put(&t, "%s parameters, %s trained", grouped(total, all), grouped(trainable, trained));
    if (in_buffers(m)) weft__put(&t, ", %s in buffers", grouped(in_buffers(m), all));
    weft__put(&t, "\n");
    return (int64_t)t.length;
}
