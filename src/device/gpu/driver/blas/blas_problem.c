/* Matmuls in the terms of cuBLASLt. It stores matrices by columns, Weft by rows:
 *
 *     Weft:      C   = A B          stored by rows
 *     cuBLASLt:  C^T = B^T A^T      stored by columns, in the same memory
 *
 * So the transposed matmul needs no copy. Its bias has one number for each row of C^T, which is one for each
 * column of C. Epilogues are recognised in the form of kernels (kernel/kernel.h).
 * Must not know: the library's functions, devices. Read next: blas_plan.c. */
#include <string.h>

#include "device/gpu/driver/blas/blas.h"
#include "device/gpu/driver/hooks.h"

/* Fewer multiplications are not worth a call. A small matmul takes a library 4 to 6 us. The launch of a
 * template takes 2 to 5 us, takes more epilogues, and can be fused. */
#define WORTH 6e7

/* ---- matrices ---- */

static int32_t type_of(int dtype) {
    switch (dtype) {
    case WEFT_F32: return CUDA_R_32F;
    case WEFT_F64: return CUDA_R_64F;
    case WEFT_F16: return CUDA_R_16F;
    case WEFT_BF16: return CUDA_R_16BF;
    default: return -1;
    }
}

/* Describes op(matrix), which is (rows, columns), with these strides. Returns false if the library cannot
 * address it. */
static bool matrix_of(int64_t rows, int64_t columns, int64_t row, int64_t column, weft__blas_matrix *to) {
    const bool in_columns = row == 1 || rows == 1;
    if (!in_columns && column != 1 && columns != 1) return false;
    to->transposed = in_columns ? CUBLAS_OP_N : CUBLAS_OP_T;
    to->rows = in_columns ? rows : columns;
    to->columns = in_columns ? columns : rows;
    to->ld = in_columns ? column : row;
    if (to->columns == 1) to->ld = to->rows;
    return to->ld >= to->rows && to->rows <= INT32_MAX && to->columns <= INT32_MAX;
}

/* Merges the batch dimensions. Returns false if there is no single step from each matmul to the next. */
static bool batch_of(const weft_heavy_matmul *mm, weft__blas_problem *p) {
    int64_t steps[3] = {0, 0, 0};
    p->batch = 1;
    for (int d = mm->batch_rank - 1; d >= 0; d--) {
        const int64_t own[3] = {mm->b_batch[d], mm->a_batch[d], mm->c_batch[d]};
        if (mm->batch[d] == 1) continue;
        for (int i = 0; i < 3; i++) {
            if (p->batch == 1)
                steps[i] = own[i];
            else if (own[i] != steps[i] * p->batch)
                return false;
        }
        p->batch *= mm->batch[d];
    }
    p->a.step = steps[0], p->b.step = steps[1], p->d.step = steps[2];
    return p->batch <= INT32_MAX;
}

/* ---- epilogues ---- */

/* What a value of the kernel is, for the current element. */
typedef enum value_kind {
    OTHER,
    NUMBER,
    VECTOR, /* the element of argument `arg` for the current column */
    MATRIX, /* the current element of argument `arg` */
    SLOPE,  /* the slope of GELU at the current element of argument `arg` */
    SUM,    /* alpha * matmul + bias + base */
    GELU,   /* GELU of the sum */
    DGELU   /* the matmul times the slope at argument `arg` */
} value_kind;

typedef struct value {
    value_kind kind;
    int arg, bias, base; /* arguments of the kernel; -1: none */
    double number;       /* the number, or alpha */
} value;

enum { VALUES_MOST = 12, STORES_MOST = 2 };

typedef struct match {
    const weft_kernel *kernel;
    int product;
    int64_t n; /* columns */
    value values[VALUES_MOST];
    int stored[STORES_MOST], into[STORES_MOST], n_stores; /* values and arguments */
} match;

/* Returns whether the view reads the element of the current column, in rows of n. */
static bool is_column(const match *m, const weft_view *view) {
    const weft_map *map = &view->map[0];
    int64_t place = 1; /* elements for each index of the dimension */
    if (view->count != 1 || map->guarded || map->offset != 0) return false;
    for (int d = map->rank - 1; d >= 0; d--) {
        const int64_t next = place * map->extent[d];
        if (place < m->n && next > m->n) return false;
        if (map->extent[d] > 1 && map->stride[d] != (place < m->n ? place : 0)) return false;
        place = next;
    }
    return true;
}

static value blas_problem_load(const match *m, const weft_instr *in) {
    const weft_view *view = &m->kernel->views[in->view];
    const bool element = weft__view_is_identity(view);
    value v = {.kind = OTHER, .arg = in->arg, .bias = -1, .base = -1};
    if (in->arg == m->product)
        v.kind = SUM, v.number = 1;
    else if (element && m->kernel->args[in->arg].elements >= weft__kernel_rows(m->kernel))
        v.kind = MATRIX;
    else if (is_column(m, view))
        v.kind = VECTOR;
    return v;
}

static bool is_plain(const value *v) { return v->kind == SUM && v->bias < 0 && v->base < 0; }

/* Adds y to x. x must be a sum. */
static bool blas_problem_add(value *x, const value *y) {
    if (x->kind != SUM) return false;
    int *to = y->kind == VECTOR ? &x->bias : y->kind == MATRIX ? &x->base : NULL;
    if (!to || *to >= 0) return false;
    *to = y->arg;
    return true;
}

static bool multiply(value *x, const value *y) {
    if (!is_plain(x)) return false;
    if (y->kind == NUMBER) {
        x->number *= y->number;
        return true;
    }
    if (y->kind != SLOPE || x->number != 1) return false;
    x->kind = DGELU;
    x->arg = y->arg;
    return true;
}

static value calc(const match *m, const weft_instr *in) {
    const value none = {.kind = OTHER};
    value a = m->values[in->a], b = in->b >= 0 ? m->values[in->b] : none;
    switch (in->op) {
    case WEFT_OP_ADD: return blas_problem_add(&a, &b) ? a : blas_problem_add(&b, &a) ? b : none;
    case WEFT_OP_MUL: return multiply(&a, &b) ? a : multiply(&b, &a) ? b : none;
    case WEFT_OP_GELU_TANH: /* the form that cuBLASLt has */
        if (a.kind != SUM || a.base >= 0) return none;
        a.kind = GELU;
        return a;
    case WEFT_OP_GELU_TANH_SLOPE:
        if (a.kind != MATRIX) return none;
        a.kind = SLOPE;
        return a;
    default: return none;
    }
}

/* Treats a cast as its operand. Roundings in between are dropped, since cuBLASLt keeps more bits. */
static value cast(const match *m, const weft_instr *in) {
    return type_of(in->dtype) >= 0 ? m->values[in->a] : (value){.kind = OTHER};
}

static bool blas_problem_store(match *m, const weft_instr *in) {
    if (m->n_stores == STORES_MOST || !weft__view_is_identity(&m->kernel->views[in->view])) return false;
    m->into[m->n_stores] = in->arg;
    m->stored[m->n_stores++] = in->a;
    return true;
}

static bool read_kernel(match *m) {
    if (m->kernel->n_code > VALUES_MOST) return false;
    for (int i = 0; i < m->kernel->n_code; i++) {
        const weft_instr *in = &m->kernel->code[i];
        value v = {.kind = OTHER};
        if (in->kind == WEFT_INSTR_LOAD)
            v = blas_problem_load(m, in);
        else if (in->kind == WEFT_INSTR_CONST && type_of(in->dtype) >= 0)
            v = (value){.kind = NUMBER, .number = in->imm_f};
        else if (in->kind == WEFT_INSTR_CALC)
            v = calc(m, in);
        else if (in->kind == WEFT_INSTR_CAST)
            v = cast(m, in);
        else if (in->kind != WEFT_INSTR_STORE || !blas_problem_store(m, in))
            return false;
        m->values[i] = v;
    }
    return true;
}

static int32_t type_of_arg(const match *m, int arg) {
    return arg < 0 ? -1 : type_of(m->kernel->args[arg].dtype);
}

/* Returns which of the stored values is the result. The other one may be the sum before GELU. Returns -1 if
 * neither fits. */
static int result_of(const match *m) {
    if (m->n_stores == 1) return 0;
    const int at = m->values[m->stored[0]].kind == GELU ? 0 : 1;
    const value *v = &m->values[m->stored[at]], *sum = &m->values[m->stored[1 - at]];
    const bool right = v->kind == GELU && sum->kind == SUM && sum->bias == v->bias && sum->base < 0 &&
                       sum->number == v->number;
    return right ? at : -1;
}

static int operand(int arg) { return arg < 0 ? -1 : 2 + arg; }

static bool epilogue_of(match *m, weft__blas_problem *p, weft__blas_operands *operands) {
    if (!read_kernel(m) || m->n_stores == 0) return false;
    const int at = result_of(m);
    const value *v = at < 0 ? NULL : &m->values[m->stored[at]];
    if (!v || (v->kind != SUM && v->kind != GELU && v->kind != DGELU)) return false;
    const int aux = v->kind == DGELU ? v->arg : m->n_stores == 2 ? m->into[1 - at] : -1;
    p->d.type = type_of_arg(m, m->into[at]);
    p->alpha = v->number;
    p->based = v->base >= 0;
    *operands = (weft__blas_operands){.a = 1,
                                      .b = 0,
                                      .d = operand(m->into[at]),
                                      .c = operand(v->base),
                                      .bias = operand(v->bias),
                                      .aux = operand(aux),
                                      .narrow = v->bias >= 0 && type_of_arg(m, v->bias) != p->d.type};
    if (p->based && type_of_arg(m, v->base) != p->d.type) return false;
    if (aux >= 0 && type_of_arg(m, aux) != p->d.type) return false;
    if (operands->narrow && (type_of_arg(m, v->bias) != CUDA_R_32F || p->d.type == CUDA_R_64F)) return false;
    p->epilogue = v->kind == GELU    ? aux < 0 ? CUBLASLT_EPILOGUE_GELU : CUBLASLT_EPILOGUE_GELU_AUX
                  : v->kind == DGELU ? CUBLASLT_EPILOGUE_DGELU
                                     : 0;
    if (v->bias >= 0) p->epilogue |= CUBLASLT_EPILOGUE_BIAS;
    if (!p->epilogue) p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return true;
}

/* Uses the epilogue that sums the rows of our a, which is its b, as the gradient of a bias. The matmul must
 * have no other epilogue. */
static bool sums_of(const weft_heavy_matmul *mm, weft__blas_problem *p, weft__blas_operands *operands) {
    if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT || p->based || p->alpha != 1 || p->d.type != CUDA_R_32F)
        return false;
    p->epilogue = CUBLASLT_EPILOGUE_BGRADB;
    operands->bias = mm->epilogue ? 2 + mm->epilogue->n_args : 3;
    return true;
}

/* ---- problems ---- */

/* Chooses the types. Returns false for combinations that round sums below f32 or below the dtype that is
 * stored. */
static bool types_of(const weft_heavy_matmul *mm, bool tf32, weft__blas_problem *p) {
    const int32_t in = type_of(mm->dtype), out = p->d.type;
    p->a.type = p->b.type = in;
    p->compute = in == CUDA_R_64F           ? CUBLAS_COMPUTE_64F
                 : in == CUDA_R_32F && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    p->scale = in == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    if (in < 0 || type_of(mm->out_dtype) < 0) return false;
    if (in == CUDA_R_32F || in == CUDA_R_64F) return out == in;
    return out == in || out == CUDA_R_32F;
}

/* Returns whether the library's GELU is good enough. It does not document how exact its tanh is. Results in
 * 16 bits hide the difference, f32 results do not. Its lines of aux must be multiples of 8. */
static bool suits_gelu(const weft__blas_problem *p) {
    if (!(p->epilogue & (CUBLASLT_EPILOGUE_GELU | CUBLASLT_EPILOGUE_DGELU))) return true;
    return (p->d.type == CUDA_R_16F || p->d.type == CUDA_R_16BF) && p->d.rows % 8 == 0;
}

bool weft__blas_problem_of(const weft_heavy_matmul *mm, bool tf32, weft__blas_problem *p,
                           weft__blas_operands *operands) {
    memset(p, 0, sizeof *p);
    p->alpha = 1;
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p->d.type = type_of(mm->out_dtype);
    *operands = (weft__blas_operands){.a = 1, .b = 0, .d = 2, .c = -1, .bias = -1, .aux = -1};
    if (mm->k == 0 || mm->m < 2 || mm->n < 2) return false; /* a template handles vectors */
    if (!batch_of(mm, p) || (double)mm->m * (double)mm->n * (double)mm->k * (double)p->batch <
                                (weft__driver_hook.call_worth > 0 ? weft__driver_hook.call_worth : WORTH))
        return false;
    if (!matrix_of(mm->n, mm->k, mm->b_n, mm->b_k, &p->a) ||
        !matrix_of(mm->k, mm->m, mm->a_k, mm->a_m, &p->b) || !matrix_of(mm->n, mm->m, 1, mm->c_m, &p->d))
        return false;
    match m = {.kernel = mm->epilogue, .product = mm->product, .n = mm->n};
    if (mm->epilogue) {
        if (!epilogue_of(&m, p, operands)) return false;
        p->d.ld = mm->n; /* with an epilogue, c is contiguous */
        p->d.step = p->batch > 1 ? mm->m * mm->n : 0;
    }
    if (mm->sums && !sums_of(mm, p, operands)) return false;
    return types_of(mm, tf32, p) && suits_gelu(p);
}
