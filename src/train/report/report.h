/* report.html of a run. Must not know: the loop. Read next: report.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_REPORT_H
#define WEFT_SRC_TRAIN_REPORT_REPORT_H

#include "base/base.h"

/* Writes DIR/report.html from the files of the run folder: metrics.jsonl, summary.json, config.yaml,
 * env.json, samples. The report is one file that opens offline. Missing files are left out. */
weft_status weft__report_write(const char *dir);

#endif
