/* Fibers: stacks that one thread of the host switches between. Read next: items.c. */
#ifndef WEFT_TESTS_CUDA_FIBER_H
#define WEFT_TESTS_CUDA_FIBER_H

#include <stdint.h>
#include <string.h>

enum { FIBER_STACK = 256 << 10 };

#if defined(__x86_64__)
/* Saves the registers that a function must preserve, and continues where the other fiber saved its
 * registers. */
void fake_switch(void **kept, void *to);
typedef void *fake_fiber;
static inline void fiber_make(fake_fiber *f, char *stack, void (*entry)(void)) {
    void **top = (void **)(void *)(stack + FIBER_STACK - 64);
    memset(top - 8, 0, 16 * sizeof *top);
    top[-2] = (void *)(uintptr_t)entry; /* the first switch returns to here */
    *f = top - 8;
}
static inline void fiber_switch(fake_fiber *from, fake_fiber *to) { fake_switch(from, *to); }
#else
#include <ucontext.h>
typedef ucontext_t fake_fiber;
static inline void fiber_make(fake_fiber *f, char *stack, void (*entry)(void)) {
    getcontext(f);
    f->uc_stack.ss_sp = stack;
    f->uc_stack.ss_size = FIBER_STACK;
    f->uc_link = NULL;
    makecontext(f, entry, 0);
}
static inline void fiber_switch(fake_fiber *from, fake_fiber *to) { swapcontext(from, to); }
#endif

#endif
