/* The interpreter as a device. Buffers are between guard bytes, fresh memory is full of NaNs, and independent
 * commands run in shuffled order. It is the reference of the tests and need not be fast.
 * Must not know: other devices. Read next: kernel.c. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "device/interp/interp.h"
#include "device/module.h"

#define GUARD_BYTE 0xA5
#define FRESH_BYTE 0xFF /* NaN in every float format, -1 in every signed integer */

typedef struct interp_executable {
    const weft_commands *commands;
    int *order;           /* of the commands, in the current run */
    weft_timing *timings; /* one for each command */
} interp_executable;

static weft_interp *interp_of(weft_device *device) { return (weft_interp *)device; }

/* ---- the device ---- */

static void interp_describe(const weft_device_module *module, int i, weft_device_description *d) {
    (void)module, (void)i;
    *d = (weft_device_description){.name = "interp",
                                   .detail =
                                       "interpreter of kernels in f64, checks indices and races (for tests)",
                                   .present = true,
                                   .threads = 1};
}

static weft_status open_interp(const weft_device_module *module, weft_context *ctx, const char *selector,
                               const weft_open_options *options, weft_device **device) {
    (void)selector, (void)options;
    weft_interp *d = weft__testing_open(ctx, module->ops, sizeof *d);
    if (!d) return WEFT_ERR_OOM;
    d->random = ctx ? ctx->random.seed : 0;
    *device = &d->base;
    return WEFT_OK;
}

void weft__interp_decline(weft_device *device, unsigned kind_mask) {
    interp_of(device)->declined = kind_mask;
}

void weft__interp_poison_arena(weft_device *device, bool on) { interp_of(device)->poison_arena = on; }

static bool takes(weft_device *device, const weft_heavy *heavy) {
    return weft__interp_heavy_takes(heavy) && (interp_of(device)->declined & (1u << heavy->kind)) == 0;
}

/* ---- memory ---- */

static unsigned char *interp_bytes_of(const weft_buffer *buffer) {
    return ((const weft_interp_buffer *)buffer)->memory + WEFT_INTERP_GUARD;
}

static weft_status buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    if (bytes > PTRDIFF_MAX - 2 * WEFT_INTERP_GUARD)
        return weft__fail_oom(device->ctx, bytes, "interp: buffer");
    weft_interp_buffer *b = weft__testing_buffer_new(device, sizeof *b, bytes);
    if (!b) return WEFT_ERR_OOM;
    b->memory = weft__alloc_aligned(device->ctx, bytes + (size_t)2 * WEFT_INTERP_GUARD);
    if (!b->memory) {
        weft__testing_buffer_free(device, &b->base);
        return weft__fail_oom(device->ctx, bytes, "interp: buffer");
    }
    memset(b->memory, GUARD_BYTE, WEFT_INTERP_GUARD);
    memset(interp_bytes_of(&b->base), FRESH_BYTE, bytes);
    memset(interp_bytes_of(&b->base) + bytes, GUARD_BYTE, WEFT_INTERP_GUARD);
    *buffer = &b->base;
    return WEFT_OK;
}

static void buffer_free(weft_device *device, weft_buffer *buffer) {
    if (buffer) weft__free_aligned(device->ctx, ((weft_interp_buffer *)buffer)->memory);
    weft__testing_buffer_free(device, buffer);
}

static bool guards_intact(const weft_buffer *buffer) {
    const unsigned char *before = ((const weft_interp_buffer *)buffer)->memory,
                        *after = interp_bytes_of(buffer) + buffer->bytes;
    for (int i = 0; i < WEFT_INTERP_GUARD; i++)
        if (before[i] != GUARD_BYTE || after[i] != GUARD_BYTE) return false;
    return true;
}

static weft_status upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, to, offset, bytes, "upload"));
    if (bytes) memcpy(interp_bytes_of(to) + offset, from, bytes);
    return WEFT_OK;
}

static weft_status download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, from, offset, bytes, "download"));
    if (bytes) memcpy(to, interp_bytes_of(from) + offset, bytes);
    return WEFT_OK;
}

static weft_status zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, to, offset, bytes, "zeros"));
    if (bytes) memset(interp_bytes_of(to) + offset, 0, bytes);
    return WEFT_OK;
}

/* ---- programs ---- */

static weft_status interp_refuse(weft_device *device, int i, const weft_command *c, const char *what) {
    const char *name = c->kind == WEFT_COMMAND_KERNEL ? c->kernel->name : "";
    return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "interp: command %d %s: %s", i, name ? name : "", what);
}

static int operands_of(const weft_command *c) {
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL: return c->kernel->n_args;
    case WEFT_COMMAND_HEAVY: return weft__heavy_class(&c->heavy)->operands(&c->heavy);
    case WEFT_COMMAND_COPY: return 2;
    default: return 1;
    }
}

static weft_status check_command(weft_device *device, const weft_commands *commands, int i) {
    const weft_command *c = &commands->list[i];
    if (c->kind == WEFT_COMMAND_KERNEL) WEFT_TRY(weft__kernel_verify(device->ctx, c->kernel));
    if (c->n_operands != operands_of(c)) return interp_refuse(device, i, c, "wrong number of operands");
    for (int o = 0; o < c->n_operands; o++)
        if (c->operands[o].slot < 0 || c->operands[o].slot >= commands->n_slots || c->operands[o].offset < 0)
            return interp_refuse(device, i, c, "an operand has no slot");
    return WEFT_OK;
}

static void executable_free(weft_device *device, weft_executable *executable) {
    interp_executable *e = (interp_executable *)executable;
    if (!e) return;
    weft__free(device->ctx, e->order);
    weft__free(device->ctx, e->timings);
    weft__free(device->ctx, e);
}

static weft_status interp_build(weft_device *device, const weft_commands *commands,
                                weft_executable **executable) {
    for (int i = 0; i < commands->count; i++) WEFT_TRY(check_command(device, commands, i));
    const size_t count = (size_t)commands->count;
    interp_executable *e = weft__zalloc(device->ctx, sizeof *e);
    if (e) {
        e->commands = commands;
        e->order = weft__array(device->ctx, count + 1, sizeof *e->order);
        e->timings = weft__array(device->ctx, count + 1, sizeof *e->timings);
    }
    if (!e || !e->order || !e->timings) {
        executable_free(device, (weft_executable *)e);
        return weft__fail_oom(device->ctx, (count + 1) * sizeof *e->timings, "interp: executable");
    }
    *executable = (weft_executable *)e;
    return WEFT_OK;
}

/* ---- running ---- */

/* Returns the bytes that a command may touch of an operand, or -1 if the operation checks them itself. */
static int64_t span_of(const weft_command *c, int o) {
    if (c->kind == WEFT_COMMAND_HEAVY) return -1;
    if (c->kind != WEFT_COMMAND_KERNEL) return c->bytes;
    return c->kernel->args[o].elements * (int64_t)weft_dtype_size((weft_dtype)c->kernel->args[o].dtype);
}

/* Fills in the operands' addresses, and the bytes of their buffers that follow. */
static weft_status bind(weft_device *device, const weft_command *c, int i, weft_buffer *const *buffers,
                        void **args, int64_t *bytes) {
    for (int o = 0; o < c->n_operands; o++) {
        const weft_buffer *buffer = buffers[c->operands[o].slot];
        if (!buffer) return interp_refuse(device, i, c, "a slot has no buffer");
        bytes[o] = (int64_t)buffer->bytes - c->operands[o].offset;
        if (bytes[o] < 0 || span_of(c, o) > bytes[o])
            return interp_refuse(device, i, c, "an operand leaves its buffer");
        args[o] = interp_bytes_of(buffer) + c->operands[o].offset;
        if (c->kind == WEFT_COMMAND_KERNEL &&
            (uintptr_t)args[o] % weft_dtype_size((weft_dtype)c->kernel->args[o].dtype) != 0)
            return interp_refuse(device, i, c, "an operand is not aligned to its dtype");
    }
    return WEFT_OK;
}

static weft_status execute(weft_interp *d, const weft_command *c, void *const *args, const int64_t *bytes) {
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL: return weft__interp_kernel(d, c->kernel, args);
    case WEFT_COMMAND_HEAVY: return weft__interp_heavy(d, &c->heavy, args, bytes);
    case WEFT_COMMAND_COPY: memmove(args[1], args[0], (size_t)c->bytes); return WEFT_OK;
    default: memset(args[0], 0, (size_t)c->bytes); return WEFT_OK;
    }
}

static weft_status run_command(weft_interp *d, const interp_executable *e, int i,
                               weft_buffer *const *buffers) {
    const weft_command *c = &e->commands->list[i];
    weft_context *ctx = d->base.ctx;
    void **args = weft__array(ctx, (size_t)c->n_operands + 1, sizeof *args);
    int64_t *bytes = weft__array(ctx, (size_t)c->n_operands + 1, sizeof *bytes);
    weft_status status = args && bytes ? bind(&d->base, c, i, buffers, args, bytes)
                                       : weft__fail_oom(ctx, (size_t)c->n_operands * 16, "interp: command");
    if (status == WEFT_OK) status = execute(d, c, args, bytes);
    for (int o = 0; status == WEFT_OK && o < c->n_operands; o++)
        if (!guards_intact(buffers[c->operands[o].slot]))
            status = interp_refuse(&d->base, i, c, "it wrote outside a buffer");
    weft__free(ctx, args);
    weft__free(ctx, bytes);
    return status;
}

/* Chooses the order of one run. Commands between two that wait for all before them may run in any order, so a
 * random one is taken. Sinks come last among them. So a fault of their neighbours prevents them, as on every
 * device. */
static void shuffle(weft_interp *d, interp_executable *e) {
    const weft_command *list = e->commands->list;
    for (int first = 0, last; first < e->commands->count; first = last) {
        int n = first, plain;
        for (last = first + 1; last < e->commands->count && !list[last].after;) last++;
        for (int i = first; i < last; i++)
            if (!list[i].sink) e->order[n++] = i;
        plain = n;
        for (int i = first; i < last; i++)
            if (list[i].sink) e->order[n++] = i;
        for (int i = last - 1; i > first; i--) {
            const int from = i >= plain ? plain : first; /* sinks stay among sinks */
            const uint64_t draw = weft__mix64(d->random += UINT64_C(0x9e3779b97f4a7c15));
            const int j = from + (int)(draw % (uint64_t)(i - from + 1));
            const int swapped = e->order[i];
            e->order[i] = e->order[j];
            e->order[j] = swapped;
        }
    }
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static weft_status interp_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                              int times) {
    weft_interp *d = interp_of(device);
    interp_executable *e = (interp_executable *)executable;
    for (int t = 0; t < times; t++) {
        const double begin = d->timing ? now_ns() : 0;
        if (d->poison_arena && e->commands->n_slots > 0 && buffers[0])
            memset(interp_bytes_of(buffers[0]), FRESH_BYTE, buffers[0]->bytes);
        shuffle(d, e);
        for (int n = 0; n < e->commands->count; n++) {
            const int i = e->order[n];
            if (d->timing) e->timings[i].start_ns = e->timings[i].end_ns = now_ns() - begin;
            if (e->commands->list[i].sink && d->fault.set) continue;
            WEFT_TRY(run_command(d, e, i, buffers));
            if (d->timing) e->timings[i].end_ns = now_ns() - begin;
        }
    }
    return WEFT_OK;
}

/* ---- faults and timings ---- */

void weft__interp_fault(weft_interp *device, weft_fault_kind kind, const char *path, int64_t value,
                        int64_t bound, int64_t element) {
    if (!device->fault.set)
        device->fault = (weft_fault){
            .set = 1, .kind = kind, .path = path, .value = value, .bound = bound, .element = element};
}

static weft_status take_fault(weft_device *device, weft_fault *fault) {
    *fault = interp_of(device)->fault;
    interp_of(device)->fault = (weft_fault){0};
    return WEFT_OK;
}

static void set_timing(weft_device *device, bool on) { interp_of(device)->timing = on; }

static const weft_timing *timings(weft_device *device, const weft_executable *executable) {
    return interp_of(device)->timing ? ((const interp_executable *)executable)->timings : NULL;
}

static const weft_device_extras extras = {
    .set_timing = set_timing,
    .timings = timings,
};

static const weft_device_ops ops = {
    .name = "interp",
    .extras = &extras,
    .close = weft__testing_close,
    .check_dtype = weft__testing_check_dtype,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .upload = upload,
    .download = download,
    .zero = zero,
    .takes = takes,
    .build = interp_build,
    .executable_free = executable_free,
    .run = interp_run,
    .synchronize = weft__testing_synchronize,
    .take_fault = take_fault,
};

const weft_device_module weft__device_interp = {
    .ops = &ops,
    .describe = interp_describe,
    .open = open_interp,
};
