/* Stands before every kernel source for CUDA and HIP: the names of opencl.cl, and the types and functions of OpenCL C
 * that templates and rendered kernels use. nvidia.cu and amd.cu follow; each defines what only its compiler does so.
 * No header is needed. Read next: nvidia.cu, amd.cu, common.cl. */
#if defined(__AMDGCN__) && !defined(__global__) /* clang knows these words as attributes; hipRTC defines them */
#define __global__        __attribute__((global))
#define __device__        __attribute__((device))
#define __shared__        __attribute__((shared))
#define __forceinline__   inline __attribute__((always_inline))
#define __align__(n)      __attribute__((aligned(n)))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#endif
#define W_GLOBAL
#define W_LOCAL
#define W_LOCAL_ROOM  __shared__
#ifndef W_MORE_SHARED /* local memory that the launch asks for, since it is more than source may declare */
#define W_MORE_SHARED(type, name)                    \
    extern __shared__ __align__(1024) char w_more[]; \
    type *const name = (type *)w_more
#endif
#ifndef W_STASH_ROOM /* the same for lanes that keep values (kernel/render_team.c) */
#define W_STASH_ROOM(name)                             \
    extern __shared__ __align__(16) char w_stash[]; \
    char *const name = w_stash
#endif
#define W_CONSTANT    const
#define W_TABLE       static __device__ const
#define W_ANY         w_any
#define W_UNROLL      _Pragma("unroll")
#define W_CARD_UNROLL W_UNROLL
#define W_USUALLY(c)  __builtin_expect((c), 1)
#define W_SAME(c)     (c)
#define W_FN          static __device__ __forceinline__
#define W_ENTRY       extern "C" __global__
#define W_ENTRY_ITEMS(x, y, z) __launch_bounds__((x) * (y) * (z))
#ifdef __AMDGCN__ /* hipRTC counts something else there: warps of a SIMD unit */
#define W_ENTRY_ITEMS_BESIDE(x, groups) W_ENTRY_ITEMS(x, 1, 1)
#else
#define W_ENTRY_ITEMS_BESIDE(x, groups) __launch_bounds__(x, groups)
#endif

/* Joins the t of a warp's first n lanes by halves. All lanes get the result. A warp has 32 lanes on all cards, of which
 * the first `calling` call this. */
#define W_WARP_HALVES(T, t, n, calling, JOINED)                                                            \
    do {                                                                                                   \
        const unsigned who_ = (calling) < 32 ? (1u << ((calling) & 31)) - 1 : ~0u;                         \
        _Pragma("unroll") for (int half_ = (n) / 2; half_ > 0; half_ /= 2) {                               \
            const T x = t, y = w_lane_down(who_, t, half_);                                                \
            t = JOINED;                                                                                    \
        }                                                                                                  \
        t = w_lane_first(who_, t);                                                                         \
    } while (0)
/* The same as in opencl.cl, in the same order. The 32 lanes of a warp need neither local memory nor barriers. Each warp
 * computes the whole result, so that no warp waits for another. More than 256 lanes are joined in another order: the
 * lanes of each warp, then the warps. Then `room` has an element for each warp. */
#define W_HALVES(T, t, room, lanes, JOINED)                                                                \
    do {                                                                                                   \
        if ((lanes) > 256) {                                                                               \
            W_WARP_HALVES(T, t, 32, 32, JOINED);                                                           \
            if (lane % 32 == 0) (room)[lane / 32] = t;                                                     \
            w_barrier();                                                                                   \
            t = (room)[lane % ((lanes) / 32)];                                                             \
            w_barrier();                                                                                   \
        } else if ((lanes) > 32) {                                                                         \
            T far_[(lanes) / 32 + 1];                                                                      \
            (room)[lane] = t;                                                                              \
            w_barrier();                                                                                   \
            _Pragma("unroll") for (int i_ = 0; i_ < (lanes) / 32; i_++)                                    \
                far_[i_] = (room)[i_ * 32 + lane % 32];                                                    \
            w_barrier();                                                                                   \
            _Pragma("unroll") for (int half_ = (lanes) / 64; half_ > 0; half_ /= 2)                        \
                _Pragma("unroll") for (int i_ = 0; i_ < half_; i_++) {                                     \
                    const T x = far_[i_], y = far_[i_ + half_];                                            \
                    far_[i_] = JOINED;                                                                     \
                }                                                                                          \
            t = far_[0];                                                                                   \
        }                                                                                                  \
        W_WARP_HALVES(T, t, (lanes) > 256 ? (lanes) / 32 : (lanes) < 32 ? (lanes) : 32, lanes, JOINED);    \
    } while (0)
/* Joins the t of all teams by halves, as W_HALVES joins lanes: an array of `count` elements for each lane. Team 0 gets
 * the result. `room` has count * lanes elements for half the teams. */
#define W_TEAMS(T, t, count, room, lanes, teams, JOINED)                                                   \
    do {                                                                                                   \
        _Pragma("unroll 1") for (int half_ = (teams) / 2; half_ > 0; half_ /= 2) {                         \
            if (team >= half_ && team < 2 * half_)                                                         \
                _Pragma("unroll") for (int i_ = 0; i_ < (count); i_++)                                     \
                    (room)[((team - half_) * (count) + i_) * (lanes) + lane] = (t)[i_];                    \
            w_barrier();                                                                                   \
            if (team < half_)                                                                              \
                _Pragma("unroll") for (int i_ = 0; i_ < (count); i_++) {                                   \
                    const T x = (t)[i_], y = (room)[(team * (count) + i_) * (lanes) + lane];               \
                    (t)[i_] = JOINED;                                                                      \
                }                                                                                          \
            w_barrier();                                                                                   \
        }                                                                                                  \
    } while (0)
/* The same for one element. All teams get the result. */
#define W_TEAMS_SHARE(T, t, room, lanes, teams, JOINED)                                                    \
    do {                                                                                                   \
        T one_[1] = {t};                                                                                   \
        W_TEAMS(T, one_, 1, room, lanes, teams, JOINED);                                                   \
        if (team == 0) (room)[lane] = one_[0];                                                             \
        w_barrier();                                                                                       \
        t = (room)[lane];                                                                                  \
        w_barrier();                                                                                       \
    } while (0)
/* Keeps n elements of each lane in local memory, in slots of all lanes and turns, and reads them again. The words of a
 * slot are `slots` words apart, so the words of neighbours are adjacent. */
#define W_STASH(W, slots, slot, bits, room)                                                                \
    _Pragma("unroll") for (int i_ = 0; i_ < (int)(sizeof((bits).all) / sizeof(W)); i_++)                   \
        ((W *)(room))[i_ * (slots) + (slot)] = (bits).all[i_];
#define W_UNSTASH(W, slots, slot, bits, room)                                                              \
    _Pragma("unroll") for (int i_ = 0; i_ < (int)(sizeof((bits).all) / sizeof(W)); i_++)                   \
        (bits).all[i_] = ((const W *)(room))[i_ * (slots) + (slot)];
/* Starts to copy 16 bytes from p to a slot. Its lane may read them after the next w_copy_wait<0>(). */
#define W_STASH_COPY(slot, p, room) w_copy16(w_local_at((const uint4 *)(room) + (slot)), p, 16);

/* ---- types ---- */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong; /* of 64 bits */
#define half w_half          /* hipRTC has another type of this name */
typedef ushort half;         /* its bits */
typedef signed char w_i8;

template <class T> struct alignas(16) w_four {
    T x, y, z, w;
};
#define float4  w_four<float>
#define uint4   w_four<uint>
#define double4 w_four<double>
#define ulong4  w_four<ulong>

/* A buffer, as an argument for any pointer parameter. */
struct w_any {
    void *at;
    template <class T> __device__ operator T *() const { return (T *)at; }
};
W_FN w_any w_any_of(char *at) { return {at}; }
W_FN w_any w_any_at(w_any b, int byte) { return {(char *)b.at + byte}; }

/* ---- conversions of bits and of numbers ---- */

template <class To, class From> W_FN To w_same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    union {
        From from;
        To to;
    } u;
    u.from = from;
    return u.to;
}
template <class T> W_FN int as_int(T x) { return w_same_bits<int>(x); }
template <class T> W_FN uint as_uint(T x) { return w_same_bits<uint>(x); }
template <class T> W_FN long as_long(T x) { return w_same_bits<long>(x); }
template <class T> W_FN ulong as_ulong(T x) { return w_same_bits<ulong>(x); }
template <class T> W_FN float as_float(T x) { return w_same_bits<float>(x); }
template <class T> W_FN double as_double(T x) { return w_same_bits<double>(x); }

template <class T> W_FN int convert_int(T x) { return (int)x; }
template <class T> W_FN uint convert_uint(T x) { return (uint)x; }
template <class T> W_FN long convert_long(T x) { return (long)x; }
template <class T> W_FN ulong convert_ulong(T x) { return (ulong)x; }
template <class T> W_FN float convert_float(T x) { return (float)x; }
template <class T> W_FN double convert_double(T x) { return (double)x; }

/* Float to integer: the nearest integer of the type, and 0 for NaN. `end`: the largest integer plus 1. */
template <class To, class T> W_FN To w_saturated(T x, T end, To least, To most) {
    return x >= end ? most : x <= (T)least ? least : x == x ? (To)x : 0;
}
template <class T> W_FN int convert_int_sat(T x) {
    return w_saturated<int, T>(x, (T)0x1p31, -0x7fffffff - 1, 0x7fffffff);
}
template <class T> W_FN uint convert_uint_sat(T x) { return w_saturated<uint, T>(x, (T)0x1p32, 0, 0xffffffffu); }
template <class T> W_FN long convert_long_sat(T x) {
    return w_saturated<long, T>(x, (T)0x1p63, -0x7fffffffffffffffL - 1, 0x7fffffffffffffffL);
}
template <class T> W_FN ulong convert_ulong_sat(T x) {
    return w_saturated<ulong, T>(x, (T)0x1p64, 0, 0xffffffffffffffffUL);
}

/* ---- functions; fma, fmin, fmax, sqrt and the functions of f64 have these names in CUDA, too ---- */

#define FP_FAST_FMAF 1
#undef INFINITY
#undef NAN
#undef HUGE_VALF
#undef HUGE_VAL
#define INFINITY     as_float(0x7f800000)
#define NAN          as_float(0x7fc00000)
#define HUGE_VALF    INFINITY
#define HUGE_VAL     ((double)INFINITY)
template <class T> W_FN T clamp(T x, T least, T most) { return x < least ? least : x > most ? most : x; }
