/* Sizes of kernels, and the table of rows. Must not know: graphs, devices. Read next: print.c. */
#include "kernel/kernel.h"
#include "kernel/rows.h"

bool weft__instr_can_fault(const weft_instr *in) {
    const bool divides = in->kind == WEFT_INSTR_CALC && (in->op == WEFT_OP_DIV || in->op == WEFT_OP_MOD);
    return in->kind == WEFT_INSTR_GATHER || (divides && !weft_dtype_is_float((weft_dtype)in->dtype));
}

static int64_t kernel_product(const int64_t *extent, int count) {
    int64_t n = 1;
    for (int d = 0; d < count; d++) n *= extent[d];
    return n;
}

int64_t weft__kernel_rows(const weft_kernel *kernel) {
    return kernel_product(kernel->extent, kernel->n_parallel);
}

int64_t weft__kernel_block_rows(const weft_kernel *kernel) {
    return kernel_product(kernel->extent + kernel->n_parallel - kernel->n_fold, kernel->n_fold);
}

int64_t weft__kernel_row_length(const weft_kernel *kernel) {
    return kernel_product(kernel->extent + kernel->n_parallel, kernel->n_reduce);
}

enum { RESULT_SAME, RESULT_BOOL };

static const weft_row rows[WEFT_OP_COUNT] = {
#define ROW(id, name_, arity_, reduce_, dtypes_, result)                                                     \
    [WEFT_OP_##id] = {#name_, arity_, reduce_, RESULT_##result == RESULT_BOOL, WEFT_ROW_##dtypes_},
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)           ROW(id, name, 1, false, dtypes, result)
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc) ROW(id, name, 2, false, dtypes, result)
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    ROW(id, name, 3, false, dtypes, result)
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) ROW(id, name, 1, true, dtypes, SAME)
#include "ops/ops.def"
#undef ROW
};

const weft_row *weft__row(int op) {
    return op >= 0 && op < WEFT_OP_COUNT && rows[op].arity > 0 ? &rows[op] : NULL;
}

bool weft__row_takes(const weft_row *row, weft_dtype dtype) {
    const bool is_float = weft_dtype_is_float(dtype), is_bool = dtype == WEFT_BOOL;
    if (dtype == WEFT_C64 || dtype == WEFT_C128) return false;
    switch (row->dtypes) {
    case WEFT_ROW_FLOAT: return is_float;
    case WEFT_ROW_NUMBER: return !is_bool;
    case WEFT_ROW_INTEGER: return !is_float;
    case WEFT_ROW_BOOLS: return is_bool;
    case WEFT_ROW_ANY: return true;
    }
    return false;
}

bool weft__row_wraps(int op, weft_dtype dtype, size_t bytes) {
    if (weft_dtype_is_float(dtype) || dtype == WEFT_BOOL || weft_dtype_size(dtype) >= bytes) return false;
    switch (op) {
    case WEFT_OP_NEG:
    case WEFT_OP_ABS:
    case WEFT_OP_NOT:
    case WEFT_OP_ADD:
    case WEFT_OP_SUB:
    case WEFT_OP_MUL:
    case WEFT_OP_DIV:
    case WEFT_OP_SHL:
    case WEFT_OP_SUM:
    case WEFT_OP_PROD: return true;
    default: return false;
    }
}

bool weft__row_expensive(int op) {
    switch (op) {
    case WEFT_OP_EXP:
    case WEFT_OP_EXP2:
    case WEFT_OP_LOG:
    case WEFT_OP_LOG2:
    case WEFT_OP_LOG1P:
    case WEFT_OP_EXPM1:
    case WEFT_OP_SIN:
    case WEFT_OP_COS:
    case WEFT_OP_TANH:
    case WEFT_OP_ERF:
    case WEFT_OP_SIGMOID:
    case WEFT_OP_GELU:
    case WEFT_OP_GELU_SLOPE:
    case WEFT_OP_GELU_TANH:
    case WEFT_OP_GELU_TANH_SLOPE:
    case WEFT_OP_POW:
    case WEFT_OP_ATAN2:
    case WEFT_OP_MOD: return true;
    default: return false;
    }
}
