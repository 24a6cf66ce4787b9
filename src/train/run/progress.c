/* Shows progress on the terminal, and measures the time of each phase. Must not know: models, files. Read
 * next: loop.c. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/utf8.h"
#include "train/print.h"
#include "train/run/progress.h"

static const char *const phase_names[WEFT__PHASE_COUNT] = {"prepare", "train",  "evaluate",
                                                           "save",    "sample", "report"};

double weft__now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void weft__show_log(void *user, weft_log_level level, const char *message) {
    (void)user;
    if (level >= WEFT_LOG_WARNING) {
        fputs(weft__clear_line, stderr);
        weft__print(stderr, "weft: %s\n", message);
    }
    if (level < WEFT_LOG_WARNING && getenv("WEFT_DEBUG")) weft__print(stderr, "%s\n", message);
}

void weft__progress_start(weft__progress *p, bool quiet, bool tokens) {
    const char *no_color = getenv("NO_COLOR");
    memset(p, 0, sizeof *p);
    p->out = quiet ? NULL : stdout;
    p->bar = !quiet && isatty(STDOUT_FILENO) == 1;
    p->color = p->bar && !(no_color && no_color[0]);
    p->tokens = tokens;
    p->phase_from = weft__now();
}

double weft__progress_phase(weft__progress *p, weft__phase phase) {
    double now = weft__now(), spent = now - p->phase_from;
    p->seconds[p->phase] += spent;
    p->phase = phase;
    p->phase_from = now;
    return spent;
}

void weft__progress_clear(weft__progress *p) {
    if (p->line_shown) fputs("\r\033[K", p->out);
    p->line_shown = false;
}

void weft__progress_clock(double seconds, char out[32]) {
    if (!(seconds >= 0 && seconds < 1e7)) {
        snprintf(out, 32, "?");
        return;
    }
    long whole = lround(seconds);
    if (whole >= 3600)
        snprintf(out, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(out, 32, "%ld:%02ld", whole / 60, whole % 60);
}

enum {
    NOT_TERMINAL = 4096, /* the longest line of a file or a pipe */
    USUAL_WIDTH = 80,
    BAR_LEAST = 8,
    BAR_MOST = 24
};

int weft__progress_width(const weft__progress *p) {
    struct winsize size;
    if (!p->bar) return NOT_TERMINAL;
    return ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1
                                                                            : USUAL_WIDTH - 1;
}

static void draw_bar(const weft__progress *p, int cells, double share) {
    int full = (int)(share * (double)cells + 0.5);
    if (p->color) fputs("\033[36m", p->out);
    for (int i = 0; i < cells; i++) fputs(i < full ? "\xe2\x94\x81" : " ", p->out);
    if (p->color) fputs("\033[0m", p->out);
    fputc(' ', p->out);
}

void weft__progress_draw(weft__progress *p, double share, const char *line) {
    const int width = weft__progress_width(p), room = width - (int)strlen(line) - 1;
    if (!p->out) return;
    p->drawn = weft__now();
    weft__progress_clear(p);
    if (p->bar && room >= BAR_LEAST) draw_bar(p, room < BAR_MOST ? room : BAR_MOST, share);
    weft__print(p->out, "%.*s", (int)weft__utf8_cut(line, strlen(line), (size_t)width), line);
    if (!p->bar) fputc('\n', p->out);
    p->line_shown = p->bar;
    fflush(p->out);
}

bool weft__progress_stale(const weft__progress *p) {
    return p->bar && (!p->line_shown || weft__now() - p->drawn >= 0.1);
}

/* Adds a metric to the line, if it belongs there and was measured. */
static void put_metric(weft_text *line, const weft__progress *p, const weft__metric *metric,
                       const weft__metrics *m) {
    char number[WEFT__SHOWN_BYTES];
    const double value = weft__metric_get(m, metric);
    const char *unit = weft__metric_word(metric->unit, p->tokens);
    if (metric->notation == WEFT__NOTATION_NONE || !isfinite(value)) return;
    weft__put(line, "  %s%s%s", metric->label ? metric->label : "", metric->label ? " " : "",
              weft__shown_number(metric->notation, metric->digits, value, number));
    if (unit) weft__put(line, " %s", unit);
}

/* Writes the line without the bar. Of the metrics that may give way, the first `less` are left out. Returns
 * its length, which is its columns, since it is ASCII. */
static size_t put_line(char *out, size_t size, const weft__progress *p, uint64_t done, const weft__metrics *m,
                       int less) {
    char left[32];
    weft_text line = weft__text(out, size);
    weft__put(&line, "step %llu/%llu", (unsigned long long)done, (unsigned long long)p->last);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        if (!metric->gives_way || metric->gives_way > less) put_metric(&line, p, metric, m);
    }
    weft__progress_clock(weft__progress_left(p, done), left);
    weft__put(&line, "  %s left", left);
    return line.length;
}

double weft__progress_left(const weft__progress *p, uint64_t done) {
    if (done <= p->first) return (double)NAN;
    const double rest = p->phase == WEFT__PHASE_TRAIN ? weft__now() - p->phase_from : 0;
    const double step = (p->seconds[WEFT__PHASE_TRAIN] + rest) / (double)(done - p->first);
    const double batch = p->batches_done > 0
                             ? p->seconds[WEFT__PHASE_EVAL] / (double)p->batches_done
                             : step / (3 * p->batches_step); /* backward takes twice as long as forward */
    return step * (double)(p->last - done) + batch * (double)p->batches_left;
}

void weft__progress_step(weft__progress *p, uint64_t done, const weft__metrics *m) {
    char line[512];
    if (!p->out || p->last == 0) return;
    if (p->bar && done < p->last && !weft__progress_stale(p)) return;
    const int width = weft__progress_width(p);
    int less = 0;
    size_t length = put_line(line, sizeof line, p, done, m, less);
    while ((int)length > width && less < WEFT__METRICS)
        length = put_line(line, sizeof line, p, done, m, ++less);
    weft__progress_draw(p, (double)done / (double)p->last, line);
}

void weft__progress_say(weft__progress *p, const char *fmt, ...) {
    va_list args;
    if (!p->out) return;
    weft__progress_clear(p);
    va_start(args, fmt);
    weft__vprint(p->out, fmt, args);
    va_end(args);
    fputc('\n', p->out);
    fflush(p->out);
}

void weft__progress_summary(const weft__progress *p, const weft_profile_times *times, weft__summary *s) {
    double now = weft__now(), spent = 0;
    for (int i = 0; i < WEFT__PHASE_COUNT; i++) {
        double seconds = p->seconds[i] + ((int)p->phase == i ? now - p->phase_from : 0);
        weft__shares_add(&s->phases, phase_names[i], seconds);
        spent += seconds;
    }
    weft__shares_add_parts(&s->parts, times);
    const double counted = times->total + times->context;
    if (spent > counted) weft__shares_add(&s->parts, "host", spent - counted);
    s->seconds = weft__shares_total(&s->phases);
}

void weft__progress_end(weft__progress *p) {
    if (!p->out) return;
    weft__progress_clear(p);
    fputc('\n', p->out);
}

void weft__progress_times(const weft__progress *p, const weft_profile_times *times) {
    weft__summary s = {.seconds = 0};
    if (!p->out) return;
    weft__progress_summary(p, times, &s);
    fprintf(p->out, "where the time went\n");
    weft__shares_print(&s.parts, p->out);
    fprintf(p->out,
            "  (the device's time is divided as in the %llu of %llu runs of programs that were timed)\n",
            (unsigned long long)times->timed, (unsigned long long)times->runs);
    fprintf(
        p->out,
        "the device was busy %.0f %% of the time; %llu uploads, %llu downloads, %llu programs; %.1f MiB of "
        "its memory at most\n",
        100 * times->busy, (unsigned long long)times->uploads, (unsigned long long)times->downloads,
        (unsigned long long)times->submissions, (double)times->bytes_peak / 0x1p20);
    double faster = weft__shares_without(&s.parts, "matmul");
    if (faster > 0) fprintf(p->out, "if matmul took no time, this run would be %.2f times faster\n", faster);
    for (size_t i = 0; i < s.phases.count; i++)
        fprintf(p->out, "%s%s %.2f s", i ? ", " : "", s.phases.item[i].name, s.phases.item[i].seconds);
    fprintf(p->out, "\n\n");
}

void weft__progress_sample(weft__progress *p, const char *text, size_t bytes) {
    enum { BYTES = 400, LINES = 8 };
    size_t shown = weft__utf8_cut(text, bytes, BYTES);
    if (!p->out) return;
    for (int line = 0; line < LINES && shown > 0; line++) {
        const char *end = memchr(text, '\n', shown);
        const size_t length = end ? (size_t)(end - text) : shown, taken = length + (end != NULL);
        weft__print(p->out, "  %.*s\n", (int)length, text);
        text += taken;
        shown -= taken;
    }
}
