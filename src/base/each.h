/* Runs a task for each of several devices at the same time, each on a thread of its own. Must not know: what
 * the tasks compute. Read next: each.c. */
#ifndef WEFT_BASE_EACH_H
#define WEFT_BASE_EACH_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/base.h>

enum { WEFT__EACH_MOST = 64 }; /* tasks */

typedef struct weft__each {
    size_t count;                                  /* 1 to WEFT__EACH_MOST */
    const char *names[WEFT__EACH_MOST];            /* of the devices, for messages */
    weft_status (*task)(void *user, size_t index); /* what it fails with is the last error of its thread */
    void *user;
    _Atomic bool failed; /* by a task. The others may then return early, with any status */
} weft__each;

/* Runs all tasks, and waits for them. Task 0 runs on the calling thread. Returns WEFT_OK if all succeed.
 * Otherwise it fails as the task that failed first. The message begins with that task's device, if there
 * are several. */
weft_status weft__each_run(weft__each *each);

#endif
