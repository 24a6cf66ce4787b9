/* Early stopping. Its state is kept in checkpoints, so that a resumed run stops where the uninterrupted run
 * would have stopped. Must not know: how losses are computed, checkpoints. Read next: loop.c. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "train/run/stopping.h"

/* min_delta matters only for patience: a loss that is lower by less is still the best. */
bool weft__stopping_look(weft__stopping *s, const weft__config *config, uint64_t step, double loss) {
    const bool first = s->best_step == 0;
    if (!isfinite(loss)) loss = (double)INFINITY;
    const bool best = first || loss < s->best_loss;
    if (first || loss < s->reference - config->train_min_delta) {
        s->reference = loss;
        s->waited = 0;
    } else {
        s->waited++;
    }
    if (!best) return false;
    s->best_loss = loss;
    s->best_step = step;
    return true;
}

bool weft__stopping_over(const weft__stopping *s, const weft__config *config) {
    return config->train_patience > 0 && s->waited >= config->train_patience;
}

/* ---- text ---- */

/* Numbers that are not finite are not written. */
static void put_due(weft_text *t, const weft__metrics *due) {
    weft__put(t, "%s\"due\": {\"step\": %llu", t->length > 1 ? ", " : "", (unsigned long long)due->step);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        const double value = weft__metric_get(due, metric);
        if (metric->due && isfinite(value)) weft__put(t, ", \"%s\": %.17g", metric->name[0], value);
    }
    weft__put(t, "}");
}

void weft__stopping_text(const weft__stopping *s, char out[WEFT__STOPPING_TEXT]) {
    weft_text t = weft__text(out, WEFT__STOPPING_TEXT);
    weft__put(&t, "{");
    if (s->best_step != 0 && isfinite(s->best_loss) && isfinite(s->reference))
        weft__put(&t, "\"best_step\": %llu, \"best_loss\": %.17g, \"reference\": %.17g, \"waited\": %lld",
                  (unsigned long long)s->best_step, s->best_loss, s->reference, (long long)s->waited);
    if (s->due.step != 0) put_due(&t, &s->due);
    weft__put(&t, "}");
}

static void read_due(const json_t *object, weft__metrics *due) {
    const json_int_t step = json_integer_value(json_object_get(object, "step"));
    if (step <= 0) return;
    *due = weft__metrics_none((uint64_t)step);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        const json_t *value = metric->due ? json_object_get(object, metric->name[0]) : NULL;
        if (value) weft__metric_set(due, metric, json_number_value(value));
    }
}

weft_status weft__stopping_read(weft_context *ctx, const char *text, weft__stopping *s) {
    weft__json json;
    json_error_t error;
    json_t *object;
    *s = (weft__stopping){0};
    weft__json_open(&json, ctx);
    const weft_status status =
        weft__json_load(&json, text, strlen(text), JSON_REJECT_DUPLICATES, &error, &object);
    const json_t *step = json_object_get(object, "best_step"), *loss = json_object_get(object, "best_loss"),
                 *reference = json_object_get(object, "reference"),
                 *waited = json_object_get(object, "waited");
    if (json_integer_value(step) > 0 && json_is_number(loss) && json_is_number(reference) &&
        json_is_integer(waited) && json_integer_value(waited) >= 0)
        *s = (weft__stopping){.best_step = (uint64_t)json_integer_value(step),
                              .best_loss = json_number_value(loss),
                              .reference = json_number_value(reference),
                              .waited = (int64_t)json_integer_value(waited)};
    read_due(json_object_get(object, "due"), &s->due);
    weft__json_close(&json);
    return status == WEFT_ERR_FORMAT ? WEFT_OK : status; /* unknown text counts as no state */
}
