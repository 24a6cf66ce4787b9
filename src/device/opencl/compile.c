/* Texts as programs of OpenCL, each compiled once a device, or found on disk. A compiler takes long to begin
 * (PoCL 80 ms a program, 8 more for each kernel in it), so the texts that a program of Weft adds, as far as
 * they define nothing but their kernel, share one program, under names that cannot meet; on cards several,
 * which are compiled at once. Must not know: what they compute. Read next: gpu/text.c, gpu/cache.c. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/gpu/cache.h"
#include "device/opencl/opencl.h"

/* Denormals, NaN and infinity as IEEE 754 has them, which is what there is without further options. */
static const char options[] = "-cl-std=CL1.2";
enum { TOGETHER_ON_CARDS = 8, THREADS_MOST = 16 };

/* A program in the making. */
typedef struct unit {
    const char **sources;
    int n_sources;
    weft_hash key; /* of what is compiled, by what */
    void *binary;  /* as it was found on disk, or NULL */
    size_t binary_bytes;
    cl_program program;
    cl_int error;
    const weft_launch *launch; /* the first of its texts */
    int texts;
} unit;

/* A text that the device has not met. */
typedef struct fresh {
    const weft_launch *launch;
    weft__opencl_text text; /* its program: number of the unit */
} fresh;

typedef struct work {
    weft__opencl *d;
    weft_context *ctx;
    weft_arena arena;
    fresh *list;
    size_t count, capacity;
    unit *units;
    int n_units;
    atomic_int next;
} work;

/* ---- what is new ---- */

static weft_hash key_of(const weft_launch *launch) {
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_u64(&key, launch->prelude);
    weft__hash_str(&key, launch->text);
    return key;
}

static const weft__opencl_text *find(const weft__opencl *d, weft_hash key) {
    for (size_t i = 0; i < d->n_texts; i++)
        if (weft__hash_equal(d->texts[i].key, key)) return &d->texts[i];
    return NULL;
}

static weft_status collect(work *w, const weft_launch *launches, int count) {
    for (int i = 0; i < count; i++) {
        const weft_hash key = key_of(&launches[i]);
        size_t k = 0;
        while (k < w->count && !weft__hash_equal(w->list[k].text.key, key)) k++;
        if (k < w->count || find(w->d, key)) continue;
        if (!weft__grow(w->ctx, &w->list, &w->capacity, w->count, sizeof *w->list))
            return weft__fail_oom(w->ctx, sizeof *w->list, "a kernel");
        w->list[w->count++] = (fresh){.launch = &launches[i], .text = {.key = key, .program = -1}};
    }
    if (w->count && weft__opencl_hook.known_only) {
        weft__opencl_hook.refused++;
        return weft__fail(w->ctx, WEFT_ERR_DEVICE, "%s: kernel %s is not compiled", w->d->found->spec,
                          w->list[0].launch->name);
    }
    weft__opencl_hook.texts += (int)w->count;
    return WEFT_OK;
}

/* ---- units ---- */

static bool goes_into(const work *w, const unit *u, const fresh *f) {
    const int most = w->d->found->cpu ? (1 << 20) : TOGETHER_ON_CARDS;
    return u->launch->shares && f->launch->shares && u->launch->prelude == f->launch->prelude &&
           u->texts < most;
}

/* Which unit each new text is compiled in. */
static weft_status divide(work *w) {
    w->units = weft__arena_alloc(&w->arena, (w->count + 1) * sizeof *w->units);
    if (!w->units) return weft__fail_oom(w->ctx, w->count * sizeof *w->units, "kernels");
    for (size_t i = 0; i < w->count; i++) {
        fresh *f = &w->list[i];
        int k = 0;
        while (k < w->n_units && !goes_into(w, &w->units[k], f)) k++;
        if (k == w->n_units) w->units[w->n_units++].launch = f->launch;
        w->units[k].texts++;
        f->text.program = k;
        f->text.shares = f->launch->shares;
    }
    return WEFT_OK;
}

void weft__opencl_kernel_name(const weft__opencl_text *text, const char *name, char to[WEFT_OPENCL_NAME]) {
    if (text->shares)
        snprintf(to, WEFT_OPENCL_NAME, "k_%016" PRIx64, text->key.a);
    else
        snprintf(to, WEFT_OPENCL_NAME, "%s", name);
}

/* The sources of a unit in order, and the hash of all that its binary depends on. */
static weft_status write_sources(work *w, int k) {
    unit *u = &w->units[k];
    const char *parts[WEFT_GPU_PARTS];
    const int n = weft__gpu_parts(w->d->target.language, u->launch->prelude, parts);
    u->sources = weft__arena_alloc(&w->arena, (size_t)(n + 3 * u->texts) * sizeof *u->sources);
    if (!u->sources) return weft__fail_oom(w->ctx, 0, "a kernel's text");
    for (int i = 0; i < n; i++) u->sources[u->n_sources++] = parts[i];
    for (size_t i = 0; i < w->count; i++) {
        const fresh *f = &w->list[i];
        char name[WEFT_OPENCL_NAME];
        if (f->text.program != k) continue;
        const size_t bytes = strlen(f->launch->name) + sizeof name + 32;
        char *begin = weft__arena_alloc(&w->arena, 2 * bytes), *end = begin + bytes;
        if (!begin) return weft__fail_oom(w->ctx, 2 * bytes, "a kernel's text");
        weft__opencl_kernel_name(&f->text, f->launch->name, name);
        if (f->text.shares) {
            snprintf(begin, bytes, "#define %s %s\n", f->launch->name, name);
            snprintf(end, bytes, "\n#undef %s\n", f->launch->name);
        }
        u->sources[u->n_sources++] = begin;
        u->sources[u->n_sources++] = f->launch->text;
        u->sources[u->n_sources++] = end;
    }
    weft__hash_init(&u->key);
    weft__hash_str(&u->key, w->d->found->detail); /* device, platform, driver, with their versions */
    weft__hash_str(&u->key, options);
    for (int i = 0; i < u->n_sources; i++) weft__hash_str(&u->key, u->sources[i]);
    return WEFT_OK;
}

/* ---- compiling ---- */

/* From the bytes on disk; false when the driver does not take them. */
static bool from_binary(const weft__opencl *d, unit *u) {
    const unsigned char *bytes = u->binary;
    cl_int status = 0, error = 0;
    u->program = weft__cl.clCreateProgramWithBinary(d->context, 1, &d->found->id, &u->binary_bytes, &bytes,
                                                    &status, &error);
    if (!error && !status) error = weft__cl.clBuildProgram(u->program, 1, &d->found->id, options, NULL, NULL);
    if (!error && !status) return true;
    if (u->program) weft__cl.clReleaseProgram(u->program);
    u->program = NULL;
    return false;
}

static void compile(const weft__opencl *d, unit *u) {
    if (u->binary && from_binary(d, u)) {
        weft__opencl_hook.from_cache++;
        return;
    }
    u->binary_bytes = 0; /* tells that it was compiled here */
    u->program =
        weft__cl.clCreateProgramWithSource(d->context, (cl_uint)u->n_sources, u->sources, NULL, &u->error);
    if (u->error) return;
    weft__opencl_hook.compiles++;
    u->error = weft__cl.clBuildProgram(u->program, 1, &d->found->id, options, NULL, NULL);
}

static void *compile_next(void *user) {
    work *w = user;
    for (int k = w->next++; k < w->n_units; k = w->next++) compile(w->d, &w->units[k]);
    return NULL;
}

static void compile_all(work *w) {
    pthread_t threads[THREADS_MOST];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int n = 0;
    while (n + 1 < w->n_units && n + 1 < processors && n < THREADS_MOST &&
           pthread_create(&threads[n], NULL, compile_next, w) == 0)
        n++;
    compile_next(w);
    while (n > 0) pthread_join(threads[--n], NULL);
}

/* The compiler's own words go to the log, their beginning into the error. */
static weft_status refused(weft__opencl *d, const unit *u) {
    char log[4000] = "";
    if (u->error != OPENCL_BUILD_PROGRAM_FAILURE) return weft__opencl_fail(d, u->error, "compiling kernels");
    size_t bytes = 0;
    const bool known = weft__cl.clGetProgramBuildInfo(u->program, d->found->id, OPENCL_PROGRAM_BUILD_LOG,
                                                      sizeof log - 1, log, &bytes) == 0;
    for (int i = 0; i < u->n_sources; i++) weft__log(d->base.ctx, WEFT_LOG_DEBUG, "%s", u->sources[i]);
    return weft__fail(d->base.ctx, WEFT_ERR_DEVICE, "%s: its compiler refuses kernel %s%s: %.600s",
                      d->found->spec, u->launch->name, u->texts > 1 ? " or one of those beside it" : "",
                      known ? log : "for reasons longer than could be read");
}

/* Texts become known when all of them are compiled. */
static weft_status keep(work *w) {
    weft__opencl *d = w->d;
    const size_t first = d->n_programs;
    for (int k = 0; k < w->n_units; k++) {
        if (!weft__grow(w->ctx, &d->programs, &d->program_capacity, d->n_programs, sizeof *d->programs))
            return weft__fail_oom(w->ctx, sizeof *d->programs, "a kernel");
        d->programs[d->n_programs++] =
            (weft__opencl_program){w->units[k].program, w->units[k].key, w->units[k].binary_bytes == 0};
        w->units[k].program = NULL; /* is the device's */
    }
    for (size_t i = 0; i < w->count; i++) {
        if (!weft__grow(w->ctx, &d->texts, &d->text_capacity, d->n_texts, sizeof *d->texts))
            return weft__fail_oom(w->ctx, sizeof *d->texts, "a kernel");
        weft__opencl_text text = w->list[i].text;
        text.program += (int)first;
        d->texts[d->n_texts++] = text;
    }
    return WEFT_OK;
}

static weft_status compile_fresh(work *w) {
    for (int k = 0; k < w->n_units; k++) {
        WEFT_TRY(write_sources(w, k));
        if (!weft__gpu_cache_load(w->ctx, w->units[k].key, &w->units[k].binary, &w->units[k].binary_bytes))
            w->units[k].binary = NULL;
    }
    compile_all(w);
    if (w->n_units && weft__opencl_hook.fail_compile && --weft__opencl_hook.fail_compile == 0)
        w->units[0].error = OPENCL_BUILD_PROGRAM_FAILURE;
    for (int k = 0; k < w->n_units; k++)
        if (w->units[k].error) return refused(w->d, &w->units[k]);
    return keep(w);
}

weft_status weft__opencl_compile(weft__opencl *d, const weft_launch *launches, int count,
                                 const weft__opencl_text **texts) {
    work w = {.d = d, .ctx = d->base.ctx};
    weft__arena_init(&w.arena, w.ctx);
    weft_status status = collect(&w, launches, count);
    if (status == WEFT_OK) status = divide(&w);
    if (status == WEFT_OK) status = compile_fresh(&w);
    for (int k = 0; k < w.n_units; k++) {
        weft__free(w.ctx, w.units[k].binary);
        if (w.units[k].program) weft__cl.clReleaseProgram(w.units[k].program);
    }
    weft__free(w.ctx, w.list);
    weft__arena_free(&w.arena);
    for (int i = 0; status == WEFT_OK && i < count; i++) texts[i] = find(d, key_of(&launches[i]));
    return status;
}

/* ---- the end: what was compiled goes to disk, now that drivers have also made what first launches ask for
 * ---- */

static void store(weft__opencl *d, const weft__opencl_program *p) {
    size_t bytes = 0;
    if (weft__cl.clGetProgramInfo(p->program, OPENCL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != 0 ||
        !bytes)
        return;
    unsigned char *binary = weft__alloc(d->base.ctx, bytes);
    if (binary && weft__cl.clGetProgramInfo(p->program, OPENCL_PROGRAM_BINARIES, sizeof(unsigned char *),
                                            &binary, NULL) == 0)
        weft__gpu_cache_store(d->base.ctx, p->key, binary, bytes);
    weft__free(d->base.ctx, binary);
}

void weft__opencl_texts_free(weft__opencl *d) {
    const bool kept = d->n_programs && weft__gpu_cache_wanted();
    for (size_t i = 0; i < d->n_programs; i++) {
        if (d->programs[i].fresh && kept) store(d, &d->programs[i]);
        weft__cl.clReleaseProgram(d->programs[i].program);
    }
    weft__free(d->base.ctx, d->programs);
    weft__free(d->base.ctx, d->texts);
    d->programs = NULL;
    d->texts = NULL;
    d->n_programs = d->n_texts = d->program_capacity = d->text_capacity = 0;
}
