/* Reads what is known about a run. Must not know: how it is shown. Read next: train/run/history.c. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/facts.h"
#include "io/publish.h"
#include "io/sealed.h"
#include "train/config/config.h"

#define PATH_BYTES 4096

/* In the order in which a run is judged by them. */
enum { R2, ACCURACY, LOSS, MEASURES };
static const weft__measure measures[MEASURES] = {
    [R2] = {"r2", "R2", WEFT__NOTATION_FIXED, 4, true},
    [ACCURACY] = {"accuracy", "accuracy", WEFT__NOTATION_PERCENT, 2, true},
    [LOSS] = {"loss", "loss", WEFT__NOTATION_FIXED, 4, false},
};

/* ---- the result ---- */

static void take_result(weft__facts *f, const char *part, int measure, double value) {
    if (!isfinite(value)) return;
    f->part = part;
    f->measure = &measures[measure];
    f->value = value;
}

/* Takes the final scores. A run that goes on or was killed has none. */
static weft_status take_scores(const char *dir, weft__facts *f) {
    weft__json json;
    json_t *root;
    weft_status status = weft__sealed_read(NULL, dir, "scores.json", &json, &root);
    const json_t *scores = status == WEFT_OK ? json_object_get(root, "validation") : NULL;
    const char *part = scores || status != WEFT_OK ? "" : "test ";
    if (!scores && status == WEFT_OK) scores = json_object_get(root, "test");
    for (int i = f->summary.tokens ? LOSS : 0; scores && i < MEASURES && !f->measure; i++) {
        const json_t *value = json_object_get(scores, measures[i].key);
        if (json_is_number(value)) take_result(f, part, i, json_number_value(value));
    }
    weft__json_close(&json);
    return status == WEFT_ERR_STATE ? WEFT_OK : status;
}

/* Takes the newest measurement of the metrics. */
static void take_newest(weft__facts *f) {
    const weft__history *h = &f->history;
    for (size_t i = h->count; i-- > 0 && !f->measure;) {
        const weft__metrics *m = &h->lines[i];
        take_result(f, "", R2, m->val_r2);
        if (!f->measure && !f->summary.tokens) take_result(f, "", ACCURACY, m->val_accuracy);
        if (!f->measure) take_result(f, "", LOSS, m->val_loss);
    }
    if (!f->measure) take_result(f, "train ", LOSS, f->last);
}

/* ---- when it began ---- */

/* Returns the seconds since 1970 of a date (UTC), by counting in years that begin in March. */
static time_t seconds_of(int year, int month, int day, int hour, int minute, int second) {
    const int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return (time_t)(days * 86400 + hour * 3600 + minute * 60 + second);
}

/* The first line of log.txt begins with the time at which the run began, such as 2026-11-24T11:09:28Z. */
static time_t take_start(const char *dir) {
    static const int places[] = {0, 5, 8, 11, 14, 17};
    char path[PATH_BYTES], text[24] = "";
    int fd, parts[6];
    if (!weft__join(path, sizeof path, dir, "log.txt") ||
        weft__open_regular(NULL, AT_FDCWD, path, O_RDONLY, path, &fd) != WEFT_OK)
        return -1;
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size < 20 || text[19] != 'Z') return -1;
    for (int i = 0; i < 6; i++) parts[i] = (int)strtol(text + places[i], NULL, 10);
    if (parts[0] < 1970 || parts[1] < 1 || parts[1] > 12) return -1;
    return seconds_of(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]);
}

/* ---- all ---- */

weft_status weft__facts_read(const char *dir, weft__facts *f) {
    char damage[WEFT__DAMAGE_TEXT];
    *f = (weft__facts){.part = "", .value = (double)NAN, .last = (double)NAN, .started = -1};
    if (!weft__is_run(dir))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s is not a run folder (it has no config.yaml); 'weft runs' lists the runs", dir);
    WEFT_TRY(weft__summary_read(dir, &f->summary));
    WEFT_TRY(weft__history_read(dir, &f->history));
    if (f->history.damaged) weft__complain("%s/%s", dir, weft__history_damage(&f->history, damage));
    f->best = weft__history_best(&f->history);
    for (size_t i = 0; i < f->history.count; i++) {
        const weft__metrics *m = &f->history.lines[i];
        if (m->step > f->summary.step) f->summary.step = m->step;
        if (isfinite(m->loss)) f->last = m->loss;
    }
    f->started = take_start(dir);
    WEFT_TRY(take_scores(dir, f));
    if (!f->measure) take_newest(f);
    return WEFT_OK;
}

void weft__facts_free(weft__facts *f) { weft__history_free(&f->history); }

/* ---- for people ---- */

const char *weft__facts_result(const weft__facts *f, char out[WEFT__FACT_TEXT]) {
    char number[WEFT__SHOWN_BYTES];
    snprintf(out, WEFT__FACT_TEXT, "-");
    if (f->measure)
        snprintf(out, WEFT__FACT_TEXT, "%s%s %.30s", f->part, f->measure->label,
                 weft__shown_number(f->measure->notation, f->measure->digits, f->value, number));
    return out;
}

const char *weft__facts_time(double seconds, char out[WEFT__FACT_TEXT]) {
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    if (!isfinite(seconds)) return strcpy(out, "-");
    while (i < 3 && seconds < 2 * units[i].seconds) i++;
    const double value = seconds / units[i].seconds;
    snprintf(out, WEFT__FACT_TEXT, value < 10 ? "%.1f %s" : "%.0f %s", value, units[i].unit);
    return out;
}

const char *weft__facts_started(const weft__facts *f, char out[WEFT__FACT_TEXT]) {
    const time_t half_a_year = 183 * 86400, now = time(NULL);
    const bool recent = f->started > now - half_a_year && f->started <= now + 86400;
    struct tm local;
    snprintf(out, WEFT__FACT_TEXT, "-");
    if (f->started >= 0 && localtime_r(&f->started, &local))
        strftime(out, WEFT__FACT_TEXT, recent ? "%b %e %H:%M" : "%b %e  %Y", &local); /* as ls writes it */
    return out;
}

bool weft__facts_better(const weft__facts *a, const weft__facts *b) {
    if (!a->measure || !b->measure) return a->measure && !b->measure;
    if (a->measure != b->measure) return a->measure < b->measure; /* equal measures stay together */
    if (a->value == b->value) return a->summary.results.val_loss < b->summary.results.val_loss;
    return a->measure->rises ? a->value > b->value : a->value < b->value;
}

/* ---- JSON ---- */

json_t *weft__facts_json(const char *dir, const weft__facts *f) {
    const weft__summary *s = &f->summary;
    char started[32] = "";
    struct tm utc;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "run", dir, "model", s->model, "device",
                               s->device, "status", s->status, "step", (json_int_t)s->step, "steps",
                               (json_int_t)s->steps, "parameters", (json_int_t)s->parameters);
    if (f->started >= 0 && gmtime_r(&f->started, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (started[0]) json_object_set_new(object, "started", json_string(started));
    weft__json_put(object, "seconds", s->seconds);
    if (f->measure) {
        json_object_set_new(object, "metric", json_sprintf("%s%s", f->part, f->measure->key));
        weft__json_put(object, "value", f->value);
    }
    weft__json_put(object, "last_loss", f->last);
    weft__json_put(object, "best_loss", f->best);
    for (int i = 0; i < WEFT__RESULTS; i++)
        weft__json_put(object, weft__result_rows[i].name,
                       weft__result_get(&s->results, &weft__result_rows[i]));
    for (int i = 0; i < WEFT__METRICS; i++)
        if (weft__metric_rows[i]->compared[0])
            weft__json_put(object, weft__metric_word(weft__metric_rows[i]->name, s->tokens),
                           weft__metric_get(&f->history.averages, weft__metric_rows[i]));
    return object;
}

/* ---- names ---- */

int weft__natural_order(const char *a, const char *b) {
    const char *x = a, *y = b;
    while (*x && *y) {
        const size_t m = strspn(x, "0123456789"), n = strspn(y, "0123456789");
        if (m == 0 || n == 0) {
            if (*x != *y) return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++, y++;
            continue;
        }
        const size_t p = strspn(x, "0"), q = strspn(y, "0"), i = p < m ? p : m, j = q < n ? q : n;
        if (m - i != n - j) return m - i < n - j ? -1 : 1; /* the longer number is larger */
        const int order = memcmp(x + i, y + j, m - i);
        if (order) return order;
        x += m, y += n;
    }
    if (*x || *y) return *x ? 1 : -1;
    return strcmp(a, b); /* 07 and 7 */
}
