/* Derives a larger graph from a recorded one. A training step is found in the cache by its forward graph.
 * Only if it is not there are gradients and updates recorded, fused, planned and compiled. Must not know:
 * optimizers, gradient rules. Read next: derive.c, optim/step.c. */
#ifndef WEFT_COMPILER_RUNTIME_DERIVE_H
#define WEFT_COMPILER_RUNTIME_DERIVE_H

#include <weft/memory.h>
#include "base/base.h"

/* The assignments that a derivation adds to the program. The outputs of the forward graph stay outputs. */
typedef struct weft_derived weft_derived;

/* Records variable <- value. The program assigns after all readers of the old value. */
weft_status weft__derived_assign(weft_derived *derived, weft_tensor *variable, weft_tensor *value);

/* Lists the given roots, each once, and the kept tensors of open scopes that assignments would make stale:
 * the outputs of a program that assigns. *own is how many of them were given. Free *out with weft__free. */
weft_status weft__gather_roots(weft_context *ctx, weft_tensor *const *given, size_t n_given,
                               weft_tensor ***out, size_t *count, size_t *own);

/* Computes the scalars of later runs, so that one upload serves many. set(user, n) gives them the values that
 * they will have n runs after the next one. Its keys of random numbers follow the step. */
typedef struct weft__later_scalars {
    weft_status (*set)(void *user, int runs);
    void *user;
} weft__later_scalars;

typedef struct weft_derivation {
    weft_tensor *const *roots; /* forward tensors: outputs of the program, readable after a run */
    size_t n_roots;
    weft_hash key; /* hash of all that `build` depends on besides the graph, such as options */
    /* Records the rest of the graph. Leaves that it adds must be persistent: variables, or scalars kept with
     * weft_keep, which are read again at each run. */
    weft_status (*build)(void *user, weft_context *ctx, weft_derived *derived);
    /* Lists the evaluated nodes that `build` needs the recipes of: they are computed again. Free *list with
     * weft__free. NULL: evaluated nodes are data. */
    weft_status (*evaluated)(void *user, weft_context *ctx, weft_tensor ***list, size_t *count);
    void *user;
    const weft__later_scalars *later; /* NULL: only those of the next run are known */
} weft_derivation;

/* Runs the derived program, which the first call with this graph and key compiles. Kept tensors of open
 * scopes that have no value yet become outputs too. */
weft_status weft__derive_run(weft_context *ctx, const weft_derivation *derivation);
/* Compiles the derived program without running it. Fills in the plan, except for the memory that only the
 * optimizer knows. */
weft_status weft__derive_plan(weft_context *ctx, const weft_derivation *derivation, weft_memory_plan *plan);

/* ---- eval.c ---- */
/* weft_item with a status. *out is NaN on an error. */
weft_status weft__item(weft_tensor *t, double *out);
/* The same for n evaluated tensors of one context. Waits only once. */
weft_status weft__items(weft_tensor *const *list, size_t n, double *values);
/* Like weft_program_run, but `times` runs on the same inputs, in one submission. Their scalars are the same
 * or, if `later` is not NULL, those that it sets; then times is at most weft__runs_at_once(program). */
weft_status weft__run_times(weft_program *program, const weft__later_scalars *later, int times);
/* Returns how many runs with different scalars can be one submission. */
int weft__runs_at_once(const weft_program *program);
/* Does the program draw random numbers, which must differ from step to step? */
bool weft__program_random(const weft_program *program);

/* A scalar of a held program: a number that its owner sets, or a key of random numbers. */
typedef struct weft__program_scalar {
    const weft_tensor *tensor;
    int64_t offset; /* its first byte among the scalars */
    bool random;
    uint32_t key[8]; /* random: the key of the next run; words 2 and 3 are the step, low and high */
} weft__program_scalar;
/* Finds scalar i of a held program. Returns false if it has fewer. */
bool weft__program_scalar_get(const weft_program *program, size_t i, weft__program_scalar *scalar);

#endif
