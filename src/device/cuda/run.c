/* Programs of the CUDA device: the launches of all commands with their arguments laid out once. A program
 * that runs for the third time becomes a graph, which is one submission a step; launches that the plan says
 * are independent are so in it. A run waits for nothing. Must not know: kernel forms, heavy operations. Read
 * next: gpu/program.c, graph.c. */
#include "device/cuda/run.h"

#include <string.h>

#include "device/gpu/program.h"

enum { PLAIN_RUNS = 2, GROUPS_MOST = 65535 /* along y and z */ };

/* ---- arguments ---- */

/* Where arguments are laid out: NULL to count. */
typedef struct layout {
    cuda_executable *e;
    char *values;
    void **arguments;
    size_t bytes;
    int n_arguments, n_places;
} layout;

static void *put(layout *to, const void *value, size_t bytes) {
    char *at = to->values ? to->values + to->bytes : NULL;
    if (at) memcpy(at, value, bytes);
    if (to->arguments) to->arguments[to->n_arguments] = at;
    to->n_arguments++;
    to->bytes += (bytes + 15) & ~(size_t)15;
    return at;
}

/* A buffer, bound by the first run. */
static void put_place(layout *to, int launch, int slot) {
    void *at = put(to, &(CUdeviceptr){0}, sizeof(CUdeviceptr));
    if (at) to->e->places[to->n_places] = (cuda_place){slot, launch, at};
    to->n_places++;
}

static void put_argument(layout *to, const weft__cuda *d, int launch, const weft_argument *a) {
    cuda_executable *e = to->e;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: put_place(to, launch, a->index); break;
    case WEFT_ARGUMENT_FAULTS: put(to, &d->faults, sizeof d->faults); break;
    case WEFT_ARGUMENT_NUMBERS: put(to, a->numbers, (size_t)a->i); break;
    case WEFT_ARGUMENT_WORDS:
        put(to, &e->words, sizeof e->words);
        put(to, &a->i, 8);
        break;
    case WEFT_ARGUMENT_TIMES: e->times = put(to, &(int32_t){1}, 4); break;
    default: break; /* a program has no others */
    }
}

static void lay_out(layout *to, const weft__cuda *d, const weft_gpu_program *p) {
    for (int l = 0; l < p->launches.count; l++) {
        const weft_launch *launch = &p->launches.list[l];
        const int first = to->n_arguments;
        for (int a = 0; a < launch->n_arguments; a++) put_argument(to, d, l, &launch->arguments[a]);
        if (to->values) to->e->launches[l].arguments = to->arguments + first;
    }
}

static weft_status make_arguments(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p) {
    layout to = {.e = e};
    lay_out(&to, d, p);
    e->values = weft__alloc_aligned(d->base.ctx, to.bytes + 16);
    e->arguments = weft__array(d->base.ctx, (size_t)to.n_arguments + 1, sizeof *e->arguments);
    e->places = weft__array(d->base.ctx, (size_t)to.n_places + 1, sizeof *e->places);
    if (!e->values || !e->arguments || !e->places)
        return weft__fail_oom(d->base.ctx, to.bytes, "cuda: a program");
    to = (layout){.e = e, .values = e->values, .arguments = e->arguments};
    lay_out(&to, d, p);
    e->n_places = to.n_places;
    return WEFT_OK;
}

/* ---- building ---- */

/* The scratch of the device, which all programs share. */
static weft_status grow_scratch(weft__cuda *d, int64_t bytes) {
    CUdeviceptr memory;
    if ((size_t)bytes <= d->scratch_bytes) return WEFT_OK;
    WEFT_TRY(weft__cuda_memory(d, (size_t)bytes + 2 * d->guard, "scratch memory", &memory));
    if (d->scratch) weft__cu.cuMemFree_v2(d->scratch); /* which waits */
    weft__gpu_count_memory(&d->base, (size_t)bytes, d->scratch_bytes);
    d->scratch = memory;
    d->scratch_bytes = (size_t)bytes;
    return WEFT_OK;
}

/* What chains read. */
static weft_status make_words(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p) {
    const size_t bytes = p->n_words * sizeof *p->words;
    if (!bytes) return WEFT_OK;
    WEFT_TRY(weft__cuda_memory(d, bytes, "the words of a program", &e->words));
    const CUresult error = weft__cuda_put(d, e->words, p->words, bytes);
    return error ? weft__cuda_fail(d, error, "the words of a program") : WEFT_OK;
}

/* Whether a launch waits for all before it: a command between this and the last one does. */
static bool waits(const weft_commands *commands, const int *of, int l) {
    for (int c = l ? of[l - 1] + 1 : 0; c <= of[l]; c++)
        if (commands->list[c].after) return true;
    return false;
}

static weft_status make_launch(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p, int l,
                               const weft_gpu_text *text) {
    const weft_launch *from = &p->launches.list[l];
    cuda_launch *to = &e->launches[l];
    char name[WEFT_GPU_NAME];
    weft__gpu_kernel_name(text, from->name, name);
    const CUresult error =
        weft__cu.cuModuleGetFunction(&to->function, d->compiler.modules[text->module].module, name);
    if (error) return weft__cuda_fail(d, error, from->name);
    weft__gpu_hook.kernels++;
    if (from->groups[0] > INT32_MAX || from->groups[1] > GROUPS_MOST || from->groups[2] > GROUPS_MOST)
        return weft__fail(d->base.ctx, WEFT_ERR_DEVICE, "%s: %s needs more blocks than a launch can have",
                          d->found->spec, from->name);
    for (int i = 0; i < 3; i++) {
        to->groups[i] = (unsigned)from->groups[i];
        to->items[i] = (unsigned)from->items[i];
    }
    to->command = p->commands[l];
    to->follows = l > 0 && p->commands[l - 1] == to->command;
    to->after = !to->follows && (e->serial || waits(e->commands, p->commands, l));
    for (int a = 0; a < from->n_arguments; a++)
        to->scratch = to->scratch || (from->arguments[a].kind == WEFT_ARGUMENT_BUFFER &&
                                      from->arguments[a].index == p->scratch_slot);
    return WEFT_OK;
}

static weft_status fill(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const size_t count = (size_t)p->launches.count;
    const weft_gpu_text **texts = weft__array(ctx, count + 1, sizeof *texts);
    e->repeats = p->repeats;
    e->n_launches = p->launches.count;
    e->launches = weft__array(ctx, count + 1, sizeof *e->launches);
    e->bound = weft__array(ctx, (size_t)e->n_slots + 1, sizeof *e->bound);
    e->timings = weft__array(ctx, (size_t)e->n_commands + 1, sizeof *e->timings);
    e->clocked = weft__array(ctx, count + 1, sizeof *e->clocked);
    e->events = weft__array(ctx, count + 1, sizeof *e->events);
    weft_status status = texts && e->launches && e->bound && e->timings && e->clocked && e->events
                             ? weft__gpu_compile(&d->compiler, p->launches.list, p->launches.count, texts)
                             : weft__fail_oom(ctx, (count + 1) * sizeof *e->launches, "cuda: a program");
    if (status == WEFT_OK) status = make_words(d, e, p);
    if (status == WEFT_OK) status = make_arguments(d, e, p);
    for (int l = 0; status == WEFT_OK && l < e->n_launches; l++) status = make_launch(d, e, p, l, texts[l]);
    weft__free(ctx, texts);
    return status;
}

static weft_status build(weft__cuda *d, const weft_commands *commands, bool chain, cuda_executable **out) {
    weft_context *ctx = d->base.ctx;
    cuda_executable *e = weft__zalloc(ctx, sizeof *e);
    if (!e) return weft__fail_oom(ctx, sizeof *e, "cuda: a program");
    weft_arena arena;
    weft__arena_init(&arena, ctx);
    weft_gpu_program program = {
        .launches = {.ctx = ctx, .arena = &arena, .target = &d->target, .tuner = &d->tuner}};
    const weft_gpu_wish wish = {.guard = (int64_t)d->guard, .paths = &d->paths, .chain = chain};
    weft__tuner_begin(&d->tuner);
    e->commands = commands;
    e->n_commands = commands->count;
    e->n_slots = commands->n_slots;
    e->serial = chain;
    weft_status status = weft__gpu_program(&program, commands, &wish);
    if (status == WEFT_OK) status = grow_scratch(d, program.scratch_bytes);
    if (status == WEFT_OK) status = fill(d, e, &program);
    weft__gpu_program_free(&program);
    weft__arena_free(&arena);
    if (status != WEFT_OK)
        weft__cuda_executable_free(&d->base, (weft_executable *)e);
    else
        *out = e;
    return status;
}

weft_status weft__cuda_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    weft__cuda *d = weft__cuda_of(device);
    cuda_executable *e = NULL;
    const CUresult error = weft__cuda_enter(d);
    if (error) return weft__cuda_fail(d, error, "a program");
    const weft_status status = build(d, commands, false, &e);
    weft__cuda_leave(d);
    *out = (weft_executable *)e;
    return status;
}

static void free_members(weft__cuda *d, cuda_executable *e) {
    if (weft__cuda_enter(d) == 0) {
        weft__cuda_graphs_free(d, e);
        for (int l = 0; e->events && l <= e->n_launches; l++)
            if (e->events[l]) weft__cu.cuEventDestroy_v2(e->events[l]);
        if (e->words) weft__cu.cuMemFree_v2(e->words);
        weft__cuda_leave(d);
    }
    weft__free_aligned(d->base.ctx, e->values);
    void *const members[] = {e->launches, e->arguments, e->places, e->bound,
                             e->timings,  e->clocked,   e->events};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) weft__free(d->base.ctx, members[i]);
}

void weft__cuda_executable_free(weft_device *device, weft_executable *executable) {
    cuda_executable *e = (cuda_executable *)executable;
    if (!e) return;
    weft__cuda_executable_free(device, (weft_executable *)e->chained);
    free_members(weft__cuda_of(device), e);
    weft__free(device->ctx, e);
}

/* ---- running ---- */

/* Address of what is bound to a slot, 0 where there is nothing. */
static CUdeviceptr slot_memory(const weft__cuda *d, const cuda_executable *e, weft_buffer *const *buffers,
                               int slot) {
    const weft__cuda_buffer *b = slot < e->n_slots ? (const weft__cuda_buffer *)buffers[slot] : NULL;
    return slot == e->n_slots ? d->scratch : b ? b->memory : 0;
}

static weft_status bind(weft__cuda *d, cuda_executable *e, weft_buffer *const *buffers) {
    bool same = true;
    for (int s = 0; s <= e->n_slots; s++) same = same && e->bound[s] == slot_memory(d, e, buffers, s);
    if (same) return WEFT_OK;
    for (int p = 0; p < e->n_places; p++) {
        const CUdeviceptr memory = slot_memory(d, e, buffers, e->places[p].slot);
        if (!memory) return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "cuda: a slot has no buffer");
        memcpy(e->places[p].at, &memory, sizeof memory);
    }
    for (int s = 0; s <= e->n_slots; s++) e->bound[s] = slot_memory(d, e, buffers, s);
    return WEFT_OK;
}

static CUresult launch(weft__cuda *d, const cuda_launch *l) {
    const CUresult error = weft__cuda_gone();
    if (error) return error;
    return weft__cu.cuLaunchKernel(l->function, l->groups[0], l->groups[1], l->groups[2], l->items[0],
                                   l->items[1], l->items[2], 0, d->stream, l->arguments, NULL);
}

static CUresult mark(weft__cuda *d, CUevent *event) {
    CUresult error = *event ? 0 : weft__cu.cuEventCreate(event, CU_EVENT_DEFAULT);
    return error ? error : weft__cu.cuEventRecord(*event, d->stream);
}

/* One after the other, with the time before each and after the last where they are timed. */
static CUresult launch_all(weft__cuda *d, cuda_executable *e) {
    CUresult error = d->timing ? mark(d, &e->events[0]) : 0;
    for (int l = 0; l < e->n_launches && !error; l++) {
        error = launch(d, &e->launches[l]);
        if (d->timing && !error) error = mark(d, &e->events[l + 1]);
    }
    return error;
}

/* The one launch for as many runs as it may do at once; counts them off. */
static CUresult launch_repeated(weft__cuda *d, cuda_executable *e, int *times) {
    const int now = *times < WEFT_GPU_REPEATS ? *times : WEFT_GPU_REPEATS;
    memcpy(e->times, &now, sizeof now);
    *times -= now;
    return launch(d, &e->launches[0]);
}

static CUresult run(weft__cuda *d, cuda_executable *e, int times) {
    const int plain = weft__cuda_hook.plain ? weft__cuda_hook.plain - 1 : PLAIN_RUNS;
    CUresult error = 0;
    while (e->repeats && times > 0 && !error) error = launch_repeated(d, e, &times);
    for (; times > 0 && !error; times--, e->done++) {
        if (d->timing || e->done < plain || e->n_launches == 0) {
            error = launch_all(d, e);
        } else {
            cuda_graph *graph;
            error = weft__cuda_graph(d, e, &graph);
            if (!error) error = weft__cuda_gone();
            if (!error) error = weft__cu.cuGraphLaunch(graph->executable, d->stream);
        }
    }
    return error;
}

/* Between what large uploads bring, and what they must wait for. */
static CUresult run_with(weft__cuda *d, cuda_executable *e, weft_buffer *const *buffers, int times) {
    CUresult error = 0;
    for (int s = 0; s < e->n_slots && !error; s++)
        if (buffers[s]) error = weft__cuda_before_use(d, (weft__cuda_buffer *)buffers[s]);
    if (!error) error = run(d, e, times);
    for (int s = 0; s < e->n_slots && !error; s++)
        if (buffers[s]) error = weft__cuda_after_use(d, (weft__cuda_buffer *)buffers[s]);
    return error;
}

/* The form of the program that runs: with chains once it ran so often that compiling them pays, and not where
 * commands are timed. */
static weft_status choose_form(weft__cuda *d, cuda_executable **e, int times) {
    cuda_executable *plain = *e;
    if (weft__gpu_chain_now(&plain->runs, times))
        WEFT_TRY(weft__gpu_chain_built(build(d, plain->commands, true, &plain->chained)));
    if (plain->chained && plain->chained->words && !d->timing) *e = plain->chained;
    return WEFT_OK;
}

static weft_status submit(weft__cuda *d, cuda_executable *e, weft_buffer *const *buffers, int times) {
    WEFT_TRY(choose_form(d, &e, times));
    WEFT_TRY(bind(d, e, buffers));
    d->unseen = true;
    const CUresult error = run_with(d, e, buffers, times);
    return error ? weft__cuda_fail(d, error, "a run") : WEFT_OK;
}

weft_status weft__cuda_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                           int times) {
    weft__cuda *d = weft__cuda_of(device);
    const CUresult error = weft__cuda_enter(d);
    if (error) return weft__cuda_fail(d, error, "a run");
    const weft_status status = submit(d, (cuda_executable *)executable, buffers, times);
    weft__cuda_leave(d);
    return status;
}

static CUresult read_clocks(cuda_executable *e) {
    CUresult error = 0;
    double before = 0;
    for (int l = 0; l < e->n_launches && !error; l++) {
        float now = 0;
        if (!e->events[l + 1]) return CUDA_ERROR_NOT_READY;
        error = weft__cu.cuEventElapsedTime(&now, e->events[0], e->events[l + 1]);
        e->clocked[l] = (weft_gpu_time){e->launches[l].command, before, 1e6 * (double)now};
        before = 1e6 * (double)now;
    }
    return error;
}

const weft_timing *weft__cuda_timings(weft_device *device, const weft_executable *executable) {
    weft__cuda *d = weft__cuda_of(device);
    cuda_executable *e = (cuda_executable *)(uintptr_t)executable;
    if (!d->timing || weft__cuda_enter(d) != 0) return NULL;
    const CUresult error = read_clocks(e);
    weft__cuda_leave(d);
    if (error) return NULL;
    weft__gpu_fold_times(e->clocked, e->n_launches, e->timings, e->n_commands);
    return e->timings;
}
