/* An interpreter of PTX, the assembly language that NVRTC makes of CUDA C++. It runs what the compiler made
 * of a kernel source, instruction by instruction as the PTX ISA manual defines them, and stops at what a GPU
 * would not forgive. It is a tool for tests and knows only the instructions that Weft's kernels use: another
 * one is an error that names the opcode and its line.
 *
 * What is checked:
 * - Each access: alignment, and bounds of its memory (global, shared, local, parameters).
 * - Registers that were never written, where their value matters: in an address, a store or a branch.
 * - Races in shared memory between two barriers, within a warp, too (bar.warp.sync orders the lanes of its
 *   mask). Shared memory that the block has not written. What cp.async copies cannot be read before the wait.
 * - On request, races in global memory, between blocks, too (race.c).
 * - Barriers that a part of a warp or block does not reach; shfl, vote, mma, ldmatrix without their lanes.
 * - Limits: 48 KiB of static and 227 KiB of all shared memory, the threads of .maxntid.
 *
 * What is counted: bank conflicts of shared memory (banks.c), and, as an estimate, clocks (clock.c).
 *
 * What it does not show:
 * - The exact results of approximate instructions (ex2.approx, rcp.approx, ...). They are computed in double
 *   precision and rounded; a GPU may differ within the bound that the ISA gives. mma adds in
 *   double precision.
 * - Memory has one order for all threads, and stores are never delayed.
 * - Some races around bar.sync with a number of threads: it orders memory for the whole block here.
 *
 * Must not know: Weft, the simulated driver. Read next: module.h. */
#ifndef WEFT_TESTS_PTX_PTX_H
#define WEFT_TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_function ptx_function;

enum { PTX_STATIC_SHARED_MOST = 48 << 10, PTX_SHARED_MOST = 227 << 10 };

/* Parses a module. NULL: it is wrong, and `why` says what and in which line. */
ptx_module *ptx_load(const char *text, char *why, size_t why_bytes);
void ptx_free(ptx_module *m);
/* The kernel of this name, or NULL. It lives as long as its module. */
const ptx_function *ptx_kernel(const ptx_module *m, const char *name);
/* The sizes of a kernel's parameters in bytes, one after the other. */
const unsigned *ptx_parameter_sizes(const ptx_function *kernel, unsigned *count);
const char *ptx_name(const ptx_function *kernel);
unsigned ptx_static_shared(const ptx_function *kernel);

typedef struct ptx_launch {
    const ptx_function *kernel;
    unsigned blocks[3], threads[3];
    unsigned shared_bytes; /* dynamic shared memory */
    void **values;         /* a pointer to each parameter */
    unsigned resident;     /* so many blocks run at the same time; 0: two */
    uint64_t seed;         /* draws the order of blocks and warps; 0: in order */
    /* Returns whether `at` is in an allocation that the device can use, and the range of the allocation. */
    bool (*memory)(void *user, uint64_t at, uint64_t *begin, uint64_t *end);
    void *user;
    bool races;            /* also looks for races in global memory */
    const char *banks;     /* a file that gets a line about the launch's bank conflicts (banks.c), or NULL */
    bool timed;            /* also estimates how long the launch takes (clock.c) */
    uint64_t clocks;       /* result: of the slowest block */
    uint64_t instructions; /* result: executed instructions, each lane counted */
    char why[1000];        /* result: the first fault */
} ptx_launch;

/* Runs all blocks. Returns false after the first fault. */
bool ptx_run(ptx_launch *l);

#endif
