/* Matmuls of a program as calls of cuBLASLt, or hipBLASLt: which ones it computes, their launches, and the
 * call itself. Must not know: descriptors, algorithms. Read next: blas_problem.c, blas_plan.c. */
#include <stdio.h>
#include <string.h>

#include "device/gpu/driver/blas/blas_plan.h"
#include "kernel/source.h"

enum { ALIGNED = 16, SCRATCH_LEAST = 256 };

/* ---- which matmuls ---- */

/* Returns the largest power of two, up to 16, that divides an operand's address. */
static uint32_t alignment(const weft__cuda *d, const weft_command *command, int operand) {
    if (!command || operand < 0) return ALIGNED;
    const int64_t at = (int64_t)d->gpu.guard + command->operands[operand].offset;
    uint32_t bytes = ALIGNED;
    while (at % bytes != 0) bytes /= 2;
    return bytes;
}

/* Returns the plan of a matmul, or NULL if templates compute it. Without a command, operands are taken to be
 * aligned. */
static weft__blas_plan *plan_of(weft__cuda *d, const weft_heavy_matmul *mm, const weft_command *command,
                                weft__blas_operands *operands) {
    weft__blas_key key = {.a = 0};
    if (!weft__blas_problem_of(mm, d->gpu.base.tf32, &key.problem, operands)) return NULL;
    key.a = alignment(d, command, operands->a);
    key.b = alignment(d, command, operands->b);
    key.d = alignment(d, command, operands->d);
    key.c = alignment(d, command, operands->c);
    key.bias = operands->narrow ? ALIGNED : alignment(d, command, operands->bias);
    key.aux = alignment(d, command, operands->aux);
    return weft__blas_plan_of(d, &key);
}

/* Returns whether the matmul with its epilogue is faster than the matmul and a separate kernel. The kernel
 * reads and writes at least the result. Without measurements the answer is true. */
static bool pays(const weft__blas_plan *fused, const weft__blas_plan *alone) {
    const int sweeps = 2 + (fused->key.problem.based || weft__blas_has_aux(&fused->key.problem));
    return fused->timing.ms <= 0 || alone->timing.ms <= 0 ||
           fused->timing.ms <= alone->timing.ms + (float)sweeps * fused->timing.sweep;
}

void weft__blas_forms(const weft_heavy_matmul *mm, weft_heavy_matmul *plain, weft_heavy_matmul *with) {
    *plain = *with = *mm;
    plain->epilogue = NULL;
    plain->sums = false;
    if (with->sums && !with->epilogue && weft__matmul_sums_dtype(with) == WEFT_F32)
        /* the row sums are a gradient in f32, and an epilogue makes the result f32 */
        with->out_dtype = WEFT_F32;
}

bool weft__blas_suits(weft__cuda *d, const weft_heavy *heavy) {
    weft__blas_operands operands;
    if (heavy->kind != WEFT_HEAVY_MATMUL || !(heavy->as.matmul.epilogue || heavy->as.matmul.sums))
        return true;
    weft_heavy_matmul plain, with;
    weft__blas_forms(&heavy->as.matmul, &plain, &with);
    if (weft__cuda_enter(d) != 0) return true;
    const weft__blas_plan *alone = plan_of(d, &plain, NULL, &operands);
    const weft__blas_plan *fused = alone ? plan_of(d, &with, NULL, &operands) : NULL;
    weft__cuda_leave(d);
    return !alone || (fused && pays(fused, alone));
}

/* ---- the call ---- */

static CUdeviceptr blas_call_take(void *const **at) {
    CUdeviceptr p;
    memcpy(&p, *(*at)++, sizeof p);
    return p;
}

/* Runs one call. Addresses are in the order of weft__blas_offer's arguments. */
static CUresult blas_call_run(weft__cuda *d, const weft_call *call, void *const *addresses, CUstream stream) {
    const weft__blas_plan *plan = (const weft__blas_plan *)call;
    const weft__blas_problem *p = &plan->key.problem;
    weft__blas_places at = {0};
    at.a = blas_call_take(&addresses);
    at.b = blas_call_take(&addresses);
    at.d = blas_call_take(&addresses);
    if (p->based) at.c = blas_call_take(&addresses);
    if (weft__blas_has_bias(p)) at.bias = blas_call_take(&addresses);
    if (weft__blas_has_aux(p)) at.aux = blas_call_take(&addresses);
    if (plan->algorithm.workspace) at.workspace = blas_call_take(&addresses);
    const unsigned error = weft__blas_multiply(&d->blas, plan, &plan->algorithm, &at, stream);
    if (!error) return 0;
    const weft_blas *blas = d->blas.blas;
    snprintf(d->said, sizeof d->said, "%s refuses a matmul of %lld x %lld x %lld: %s", blas->name,
             (long long)p->d.columns, (long long)p->d.rows, (long long)weft__blas_k(p),
             blas->functions->cublasLtGetStatusName(error));
    return error == blas->no_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

/* ---- launches ---- */

static weft_dtype dtype_of(int32_t type) { return type == CUDA_R_16BF ? WEFT_BF16 : WEFT_F16; }

weft_status weft__blas_narrow(weft_launches *launches, const weft__blas_problem *p,
                              const weft__blas_operands *of) {
    const weft_dtype dtype = dtype_of(p->d.type);
    const int64_t n = p->d.rows;
    weft_kernel_arg args[] = {{.dtype = WEFT_F32, .read = true, .elements = n},
                              {.dtype = (uint8_t)dtype, .written = true, .elements = n}};
    weft_instr code[] = {
        {.kind = WEFT_INSTR_LOAD, .dtype = WEFT_F32, .a = -1, .b = -1, .c = -1, .arg = 0, .view = 0},
        {.kind = WEFT_INSTR_CAST, .dtype = (uint8_t)dtype, .a = 0, .b = -1, .c = -1, .arg = -1, .view = -1},
        {.kind = WEFT_INSTR_STORE, .dtype = (uint8_t)dtype, .a = 1, .b = -1, .c = -1, .arg = 1, .view = 0}};
    weft_view view;
    weft__view_identity(&view, 1, &n);
    const weft_kernel kernel = {.name = "narrow_bias",
                                .path = "",
                                .n_parallel = 1,
                                .extent = {n},
                                .n_args = 2,
                                .n_views = 1,
                                .n_code = 3,
                                .args = args,
                                .views = &view,
                                .code = code};
    int l = launches->count;
    WEFT_TRY(weft__render(launches, &kernel, false));
    for (; l < launches->count; l++) {
        launches->list[l].shares = true;
        for (int i = 0; i < launches->list[l].n_arguments; i++) {
            weft_argument *a = &launches->list[l].arguments[i];
            if (a->kind != WEFT_ARGUMENT_OPERAND) continue;
            if (a->index == 1) a->kind = WEFT_ARGUMENT_SCRATCH, a->i = 0;
            a->index = of->bias;
        }
    }
    return WEFT_OK;
}

/* Returns the bytes of scratch memory that a call gets. Launches with scratch memory never run at the same
 * time (driver/graph.c), so a library whose calls must not do so always gets some. */
static int64_t workspace_of(const weft__cuda *d, const weft__blas_plan *plan) {
    const int64_t bytes = (int64_t)plan->algorithm.workspace;
    return d->blas.blas->alone && bytes < SCRATCH_LEAST ? SCRATCH_LEAST : bytes;
}

weft_status weft__blas_offer(weft__cuda *d, weft_launches *launches, const weft_command *command) {
    weft__blas_operands of;
    weft_argument arguments[7];
    int n = 0;
    if (command->kind != WEFT_COMMAND_HEAVY || command->heavy.kind != WEFT_HEAVY_MATMUL) return WEFT_OK;
    if (launches->tuner && launches->tuner->forced) return WEFT_OK; /* the tuner is timing a template */
    weft__blas_plan *plan = plan_of(d, &command->heavy.as.matmul, command, &of);
    if (!plan) return WEFT_OK;
    plan->call.run = blas_call_run;
    const weft__blas_problem *p = &plan->key.problem;
    const int64_t room = of.narrow ? (p->d.rows * 2 + 255) / 256 * 256 : 0;
    const int64_t workspace = workspace_of(d, plan);
    const int operands[] = {of.a, of.b, of.d, of.c, of.narrow ? -1 : of.bias, of.aux};
    for (int i = 0; i < 6; i++) {
        if (i == 4 && of.narrow) arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_SCRATCH};
        if (operands[i] < 0) continue;
        arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                         .index = operands[i],
                                         .written = i == 2 || i == 5 ||
                                                    (i == 4 && p->epilogue == CUBLASLT_EPILOGUE_BGRADB)};
    }
    if (workspace)
        arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_SCRATCH, .i = room, .written = true};
    if (of.narrow) WEFT_TRY(weft__blas_narrow(launches, p, &of));
    launches->scratch_bytes = room + workspace;
    const weft_launch launch = {.name = d->blas.blas->prefix,
                                .call = &plan->call,
                                .n_arguments = n,
                                .arguments = arguments,
                                .groups = {1, 1, 1},
                                .items = {1, 1, 1}};
    return weft__launch(launches, &launch);
}
