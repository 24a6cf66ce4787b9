/* Writes an HTML page to a file, completely or not at all. Must not know: what the page shows. Read next:
 * page.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_PAGE_H
#define WEFT_SRC_TRAIN_REPORT_PAGE_H

#include <stdio.h>

#include "base/base.h"

/* Writes the page to `out`. It may be called several times, with more room each time. */
typedef weft_status weft__page_put(FILE *out, void *user);

/* The first lines of a page that a command, such as "compare", wrote. */
#define WEFT__PAGE_BEGIN       "<!doctype html>\n"
#define WEFT__PAGE_BY(command) WEFT__PAGE_BEGIN "<!-- weft " command " -->\n"

/* Writes the head of a page after its first lines: title, style, and a policy that forbids to load
 * anything. */
void weft__page_head(FILE *out, const char *title);
/* Writes the script of the charts, and the end of the page. */
void weft__page_end(FILE *out);

weft_status weft__page_write(const char *path, weft__page_put *put, void *user);

#endif
