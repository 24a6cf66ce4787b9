/* A driver of CUDA for tests, on machines without a card: libcuda.so.1 and libnvrtc.so.13 that run texts of
 * CUDA C++ on the processor, by the host's compiler. It is no card: what it shows is that Weft calls the
 * driver as the driver wants to be called, and that the texts compute what they should when each block's
 * threads run one after the other; it shows nothing of what a card does, or how fast. Tests find it by
 * LD_LIBRARY_PATH alone.
 *
 * What it is strict about: nothing that was submitted happens before somebody waits for it, so that memory
 * that is used again too early shows; independent nodes of a graph run in another order than they were added;
 * new memory is garbage, and has guards around it; a call that the real driver refuses is refused, said
 * aloud, and makes the process end with 1. Read next: driver.c. */
#ifndef WEFT_TESTS_CUDA_FAKE_H
#define WEFT_TESTS_CUDA_FAKE_H

/* What tests set and read, under the name fake_cuda in the library. */
typedef struct fake_cuda_state {
    /* set; 0: nothing */
    long memory;      /* bytes that there are, instead of 1 GiB */
    long fail_alloc;  /* 1: the next allocation fails ... */
    long fail_launch; /* 1: the next kernel that runs fails, and with it its context ... */
    /* counted */
    long calls;                                     /* what libraries submitted */
    long launches, graph_launches, graphs, updates; /* updates: nodes of graphs that got other arguments */
    long kernels;                                   /* that ran */
    long waits;                                     /* calls that let the host wait */
    long allocations, uploads, downloads, modules;
    long in_use;  /* bytes */
    long handles; /* streams, events, modules, graphs and memory that exist */
    long refused; /* calls */
} fake_cuda_state;

/* ---- between the driver and what it runs ---- */

typedef struct fake_dim {
    unsigned x, y, z;
} fake_dim;

/* Copies into local memory that a thread began, and in which group of them; done when it waits for them. */
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

/* What a library for tests does in a stream, or as a node of a graph that is captured there; the data are
 * copied. Returns a CUresult. */
struct CUstream_st;
typedef unsigned (*fake_work)(void *data);
unsigned fake_enqueue(struct CUstream_st *stream, fake_work work, const void *data, unsigned long bytes);
/* Whether so many bytes are in one allocation of the context that the thread has. */
int fake_is_on_card(const void *at, unsigned long bytes);

/* What tests set and read of its cuBLASLt, under the name fake_blas in that library. */
typedef struct fake_blas_state {
    /* set */
    long no_handle, decline; /* cublasLtCreate fails; no product is supported */
    long fail;               /* 1: the next product fails ... */
    long slow_bias;          /* products with a bias take ten times as long */
    /* counted */
    long heuristics, products, epilogues; /* asked for; multiplied, of which with one */
    long last;                            /* number of the algorithm of the last one */
    long objects;                         /* handles and descriptors that exist */
    long refused;                         /* calls */
} fake_blas_state;

/* All that a stream holds happens. */
void fake_settle(struct CUstream_st *stream);

/* Of NCCL, under the name fake_nccl in its library. */
typedef struct fake_nccl_state {
    long fail; /* 1: the next group fails ... */
    long cliques, sums, refused;
} fake_nccl_state;

enum { FAKE_SHARED_MOST = 227 << 10 }; /* bytes of local memory that a launch may ask for */

/* A thread of a block. device.h, in front of every text, shows it as threadIdx and so on. */
typedef struct fake_item {
    fake_dim thread, block, threads, blocks;
    /* Waits for the block, or the warp. */
    void (*meet)(struct fake_item *item, int warp);
    unsigned long *lanes; /* a word for each of the warp's, to exchange */
    fake_copies *copies;
    void *shared; /* what the launch asked for, aligned to 1,024 */
} fake_item;

#endif
