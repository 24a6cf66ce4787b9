/* Streams and events. Submitted work is done in order, and only when somebody waits or polls often enough.
 * Read next: launch.c. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum fake_what { COPY, SET, RECORD, WAIT, LAUNCH, GRAPH, OTHERS } fake_what;

/* Submitted work. */
typedef struct fake_task {
    struct fake_task *next;
    fake_what what;
    void *to;
    const void *from;
    void *kept; /* what was in the memory of the host when the copy was submitted */
    size_t bytes;
    unsigned char value;
    CUevent event;
    long number; /* index of the record of the event */
    fake_launch *launch;
    struct fake_graph_run *graph;
    fake_ready ready; /* OTHERS: work that waits for another process */
    fake_work work;
    fake_clock known; /* by the host, when it submitted the work */
} fake_task;

struct CUstream_st {
    fake_handle handle;
    struct CUstream_st *next;
    fake_task *first, *last;
    long length;
    CUgraph captured; /* the graph that captures the submitted work */
    unsigned number;  /* of its clock */
    fake_clock clock;
};

struct CUevent_st {
    fake_handle handle;
    bool timed;
    CUstream stream;     /* stream of the newest record */
    long recorded, done; /* number of records submitted, and done */
    double at;
    fake_clock clock; /* of the last record that was done */
};

enum { LENGTH_MOST = 1000 }; /* if a stream holds more, the caller waits, as with the driver */

/* ---- doing the work ---- */

static void step(CUstream s);

static void until(CUevent event, long number) {
    while (event->done < number && event->stream && event->stream->first) step(event->stream);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void copy(const fake_task *t) {
    if (t->kept && fake_is_pinned(t->from, t->bytes) && memcmp(t->from, t->kept, t->bytes) != 0)
        fake_refuse("a copy", CUDA_ERROR_INVALID_VALUE, "the host changed pinned memory that it reads");
    fake_race_operation("a copy");
    fake_race_range(t->from, t->bytes, FAKE_READ);
    fake_race_range(t->to, t->bytes, FAKE_WRITE);
    memcpy(t->to, t->kept ? t->kept : t->from, t->bytes);
}

static void happen(CUstream s, fake_task *t) {
    CUcontext context = s->handle.context;
    CUresult error = 0;
    fake_clock_join(&s->clock, &t->known);
    if (t->what != RECORD && t->what != WAIT) fake_order_step(s->number, &s->clock);
    switch (t->what) {
    case COPY: copy(t); break;
    case SET:
        fake_race_operation("cuMemsetD8Async");
        fake_race_range(t->to, t->bytes, FAKE_WRITE);
        memset(t->to, t->value, t->bytes);
        break;
    case RECORD:
        t->event->at = now();
        t->event->done = t->number;
        t->event->clock = s->clock;
        break;
    case WAIT:
        until(t->event, t->number);
        fake_clock_join(&s->clock, &t->event->clock);
        break;
    case LAUNCH: error = fake_launch_run(t->launch); break;
    case GRAPH: error = fake_graph_run_all(t->graph); break;
    case OTHERS:
        fake_race_operation("a library");
        error = t->work(t->kept);
        t->kept = NULL; /* the library has freed it */
        break;
    }
    if (error && !context->failed) context->failed = error;
}

static void free_task(fake_task *t) {
    if (t->launch) fake_launch_free(t->launch);
    if (t->graph) fake_graph_run_free(t->graph);
    free(t->kept);
    free(t);
}

/* Does the oldest work of a stream. In a context where a kernel failed, only events are done. */
static void step(CUstream s) {
    const struct timespec nap = {0, 100000};
    fake_task *t = s->first;
    if (t->what == OTHERS && !s->handle.context->failed && !t->ready(t->kept)) {
        pthread_mutex_unlock(&fake_lock); /* another thread may be the one that is waited for */
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&fake_lock);
        return;
    }
    s->first = t->next;
    if (!s->first) s->last = NULL;
    s->length--;
    if (!s->handle.context->failed || t->what == RECORD) happen(s, t);
    free_task(t);
}

static fake_task *submit(CUstream s, fake_what what) {
    if (s->captured) fake_refuse("a submission", CUDA_ERROR_INVALID_VALUE, "what a graph cannot have here");
    while (s->length >= LENGTH_MOST) step(s);
    fake_task *t = calloc(1, sizeof *t);
    t->what = what;
    t->known = *fake_host_clock();
    if (s->last)
        s->last->next = t;
    else
        s->first = t;
    s->last = t;
    s->length++;
    return t;
}

/* The host waits for a stream. Before its work, work of another stream may be done. */
static void drain(CUstream s) {
    while (s->first) {
        for (CUstream other = s->handle.context->streams; other; other = other->next)
            if (other != s && other->first && fake_chance(4)) step(other);
        if (s->first) step(s); /* the other stream may have waited for this one */
    }
    fake_clock_join(fake_host_clock(), &s->clock);
}

bool fake_pending(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next)
        if (s->first) return true;
    return false;
}

void fake_drain(CUcontext context) {
    for (CUstream s = context->streams; s; s = s->next) drain(s);
}

__attribute__((visibility("default"))) void fake_settle(CUstream stream) {
    pthread_mutex_lock(&fake_lock);
    drain(stream);
    pthread_mutex_unlock(&fake_lock);
}

static _Thread_local int captures; /* that this thread has begun and not ended */

bool fake_in_capture(const char *function) {
    if (captures) fake_refuse(function, CUDA_ERROR_INVALID_VALUE, "inside a capture");
    return captures > 0;
}

CUgraph fake_captured(CUstream stream) { return stream->captured; }

void fake_submit_launch(CUstream stream, fake_launch *l) { submit(stream, LAUNCH)->launch = l; }
void fake_submit_graph(CUstream stream, struct fake_graph_run *g) { submit(stream, GRAPH)->graph = g; }

__attribute__((visibility("default"))) unsigned fake_enqueue_when(CUstream stream, fake_ready ready,
                                                                  fake_work work, void *data) {
    CUresult error;
    ENTER("a library's work");
    WANT(stream, FAKE_STREAM);
    fake_task *t = submit(stream, OTHERS);
    t->ready = ready;
    t->work = work;
    t->kept = data;
    fake_cuda.calls++;
    LEAVE(0);
}

/* ---- streams ---- */

API cuStreamCreate(CUstream *stream, unsigned flags) {
    CUresult error;
    ENTER("cuStreamCreate");
    if (flags != CU_STREAM_NON_BLOCKING) /* the default stream would order it with all other streams */
        LEAVE(
            fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a stream that waits for the default one"));
    *stream = fake_make(context, FAKE_STREAM, sizeof **stream);
    (*stream)->number = fake_clock_new();
    (*stream)->next = context->streams;
    context->streams = *stream;
    LEAVE(0);
}

API cuStreamDestroy_v2(CUstream stream) {
    CUresult error;
    ENTER("cuStreamDestroy");
    WANT(stream, FAKE_STREAM);
    if (stream->captured) LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "inside a capture"));
    drain(stream);
    CUstream *at = &context->streams;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
    fake_unmake(stream);
    LEAVE(0);
}

API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    CUresult error;
    ENTER("cuStreamBeginCapture");
    WANT(stream, FAKE_STREAM);
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || stream->captured)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "what is not known here"));
    stream->captured = fake_graph_new(context);
    captures++;
    LEAVE(0);
}

API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    CUresult error;
    ENTER("cuStreamEndCapture");
    WANT(stream, FAKE_STREAM);
    if (!stream->captured || !captures)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "no capture of this thread"));
    captures--;
    *graph = stream->captured;
    stream->captured = NULL;
    LEAVE(0);
}

API cuStreamSynchronize(CUstream stream) {
    CUresult error;
    ENTER("cuStreamSynchronize");
    WANT(stream, FAKE_STREAM);
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    fake_cuda.waits++;
    drain(stream);
    LEAVE(context->failed);
}

API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    CUresult error;
    ENTER("cuStreamWaitEvent");
    WANT(stream, FAKE_STREAM);
    WANT(event, FAKE_EVENT);
    (void)flags;
    fake_task *t = submit(stream, WAIT);
    t->event = event;
    t->number = event->recorded;
    LEAVE(0);
}

/* ---- events ---- */

API cuEventCreate(CUevent *event, unsigned flags) {
    CUresult error;
    ENTER("cuEventCreate");
    *event = fake_make(context, FAKE_EVENT, sizeof **event);
    (*event)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    LEAVE(0);
}

API cuEventDestroy_v2(CUevent event) {
    CUresult error;
    ENTER("cuEventDestroy");
    WANT(event, FAKE_EVENT);
    fake_unmake(event);
    LEAVE(0);
}

API cuEventRecord(CUevent event, CUstream stream) {
    CUresult error;
    ENTER("cuEventRecord");
    WANT(stream, FAKE_STREAM);
    WANT(event, FAKE_EVENT);
    fake_task *t = submit(stream, RECORD);
    t->event = event;
    t->number = ++event->recorded;
    event->stream = stream;
    LEAVE(0);
}

/* Each query does some work, so that polling ends. */
API cuEventQuery(CUevent event) {
    CUresult error;
    ENTER("cuEventQuery");
    WANT(event, FAKE_EVENT);
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (event->done == event->recorded) {
        fake_clock_join(fake_host_clock(), &event->clock);
        LEAVE(context->failed);
    }
    if (event->stream->first) step(event->stream);
    LEAVE(CUDA_ERROR_NOT_READY);
}

API cuEventSynchronize(CUevent event) {
    CUresult error;
    ENTER("cuEventSynchronize");
    WANT(event, FAKE_EVENT);
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    fake_cuda.waits++;
    until(event, event->recorded);
    fake_clock_join(fake_host_clock(), &event->clock);
    LEAVE(context->failed);
}

API cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    CUresult error;
    ENTER("cuEventElapsedTime");
    WANT(from, FAKE_EVENT);
    WANT(to, FAKE_EVENT);
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_HANDLE, "an event without a time"));
    if (from->done != from->recorded || to->done != to->recorded) LEAVE(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(to->at - from->at);
    LEAVE(0);
}

/* ---- copies ---- */

static void *pointer(CUdeviceptr p) { return (void *)(uintptr_t)p; }

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    CUresult error;
    ENTER("cuMemcpyHtoDAsync");
    WANT(stream, FAKE_STREAM);
    if (!fake_is_memory(context, to, bytes))
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "%zu bytes to where no memory is", bytes));
    fake_task *t = submit(stream, COPY);
    t->to = pointer(to);
    t->from = from;
    t->bytes = bytes;
    t->kept = memcpy(malloc(bytes + 1), from, bytes);
    fake_cuda.uploads++;
    LEAVE(0);
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult error;
    ENTER("cuMemcpyDtoHAsync");
    WANT(stream, FAKE_STREAM);
    if (!fake_is_memory(context, from, bytes))
        LEAVE(
            fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "%zu bytes from where no memory is", bytes));
    fake_task *t = submit(stream, COPY);
    t->to = to;
    t->from = pointer(from);
    t->bytes = bytes;
    fake_cuda.downloads++;
    LEAVE(0);
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    CUresult error;
    ENTER("cuMemsetD8Async");
    WANT(stream, FAKE_STREAM);
    if (!fake_is_memory(context, to, bytes))
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "%zu bytes to where no memory is", bytes));
    fake_task *t = submit(stream, SET);
    t->to = pointer(to);
    t->value = value;
    t->bytes = bytes;
    LEAVE(0);
}
