/* Decimal numbers from text.
 * Must not know: what the numbers are for. Read next: number.c. */
#ifndef WEFT_SRC_BASE_NUMBER_H
#define WEFT_SRC_BASE_NUMBER_H

#include <stddef.h>

typedef enum weft__number_kind {
    WEFT__NUMBER_OK,
    WEFT__NUMBER_EMPTY,
    WEFT__NUMBER_TEXT,      /* not a decimal number */
    WEFT__NUMBER_NONFINITE, /* nan or inf, written as words; *out is set */
    WEFT__NUMBER_OVERFLOW,  /* too large for the type */
    WEFT__NUMBER_NO_MEMORY
} weft__number_kind;
/* Reads a whole decimal number, correctly rounded, in any locale. Blanks around it are allowed. */
weft__number_kind weft__parse_f64(const char *text, size_t size, double *out);
weft__number_kind weft__parse_f32(const char *text, size_t size, float *out);
/* The same with another character for the point, such as the comma of many countries. */
weft__number_kind weft__parse_f64_with(const char *text, size_t size, char point, double *out);
weft__number_kind weft__parse_f32_with(const char *text, size_t size, char point, float *out);

#endif
