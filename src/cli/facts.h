/* What a list or a comparison shows of a run: its summary, its result, when it began. Must not know: how it
 * is shown. Read next: facts.c, runs.c. */
#ifndef WEFT_SRC_CLI_FACTS_H
#define WEFT_SRC_CLI_FACTS_H

#include <time.h>

#include "base/json.h"
#include "train/run/history.h"

/* What a run is judged by: R2 of numbers, accuracy of classes, otherwise the loss. */
typedef struct weft__measure {
    const char *key, *label; /* in JSON, for people */
    weft__notation notation;
    int digits;
    bool rises; /* more is better */
} weft__measure;

typedef struct weft__facts {
    weft__summary summary;
    weft__history history;
    double best, last;            /* loss: the lowest of the validation, the last of training */
    const weft__measure *measure; /* NULL: nothing was measured yet */
    const char *part;             /* of the data that were measured: "", "test " or "train " */
    double value;                 /* NaN: nothing was measured yet */
    time_t started;               /* -1: unknown */
} weft__facts;

/* Reads a run folder. Damaged lines of the metrics give a warning. The caller frees *facts with
 * weft__facts_free, also after a failure. */
weft_status weft__facts_read(const char *dir, weft__facts *facts);
void weft__facts_free(weft__facts *facts);

enum { WEFT__FACT_TEXT = 64 };
/* Return texts for people, written to `out`: "accuracy 98.31 %", "34 s", "Nov 24 11:09". Unknown: "-". */
const char *weft__facts_result(const weft__facts *facts, char out[WEFT__FACT_TEXT]);
const char *weft__facts_time(double seconds, char out[WEFT__FACT_TEXT]);
const char *weft__facts_started(const weft__facts *facts, char out[WEFT__FACT_TEXT]);

/* Tells whether run a has a better result than run b; of equal ones the validation loss decides. A run
 * without a result is the worst. */
bool weft__facts_better(const weft__facts *a, const weft__facts *b);

/* Returns the facts as an object, between weft__json_build and weft__json_text. `dir` is its first member. */
json_t *weft__facts_json(const char *dir, const weft__facts *facts);

/* Compares two names in natural order: numbers in them by value, so that run2 comes before run10. */
int weft__natural_order(const char *a, const char *b);

#endif
