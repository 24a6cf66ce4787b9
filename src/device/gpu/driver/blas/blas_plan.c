/* How cuBLASLt, or hipBLASLt, computes each matmul: descriptors made once, an algorithm chosen once, and the
 * call. The library's heuristics propose some algorithms. Weft times them and stores the choice on disk,
 * because algorithms add in different orders, and a machine must always give equal bits. For the same reason,
 * Weft takes the first proposal if nothing can be stored. Must not know: kernels, commands. Read next:
 * blas_problem.c, gpu/backend/cache.h. */
#include <stdio.h>
#include <string.h>

#include "device/gpu/driver/blas/blas_plan.h"
#include "device/gpu/backend/cache.h"

#define SECONDS_MOST 3.0 /* of timing for an opened device; later matmuls get the first proposal */
enum { PROPOSED = 16, ALIGNMENT = 16, WORKSPACE_HOPPER = 32 << 20, WORKSPACE = 4 << 20 };

/* The choice as stored on disk. */
typedef struct kept {
    weft__blas_algorithm algorithm;
    weft__blas_timing timing;
} kept;

/* ---- descriptors ---- */

static unsigned set(const weft__blas_functions *f, cublasLtMatmulDesc_t desc, unsigned attribute,
                    const void *value, size_t bytes) {
    return f->cublasLtMatmulDescSetAttribute(desc, attribute, value, bytes);
}

static unsigned make_desc(const weft__blas_functions *f, weft__blas_plan *plan) {
    const weft__blas_problem *p = &plan->key.problem;
    cublasLtMatmulDesc_t *desc = &plan->desc;
    unsigned error = f->cublasLtMatmulDescCreate(desc, (unsigned)p->compute, (unsigned)p->scale);
    if (!error) error = set(f, *desc, CUBLASLT_MATMUL_DESC_TRANSA, &p->a.transposed, sizeof p->a.transposed);
    if (!error) error = set(f, *desc, CUBLASLT_MATMUL_DESC_TRANSB, &p->b.transposed, sizeof p->b.transposed);
    if (!error) error = set(f, *desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue);
    if (!error && weft__blas_has_bias(p))
        error = set(f, *desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &p->d.type, sizeof p->d.type);
    if (!error && weft__blas_has_aux(p))
        error = set(f, *desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->d.ld, sizeof p->d.ld);
    if (!error && weft__blas_has_aux(p) && p->batch > 1)
        error = set(f, *desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &p->d.step, sizeof p->d.step);
    return error;
}

static unsigned make_layout(const weft__blas_functions *f, const weft__blas_problem *p,
                            const weft__blas_matrix *m, cublasLtMatrixLayout_t *layout) {
    const int32_t batch = (int32_t)p->batch;
    unsigned error = f->cublasLtMatrixLayoutCreate(layout, (unsigned)m->type, (uint64_t)m->rows,
                                                   (uint64_t)m->columns, m->ld);
    if (!error && batch > 1)
        error = f->cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                    sizeof batch);
    if (!error && batch > 1)
        error = f->cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                    &m->step, sizeof m->step);
    return error;
}

unsigned weft__blas_describe(const weft__blas_functions *f, weft__blas_plan *plan) {
    const weft__blas_problem *p = &plan->key.problem;
    unsigned error = make_desc(f, plan);
    if (!error) error = make_layout(f, p, &p->a, &plan->a);
    if (!error) error = make_layout(f, p, &p->b, &plan->b);
    if (!error) error = make_layout(f, p, &p->d, &plan->d);
    return error;
}

void weft__blas_undescribe(const weft__blas_functions *f, weft__blas_plan *plan) {
    if (plan->a) f->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b) f->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->d) f->cublasLtMatrixLayoutDestroy(plan->d);
    if (plan->desc) f->cublasLtMatmulDescDestroy(plan->desc);
}

/* Sets the pointers of bias and aux, which are part of the descriptor. The heuristics look at their
 * alignment. */
static unsigned set_pointers(const weft__blas_functions *f, const weft__blas_plan *plan, CUdeviceptr bias,
                             CUdeviceptr aux) {
    const weft__blas_problem *p = &plan->key.problem;
    unsigned error = 0;
    if (weft__blas_has_bias(p))
        error = set(f, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (!error && weft__blas_has_aux(p))
        error = set(f, plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
    return error;
}

/* ---- the call ---- */

static const void *pointer(CUdeviceptr p) { return (const void *)(uintptr_t)p; }

unsigned weft__blas_multiply(const weft__blas_state *state, const weft__blas_plan *plan,
                             const weft__blas_algorithm *algorithm, const weft__blas_places *at,
                             CUstream stream) {
    const weft__blas_problem *p = &plan->key.problem;
    const double alpha = p->alpha, beta = p->based;
    const float alpha_f32 = (float)alpha, beta_f32 = (float)beta;
    const bool wide = p->scale == CUDA_R_64F;
    const weft__blas_functions *f = state->blas->functions;
    const unsigned error = set_pointers(f, plan, at->bias, at->aux);
    if (error) return error;
    return f->cublasLtMatmul(state->handle, plan->desc, wide ? (const void *)&alpha : &alpha_f32,
                             pointer(at->a), plan->a, pointer(at->b), plan->b,
                             wide ? (const void *)&beta : &beta_f32, pointer(p->based ? at->c : at->d),
                             plan->d, (void *)(uintptr_t)at->d, plan->d, &algorithm->algo,
                             (void *)(uintptr_t)at->workspace, (size_t)algorithm->workspace, stream);
}

/* ---- proposals ---- */

static unsigned prefer(const weft__blas_functions *f, const weft__blas_plan *plan, uint64_t workspace,
                       cublasLtMatmulPreference_t preference) {
    static const unsigned sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t alignments[] = {plan->key.a, plan->key.b, plan->key.c, plan->key.d};
    const uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const int32_t out = plan->key.problem.d.type;
    unsigned error = f->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (int i = 0; i < 4 && !error; i++)
        error = f->cublasLtMatmulPreferenceSetAttribute(preference, sides[i], &alignments[i],
                                                        sizeof alignments[i]);
    if (!error && (out == CUDA_R_16F || out == CUDA_R_16BF)) /* partial sums are not rounded to 16 bits */
        error = f->cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_f32, sizeof in_f32);
    return error;
}

/* Returns the number of proposals. The first is the best one in the library's judgement. */
static int propose(const weft__blas_state *state, const weft__blas_plan *plan,
                   weft__blas_algorithm algorithms[PROPOSED]) {
    cublasLtMatmulHeuristicResult_t results[PROPOSED];
    cublasLtMatmulPreference_t preference = NULL;
    const weft__blas_functions *f = state->blas->functions;
    int count = 0, n = 0;
    unsigned error = set_pointers(f, plan, plan->key.bias, plan->key.aux); /* not read here */
    if (!error) error = f->cublasLtMatmulPreferenceCreate(&preference);
    if (!error) error = prefer(f, plan, state->workspace_most, preference);
    if (!error)
        error = f->cublasLtMatmulAlgoGetHeuristic(state->handle, plan->desc, plan->a, plan->b, plan->d,
                                                  plan->d, preference, PROPOSED, results, &count);
    if (preference) f->cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < count && !error; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= state->workspace_most)
            algorithms[n++] = (weft__blas_algorithm){results[i].algo, results[i].workspaceSize};
    return n;
}

/* ---- choosing ---- */

static weft_hash key_on_disk(const weft__cuda *d, const weft__blas_plan *plan) {
    char version[WEFT_BLAS_VERSION];
    weft_hash key;
    weft__blas_version(d->blas.blas, version);
    weft__hash_init(&key);
    weft__hash_str(&key, version);
    if (d->blas.blas->revision[0]) weft__hash_str(&key, d->blas.blas->revision);
    weft__hash_str(&key, d->gpu.found->detail); /* names the card and its driver */
    weft__hash_bytes(&key, &plan->key, sizeof plan->key);
    return key;
}

/* Returns whether the operands have the alignment that the algorithm needs. cublasLtMatmulAlgoCheck does not
 * check this. */
static bool blas_plan_aligned(const weft__blas_functions *f, const weft__blas_key *key,
                              const cublasLtMatmulAlgo_t *algo) {
    static const unsigned sides[] = {
        CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES};
    const uint32_t alignments[] = {key->a, key->b, key->c, key->d};
    for (int i = 0; i < 4; i++) {
        uint32_t wanted = 0;
        size_t written = 0;
        if (f->cublasLtMatmulAlgoCapGetAttribute(algo, sides[i], &wanted, sizeof wanted, &written) !=
                CUBLAS_STATUS_SUCCESS ||
            wanted > alignments[i])
            return false;
    }
    return true;
}

/* Returns whether the library proposes the algorithm, with the same workspace. */
static bool is_proposed(const weft__blas_state *state, const weft__blas_plan *plan,
                        const weft__blas_algorithm *algorithm) {
    weft__blas_algorithm algorithms[PROPOSED];
    const int n = propose(state, plan, algorithms);
    for (int i = 0; i < n; i++)
        if (memcmp(&algorithms[i], algorithm, sizeof *algorithm) == 0) return true;
    return false;
}

/* Returns whether the library accepts an algorithm from a file. To Weft it is 64 opaque bytes, and a run
 * folder may come from anybody. A library that cannot check an algorithm is asked for its proposals again. */
static bool may_run(const weft__blas_state *state, const weft__blas_plan *plan,
                    const weft__blas_algorithm *algorithm) {
    cublasLtMatmulHeuristicResult_t result = {.workspaceSize = SIZE_MAX};
    const weft__blas_functions *f = state->blas->functions;
    if (!f->cublasLtMatmulAlgoCheck) return is_proposed(state, plan, algorithm);
    if (algorithm->workspace > state->workspace_most ||
        set_pointers(f, plan, plan->key.bias, plan->key.aux) != 0)
        return false;
    return f->cublasLtMatmulAlgoCheck(state->handle, plan->desc, plan->a, plan->b, plan->d, plan->d,
                                      &algorithm->algo, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= algorithm->workspace && blas_plan_aligned(f, &plan->key, &algorithm->algo);
}

static bool blas_plan_load(weft__cuda *d, const weft__blas_plan *plan, kept *found) {
    if (!weft__tuner_kept(&d->gpu.tuner, key_on_disk(d, plan), found, sizeof *found)) return false;
    if (found->timing.proposed <= 0 || may_run(&d->blas, plan, &found->algorithm)) return true;
    weft__log(d->gpu.base.ctx, WEFT_LOG_INFO,
              "%s: %s does not accept an algorithm that was kept: a new one is chosen", d->gpu.base.name,
              d->blas.blas->name);
    return false;
}

static void choose(weft__cuda *d, const weft__blas_plan *plan, kept *found) {
    weft__blas_algorithm algorithms[PROPOSED];
    const weft__blas_problem *p = &plan->key.problem;
    const double work = (double)p->d.rows * (double)p->d.columns * (double)weft__blas_k(p) * (double)p->batch;
    memset(found, 0, sizeof *found);
    found->timing.gain = 1;
    found->timing.proposed = propose(&d->blas, plan, algorithms);
    if (found->timing.proposed > 0 && weft__tuner_asks(&d->gpu.tuner, work) &&
        d->blas.seconds < SECONDS_MOST && weft__gpu_cache_wanted()) {
        const double from = weft__tuner_clock();
        found->timing = weft__blas_fastest(d, plan, algorithms, found->timing.proposed);
        d->blas.seconds += weft__tuner_clock() - from;
    }
    if (found->timing.proposed) found->algorithm = algorithms[found->timing.chosen];
}

static const char *name_of(const weft__blas_problem *p) {
    return p->a.type == CUDA_R_16BF                     ? "bf16"
           : p->a.type == CUDA_R_16F                    ? "f16"
           : p->a.type == CUDA_R_64F                    ? "f64"
           : p->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? "tf32"
                                                        : "f32";
}

/* Records a choice. The text shows the matrices as Weft stores them, by rows. */
static void remember(weft__cuda *d, const weft__blas_plan *plan, const kept *found) {
    const weft__blas_problem *p = &plan->key.problem;
    weft_tile_choice choice = {.gain = found->timing.gain};
    snprintf(choice.what, sizeof choice.what, "matmul %s %lldx %lldx%lldx%lld %c%c%s", name_of(p),
             (long long)p->batch, (long long)p->d.columns, (long long)p->d.rows, (long long)weft__blas_k(p),
             p->b.transposed ? 't' : 'n', p->a.transposed ? 't' : 'n',
             p->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? p->based ? " +c" : "" : " epilogue");
    snprintf(choice.chosen, sizeof choice.chosen, "%s %d of %d", d->blas.blas->name, found->timing.chosen + 1,
             found->timing.proposed);
    _Static_assert(sizeof *found <= WEFT_CHOICE_BYTES, "a choice");
    weft__tuner_note(&d->gpu.tuner, &choice, key_on_disk(d, plan), found, sizeof *found);
}

static weft__blas_plan *blas_plan_add(weft__cuda *d, const weft__blas_key *key) {
    weft__blas_plan *plan = weft__zalloc(d->gpu.base.ctx, sizeof *plan);
    kept found = {.timing = {.gain = 1}};
    if (!plan) return NULL;
    memcpy(&plan->key, key, sizeof plan->key);
    plan->next = d->blas.plans;
    d->blas.plans = plan;
    if (weft__blas_describe(d->blas.blas->functions, plan) != 0) return plan;
    if (!blas_plan_load(d, plan, &found)) {
        choose(d, plan, &found);
        weft__gpu_cache_store(d->gpu.base.ctx, key_on_disk(d, plan), &found, sizeof found);
    }
    plan->algorithm = found.algorithm;
    plan->timing = found.timing;
    plan->usable = found.timing.proposed > 0;
    if (plan->usable) remember(d, plan, &found);
    return plan;
}

/* ---- opening ---- */

static bool open_state(weft__cuda *d) {
    weft__blas_state *state = &d->blas;
    const weft_blas *blas = d->found->api->blas;
    char why[WEFT_BLAS_WHY];
    if (state->opened) return state->handle;
    state->opened = true;
    state->blas = blas;
    state->workspace_most = blas->workspace              ? blas->workspace
                            : d->found->capability >= 90 ? WORKSPACE_HOPPER
                                                         : WORKSPACE;
    if ((blas->knows && !blas->knows(d->found->arch)) || weft__blas_open(blas)) return false;
    state->handle = weft__blas_handle(blas, d->found->arch, why);
    if (state->handle) return true;
    weft__log(d->gpu.base.ctx, WEFT_LOG_WARNING, "%s: matmuls run on Weft's own kernels: %s",
              d->gpu.base.name, why);
    return false;
}

/* Returns whether the library may be asked for the problem. */
static bool is_granted(const weft_blas *blas, const weft__blas_key *key) {
    const uint32_t least = blas->alignment;
    return key->a >= least && key->b >= least && key->c >= least && key->d >= least && key->bias >= least &&
           key->aux >= least && (!blas->grants || blas->grants(&key->problem));
}

weft__blas_plan *weft__blas_plan_of(weft__cuda *d, const weft__blas_key *key) {
    if (!open_state(d) || !is_granted(d->blas.blas, key)) return NULL;
    weft__blas_plan *plan = d->blas.plans;
    while (plan && memcmp(&plan->key, key, sizeof *key) != 0) plan = plan->next;
    if (!plan) plan = blas_plan_add(d, key);
    return plan && plan->usable ? plan : NULL;
}

void weft__blas_close(weft__cuda *d) {
    while (d->blas.plans) {
        weft__blas_plan *plan = d->blas.plans;
        d->blas.plans = plan->next;
        weft__blas_undescribe(d->blas.blas->functions, plan);
        weft__free(d->gpu.base.ctx, plan);
    }
    if (d->blas.handle) d->blas.blas->functions->cublasLtDestroy(d->blas.handle);
    d->blas.handle = NULL;
}
