/* Learning-rate schedules: pure functions of the step.
 * Must not know: optimizers. Read next: step.c. */
#include <math.h>
#include <string.h>
#include <weft/optim.h>

#include "base/option.h"

double weft_schedule_lr(const weft_schedule *s, uint64_t step) {
    if (!s) return (double)NAN;
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)(s->warmup + 1);
    uint64_t past = step - s->warmup;
    switch (s->kind) {
    case WEFT_SCHEDULE_CONSTANT: break;
    case WEFT_SCHEDULE_STEP: {
        const double factor = weft__value_or(s->factor, 0.1);
        double lr = s->every ? s->lr * pow(factor, (double)(past / s->every)) : s->lr;
        return lr > s->min_lr ? lr : s->min_lr;
    }
    case WEFT_SCHEDULE_COSINE:
    case WEFT_SCHEDULE_LINEAR: {
        if (step >= s->steps) return s->min_lr;
        double done = (double)past / (double)(s->steps - s->warmup);
        double left =
            s->kind == WEFT_SCHEDULE_LINEAR ? 1.0 - done : 0.5 * (1.0 + cos(3.14159265358979323846 * done));
        return s->min_lr + left * (s->lr - s->min_lr);
    }
    }
    return s->lr;
}

static const char *const names[] = {[WEFT_SCHEDULE_CONSTANT] = "constant",
                                    [WEFT_SCHEDULE_STEP] = "step",
                                    [WEFT_SCHEDULE_COSINE] = "cosine",
                                    [WEFT_SCHEDULE_LINEAR] = "linear"};

const char *weft_schedule_name(weft_schedule_kind kind) {
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

bool weft_schedule_parse(const char *name, weft_schedule_kind *kind) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (name && strcmp(name, names[i]) == 0) {
            if (kind) *kind = (weft_schedule_kind)i;
            return true;
        }
    return false;
}
