/* A simulated CUDA driver, for tests on machines without a GPU. libcuda.so.1 and libnvrtc.so.13 run CUDA C++
 * kernels on the processor, by the host's C++ compiler. Tests find them by LD_LIBRARY_PATH alone.
 *
 * It shows that Weft calls the driver correctly, and that kernels compute the right results in each order
 * that it tries. It shows nothing about the speed of a GPU.
 *
 * The driver is strict:
 * - Submitted work is done only when somebody waits for it. So memory that is reused too early is detected.
 * - Streams that no event orders, and nodes of a graph that do not depend on each other, run in an order
 * drawn from a seed.
 * - New memory contains garbage and has guards around it.
 * - Pinned memory does not change between the submission of a copy that reads it, and the copy.
 * - A call that the real driver refuses is refused, a message is printed, and the process ends with status 1.
 *   This includes the limits of GPUs (threads, blocks, arguments, static and dynamic shared memory), and what
 *   is forbidden while a graph is captured.
 *
 * The simulated GPU is strict, too. It reports a kernel, a line and a reason, and the process ends with
 * status 1:
 * - Threads, warps and blocks run in forward, reversed or random order, and up to four blocks run at the same
 *   time (items.c). Each launch draws its order from the seed.
 * - Shared memory contains garbage when a block begins. What an asynchronous copy will write is garbage until
 *   the thread waits for the copy.
 * - All threads of a block must reach the same barrier. The lanes that a mask names must all reach the same
 *   warp operation, with the same mask.
 * - Blocks that wait forever are reported as a deadlock.
 * - Pointers must be aligned for their type.
 * - With FAKE_CUDA_RACES: no two threads access the same byte without something between them that orders
 * them, no thread reads shared memory that nobody wrote, and none goes beyond an allocation (race.c). No two
 * launches, copies or calls of libraries touch the same byte without an order of their streams or their graph
 * (order.c).
 * - With FAKE_CUDA_DELAYS: other threads and blocks see a store to global memory late, in an order drawn from
 * the seed, unless a fence or a barrier is in between (delay.c). A kernel that lacks a fence computes wrong
 * values.
 *
 * Environment:
 *     FAKE_CUDA_ORDER=forward    all launches run in this order; or reversed, or random
 *     FAKE_CUDA_SEED=7           other orders
 *     FAKE_CUDA_RACES=1          kernels are compiled for the race detector; they run about ten times as long
 *     FAKE_CUDA_DELAYS=1         stores to global memory are delayed; kernels run about five times as long
 *     FAKE_CUDA_DECLINE=3        cuBLASLt, cuDNN and NCCL refuse one request in three, so that fallbacks run
 *     FAKE_CUDA_CARDS=4          so many cards, 0 to 4; by default there are 2
 *     FAKE_CUDA_CACHE=DIR        compiled kernels are taken from this folder, or stored there (cubins.c)
 *     FAKE_CUDA_KEEP=1           keeps the folders /tmp/fake-nvrtc-*, with the source whose lines are
 * reported test_cuda_card.c has a planted fault for each check.
 *
 * It does not check: delayed loads, conflicts of banks (tests/ptx counts them), and what the host, or
 * NCCL within a process, access while launches run.
 *
 * Read next: driver.c, items.c. */
#ifndef WEFT_TESTS_CUDA_FAKE_H
#define WEFT_TESTS_CUDA_FAKE_H

/* What tests set and read. The library exports it as fake_cuda. */
typedef struct fake_cuda_state {
    /* set by tests; 0: no effect */
    long memory;      /* bytes of device memory, instead of 1 GiB; allocations from 1 GiB on are sparse */
    long fail_alloc;  /* 1: the next allocation fails ... */
    long fail_launch; /* 1: the next kernel that runs fails, and its context with it ... */
    long order;       /* a fake_order */
    long seed;        /* of random orders, from the next launch on */
    long raise;  /* 1: in each launch, a fault is recorded while some threads run, and removed at the end */
    long sample; /* of a larger grid only so many blocks run, half of them at each end */
    long quiet;  /* reports and refusals are counted, and not printed */
    /* counters */
    long calls;                                     /* work that libraries submitted */
    long launches, graph_launches, graphs, updates; /* updates: graph nodes that got other arguments */
    long kernels;                                   /* kernels that ran */
    long waits;                                     /* calls that make the host wait */
    long allocations, uploads, downloads, modules;
    long in_use;  /* bytes */
    long handles; /* existing streams, events, modules, graphs and allocations */
    long refused; /* refused calls */
    long raised;  /* launches in which a fault was recorded so */
    long reports; /* faults of kernels that the simulated GPU found; a test that expects them sets it to 0 */
    char report[600]; /* the first one of them */
} fake_cuda_state;

/* In which order threads, warps and blocks run. By default each launch draws one of the others. */
typedef enum fake_order { FAKE_ANY, FAKE_FORWARD, FAKE_REVERSED, FAKE_RANDOM } fake_order;

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
/* The same for work that must wait for another process: it is done once ready(data) is true. Until then the
 * stream stands still, and events after the work do not happen. It cannot be captured. */
typedef int (*fake_ready)(void *data);
unsigned fake_enqueue_when(struct CUstream_st *stream, fake_ready ready, fake_work work, void *data);
/* The number of the card whose context is current in this thread. -1: there is none. */
int fake_current_card(void);
/* Make the context of a card current, and restore the previous one. */
void fake_enter_card(int card);
void fake_leave_card(void);
/* The work of a library says which memory it uses. */
void fake_uses(const void *at, unsigned long bytes, int writes);
/* Are so many bytes inside one allocation of the thread's current context? */
int fake_is_on_card(const void *at, unsigned long bytes);

/* Should a simulated library refuse what it is asked for, by FAKE_CUDA_DECLINE? */
int fake_declines(void);

/* What tests set and read of the simulated cuBLASLt, or hipBLASLt, which exports it as fake_blas. */
typedef struct fake_blas_state {
    /* set by tests */
    long no_handle, decline; /* cublasLtCreate fails; no matmul is supported */
    long fail;               /* 1: the next matmul fails ... */
    long no_memory;          /* 1: the next matmul lacks memory ... */
    long slow_bias;          /* matmuls with a bias take 40 times as long */
    /* counters */
    long heuristics, products, epilogues; /* requests; matmuls; matmuls with an epilogue */
    long last;                            /* number of the algorithm last used */
    long objects;                         /* existing handles and descriptors */
    long refused;                         /* refused calls */
} fake_blas_state;

/* Does all work that the stream holds. */
void fake_settle(struct CUstream_st *stream);

/* The same for the simulated NCCL, which exports it as fake_nccl. nccl_ranks.c has its environment. */
typedef struct fake_nccl_state {
    long fail;    /* 1: the next group fails ... */
    long decline; /* no communicators are made */
    long cliques, declined, sums, refused;
} fake_nccl_state;

/* Limits of a GPU: bytes of shared memory that source may declare, and that a block may have; bytes of
 * arguments. */
#ifdef FAKE_HIP /* the same files, built as AMD's HIP (tests/hip/fake_hip.h) */
enum { FAKE_SHARED_STATIC = 64 << 10, FAKE_SHARED_MOST = 64 << 10, FAKE_ARGUMENTS = 4096 };
#else
enum { FAKE_SHARED_STATIC = 48 << 10, FAKE_SHARED_MOST = 227 << 10, FAKE_ARGUMENTS = 4096 };
#endif

/* A set of lanes of a warp. */
typedef unsigned long fake_mask;

/* A place in a kernel source that waits for other threads: its number and its line. */
typedef struct fake_site {
    int number, line;
} fake_site;

/* A thread of a block. device.h, which precedes every kernel source, makes it available as threadIdx and so
 * on. */
typedef struct fake_item {
    fake_dim thread, block, threads, blocks;
    const struct fake_machine *machine;
    fake_copies *copies;
    void *shared; /* dynamic shared memory of the launch, aligned to 1,024 */
    /* of a warp operation: what the lane gives; which lane it takes from, and what it got; the words that all
     * lanes gave; the lanes that gave something other than 0 */
    unsigned long give, got, *lanes;
    int from;
    fake_mask votes;
} fake_item;

/* How a thread accesses memory. */
typedef enum fake_access { FAKE_READ, FAKE_WRITE, FAKE_ATOMIC } fake_access;

/* Who sees the stores before a fence: the block, or all. */
typedef enum fake_scope { FAKE_BLOCK, FAKE_CARD } fake_scope;

/* What kernels call. */
typedef struct fake_machine {
    int (*barrier)(fake_item *item, fake_site site); /* waits for the block; did any thread give? */
    void (*warp)(fake_item *item, fake_site site, fake_mask mask); /* waits for the lanes in the mask */
    void (*pause)(fake_item *item);                                /* lets other threads run */
    void (*wrong)(fake_item *item, int line, const char *why);     /* reports a fault */
    void (*fence)(fake_item *item, fake_scope scope);
    /* comes before each access of a thread, if the kernel was compiled with such calls (nvrtc.c);
     * where: in the machine code */
    void (*access)(fake_item *item, void *at, unsigned bytes, fake_access how, const void *where);
} fake_machine;

#endif
