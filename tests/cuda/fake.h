/* A simulated CUDA driver, for tests on machines without a GPU. libcuda.so.1 and libnvrtc.so.13 run CUDA C++
 * kernels on the processor, by the host's C++ compiler. Tests find them by LD_LIBRARY_PATH alone.
 *
 * It shows that Weft calls the driver correctly, and that kernels compute the right results if the threads of
 * a block run one after the other. It shows nothing about the speed of a GPU, or about its parallel
 * behaviour.
 *
 * It is strict:
 * - Submitted work is done only when somebody waits for it. So memory that is reused too early is detected.
 * - Independent nodes of a graph run in another order than they were added.
 * - New memory contains garbage and has guards around it.
 * - A call that the real driver refuses is refused, a message is printed, and the process ends with status 1.
 *
 * Read next: driver.c. */
#ifndef WEFT_TESTS_CUDA_FAKE_H
#define WEFT_TESTS_CUDA_FAKE_H

/* What tests set and read. The library exports it as fake_cuda. */
typedef struct fake_cuda_state {
    /* set by tests; 0: no effect */
    long memory;      /* bytes of device memory, instead of 1 GiB */
    long fail_alloc;  /* 1: the next allocation fails ... */
    long fail_launch; /* 1: the next kernel that runs fails, and its context with it ... */
    /* counters */
    long calls;                                     /* work that libraries submitted */
    long launches, graph_launches, graphs, updates; /* updates: graph nodes that got other arguments */
    long kernels;                                   /* kernels that ran */
    long waits;                                     /* calls that make the host wait */
    long allocations, uploads, downloads, modules;
    long in_use;  /* bytes */
    long handles; /* existing streams, events, modules, graphs and allocations */
    long refused; /* refused calls */
} fake_cuda_state;

/* ---- between the driver and the kernels ---- */

typedef struct fake_dim {
    unsigned x, y, z;
} fake_dim;

/* Asynchronous copies to shared memory that a thread started, and the group of each copy. They are done when
 * the thread waits for them. */
enum { FAKE_COPIES = 512 };
typedef struct fake_later {
    void *to;
    const void *from;
    int bytes, count, group;
} fake_later;
typedef struct fake_copies {
    int count, groups;
    fake_later list[FAKE_COPIES];
} fake_copies;

/* Work that a simulated library submits to a stream, or adds as a node to a graph that is captured there. The
 * data are copied. Returns a CUresult. */
struct CUstream_st;
typedef unsigned (*fake_work)(void *data);
unsigned fake_enqueue(struct CUstream_st *stream, fake_work work, const void *data, unsigned long bytes);
/* Are so many bytes inside one allocation of the thread's current context? */
int fake_is_on_card(const void *at, unsigned long bytes);

/* What tests set and read of the simulated cuBLASLt, which exports it as fake_blas. */
typedef struct fake_blas_state {
    /* set by tests */
    long no_handle, decline; /* cublasLtCreate fails; no matmul is supported */
    long fail;               /* 1: the next matmul fails ... */
    long slow_bias;          /* matmuls with a bias take ten times as long */
    /* counters */
    long heuristics, products, epilogues; /* requests; matmuls; matmuls with an epilogue */
    long last;                            /* number of the algorithm last used */
    long objects;                         /* existing handles and descriptors */
    long refused;                         /* refused calls */
} fake_blas_state;

/* Does all work that the stream holds. */
void fake_settle(struct CUstream_st *stream);

/* The same for the simulated NCCL, which exports it as fake_nccl. */
typedef struct fake_nccl_state {
    long fail; /* 1: the next group fails ... */
    long cliques, sums, refused;
} fake_nccl_state;

enum { FAKE_SHARED_MOST = 227 << 10 }; /* bytes of shared memory that a launch may ask for */

/* A thread of a block. device.h, which precedes every kernel source, makes it available as threadIdx and so
 * on. */
typedef struct fake_item {
    fake_dim thread, block, threads, blocks;
    /* Waits for the other threads of the block, or of the warp. */
    void (*meet)(struct fake_item *item, int warp);
    unsigned long *lanes; /* one word for each lane of the warp, for exchange */
    fake_copies *copies;
    void *shared; /* dynamic shared memory of the launch, aligned to 1,024 */
} fake_item;

#endif
