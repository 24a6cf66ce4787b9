/* Single numbers (losses) that a device which works on its own may still be computing: kept, and read
 * together where somebody looks, so that nobody waits in between. Read next: pending.c. */
#ifndef WEFT_SRC_DATA_PENDING_H
#define WEFT_SRC_DATA_PENDING_H

#include <weft/tensor.h>

#include "base/base.h"

enum { WEFT__PENDING = 64 };

typedef struct weft__pending {
    weft_tensor *list[WEFT__PENDING]; /* NULL: values[i] is known */
    double values[WEFT__PENDING];
    size_t count;
} weft__pending;

/* Adds an evaluated number; of a device whose runs are all waited for, like the CPU, it is read at once. */
weft_status weft__pending_add(weft__pending *pending, weft_tensor *number);
/* Must it be emptied before `more` numbers are added, or costs that nothing? */
bool weft__pending_due(const weft__pending *pending, size_t more);
/* Reads all of them, in the order in which they were added, and forgets them. */
weft_status weft__pending_read(weft__pending *pending, double values[WEFT__PENDING], size_t *count);
void weft__pending_free(weft__pending *pending);

#endif
