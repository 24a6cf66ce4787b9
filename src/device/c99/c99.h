/* The device that writes C: a program that runs here is not computed, but can be written as C99 source
 * without dependencies (weft export --to c). Buffers are in host memory, so the source can include their
 * contents. Only the dtypes f32, i32, i64, u8 and bool, and what forward passes and training steps need, can
 * be written. Must not know: models, files. Read next: c99.c, kernel.c. */
#ifndef WEFT_DEVICE_C99_C99_H
#define WEFT_DEVICE_C99_C99_H

#include "base/text.h"
#include "device/device.h"

/* A buffer of the program that ran last. Slot 0 is the arena. */
typedef struct weft_c99_slot {
    const weft_buffer *buffer; /* `host` holds its contents; NULL: the program has no such buffer */
    bool read, written;
    bool scalars;    /* the numbers that change from run to run */
    unsigned dtypes; /* 1u << dtype for each dtype of its elements */
    int64_t bytes;   /* that the program uses */
} weft_c99_slot;

/* Finds the buffers of the program that ran last, one for each slot. The caller frees *slots with weft__free.
 * Returns an error that names the first operation that cannot be written. */
weft_status weft__c99_slots(weft_device *device, weft_c99_slot **slots, int *count);

/* The routines that programs call, in the order in which they are written. */
enum {
    WEFT_C99_DOT,
    WEFT_C99_MATMUL,
    WEFT_C99_CONVOLUTION,
    WEFT_C99_CONVOLVE,
    WEFT_C99_CONVOLVE_INPUT,
    WEFT_C99_CONVOLVE_WEIGHT,
    WEFT_C99_ATTENTION,
    WEFT_C99_ATTEND,
    WEFT_C99_ATTEND_BACK,
    WEFT_C99_UPDATE,
    WEFT_C99_SCATTER,
    WEFT_C99_DRAW,
    WEFT_C99_ROUTINES
};

/* Marks the routines that the program calls. */
void weft__c99_uses(weft_device *device, bool used[WEFT_C99_ROUTINES]);
/* Writes the routines that are marked, as static functions. */
void weft__c99_routines(const bool used[WEFT_C99_ROUTINES], weft_text *out);

/* Writes the kernels of the program as static functions. Their names begin with the prefix, which has at most
 * eight letters and tells the programs of one source apart. */
weft_status weft__c99_functions(weft_device *device, const char *prefix, weft_text *out);

/* Writes the statements of the program, with the same prefix. names[s] is the array of slot s. The arena and
 * the scalars are unions, with the members f32, i32, i64 and u8. */
weft_status weft__c99_statements(weft_device *device, const char *prefix, const char *const *names,
                                 weft_text *out);

/* Returns the C type of a dtype's elements, and the dtype's name as a member of the arena. NULL if the dtype
 * cannot be written. */
const char *weft__c99_type(weft_dtype dtype);

/* ---- for the files of this folder ---- */

/* kernel.c: tells why a kernel cannot be written, as text in `why`. Returns true if it can be. */
bool weft__c99_kernel_check(const weft_kernel *kernel, weft_text *why);
/* Writes the kernel as the static function `name`, whose parameters are the kernel's arguments. */
weft_status weft__c99_kernel(weft_context *ctx, const weft_kernel *kernel, const char *name, weft_text *out);

/* expression.c: returns the C expression of a row on a dtype. $a, $b and $c are its operands, $t is its type.
 * NULL if there is none. */
const char *weft__c99_row(int op, weft_dtype dtype);
/* Returns the first value of a reduction. NULL if it cannot be written. */
const char *weft__c99_start(int op, weft_dtype dtype);
/* Writes an expression with its operands and type. */
void weft__c99_put(weft_text *out, const char *expression, weft_dtype dtype, const char *const operands[3]);
/* Writes a number as a constant. */
void weft__c99_f32(weft_text *out, float value);
void weft__c99_integer(weft_text *out, int64_t value);

/* heavy.c */
bool weft__c99_heavy_takes(const weft_heavy *heavy);
/* Marks the routines that the operation calls. */
void weft__c99_heavy_uses(const weft_heavy *heavy, bool used[WEFT_C99_ROUTINES]);
/* Writes the call. args[i] is the expression of operand i, a pointer to its elements. */
void weft__c99_heavy(const weft_heavy *heavy, const char *const *args, weft_text *out);
/* Returns the dtype of operand i. */
weft_dtype weft__c99_heavy_dtype(const weft_heavy *heavy, int i);
/* Returns whether the call has operand i: not the random key of an attention, which has no dropout here. */
bool weft__c99_heavy_has(const weft_heavy *heavy, int i);
/* Returns whether operand i is written. */
bool weft__c99_heavy_writes(const weft_heavy *heavy, int i);

#endif
