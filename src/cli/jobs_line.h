/* What the terminal shows while several runs train: a line for each run that ends. On a terminal one more
 * line below them is redrawn. Must not know: processes. Read next: jobs_line.c. */
#ifndef WEFT_SRC_CLI_JOBS_LINE_H
#define WEFT_SRC_CLI_JOBS_LINE_H

#include "cli/jobs.h"
#include "train/run/progress.h"

/* Begins to show jobs. With --json, nothing is shown. */
void weft__jobs_line_start(weft__progress *progress, const weft__jobs *jobs);

/* Tells of a job that has ended, as the `done`-th. */
void weft__jobs_line_ended(weft__progress *progress, const weft__jobs *jobs, const weft__job *job,
                           size_t done);

/* Redraws the line at the bottom of a terminal, a few times a second. */
void weft__jobs_line_draw(weft__progress *progress, const weft__jobs *jobs);

/* Removes the line. */
void weft__jobs_line_end(weft__progress *progress);

#endif
