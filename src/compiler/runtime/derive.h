/* Steps that derive a larger graph from a recorded one: a training step is looked up by its forward graph,
 * and only on a miss are gradients and updates built, fused, planned and compiled. */
#ifndef WEFT_COMPILER_RUNTIME_DERIVE_H
#define WEFT_COMPILER_RUNTIME_DERIVE_H

#include <weft/memory.h>
#include "base/base.h"

/* What a derivation adds to the program: outputs of the forward graph stay outputs. */
typedef struct weft_derived weft_derived;

/* variable <- value when the program runs, after all its readers. */
weft_status weft__derived_assign(weft_derived *derived, weft_tensor *variable, weft_tensor *value);

typedef struct weft_derivation {
    weft_tensor *const *roots; /* forward tensors: become outputs of the program, readable after it */
    size_t n_roots;
    weft_hash key; /* everything that build depends on besides the graph: options, block identity */
    /* Records the rest. Leaves that it uses besides the forward graph's must be persistent: variables, or
     * scalars kept with weft_keep, which are read anew at each run. */
    weft_status (*build)(void *user, weft_context *ctx, weft_derived *derived);
    void *user;
} weft_derivation;

/* Runs the derived program, compiled at the first call with this graph and key. Kept, unevaluated tensors of
 * the graph's open scopes become outputs too. */
weft_status weft__derive_run(weft_context *ctx, const weft_derivation *derivation);
/* Compiles it and runs nothing: fills in the plan, but for what is of the optimizer alone. */
weft_status weft__derive_plan(weft_context *ctx, const weft_derivation *derivation, weft_memory_plan *plan);

/* ---- eval.c ---- */
/* weft_item with a status; NaN where there is none to read. */
weft_status weft__item(weft_tensor *t, double *out);
/* weft_run, `times` times on the same inputs and numbers, in one submission. */
weft_status weft__run_times(weft_program *program, int times);
/* Does it draw random numbers, which must differ from step to step? */
bool weft__program_random(const weft_program *program);

#endif
