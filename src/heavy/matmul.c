/* What the compiler and the profile know of a matmul. Must not know: devices. Read next: matmul.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int matmul_operands(const weft_heavy *heavy) {
    return weft__matmul_sums_at(&heavy->as.matmul) + heavy->as.matmul.sums;
}

static const weft_kernel *epilogue(const weft_heavy *heavy) { return heavy->as.matmul.epilogue; }
static weft_dtype dtype(const weft_heavy *heavy) { return (weft_dtype)heavy->as.matmul.dtype; }

static void matmul_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    double size = weft__heavy_size(mm->dtype), a = 1, b = 1, c = 1;
    for (int i = 0; i < mm->batch_rank; i++) { /* an operand that is broadcast is read once */
        double n = (double)mm->batch[i];
        c *= n;
        if (mm->a_batch[i] != 0) a *= n;
        if (mm->b_batch[i] != 0) b *= n;
    }
    double m = (double)mm->m, n = (double)mm->n, k = (double)mm->k;
    *flops = (weft_dtype_is_complex((weft_dtype)mm->dtype) ? 8 : 2) * c * m * n * k;
    *bytes = size * (a * m * k + b * k * n);
    if (mm->sums) {
        *flops += m * k;
        *bytes += 4 * m;
    }
    if (mm->epilogue) weft__kernel_cost(mm->epilogue, flops, bytes);
    /* The elements that an epilogue reads from the matmul are not in memory. */
    *bytes += (mm->epilogue ? -1 : 1) * c * m * n * weft__heavy_size(mm->out_dtype);
}

static void matmul_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    int64_t batch = 1;
    for (int i = 0; i < mm->batch_rank; i++) batch *= mm->batch[i];
    snprintf(text, size, "matmul %s %lldx %lldx%lldx%lld %c%c%s%s%s%s",
             weft_dtype_name((weft_dtype)mm->dtype), (long long)batch, (long long)mm->m, (long long)mm->n,
             (long long)mm->k, mm->a_k == 1 ? 'n' : 't', mm->b_n == 1 ? 'n' : 't',
             ((const char *[]){"", " conj a", " conj b", " conj a b"})[mm->conj & 3],
             mm->sums ? " + sums" : "", mm->epilogue ? " " : "", mm->epilogue ? mm->epilogue->name : "");
}

static const char *matmul_check(const weft_heavy *heavy) {
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    if (mm->batch_rank < 0 || mm->batch_rank > WEFT_BATCH_DIMS) return "too many batch dimensions";
    if (!weft__heavy_extents(3, (int64_t[]){mm->m, mm->n, mm->k}) ||
        !weft__heavy_extents(mm->batch_rank, mm->batch))
        return "a negative extent";
    if (!weft__heavy_extents(5, (int64_t[]){mm->a_m, mm->a_k, mm->b_k, mm->b_n, mm->c_m}))
        return "a negative stride";
    if (mm->m > 1 && mm->k > 1 && mm->a_m != 1 && mm->a_k != 1) return "no unit stride in a";
    if (mm->k > 1 && mm->n > 1 && mm->b_k != 1 && mm->b_n != 1) return "no unit stride in b";
    if (mm->sums && (mm->batch_rank || !weft_dtype_is_float((weft_dtype)mm->dtype)))
        return "row sums of a batch, or of a dtype that is not a float";
    return NULL;
}

const weft_heavy_class weft__heavy_matmul = {.name = "matmul",
                                             .work = WEFT_WORK_MATMUL,
                                             .operands = matmul_operands,
                                             .epilogue = epilogue,
                                             .dtype = dtype,
                                             .cost = matmul_cost,
                                             .describe = matmul_describe,
                                             .check = matmul_check};
