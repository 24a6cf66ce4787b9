/* Reads metrics.jsonl, reads and writes summary.json. Must not know: how they are shown. Read next:
 * train/report/report.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/data.h>
#include <weft/io.h>

#include "device/device.h"
#include "io/sealed.h"
#include "train/run/history.h"

#define PATH_BYTES 4096

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static uint64_t count_of(const json_t *object, const char *key) {
    double value = number_of(object, key);
    return value > 0 && value < 9e18 ? (uint64_t)value : 0;
}

/* ---- summary ---- */

static json_t *shares_json(const weft__shares *shares) {
    json_t *object = json_object();
    for (size_t i = 0; i < shares->count; i++)
        weft__json_put(object, shares->item[i].name, shares->item[i].seconds);
    return object;
}

/* ---- tuning choices: stored in hexadecimal, so that a resumed run uses the same ones ---- */

static void put_hex(char *to, const unsigned char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = 0;
}

/* Reads at most `most` bytes from hexadecimal text. Returns their number, or 0 if the text is not valid. */
static size_t take_hex(const char *text, unsigned char *to, size_t most) {
    const size_t n = text ? strlen(text) / 2 : 0;
    if (n == 0 || n > most || strlen(text) % 2 || strspn(text, "0123456789abcdef") != 2 * n) return 0;
    for (size_t i = 0; i < n; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        to[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return n;
}

static json_t *choice_json(const weft_tile_choice *c) {
    char key[2 * sizeof c->key + 1], kept[2 * WEFT_CHOICE_BYTES + 1];
    put_hex(key, (const unsigned char *)&c->key, sizeof c->key);
    put_hex(kept, c->kept, c->bytes);
    return json_pack("{s:s, s:s, s:f, s:s, s:s}", "what", c->what, "tile", c->chosen, "gain", c->gain, "key",
                     key, "kept", kept);
}

static json_t *choices_json(const weft__summary *s) {
    json_t *list = json_array();
    for (int i = 0; i < s->n_choices; i++) json_array_append_new(list, choice_json(&s->choices[i]));
    return list;
}

static bool take_choice(const json_t *object, weft_tile_choice *c) {
    memset(c, 0, sizeof *c);
    const char *key = json_string_value(json_object_get(object, "key")),
               *kept = json_string_value(json_object_get(object, "kept"));
    c->bytes = take_hex(kept, c->kept, sizeof c->kept);
    return c->bytes && take_hex(key, (unsigned char *)&c->key, sizeof c->key) == sizeof c->key;
}

/* ---- the summary ---- */

static void take_shares(const json_t *object, weft__shares *shares) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) if (json_is_number(value))
        weft__shares_add(shares, name, json_number_value(value));
}

static void put_gauges(json_t *object, weft_telemetry telemetry) {
    weft__metrics m = weft__metrics_none(0);
    m.telemetry = telemetry;
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = &weft__metric_columns[i];
        if (metric->part == WEFT__PART_CARD)
            weft__json_put(object, metric->name[0], weft__metric_get(&m, metric));
    }
}

weft_status weft__summary_write(weft__run *run, const weft__summary *s) {
    weft__json json;
    WEFT_TRY(weft__run_follow(run));
    weft__json_build(&json, NULL);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "model", s->model, "device",
                  s->device, "status", s->status, "parameters", (json_int_t)s->parameters, "step",
                  (json_int_t)s->step, "steps", (json_int_t)s->steps, "epoch_size", (json_int_t)s->epoch_size,
                  "tokens", s->tokens, "phases", shares_json(&s->phases), "parts", shares_json(&s->parts));
    if (s->n_choices) json_object_set_new(object, "tuned", choices_json(s));
    weft__json_put(object, "seconds", s->seconds);
    for (int i = 0; i < WEFT__RESULTS; i++)
        weft__json_put(object, weft__result_rows[i].name,
                       weft__result_get(&s->results, &weft__result_rows[i]));
    put_gauges(object, s->telemetry);
    return weft__sealed_write(run->dir, "summary.json", &json, object,
                              JSON_INDENT(2) | JSON_REAL_PRECISION(9));
}

static void copy_text(char *out, size_t bytes, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, bytes, "%s", text ? text : "");
}

static void take_summary(const json_t *object, weft__summary *s) {
    copy_text(s->model, sizeof s->model, object, "model");
    copy_text(s->device, sizeof s->device, object, "device");
    copy_text(s->status, sizeof s->status, object, "status");
    s->parameters = count_of(object, "parameters");
    s->step = count_of(object, "step");
    s->steps = count_of(object, "steps");
    s->epoch_size = count_of(object, "epoch_size");
    s->tokens = json_is_true(json_object_get(object, "tokens"));
    s->seconds = number_of(object, "seconds");
    for (int i = 0; i < WEFT__RESULTS; i++)
        weft__result_set(&s->results, &weft__result_rows[i], number_of(object, weft__result_rows[i].name));
    take_shares(json_object_get(object, "phases"), &s->phases);
    take_shares(json_object_get(object, "parts"), &s->parts);
}

weft_status weft__summary_read(const char *dir, weft__summary *summary) {
    weft__json json;
    json_t *object;
    memset(summary, 0, sizeof *summary);
    summary->results = weft__results_none();
    const weft_status status = weft__sealed_read(NULL, dir, "summary.json", &json, &object);
    if (status == WEFT_OK) take_summary(object, summary);
    weft__json_close(&json);
    WEFT_TRY(status);
    if (strcmp(summary->status, "running") == 0 && !weft_run_lock_held(dir))
        /* the process was killed before it could write its status */
        snprintf(summary->status, sizeof summary->status, "killed");
    return WEFT_OK;
}

weft_status weft__choices_read(const char *dir, weft_tile_choice **list, int *count) {
    weft__json json;
    json_t *object;
    *list = NULL;
    *count = 0;
    const weft_status status = weft__sealed_read(NULL, dir, "summary.json", &json, &object);
    const json_t *tuned = status == WEFT_OK ? json_object_get(object, "tuned") : NULL;
    const size_t n = json_array_size(tuned);
    *list = status == WEFT_OK ? weft__array(NULL, n + 1, sizeof **list) : NULL;
    for (size_t i = 0; *list && i < n; i++) *count += take_choice(json_array_get(tuned, i), &(*list)[*count]);
    weft__json_close(&json);
    if (status != WEFT_OK) return status == WEFT_ERR_STATE ? WEFT_OK : status;
    return *list ? WEFT_OK : weft__fail_oom(NULL, n * sizeof **list, "the tuning choices");
}

/* ---- metrics ---- */

static void take_metrics(weft__history *history, const json_t *object) {
    weft__metrics *m = &history->lines[history->count++];
    *m = weft__metrics_none(count_of(object, "step"));
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = &weft__metric_columns[i];
        double value = number_of(object, metric->name[0]);
        if (isnan(value) && metric->name[1]) {
            value = number_of(object, metric->name[1]);
            history->tokens = history->tokens || isfinite(value);
        }
        weft__metric_set(m, metric, value);
    }
}

/* Reads one line of metrics. Returns WEFT_ERR_FORMAT without a message if it is not valid. */
static weft_status take_line(weft__history *history, const char *text, size_t size) {
    weft__json json;
    json_error_t error;
    json_t *object;
    weft__json_open(&json, NULL);
    weft_status status = weft__json_load(&json, text, size, JSON_REJECT_DUPLICATES, &error, &object);
    if (status == WEFT_OK && !json_is_object(object)) status = WEFT_ERR_FORMAT;
    if (status == WEFT_OK &&
        !weft__grow(NULL, &history->lines, &history->capacity, history->count, sizeof *history->lines))
        status = weft__fail_oom(NULL, history->count * sizeof *history->lines, "the metrics");
    if (status == WEFT_OK) take_metrics(history, object);
    weft__json_close(&json);
    return status;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the mean or the median. Sorts the numbers. */
static double average(double *numbers, size_t count, bool median) {
    double sum = 0;
    if (count == 0) return (double)NAN;
    if (median) {
        qsort(numbers, count, sizeof *numbers, ascending);
        return numbers[count / 2];
    }
    for (size_t i = 0; i < count; i++) sum += numbers[i];
    return sum / (double)count;
}

static weft_status take_averages(weft__history *history) {
    double *numbers = weft__array(NULL, history->count + 1, sizeof *numbers);
    if (!numbers)
        return weft__fail_oom(NULL, (history->count + 1) * sizeof *numbers, "the averages of metrics.jsonl");
    history->averages = weft__metrics_none(0);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = &weft__metric_columns[i];
        size_t count = 0;
        for (size_t j = 0; j < history->count; j++) {
            const double value = weft__metric_get(&history->lines[j], metric);
            if (isfinite(value)) numbers[count++] = value;
        }
        weft__metric_set(&history->averages, metric, average(numbers, count, metric->median));
    }
    weft__free(NULL, numbers);
    return WEFT_OK;
}

weft_status weft__history_read(const char *dir, weft__history *history) {
    char path[PATH_BYTES];
    weft_bytes bytes;
    *history = (weft__history){0};
    if (!weft__join(path, sizeof path, dir, "metrics.jsonl"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", dir);
    WEFT_TRY(weft_read_file(NULL, path, 0, &bytes));
    weft_status status = WEFT_OK;
    const char *text = (const char *)bytes.data, *last = text + bytes.size;
    for (size_t line = 1; text < last && status == WEFT_OK; line++) {
        const char *end = memchr(text, '\n', (size_t)(last - text));
        if (!end) break;
        status = take_line(history, text, (size_t)(end - text));
        if (status == WEFT_ERR_FORMAT) {
            if (history->damaged++ == 0) history->first_damaged = line;
            status = WEFT_OK;
        }
        text = end + 1;
    }
    weft_bytes_free(NULL, &bytes);
    if (status == WEFT_OK) status = take_averages(history);
    if (status != WEFT_OK) weft__history_free(history);
    return status;
}

void weft__history_free(weft__history *history) {
    weft__free(NULL, history->lines);
    *history = (weft__history){0};
}

const char *weft__history_damage(const weft__history *history, char out[WEFT__DAMAGE_TEXT]) {
    const size_t more = history->damaged - (history->damaged > 0);
    out[0] = '\0';
    if (history->damaged > 0)
        snprintf(out, WEFT__DAMAGE_TEXT, "metrics.jsonl:%zu is damaged%s: not shown in reports",
                 history->first_damaged, more ? ", and so are lines after it" : "");
    return out;
}

double weft__history_best(const weft__history *history) {
    double best = (double)NAN, least = (double)NAN;
    for (size_t i = 0; i < history->count; i++) {
        const weft__metrics *m = &history->lines[i];
        if (isfinite(m->val_loss) && !(m->val_loss >= best)) best = m->val_loss;
        if (isfinite(m->loss) && !(m->loss >= least)) least = m->loss;
    }
    return isfinite(best) ? best : least;
}
