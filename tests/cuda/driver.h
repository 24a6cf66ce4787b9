/* Shared by the files of the simulated driver. Read next: driver.c. */
#ifndef WEFT_TESTS_CUDA_DRIVER_H
#define WEFT_TESTS_CUDA_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/gpu/driver/api.h"
#include "items.h"

#ifdef FAKE_HIP /* the library exports HIP's names; tests/hip/driver.c has the functions that differ */
#define CUDA_FUNCTION(name, hip, arguments)                                                                  \
    __attribute__((visibility("default"))) CUresult name arguments __asm__(#hip);
#define CUDA_ADAPTED(name, arguments) CUresult name arguments;
enum { FAKE_VERSION = 60342134 };
#else
#define CUDA_FUNCTION(name, hip, arguments) __attribute__((visibility("default"))) CUresult name arguments;
enum { FAKE_VERSION = 13000 };
#endif
#include "device/gpu/driver/cuda.def"
#undef CUDA_FUNCTION
#undef CUDA_ADAPTED
#define API CUresult

extern fake_cuda_state fake_cuda;
extern pthread_mutex_t fake_lock;

typedef enum fake_kind {
    FAKE_STREAM = 0x5eed,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_FUNCTION,
    FAKE_GRAPH,
    FAKE_NODE,
    FAKE_EXECUTABLE
} fake_kind;

/* The first member of every handle. */
typedef struct fake_handle {
    fake_kind kind;
    bool alive;
    CUcontext context;
    int era;
} fake_handle;

struct CUctx_st {
    int users, era; /* a reset of the context begins a new era */
    CUresult failed;
    struct CUstream_st *streams;
    struct fake_memory *memory;
};

struct CUfunc_st {
    fake_handle handle;
    int most_shared; /* bytes of dynamic shared memory that a launch may request */
    unsigned static_shared, most_threads;
    char name[300];
    fake_code code;
    const unsigned *sizes;
    unsigned n_arguments;
    const struct ptx_function *ptx; /* of a module in PTX */
};

enum { FAKE_FUNCTIONS = 64 };
struct CUmod_st {
    fake_handle handle;
    void *library;
    int file;
    const char *base, *end; /* where it was loaded */
    char *rooms;            /* static shared memory: .bss */
    size_t rooms_bytes;
    struct ptx_module *ptx; /* a module in PTX, instead of a library */
    struct CUfunc_st functions[FAKE_FUNCTIONS];
    int n_functions;
};

/* A kernel with its arguments, or the work of a library with its data, copied when it is submitted. */
typedef struct fake_launch {
    CUfunction function;
    fake_dim blocks, threads;
    unsigned shared_bytes;
    void **values;
    fake_work work; /* used instead of a kernel */
    void *data;
    size_t bytes;
} fake_launch;

/* ---- driver.c ---- */

CUresult fake_refuse(const char *function, CUresult error, const char *why, ...)
    __attribute__((format(printf, 3, 4)));
CUcontext fake_context(const char *function, CUresult *error);
bool fake_alive(const char *function, const void *handle, fake_kind kind, CUcontext context);
void *fake_make(CUcontext context, fake_kind kind, size_t bytes);
void fake_unmake(void *handle);
size_t fake_memory(void);
/* One in n calls is true, by FAKE_CUDA_SEED. */
bool fake_chance(unsigned n);
/* Returns how many contexts there are, and the first one. */
int fake_contexts(CUcontext *first);

/* Begin and end of a driver call that needs a context. */
#define ENTER(name)                                                                                          \
    const char *function_name = (name);                                                                      \
    CUcontext context = fake_context(function_name, &error);                                                 \
    if (error) return error;                                                                                 \
    (void)context;                                                                                           \
    pthread_mutex_lock(&fake_lock)
#define LEAVE(result)                                                                                        \
    do {                                                                                                     \
        error = (result);                                                                                    \
        pthread_mutex_unlock(&fake_lock);                                                                    \
        return error;                                                                                        \
    } while (0)
#define WANT(handle, kind)                                                                                   \
    if (!fake_alive(function_name, handle, kind, context)) LEAVE(CUDA_ERROR_INVALID_HANDLE)

/* ---- memory.c ---- */

/* Are the bytes [at, at + bytes) inside one allocation? */
bool fake_is_memory(CUcontext context, CUdeviceptr at, size_t bytes);
/* Can the device itself read and write this memory of the host? */
bool fake_is_pinned(const void *at, size_t bytes);
void fake_memory_reset(CUcontext context);
/* Is `at` in memory that the device can use? Also gives the range of the allocation. */
bool fake_memory_range(CUcontext context, const char *at, uint64_t *begin, uint64_t *end);

/* ---- order.c ---- */

/* For each stream, how many of its operations have happened. */
enum { FAKE_CLOCKS = 64 };
typedef struct fake_clock {
    unsigned time[FAKE_CLOCKS];
} fake_clock;
void fake_clock_join(fake_clock *to, const fake_clock *from);
/* What the host knows, since it waited. */
fake_clock *fake_host_clock(void);
/* The number of a new stream. */
unsigned fake_clock_new(void);
/* A stream, whose clock this is, begins an operation. */
void fake_order_step(unsigned stream, fake_clock *clock);
/* The operation is a graph. before: the set of its nodes that happen before this one. known gets this one. */
void fake_order_begin_graph(void);
void fake_order_end_graph(void);
void fake_order_begin_node(const uint64_t *before);
void fake_order_end_node(uint64_t *known);
/* The operation, or the node, touches memory; its accesses have numbers from `first` on. */
void fake_order_operation(unsigned first, const char *name);
/* The name of the earlier operation that the access belongs to, if nothing orders the two; or NULL. */
const char *fake_order_missing(unsigned access);

/* ---- race.c ---- */

/* An operation that is no kernel begins, and touches memory. */
void fake_race_operation(const char *name);
void fake_race_range(const void *at, size_t bytes, fake_access how);

/* ---- ptx.c ---- */

bool fake_is_ptx(const void *image);
CUresult fake_ptx_load(CUcontext context, CUmodule *module, const char *text);
CUresult fake_ptx_function(CUmodule module, const char *name, CUfunction *function);
CUresult fake_ptx_run(const fake_launch *l);

/* ---- queue.c ---- */

/* Is there submitted work that is not done? */
bool fake_pending(CUcontext context);
/* Does all submitted work. */
void fake_drain(CUcontext context);

/* Refuses a call that the driver forbids while the thread captures a graph. Returns whether it does. */
bool fake_in_capture(const char *function);

/* ---- launch.c ---- */

/* Checks and copies a launch. Returns NULL and sets *error if it is refused. */
fake_launch *fake_launch_of(const char *name, CUcontext context, CUfunction function, fake_dim blocks,
                            fake_dim threads, unsigned shared_bytes, void **values, CUresult *error);
fake_launch *fake_launch_copy(const fake_launch *l);
void fake_launch_free(fake_launch *l);
/* Runs the launch. */
CUresult fake_launch_run(const fake_launch *l);
CUgraph fake_graph_new(CUcontext context);
struct fake_graph_run; /* an executable graph, as it was when it was launched */
CUresult fake_graph_run_all(struct fake_graph_run *g);
void fake_graph_run_free(struct fake_graph_run *g);
/* The graph that captures what is submitted to the stream. NULL: the work is done, not captured. */
CUgraph fake_captured(CUstream stream);
void fake_submit_launch(CUstream stream, fake_launch *l);
void fake_submit_graph(CUstream stream, struct fake_graph_run *g);

#endif
