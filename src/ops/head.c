/* Logits in parts. The matmul that makes the logits of a loss is recorded once for each part of the rows.
 * Then only one part of the logits is in memory at a time.
 * Must not know: losses. Read next: loss.c. */
#include "ops/head.h"
#include "ops/ops.h"

/* Maximum size of a part if the user does not set the number of parts. */
#define PART_BYTES (INT64_C(1) << 30)

int64_t weft__logit_parts_of(int64_t rows, int64_t classes, weft_dtype dtype) {
    int64_t bytes = 0, parts = 1;
    if (!weft__mul(classes, (int64_t)weft_dtype_size(dtype), &bytes) || !weft__mul(bytes, rows, &bytes))
        return 1;
    while (parts < rows && weft__ceil_div(bytes, parts) > PART_BYTES) parts *= 2;
    return parts < rows ? parts : rows;
}

/* Whether t is a mask of classes: a vector over the classes chooses between logits and a number. *vector and
 * *number get both. */
static bool is_mask(const weft_tensor *t, const weft_tensor **vector, double *number) {
    if (t->op != WEFT_OP_WHERE) return false;
    const weft_tensor *which = t->in[0], *other = t->in[2];
    while (!which->leaf && (which->op == WEFT_OP_EXPAND || which->op == WEFT_OP_RESHAPE))
        which = which->in[0];
    while (!other->leaf && (other->op == WEFT_OP_EXPAND || other->op == WEFT_OP_RESHAPE))
        other = other->in[0];
    if (other->leaf || other->op != WEFT_OP_CONST || which->numel != t->shape[t->rank - 1]) return false;
    *vector = which;
    *number = ((const weft_attr_const *)other->attr)->f;
    return true;
}

/* Maximum number of casts, shapes and masks between the matmul and the loss. Recording a part recurses over
 * them. */
enum { FOLLOW_MOST = 64 };

/* The matmul under a cast, shapes and a mask. NULL: there is none, or it is evaluated already. */
static weft_tensor *product_of(weft_tensor *logits) {
    const weft_tensor *vector;
    weft_tensor *t = logits;
    double number;
    for (int depth = 0;; depth++) {
        if (t->leaf || depth == FOLLOW_MOST) return NULL;
        if (t->op == WEFT_OP_CAST || t->op == WEFT_OP_RESHAPE)
            t = t->in[0];
        else if (is_mask(t, &vector, &number))
            t = t->in[1];
        else
            break;
    }
    const bool rows = t->op == WEFT_OP_MATMUL && t->rank == 2;
    return rows && t->shape[1] == logits->shape[logits->rank - 1] ? t : NULL;
}

/* Records for a part of the matmul's rows what `logits` records for all rows. */
static weft_tensor *head_follow(const char *where, const weft_tensor *logits, const weft_tensor *product,
                                weft_tensor *part) {
    const weft_tensor *vector;
    double number;
    if (logits == product || weft__poisoned(part)) return part;
    if (!is_mask(logits, &vector, &number)) {
        part = head_follow(where, logits->in[0], product, part);
        return logits->op == WEFT_OP_CAST && !weft__poisoned(part)
                   ? weft_cast_at(where, part, weft_dtype_of(logits))
                   : part;
    }
    part = head_follow(where, logits->in[1], product, part);
    if (weft__poisoned(part)) return part;
    weft_tensor *which =
        weft__reshape_to(where, (weft_tensor *)(uintptr_t)vector, 1, &part->shape[part->rank - 1]);
    return at_where(which, part, weft_full_like_at(where, part, number));
}

int64_t weft__logit_parts(weft_tensor *logits) {
    const weft_tensor *product = logits->rank ? product_of(logits) : NULL;
    return product && product->parts ? product->parts : 1;
}

void weft__logit_mark(weft_tensor *logits, int64_t parts) {
    weft_tensor *product = weft__poisoned(logits) || logits->rank == 0 ? NULL : product_of(logits);
    if (!product || product->shape[0] < 1) return;
    product->parts = (uint32_t)weft__smaller(parts, product->shape[0]);
}

/* The matrix of classes. A cast of it is recorded again for the part. So the gradients of parts are added up
 * in the dtype in which the matrix is kept. */
static weft_tensor *narrowed_anew(const char *where, weft_tensor *t, int depth) {
    if (t->leaf || depth == FOLLOW_MOST) return t;
    if (t->op == WEFT_OP_CAST) return weft__rounded_at(where, t->in[0], weft_dtype_of(t));
    if (t->op != WEFT_OP_PERMUTE) return t;
    return weft_permute_at(where, narrowed_anew(where, t->in[0], depth + 1),
                           (int[]){((const weft_attr_permutation *)t->attr)->order[0],
                                   ((const weft_attr_permutation *)t->attr)->order[1]});
}

weft_tensor *weft__logit_part(const char *where, weft_tensor *logits, int64_t part, int64_t parts,
                              uint32_t *segment) {
    weft_context *ctx = logits->ctx;
    weft_tensor *product = product_of(logits);
    const int64_t rows = product->shape[0], step = weft__ceil_div(rows, parts), first = part * step;
    const char *path = ctx->path;
    const uint8_t stage = ctx->stage;
    weft_tensor *x = weft_narrow_at(where, product->in[0], 0, first, weft__smaller(step, rows - first));
    *segment = weft__segment_begin(ctx, WEFT_SEGMENT_CHUNK);
    ctx->path = product->path;
    ctx->stage = product->stage;
    weft_tensor *y = weft_matmul_at(where, x, narrowed_anew(where, product->in[1], 0));
    y = head_follow(where, logits, product, y);
    ctx->path = path;
    ctx->stage = stage;
    return y;
}
