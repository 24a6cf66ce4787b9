/* What CUDA C++ provides without headers, for the host's compiler. nvrtc.c puts this file in front of each
 * kernel source. The driver finds a kernel as fake_call_NAME, and the sizes of its arguments as
 * fake_sizes_NAME. */
#include <math.h>
#include <utility>
#include "fake.h"

static thread_local fake_item *fake_now; /* the GPU thread that is running */

#define threadIdx (fake_now->thread)
#define blockIdx  (fake_now->block)
#define blockDim  (fake_now->threads)
#define gridDim   (fake_now->blocks)
#define __device__
#define __forceinline__ inline
#define __shared__      static thread_local
#define __constant__
#define __launch_bounds__(...)

static inline void fake_meet(int warp) {
    fake_item *me = fake_now;
    me->meet(me, warp);
    fake_now = me;
}
static inline void __syncthreads() { fake_meet(0); }
static inline int __syncthreads_or(int x) {
    static thread_local int any; /* of the block, as shared memory is */
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= x;
    __syncthreads();
    return any;
}
static inline void __syncwarp(unsigned = 0) { fake_meet(1); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}

static inline int fake_lane() {
    const fake_item *me = fake_now;
    return (int)((me->thread.x + me->threads.x * (me->thread.y + me->threads.y * me->thread.z)) % 32);
}
template <class T> static inline T fake_from_lane(T value, int lane) {
    static_assert(sizeof(T) <= sizeof(long), "a word");
    T result;
    unsigned long *lanes = fake_now->lanes;
    __builtin_memcpy(&lanes[fake_lane()], &value, sizeof value);
    fake_meet(1);
    __builtin_memcpy(&result, &lanes[lane], sizeof result);
    fake_meet(1);
    return result;
}
template <class T> static inline T __shfl_sync(unsigned, T v, int lane, int = 32) {
    return fake_from_lane(v, lane & 31);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int mask, int = 32) {
    return fake_from_lane(v, fake_lane() ^ mask);
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned by, int = 32) {
    const int lane = fake_lane() + (int)by;
    return fake_from_lane(v, lane < 32 ? lane : fake_lane());
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned by, int = 32) {
    const int lane = fake_lane() - (int)by;
    return fake_from_lane(v, lane >= 0 ? lane : fake_lane());
}

template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b) {
    return (decltype(a + b))a < (decltype(a + b))b ? a : b;
}
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b) {
    return (decltype(a + b))a < (decltype(a + b))b ? b : a;
}
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

static inline int atomicCAS(int *p, int expected, int value) {
    return __sync_val_compare_and_swap(p, expected, value);
}
static inline int atomicAdd(int *p, int v) { return __sync_fetch_and_add(p, v); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long)x * y >> 32); }

/* Rounds to f32 towards 0: the nearest float, or the one before it. A long double holds all these values. */
static inline float fake_cut(long double x) {
    const float f = (float)x;
    return fabsl((long double)f) > fabsl(x) ? nextafterf(f, 0) : f;
}
static inline float __int2float_rz(int x) { return fake_cut(x); }
static inline float __uint2float_rz(unsigned x) { return fake_cut(x); }
static inline float __ll2float_rz(long x) { return fake_cut((long double)x); }
static inline float __ull2float_rz(unsigned long x) { return fake_cut((long double)x); }
static inline float __double2float_rz(double x) { return x != x || isinf(x) ? (float)x : fake_cut(x); }

/* nvrtc.c turns statements asm("cvt.f32.f16 ..." : "=f"(x) : "h"(y)) into calls of these functions. */
static inline void fake_asm_cvt_f32_f16(float &to, unsigned short from) {
    _Float16 half;
    __builtin_memcpy(&half, &from, sizeof half);
    to = (float)half;
}
static inline void fake_asm_cvt_rn_f16_f32(unsigned short &to, float from) {
    const _Float16 half = (_Float16)from;
    __builtin_memcpy(&to, &half, sizeof to);
}

#include "tensor.h"

template <class... A, std::size_t... I>
static inline void fake_call(void (*kernel)(A...), void **values, std::index_sequence<I...>) {
    kernel(*(std::remove_reference_t<A> *)values[I]...);
}
template <class... A> static inline void fake_call(void (*kernel)(A...), void **values) {
    fake_call(kernel, values, std::index_sequence_for<A...>{});
}
template <class F> struct fake_sizes;
template <class... A> struct fake_sizes<void(A...)> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned list[sizeof...(A) + 1] = {sizeof(A)..., 0};
};
#define FAKE_KERNEL(name)                                                                                    \
    extern "C" const unsigned *fake_sizes_##name(unsigned *count) {                                          \
        *count = fake_sizes<decltype(name)>::count;                                                          \
        return fake_sizes<decltype(name)>::list;                                                             \
    }                                                                                                        \
    extern "C" void fake_call_##name(fake_item *me, void **values) {                                         \
        fake_now = me;                                                                                       \
        fake_call(&name, values);                                                                            \
    }
