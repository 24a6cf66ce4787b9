/* Map kernels as epilogues. An epilogue reads each element of a result once, where the element is computed.
 * Must not know: what computes the result. Read next: render_epilogue.c. */
#include <string.h>

#include "kernel/kernel.h"

bool weft__kernel_is_epilogue(const weft_kernel *kernel, int arg) {
    bool reads = false;
    if (kernel->n_reduce || kernel->n_fold || arg < 0 || arg >= kernel->n_args) return false;
    if (kernel->args[arg].elements != weft__kernel_rows(kernel) || weft__kernel_rows(kernel) == 0)
        return false;
    for (int i = 0; i < kernel->n_code; i++) {
        const weft_instr *in = &kernel->code[i];
        if (weft__instr_can_fault(in)) return false;
        if (in->arg != arg) continue;
        if (in->kind != WEFT_INSTR_LOAD && in->kind != WEFT_INSTR_STORE) return false;
        if (!weft__view_is_identity(&kernel->views[in->view])) return false;
        reads = reads || in->kind == WEFT_INSTR_LOAD;
    }
    return reads;
}

bool weft__kernel_has_rows(const weft_kernel *kernel, int64_t n) {
    const int last = kernel->n_parallel - 1;
    if (last < 0 || n < 2) return false;
    if (kernel->extent[last] == n) return true;
    if (kernel->extent[last] % n != 0 || last + 1 == WEFT_VIEW_RANK) return false;
    for (int v = 0; v < kernel->n_views; v++) {
        const weft_map *m = &kernel->views[v].map[0];
        if (m->lo[last] > 0 || m->hi[last] < m->extent[last]) return false;
    }
    return true;
}

bool weft__kernel_in_rows(weft_arena *arena, const weft_kernel *kernel, int64_t n, weft_kernel *out) {
    const int last = kernel->n_parallel - 1;
    *out = *kernel;
    if (kernel->extent[last] == n) return true;
    const size_t bytes = (size_t)kernel->n_views * sizeof *kernel->views;
    out->views = weft__arena_alloc(arena, bytes + 1);
    if (!out->views) return false;
    if (bytes) memcpy(out->views, kernel->views, bytes);
    out->extent[last] = kernel->extent[last] / n;
    out->extent[last + 1] = n;
    out->n_parallel++;
    for (int v = 0; v < out->n_views; v++) {
        weft_map *m = &out->views[v].map[0];
        m->rank++;
        m->extent[last] = m->hi[last] = out->extent[last];
        m->extent[last + 1] = m->hi[last + 1] = n;
        m->lo[last] = m->lo[last + 1] = 0;
        m->stride[last + 1] = m->stride[last];
        m->stride[last] *= n;
    }
    return true;
}
