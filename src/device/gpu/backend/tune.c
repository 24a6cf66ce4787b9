/* The tuner. For each variant it builds a program of the operation alone and times it. The operands are
 * memory of its own, filled with random numbers, since cards multiply zeros faster.
 * Must not know: operations, OpenCL. Read next: device/cache.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "device/gpu/backend/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cache.h"

/* of timed runs, for all variants of a class */
#define CLASS_SECONDS 0.05
/* of all tuning for one program, including compilation; the rest is tuned in the next process */
#define PROGRAM_SECONDS 2.0
/* multiplications; for less work a choice is not worth its price */
#define WORTH 8e6
/* part of the default variant's time that another one must stay below */
#define BETTER     0.97
#define FILL_BYTES ((size_t)1 << 20)
#define BYTES_MOST ((int64_t)1 << 30)
enum { RUNS_MOST = 20 };

/* The answer as stored on disk. */
typedef struct kept {
    int32_t variants, variant;
    double gain;
} kept;

/* ---- opening and closing ---- */

void weft__tuner_open(weft_tuner *tuner, weft_device *device, const char *identity, bool usually) {
    const char *setting = secure_getenv("WEFT_TUNE");
    *tuner = (weft_tuner){.device = device, .on = usually};
    if (setting && *setting) tuner->on = strcmp(setting, "on") == 0;
    weft__hash_init(&tuner->identity);
    weft__hash_str(&tuner->identity, identity);
}

void weft__tuner_close(weft_tuner *tuner) {
    if (!tuner->device) return;
    weft__free(tuner->device->ctx, tuner->known);
    weft__free(tuner->device->ctx, tuner->device->choices);
    tuner->device->choices = NULL;
    tuner->device->n_choices = 0;
}

void weft__tuner_begin(weft_tuner *tuner) {
    if (!tuner->forced) tuner->seconds = 0;
}

bool weft__tuner_asks(const weft_tuner *tuner, double work) {
    return tuner && (tuner->forced || (tuner->on && work >= WORTH));
}

/* ---- measuring ---- */

double weft__tuner_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds of one run, the minimum of several. Negative after an error. */
static double time_runs(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                        double limit) {
    const weft_device_ops *ops = device->ops;
    double best = -1;
    const double end = weft__tuner_clock() + limit;
    for (int run = -1; run < RUNS_MOST && (run < 1 || weft__tuner_clock() < end);
         run++) { /* the first one warms up */
        const double from = weft__tuner_clock();
        if (ops->run(device, executable, buffers, 1) != WEFT_OK || ops->synchronize(device) != WEFT_OK)
            return -1;
        const double seconds = weft__tuner_clock() - from;
        if (run >= 0 && (best < 0 || seconds < best)) best = seconds;
    }
    return best;
}

static double gpu_tune_measure(weft_tuner *tuner, const weft_tuner_question *q, weft_buffer *const *buffers,
                               int variant) {
    weft_operand operands[] = {{0, 0}, {1, 0}, {2, 0}};
    weft_command command = {
        .kind = WEFT_COMMAND_HEAVY, .after = true, .heavy = *q->heavy, .n_operands = 3, .operands = operands};
    const weft_commands commands = {.count = 1, .n_slots = 3, .list = &command};
    weft_device *device = tuner->device;
    weft_executable *executable = NULL;
    double seconds = -1;
    tuner->forced = variant + 1;
    if (device->ops->build(device, &commands, &executable) == WEFT_OK) {
        seconds = time_runs(device, executable, buffers, CLASS_SECONDS / q->variants);
        device->ops->executable_free(device, executable);
    }
    tuner->forced = 0;
    return seconds;
}

/* Fills a buffer with numbers between 1/2 and 2, whichever float type reads them. */
static bool gpu_tune_fill(weft_device *device, weft_buffer *buffer, size_t bytes) {
    const size_t piece = bytes < FILL_BYTES ? bytes : FILL_BYTES;
    uint32_t *words = weft__alloc(device->ctx, FILL_BYTES);
    bool filled = words != NULL;
    for (size_t i = 0; filled && 4 * i < piece; i++)
        words[i] = 0x3f003f00u | ((uint32_t)weft__mix64(i) & 0x00ff00ffu);
    for (size_t at = 0; filled && at < bytes; at += piece) {
        const size_t some = bytes - at < piece ? bytes - at : piece;
        filled = device->ops->upload(device, buffer, at, words, some) == WEFT_OK;
    }
    weft__free(device->ctx, words);
    return filled;
}

static bool make_buffers(weft_device *device, const weft_tuner_question *q, weft_buffer *buffers[3]) {
    bool made = q->bytes[0] + q->bytes[1] + q->bytes[2] <= BYTES_MOST;
    for (int i = 0; i < 3; i++) {
        const size_t bytes = (size_t)q->bytes[i];
        made = made && device->ops->buffer_new(device, bytes, &buffers[i]) == WEFT_OK &&
               gpu_tune_fill(device, buffers[i], bytes);
    }
    return made;
}

/* Measures all variants. Returns false if time or memory was not enough. */
static bool measure_all(weft_tuner *tuner, const weft_tuner_question *q, kept *found) {
    weft_device *device = tuner->device;
    const weft_error error = device->ctx->error; /* errors of tuning must not reach the caller */
    const uint64_t peak = device->bytes_peak;
    weft_buffer *buffers[3] = {NULL};
    double seconds[WEFT_TUNER_VARIANTS], from = weft__tuner_clock();
    bool all = make_buffers(device, q, buffers);
    for (int variant = 0; all && variant < q->variants; variant++) {
        seconds[variant] = gpu_tune_measure(tuner, q, buffers, variant);
        all = seconds[variant] > 0 && !weft__interrupted(device->ctx) &&
              (variant == q->variants - 1 || tuner->seconds + weft__tuner_clock() - from < PROGRAM_SECONDS);
    }
    for (int i = 0; i < 3; i++)
        if (buffers[i]) device->ops->buffer_free(device, buffers[i]);
    device->ctx->error = error;
    device->bytes_peak = peak > device->bytes_in_use ? peak : device->bytes_in_use;
    tuner->seconds += weft__tuner_clock() - from;
    if (!all) return false;
    int best = q->usual;
    for (int variant = 0; variant < q->variants; variant++)
        if (seconds[variant] < seconds[best] && seconds[variant] < BETTER * seconds[q->usual]) best = variant;
    *found = (kept){.variants = q->variants, .variant = best, .gain = seconds[q->usual] / seconds[best]};
    return true;
}

/* ---- choosing ---- */

static weft_hash key_on_disk(const weft_tuner *tuner, weft_hash class) {
    weft__hash_u64(&class, tuner->identity.a);
    weft__hash_u64(&class, tuner->identity.b);
    return class;
}

bool weft__tuner_kept(const weft_tuner *tuner, weft_hash key, void *to, size_t bytes) {
    const weft_device *device = tuner->device;
    void *found;
    size_t size;
    for (int i = 0; i < device->n_given; i++) {
        const weft_tile_choice *choice = &device->given[i];
        if (!weft__hash_equal(choice->key, key) || choice->bytes != bytes) continue;
        memcpy(to, choice->kept, bytes);
        return true;
    }
    if (!weft__gpu_cache_load(device->ctx, key, &found, &size)) return false;
    if (size == bytes) memcpy(to, found, size);
    weft__free(device->ctx, found);
    return size == bytes;
}

static bool gpu_tune_load(weft_tuner *tuner, const weft_tuner_question *q, kept *found) {
    return weft__tuner_kept(tuner, key_on_disk(tuner, q->key), found, sizeof *found) &&
           found->variants == q->variants && found->variant >= 0 && found->variant < q->variants;
}

void weft__tuner_note(weft_tuner *tuner, weft_tile_choice *choice, weft_hash key, const void *answer,
                      size_t bytes) {
    weft_device *device = tuner->device;
    weft_context *ctx = device->ctx;
    if (!weft__grow(ctx, &device->choices, &tuner->choices_capacity, (size_t)device->n_choices,
                    sizeof *device->choices))
        return;
    if (!isfinite(choice->gain)) choice->gain = 1; /* a file may hold any number */
    choice->key = key;
    choice->bytes = bytes <= WEFT_CHOICE_BYTES ? bytes : 0;
    memcpy(choice->kept, answer, choice->bytes);
    device->choices[device->n_choices++] = *choice;
    weft__log(ctx, WEFT_LOG_INFO, "%s: %s and similar ones: %s is %.2f times as fast as the usual variant",
              device->name, choice->what, choice->chosen, choice->gain);
}

/* Stores an answer for later questions. */
static void remember(weft_tuner *tuner, const weft_tuner_question *q, const kept *found) {
    weft_context *ctx = tuner->device->ctx;
    if (!weft__grow(ctx, &tuner->known, &tuner->known_capacity, tuner->n_known, sizeof *tuner->known)) return;
    tuner->known[tuner->n_known++] = (struct weft_tuner_choice){.key = q->key, .variant = found->variant};
    weft_tile_choice choice = {.gain = found->gain};
    memcpy(choice.what, q->what, sizeof choice.what);
    memcpy(choice.chosen, q->names[found->variant], sizeof choice.chosen);
    weft__tuner_note(tuner, &choice, key_on_disk(tuner, q->key), found, sizeof *found);
}

int weft__tuner_choose(weft_tuner *tuner, const weft_tuner_question *q) {
    kept found;
    if (tuner->forced) return tuner->forced <= q->variants ? tuner->forced - 1 : q->usual;
    for (size_t i = 0; i < tuner->n_known; i++)
        if (weft__hash_equal(tuner->known[i].key, q->key)) return tuner->known[i].variant;
    if (!gpu_tune_load(tuner, q, &found)) {
        if (tuner->seconds >= PROGRAM_SECONDS || !measure_all(tuner, q, &found)) return q->usual;
        weft__gpu_cache_store(tuner->device->ctx, key_on_disk(tuner, q->key), &found, sizeof found);
    }
    remember(tuner, q, &found);
    return found.variant;
}
