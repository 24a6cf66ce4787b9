/* Collects numbers that are read later, see pending.h. Must not know: what the numbers mean. Read next:
 * fit.c. */
#include <string.h>

#include "compiler/runtime/derive.h"
#include "learn/pending.h"
#include "device/device.h"
#include "graph/graph.h"

weft_status weft__pending_add(weft__pending *p, weft_tensor *number) {
    const size_t i = p->count;
    const bool later = number->ctx->device->asynchronous;
    if (!later) WEFT_TRY(weft__item(number, &p->values[i]));
    p->list[i] = later ? weft_keep(number) : NULL;
    p->count++;
    return WEFT_OK;
}

bool weft__pending_due(const weft__pending *p, size_t more) {
    return p->count && (!p->list[0] || p->count + more > WEFT__PENDING);
}

weft_status weft__pending_read(weft__pending *p, double values[WEFT__PENDING], size_t *count) {
    const bool later = p->count && p->list[0];
    *count = p->count;
    memcpy(values, p->values, p->count * sizeof *values);
    const weft_status status = later ? weft__items(p->list, p->count, values) : WEFT_OK;
    weft__pending_free(p);
    return status;
}

void weft__pending_free(weft__pending *p) {
    for (size_t i = 0; i < p->count; i++) weft_free(p->list[i]);
    p->count = 0;
}
