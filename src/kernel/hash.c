/* The hash of a kernel. It covers everything that the compiled form on a device depends on, so neither name
 * nor path. Must not know: what the fields mean. Read next: verify.c. */
#include <string.h>

#include "kernel/kernel.h"

static void hash_add(weft_hash *h, int64_t v) { weft__hash_u64(h, (uint64_t)v); }

/* Hashes the bits, so -0 and 0 differ, and different NaNs differ. */
static void add_double(weft_hash *h, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    weft__hash_u64(h, bits);
}

static void add_instr(weft_hash *h, const weft_instr *in) {
    weft__hash_u64(h, (uint64_t)in->kind | (uint64_t)in->op << 8 | (uint64_t)in->dtype << 16 |
                          (uint64_t)in->level << 24);
    hash_add(h, in->a);
    hash_add(h, in->b);
    hash_add(h, in->c);
    hash_add(h, in->arg);
    hash_add(h, in->view);
    hash_add(h, in->imm_i);
    hash_add(h, in->bound);
    add_double(h, in->imm_f);
}

weft_hash weft__kernel_hash(const weft_kernel *kernel) {
    weft_hash h;
    weft__hash_init(&h);
    hash_add(&h, kernel->n_parallel);
    hash_add(&h, kernel->n_reduce);
    hash_add(&h, kernel->n_fold);
    hash_add(&h, kernel->last_rows);
    for (int d = 0; d < kernel->n_parallel + kernel->n_reduce; d++) hash_add(&h, kernel->extent[d]);
    hash_add(&h, kernel->n_args);
    for (int i = 0; i < kernel->n_args; i++) {
        const weft_kernel_arg *arg = &kernel->args[i];
        weft__hash_u64(&h, (uint64_t)arg->dtype | (uint64_t)arg->read << 8 | (uint64_t)arg->written << 9);
        hash_add(&h, arg->elements);
    }
    hash_add(&h, kernel->n_views);
    for (int i = 0; i < kernel->n_views; i++) weft__view_hash(&h, &kernel->views[i]);
    hash_add(&h, kernel->n_code);
    for (int i = 0; i < kernel->n_code; i++) add_instr(&h, &kernel->code[i]);
    return h;
}
