/* Collects numbers that are read later, see pending.h. Must not know: what the numbers mean. Read next:
 * fit.c. */
#include "compiler/runtime/derive.h"
#include "data/pending.h"
#include "device/device.h"
#include "graph/graph.h"

weft_status weft__pending_add(weft__pending *p, weft_tensor *number) {
    const size_t i = p->count;
    p->list[i] = number->ctx->device->asynchronous ? weft_keep(number) : NULL;
    if (!p->list[i]) WEFT_TRY(weft__item(number, &p->values[i]));
    p->count++;
    return WEFT_OK;
}

bool weft__pending_due(const weft__pending *p, size_t more) {
    return p->count && (!p->list[0] || p->count + more > WEFT__PENDING);
}

weft_status weft__pending_read(weft__pending *p, double values[WEFT__PENDING], size_t *count) {
    weft_status status = WEFT_OK;
    *count = p->count;
    for (size_t i = 0; i < p->count && status == WEFT_OK; i++) {
        values[i] = p->values[i];
        if (p->list[i]) status = weft__item(p->list[i], &values[i]);
    }
    weft__pending_free(p);
    return status;
}

void weft__pending_free(weft__pending *p) {
    for (size_t i = 0; i < p->count; i++) weft_free(p->list[i]);
    p->count = 0;
}
