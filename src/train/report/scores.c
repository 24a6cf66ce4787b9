/* Measures a model on a part of its data, and gives the scores as JSON or as lines. Must not know: the loop.
 * Read next: weft/metrics.h. */
#include <math.h>
#include <string.h>

#include "data/loader.h"
#include "train/print.h"
#include "train/report/scores.h"

#define CLASSES_SHOWN 20 /* classes printed as lines; JSON has all */
/* samples times classes; beyond this number there is no room for logits, and ROC AUC would take minutes */
#define LOGITS_MOST 100000000

/* One bit for each task, and one for preferences. */
enum {
    TEXT = 1 << WEFT__TASK_LANGUAGE_MODEL,
    CLASSES = 1 << WEFT__TASK_CLASSIFICATION,
    NUMBERS = 1 << WEFT__TASK_REGRESSION,
    PAIRS = 1 << (WEFT__TASK_REGRESSION + 1)
};

static unsigned task_bit(const weft__scores *s) { return s->pairs ? PAIRS : 1u << s->task; }

const weft__score weft__score_rows[WEFT__SCORES] = {
#define SCORE(key, label, tasks, value, notation, digits) {#key, label},
#include "train/report/scores.def"
};

const weft__score weft__class_score_rows[WEFT__CLASS_SCORES] = {
#define CLASS_SCORE(member, label) {#member, label},
#include "train/report/scores.def"
};

/* What else a row says. */
static const struct {
    unsigned tasks;
    weft__notation notation;
    int digits;
} forms[WEFT__SCORES] = {
#define SCORE(key, label, tasks, value, notation, digits) {tasks, WEFT__NOTATION_##notation, digits},
#include "train/report/scores.def"
};

static void values_of(const weft__scores *s, double out[WEFT__SCORES]) {
    const double values[] = {
#define SCORE(key, label, tasks, value, notation, digits) value,
#include "train/report/scores.def"
    };
    memcpy(out, values, sizeof values);
}

static void class_values(const weft_class_score *e, double out[WEFT__CLASS_SCORES]) {
    const double values[] = {
#define CLASS_SCORE(member, label) e->member,
#include "train/report/scores.def"
    };
    memcpy(out, values, sizeof values);
}

static void class_means(const weft_class_scores *c, double out[WEFT__CLASS_SCORES]) {
    const double values[] = {
#define CLASS_SCORE(member, label) c->member,
#include "train/report/scores.def"
    };
    memcpy(out, values, sizeof values);
}

/* Puts a mistake at its place in the list, if it belongs there. Of equal mistakes the first sample comes
 * first. */
static void take_mistake(weft__scores *s, weft__mistake m) {
    int at = s->mistake_count;
    if (at == WEFT__MISTAKES && !(m.probability > s->mistakes[--at].probability)) return;
    s->mistake_count = at + 1;
    for (; at > 0 && m.probability > s->mistakes[at - 1].probability; at--)
        s->mistakes[at] = s->mistakes[at - 1];
    s->mistakes[at] = m;
}

/* Finds the worst mistakes among answers (weft__evaluate_answers). */
static void find_mistakes_of_answers(const weft_array *answers, const weft_array *targets, weft__scores *s) {
    const float *answer = answers->data;
    const int32_t *actual = targets->data;
    for (int64_t i = 0; i < s->samples; i++, answer += 2) {
        const weft__mistake m = {.sample = i,
                                 .actual = actual[i],
                                 .predicted = (int64_t)answer[0],
                                 .probability = exp((double)answer[1])};
        if (m.predicted != m.actual && isfinite(m.probability)) take_mistake(s, m);
    }
}

/* Finds the worst mistakes. The logits are those of weft_score_classes. */
static void find_mistakes(const weft_array *predictions, const weft_array *targets, weft__scores *s) {
    const float *logits = predictions->data;
    const int32_t *actual = targets->data;
    const int64_t width = s->samples ? (int64_t)(predictions->bytes / sizeof *logits) / s->samples : 0;
    for (int64_t i = 0; i < s->samples; i++, logits += width) {
        weft__mistake m = {.sample = i, .actual = actual[i]};
        double others = 0;
        for (int64_t c = 1; c < width; c++)
            if (logits[c] > logits[m.predicted]) m.predicted = c;
        for (int64_t c = 0; c < width; c++) others += exp((double)logits[c] - (double)logits[m.predicted]);
        if (width == 1) { /* the logit of class 1 */
            m.predicted = logits[0] > 0;
            others = 1 + exp(-fabs((double)logits[0]));
        }
        m.probability = 1 / others;
        if (m.predicted != m.actual && isfinite(m.probability)) take_mistake(s, m);
    }
}

/* Gives normalized numbers the units of the data, but not their mean: the scores do not depend on it, and in
 * f32 a large one would drown the differences. */
static void spread(const weft__dataset *d, weft_array *numbers) {
    float *values = numbers->data;
    for (size_t i = 0; d->scaling.target_mean && i < weft__array_length(numbers); i++)
        values[i] = (float)((double)values[i] * d->scaling.target_deviation[i % (size_t)d->outputs]);
}

static weft_status score_classes(const weft__dataset *dataset, bool answers, const weft_array *predictions,
                                 const weft_array *targets, const float *weights, bool auc, weft__scores *s) {
    WEFT_TRY(answers ? weft__score_answers(predictions, targets, dataset->outputs, weights, &s->classes)
                     : weft_score_weighted_classes(NULL, predictions, targets, weights, auc, &s->classes));
    s->samples = s->classes.samples;
    s->accuracy = s->classes.accuracy;
    (answers ? find_mistakes_of_answers : find_mistakes)(predictions, targets, s);
    return WEFT_OK;
}

static weft_status score_numbers(const weft__dataset *dataset, weft_array *predictions, weft_array *targets,
                                 const float *weights, weft__scores *s) {
    spread(dataset, predictions);
    spread(dataset, targets);
    s->samples = targets->shape[0];
    return weft_score_weighted_numbers(NULL, predictions, targets, weights, &s->numbers);
}

static weft_status score_pairs(const weft__model *model, const weft__evaluators *on, weft__scores *s) {
    weft_preference_scores made;
    const weft_status status = weft__preferences_evaluate(on, model->beta, &made);
    s->loss = made.loss;
    s->accuracy = made.accuracy;
    s->margin = made.margin;
    s->samples = on->list[0].loader->samples;
    return status;
}

weft_status weft__scores_gather(const weft__model *model, const weft__dataset *dataset,
                                const weft__evaluators *on, bool auc, weft__scores *s) {
    const weft_loader *loader = on->list[0].loader;
    weft_array predictions, targets;
    *s = (weft__scores){.task = dataset->task, .pairs = dataset->chats.pairs, .accuracy = (double)NAN};
    if (s->pairs) return score_pairs(model, on, s);
    if (s->task == WEFT__TASK_LANGUAGE_MODEL) {
        WEFT_TRY(weft__evaluate(on, model->loss, &s->loss, &s->accuracy));
        s->samples = loader->samples;
        return WEFT_OK;
    }
    const bool classes = s->task == WEFT__TASK_CLASSIFICATION,
               answers = classes && loader->samples > LOGITS_MOST / (dataset->outputs + 1);
    WEFT_TRY(answers ? weft__evaluate_answers(on, &s->loss, &predictions, &targets)
                     : weft__evaluate_all(on, model->loss, &s->loss, &predictions, &targets));
    const float *weights = loader->options.weights;
    const weft_status status = classes
                                   ? score_classes(dataset, answers, &predictions, &targets, weights, auc, s)
                                   : score_numbers(dataset, &predictions, &targets, weights, s);
    weft_array_free(NULL, &predictions);
    weft_array_free(NULL, &targets);
    return status;
}

weft_status weft__scores_take(const weft__model *model, const weft__dataset *dataset, weft_loader *loader,
                              bool auc, weft__scores *s) {
    return weft__scores_gather(
        model, dataset,
        &(weft__evaluators){&(weft__evaluated){.module = model->module, .loader = loader}, 1, NULL}, auc, s);
}

void weft__scores_free(weft__scores *s) { weft_class_scores_free(NULL, &s->classes); }

const char *weft__class_name(const weft__dataset *dataset, int64_t class, char out[24]) {
    if (dataset->classes) return dataset->classes[class];
    snprintf(out, 24, "%lld", (long long)class);
    return out;
}

int64_t weft__scores_only(const weft__scores *s) {
    const weft_class_scores *c = &s->classes;
    for (int64_t i = 0; i < c->classes; i++)
        if (c->each[i].predicted == c->samples && c->each[i].actual < c->samples) return i;
    return -1;
}

/* ---- JSON ---- */

static json_t *class_json(const weft_class_score *e, const char *name) {
    json_t *object = json_pack("{s:s, s:I, s:I, s:I}", "class", name, "samples", (json_int_t)e->actual,
                               "predicted", (json_int_t)e->predicted, "right", (json_int_t)e->right);
    double values[WEFT__CLASS_SCORES];
    class_values(e, values);
    for (int k = 0; k < WEFT__CLASS_SCORES; k++)
        weft__json_put(object, weft__class_score_rows[k].key, values[k]);
    return object;
}

static void put_classes(json_t *object, const weft_class_scores *c, const weft__dataset *dataset) {
    json_t *each = json_array(), *confusion = json_array();
    char number[24];
    for (int64_t i = 0; i < c->classes; i++) {
        json_array_append_new(each, class_json(&c->each[i], weft__class_name(dataset, i, number)));
        if (!c->confusion) continue;
        json_t *row = json_array();
        for (int64_t j = 0; j < c->classes; j++)
            json_array_append_new(row, json_integer((json_int_t)c->confusion[i * c->classes + j]));
        json_array_append_new(confusion, row);
    }
    json_object_set_new(object, "classes", each);
    if (c->confusion) json_object_set_new(object, "confusion", confusion);
}

/* Puts the scores that several tasks have, or those that only this task has. */
static void put_scores(json_t *object, const weft__scores *s, bool shared) {
    const unsigned own = task_bit(s);
    double values[WEFT__SCORES];
    values_of(s, values);
    for (int i = 0; i < WEFT__SCORES; i++)
        if ((forms[i].tasks & own) && (forms[i].tasks != own) == shared)
            weft__json_put(object, weft__score_rows[i].key, values[i]);
}

json_t *weft__scores_json(const weft__scores *s, const weft__dataset *dataset) {
    json_t *object = json_object();
    put_scores(object, s, true);
    json_object_set_new(object, "samples", json_integer((json_int_t)s->samples));
    put_scores(object, s, false);
    if (s->task == WEFT__TASK_CLASSIFICATION) put_classes(object, &s->classes, dataset);
    return object;
}

/* ---- lines ---- */

static void print_number(FILE *out, double value) {
    if (isfinite(value))
        weft__print(out, "  %9.4f", value);
    else
        weft__print(out, "  %9s", "-");
}

static void print_classes(FILE *out, const weft_class_scores *c, const weft__dataset *dataset) {
    char number[24];
    double values[WEFT__CLASS_SCORES];
    weft__print(out, "  %-20s", "class");
    for (int k = 0; k < WEFT__CLASS_SCORES; k++) weft__print(out, "  %9s", weft__class_score_rows[k].label);
    weft__print(out, "  %9s\n", "samples");
    for (int64_t i = 0; i < c->classes && i < CLASSES_SHOWN; i++) {
        const weft_class_score *e = &c->each[i];
        class_values(e, values);
        weft__print(out, "  %-20.20s", weft__class_name(dataset, i, number));
        for (int k = 0; k < WEFT__CLASS_SCORES; k++) print_number(out, values[k]);
        weft__print(out, "  %9lld\n", (long long)e->actual);
    }
    class_means(c, values);
    weft__print(out, "  %-20s", "mean");
    for (int k = 0; k < WEFT__CLASS_SCORES; k++) print_number(out, values[k]);
    weft__print(out, "  %9lld\n", (long long)c->samples);
    if (c->classes > CLASSES_SHOWN) {
        weft__print(out, "  (the first %d of %lld classes; --json has all%s)\n", CLASSES_SHOWN,
                    (long long)c->classes, c->confusion ? ", and the confusion matrix" : "");
        return;
    }
    weft__print(out, "  rows: true class; columns: predicted class\n");
    for (int64_t i = 0; i < c->classes; i++) {
        weft__print(out, "  %-20.20s", weft__class_name(dataset, i, number));
        for (int64_t j = 0; j < c->classes; j++)
            weft__print(out, " %6lld", (long long)c->confusion[i * c->classes + j]);
        weft__print(out, "\n");
    }
}

void weft__scores_print(FILE *out, const char *name, const weft__scores *s, const weft__dataset *dataset) {
    double values[WEFT__SCORES];
    char number[WEFT__SHOWN_BYTES];
    values_of(s, values);
    weft__print(out, "%-10s", name);
    for (int i = 0; i < WEFT__SCORES; i++) {
        if (!(forms[i].tasks & task_bit(s)) || forms[i].notation == WEFT__NOTATION_NONE) continue;
        weft__print(out, "%s%s ", i ? "  " : " ", weft__score_rows[i].label);
        weft__print(out, "%s", weft__shown_number(forms[i].notation, forms[i].digits, values[i], number));
    }
    weft__print(out, "  (%lld %s)\n", (long long)s->samples,
                s->pairs                               ? "pairs"
                : s->task == WEFT__TASK_LANGUAGE_MODEL ? "windows"
                                                       : "samples");
    if (s->task == WEFT__TASK_CLASSIFICATION) print_classes(out, &s->classes, dataset);
}
