/* Style and script of report.html. They are in files of their own, report.css and report.js, which the build
 * embeds as constants that end in NUL. Must not know: what they do. Read next: report.js. */
#ifndef WEFT_SRC_TRAIN_REPORT_REPORT_ASSETS_H
#define WEFT_SRC_TRAIN_REPORT_REPORT_ASSETS_H

extern const char weft__report_css[], weft__report_js[];

#endif
