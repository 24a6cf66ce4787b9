/* Finds the kernel sources that are new, divides them into modules and compiles the modules in parallel.
 * Must not know: OpenCL, CUDA. Read next: cache.h, opencl/compile.c, driver/compile.c. */
#include "device/gpu/backend/compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/threads.h"
#include "device/gpu/backend/cache.h"
#include "device/gpu/backend/names.h"

enum { THREADS_MOST = 16 };

/* A kernel source that the device has not compiled yet. */
typedef struct fresh {
    const weft_launch *launch;
    weft_gpu_source source; /* its field `module` is the number of the unit */
} fresh;

typedef struct work {
    weft_gpu_compiler *c;
    weft_context *ctx;
    weft_arena arena;
    weft_hash *keys; /* of the launches' sources */
    fresh *list;
    size_t count, capacity;
    weft_gpu_unit *units;
    int n_units;
    atomic_int next;
    atomic_bool stopped; /* no further unit is started */
    pthread_t caller;
} work;

/* ---- new kernel sources ---- */

static weft_hash key_of(const weft_launch *launch) {
    weft_hash key;
    weft__hash_init(&key);
    if (launch->call) return key;
    weft__hash_u64(&key, launch->prelude);
    weft__hash_str(&key, launch->source);
    return key;
}

/* Returns where the source is, or belongs, in the device's list, which is sorted by key. */
static size_t place_of(const weft_gpu_compiler *c, weft_hash key) {
    size_t from = 0, to = c->n_sources;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const weft_hash at = c->sources[middle].key;
        if (at.a < key.a || (at.a == key.a && at.b < key.b))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static weft_gpu_source *gpu_compile_find(const weft_gpu_compiler *c, weft_hash key) {
    const size_t place = place_of(c, key);
    return place < c->n_sources && weft__hash_equal(c->sources[place].key, key) ? &c->sources[place] : NULL;
}

/* Adds a new source to the device's list, without a module for now. */
static weft_status meet(work *w, const weft_launch *launch, weft_hash key) {
    weft_gpu_compiler *c = w->c;
    const size_t place = place_of(c, key);
    if (place < c->n_sources && weft__hash_equal(c->sources[place].key, key)) return WEFT_OK;
    if (!weft__grow(w->ctx, &w->list, &w->capacity, w->count, sizeof *w->list) ||
        !weft__grow(w->ctx, &c->sources, &c->source_capacity, c->n_sources, sizeof *c->sources))
        return weft__fail_oom(w->ctx, sizeof *w->list, "a kernel");
    memmove(&c->sources[place + 1], &c->sources[place], (c->n_sources - place) * sizeof *c->sources);
    c->sources[place] = (weft_gpu_source){.key = key, .module = -1};
    c->n_sources++;
    w->list[w->count++] = (fresh){.launch = launch, .source = {.key = key, .module = -1}};
    return WEFT_OK;
}

/* Removes sources that were not compiled. */
static void forget_failed(weft_gpu_compiler *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].module >= 0) c->sources[kept++] = c->sources[i];
    c->n_sources = kept;
}

static weft_status gpu_compile_collect(work *w, const weft_launch *launches, int count) {
    w->keys = weft__arena_alloc(&w->arena, ((size_t)count + 1) * sizeof *w->keys);
    if (!w->keys) return weft__fail_oom(w->ctx, (size_t)count * sizeof *w->keys, "kernels");
    for (int i = 0; i < count; i++) {
        w->keys[i] = key_of(&launches[i]);
        if (!launches[i].call) WEFT_TRY(meet(w, &launches[i], w->keys[i]));
    }
    if (w->count && weft__gpu_hook.known_only) {
        weft__gpu_hook.refused++;
        return weft__fail(w->ctx, WEFT_ERR_DEVICE, "%s: kernel %s is not compiled", w->c->device->name,
                          w->list[0].launch->name);
    }
    weft__gpu_hook.sources += (int)w->count;
    for (size_t i = 0; weft__gpu_hook.met && i < w->count; i++)
        weft__gpu_hook.met(w->list[i].source.key.a, w->list[i].source.key.b);
    return WEFT_OK;
}

/* ---- units ---- */

/* Returns whether a source gets names of its own, so that it can share a module. */
static bool has_own_names(const work *w, const weft_launch *l) {
    return l->shares || (w->c->joins && l->may_fuse);
}

static bool goes_into(const work *w, const weft_gpu_unit *u, const fresh *f) {
    return has_own_names(w, u->launch) && has_own_names(w, f->launch) &&
           (w->c->joins || u->prelude == f->launch->prelude) && u->sources < w->c->together;
}

/* Assigns each new source to a unit. */
static weft_status divide(work *w) {
    w->units = weft__arena_alloc(&w->arena, (w->count + 1) * sizeof *w->units);
    if (!w->units) return weft__fail_oom(w->ctx, w->count * sizeof *w->units, "kernels");
    for (size_t i = 0; i < w->count; i++) {
        fresh *f = &w->list[i];
        int k = 0;
        while (k < w->n_units && !goes_into(w, &w->units[k], f)) k++;
        if (k == w->n_units) w->units[w->n_units++].launch = f->launch;
        w->units[k].prelude |= f->launch->prelude;
        w->units[k].sources++;
        f->source.module = k;
        f->source.shares = f->launch->shares;
        f->source.joins = !f->launch->shares && has_own_names(w, f->launch);
    }
    return WEFT_OK;
}

void weft__gpu_kernel_name(const weft_gpu_source *source, const char *name, char to[WEFT_GPU_NAME]) {
    if (source->shares)
        snprintf(to, WEFT_GPU_NAME, "k_%016" PRIx64, source->key.a);
    else if (source->joins)
        snprintf(to, WEFT_GPU_NAME, "%s_%016" PRIx64, name, source->key.a);
    else
        snprintf(to, WEFT_GPU_NAME, "%s", name);
}

/* Writes a source of a module, with names that no other source of the module has. */
static void put_source(weft_text *out, const fresh *f) {
    const char *name = f->launch->name, *source = f->launch->source;
    char own[WEFT_GPU_NAME];
    weft__gpu_kernel_name(&f->source, name, own);
    if (f->source.shares) {
        weft__put(out, "#define %s %s\n#define %s_group %s_group\n", name, own, name, own);
        weft__put(out, "%s\n#undef %s\n#undef %s_group\n", source, name, name);
    } else if (f->source.joins) {
        weft__gpu_put_names(out, source, own + strlen(name) + 1);
        weft__put(out, "%s\n", source);
        weft__gpu_forget_names(out, source);
    } else
        weft__put(out, "%s", source);
}

static void put_text(const work *w, int k, weft_text *out) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(w->c->dialect, w->units[k].prelude, parts);
    for (int i = 0; i < n; i++) weft__put(out, "%s", parts[i]);
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].source.module == k) put_source(out, &w->list[i]);
}

/* Writes the source of a unit, and the hash of all that its binary depends on. */
static weft_status write_text(work *w, int k) {
    weft_gpu_unit *u = &w->units[k];
    weft_text length = weft__text(NULL, 0);
    put_text(w, k, &length);
    char *source = weft__arena_alloc(&w->arena, length.length + 1);
    if (!source) return weft__fail_oom(w->ctx, length.length, "a kernel source");
    weft_text out = weft__text(source, length.length + 1);
    put_text(w, k, &out);
    u->source = source;
    weft__hash_init(&u->key);
    weft__hash_str(&u->key, w->c->identity);
    weft__hash_str(&u->key, w->c->options);
    weft__hash_str(&u->key, source);
    return WEFT_OK;
}

/* ---- compiling ---- */

static void *compile_next(void *user) {
    work *w = user;
    const bool asks = pthread_equal(pthread_self(), w->caller);
    for (int k = w->next++; k < w->n_units; k = w->next++) {
        weft_gpu_unit *u = &w->units[k];
        if (asks && weft__interrupted(w->ctx)) w->stopped = true;
        if (w->stopped) break;
        u->met = true;
        w->c->compile(w->c, u);
        if (u->fresh)
            weft__gpu_hook.compiles++;
        else
            weft__gpu_hook.from_cache++;
    }
    return NULL;
}

static void compile_all(work *w) {
    int threads = weft__processors() < THREADS_MOST ? weft__processors() : THREADS_MOST;
    if (threads > w->n_units) threads = w->n_units;
    w->caller = pthread_self();
    weft__parallel(threads, compile_next, w);
}

/* Reports a compiler error. The message begins with the compiler's own text. The whole source goes to the
 * log. */
weft_status weft__gpu_refused(weft_gpu_compiler *c, const weft_gpu_unit *u, const char *message) {
    weft_device *device = c->device;
    weft__log(device->ctx, WEFT_LOG_DEBUG, "%s", u->source);
    return weft__fail(device->ctx, WEFT_ERR_DEVICE, "%s: its compiler refuses kernel %s%s: %.600s",
                      device->name, u->launch->name,
                      u->sources > 1 ? " or one of those compiled with it" : "", message);
}

/* Makes the sources known to the device, after all of them are compiled. */
static weft_status keep(work *w) {
    weft_gpu_compiler *c = w->c;
    const size_t first = c->n_modules;
    for (int k = 0; k < w->n_units; k++) {
        weft_gpu_unit *u = &w->units[k];
        if (!weft__grow(w->ctx, &c->modules, &c->module_capacity, c->n_modules, sizeof *c->modules))
            return weft__fail_oom(w->ctx, sizeof *c->modules, "a kernel");
        c->modules[c->n_modules++] = (weft_gpu_module){u->module, u->key, u->fresh};
        u->module = NULL; /* now the device owns it */
        if (u->fresh && u->binary) weft__gpu_cache_store(w->ctx, u->key, u->binary, u->binary_bytes);
    }
    for (size_t i = 0; i < w->count; i++) {
        weft_gpu_source *source = gpu_compile_find(c, w->list[i].source.key);
        *source = w->list[i].source;
        source->module += (int)first;
    }
    return WEFT_OK;
}

static weft_status compile_fresh(work *w) {
    for (int k = 0; k < w->n_units; k++) {
        WEFT_TRY(write_text(w, k));
        if (!weft__gpu_cache_load(w->ctx, w->units[k].key, &w->units[k].binary, &w->units[k].binary_bytes))
            w->units[k].binary = NULL;
    }
    compile_all(w);
    weft_status status = WEFT_OK;
    if (w->n_units && weft__gpu_hook.fail_compile && --weft__gpu_hook.fail_compile == 0)
        w->units[0].error = WEFT_GPU_TEST_ERROR;
    for (int k = 0; k < w->n_units; k++) { /* all of them, since each may hold resources */
        if (!w->units[k].met) continue;
        const weft_status finished = w->c->finish(w->c, &w->units[k]);
        if (status == WEFT_OK) status = finished;
    }
    if (status == WEFT_OK && w->stopped)
        return weft__fail(w->ctx, WEFT_ERR_STOPPED,
                          "%s: compiling was stopped between two kernels, as the program asked",
                          w->c->device->name);
    return status == WEFT_OK ? keep(w) : status;
}

weft_status weft__gpu_compile(weft_gpu_compiler *c, const weft_launch *launches, int count,
                              const weft_gpu_source **sources) {
    work w = {.c = c, .ctx = c->device->ctx};
    weft__arena_init(&w.arena, w.ctx);
    weft_status status = gpu_compile_collect(&w, launches, count);
    if (status == WEFT_OK) status = divide(&w);
    if (status == WEFT_OK) status = compile_fresh(&w);
    if (status != WEFT_OK) forget_failed(c);
    for (int i = 0; status == WEFT_OK && i < count; i++) sources[i] = gpu_compile_find(c, w.keys[i]);
    for (int k = 0; k < w.n_units; k++) {
        weft__free(w.ctx, w.units[k].binary);
        if (w.units[k].module) c->release(c, w.units[k].module);
    }
    weft__free(w.ctx, w.list);
    weft__arena_free(&w.arena);
    return status;
}

void weft__gpu_compiler_close(weft_gpu_compiler *c) {
    if (!c->device) return; /* the device could not be opened */
    for (size_t i = 0; i < c->n_modules; i++) c->release(c, c->modules[i].module);
    weft__free(c->device->ctx, c->modules);
    weft__free(c->device->ctx, c->sources);
    c->modules = NULL;
    c->sources = NULL;
    c->n_modules = c->n_sources = c->module_capacity = c->source_capacity = 0;
}
