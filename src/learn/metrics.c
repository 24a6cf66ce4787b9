/* Scores of predictions in host memory, in f64, by the definitions of scikit-learn. Must not know: modules,
 * devices. Read next: evaluate.c, which makes the predictions. */
#include <math.h>
#include <stdlib.h>

#include <weft/metrics.h>

#include "learn/evaluate.h"
#include "data/parse.h"

/* ---- classes ---- */

/* The logits to score. `width` is the number of classes, or 1 for two classes. */
typedef struct scoring {
    weft_context *ctx;
    const float *logits;  /* (samples, width); NULL: there are only answers */
    const float *answers; /* (samples, 2): the likeliest class, and the log of its probability */
    int64_t width;
    int32_t *actual;      /* [samples] */
    const float *weights; /* [samples]; NULL: 1 each */
    weft_class_scores *out;
} scoring;

static double weight_of(const float *weights, int64_t sample) {
    return weights ? (double)weights[sample] : 1;
}

/* Returns the class of the largest logit, the first one of equals. With a single logit its sign decides. NaN
 * never wins against a number. */
static int64_t choice_of(const scoring *s, int64_t sample) {
    if (!s->logits) return (int64_t)s->answers[2 * sample];
    const float *logits = s->logits + sample * s->width;
    if (s->width == 1) return logits[0] > 0;
    int64_t best = 0;
    for (int64_t c = 1; c < s->width; c++)
        if (logits[c] > logits[best] || isnan(logits[best])) best = c;
    return best;
}

static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/* The weights of the samples of a class, of those predicted as it, and of both. */
typedef struct class_sums {
    double actual, predicted, right;
} class_sums;

/* Counts samples. Returns their weight, and in *right the weight of those that are predicted right. */
static double count_samples(const scoring *s, class_sums *sums, double *right) {
    weft_class_scores *o = s->out;
    double all = 0;
    *right = 0;
    for (int64_t i = 0; i < o->samples; i++) {
        const int64_t is = s->actual[i], said = choice_of(s, i);
        const double weight = weight_of(s->weights, i);
        if (o->confusion) o->confusion[is * o->classes + said]++;
        o->each[is].actual++;
        o->each[said].predicted++;
        sums[is].actual += weight;
        sums[said].predicted += weight;
        all += weight;
        if (is != said) continue;
        o->each[is].right++;
        sums[is].right += weight;
        *right += weight;
    }
    return all;
}

static void count(const scoring *s, class_sums *sums) {
    weft_class_scores *o = s->out;
    double right;
    int64_t counted = 0;
    const double all = count_samples(s, sums, &right);
    o->accuracy = ratio(right, all);
    for (int64_t c = 0; c < o->classes; c++) {
        weft_class_score *e = &o->each[c];
        e->precision = ratio(sums[c].right, sums[c].predicted);
        e->recall = ratio(sums[c].right, sums[c].actual);
        e->f1 = ratio(2 * sums[c].right, sums[c].predicted + sums[c].actual);
        e->auc = (double)NAN;
        /* As in scikit-learn, a class that is neither in the data nor predicted does not count in the means.
         */
        if (e->actual + e->predicted == 0) continue;
        counted++;
        o->precision += e->precision;
        o->recall += e->recall;
        o->f1 += e->f1;
    }
    if (counted == 0) return;
    o->precision /= (double)counted;
    o->recall /= (double)counted;
    o->f1 /= (double)counted;
}

/* ---- ROC AUC: pairs of a sample of the class and one of another class; the share in right order ---- */

typedef struct ranked {
    double score, weight;
    bool positive;
} ranked;

static int by_score(const void *a, const void *b) {
    const double x = ((const ranked *)a)->score, y = ((const ranked *)b)->score;
    return (x > y) - (x < y);
}

/* Returns the area for scores sorted in ascending order. Pairs of equal score count half. NaN if one side is
 * empty. */
static double area(const ranked *list, int64_t n) {
    double pairs = 0, positives = 0, negatives = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        double here[2] = {0, 0};
        for (end = i; end < n && !(list[end].score > list[i].score); end++)
            here[list[end].positive] += list[end].weight;
        pairs += here[1] * (negatives + 0.5 * here[0]);
        negatives += here[0];
        positives += here[1];
    }
    return positives > 0 && negatives > 0 ? pairs / (positives * negatives) : (double)NAN;
}

/* Returns the log of the odds of a class. The log odds order samples as the probability does, but still tell
 * 1 - 1e-20 from 1. */
static double odds_of(const scoring *s, int64_t sample, int64_t class) {
    const float *logits = s->logits + sample * s->width;
    double others = 0, largest = -(double)INFINITY;
    if (s->width == 1) return class ? (double)logits[0] : -(double)logits[0];
    for (int64_t c = 0; c < s->width; c++)
        if (c != class && (double)logits[c] > largest) largest = (double)logits[c];
    for (int64_t c = 0; c < s->width; c++)
        if (c != class) others += exp((double)logits[c] - largest);
    return (double)logits[class] - largest - log(others);
}

/* Sums over the logits of one sample, computed once for all classes. For a class that is not the likeliest,
 * the odds follow from `total` without that class, and no digits are lost. For the likeliest class this
 * difference would lose digits, so its odds are computed separately. */
typedef struct spread {
    double largest, total; /* the largest logit; the sum of exp(logit - largest) */
    double odds;           /* log odds of the likeliest class */
    int64_t likeliest;
} spread;

static spread spread_of(const scoring *s, int64_t sample) {
    const float *logits = s->logits + sample * s->width;
    spread p = {.likeliest = s->width > 1 ? choice_of(s, sample) : 0};
    p.largest = (double)logits[p.likeliest];
    for (int64_t c = 0; c < s->width; c++) p.total += exp((double)logits[c] - p.largest);
    p.odds = odds_of(s, sample, p.likeliest);
    return p;
}

static double score_of(const scoring *s, const spread *p, int64_t sample, int64_t class) {
    if (s->width == 1) return odds_of(s, sample, class);
    if (class == p->likeliest) return p->odds;
    const double above = (double)s->logits[sample * s->width + class] - p->largest;
    return above - log(p->total - exp(above));
}

/* list and spreads are scratch memory of [samples]. */
static void rank_all(const scoring *s, ranked *list, spread *spreads) {
    weft_class_scores *o = s->out;
    int64_t known = 0;
    double sum = 0;
    for (int64_t i = 0; i < o->samples; i++) spreads[i] = spread_of(s, i);
    for (int64_t c = 0; c < o->classes; c++) {
        for (int64_t i = 0; i < o->samples; i++)
            list[i] = (ranked){score_of(s, &spreads[i], i, c), weight_of(s->weights, i), s->actual[i] == c};
        qsort(list, (size_t)o->samples, sizeof *list, by_score);
        o->each[c].auc = area(list, o->samples);
        if (isnan(o->each[c].auc)) continue;
        sum += o->each[c].auc;
        known++;
    }
    if (known > 0) o->auc = o->classes == 2 ? o->each[1].auc : sum / (double)known;
}

static weft_status areas(const scoring *s) {
    const size_t samples = (size_t)s->out->samples;
    ranked *list = weft__array(s->ctx, samples, sizeof *list);
    spread *spreads = weft__array(s->ctx, samples, sizeof *spreads);
    if (list && spreads) rank_all(s, list, spreads);
    const weft_status status =
        list && spreads ? WEFT_OK
                        : weft__fail_oom(s->ctx, samples * sizeof *spreads, "the scores of samples");
    weft__free(s->ctx, list);
    weft__free(s->ctx, spreads);
    return status;
}

static weft_status take_targets(const scoring *s, const weft_array *targets) {
    const int64_t classes = s->out->classes;
    for (int64_t i = 0; i < s->out->samples; i++) {
        s->actual[i] = targets->dtype == WEFT_U8 ? ((const uint8_t *)targets->data)[i]
                                                 : ((const int32_t *)targets->data)[i];
        if (s->actual[i] < 0 || s->actual[i] >= classes)
            return weft__fail(s->ctx, WEFT_ERR_INDEX,
                              "scores: sample %lld has class %d, but classes are 0 to %lld", (long long)i,
                              s->actual[i], (long long)classes - 1);
    }
    return WEFT_OK;
}

static weft_status score(const scoring *s, const weft_array *targets, bool auc) {
    weft_class_scores *o = s->out;
    const size_t classes = (size_t)o->classes;
    const bool confused = classes <= WEFT_CONFUSION_MOST;
    o->confusion = confused ? weft__array(s->ctx, classes * classes, sizeof *o->confusion) : NULL;
    o->each = weft__array(s->ctx, classes, sizeof *o->each);
    if ((confused && !o->confusion) || !o->each)
        return weft__fail_oom(s->ctx, classes * classes * 8, "a confusion matrix");
    WEFT_TRY(take_targets(s, targets));
    class_sums *sums = weft__array(s->ctx, classes, sizeof *sums);
    if (!sums) return weft__fail_oom(s->ctx, classes * sizeof *sums, "the scores of classes");
    count(s, sums);
    weft__free(s->ctx, sums);
    return auc ? areas(s) : WEFT_OK;
}

static int64_t elements(const weft_array *a) {
    int64_t n = 0;
    return weft__array_elements(a, &n) ? n : 0;
}

/* Checks weights. `count` of them are there. */
static weft_status check_weights(weft_context *ctx, const float *weights, int64_t count) {
    for (int64_t i = 0; weights && i < count; i++)
        if (!(weights[i] > 0) || !isfinite(weights[i]))
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "scores: the weight of sample %lld is %g; it must be finite and above 0",
                              (long long)i, (double)weights[i]);
    return WEFT_OK;
}

/* Scores samples, whose number and classes s->out has. Frees the scores after a failure. */
static weft_status score_all(scoring *s, const weft_array *targets, bool auc) {
    const int64_t samples = s->out->samples;
    weft_status status = check_weights(s->ctx, s->weights, samples);
    if (status == WEFT_OK && !(s->actual = weft__array(s->ctx, (size_t)samples, sizeof *s->actual)))
        status = weft__fail_oom(s->ctx, (size_t)samples * sizeof *s->actual, "classes");
    if (status == WEFT_OK) status = score(s, targets, auc);
    weft__free(s->ctx, s->actual);
    if (status != WEFT_OK) weft_class_scores_free(s->ctx, s->out);
    return status;
}

weft_status weft_score_classes(weft_context *ctx, const weft_array *logits, const weft_array *targets,
                               bool auc, weft_class_scores *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_class_scores){.auc = (double)NAN};
    WEFT_NEED(ctx, logits);
    WEFT_NEED(ctx, targets);
    return weft_score_weighted_classes(ctx, logits, targets, NULL, auc, out);
}

weft_status weft_score_weighted_classes(weft_context *ctx, const weft_array *logits,
                                        const weft_array *targets, const float *weights, bool auc,
                                        weft_class_scores *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_class_scores){.auc = (double)NAN};
    WEFT_NEED(ctx, logits);
    WEFT_NEED(ctx, targets);
    const int64_t samples = elements(targets), all = elements(logits);
    if (samples < 1 || all < samples || all % samples != 0 || logits->dtype != WEFT_F32 ||
        (targets->dtype != WEFT_I32 && targets->dtype != WEFT_U8))
        return weft__fail(ctx, WEFT_ERR_SHAPE,
                          "scores: logits must be f32 (samples, classes), and classes i32 or u8 (samples)");
    const int64_t width = all / samples;
    *out = (weft_class_scores){.auc = (double)NAN, .samples = samples, .classes = width == 1 ? 2 : width};
    scoring s = {.ctx = ctx, .logits = logits->data, .width = width, .weights = weights, .out = out};
    return score_all(&s, targets, auc);
}

weft_status weft__score_answers(const weft_array *answers, const weft_array *targets, int64_t classes,
                                const float *weights, weft_class_scores *out) {
    *out = (weft_class_scores){.auc = (double)NAN, .samples = elements(targets), .classes = classes};
    scoring s = {.answers = answers->data, .weights = weights, .out = out};
    return score_all(&s, targets, false);
}

void weft_class_scores_free(weft_context *ctx, weft_class_scores *scores) {
    if (!scores) return;
    weft__free(ctx, scores->confusion);
    weft__free(ctx, scores->each);
    *scores = (weft_class_scores){.auc = (double)NAN};
}

/* ---- numbers ---- */

typedef struct column {
    const float *predicted, *actual; /* element i is at i * stride */
    const float *weights;            /* of each row; NULL: 1 each */
    int64_t rows, stride;
} column;

static double sum_of(const column *c, double (*of)(double predicted, double actual, double mean),
                     double mean) {
    double sum = 0;
    for (int64_t i = 0; i < c->rows; i++)
        sum += weight_of(c->weights, i) *
               of((double)c->predicted[i * c->stride], (double)c->actual[i * c->stride], mean);
    return sum;
}
static double one_of(double p, double a, double mean) { return (void)p, (void)a, (void)mean, 1; }
static double actual_of(double p, double a, double mean) { return (void)p, a - mean; }
static double square_of(double p, double a, double mean) { return (void)p, (a - mean) * (a - mean); }
static double error_square(double p, double a, double mean) { return (void)mean, (p - a) * (p - a); }
static double error_size(double p, double a, double mean) { return (void)mean, fabs(p - a); }

static double r2_of(double errors, double squares, int64_t rows) {
    if (rows < 2) return (double)NAN;
    if (squares > 0) return 1 - errors / squares;
    return errors == 0 ? 1 : 0;
}

weft_status weft_score_numbers(weft_context *ctx, const weft_array *predictions, const weft_array *targets,
                               weft_number_scores *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_number_scores){0};
    WEFT_NEED(ctx, predictions);
    WEFT_NEED(ctx, targets);
    return weft_score_weighted_numbers(ctx, predictions, targets, NULL, out);
}

weft_status weft_score_weighted_numbers(weft_context *ctx, const weft_array *predictions,
                                        const weft_array *targets, const float *weights,
                                        weft_number_scores *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_number_scores){0};
    WEFT_NEED(ctx, predictions);
    WEFT_NEED(ctx, targets);
    const int64_t all = elements(predictions);
    if (all < 1 || all != elements(targets) || targets->rank < 1 || predictions->dtype != WEFT_F32 ||
        targets->dtype != WEFT_F32)
        return weft__fail(ctx, WEFT_ERR_SHAPE,
                          "scores: predictions and targets must be f32, and there must be as many of each");
    const int64_t rows = targets->shape[0], columns = all / rows;
    WEFT_TRY(check_weights(ctx, weights, rows));
    *out = (weft_number_scores){.samples = rows, .columns = columns};
    for (int64_t i = 0; i < columns; i++) {
        const column c = {(const float *)predictions->data + i, (const float *)targets->data + i, weights,
                          rows, columns};
        const double all_rows = sum_of(&c, one_of, 0), mean = sum_of(&c, actual_of, 0) / all_rows,
                     errors = sum_of(&c, error_square, 0);
        out->r2 += r2_of(errors, sum_of(&c, square_of, mean), rows) / (double)columns;
        out->rmse += sqrt(errors / all_rows) / (double)columns;
        out->mae += sum_of(&c, error_size, 0) / all_rows / (double)columns;
    }
    return WEFT_OK;
}
