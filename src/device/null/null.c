/* The null device. It accepts every program, logs each command at debug level and counts what is run, but
 * computes nothing. Downloads give zeros. Its buffers have no memory, so plans of large models can be tested
 * on any machine. For another device (null.h) it takes what that device takes, and makes a card's launches
 * without compiling them. It prices the launches of a card that is described.
 * Must not know: drivers of cards. Read next: null.h, docs/design/031-choosing-a-device.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu/backend/program.h"
#include "device/gpu/card/card.h"
#include "device/module.h"
#include "device/null/null.h"
#include "device/testing.h"

typedef struct null_device {
    weft_device base;
    const weft_target *target;   /* of the card; NULL: no card */
    weft_device_outline outline; /* of the device that plans are made for; without `takes`: no device */
    weft_card card;              /* that outline.card points at */
    weft_null_counts counts;
    weft_null_price *prices; /* of the program that was built last, if there is a card */
    int n_prices;
    bool timing;
} null_device;

typedef struct null_executable {
    const weft_commands *commands;
    weft_null_counts once; /* counts of one run */
    weft_timing *timings;  /* all 0 */
    int launches;
} null_executable;

static void null_describe(const weft_device_module *module, int i, weft_device_description *d) {
    (void)module, (void)i;
    *d = (weft_device_description){.name = "null",
                                   .detail = "plans and logs, computes nothing (for tests)",
                                   .present = true,
                                   .threads = 1};
}

static int count_null(const weft_device_module *module) {
    (void)module;
    return 1;
}

/* Large cards. The number of work-groups in a launch depends on the card's units. */
static const struct card {
    const char *name;
    weft_target target;
} cards[] = {
    {"cuda",
     {.dialect = WEFT_DIALECT_CUDA,
      .lanes = 256,
      .units = 132,
      .local_bytes = 48 << 10,
      .most_local_bytes = 227 << 10,
      .groups_most = 65535,
      .capability = 90,
      .f64 = true}},
    {"opencl",
     {.dialect = WEFT_DIALECT_OPENCL, .lanes = 256, .units = 132, .local_bytes = 48 << 10, .f64 = true}},
};

static weft_status open_null(const weft_device_module *module, weft_context *ctx, const char *selector,
                             const weft_open_options *options, weft_device **device) {
    const weft_target *target = NULL;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (strcmp(selector, cards[i].name) == 0) target = &cards[i].target;
    const bool as = strncmp(selector, "as:", 3) == 0, card = strncmp(selector, "card:", 5) == 0;
    if (!target && !as && !card && *selector && strcmp(selector, "0") != 0)
        return weft__fail(
            ctx, WEFT_ERR_DEVICE,
            "device \"null:%s\": choose \"null\", or \"null:cuda\" or \"null:opencl\" to plan for a card",
            selector);
    null_device *d = weft__testing_open(ctx, module->ops, sizeof *d);
    if (!d) return WEFT_ERR_OOM;
    d->target = target;
    weft_status status = as ? weft__device_outline_of(ctx, selector + 3, &d->outline) : WEFT_OK;
    if (card) status = weft__card_find(ctx, selector + 5, &d->card);
    if (card && status == WEFT_OK) weft__device_outline_card(&d->card, &d->outline);
    if (status != WEFT_OK) {
        weft__testing_close(&d->base);
        return status;
    }
    d->outline.target.tf32 = card && options && options->tf32;
    if (d->outline.launches) d->target = &d->outline.target;
    d->base.computes_nothing = true;
    d->base.overlaps = d->target != NULL;
    d->base.plans_links = d->outline.links;
    d->base.many_blocks = d->target && d->target->dialect == WEFT_DIALECT_CUDA;
    *device = &d->base;
    return WEFT_OK;
}

static weft_status buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    *buffer = weft__testing_buffer_new(device, sizeof **buffer, bytes);
    return *buffer ? WEFT_OK : WEFT_ERR_OOM;
}

static weft_status upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes) {
    (void)from;
    return weft__testing_inside(device, to, offset, bytes, "upload");
}

static weft_status download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes) {
    WEFT_TRY(weft__testing_inside(device, from, offset, bytes, "download"));
    if (bytes) memset(to, 0, bytes);
    return WEFT_OK;
}

static weft_status zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    return weft__testing_inside(device, to, offset, bytes, "zeros");
}

/* Without a card it takes no epilogues: `auto` plans here and prices each kernel by itself
 * (compiler/profile/price.c). */
static bool takes(weft_device *device, const weft_heavy *heavy) {
    const null_device *d = (const null_device *)device;
    const weft_target *target = d->target;
    if (target && heavy->kind == WEFT_HEAVY_EXCHANGE) return device->linked != NULL;
    if (d->outline.takes) return d->outline.takes(&d->outline.target, heavy);
    if (target) return weft__gpu_takes(target, heavy);
    if (heavy->kind == WEFT_HEAVY_SOURCE) return false;
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    return heavy->kind != WEFT_HEAVY_MATMUL ||
           !(mm->epilogue || mm->sums || weft_dtype_is_complex((weft_dtype)mm->dtype));
}

/* ---- programs ---- */

static uint64_t kernel_bytes(const weft_kernel *kernel) {
    uint64_t bytes = 0;
    for (int i = 0; i < kernel->n_args; i++) {
        const weft_kernel_arg *arg = &kernel->args[i];
        const uint64_t size = (uint64_t)arg->elements * weft_dtype_size((weft_dtype)arg->dtype);
        bytes += (arg->read ? size : 0) + (arg->written ? size : 0);
    }
    return bytes;
}

static void count_command(weft_null_counts *counts, const weft_command *c) {
    counts->commands++;
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL:
        counts->kernels++;
        counts->bytes += kernel_bytes(c->kernel);
        break;
    case WEFT_COMMAND_HEAVY: counts->heavy++; break;
    case WEFT_COMMAND_COPY:
        counts->copies++;
        counts->bytes += 2 * (uint64_t)c->bytes;
        break;
    case WEFT_COMMAND_ZERO:
        counts->zeros++;
        counts->bytes += (uint64_t)c->bytes;
        break;
    case WEFT_COMMAND_WAIT: break;
    }
}

static void log_command(weft_context *ctx, int i, const weft_command *c) {
    const char *marks = c->sink ? c->after ? " after sink" : " sink" : c->after ? " after" : "";
    char text[800];
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL:
        weft__kernel_print(c->kernel, text, sizeof text);
        weft__log(ctx, WEFT_LOG_DEBUG, "null: %d%s: %s", i, marks, text);
        break;
    case WEFT_COMMAND_HEAVY:
        weft__log(ctx, WEFT_LOG_DEBUG, "null: %d%s: %s  # %s", i, marks, weft__heavy_class(&c->heavy)->name,
                  c->heavy.path ? c->heavy.path : "");
        break;
    case WEFT_COMMAND_COPY:
        weft__log(ctx, WEFT_LOG_DEBUG, "null: %d%s: copy %" PRId64 " bytes", i, marks, c->bytes);
        break;
    case WEFT_COMMAND_ZERO:
        weft__log(ctx, WEFT_LOG_DEBUG, "null: %d%s: zero %" PRId64 " bytes", i, marks, c->bytes);
        break;
    case WEFT_COMMAND_WAIT: weft__log(ctx, WEFT_LOG_DEBUG, "null: %d%s: wait", i, marks); break;
    }
}

static void executable_free(weft_device *device, weft_executable *executable) {
    null_executable *e = (null_executable *)executable;
    if (!e) return;
    weft__free(device->ctx, e->timings);
    weft__free(device->ctx, e);
}

/* ---- prices ---- */

/* Writes what a launch does and where, as plans do for commands. */
static void name_launch(const weft_command *command, const weft_launch *launch, weft_null_price *to) {
    const bool fused = strcmp(launch->name, "fused_launch") == 0;
    snprintf(to->path, sizeof to->path, "%s", fused ? "" : weft__gpu_path(command));
    snprintf(to->what, sizeof to->what, "%s", launch->name);
    if (!fused && command->kind == WEFT_COMMAND_HEAVY)
        weft__heavy_class(&command->heavy)->describe(&command->heavy, to->what, sizeof to->what);
    to->library = launch->call != NULL;
}

static weft_status price_launches(null_device *d, const weft_gpu_program *p, const weft_commands *commands) {
    weft_context *ctx = d->base.ctx;
    const int n = p->launches.count;
    double bytes = 0;
    weft__free(ctx, d->prices);
    d->n_prices = 0;
    d->prices = weft__array(ctx, (size_t)n + 1, sizeof *d->prices);
    if (!d->prices) return weft__fail_oom(ctx, (size_t)n * sizeof *d->prices, "the prices of a program");
    for (int l = 0; l < n; l++) bytes += p->launches.list[l].facts.bytes;
    for (int l = 0; l < n; l++) {
        const weft_launch *launch = &p->launches.list[l];
        const weft_card_price price = weft__card_price(&d->card, launch, bytes <= d->card.l2);
        weft_null_price *to = &d->prices[d->n_prices++];
        name_launch(&commands->list[p->commands[l]], launch, to);
        to->seconds = price.seconds;
        to->reason = weft__card_reason(price.reason);
        to->bytes = launch->facts.bytes;
        to->blocks = price.blocks;
    }
    return WEFT_OK;
}

void (*weft__null_watch)(const struct weft_gpu_program *, const weft_commands *);

/* Makes the launches that the card would get. `fused`: the form with fused launches, for a program that ran
 * often. */
static weft_status make_launches(null_device *d, const weft_commands *commands, bool fused, int *count,
                                 bool *repeats) {
    weft_context *ctx = d->base.ctx;
    weft_arena arena;
    weft_gpu_paths paths = {.count = 0};
    weft__arena_init(&arena, ctx);
    weft_gpu_program program = {.launches = {.ctx = ctx, .arena = &arena, .target = d->target}};
    const weft_gpu_request request = {.paths = &paths, .fused = fused, .outline = &d->outline};
    weft_status status = weft__gpu_program(&program, commands, &request);
    if (status == WEFT_OK && fused && d->outline.card) status = price_launches(d, &program, commands);
    if (status == WEFT_OK && weft__null_watch) weft__null_watch(&program, commands);
    *count = program.launches.count;
    *repeats = program.repeats;
    if (!fused) d->base.workspace = (uint64_t)(program.scratch_bytes[0] + program.scratch_bytes[1]);
    weft__gpu_program_free(&program);
    weft__arena_free(&arena);
    weft__free(ctx, paths.list);
    return status;
}

static weft_status count_launches(null_device *d, null_executable *e) {
    bool repeats;
    if (!d->target) return WEFT_OK;
    WEFT_TRY(make_launches(d, e->commands, false, &e->launches, &repeats));
    d->counts.launches = e->launches;
    return make_launches(d, e->commands, true, &d->counts.fused, &d->counts.repeats);
}

static weft_status null_build(weft_device *device, const weft_commands *commands,
                              weft_executable **executable) {
    for (int i = 0; i < commands->count; i++)
        if (commands->list[i].kind == WEFT_COMMAND_KERNEL)
            WEFT_TRY(weft__kernel_verify(device->ctx, commands->list[i].kernel));
    null_executable *e = weft__zalloc(device->ctx, sizeof *e);
    if (e) e->timings = weft__array(device->ctx, (size_t)commands->count + 1, sizeof *e->timings);
    if (!e || !e->timings) {
        weft__free(device->ctx, e);
        return weft__fail_oom(device->ctx, (size_t)commands->count * sizeof *e->timings, "null: executable");
    }
    e->commands = commands;
    for (int i = 0; i < commands->count; i++) {
        count_command(&e->once, &commands->list[i]);
        log_command(device->ctx, i, &commands->list[i]);
    }
    ((null_device *)device)->counts.builds++;
    const weft_status status = count_launches((null_device *)device, e);
    if (status == WEFT_OK)
        *executable = (weft_executable *)e;
    else
        executable_free(device, (weft_executable *)e);
    return status;
}

static weft_status null_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                            int times) {
    const weft_null_counts *once = &((null_executable *)executable)->once;
    weft_null_counts *all = &((null_device *)device)->counts;
    const uint64_t n = times > 0 ? (uint64_t)times : 0;
    (void)buffers;
    all->runs += n;
    all->commands += n * once->commands;
    all->kernels += n * once->kernels;
    all->heavy += n * once->heavy;
    all->copies += n * once->copies;
    all->zeros += n * once->zeros;
    all->bytes += n * once->bytes;
    weft__log(device->ctx, WEFT_LOG_DEBUG, "null: run %d times: %" PRIu64 " commands, %" PRIu64 " bytes",
              times, once->commands, once->bytes);
    return WEFT_OK;
}

static weft_status take_fault(weft_device *device, weft_fault *fault) {
    (void)device;
    *fault = (weft_fault){0};
    return WEFT_OK;
}

static int launches_of(const weft_executable *executable) {
    return ((const null_executable *)executable)->launches;
}

static void set_timing(weft_device *device, bool on) { ((null_device *)device)->timing = on; }

static const weft_timing *timings(weft_device *device, const weft_executable *executable) {
    return ((null_device *)device)->timing ? ((const null_executable *)executable)->timings : NULL;
}

const weft_null_counts *weft__null_counts(const weft_device *device) {
    return device && device->ops == weft__device_null.ops ? &((const null_device *)device)->counts : NULL;
}

const weft_device_outline *weft__null_outline(const weft_device *device) {
    const bool is_null = device && device->ops == weft__device_null.ops;
    return is_null && ((const null_device *)device)->outline.takes ? &((const null_device *)device)->outline
                                                                   : NULL;
}

const weft_null_price *weft__null_prices(const weft_device *device, int *count) {
    *count = weft__null_outline(device) ? ((const null_device *)device)->n_prices : 0;
    return *count ? ((const null_device *)device)->prices : NULL;
}

double weft__null_submit(const weft_device *device) {
    const weft_device_outline *outline = weft__null_outline(device);
    return outline && outline->card ? outline->card->alone : 0;
}

static void null_close(weft_device *device) {
    weft__free(device->ctx, ((null_device *)device)->prices);
    weft__testing_close(device);
}

static const weft_device_extras extras = {
    .launches_of = launches_of,
    .set_timing = set_timing,
    .timings = timings,
};

static const weft_device_ops ops = {
    .name = "null",
    .extras = &extras,
    .close = null_close,
    .check_dtype = weft__testing_check_dtype,
    .buffer_new = buffer_new,
    .buffer_free = weft__testing_buffer_free,
    .upload = upload,
    .download = download,
    .zero = zero,
    .takes = takes,
    .build = null_build,
    .executable_free = executable_free,
    .run = null_run,
    .synchronize = weft__testing_synchronize,
    .take_fault = take_fault,
};

const weft_device_module weft__device_null = {
    .ops = &ops,
    .computes_nothing = true,
    .count = count_null,
    .describe = null_describe,
    .open = open_null,
};
