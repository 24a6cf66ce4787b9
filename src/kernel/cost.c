/* The least operations and bytes of a kernel. Must not know: how fast a device is. Read next: kernel.h. */
#include "kernel/kernel.h"

/* Number of elements that an access touches. A dimension of stride 0 reads the same element again. */
static double touched(const weft_view *view, double most) {
    double n = 1;
    for (int d = 0; d < view->map[0].rank; d++)
        if (view->map[0].stride[d] != 0) n *= (double)view->map[0].extent[d];
    return n < most ? n : most;
}

/* How many values of this level exist. */
static double at_level(const weft_kernel *kernel, int level) {
    double n = (double)weft__kernel_rows(kernel);
    if (weft__level_folded(level)) n /= (double)weft__kernel_block_rows(kernel);
    return weft__level_inner(level) ? n * (double)weft__kernel_row_length(kernel) : n;
}

/* Counts one operation for each value that is calculated or reduced. Each argument is read and written
 * once. */
void weft__kernel_cost(const weft_kernel *kernel, double *flops, double *bytes) {
    for (int a = 0; a < kernel->n_args; a++) {
        const weft_kernel_arg *arg = &kernel->args[a];
        double most = (double)arg->elements, read = 0, written = 0;
        for (int i = 0; i < kernel->n_code; i++) {
            const weft_instr *instr = &kernel->code[i];
            if (instr->arg != a || instr->view < 0) continue;
            double level = at_level(kernel, instr->level);
            double n = instr->kind == WEFT_INSTR_GATHER ? level : touched(&kernel->views[instr->view], level);
            *(instr->kind == WEFT_INSTR_STORE ? &written : &read) += n;
        }
        *bytes += ((read < most ? read : most) + (written < most ? written : most)) *
                  (double)weft_dtype_size((weft_dtype)arg->dtype);
    }
    for (int i = 0; i < kernel->n_code; i++) {
        const weft_instr *instr = &kernel->code[i];
        if (instr->kind == WEFT_INSTR_CALC) *flops += at_level(kernel, instr->level);
        if (instr->kind == WEFT_INSTR_REDUCE || instr->kind == WEFT_INSTR_FOLD)
            *flops += at_level(kernel, kernel->code[instr->a].level);
    }
}
