/* Shows several runs while they train. Must not know: processes. Read next: jobs.c, train/run/progress.c. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/jobs_line.h"
#include "train/print.h"

void weft__jobs_line_start(weft__progress *p, const weft__jobs *jobs) {
    weft__progress_start(p, jobs->json, false);
    if (p->bar && isatty(STDERR_FILENO) == 1) weft__clear_line = "\r\033[K";
}

/* Returns the seconds until all jobs have ended: each takes as long as those that ended here, on average. NaN
 * if none has ended yet. */
static double seconds_left(const weft__jobs *jobs) {
    const double now = weft__now();
    double spent = 0, rest = 0, longest = 0;
    size_t ended = 0, open = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        spent += jobs->items[i].seconds;
        ended += jobs->items[i].seconds > 0;
    }
    if (ended == 0) return (double)NAN;
    for (size_t i = 0; i < jobs->count; i++) {
        const weft__job *job = &jobs->items[i];
        if (job->done) continue;
        double left = spent / (double)ended - (job->process ? now - job->began : 0);
        if (left < 0) left = 0;
        longest = left > longest ? left : longest;
        rest += left;
        open++;
    }
    if (open > (size_t)jobs->at_once) open = (size_t)jobs->at_once;
    rest = open ? rest / (double)open : 0;
    return rest > longest ? rest : longest;
}

static const weft__job *best_job(const weft__jobs *jobs) {
    const weft__job *best = NULL;
    for (size_t i = 0; i < jobs->count; i++) {
        const weft__job *job = &jobs->items[i];
        if (job->done && job->facts.measure && (!best || weft__facts_better(&job->facts, &best->facts)))
            best = job;
    }
    return best;
}

/* Puts the best result so far, with the name of its run if `named`, and the time left if it is known. */
static void put_outlook(weft_text *line, const weft__jobs *jobs, bool named, bool with_best) {
    char result[WEFT__FACT_TEXT], left[32];
    const weft__job *best = with_best ? best_job(jobs) : NULL;
    const double seconds = seconds_left(jobs);
    if (best) weft__put(line, "  best %s", weft__facts_result(&best->facts, result));
    if (best && named) weft__put(line, " (%s)", best->name);
    weft__progress_clock(seconds, left);
    if (isfinite(seconds)) weft__put(line, "  %s left", left);
}

void weft__jobs_line_ended(weft__progress *p, const weft__jobs *jobs, const weft__job *job, size_t done) {
    char result[WEFT__FACT_TEXT], time[WEFT__FACT_TEXT], outlook[512];
    weft_text line = weft__text(outlook, sizeof outlook);
    const bool diverged = strcmp(job->facts.summary.status, "diverged") == 0;
    if (!p->bar && !job->before && done < jobs->count) put_outlook(&line, jobs, true, true);
    weft__progress_say(p, "[%zu/%zu] %s: %s%s, %s%s%s", done, jobs->count, job->name,
                       diverged ? "diverged, " : "", weft__facts_result(&job->facts, result),
                       weft__facts_time(job->facts.summary.seconds, time), job->before ? ", as before" : "",
                       outlook);
}

void weft__jobs_line_draw(weft__progress *p, const weft__jobs *jobs) {
    char text[512];
    size_t done = 0;
    if (!weft__progress_stale(p)) return;
    for (size_t i = 0; i < jobs->count; i++) done += jobs->items[i].done;
    for (int less = 0; less < 3; less++) { /* a narrow terminal shows less */
        weft_text line = weft__text(text, sizeof text);
        weft__put(&line, "%zu/%zu runs", done, jobs->count);
        put_outlook(&line, jobs, less < 1, less < 2);
        if (line.length <= (size_t)weft__progress_width(p)) break;
    }
    weft__progress_draw(p, (double)done / (double)jobs->count, text);
}

void weft__jobs_line_end(weft__progress *p) {
    weft__progress_clear(p);
    weft__clear_line = "";
}
