/* Links between the devices of the processes, such as NCCL between cards: opening them where all processes
 * can, and waiting with the group's time limit. Must not know: what is exchanged, any device. Read next:
 * group.h, device/device.h, device/cuda/nccl/link.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "process/group.h"

#define OPEN_SHARE 0.5 /* of the time limit is the limit for opening, since the others wait meanwhile */

struct weft__process_link {
    weft_process_group *group;
    const weft_link_functions *functions;
    weft_link *link; /* NULL: it was given up */
    char name[WEFT_LINK_NAME];
    bool done; /* what the process waits for: the end of all work, or that it is submitted */
};

enum { WHY = WEFT_LINK_REASON + 128 };

/* ---- agreeing ---- */

/* Writes why the devices with these offers cannot be linked. All processes write the same. */
static void find_obstacle(const weft_process_group *g, const weft_link_offer *offers, char why[WHY]) {
    for (int i = 0; i < g->size && !why[0]; i++) {
        const weft_link_offer *o = &offers[i];
        if (o->reason[0]) {
            snprintf(why, WHY, "rank %d (%s): %s", i, g->hosts[i], o->reason);
        } else if (strcmp(o->library, offers[0].library) != 0) {
            snprintf(why, WHY, "rank %d (%s) has %s, but rank 0 (%s) has %s: install the same", i,
                     g->hosts[i], o->library, g->hosts[0], offers[0].library);
        }
        for (int k = 0; k < i && !why[0]; k++)
            if (strcmp(o->card, offers[k].card) == 0 && strcmp(g->hosts[i], g->hosts[k]) == 0)
                snprintf(why, WHY,
                         "ranks %d and %d share a card (%s) of %s: start as many processes as there are "
                         "cards",
                         k, i, o->card, g->hosts[i]);
    }
}

/* Why a link does not open, unless another process knows better. */
static const char late[] = "it does not open in time; a larger time limit may help";

/* Collects a text of each process, and writes the first reason to `why`, with its rank. */
static weft_status first_text(weft_process_group *g, const char *own, char why[WHY]) {
    const size_t size = (size_t)g->size;
    char(*all)[WEFT_LINK_REASON] = weft__array(NULL, size, sizeof *all);
    if (!all) return weft__fail_oom(NULL, size * sizeof *all, "a link between devices");
    snprintf(all[g->rank], sizeof *all, "%s", own ? own : "");
    const weft_status status = weft_process_group_all_gather(g, all, sizeof *all);
    int first = -1;
    for (int i = g->size - 1; i >= 0 && status == WEFT_OK; i--)
        if (all[i][0] && (first < 0 || strcmp(all[i], late) != 0)) first = i;
    if (first >= 0) snprintf(why, WHY, "rank %d (%s): %s", first, g->hosts[first], all[first]);
    weft__free(NULL, all);
    return status;
}

/* Collects what all devices offer. *some: one of them belongs to a kind that can be linked. */
static weft_status collect_offers(weft_process_group *g, weft_device *device, char library[WEFT_LINK_NAME],
                                  bool *some, char why[WHY]) {
    const size_t size = (size_t)g->size;
    const weft_link_functions *functions = weft__device_links(device);
    weft_link_offer *offers = weft__array(NULL, size, sizeof *offers), *own = &offers[g->rank];
    if (!offers) return weft__fail_oom(NULL, size * sizeof *offers, "a link between devices");
    if (functions)
        functions->offer(device, own);
    else
        snprintf(own->reason, sizeof own->reason, "%s has no links between devices", device->name);
    const weft_status status = weft_process_group_all_gather(g, offers, sizeof *offers);
    *some = false;
    for (int i = 0; i < g->size; i++) *some = *some || offers[i].card[0];
    if (status == WEFT_OK) find_obstacle(g, offers, why);
    memcpy(library, offers[0].library, WEFT_LINK_NAME);
    weft__free(NULL, offers);
    return status;
}

/* ---- opening and closing ---- */

/* Waits until the link is open. Returns NULL, or why it does not open. */
static const char *await_opening(const weft_process_group *g, const weft__process_link *l) {
    const struct timespec nap = {0, 1000000};
    const double from = weft__process_group_now();
    const char *error = NULL;
    bool ended = false;
    while (!(error = l->functions->test(l->link, false, &ended)) && !ended) {
        if (weft__process_group_now() - from > OPEN_SHARE * g->timeout) return late;
        nanosleep(&nap, NULL);
    }
    return error;
}

/* Opens the link in this process. Returns NULL, or why this fails. */
static const char *open_own(weft_device *device, const char id[WEFT_LINK_ID], weft__process_link *l) {
    const weft_process_group *g = l->group;
    const char *error = l->functions->open(device, id, g->rank, g->size, &l->link);
    return error ? error : await_opening(g, l);
}

/* Opens the link in all processes, or in none. */
static weft_status open_all(weft_device *device, weft__process_link *l, char why[WHY]) {
    weft_process_group *g = l->group;
    char id[WEFT_LINK_ID] = "";
    const char *error = g->rank == 0 ? l->functions->identify(device, id) : NULL;
    WEFT_TRY(first_text(g, error, why));
    if (why[0]) return WEFT_OK;
    WEFT_TRY(weft_process_group_broadcast(g, id, sizeof id, 0));
    return first_text(g, open_own(device, id, l), why);
}

weft_status weft__process_link_open(weft_process_group *g, weft_device *device, weft__process_link **link) {
    char why[WHY] = "";
    bool some = false;
    *link = NULL;
    if (!g || g->planned) return WEFT_OK;
    weft__process_link *l = weft__array(NULL, 1, sizeof *l);
    if (!l) return weft__fail_oom(NULL, sizeof *l, "a link between devices");
    *l = (weft__process_link){.group = g, .functions = weft__device_links(device)};
    weft__process_group_purpose(g, g->step, "a link between the devices");
    weft_status status = collect_offers(g, device, l->name, &some, why);
    if (status == WEFT_OK && !why[0]) status = open_all(device, l, why);
    if (status == WEFT_OK && !why[0]) {
        *link = l;
        if (g->rank == 0) weft__log(device->ctx, WEFT_LOG_INFO, "%s exchanges the gradients", l->name);
        return WEFT_OK;
    }
    if (l->link) l->functions->close(l->link, true);
    weft__free(NULL, l);
    if (status == WEFT_OK && some && g->rank == 0)
        weft__log(device->ctx, WEFT_LOG_WARNING, "gradients are exchanged through the memory of the host: %s",
                  why);
    return status;
}

void weft__process_link_close(weft__process_link *l) {
    if (!l) return;
    if (l->link) l->functions->close(l->link, false);
    weft__free(NULL, l);
}

weft_process_group *weft__process_link_group(const weft__process_link *l) { return l ? l->group : NULL; }

/* ---- transfers ---- */

static const char *test_link(void *user, bool *ended) {
    const weft__process_link *l = user;
    return l->functions->test(l->link, l->done, ended);
}

static void give_up_link(void *user) {
    weft__process_link *l = user;
    l->functions->close(l->link, true);
    l->link = NULL;
}

/* Waits until a transfer is submitted, or until all is done. error: what the transfer returned. */
static weft_status await_link(weft__process_link *l, const char *error, bool done) {
    l->done = done;
    return weft__process_group_await(l->group, error, &(weft__awaited){l->name, test_link, give_up_link, l});
}

static weft_status is_open(const weft__process_link *l) {
    return l->link ? WEFT_OK
                   : weft__fail(NULL, WEFT_ERR_STATE,
                                "the link between the devices has failed before: start "
                                "the processes again");
}

weft_status weft__process_link_all_reduce(weft__process_link *l, weft_buffer *data, size_t at,
                                          weft_dtype dtype, size_t count) {
    WEFT_TRY(is_open(l));
    return await_link(l, l->functions->all_reduce(l->link, data, at, dtype, count), false);
}

weft_status weft__process_link_all_to_all(weft__process_link *l, weft_buffer *from, size_t from_at,
                                          weft_buffer *to, size_t to_at, size_t part) {
    WEFT_TRY(is_open(l));
    return await_link(l, l->functions->all_to_all(l->link, from, from_at, to, to_at, part), false);
}

weft_status weft__process_link_all_gather(weft__process_link *l, weft_buffer *from, size_t from_at,
                                          weft_buffer *to, size_t to_at, size_t part, size_t bytes) {
    WEFT_TRY(is_open(l));
    return await_link(l, l->functions->all_gather(l->link, from, from_at, to, to_at, part, bytes), false);
}

weft_status weft__process_link_finish(weft__process_link *l) {
    WEFT_TRY(is_open(l));
    return await_link(l, NULL, true);
}
