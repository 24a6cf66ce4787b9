/* Tasks on several devices, see each.h. A context belongs to one thread at a time, and a synchronous device
 * computes on the thread that calls it. So devices compute at the same time only if each has a thread.
 * Must not know: devices. Read next: threads.c. */
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/each.h"
#include "base/threads.h"

typedef struct each_task {
    weft__each *each;
    size_t index;
    pthread_t thread;
    bool threaded; /* `thread` runs it */
    bool told;     /* it failed before any other task had */
    weft_status status;
    char message[WEFT_ERROR_SIZE];
} each_task;

static void *each_task_run(void *user) {
    each_task *t = user;
    t->status = t->each->task(t->each->user, t->index);
    if (t->status == WEFT_OK) return NULL;
    memcpy(t->message, weft_last_error(NULL), sizeof t->message);
    t->told = !atomic_exchange(&t->each->failed, true);
    return NULL;
}

weft_status weft__each_run(weft__each *each) {
    const size_t count = each->count;
    atomic_store(&each->failed, false);
    if (count == 1) return each->task(each->user, 0);
    each_task *tasks = weft__array(NULL, count, sizeof *tasks), *failed = NULL;
    if (!tasks) return weft__fail_oom(NULL, count * sizeof *tasks, "several devices");
    for (size_t i = 0; i < count; i++) tasks[i] = (each_task){.each = each, .index = i};
    for (size_t i = 1; i < count; i++)
        tasks[i].threaded = weft__thread_start(&tasks[i].thread, each_task_run, &tasks[i]);
    for (size_t i = 0; i < count; i++) /* and those that got no thread */
        if (!tasks[i].threaded) each_task_run(&tasks[i]);
    for (size_t i = 1; i < count; i++)
        if (tasks[i].threaded) pthread_join(tasks[i].thread, NULL);
    for (size_t i = 0; i < count; i++)
        if (tasks[i].told) failed = &tasks[i];
    const weft_status status =
        failed ? weft__fail(NULL, failed->status, "device %zu of %zu (%s): %s", failed->index + 1, count,
                            each->names[failed->index], failed->message)
               : WEFT_OK;
    weft__free(NULL, tasks);
    return status;
}
