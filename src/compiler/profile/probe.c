/* Times samples of work on a device: handmade programs of one kind of command. Must not know: what the times
 * are for. Read next: rates.c. */
#include <string.h>

#include "compiler/profile/price.h"
#include "kernel/rows.h"

double (*weft__price_clock)(void) = weft__profile_now;

weft_status weft__probe_open(weft_context *ctx, size_t bytes, weft__probe *probe) {
    *probe = (weft__probe){.ctx = ctx, .runs = 5, .enough_ns = 1e7};
    WEFT_TRY(ctx->device->ops->buffer_new(ctx->device, bytes, &probe->buffer));
    return probe->buffer->zero ? WEFT_OK : ctx->device->ops->zero(ctx->device, probe->buffer, 0, bytes);
}

/* Signs and mantissas are random, and the exponent is that of 0.5. `halves` has the bits of 0.5, `free` masks
 * the random bits. */
weft_status weft__probe_fill(weft__probe *p, weft_dtype dtype) {
    static const uint32_t halves[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0x3f000000, [WEFT_F64] = 0x3fe00000, [WEFT_F16] = 0x38003800, [WEFT_BF16] = 0x3f003f00};
    static const uint32_t free[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0x807fffff, [WEFT_F64] = 0x800fffff, [WEFT_F16] = 0x83ff83ff, [WEFT_BF16] = 0x807f807f};
    const size_t count = p->buffer->bytes / sizeof(uint32_t);
    uint32_t *words = weft__array(p->ctx, count + 1, sizeof *words);
    if (!words) return weft__fail_oom(p->ctx, p->buffer->bytes, "a sample of work");
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const bool low = dtype == WEFT_F64 && i % 2 == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        words[i] = low ? (uint32_t)(state >> 32) : halves[dtype] | ((uint32_t)(state >> 32) & free[dtype]);
    }
    const weft_status status =
        p->ctx->device->ops->upload(p->ctx->device, p->buffer, 0, words, count * sizeof *words);
    weft__free(p->ctx, words);
    return status;
}

void weft__probe_close(weft__probe *probe) {
    if (probe->buffer) probe->ctx->device->ops->buffer_free(probe->ctx->device, probe->buffer);
    probe->buffer = NULL;
}

static weft_status probe_run(const weft__probe *p, weft_executable *executable, int submits) {
    weft_device *device = p->ctx->device;
    for (int i = 0; i < submits; i++)
        WEFT_TRY(device->ops->run(device, executable, (weft_buffer *const *)&p->buffer, 1));
    return device->ops->synchronize(device);
}

static weft_status time_copies(weft__probe *p, const weft_command *command, int copies, int submits,
                               double *ns) {
    weft_device *device = p->ctx->device;
    weft_executable *executable = NULL;
    weft_command *list = weft__array(p->ctx, (size_t)copies, sizeof *list);
    if (!list) return weft__fail_oom(p->ctx, (size_t)copies * sizeof *list, "a sample of work");
    for (int i = 0; i < copies; i++) list[i] = *command;
    const weft_commands commands = {.count = copies, .n_slots = 1, .list = list};
    weft_status status = device->ops->build(device, &commands, &executable);
    if (status == WEFT_OK)
        status = probe_run(p, executable, submits); /* untimed: touches the memory, fills
                                                     * caches */
    const double from = weft__price_clock();
    double now = from;
    for (int i = 0; i < p->runs && status == WEFT_OK && now - from <= p->enough_ns; i++) {
        const double began = now;
        status = probe_run(p, executable, submits);
        now = weft__price_clock();
        if (i == 0 || now - began < *ns) *ns = now - began;
    }
    if (executable) device->ops->executable_free(device, executable);
    weft__free(p->ctx, list);
    return status;
}

weft_status weft__probe_matmul(weft__probe *p, weft_dtype dtype, int64_t n, int copies, double *ns) {
    const int64_t bytes = n * n * (int64_t)weft_dtype_size(dtype);
    weft_operand operands[] = {{0, 0}, {0, bytes}, {0, 2 * bytes}};
    weft_command command = {.kind = WEFT_COMMAND_HEAVY, .after = true, .n_operands = 3, .operands = operands};
    command.heavy = (weft_heavy){.kind = WEFT_HEAVY_MATMUL, .path = ""};
    command.heavy.as.matmul = (weft_heavy_matmul){.dtype = (uint8_t)dtype,
                                                  .out_dtype = (uint8_t)dtype,
                                                  .m = n,
                                                  .n = n,
                                                  .k = n,
                                                  .a_m = n,
                                                  .a_k = 1,
                                                  .b_k = n,
                                                  .b_n = 1,
                                                  .c_m = n};
    return time_copies(p, &command, copies, 1, ns);
}

/* Times a map kernel in place. In place it moves nothing else: a store to other memory first reads what it
 * overwrites. Zeros stay zeros. */
static weft_status time_kernel(weft__probe *p, const uint8_t *ops, int n_ops, int64_t n, int copies,
                               int submits, double *ns) {
    enum { MOST = 8 };
    weft_kernel_arg arg = {.dtype = WEFT_F32, .read = true, .written = true, .elements = n};
    weft_instr code[MOST + 2] = {{.kind = WEFT_INSTR_LOAD, .dtype = WEFT_F32, .a = -1, .b = -1, .c = -1}};
    for (int i = 0; i < n_ops; i++)
        code[i + 1] = (weft_instr){.kind = WEFT_INSTR_CALC,
                                   .op = ops[i],
                                   .dtype = WEFT_F32,
                                   .a = i,
                                   .b = weft__row(ops[i])->arity > 1 ? i : -1,
                                   .c = -1,
                                   .arg = -1,
                                   .view = -1};
    code[n_ops + 1] = (weft_instr){.kind = WEFT_INSTR_STORE, .dtype = WEFT_F32, .a = n_ops, .b = -1, .c = -1};
    weft_view view;
    weft__view_identity(&view, 1, &n);
    weft_kernel kernel = {.name = n_ops > 1 ? "map_sample" : "map_neg",
                          .path = "",
                          .n_parallel = 1,
                          .extent = {n},
                          .n_args = 1,
                          .n_views = 1,
                          .n_code = n_ops + 2,
                          .args = &arg,
                          .views = &view,
                          .code = code};
    weft_operand operand = {0, 0};
    const weft_command command = {
        .kind = WEFT_COMMAND_KERNEL, .after = true, .kernel = &kernel, .n_operands = 1, .operands = &operand};
    WEFT_TRY(weft__kernel_verify(p->ctx, &kernel));
    return time_copies(p, &command, copies, submits, ns);
}

weft_status weft__probe_move(weft__probe *p, int64_t n, int copies, int submits, double *ns) {
    static const uint8_t neg = WEFT_OP_NEG;
    return time_kernel(p, &neg, 1, n, copies, submits, ns);
}

/* A mix of operations as in the kernels of a training step. */
static const uint8_t sample[WEFT__PROBE_OPS] = {WEFT_OP_EXP, WEFT_OP_ADD, WEFT_OP_SQRT, WEFT_OP_DIV,
                                                WEFT_OP_MUL, WEFT_OP_ADD, WEFT_OP_SUB};

weft_status weft__probe_calculation(weft__probe *p, int64_t n, int copies, double *ns) {
    return time_kernel(p, sample, WEFT__PROBE_OPS, n, copies, 1, ns);
}
