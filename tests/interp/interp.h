/* The inside of the interpreter, the device that is slow and right. It walks kernels element by element in
 * f64, checks every index and finds races. It shares no code with the devices that it is the reference for.
 * Must not know: other devices. Read next: interp.c. */
#ifndef WEFT_DEVICE_INTERP_INTERP_H
#define WEFT_DEVICE_INTERP_INTERP_H

#include "device/testing.h"

/* A number: f for floats of any dtype, i for integers (u64 as its bits) and bool. */
typedef union weft_value {
    double f;
    int64_t i;
} weft_value;

typedef struct weft_interp {
    weft_device base;
    weft_fault fault;
    uint64_t random;   /* state of the random order */
    unsigned declined; /* one bit for each weft_heavy_kind */
    bool timing;
    bool poison_arena; /* see weft__interp_poison_arena */
} weft_interp;

/* A buffer between guard bytes, which no command may change. */
typedef struct weft_interp_buffer {
    weft_buffer base;
    unsigned char *memory; /* WEFT_INTERP_GUARD bytes, the data, WEFT_INTERP_GUARD bytes */
} weft_interp_buffer;

#define WEFT_INTERP_GUARD 256

/* ---- for tests ---- */

/* Makes takes() decline the heavy kinds whose bit (1u << kind) is set, so that the compiler expands them. */
void weft__interp_decline(weft_device *device, unsigned kind_mask);

/* Fills slot 0, the arena, with NaNs before each run, so that no value can come from the run before. */
void weft__interp_poison_arena(weft_device *device, bool on);

/* ---- calc.c: numbers and rows, by definition ---- */
weft_value weft__interp_load(weft_dtype dtype, const void *base, int64_t element);
/* Rounds or wraps v to dtype and stores it. */
void weft__interp_store(weft_dtype dtype, void *base, int64_t element, weft_value v);
/* Returns what storing and loading would make of v. */
weft_value weft__interp_rounded(weft_dtype dtype, weft_value v);
weft_value weft__interp_cast(weft_dtype from, weft_dtype to, weft_value v);
/* Computes row `op` on operands of a dtype. The condition of `where` is a. Sets *by_zero to true if an
 * integer is divided by zero, and otherwise leaves it unchanged. */
weft_value weft__interp_calc(int op, weft_dtype dtype, weft_value a, weft_value b, weft_value c,
                             bool *by_zero);
/* Returns the start value of reduction `op`. */
weft_value weft__interp_start(int op, weft_dtype dtype);
/* Returns word e of a random key: 32 bits as an i32. */
int32_t weft__interp_random(const int32_t key[8], int64_t element);

/* ---- shadow.c: who read and who wrote each element of the arguments that a kernel writes ---- */
typedef struct weft_shadow_access {
    int64_t reader, writer; /* see shadow.c; 0: nobody so far */
} weft_shadow_access;

typedef struct weft_shadow {
    weft_context *ctx;
    const weft_kernel *kernel;
    void *const *args;
    int64_t row_length;
    weft_shadow_access **of; /* of[arg]: one entry for each element of a written argument, otherwise NULL */
} weft_shadow;

weft_status weft__shadow_open(weft_shadow *shadow, weft_context *ctx, const weft_kernel *kernel,
                              void *const *args);
void weft__shadow_close(weft_shadow *shadow);
/* Record that row `row` reads or writes an element at reduction index `inner` (-1: once for the whole row).
 * Return what is wrong with it, or NULL. */
const char *weft__shadow_read(weft_shadow *shadow, int arg, int64_t element, int64_t row, int64_t inner);
const char *weft__shadow_write(weft_shadow *shadow, int arg, int64_t element, int64_t row, int64_t inner);

/* ---- kernel.c, heavy/heavy.c ---- */

/* Runs one kernel. args[i] is the address of argument i, and the kernel says its size. */
weft_status weft__interp_kernel(weft_interp *device, const weft_kernel *kernel, void *const *args);
/* Runs one heavy operation. bytes[i] bytes of the buffer follow args[i]. */
weft_status weft__interp_heavy(weft_interp *device, const weft_heavy *heavy, void *const *args,
                               const int64_t *bytes);
bool weft__interp_heavy_takes(const weft_heavy *heavy);
void weft__interp_fault(weft_interp *device, weft_fault_kind kind, const char *path, int64_t value,
                        int64_t bound, int64_t element);

#endif
