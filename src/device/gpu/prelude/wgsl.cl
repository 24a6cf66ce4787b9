/* Stands before every kernel source for WebGPU: the names of opencl.cl, for the translator to WGSL
 * (device/webgpu/wgsl). It knows the types and functions of OpenCL C that preludes and templates use, and these:
 *
 *     w_index              64 bits in structs of numbers, 32 bits else; buffers of WebGPU have less than 2^31 bytes
 *     w_uniform(c)         the first work-item's answer, for all items of the work-group; a barrier
 *     w_round_to_f16(x)    rounds to the nearest f16
 *     w_from_f16_bits(u), w_to_f16_bits(x)    f16 as 16 bits
 *     w_exact(x)           x, whose value the compiler does not know (kernel/prelude_f32.h)
 *
 * Read next: common.cl. */
#define W_GLOBAL        __global
#define W_LOCAL         __local
#define W_LOCAL_ROOM    __local
#define W_TABLE         const
#define W_INDEX         w_index
#define W_UNROLL        _Pragma("unroll")
#define W_CARD_UNROLL   W_UNROLL
#define W_USUALLY(c)    (c)
#define W_SAME(c)       w_uniform(c) /* WGSL must be sure that all items reach a barrier */
#define W_FN            static inline
#define W_ENTRY         __kernel
#define W_ENTRY_ITEMS(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
typedef char w_i8;
#define w_group(dim)    get_group_id(dim)
#define w_groups(dim)   get_num_groups(dim)
#define w_item(dim)     get_local_id(dim)
#define W_ANY_ITEM(x)   w_uniform(x)
/* As in opencl.cl. */
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
/* Pointers have no bits. So elements are read and written one by one. */
#define W_ELEMENTWISE
#define W_READ(id, S, W, n, p, values)                                                                     \
    for (int i_ = 0; i_ < (n); i_++) (values)[i_] = w_get_##id(p, i_);
#define W_WRITE(id, S, W, n, p, values)                                                                    \
    for (int i_ = 0; i_ < (n); i_++) w_put_##id(p, i_, (values)[i_]);
#define W_READ_ALIGNED  W_READ
#define W_WRITE_ALIGNED W_WRITE
