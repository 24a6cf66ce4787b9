/* Composites that a device may compute as a whole. A composite is one node, which carries its definition and
 * params, and one OUTPUT node for each output.
 * Must not know: which composites exist. Read next: ops.h, compiler/passes/build.c, which expands them. */
#include <string.h>
#include "ops/ops.h"

void weft__composite(const char *where, const weft_composite *definition, const void *params,
                     weft_tensor *const *in, weft_tensor **out) {
    unsigned char attr[sizeof(weft_attr_composite) + WEFT_PARAMS_BYTES] = {0};
    weft_attr_composite head = {definition};
    size_t bytes = sizeof head + definition->params_bytes;
    memcpy(attr, &head, sizeof head);
    if (params) memcpy(attr + sizeof head, params, definition->params_bytes);
    weft_tensor *whole = weft__node(in[0]->ctx, where, WEFT_OP_COMPOSITE, (weft_dtype)in[0]->dtype, 0, NULL,
                                    definition->n_inputs, in, bytes, attr);
    for (int i = 0; i < definition->n_outputs; i++)
        out[i] = whole->error ? whole : weft__composite_output(where, whole, i);
}

weft_tensor *weft__composite_output(const char *where, weft_tensor *whole, int i) {
    const weft_attr_output index = {i};
    weft_dtype dtype = WEFT_F32;
    int rank = 0;
    int64_t shape[WEFT_MAX_RANK];
    weft__composite_of(whole)->shape(weft__params_of(whole), whole->in, i, &dtype, &rank, shape);
    return weft__node(whole->ctx, where, WEFT_OP_OUTPUT, dtype, rank, shape, 1, &whole, sizeof index, &index);
}
