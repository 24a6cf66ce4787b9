/* Links between the devices of the processes, such as NCCL between cards: opening them where all processes
 * can, and waiting with the group's time limit. Must not know: what is exchanged, any device. Read next:
 * group.h, device/device.h, device/gpu/driver/nccl/link.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "process/group.h"

#define OPEN_SHARE 0.5 /* of the time limit is the limit for opening, since the others wait meanwhile */

struct weft__process_link {
    weft_linked programs; /* first: its programs know only this. Holds the link */
    weft_process_group *group;
    const weft_link_functions *functions;
    char name[WEFT_LINK_NAME];
    bool done;          /* what the process waits for: the end of all work, or that it is submitted */
    int number;         /* the exchange of a program that it waits for */
    weft_status status; /* of the first exchange that failed */
    char error[WEFT_ERROR_SIZE];
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

/* ---- waiting ---- */

static const char *test_link(void *user, bool *ended) {
    const weft__process_link *l = user;
    return l->functions->test(l->programs.link, l->done, ended);
}

static void give_up_link(void *user) {
    weft__process_link *l = user;
    l->functions->close(l->programs.link, true);
    l->programs.link = NULL;
}

/* Keeps the reason of the first failure. */
static weft_status keep_failure(weft__process_link *l, weft_status status) {
    if (status == WEFT_OK || l->status != WEFT_OK) return status;
    l->status = status;
    snprintf(l->error, sizeof l->error, "%s", weft_last_error(NULL));
    return status;
}

static weft_status first_failure(const weft__process_link *l) {
    return l->status == WEFT_OK ? WEFT_OK : weft__fail(NULL, l->status, "%s", l->error);
}

/* Waits until a transfer is submitted, or until all is done. error: what the transfer returned. */
static weft_status await_link(weft__process_link *l, const char *error, bool done) {
    l->done = done;
    return keep_failure(
        l, weft__process_group_await(l->group, error, &(weft__awaited){l->name, test_link, give_up_link, l}));
}

/* ---- exchanges of programs ---- */

static weft_status begin_exchange(weft_linked *linked, const weft_heavy_exchange *what) {
    weft__process_link *l = (weft__process_link *)linked;
    WEFT_TRY(first_failure(l));
    return keep_failure(l, weft__process_group_compare_order(l->group, what));
}

static weft_status exchange_submitted(weft_linked *linked, const char *error) {
    weft__process_link *l = (weft__process_link *)linked;
    return await_link(l, error, false);
}

/* Waits until this process has computed what it gives to the exchange. Only then the time limit counts. */
static const char *await_own(const weft__process_link *l) {
    const struct timespec nap = {0, 50000};
    const char *error = NULL;
    bool begun = false;
    while (!(error = l->functions->test_exchange(l->programs.link, l->number, false, &begun)) && !begun)
        nanosleep(&nap, NULL);
    return error;
}

static const char *test_exchange(void *user, bool *ended) {
    const weft__process_link *l = user;
    return l->functions->test_exchange(l->programs.link, l->number, true, ended);
}

static weft_status exchanges_ended(weft_linked *linked, int count) {
    weft__process_link *l = (weft__process_link *)linked;
    weft_process_group *g = l->group;
    const double before = g->waited;
    double took = 0, waited = 0;
    weft_status status = first_failure(l);
    for (l->number = 0; l->number < count && status == WEFT_OK; l->number++)
        status = weft__process_group_await(g, await_own(l),
                                           &(weft__awaited){l->name, test_exchange, give_up_link, l});
    if (status != WEFT_OK) return keep_failure(l, status);
    l->functions->exchange_times(l->programs.link, count, &took, &waited);
    g->waited = before + waited; /* the device, not the host, waits for others */
    g->hidden += took > waited ? took - waited : 0;
    return WEFT_OK;
}

static weft_status exchanges_failed(const weft_linked *linked) {
    return first_failure((const weft__process_link *)linked);
}

/* ---- opening and closing ---- */

/* Waits until the link is open. Returns NULL, or why it does not open. */
static const char *await_opening(const weft_process_group *g, const weft__process_link *l) {
    const struct timespec nap = {0, 1000000};
    const double from = weft__process_group_now();
    const char *error = NULL;
    bool ended = false;
    while (!(error = l->functions->test(l->programs.link, false, &ended)) && !ended) {
        if (weft__process_group_now() - from > OPEN_SHARE * g->timeout) return late;
        nanosleep(&nap, NULL);
    }
    return error;
}

/* Opens the link in this process. Returns NULL, or why this fails. */
static const char *open_own(weft_device *device, const char id[WEFT_LINK_ID], weft__process_link *l) {
    const weft_process_group *g = l->group;
    const char *error = l->functions->open(device, id, g->rank, g->size, &l->programs.link);
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
    if (!g || (g->planned && !device->plans_links)) return WEFT_OK;
    weft__process_link *l = weft__array(NULL, 1, sizeof *l);
    if (!l) return weft__fail_oom(NULL, sizeof *l, "a link between devices");
    *l = (weft__process_link){.programs = {.rank = g->rank,
                                           .size = g->size,
                                           .begin = begin_exchange,
                                           .submitted = exchange_submitted,
                                           .ended = exchanges_ended,
                                           .failed = exchanges_failed},
                              .group = g,
                              .functions = weft__device_links(device)};
    if (g->planned) { /* there is nothing to open */
        *link = l;
        return WEFT_OK;
    }
    weft__process_group_purpose(g, g->step, "a link between the devices");
    weft_status status = collect_offers(g, device, l->name, &some, why);
    if (status == WEFT_OK && !why[0]) status = open_all(device, l, why);
    if (status == WEFT_OK && !why[0]) {
        *link = l;
        if (g->rank == 0) weft__log(device->ctx, WEFT_LOG_INFO, "%s exchanges the gradients", l->name);
        return WEFT_OK;
    }
    if (l->programs.link) l->functions->close(l->programs.link, true);
    weft__free(NULL, l);
    if (status == WEFT_OK && some && g->rank == 0)
        weft__log(device->ctx, WEFT_LOG_WARNING, "gradients are exchanged through the memory of the host: %s",
                  why);
    return status;
}

void weft__process_link_close(weft__process_link *l) {
    if (!l) return;
    if (l->programs.link) l->functions->close(l->programs.link, false);
    weft__free(NULL, l);
}

weft_linked *weft__process_link_programs(weft__process_link *l) { return l ? &l->programs : NULL; }

weft_process_group *weft__process_link_group(const weft__process_link *l) { return l ? l->group : NULL; }

/* ---- between two programs ---- */

weft_status weft__process_link_all_gather(weft__process_link *l, weft_buffer *from, size_t from_at,
                                          weft_buffer *to, size_t to_at, size_t part, size_t bytes) {
    WEFT_TRY(first_failure(l));
    return await_link(l, l->functions->all_gather(l->programs.link, from, from_at, to, to_at, part, bytes),
                      false);
}

weft_status weft__process_link_finish(weft__process_link *l) {
    WEFT_TRY(first_failure(l));
    return await_link(l, NULL, true);
}
