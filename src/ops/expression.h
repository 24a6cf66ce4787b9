/* Scalar expressions in the language of the op table. They are read once and recorded as elementwise nodes.
 * Must not know: devices. Read next: expression.c, custom.c. */
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

/* A term comes before the terms that use it. The last term is the value. */
typedef struct weft_term {
    uint8_t kind, op;
    bool truth; /* true: a bool; false: of the operands' dtype */
    int in[3];  /* indices of terms; for an operand: its number */
    int column; /* column in the text where the term begins, from 1 */
    double number;
} weft_term;

typedef struct weft_expression {
    const char *what, *text; /* what: names the expression in messages */
    const char *operands;    /* the operands' letters */
    int count;
    weft_term terms[WEFT_EXPRESSION_MOST];
} weft_expression;

/* Reads the text. The caller sets what, text and operands. Errors name the column. */
weft_status weft__expression_read(weft_context *ctx, weft_expression *e);
/* WEFT_OK if the dtype has every op and number of the expression; else WEFT_ERR_DTYPE. */
weft_status weft__expression_accepts(weft_context *ctx, const weft_expression *e, weft_dtype dtype);
/* Records the expression on operands of one dtype and returns its value. */
weft_tensor *weft__expression_record(const char *where, const weft_expression *e, weft_tensor *const *in);

#endif
