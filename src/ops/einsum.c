/* Einstein summation. The equation is read into labels of dimensions. Labels that repeat within an operand
 * become diagonals. Then pairs of operands are contracted, the cheapest first, until one is left. A pair is a
 * matmul over (batch, rows, inner) and (batch, inner, columns), or an elementwise multiplication if nothing
 * is summed.
 * Must not know: kernels; einsum is made of other ops and has no gradient of its own.
 * Read next: matmul.c, arrange.c. */
#include <string.h>
#include "ops/ops.h"

/* Labels 0 to 51 are the letters A-Z, a-z. The dimensions of an ellipsis have the last labels. */
enum { LETTERS = 52, LABELS = LETTERS + WEFT_MAX_RANK, MOST_OPERANDS = 32 };

/* An operand, or the result of a contraction. Dimension i has label[i]; each label occurs once. */
typedef struct term {
    weft_tensor *x;
    int label[WEFT_MAX_RANK];
} term;

typedef struct equation {
    const char *where, *text;
    weft_context *ctx;
    int n_terms, n_out, dots; /* dots: number of dimensions that the longest ellipsis stands for */
    bool dotted_out;
    term terms[MOST_OPERANDS];
    int out[WEFT_MAX_RANK];
    int seen[LABELS]; /* how often the label occurs among the inputs */
    int64_t extent[LABELS];
} equation;

static weft_tensor *wrong(const equation *e, weft_status status, const char *what, const char *at) {
    return weft__poison(e->ctx, e->where, status, "einsum: \"%s\": %s at character %lld", e->text, what,
                        (long long)(at - e->text) + 1);
}

static int label_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* Reads the labels of one operand, up to ',' or the arrow. -1 stands for an ellipsis. */
static weft_tensor *read_labels(const equation *e, const char **at, int *labels, int *count) {
    *count = 0;
    bool dotted = false;
    for (; **at && **at != ',' && **at != '-'; ++*at) {
        if (**at == ' ') continue;
        if (*count > WEFT_MAX_RANK) return wrong(e, WEFT_ERR_SHAPE, "too many labels", *at);
        if (**at == '.') {
            if (strncmp(*at, "...", 3) || dotted)
                return wrong(e, WEFT_ERR_ARGUMENT, "expected an ellipsis, ..., once in an operand", *at);
            labels[(*count)++] = -1;
            dotted = true;
            *at += 2;
        } else if (label_of(**at) >= 0) {
            labels[(*count)++] = label_of(**at);
        } else {
            return wrong(e, WEFT_ERR_ARGUMENT, "expected a letter, comma, arrow or ellipsis", *at);
        }
    }
    return NULL;
}

/* Gives each dimension of the operand its label. The dimensions of an ellipsis get labels from the end, so
 * that they are aligned at the last one. */
static weft_tensor *read_operand(equation *e, const char **at, weft_tensor *x, int *full) {
    int labels[WEFT_MAX_RANK + 1], count, n = 0;
    const char *start = *at;
    weft_tensor *bad = read_labels(e, at, labels, &count);
    if (bad) return bad;
    bool dotted = false;
    for (int i = 0; i < count; i++) dotted |= labels[i] < 0;
    const int dots = x->rank - (count - dotted);
    if (dots < 0 || (dots > 0 && !dotted)) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(e->ctx, e->where, WEFT_ERR_SHAPE,
                            "einsum: \"%s\": %d labels at character %lld do not fit %s", e->text,
                            count - dotted, (long long)(start - e->text) + 1, weft__tensor_text(x, text));
    }
    for (int i = 0; i < count; i++) {
        if (labels[i] >= 0) full[n++] = labels[i];
        for (int k = 0; labels[i] < 0 && k < dots; k++) full[n++] = LABELS - dots + k;
    }
    if (dotted && dots > e->dots) e->dots = dots;
    for (int i = 0; i < n; i++) {
        int64_t *extent = &e->extent[full[i]];
        e->seen[full[i]]++;
        if (*extent == 1) *extent = x->shape[i];
        if (x->shape[i] == 1 || x->shape[i] == *extent) continue;
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(e->ctx, e->where, WEFT_ERR_SHAPE,
                            "einsum: \"%s\": dimension %d of %s is %lld, but its label was %lld before",
                            e->text, i, weft__tensor_text(x, text), (long long)x->shape[i],
                            (long long)*extent);
    }
    return NULL;
}

/* Turns repeated labels into diagonals. Drops extents of 1 whose label has a longer extent elsewhere. */
static void simplify(const equation *e, term *t, const int *full) {
    int rank = t->x->rank;
    memcpy(t->label, full, (size_t)rank * sizeof *full);
    for (int i = 0; i < rank && !weft__poisoned(t->x); i++) {
        if (t->x->shape[i] == 1 && e->extent[t->label[i]] != 1) {
            t->x = weft_squeeze_at(e->where, t->x, i);
            memmove(t->label + i, t->label + i + 1, (size_t)(--rank - i) * sizeof *t->label);
            i--;
            continue;
        }
        for (int k = i + 1; k < rank; k++) {
            if (t->label[k] != t->label[i] || weft__poisoned(t->x) || t->x->shape[k] != t->x->shape[i])
                continue;
            const int label = t->label[i];
            t->x = weft_diagonal_at(e->where, t->x, 0, i, k);
            memmove(t->label + k, t->label + k + 1, (size_t)(--rank - k) * sizeof *t->label);
            memmove(t->label + i, t->label + i + 1, (size_t)(--rank - i) * sizeof *t->label);
            t->label[rank++] = label;
            i--;
            break;
        }
    }
}

static weft_tensor *read_output(equation *e, const char *at) {
    int labels[WEFT_MAX_RANK + 1], count = 0;
    while (*at == ' ') at++;
    const char *arrow = at;
    if (*at) {
        if (strncmp(at, "->", 2))
            return wrong(e, WEFT_ERR_ARGUMENT, *at == ',' ? "one operand too many" : "expected an arrow, ->,",
                         at);
        at += 2;
        weft_tensor *bad = read_labels(e, &at, labels, &count);
        if (bad) return bad;
        if (*at) return wrong(e, WEFT_ERR_ARGUMENT, "more than one output", at);
    } else {
        labels[count++] = -1;
        for (int l = 0; l < LETTERS; l++) {
            if (e->seen[l] != 1) continue;
            if (count > WEFT_MAX_RANK) return wrong(e, WEFT_ERR_SHAPE, "too many output labels", arrow);
            labels[count++] = l;
        }
    }
    bool used[LABELS] = {false};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < (labels[i] < 0 ? e->dots : 1); k++) {
            const int l = labels[i] < 0 ? LABELS - e->dots + k : labels[i];
            if (!e->seen[l]) return wrong(e, WEFT_ERR_ARGUMENT, "an output label that no operand has", arrow);
            if (used[l]) return wrong(e, WEFT_ERR_ARGUMENT, "a repeated output label", arrow);
            if (e->n_out == WEFT_MAX_RANK)
                return wrong(e, WEFT_ERR_SHAPE, "too many output dimensions", arrow);
            used[l] = true;
            e->out[e->n_out++] = l;
        }
    return NULL;
}

static weft_tensor *read_equation(equation *e, weft_tensor *const *operands, int count) {
    int full[MOST_OPERANDS][WEFT_MAX_RANK];
    const char *at = e->text;
    for (int l = 0; l < LABELS; l++) e->extent[l] = 1;
    for (int i = 0; i < count; i++) {
        e->terms[i].x = operands[i];
        weft_tensor *bad = read_operand(e, &at, operands[i], full[i]);
        if (bad) return bad;
        if (i + 1 < count && *at++ != ',') return wrong(e, WEFT_ERR_ARGUMENT, "one operand too few", at - 1);
    }
    weft_tensor *bad = read_output(e, at);
    for (int i = 0; i < count && !bad; i++) simplify(e, &e->terms[i], full[i]);
    e->n_terms = count;
    return bad;
}

/* ---- contracting ---- */

static int place_of(const term *t, int label) {
    for (int i = 0; i < t->x->rank; i++)
        if (t->label[i] == label) return i;
    return -1;
}

/* Whether the output, or a term other than a and b, needs the label. */
static bool needed(const equation *e, int label, int a, int b) {
    for (int i = 0; i < e->n_out; i++)
        if (e->out[i] == label) return true;
    for (int i = 0; i < e->n_terms; i++)
        if (i != a && i != b && place_of(&e->terms[i], label) >= 0) return true;
    return false;
}

/* Sums term `at` over the labels that nothing else needs. */
static void sum_alone(equation *e, int at, int other) {
    term *t = &e->terms[at];
    uint32_t mask = 0;
    int n = 0, label[WEFT_MAX_RANK];
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < t->x->rank; i++) {
        if (!needed(e, t->label[i], at, other) &&
            (other < 0 || place_of(&e->terms[other], t->label[i]) < 0)) {
            mask |= 1u << i;
            continue;
        }
        label[n] = t->label[i];
        shape[n++] = t->x->shape[i];
    }
    if (!mask) return;
    memcpy(t->label, label, (size_t)n * sizeof *label);
    t->x = weft__reduce(e->where, WEFT_OP_SUM, t->x, mask);
    if (!weft__poisoned(t->x)) t->x = weft__reshape_to(e->where, t->x, n, shape);
}

/* The roles of labels in a pair. BATCH: in both and kept. ROWS, COLUMNS: in one. INNER: in both and
 * summed. */
typedef enum group { BATCH, ROWS, COLUMNS, INNER, GROUPS } group;

static double cost_of(const equation *e, int a, int b) {
    double cost = 1;
    for (int i = 0; i < e->terms[a].x->rank; i++) cost *= (double)e->terms[a].x->shape[i];
    for (int i = 0; i < e->terms[b].x->rank; i++)
        if (place_of(&e->terms[a], e->terms[b].label[i]) < 0) cost *= (double)e->terms[b].x->shape[i];
    return cost;
}

/* t with its dimensions merged into three groups, in the given order. The first group is left out if it is
 * empty. */
static weft_tensor *grouped(const char *where, const term *t, const int (*labels)[2 * WEFT_MAX_RANK],
                            const int *counts, const group *order) {
    int by[WEFT_MAX_RANK], n = 0;
    int64_t shape[3] = {1, 1, 1};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < counts[order[g]]; i++) {
            by[n] = place_of(t, labels[order[g]][i]);
            shape[g] *= t->x->shape[by[n++]];
        }
    weft_tensor *x = weft_permute_at(where, t->x, by);
    const int from = counts[order[0]] ? 0 : 1;
    return weft__poisoned(x) ? x : weft__reshape_to(where, x, 3 - from, shape + from);
}

/* Contracts terms a < b into a and removes b. */
static void contract(equation *e, int a, int b) {
    int labels[GROUPS][2 * WEFT_MAX_RANK], counts[GROUPS] = {0}, rank = 0;
    sum_alone(e, a, b);
    sum_alone(e, b, a);
    term *l = &e->terms[a], *r = &e->terms[b];
    if (weft__poisoned(l->x) || weft__poisoned(r->x)) {
        if (!weft__poisoned(l->x)) l->x = r->x;
        e->n_terms = 1;
        return;
    }
    for (int i = 0; i < l->x->rank; i++) {
        const int label = l->label[i];
        const group g = place_of(r, label) < 0 ? ROWS : needed(e, label, a, b) ? BATCH : INNER;
        labels[g][counts[g]++] = label;
    }
    for (int i = 0; i < r->x->rank; i++)
        if (place_of(l, r->label[i]) < 0) labels[COLUMNS][counts[COLUMNS]++] = r->label[i];
    int64_t shape[WEFT_MAX_RANK];
    int label[WEFT_MAX_RANK];
    weft_tensor *y = NULL;
    if (counts[BATCH] + counts[ROWS] + counts[COLUMNS] > WEFT_MAX_RANK)
        y = wrong(e, WEFT_ERR_SHAPE, "a matmul of too many dimensions", e->text);
    for (int g = BATCH; g <= COLUMNS && !y; g++)
        for (int i = 0; i < counts[g]; i++) {
            const term *t = g == COLUMNS ? r : l;
            label[rank] = labels[g][i];
            shape[rank++] = t->x->shape[place_of(t, labels[g][i])];
        }
    if (!y) {
        weft_tensor *x = grouped(e->where, l, labels, counts, (group[]){BATCH, ROWS, INNER});
        y = grouped(e->where, r, labels, counts, (group[]){BATCH, INNER, COLUMNS});
        y = counts[INNER] ? weft_matmul_at(e->where, x, y) : weft_mul_at(e->where, x, y);
    }
    if (!weft__poisoned(y)) y = weft__reshape_to(e->where, y, rank, shape);
    l->x = y;
    memcpy(l->label, label, (size_t)rank * sizeof *label);
    memmove(r, r + 1, (size_t)(--e->n_terms - b) * sizeof *r);
    if (weft__poisoned(y)) {
        e->terms[0].x = y;
        e->n_terms = 1;
    }
}

weft_tensor *weft_einsum_at(const char *where, const char *text, weft_tensor *const *operands, int count) {
    if (count <= 0 || count > MOST_OPERANDS || !operands || !text)
        return weft__poison(NULL, where, WEFT_ERR_ARGUMENT,
                            "einsum: %d operands are not 1 to %d, or the equation is NULL", count,
                            MOST_OPERANDS);
    weft_tensor *bad = weft__reject("einsum", where, operands, count);
    if (bad || !operands[0]) return bad;
    equation e = {.where = where, .text = text, .ctx = operands[0]->ctx};
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    for (int i = 0; i < count; i++)
        if (operands[i]->dtype != operands[0]->dtype || operands[i]->dtype == WEFT_BOOL)
            return weft__poison(e.ctx, where, WEFT_ERR_DTYPE,
                                "einsum: operands must be numbers of one dtype: %s and %s",
                                weft__tensor_text(operands[0], a), weft__tensor_text(operands[i], b));
    if ((bad = read_equation(&e, operands, count))) return bad;
    for (int i = 0; i < count; i++)
        if (weft__poisoned(e.terms[i].x)) return e.terms[i].x;
    while (e.n_terms > 1) {
        int best[2] = {0, 1};
        for (int i = 0; i < e.n_terms; i++)
            for (int k = i + 1; k < e.n_terms; k++)
                if (cost_of(&e, i, k) < cost_of(&e, best[0], best[1])) best[0] = i, best[1] = k;
        contract(&e, best[0], best[1]);
    }
    if (weft__poisoned(e.terms[0].x)) return e.terms[0].x;
    sum_alone(&e, 0, -1);
    int order[WEFT_MAX_RANK];
    if (weft__poisoned(e.terms[0].x)) return e.terms[0].x;
    for (int i = 0; i < e.n_out; i++) order[i] = place_of(&e.terms[0], e.out[i]);
    return weft_permute_at(where, e.terms[0].x, order);
}
