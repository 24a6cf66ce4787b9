/* The launches of a program, with their kernels and arguments laid out once.
 * Must not know: OpenCL, CUDA. Read next: executable.h, program.h. */
#include <string.h>

#include "device/gpu/backend/executable.h"

/* ---- arguments ---- */

/* Memory in which arguments are laid out; without `values`, to count only. */
typedef struct layout {
    weft_gpu_executable *e;
    char *values;
    size_t used;
    int n_arguments;
} layout;

static void gpu_launch_put(layout *to, const void *value, size_t bytes) {
    weft_gpu_executable *e = to->e;
    const int i = to->n_arguments++;
    if (to->values) {
        e->arguments[i] = to->values + to->used;
        e->argument_bytes[i] = bytes;
        memcpy(e->arguments[i], value, bytes);
    }
    to->used += (bytes + 15) & ~(size_t)15;
}

/* Adds an argument. The first run binds the buffers. */
static void put_argument(layout *to, const weft_gpu_device *d, const weft_argument *a) {
    weft_gpu_executable *e = to->e;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: gpu_launch_put(to, &(uint64_t){0}, WEFT_GPU_POINTER_BYTES); break;
    case WEFT_ARGUMENT_FAULTS: gpu_launch_put(to, &d->faults->address, WEFT_GPU_POINTER_BYTES); break;
    case WEFT_ARGUMENT_NUMBERS: gpu_launch_put(to, a->numbers, (size_t)a->i); break;
    case WEFT_ARGUMENT_PARAMETERS:
        gpu_launch_put(to, &e->parameters->address, WEFT_GPU_POINTER_BYTES);
        gpu_launch_put(to, &a->i, 8);
        break;
    case WEFT_ARGUMENT_TIMES:
        e->times_index = to->n_arguments;
        for (int i = 0; i < 3; i++) gpu_launch_put(to, &(int32_t){i == 0}, 4);
        break;
    default: break; /* a program has no other kinds */
    }
}

static void lay_out(layout *to, const weft_gpu_device *d, const weft_gpu_program *p) {
    for (int l = 0; l < p->launches.count; l++) {
        const weft_launch *from = &p->launches.list[l];
        weft_gpu_launch *launch = &to->e->launches[l];
        const int first = to->n_arguments;
        for (int a = 0; a < from->n_arguments; a++) put_argument(to, d, &from->arguments[a]);
        if (!to->values) continue;
        launch->arguments = to->e->arguments + first;
        launch->argument_bytes = to->e->argument_bytes + first;
    }
}

static weft_status make_arguments(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    layout to = {.e = e};
    lay_out(&to, d, p);
    const size_t n = (size_t)to.n_arguments + 1;
    e->values = weft__alloc_aligned(ctx, to.used + 16);
    e->arguments = weft__array(ctx, n, sizeof *e->arguments);
    e->argument_bytes = weft__array(ctx, n, sizeof *e->argument_bytes);
    if (!e->values || !e->arguments || !e->argument_bytes) return weft__gpu_fail_oom(d, to.used, "a program");
    to = (layout){.e = e, .values = e->values};
    lay_out(&to, d, p);
    return WEFT_OK;
}

/* Returns how many kernel arguments an argument of a launch becomes. */
static int indices(const weft_argument *a) {
    return a->kind == WEFT_ARGUMENT_PARAMETERS ? 2 : a->kind == WEFT_ARGUMENT_TIMES ? 3 : 1;
}

/* Counts the places. Writes them if `places` is not NULL. */
static int list_places(const weft_gpu_program *p, weft_gpu_place *places) {
    int n = 0;
    for (int l = 0; l < p->launches.count; l++) {
        const weft_launch *launch = &p->launches.list[l];
        for (int a = 0, index = 0; a < launch->n_arguments; index += indices(&launch->arguments[a++])) {
            const weft_argument *from = &launch->arguments[a];
            if (from->kind != WEFT_ARGUMENT_BUFFER) continue;
            if (places) places[n] = (weft_gpu_place){from->index, l, index, launch->call ? from->i : 0};
            n++;
        }
    }
    return n;
}

static weft_status make_places(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    e->n_places = list_places(p, NULL);
    e->places = weft__array(d->base.ctx, (size_t)e->n_places + 1, sizeof *e->places);
    if (!e->places) return weft__gpu_fail_oom(d, (size_t)e->n_places * sizeof *e->places, "a program");
    list_places(p, e->places);
    return WEFT_OK;
}

/* ---- kernels ---- */

/* Passes all arguments but the buffers to a kernel. */
static int set_arguments(weft_gpu_device *d, const weft_gpu_launch *to, const weft_launch *from) {
    const weft_gpu_program_functions *program = d->backend->program;
    int error = 0, index = 0;
    for (int a = 0; program->set_argument && a < from->n_arguments; a++) {
        const bool buffer = from->arguments[a].kind == WEFT_ARGUMENT_BUFFER;
        const int next = index + indices(&from->arguments[a]);
        for (; index < next && !error; index++)
            if (!buffer) error = program->set_argument(d, to, index);
    }
    return error;
}

static weft_status make_kernel(weft_gpu_device *d, weft_gpu_launch *to, const weft_launch *from,
                               const weft_gpu_source *source) {
    const weft_gpu_program_functions *program = d->backend->program;
    const int64_t most = d->target.groups_most;
    char name[WEFT_GPU_NAME];
    if (most && (from->groups[0] > INT32_MAX || from->groups[1] > most || from->groups[2] > most))
        return weft__fail(d->base.ctx, WEFT_ERR_DEVICE, "%s: %s needs more blocks than a launch can have",
                          d->base.name, from->name);
    weft__gpu_kernel_name(source, from->name, name);
    int error = program->kernel_new(d, to, d->compiler.modules[source->module].module, name);
    if (error) return weft__gpu_fail(d, error, from->name);
    weft__gpu_hook.kernels++;
    error = set_arguments(d, to, from);
    return error ? weft__gpu_fail(d, error, "setting an argument of a kernel") : WEFT_OK;
}

/* Returns whether a launch waits for all launches before it. It does if a command after the previous launch
 * does. */
static bool waits(const weft_commands *commands, const int *of, int l) {
    for (int c = l ? of[l - 1] + 1 : 0; c <= of[l]; c++)
        if (commands->list[c].after) return true;
    return false;
}

static void make_launch(weft_gpu_executable *e, const weft_gpu_program *p, int l) {
    const weft_launch *from = &p->launches.list[l];
    weft_gpu_launch *to = &e->launches[l];
    to->call = from->call;
    to->beside = from->beside;
    to->shared_bytes = from->shared_bytes;
    for (int i = 0; i < 3; i++) {
        to->groups[i] = (size_t)from->groups[i];
        to->items[i] = (size_t)from->items[i];
        to->all_items[i] = to->groups[i] * to->items[i];
    }
    to->follows = l > 0 && p->commands[l - 1] == p->commands[l];
    to->after = !to->follows && (e->fused || waits(e->commands, p->commands, l));
    for (int a = 0; a < from->n_arguments; a++)
        to->scratch = to->scratch || (from->arguments[a].kind == WEFT_ARGUMENT_BUFFER &&
                                      from->arguments[a].index == p->scratch_slot);
}

weft_status weft__gpu_make_launches(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p,
                                    const weft_gpu_source *const *sources) {
    const size_t count = (size_t)p->launches.count;
    e->launches = weft__array(d->base.ctx, count + 1, sizeof *e->launches);
    e->events = weft__array(d->base.ctx, count + 1, sizeof *e->events);
    if (!e->launches || !e->events)
        return weft__gpu_fail_oom(d, (count + 1) * sizeof *e->launches, "a program");
    WEFT_TRY(make_arguments(d, e, p));
    WEFT_TRY(make_places(d, e, p));
    for (int l = 0; l < p->launches.count; l++) {
        make_launch(e, p, l);
        if (!e->launches[l].call) WEFT_TRY(make_kernel(d, &e->launches[l], &p->launches.list[l], sources[l]));
    }
    return WEFT_OK;
}

void weft__gpu_free_launches(weft_gpu_device *d, weft_gpu_executable *e) {
    const weft_gpu_program_functions *program = d->backend->program;
    for (int l = 0; e->launches && program->kernel_free && l < e->n_launches; l++)
        if (e->launches[l].kernel) program->kernel_free(d, e->launches[l].kernel);
    weft__free(d->base.ctx, e->launches);
    weft__free(d->base.ctx, e->events);
    weft__free(d->base.ctx, e->places);
    weft__free_aligned(d->base.ctx, e->values);
    weft__free(d->base.ctx, e->arguments);
    weft__free(d->base.ctx, e->argument_bytes);
}
