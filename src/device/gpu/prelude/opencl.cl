/* Before every text of OpenCL C: what templates and rendered kernels call its parts, so that they need not be written
 * twice. cuda.cu says the same for CUDA C++. */
#pragma OPENCL FP_CONTRACT OFF
#define W_GLOBAL        __global
#define W_LOCAL         __local /* what a pointer points at */
#define W_LOCAL_ROOM    __local /* before a variable */
#define W_CONSTANT      __constant
#define W_TABLE         __constant /* before a table of constants outside of functions */
#define W_ANY           __global void * /* a buffer, to be given to whatever takes one */
#define W_UNROLL        _Pragma("unroll") /* before a loop */
/* Before a loop that CUDA's compiler must be told to unroll, so that arrays become registers, in kernels with barriers:
 * those of OpenCL see to it themselves, and PoCL 3.1, told to, overwrites memory. */
#define W_CARD_UNROLL
#define W_RESTRICT      restrict
#define W_FN            static inline
#define W_ENTRY         __kernel
#define W_ENTRY_ITEMS(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
typedef char w_i8;
#define w_group(dim)    ((int)get_group_id(dim)) /* which group this is */
#define w_groups(dim)   ((int)get_num_groups(dim))
#define w_item(dim)     ((int)get_local_id(dim)) /* which work-item of the group */
#define w_barrier()     barrier(CLK_LOCAL_MEM_FENCE) /* all of the group see each other's local memory */
#define w_barrier_all() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* and the buffers */
/* Joins t of all `lanes` work-items of a group by halves, each time with that half a tree on: JOINED is made of x and y.
 * All get the result. `room` has an element for each. */
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
/* A barrier of one work-item, for the compiler alone: one type may have been written where another one is read.
 * PoCL's mem_fence is empty. */
#ifdef __clang__
#define w_fence_all()   __asm__ volatile("" ::: "memory")
#else
#define w_fence_all()   mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif
