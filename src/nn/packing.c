/* Packed weights of linear layers and embeddings. A weight may have several parts with formats of their own,
 * since a GPT joins matrices that a file holds apart. Must not know: files. Read next: linear.c,
 * ops/packed.c. */
#include <stdio.h>

#include "nn/module.h"
#include "ops/build.h"

/* Checks that the parts are all rows of the weight. */
static weft_status check_parts(const weft_module *m, const weft_packed_rows *parts, int count, int64_t rows,
                               int64_t width) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        const char *name = weft_packed_name(parts[i].format);
        if (name[0] == '?' || parts[i].rows < 1 || parts[i].rows > rows - sum)
            return weft__fail(
                m->ctx, WEFT_ERR_ARGUMENT,
                "weft_module_pack: part %d of %s has %lld rows in format %d: the weight has %lld "
                "rows in all, and the format must be a weft_packed_format",
                i, m->kind, (long long)parts[i].rows, (int)parts[i].format, (long long)rows);
        if (!weft_packed_bytes(parts[i].format, width))
            return weft__fail(
                m->ctx, WEFT_ERR_SHAPE,
                "weft_module_pack: a row of %s has %lld numbers, which are not whole %s blocks: use "
                "a format whose blocks divide a row",
                m->kind, (long long)width, name);
        sum += parts[i].rows;
    }
    if (sum == rows) return WEFT_OK;
    return weft__fail(m->ctx, WEFT_ERR_ARGUMENT, "weft_module_pack: the parts of %s have %lld rows, not %lld",
                      m->kind, (long long)sum, (long long)rows);
}

weft_status weft_module_pack(weft_module *m, const weft_packed_rows *parts, int count) {
    int64_t rows = 0, width = 0;
    WEFT_NEED(NULL, m);
    WEFT_TRY(weft_module_status(m));
    WEFT_NEED(m->ctx, parts);
    weft__packing *packing = weft__packing_of(m, &rows, &width);
    const int most = m->kind[0] == 'e' ? 1 : WEFT_PACKED_PARTS;
    if (!packing || count < 1 || count > most)
        return weft__fail(
            m->ctx, WEFT_ERR_ARGUMENT,
            "weft_module_pack: %s with %d parts: a linear layer has 1 to %d, an embedding has 1, "
            "and other layers cannot be packed",
            m->kind, count, WEFT_PACKED_PARTS);
    if (weft__module_root(m)->used || packing->count || m->n_children)
        return weft__fail(m->ctx, WEFT_ERR_STATE,
                          "weft_module_pack: %s was used, is packed, or has adapters: pack it first",
                          m->kind);
    WEFT_TRY(check_parts(m, parts, count, rows, width));
    for (int i = 0; i < count; i++) {
        const int64_t shape[2] = {parts[i].rows, weft_packed_bytes(parts[i].format, width)};
        char name[16];
        snprintf(name, sizeof name, "weight_%d", i);
        packing->part[i] = (weft__packed_part){parts[i].rows, parts[i].format, i ? m->n_parameters : 0};
        if (i) {
            WEFT_TRY(weft_module_buffer(m, name, WEFT_U8, 2, shape, NULL));
            continue;
        }
        weft__parameter *p = &m->parameters[0];
        p->dtype = WEFT_U8, p->shape[0] = shape[0], p->shape[1] = shape[1];
        p->init = (weft_init){WEFT_INIT_ZEROS, 0};
        p->buffer = true;
    }
    packing->count = count;
    return WEFT_OK;
}

weft_tensor *weft__packed_product(const weft_module *m, const weft__packing *packing, weft_tensor *x) {
    weft_tensor *y[WEFT_PACKED_PARTS];
    for (int i = 0; i < packing->count; i++) {
        const weft__packed_part *part = &packing->part[i];
        y[i] = weft_matmul_packed_at(m->where, x, m->parameters[part->parameter].variable, part->format);
        if (weft__poisoned(y[i])) return y[i];
    }
    return packing->count == 1 ? y[0] : weft_concat_at(m->where, y, packing->count, -1);
}

weft_tensor *weft__whole_weight(const weft_module *m, weft_tensor *parameter) {
    int64_t rows, width;
    const weft__packing *packing = weft__packing_of(m, &rows, &width);
    weft_tensor *w[WEFT_PACKED_PARTS];
    if (!packing || !packing->count || parameter != m->parameters[0].variable) return parameter;
    for (int i = 0; i < packing->count; i++)
        w[i] = weft_unpack(m->parameters[packing->part[i].parameter].variable, packing->part[i].format);
    return packing->count == 1 ? w[0] : weft_concat(w, packing->count, 0);
}
