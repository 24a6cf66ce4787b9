/* The words of cuda.cu that AMD's compiler has, by builtins of clang. Comes after cuda.cu. Compile with
 * -ffp-contract=off and -fno-strict-aliasing.
 *
 * A wavefront has 32 or 64 lanes, and a warp has 32. So a wavefront of 64 is two warps, one after the other. All sums
 * are added in the same order on both. The lanes of a warp run in lockstep, if a branch parts the two warps, too.
 *
 *     wavefront of 64    | warp 0: lanes 0 .. 31 | warp 1: lanes 32 .. 63 |
 *
 * Read next: nvidia.cu, which explains the same words. */
#ifdef __AMDGCN__
#define w_pick(dim, f)  ((dim) == 0 ? f##_x() : (dim) == 1 ? f##_y() : f##_z())
#define w_group(dim)    ((int)w_pick(dim, __builtin_amdgcn_workgroup_id))
#define w_groups(dim)   ((int)(w_pick(dim, __builtin_amdgcn_grid_size) / w_pick(dim, __builtin_amdgcn_workgroup_size)))
#define w_item(dim)     ((int)w_pick(dim, __builtin_amdgcn_workitem_id))
/* Orders memory before and after a barrier, for the lanes of `scope`. */
#define w_ordered(scope, barrier)                                                                          \
    (__builtin_amdgcn_fence(__ATOMIC_RELEASE, scope), barrier, __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, scope))
#define w_barrier()     w_ordered("workgroup", __builtin_amdgcn_s_barrier())
#define w_barrier_all() w_barrier()
#define w_barrier_warp() w_ordered("wavefront", __builtin_amdgcn_wave_barrier())
#define W_ANY_ITEM(x)   w_any_item(x)

/* The number of this lane in its wavefront. */
W_FN int w_lane_number() { return (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

/* Returns the x of a lane of this warp, which is running, too. */
template <class T> W_FN T w_lane_of(T x, int lane) {
    static_assert(sizeof(T) % sizeof(int) == 0, "whole words");
    union {
        T value;
        int words[sizeof(T) / sizeof(int)];
    } u;
    u.value = x;
    _Pragma("unroll") for (int i = 0; i < (int)(sizeof(T) / sizeof(int)); i++)
        u.words[i] = __builtin_amdgcn_ds_bpermute(4 * lane, u.words[i]);
    return u.value;
}
template <class T> W_FN T w_lane_after(T x, int by) {
    const int lane = w_lane_number();
    return w_lane_of(x, (lane & 31) + by < 32 ? lane + by : lane);
}
#define w_lane_down(who, x, by) w_lane_after(x, by)
#define w_lane_first(who, x)    w_lane_of(x, w_lane_number() & ~31)

/* Returns whether x holds for any item of the group. */
W_FN int w_any_item(int x) {
    __shared__ int any_item;
    w_barrier();
    if (w_item(0) == 0 && w_item(1) == 0 && w_item(2) == 0) any_item = 0;
    w_barrier();
    if (x) __hip_atomic_fetch_or(&any_item, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    w_barrier();
    return any_item;
}

/* ---- conversions ---- */

/* Towards 0: integers lose all bits but the first 24; the others are exact then. */
W_FN float convert_float_rtz(ulong x) {
    const int zeros = x ? __builtin_clzll(x) : 64;
    return (float)(zeros < 40 ? x & ~0UL << (40 - zeros) : x);
}
W_FN float convert_float_rtz(long x) {
    const float size = convert_float_rtz(x < 0 ? 0 - (ulong)x : (ulong)x);
    return x < 0 ? -size : size;
}
W_FN float convert_float_rtz(int x) { return convert_float_rtz((long)x); }
W_FN float convert_float_rtz(uint x) { return convert_float_rtz((ulong)x); }
/* The nearest float, or the one before it. */
W_FN float convert_float_rtz(double x) {
    const float nearest = (float)x;
    return __builtin_fabs((double)nearest) > __builtin_fabs(x) ? as_float(as_int(nearest) - 1) : nearest;
}

W_FN float vload_half(long i, const half *p) { return (float)w_same_bits<_Float16>(p[i]); }
W_FN void vstore_half_rte(float x, long i, half *p) { p[i] = w_same_bits<ushort>((_Float16)x); }

/* ---- functions; hipRTC declares some of these names itself, so macros replace them ---- */

#define W_EXACT(name, builtin, T, parameters, arguments)                                                   \
    W_FN T name parameters { return __builtin_##builtin arguments; }
#define W_EXACT_1(name, builtin)                                                                           \
    W_EXACT(name, builtin##f, float, (float x), (x))                                                       \
    W_EXACT(name, builtin, double, (double x), (x))
#define W_EXACT_2(name, builtin)                                                                           \
    W_EXACT(name, builtin##f, float, (float x, float y), (x, y))                                           \
    W_EXACT(name, builtin, double, (double x, double y), (x, y))
W_EXACT(w_amd_fma, fmaf, float, (float x, float y, float z), (x, y, z))
W_EXACT(w_amd_fma, fma, double, (double x, double y, double z), (x, y, z))
W_EXACT_1(w_amd_sqrt, sqrt)
W_EXACT_1(w_amd_fabs, fabs)
W_EXACT_1(w_amd_floor, floor)
W_EXACT_1(w_amd_ceil, ceil)
W_EXACT_1(w_amd_trunc, trunc)
W_EXACT_1(w_amd_rint, rint)
W_EXACT_2(w_amd_fmin, fmin)
W_EXACT_2(w_amd_fmax, fmax)
W_EXACT_2(w_amd_copysign, copysign)
/* Functions of AMD's device libraries, which hipRTC links. */
#define W_OCML_1(name) extern "C" __device__ __attribute__((const)) double __ocml_##name##_f64(double);
#define W_OCML_2(name) extern "C" __device__ __attribute__((const)) double __ocml_##name##_f64(double, double);
W_OCML_1(exp)
W_OCML_1(exp2)
W_OCML_1(expm1)
W_OCML_1(log)
W_OCML_1(log2)
W_OCML_1(log1p)
W_OCML_1(sin)
W_OCML_1(cos)
W_OCML_1(tanh)
W_OCML_1(erf)
W_OCML_1(erfc)
W_OCML_2(pow)
W_OCML_2(hypot)
W_OCML_2(atan2)
W_OCML_2(fmod)
extern "C" __device__ __attribute__((const)) float __ocml_fmod_f32(float, float);
W_FN float w_amd_fmod(float x, float y) { return __ocml_fmod_f32(x, y); }
W_FN double w_amd_fmod(double x, double y) { return __ocml_fmod_f64(x, y); }
template <class A, class B> W_FN auto w_amd_min(A x, B y) -> decltype(x + y) { return x < y ? x : y; } /* integers */
template <class A, class B> W_FN auto w_amd_max(A x, B y) -> decltype(x + y) { return x < y ? y : x; }
#define min      w_amd_min
#define max      w_amd_max
#define fma      w_amd_fma
#define sqrt     w_amd_sqrt
#define fabs     w_amd_fabs
#define floor    w_amd_floor
#define ceil     w_amd_ceil
#define trunc    w_amd_trunc
#define rint     w_amd_rint
#define fmin     w_amd_fmin
#define fmax     w_amd_fmax
#define copysign w_amd_copysign
#define fmod     w_amd_fmod
#define exp      __ocml_exp_f64
#define exp2     __ocml_exp2_f64
#define expm1    __ocml_expm1_f64
#define log      __ocml_log_f64
#define log2     __ocml_log2_f64
#define log1p    __ocml_log1p_f64
#define sin      __ocml_sin_f64
#define cos      __ocml_cos_f64
#define tanh     __ocml_tanh_f64
#define erf      __ocml_erf_f64
#define erfc     __ocml_erfc_f64
#define pow      __ocml_pow_f64
#define hypot    __ocml_hypot_f64
#define atan2    __ocml_atan2_f64

W_FN uint mul_hi(uint x, uint y) { return (uint)((ulong)x * y >> 32); }
W_FN int atomic_cmpxchg(int *p, int expected, int value) {
    __hip_atomic_compare_exchange_strong(p, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}
W_FN int atomic_add(int *p, int value) {
    return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#endif
