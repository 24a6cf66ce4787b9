/* cuDNN for an open device, and its attention. Each problem has a plan, which is stored in memory and on
 * disk. A call executes the plan instead of launches. All else is left to Weft's own template, and a line in
 * the log says why.
 * Must not know: graphs of operations. Read next: dnn_attention.c, dnn_image.c, gpu/driver/run.c. */
#include "device/cuda/dnn/dnn_heavy.h"

#include <math.h>
#include <stdio.h>

#include "device/cuda/dnn/dnn_attention.h"
#include "device/cuda/dnn/dnn_choice.h"
#include "device/gpu/driver/run.h"

/* Limits of the memory for the gradient of the scores. A backward pass that adds in one order needs it. A
 * larger problem is computed in parts of the batch, one after the other in the same memory. GPT-2 124M needs
 * 1.6 GB for a batch of 64. A card gives up to a 32nd of its memory, and small cards up to a 16th. */
#define MEMORY_MOST  ((int64_t)2 << 30)
#define MEMORY_SMALL ((int64_t)512 << 20)
enum { PART = 32, PART_SMALL = 16 };

int64_t weft__dnn_memory_of(uint64_t bytes) {
    const int64_t memory = (int64_t)bytes, small = weft__smaller(MEMORY_SMALL, memory / PART_SMALL);
    return weft__smaller(MEMORY_MOST, weft__larger(small, memory / PART));
}

int64_t weft__dnn_memory(const weft__cuda *d) {
    return weft__cuda_hook.dnn_memory ? weft__cuda_hook.dnn_memory
                                      : weft__dnn_memory_of(d->gpu.found->memory);
}

/* A problem and its plan. */
typedef struct weft_dnn_work {
    weft_call call;
    weft_hash key;
    weft_heavy_attention whole;
    weft_dnn_attention part;
    weft_dnn_plan plan; /* without one, the template computes it */
    float scale;
} weft_dnn_work;

/* ---- executing ---- */

enum { VALUES_MOST = WEFT_DNN_IDS };
typedef struct pack {
    int64_t ids[VALUES_MOST];
    void *values[VALUES_MOST];
    int count;
} pack;

static void dnn_heavy_put(pack *to, int64_t id, void *value) {
    to->ids[to->count] = id;
    to->values[to->count++] = value;
}

/* Operands of the call, in order, with their strides in the whole problem. */
enum { OPERANDS_MOST = 9 };
typedef struct operand {
    int index; /* in the command */
    int64_t id;
    const int64_t *strides; /* NULL: lse, f32 */
} operand;

static int operands_of(const weft_heavy_attention *at, operand list[OPERANDS_MOST]) {
    const operand all[OPERANDS_MOST] = {
        {WEFT_ATTENTION_Q, WEFT_DNN_Q, at->q},    {WEFT_ATTENTION_K, WEFT_DNN_K, at->k},
        {WEFT_ATTENTION_V, WEFT_DNN_V, at->v},    {WEFT_ATTENTION_OUT, WEFT_DNN_OUT, at->out},
        {WEFT_ATTENTION_LSE, WEFT_DNN_LSE, NULL}, {WEFT_ATTENTION_DOUT, WEFT_DNN_DOUT, at->dout},
        {WEFT_ATTENTION_DQ, WEFT_DNN_DQ, at->dq}, {WEFT_ATTENTION_DK, WEFT_DNN_DK, at->dk},
        {WEFT_ATTENTION_DV, WEFT_DNN_DV, at->dv}};
    const int count = at->backward ? OPERANDS_MOST : 5;
    for (int i = 0; i < count; i++) list[i] = all[i];
    return count;
}

static int64_t dnn_heavy_aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

static char *address(void *const *addresses, int i) {
    return (char *)(uintptr_t) * (const CUdeviceptr *)addresses[i];
}

/* Executes part (b, h) of the problem. */
static unsigned execute(weft_dnn *dnn, const weft_dnn_work *w, void *const *addresses, int64_t b, int64_t h,
                        char message[WEFT_DNN_MESSAGE]) {
    const weft_heavy_attention *whole = &w->whole, *part = &w->part.at;
    const int64_t first = b * part->batch, head = h * part->heads;
    float scale = w->scale, hidden = -INFINITY, one = 1;
    operand operands[OPERANDS_MOST];
    const int n = operands_of(whole, operands);
    pack values = {.count = 0};
    for (int i = 0; i < n; i++) {
        const int64_t *s = operands[i].strides;
        const int64_t bytes =
            s ? 2 * (first * s[0] + head * s[1]) : 4 * (first * whole->heads + head) * whole->t_q;
        dnn_heavy_put(&values, operands[i].id, address(addresses, i) + bytes);
    }
    dnn_heavy_put(&values, WEFT_DNN_SCALE, &scale);
    if (whole->causal) dnn_heavy_put(&values, WEFT_DNN_HIDDEN, &hidden);
    char *scratch = address(addresses, n);
    if (whole->backward) {
        dnn_heavy_put(&values, WEFT_DNN_ONE, &one);
        dnn_heavy_put(&values, WEFT_DNN_DOTS, scratch);
        scratch += dnn_heavy_aligned(w->part.dots);
        if (w->part.fast) dnn_heavy_put(&values, WEFT_DNN_GATHERED, scratch);
        scratch += dnn_heavy_aligned(w->part.gathered);
    }
    return weft__dnn_execute(dnn->card.handle, &w->plan, values.count, values.ids, values.values, scratch,
                             message);
}

static CUresult dnn_heavy_run(weft__cuda *d, const weft_call *call, void *const *addresses, CUstream stream) {
    const weft_dnn_work *w = (const weft_dnn_work *)call;
    char message[WEFT_DNN_MESSAGE];
    unsigned error = 0;
    (void)stream; /* it is the stream of the handle */
    for (int64_t b = 0; b < w->part.batches && !error; b++)
        for (int64_t h = 0; h < w->part.heads && !error; h++)
            error = execute(weft__dnn_of(d), w, addresses, b, h, message);
    if (!error) return 0;
    snprintf(d->said, sizeof d->said, "cuDNN: %.190s", message);
    return CUDA_ERROR_UNKNOWN;
}

/* ---- plans ---- */

weft_hash weft__dnn_key(const weft__cuda *d) {
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, d->gpu.found->detail); /* names card and driver */
    weft__hash_u64(&key, (uint64_t)weft__dnn_version());
    return key;
}

static void dnn_heavy_describe(weft_dnn_graph *graph, const void *what) {
    weft__dnn_attention_graph(graph, what);
}

/* Adds the tensors of an execution of a part. */
static void dnn_heavy_tensors(const weft_dnn_work *w, weft_dnn_problem *to) {
    static const float one = 1, hidden = -INFINITY;
    const weft_heavy_attention *at = &w->part.at;
    operand operands[OPERANDS_MOST];
    const int n = operands_of(at, operands);
    for (int i = 0; i < n; i++) {
        const int64_t *s = operands[i].strides, id = operands[i].id;
        const bool keys = id == WEFT_DNN_K || id == WEFT_DNN_V || id == WEFT_DNN_DK || id == WEFT_DNN_DV;
        const int64_t last = (keys ? at->t_k : at->t_q) - 1;
        const int64_t count = s ? (at->batch - 1) * s[0] + (at->heads - 1) * s[1] + last * s[2] + at->d
                                : at->batch * at->heads * at->t_q;
        weft__dnn_problem_add(to, id, (size_t)count * (s ? 2 : 4), s ? 2 : 4);
    }
    weft__dnn_problem_number(to, WEFT_DNN_SCALE, &w->scale);
    if (at->causal) weft__dnn_problem_number(to, WEFT_DNN_HIDDEN, &hidden);
    if (!at->backward) return;
    weft__dnn_problem_number(to, WEFT_DNN_ONE, &one);
    weft__dnn_problem_add(to, WEFT_DNN_DOTS, (size_t)w->part.dots, 4);
    if (w->part.fast) weft__dnn_problem_add(to, WEFT_DNN_GATHERED, (size_t)w->part.gathered, 4);
}

static bool dnn_heavy_plan(weft__cuda *d, weft_dnn_work *w, char message[WEFT_DNN_MESSAGE]) {
    w->scale = (float)w->whole.scale;
    w->call.run = dnn_heavy_run;
    if (!weft__dnn_attention_part(&w->whole, d->found->capability, weft__dnn_version(), d->fast,
                                  weft__dnn_memory(d), &w->part, message))
        return false;
    const weft_heavy_attention *at = &w->part.at;
    weft_dnn_problem problem = {
        .key = weft__dnn_key(d),
        /* cuDNN needs more than the gradient of the scores */
        .request = {.workspace = 2 * weft__dnn_memory(d),
                    .notes = w->part.fast ? 0 : 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
        .describe = dnn_heavy_describe,
        .what = &w->part,
        .work = (double)at->batch * (double)at->heads * (double)at->t_q * (double)at->t_k * (double)at->d *
                (at->backward ? 5 : 2),
        .f16 = at->dtype == WEFT_F16};
    snprintf(problem.name, sizeof problem.name, "attention%s %s %lldx%lldx%lldx%lld%s",
             at->backward ? " gradient" : "", weft_dtype_name((weft_dtype)at->dtype), (long long)at->batch,
             (long long)at->heads, (long long)at->t_q, (long long)at->d, at->causal ? " causal" : "");
    weft__dnn_attention_hash(&w->part, &problem.key);
    dnn_heavy_tensors(w, &problem);
    return weft__dnn_choose(d, &problem, &w->plan, message);
}

/* ---- problems ---- */

static void open_library(weft__cuda *d) {
    weft_dnn *dnn = weft__dnn_of(d);
    char message[WEFT_DNN_MESSAGE];
    const char *why = weft__dnn_open();
    unsigned status = 0;
    dnn->opened = true;
    if (!why) status = weft__dnn.cudnnCreate(&dnn->card.handle);
    if (status) {
        dnn->card.handle = NULL;
        weft__dnn_message(status, "a handle", message);
        why = message;
    }
    if (!why && (status = weft__dnn.cudnnSetStream(dnn->card.handle, d->stream)) != 0) {
        weft__dnn.cudnnDestroy(dnn->card.handle);
        dnn->card.handle = NULL;
        weft__dnn_message(status, "its stream", message);
        why = message;
    }
    if (why)
        weft__log(d->gpu.base.ctx, WEFT_LOG_INFO,
                  "%s: attention and convolutions run on Weft's own kernels: %s", d->gpu.base.name, why);
}

static weft_hash work_key(const weft__cuda *d, const weft_heavy_attention *at) {
    const weft_dnn_attention whole = {.at = *at, .fast = d->fast};
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_bytes(&key, &at->scale, sizeof at->scale);
    weft__hash_bytes(&key, &at->dropout, sizeof at->dropout);
    weft__hash_u64(&key, at->cached);
    weft__hash_u64(&key, at->masked);
    weft__dnn_attention_hash(&whole, &key);
    return key;
}

/* Returns the problem of an operation, or NULL when memory is short. */
static weft_dnn_work *work_of(weft__cuda *d, const weft_heavy *heavy) {
    const weft_heavy_attention *at = &heavy->as.attention;
    weft_context *ctx = d->gpu.base.ctx;
    weft_dnn *dnn = weft__dnn_of(d);
    const weft_hash key = work_key(d, at);
    char message[WEFT_DNN_MESSAGE];
    for (size_t i = 0; i < dnn->n_works; i++)
        if (weft__hash_equal(dnn->works[i]->key, key)) return dnn->works[i];
    if (!weft__grow(ctx, &dnn->works, &dnn->capacity, dnn->n_works, sizeof(weft_dnn_work *))) return NULL;
    weft_dnn_work *w = weft__zalloc(ctx, sizeof *w);
    if (!w) return NULL;
    w->key = key;
    w->whole = *at;
    dnn->works[dnn->n_works++] = w;
    if (!dnn_heavy_plan(d, w, message))
        weft__log(ctx, WEFT_LOG_INFO,
                  "%s: attention%s of %lld x %lld heads, %lld queries, %lld channels%s%s runs on Weft's own "
                  "kernel, not cuDNN's: %s",
                  d->gpu.base.name, at->backward ? "'s gradient" : "", (long long)at->batch,
                  (long long)at->heads, (long long)at->t_q, (long long)at->d,
                  heavy->path && heavy->path[0] ? ", " : "", heavy->path ? heavy->path : "", message);
    return w;
}

/* Returns whether every operand begins at a multiple of 16 bytes. */
static bool begins_aligned(const weft_command *command) {
    for (int i = 0; i < command->n_operands; i++)
        if (command->operands[i].offset % 16 != 0) return false;
    return true;
}

static weft_status offer_attention(weft__cuda *d, weft_launches *launches, const weft_heavy *heavy) {
    const weft_heavy_attention *at = &heavy->as.attention;
    weft_argument arguments[OPERANDS_MOST + 1];
    operand operands[OPERANDS_MOST];
    weft_dnn_work *w = work_of(d, heavy);
    if (!w) return weft__fail_oom(d->gpu.base.ctx, sizeof *w, "cuDNN's part of a program");
    if (!w->plan.descriptor) return WEFT_OK;
    const int n = operands_of(at, operands);
    for (int i = 0; i < n; i++)
        arguments[i] = (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                       .index = operands[i].index,
                                       .dtype = operands[i].strides ? at->dtype : WEFT_F32,
                                       .written = operands[i].index >= (at->backward ? 7 : 4)};
    arguments[n] = (weft_argument){.kind = WEFT_ARGUMENT_SCRATCH, .dtype = WEFT_F32, .written = true};
    launches->scratch_bytes = dnn_heavy_aligned(w->part.dots) + dnn_heavy_aligned(w->part.gathered) +
                              dnn_heavy_aligned(w->plan.workspace) + 256;
    return weft__launch(launches,
                        &(weft_launch){.name = at->backward ? "cudnn_attention_gradient" : "cudnn_attention",
                                       .call = &w->call,
                                       .arguments = arguments,
                                       .n_arguments = n + 1,
                                       .groups = {1, 1, 1},
                                       .items = {1, 1, 1}});
}

weft_status weft__dnn_offer(weft__cuda *d, weft_launches *launches, const weft_command *command) {
    const weft_heavy *heavy = &command->heavy;
    if (command->kind != WEFT_COMMAND_HEAVY || !begins_aligned(command)) return WEFT_OK;
    const uint8_t dtype = heavy->as.attention.dtype;
    const bool attends = heavy->kind == WEFT_HEAVY_ATTENTION && (dtype == WEFT_F16 || dtype == WEFT_BF16);
    if (!attends && heavy->kind != WEFT_HEAVY_CONV) return WEFT_OK;
    if (!weft__dnn_of(d)->opened) open_library(d);
    if (!weft__dnn_of(d)->card.handle) return WEFT_OK;
    return attends ? offer_attention(d, launches, heavy) : weft__dnn_offer_convolution(d, launches, heavy);
}

void weft__dnn_close(weft__cuda *d) {
    weft_dnn *dnn = weft__dnn_of(d);
    weft__dnn_images_free(d);
    for (size_t i = 0; i < dnn->n_works; i++) {
        weft__dnn_plan_free(&dnn->works[i]->plan);
        weft__free(d->gpu.base.ctx, dnn->works[i]);
    }
    weft__free(d->gpu.base.ctx, dnn->works);
    if (dnn->card.handle) weft__dnn.cudnnDestroy(dnn->card.handle);
    *dnn = (weft_dnn){.opened = false};
}
