/* The device that writes C. It compiles and computes nothing: a run only remembers the program and its
 * buffers, and weft__c99_statements writes them later. Downloads give what was uploaded.
 * Must not know: models. Read next: c99.h, kernel.c. */
#include <stdio.h>
#include <string.h>

#include "device/c99/c99.h"
#include "device/module.h"
#include "device/testing.h"

typedef struct c99_device {
    weft_device base;
    const weft_commands *last; /* of the program that ran last */
    weft_buffer **buffers;     /* one for each slot; those of unused slots may be NULL */
} c99_device;

typedef struct c99_executable {
    const weft_commands *commands;
} c99_executable;

static void c99_describe(const weft_device_module *module, int i, weft_device_description *d) {
    (void)module, (void)i;
    *d = (weft_device_description){.name = "c99",
                                   .detail = "writes C source, computes nothing (for weft export --to c)",
                                   .present = true,
                                   .threads = 1};
}

static weft_status open_c99(const weft_device_module *module, weft_context *ctx, const char *selector,
                            const weft_open_options *options, weft_device **device) {
    (void)selector, (void)options;
    c99_device *d = weft__testing_open(ctx, module->ops, sizeof *d);
    if (!d) return WEFT_ERR_OOM;
    *device = &d->base;
    return WEFT_OK;
}

static void c99_close(weft_device *device) {
    weft__free(device->ctx, ((c99_device *)device)->buffers);
    weft__testing_close(device);
}

/* ---- memory ---- */

static weft_status buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    weft_buffer *b = weft__testing_buffer_new(device, sizeof *b, bytes);
    if (!b) return WEFT_ERR_OOM;
    b->host = weft__alloc_aligned(device->ctx, bytes + 1); /* never of size 0 */
    if (!b->host) {
        weft__testing_buffer_free(device, b);
        return weft__fail_oom(device->ctx, bytes, "c99: a buffer");
    }
    memset(b->host, 0, bytes);
    *buffer = b;
    return WEFT_OK;
}

static void buffer_free(weft_device *device, weft_buffer *buffer) {
    if (buffer) weft__free_aligned(device->ctx, buffer->host);
    weft__testing_buffer_free(device, buffer);
}

static weft_status upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, to, offset, bytes, "upload"));
    if (bytes) memcpy((char *)to->host + offset, from, bytes);
    return WEFT_OK;
}

static weft_status download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, from, offset, bytes, "download"));
    if (bytes) memcpy(to, (const char *)from->host + offset, bytes);
    return WEFT_OK;
}

static weft_status zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, to, offset, bytes, "zeros"));
    if (bytes) memset((char *)to->host + offset, 0, bytes);
    return WEFT_OK;
}

static bool takes(weft_device *device, const weft_heavy *heavy) {
    (void)device;
    return weft__c99_heavy_takes(heavy);
}

/* ---- programs ---- */

static weft_status c99_build(weft_device *device, const weft_commands *commands,
                             weft_executable **executable) {
    c99_executable *e = weft__zalloc(device->ctx, sizeof *e);
    if (!e) return weft__fail_oom(device->ctx, sizeof *e, "c99: executable");
    e->commands = commands;
    *executable = (weft_executable *)e;
    return WEFT_OK;
}

static void executable_free(weft_device *device, weft_executable *executable) {
    c99_device *d = (c99_device *)device;
    if (executable && d->last == ((c99_executable *)executable)->commands) d->last = NULL;
    weft__free(device->ctx, executable);
}

static weft_status c99_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                           int times) {
    c99_device *d = (c99_device *)device;
    const weft_commands *commands = ((c99_executable *)executable)->commands;
    (void)times;
    weft__free(device->ctx, d->buffers);
    d->last = NULL;
    d->buffers = weft__array(device->ctx, (size_t)commands->n_slots + 1, sizeof *d->buffers);
    if (!d->buffers) return weft__fail_oom(device->ctx, (size_t)commands->n_slots * 8, "c99: a program");
    memcpy(d->buffers, buffers, (size_t)commands->n_slots * sizeof *d->buffers);
    d->last = commands;
    return WEFT_OK;
}

static weft_status take_fault(weft_device *device, weft_fault *fault) {
    (void)device;
    *fault = (weft_fault){0};
    return WEFT_OK;
}

/* ---- operands ---- */

/* Returns the dtype of operand o, and whether it is written. COPY and ZERO have no dtype: they take that of
 * the other commands. */
static weft_dtype operand_dtype(const weft_command *c, int o, bool *written) {
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL:
        *written = c->kernel->args[o].written;
        return (weft_dtype)c->kernel->args[o].dtype;
    case WEFT_COMMAND_HEAVY:
        *written = weft__c99_heavy_writes(&c->heavy, o);
        return weft__c99_heavy_dtype(&c->heavy, o);
    default: *written = o == c->n_operands - 1; return WEFT_F32;
    }
}

/* Are operand o's elements read? A kernel may read and write the same argument. */
static bool operand_read(const weft_command *c, int o, bool written) {
    return c->kind == WEFT_COMMAND_KERNEL ? c->kernel->args[o].read : !written;
}

static weft_status c99_check(weft_device *device, const weft_commands *commands) {
    for (int i = 0; i < commands->count; i++) {
        const weft_command *c = &commands->list[i];
        char text[200];
        weft_text why = weft__text(text, sizeof text);
        bool written;
        if (c->kind == WEFT_COMMAND_KERNEL && !weft__c99_kernel_check(c->kernel, &why))
            return weft__fail(device->ctx, WEFT_ERR_UNSUPPORTED, "C source: %s cannot be written", text);
        for (int o = 0; o < c->n_operands; o++)
            if (c->operands[o].offset % (int64_t)weft_dtype_size(operand_dtype(c, o, &written)) != 0 ||
                c->operands[o].offset > INT32_MAX)
                return weft__fail(device->ctx, WEFT_ERR_UNSUPPORTED,
                                  "C source: the model needs more than 2 GiB, or unaligned values");
    }
    return WEFT_OK;
}

weft_status weft__c99_slots(weft_device *device, weft_c99_slot **slots, int *count) {
    const c99_device *d = (const c99_device *)device;
    if (device->ops != weft__device_c99.ops || !d->last)
        return weft__fail(device->ctx, WEFT_ERR_STATE, "C source: no program has run");
    WEFT_TRY(c99_check(device, d->last));
    weft_c99_slot *list = weft__array(device->ctx, (size_t)d->last->n_slots + 1, sizeof *list);
    if (!list) return weft__fail_oom(device->ctx, (size_t)d->last->n_slots * sizeof *list, "C source");
    for (int i = 0; i < d->last->count; i++) {
        const weft_command *c = &d->last->list[i];
        for (int o = 0; o < c->n_operands; o++) {
            weft_c99_slot *slot = &list[c->operands[o].slot];
            bool written;
            const weft_dtype dtype = operand_dtype(c, o, &written);
            if (c->kind == WEFT_COMMAND_HEAVY && !weft__c99_heavy_has(&c->heavy, o)) continue;
            slot->buffer = d->buffers[c->operands[o].slot];
            slot->scalars = c->operands[o].slot == d->last->scalars;
            slot->bytes = slot->buffer ? (int64_t)slot->buffer->bytes : 0;
            slot->dtypes |= 1u << dtype;
            slot->written = slot->written || written;
            slot->read = slot->read || operand_read(c, o, written);
        }
    }
    *slots = list;
    *count = d->last->n_slots;
    return WEFT_OK;
}

/* ---- source ---- */

/* Returns the number of the first kernel that is the same as that of command i. */
static int first_like(const weft_commands *commands, int i) {
    const weft_hash hash = weft__kernel_hash(commands->list[i].kernel);
    for (int j = 0; j < i; j++) {
        if (commands->list[j].kind != WEFT_COMMAND_KERNEL) continue;
        const weft_hash other = weft__kernel_hash(commands->list[j].kernel);
        if (hash.a == other.a && hash.b == other.b) return j;
    }
    return i;
}

static const char *function_name(const weft_commands *commands, int i, const char *prefix, char out[64]) {
    const weft_kernel *kernel = commands->list[i].kernel;
    snprintf(out, 64, "%.8s%d_%.40s", prefix, i, kernel->name ? kernel->name : "");
    for (char *at = out; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at)) *at = '_';
    return out;
}

void weft__c99_uses(weft_device *device, bool used[WEFT_C99_ROUTINES]) {
    const weft_commands *commands = ((c99_device *)device)->last;
    for (int i = 0; i < commands->count; i++) {
        const weft_command *c = &commands->list[i];
        if (c->kind == WEFT_COMMAND_HEAVY) weft__c99_heavy_uses(&c->heavy, used);
        for (int k = 0; c->kind == WEFT_COMMAND_KERNEL && k < c->kernel->n_code; k++)
            if (c->kernel->code[k].kind == WEFT_INSTR_RANDOM) used[WEFT_C99_DRAW] = true;
    }
}

weft_status weft__c99_functions(weft_device *device, const char *prefix, weft_text *out) {
    const weft_commands *commands = ((c99_device *)device)->last;
    char name[64];
    for (int i = 0; i < commands->count; i++) {
        const weft_command *c = &commands->list[i];
        if (c->kind == WEFT_COMMAND_KERNEL && first_like(commands, i) == i)
            WEFT_TRY(weft__c99_kernel(device->ctx, c->kernel, function_name(commands, i, prefix, name), out));
    }
    return WEFT_OK;
}

enum { OPERAND_TEXT = 96 };

/* Writes the address of operand o. */
static void name_operand(const weft_commands *commands, const weft_command *c, int o,
                         const char *const *names, char out[OPERAND_TEXT]) {
    static const char *const members[WEFT_DTYPE_COUNT] = {[WEFT_F32] = ".f32",
                                                          [WEFT_I32] = ".i32",
                                                          [WEFT_I64] = ".i64",
                                                          [WEFT_BOOL] = ".u8",
                                                          [WEFT_U8] = ".u8"};
    bool written;
    const weft_operand *operand = &c->operands[o];
    const weft_dtype dtype = operand_dtype(c, o, &written);
    const long long first = (long long)(operand->offset / (int64_t)weft_dtype_size(dtype));
    const bool mixed = operand->slot == 0 || operand->slot == commands->scalars;
    const char *member = mixed ? members[dtype] : "";
    if (first)
        snprintf(out, OPERAND_TEXT, "%.60s%s + %lld", names[operand->slot], member, first);
    else
        snprintf(out, OPERAND_TEXT, "%.60s%s", names[operand->slot], member);
}

static void put_command(const weft_commands *commands, int i, const char *prefix, const char *const *names,
                        char (*operands)[OPERAND_TEXT], const char **args, weft_text *out) {
    const weft_command *c = &commands->list[i];
    char name[64];
    for (int o = 0; o < c->n_operands; o++) {
        name_operand(commands, c, o, names, operands[o]);
        args[o] = operands[o];
    }
    switch (c->kind) {
    case WEFT_COMMAND_HEAVY: weft__c99_heavy(&c->heavy, args, out); return;
    case WEFT_COMMAND_COPY:
        weft__put(out, "    memcpy(%s, %s, %lld);\n", args[1], args[0], (long long)c->bytes);
        return;
    case WEFT_COMMAND_ZERO:
        weft__put(out, "    memset(%s, 0, %lld);\n", args[0], (long long)c->bytes);
        return;
    default: break;
    }
    weft__put(out, "    %s(", function_name(commands, first_like(commands, i), prefix, name));
    for (int o = 0; o < c->n_operands; o++) weft__put(out, "%s%s", o ? ", " : "", args[o]);
    weft__put(out, ");\n");
}

weft_status weft__c99_statements(weft_device *device, const char *prefix, const char *const *names,
                                 weft_text *out) {
    const weft_commands *commands = ((c99_device *)device)->last;
    int most = 1;
    for (int i = 0; i < commands->count; i++)
        if (commands->list[i].n_operands > most) most = commands->list[i].n_operands;
    char(*operands)[OPERAND_TEXT] = weft__array(device->ctx, (size_t)most, sizeof *operands);
    const char **args = weft__array(device->ctx, (size_t)most, sizeof *args);
    const bool room = operands && args;
    for (int i = 0; room && i < commands->count; i++)
        put_command(commands, i, prefix, names, operands, args, out);
    weft__free(device->ctx, operands);
    weft__free(device->ctx, args);
    return room ? WEFT_OK : weft__fail_oom(device->ctx, (size_t)most * sizeof *operands, "C source");
}

static const weft_device_ops ops = {
    .name = "c99",
    .close = c99_close,
    .check_dtype = weft__testing_check_dtype,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .upload = upload,
    .download = download,
    .zero = zero,
    .takes = takes,
    .build = c99_build,
    .executable_free = executable_free,
    .run = c99_run,
    .synchronize = weft__testing_synchronize,
    .take_fault = take_fault,
};

const weft_device_module weft__device_c99 = {
    .ops = &ops,
    .hidden = true,
    .computes_nothing = true,
    .describe = c99_describe,
    .open = open_c99,
};
