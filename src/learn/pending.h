/* Collects single numbers, such as losses, that an asynchronous device may still be computing. They are read
 * together when somebody needs one, so that the host does not wait in between. Must not know: what the
 * numbers mean. Read next: pending.c. */
#ifndef WEFT_SRC_LEARN_PENDING_H
#define WEFT_SRC_LEARN_PENDING_H

#include <weft/tensor.h>

#include "base/base.h"

enum { WEFT__PENDING = 64 };

typedef struct weft__pending {
    weft_tensor *list[WEFT__PENDING]; /* NULL: values[i] is already known */
    double values[WEFT__PENDING];
    size_t count;
} weft__pending;

/* Adds an evaluated number. On a synchronous device such as the CPU the value is read at once. */
weft_status weft__pending_add(weft__pending *pending, weft_tensor *number);
/* Tells whether to read now: either there is no room for `more` numbers, or reading does not wait. */
bool weft__pending_due(const weft__pending *pending, size_t more);
/* Reads all numbers in the order in which they were added, and removes them. */
weft_status weft__pending_read(weft__pending *pending, double values[WEFT__PENDING], size_t *count);
void weft__pending_free(weft__pending *pending);

#endif
