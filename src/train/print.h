/* Prints text for people. Names of classes, columns, layers, models and files can come from anybody. All
 * output of the command goes through these functions, so that no name can control the terminal (base/text.h
 * says what is escaped). Must not know: what is printed. Read next: print.c. */
#ifndef WEFT_SRC_TRAIN_PRINT_H
#define WEFT_SRC_TRAIN_PRINT_H

#include <stdio.h>

#include "base/base.h"

/* Prints as fprintf does, and escapes control characters except newline and tab. JSON stays the same JSON. */
void weft__print(FILE *out, const char *fmt, ...) WEFT_PRINTF(2, 3);
void weft__vprint(FILE *out, const char *fmt, va_list args);
/* What a message on standard error begins with: "", or what clears the line that the terminal shows. */
extern const char *weft__clear_line;
/* Prints text that the user asked for, such as the output of a model. A file or a pipe gets the bytes
 * unchanged, a terminal gets escapes. Returns false if the text cannot be written. */
bool weft__print_text(FILE *out, const char *text, size_t bytes);

/* Returns a short number for people, such as "1.2M", "350k" or "0.001", written to `out`. */
const char *weft__short_number(double value, char out[24]);

/* How a number is written for people. */
typedef enum weft__notation {
    WEFT__NOTATION_NONE,    /* not at all */
    WEFT__NOTATION_FIXED,   /* 0.1234 */
    WEFT__NOTATION_POWER,   /* 1.23e-04 */
    WEFT__NOTATION_GENERAL, /* 0.1234 or 1.234e-05, with that many significant digits */
    WEFT__NOTATION_PERCENT, /* 12.34 %, of 0.1234 */
    WEFT__NOTATION_SHORT    /* 12.3k; always four digits at most */
} weft__notation;
/* Room for the longest double in fixed notation. */
enum { WEFT__SHOWN_BYTES = 340 };
/* Returns the number as text, written to `out`. */
const char *weft__shown_number(weft__notation notation, int digits, double value,
                               char out[WEFT__SHOWN_BYTES]);

#endif
