/* Shared by the files of the simulated GPU: threads, warps and blocks while they run. Read next: items.c. */
#ifndef WEFT_TESTS_CUDA_CARD_H
#define WEFT_TESTS_CUDA_CARD_H

#include "driver.h"
#include "fiber.h"

enum { ITEMS_MOST = 1024, RESIDENT_MOST = 4, THREAD_STORES = 8, BLOCK_STORES = 64 };
enum { WARPS_MOST = ITEMS_MOST / 32 };
/* Lanes of a warp; at most LANES_MOST. */
#ifdef FAKE_HIP
#include "hip/fake_hip.h"
enum { LANES_MOST = 64 };
#define LANES fake_hip_wave()
#else
enum { LANES_MOST = 32 };
#define LANES LANES_MOST
#endif

typedef enum fake_state { READY, AT_BARRIER, AT_WARP, DONE } fake_state;

/* For the race detector: when a thread last met others. */
typedef struct fake_times {
    unsigned seen[LANES_MOST]; /* of each lane of the warp: up to when this thread knows what it did; its own
                                  time */
    unsigned id[2];            /* of its accesses since then, plain and atomic; 0: none yet */
} fake_times;

/* A store to global memory that not all threads see yet, with what the others see (delay.c). */
typedef struct fake_store {
    char *at;
    unsigned count;
    char bytes[16];
} fake_store;

typedef struct fake_block fake_block;
typedef struct item {
    fake_item base;
    fake_block *block;
    fake_fiber fiber;
    fake_state state;
    int warp, lane;
    fake_site site; /* where it waits */
    fake_mask mask; /* of lanes that it waits for */
    fake_times times;
    fake_store stores[THREAD_STORES]; /* that only this thread sees */
    int n_stores;
} item;

/* The lanes of a warp, as masks. */
typedef struct fake_warp {
    fake_mask all, done, waiting;
    unsigned long lanes[LANES_MOST];
} fake_warp;

/* A resident block. */
struct fake_block {
    char *stacks, *shared;
    char *rooms; /* static shared memory, while another block runs */
    size_t rooms_bytes;
    item items[ITEMS_MOST];
    fake_warp warps[WARPS_MOST];
    fake_copies copies[ITEMS_MOST];
    int count, live, arrived;
    bool gave;                       /* at the last barrier */
    fake_store stores[BLOCK_STORES]; /* that only this block sees */
    int n_stores;
    /* for the race detector */
    int place;             /* index among the resident blocks */
    unsigned number, time; /* of the block in its grid; how many barriers ended */
};

/* ---- items.c ---- */

/* The grid that runs, or NULL. */
const fake_grid *fake_running(void);
/* A random number of the launch's seed. */
uint64_t fake_draw(void);
/* In random orders, lets other threads run. */
void fake_yield(item *it);

/* ---- race.c ---- */

/* What is known about a byte of memory. */
typedef struct fake_cell fake_cell;

void fake_race_begin(const fake_grid *grid);
/* Lanes of a warp met. of: its first thread. */
void fake_race_meet(item *of, fake_mask mask);
/* A thread is about to access memory. */
void fake_race_access(fake_item *base, const void *at, unsigned bytes, fake_access how, const void *where);

/* The line of the kernel source of an address in its machine code. 0: unknown. */
int fake_line_of(const fake_code *code, const void *at);
void fake_cells_free(fake_cell *cells, size_t bytes);

/* ---- delay.c ---- */

void fake_delay_begin(void);
void fake_delay_end(void);
/* A thread is about to access memory. */
void fake_delay_access(fake_item *base, void *at, unsigned bytes, fake_access how);
void fake_delay_fence(fake_item *base, fake_scope scope);
/* A thread, or a block, begins to run or stops for a while. */
void fake_delay_enter_thread(item *it);
void fake_delay_leave_thread(item *it);
void fake_delay_enter_block(fake_block *b);
void fake_delay_leave_block(fake_block *b);
/* Time passes: a store of a block that ended may become visible. */
void fake_delay_pass(void);
void fake_delay_end_block(fake_block *b);

/* ---- memory.c ---- */

/* Where an address is: in an allocation, in a guard beside one, or elsewhere. In an allocation: where its
 * cells are, the address as an offset, and its bytes. */
typedef enum fake_where { FAKE_ELSEWHERE, FAKE_INSIDE, FAKE_GUARD } fake_where;
fake_where fake_find(const char *at, size_t bytes, fake_cell ***cells, size_t *offset, size_t *all);

#endif
