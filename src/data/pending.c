/* Numbers that are read later: see pending.h. Must not know: what they are. */
#include "compiler/program.h"
#include "data/pending.h"

void weft__pending_add(weft__pending *p, weft_tensor *const *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) p->list[p->count++] = weft_keep(numbers[i]);
}

bool weft__pending_due(const weft__pending *p, size_t more) {
    return p->count && (p->count + more > WEFT__PENDING || !p->list[0]->ctx->device->asynchronous);
}

weft_status weft__pending_read(weft__pending *p, double values[WEFT__PENDING], size_t *count) {
    weft_status status = WEFT_OK;
    *count = p->count;
    for (size_t i = 0; i < p->count && status == WEFT_OK; i++) status = weft__item(p->list[i], &values[i]);
    weft__pending_free(p);
    return status;
}

void weft__pending_free(weft__pending *p) {
    for (size_t i = 0; i < p->count; i++) weft_free(p->list[i]);
    p->count = 0;
}
