/* The table of a model: layers, shapes, parameters. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "nn/module.h"

/* Text that may be longer than its buffer. */
typedef struct text {
    char *buffer;
    size_t size, length;
} text;

static void put(text *t, const char *fmt, ...) WEFT_PRINTF(2, 3);
static void put(text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    size_t room = t->length < t->size ? t->size - t->length : 0;
    int n = vsnprintf(room ? t->buffer + t->length : NULL, room, fmt, args);
    va_end(args);
    if (n > 0) t->length += (size_t)n;
}

/* 1234567 as "1,234,567"; buffer of 32. */
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

static void line(text *t, const weft_module *m, int depth, int width) {
    char number[32], shape[WEFT_SHAPE_TEXT];
    int64_t n = own_elements(m);
    put(t, "%*s%-*s  %-18s %14s ", 2 * depth, "", width - 2 * depth, m->name, m->kind,
        n ? grouped(n, number) : "");
    for (size_t i = 0; i < m->n_parameters; i++) {
        const weft__parameter *p = &m->parameters[i];
        put(t, " %s %s%s%s", p->name, weft__shape_text(p->rank, p->shape, shape), p->frozen ? " frozen" : "",
            p->buffer ? " buffer" : "");
    }
    put(t, "\n");
    for (size_t i = 0; i < m->n_children; i++) line(t, m->children[i], depth + 1, width);
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
    text t = {buffer, size, 0};
    int width = widest(m, 0);
    if (width < 5) width = 5;
    char all[32], trained[32];
    int64_t total = weft_parameter_elements(m, false), trainable = weft_parameter_elements(m, true);
    put(&t, "%-*s  %-18s %14s  shapes\n", width, "layer", "kind", "parameters");
    line(&t, m, 0, width);
    put(&t, "%s parameters, %s trained\n", grouped(total, all), grouped(trainable, trained));
    return (int64_t)t.length;
}
