/* Scalar expressions in the language of the op table, read once and recorded as elementwise nodes. Must not
 * know: devices. Read next: expression.c, custom.c. */
#ifndef WEFT_OPS_EXPRESSION_H
#define WEFT_OPS_EXPRESSION_H

#include "ops/ops.h"

enum { WEFT_EXPRESSION_MOST = 128, WEFT_EXPRESSION_OPERANDS = 6 };

typedef enum weft_term_kind {
    WEFT_TERM_OPERAND,
    WEFT_TERM_NUMBER,
    WEFT_TERM_CALC,
    WEFT_TERM_CAST
} weft_term_kind;

/* Terms come before those that use them; the last is the value. */
typedef struct weft_term {
    uint8_t kind, op;
    bool truth; /* a bool; else of the operands' dtype */
    int in[3];  /* terms; of an operand which one it is */
    int column; /* where it begins in the text, from 1 */
    double number;
} weft_term;

typedef struct weft_expression {
    const char *what, *text; /* for messages */
    const char *operands;    /* a letter each */
    int count;
    weft_term terms[WEFT_EXPRESSION_MOST];
} weft_expression;

/* Reads text; e->what, text and operands are set. Errors name the column. */
weft_status weft__expression_read(weft_context *ctx, weft_expression *e);
/* WEFT_OK where all that it computes is there for the dtype. */
weft_status weft__expression_accepts(weft_context *ctx, const weft_expression *e, weft_dtype dtype);
/* Its value, of operands of one dtype. */
weft_tensor *weft__expression_record(const char *where, const weft_expression *e, weft_tensor *const *in);

#endif
