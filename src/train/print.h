/* Printing for people. Names of classes, columns, layers, models and files come from anybody: whatever the
 * command prints passes here, so that none of them steers the terminal (base/text.h says what is escaped).
 * Read next: print.c. */
#ifndef WEFT_SRC_TRAIN_PRINT_H
#define WEFT_SRC_TRAIN_PRINT_H

#include <stdio.h>

#include "base/base.h"

/* As fprintf, with escapes; newlines and tabs stay. JSON stays the same JSON. */
void weft__print(FILE *out, const char *fmt, ...) WEFT_PRINTF(2, 3);
void weft__vprint(FILE *out, const char *fmt, va_list args);
/* Text that was asked for, such as a model's: to a file or a pipe byte by byte, to a terminal with escapes.
 * False where it cannot be written. */
bool weft__print_text(FILE *out, const char *text, size_t bytes);

#endif
