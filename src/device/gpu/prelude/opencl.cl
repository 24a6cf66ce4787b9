/* Stands before every kernel source for OpenCL: the names that templates and rendered kernels use. cuda.cu defines the
 * same names for CUDA C++. So kernels are written once. */
#pragma OPENCL FP_CONTRACT OFF
#define W_GLOBAL        __global
#define W_LOCAL         __local /* for the target of a pointer */
#define W_LOCAL_ROOM    __local /* before a variable */
#define W_CONSTANT      __constant
#define W_TABLE         __constant /* before a table of constants outside of functions */
#define W_ANY           __global void * /* a buffer, as an argument for any pointer parameter */
#define w_any_at(b, byte) ((W_ANY)((__global char *)(b) + (byte)))
#define W_UNROLL        _Pragma("unroll") /* before a loop */
/* Before a loop in a kernel with barriers that CUDA must unroll, so that arrays become registers. Compilers of
 * OpenCL do it by themselves. PoCL 3.1 writes to wrong memory if it is told to. */
#define W_CARD_UNROLL
#define W_USUALLY(c)    (c) /* a condition that holds almost always */
#define W_SAME(c)       (c) /* a condition with the same answer for all items of a work-group, which may be a barrier */
#define W_FN            static inline
#define W_ENTRY         __kernel
#define W_ENTRY_ITEMS(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
typedef char w_i8;
#define w_group(dim)    ((int)get_group_id(dim)) /* number of this work-group */
#define w_groups(dim)   ((int)get_num_groups(dim))
#define w_item(dim)     ((int)get_local_id(dim)) /* number of the work-item in its work-group */
#define w_barrier()     barrier(CLK_LOCAL_MEM_FENCE) /* for local memory of the work-group */
#define w_barrier_all() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* and for buffers */
/* Joins the t of all `lanes` work-items of a work-group by halves: of four, t0 with t2 and t1 with t3, then both.
 * JOINED is an expression of x and y. All work-items get the result. `room` has an element for each. */
#define W_HALVES(T, t, room, lanes, JOINED)                                                                \
    do {                                                                                                   \
        (room)[lane] = t;                                                                                  \
        w_barrier();                                                                                       \
        for (int half_ = (lanes) / 2; half_ > 0; half_ /= 2) {                                             \
            if (lane < half_) {                                                                            \
                const T x = (room)[lane], y = (room)[lane + half_];                                        \
                (room)[lane] = JOINED;                                                                     \
            }                                                                                              \
            w_barrier();                                                                                   \
        }                                                                                                  \
        t = (room)[0];                                                                                     \
        w_barrier();                                                                                       \
    } while (0)
