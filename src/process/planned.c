/* A group for plans: rank 0 of so many processes, of which no other exists. The optimizer divides its state
 * as in a real group, so that a plan shows what one process needs. Transfers end at once, and the other ranks
 * seem to have sent what rank 0 has. Must not know: what is planned. Read next: group.c. */
#include <stdio.h>
#include <string.h>

#include "process/group.h"

static const char *planned_broadcast(weft_transport *t, void *data, size_t bytes, int from,
                                     weft_transfer *transfer) {
    (void)t, (void)data, (void)bytes, (void)from, (void)transfer;
    return NULL;
}

static const char *planned_all_gather(weft_transport *t, void *data, size_t bytes, weft_transfer *transfer) {
    (void)transfer;
    for (int i = 1; i < t->size; i++) memcpy((char *)data + (size_t)i * bytes, data, bytes);
    return NULL;
}

static const char *planned_all_to_all(weft_transport *t, const void *send, void *receive, size_t bytes,
                                      weft_transfer *transfer) {
    (void)transfer;
    for (int i = 0; i < t->size; i++) memcpy((char *)receive + (size_t)i * bytes, send, bytes);
    return NULL;
}

static const char *planned_all_reduce(weft_transport *t, void *data, int wide, size_t count,
                                      weft_transfer *transfer) {
    (void)t, (void)data, (void)wide, (void)count, (void)transfer;
    return NULL;
}

static const char *planned_test(weft_transport *t, weft_transfer *transfer, int *ended) {
    (void)t, (void)transfer;
    *ended = 1;
    return NULL;
}

static int planned_asked(weft_transport *t) {
    (void)t;
    return 0;
}

static void planned_call_roll(weft_transport *t, double seconds, unsigned char *present) {
    (void)seconds;
    memset(present, 1, (size_t)t->size);
}

static void planned_abort(weft_transport *t, int code) { (void)t, (void)code; }

static void planned_close(weft_transport *t) { weft__free(NULL, t); }

weft_status weft__process_group_planned(int size, weft_process_group **group) {
    *group = NULL;
    weft_transport *t = weft__zalloc(NULL, sizeof *t);
    if (!t) return weft__fail_oom(NULL, sizeof *t, "a group of processes");
    *t = (weft_transport){.version = WEFT_TRANSPORT_VERSION,
                          .size = size,
                          .broadcast = planned_broadcast,
                          .all_gather = planned_all_gather,
                          .all_to_all = planned_all_to_all,
                          .all_reduce = planned_all_reduce,
                          .test = planned_test,
                          .asked = planned_asked,
                          .call_roll = planned_call_roll,
                          .abort = planned_abort,
                          .close = planned_close};
    snprintf(t->name, sizeof t->name, "no engine, for plans");
    WEFT_TRY(weft__process_group_on(t, NULL, group));
    (*group)->planned = true;
    return WEFT_OK;
}
