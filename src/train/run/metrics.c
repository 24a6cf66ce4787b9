/* The table of metrics, and access to their numbers. Must not know: files, terminals, the loop. Read next:
 * run_dir.c, which writes them. */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "train/run/metrics.h"

/* The compiler refuses a COLUMN that two rows have, and one that leaves a gap: the number of rows is the size
 * of the table. */
const weft__metric weft__metric_columns[WEFT__METRICS] = {
#define METRIC(column, member, ...) [column] = {.offset = offsetof(weft__metrics, member), __VA_ARGS__},
#include "train/run/metrics.def"
};

const weft__metric *const weft__metric_rows[WEFT__METRICS] = {
#define METRIC(column, member, ...) &weft__metric_columns[column],
#include "train/run/metrics.def"
};

const weft__result weft__result_rows[WEFT__RESULTS] = {
#define RESULT(member, label, notation, digits)                                                              \
    {#member, label, offsetof(weft__results, member), WEFT__NOTATION_##notation, digits},
#include "train/run/metrics.def"
};

static double metrics_load(const void *base, size_t offset) {
    double value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

static void metrics_store(void *base, size_t offset, double value) {
    memcpy((char *)base + offset, &value, sizeof value);
}

double weft__metric_get(const weft__metrics *metrics, const weft__metric *metric) {
    return metrics_load(metrics, metric->offset);
}

void weft__metric_set(weft__metrics *metrics, const weft__metric *metric, double value) {
    metrics_store(metrics, metric->offset, value);
}

weft__metrics weft__metrics_none(uint64_t step) {
    weft__metrics m = {.step = step};
    for (int i = 0; i < WEFT__METRICS; i++) weft__metric_set(&m, weft__metric_rows[i], (double)NAN);
    return m;
}

const char *weft__metric_word(const weft__metric_text text, bool tokens) {
    return tokens && text[1] ? text[1] : text[0];
}

double weft__result_get(const weft__results *results, const weft__result *result) {
    return metrics_load(results, result->offset);
}

void weft__result_set(weft__results *results, const weft__result *result, double value) {
    metrics_store(results, result->offset, value);
}

weft__results weft__results_none(void) {
    weft__results r;
    for (int i = 0; i < WEFT__RESULTS; i++) weft__result_set(&r, &weft__result_rows[i], (double)NAN);
    return r;
}

double weft__memory_peak(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : (double)NAN;
}
