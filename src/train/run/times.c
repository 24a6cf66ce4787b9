/* Seconds by name: how the time of a run was spent. Must not know: clocks, runs. Read next: progress.c. */
#include <math.h>
#include <string.h>

#include "train/print.h"
#include "train/run/times.h"

void weft__shares_add(weft__shares *shares, const char *name, double seconds) {
    size_t i = 0;
    while (i < shares->count && strcmp(shares->item[i].name, name) != 0) i++;
    if (i == WEFT__SHARES) return;
    if (i == shares->count) {
        shares->item[shares->count++] = (weft__share){.seconds = 0};
        snprintf(shares->item[i].name, sizeof shares->item[i].name, "%s", name);
    }
    shares->item[i].seconds += seconds;
}

void weft__shares_add_parts(weft__shares *shares, const weft_profile_times *times) {
    for (int w = 0; w < WEFT_WORK_COUNT; w++)
        weft__shares_add(shares, weft_work_name((weft_work)w), times->work[w]);
    weft__shares_add(shares, "data", times->data);
    weft__shares_add(shares, "upload", times->upload);
    weft__shares_add(shares, "download", times->download);
    weft__shares_add(shares, "waiting", times->waiting);
    weft__shares_add(shares, "exchange", times->exchange);
    weft__shares_add(shares, "context", times->context);
    weft__shares_add(shares, "compile", times->compile);
    weft__shares_add(shares, "host", times->host);
}

double weft__shares_total(const weft__shares *shares) {
    double total = 0;
    for (size_t i = 0; i < shares->count; i++) total += shares->item[i].seconds;
    return total;
}

/* Rounds down to tenths, and then gives the missing tenths to the entries that lost most. */
void weft__shares_percent(const weft__shares *shares, double percent[WEFT__SHARES]) {
    double total = weft__shares_total(shares), lost[WEFT__SHARES];
    int tenths[WEFT__SHARES], missing = 1000;
    for (size_t i = 0; i < shares->count; i++) {
        double exact = total > 0 ? shares->item[i].seconds / total * 1000 : 0;
        tenths[i] = (int)exact;
        lost[i] = exact - (double)tenths[i];
        missing -= tenths[i];
    }
    for (; total > 0 && missing > 0; missing--) {
        size_t most = 0;
        for (size_t i = 1; i < shares->count; i++)
            if (lost[i] > lost[most]) most = i;
        tenths[most]++;
        lost[most] = -1;
    }
    for (size_t i = 0; i < shares->count; i++) percent[i] = tenths[i] / 10.0;
}

double weft__shares_without(const weft__shares *shares, const char *name) {
    double total = weft__shares_total(shares), rest = 0;
    for (size_t i = 0; i < shares->count; i++)
        if (strcmp(shares->item[i].name, name) != 0) rest += shares->item[i].seconds;
    return rest > 0 ? total / rest : 0;
}

void weft__shares_print(const weft__shares *shares, FILE *out) {
    double percent[WEFT__SHARES];
    weft__shares_percent(shares, percent);
    for (size_t i = 0; i < shares->count; i++)
        if (shares->item[i].seconds > 0)
            weft__print(out, "  %-13s %10.3f s  %5.1f %%\n", shares->item[i].name, shares->item[i].seconds,
                        percent[i]);
    weft__print(out, "  %-13s %10.3f s  %5.1f %%\n", "in all", weft__shares_total(shares),
                weft__shares_total(shares) > 0 ? 100.0 : 0.0);
}
