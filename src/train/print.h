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
/* Prints text that the user asked for, such as the output of a model. A file or a pipe gets the bytes
 * unchanged, a terminal gets escapes. Returns false if the text cannot be written. */
bool weft__print_text(FILE *out, const char *text, size_t bytes);

#endif
