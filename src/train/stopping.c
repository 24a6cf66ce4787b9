/* Early stopping, as a state that checkpoints keep, so that a resumed run stops where it would have.
 * Must not know: how losses are computed, checkpoints. Read next: loop.c. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "train/stopping.h"

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

void weft__stopping_text(const weft__stopping *s, char out[200]) {
    if (s->best_step == 0 || !isfinite(s->best_loss) || !isfinite(s->reference))
        snprintf(out, 200, "{}");
    else
        snprintf(out, 200,
                 "{\"best_step\": %llu, \"best_loss\": %.17g, \"reference\": %.17g, \"waited\": %lld}",
                 (unsigned long long)s->best_step, s->best_loss, s->reference, (long long)s->waited);
}

void weft__stopping_read(const char *text, weft__stopping *s) {
    json_int_t step = 0, waited = 0;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    *s = (weft__stopping){0};
    const bool taken =
        object && json_unpack(object, "{s:I, s:F, s:F, s:I}", "best_step", &step, "best_loss", &s->best_loss,
                              "reference", &s->reference, "waited", &waited) == 0;
    json_decref(object);
    if (!taken || step <= 0 || waited < 0) {
        *s = (weft__stopping){0};
        return;
    }
    s->best_step = (uint64_t)step;
    s->waited = (int64_t)waited;
}
