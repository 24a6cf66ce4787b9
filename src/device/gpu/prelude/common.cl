/* What all languages share: integers by width, the names of structs, and the record of bad values. Comes after
 * opencl.cl, cuda.cu or wgsl.cl. */
#define W_PASTE_(a, b)  a##b
#define W_PASTE(a, b)   W_PASTE_(a, b)
#define W_SHARED(name)  struct W_PASTE(name, _shared) /* the local memory of a kernel */
#define W_NUMBERS(name) struct W_PASTE(name, _numbers) /* its last parameter (kernel/source.h) */
#ifndef W_ELEMENTWISE /* else the language has it: kernel/prelude_f32.h */
#define w_exact(x)      (x)
#endif
typedef uchar w_u8;
typedef short w_i16;
typedef ushort w_u16;
typedef int w_i32;
typedef uint w_u32;
#ifndef W_INDEX /* the type of indices, with 64 bits in structs */
#define W_INDEX long
#endif
typedef W_INDEX w_i64;
typedef ulong w_u64;

/* A kernel that changes a variable begins with W_RETURN_IF_FAULTED (kernels.cl). */
#define w_i64 long /* the record is in memory */
#include "device/gpu/prelude/faults_params.h"
#undef w_i64
#define w_faulted(faults) ((faults)->set != 0)
W_FN void w_fault(W_GLOBAL w_faults *faults, int command, int what, long value, long bound, long element) {
    if (atomic_cmpxchg(&faults->set, 0, 1) != 0) return;
    faults->command = command;
    faults->what = what;
    faults->value = value;
    faults->bound = bound;
    faults->element = element;
}
