/* Adds up the predicted times of a program's launches, and finds the dearest kinds of them. Must not know:
 * how a launch is priced. Read next: planning.c, device/gpu/card/price.c. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "compiler/profile/profile.h"
#include "device/gpu/card/card.h"
#include "device/null/null.h"
#include "train/analysis/planning.h"

static bool is_alike(const weft__dear *d, const weft_null_price *p, const char *form) {
    char own[sizeof d->layer];
    weft__path_form(d->layer, own, sizeof own);
    return d->library == p->library && strcmp(d->what, p->what) == 0 && strcmp(own, form) == 0;
}

static int by_time(const void *a, const void *b) {
    const weft__dear *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* Adds a launch to its kind, or begins a new one. The reason is that of the first launch. */
static void predict_gather(const weft_null_price *p, weft__dear *list, int *count) {
    char form[sizeof list->layer];
    int i = 0;
    weft__path_form(p->path, form, sizeof form);
    while (i < *count && !is_alike(&list[i], p, form)) i++;
    weft__dear *d = &list[i];
    if (i == *count) {
        *d = (weft__dear){.library = p->library, .reason = p->reason};
        snprintf(d->layer, sizeof d->layer, "%s", p->path);
        snprintf(d->what, sizeof d->what, "%s", p->what);
        ++*count;
    } else if (strcmp(d->layer, p->path) != 0) {
        snprintf(d->layer, sizeof d->layer, "%s", form);
    }
    d->seconds += p->seconds;
    d->count++;
}

weft_status weft__predict_batch(weft_context *ctx, weft__predicted *to) {
    int n, count = 0;
    const weft_null_price *prices = weft__null_prices(ctx->device, &n);
    *to = (weft__predicted){.launches = n};
    if (!prices) return WEFT_OK;
    weft__dear *list = weft__array(ctx, (size_t)n, sizeof *list);
    if (!list) return weft__fail_oom(ctx, (size_t)n * sizeof *list, "the launches of a step");
    for (int i = 0; i < n; i++) {
        to->seconds += prices[i].seconds;
        predict_gather(&prices[i], list, &count);
    }
    qsort(list, (size_t)count, sizeof *list, by_time);
    const double submit = weft__null_submit(ctx->device);
    to->batch_seconds = to->seconds;
    if (to->seconds < submit) to->seconds = submit;
    to->n_dearest = count < WEFT__DEAREST ? count : WEFT__DEAREST;
    for (int i = 0; i < to->n_dearest; i++) to->dearest[i] = list[i];
    weft__free(ctx, list);
    return WEFT_OK;
}

bool weft__planning_card_at(int i, weft__planning_card *to) {
    weft_card card;
    if (!weft__card_at(i, &card)) return false;
    *to = (weft__planning_card){
        .memory = card.memory, .bandwidth = card.bandwidth, .tensor = card.rate[WEFT_UNIT_TENSOR]};
    snprintf(to->key, sizeof to->key, "%s", card.key);
    snprintf(to->name, sizeof to->name, "%s", card.name);
    return true;
}
