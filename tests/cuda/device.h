/* What CUDA C++ provides without headers, for the host's compiler. nvrtc.c puts this file in front of each
 * kernel source. The driver finds a kernel as fake_call_NAME, and the sizes of its arguments as
 * fake_sizes_NAME. */
#include <math.h>
#include <utility>
#include "fake.h"

#define FAKE_DATA __attribute__((section(".data"))) /* not among the static shared memory, which is .bss */
static fake_item *fake_now FAKE_DATA;               /* the GPU thread that is running */
static fake_site fake_at FAKE_DATA;                 /* the place that is running */

#define threadIdx (fake_now->thread)
#define blockIdx  (fake_now->block)
#define blockDim  (fake_now->threads)
#define gridDim   (fake_now->blocks)
#define __device__
#define __forceinline__ inline
#define __shared__      static
#define __constant__
#define __align__(n) __attribute__((aligned(n)))

/* ---- waiting for other threads ---- */

/* An expression that calls the machine: remembers its place first. nvrtc.c does the same for asm. */
#define FAKE_HERE(call)       (fake_at = {__COUNTER__ + 1, __LINE__}, call)
#define __syncthreads()       FAKE_HERE(fake_barrier())
#define __syncthreads_or(x)   FAKE_HERE(fake_barrier(x))
#define __syncwarp(...)       FAKE_HERE(fake_sync_warp(__VA_ARGS__))
#define __shfl_sync(...)      FAKE_HERE(fake_shfl(__VA_ARGS__))
#define __shfl_xor_sync(...)  FAKE_HERE(fake_shfl_xor(__VA_ARGS__))
#define __shfl_down_sync(...) FAKE_HERE(fake_shfl_down(__VA_ARGS__))
#define __shfl_up_sync(...)   FAKE_HERE(fake_shfl_up(__VA_ARGS__))
#define __ballot_sync(...)    FAKE_HERE(fake_ballot(__VA_ARGS__))
#define __any_sync(...)       (__ballot_sync(__VA_ARGS__) != 0)

/* Returns whether any thread of the block gave something other than 0. */
static inline int fake_barrier(int give = 0) {
    fake_item *me = fake_now;
    me->give = give != 0;
    const int any = me->machine->barrier(me, fake_at);
    fake_now = me;
    return any;
}
static inline void fake_warp(fake_mask mask = 0xffffffff) {
    fake_item *me = fake_now;
    me->machine->warp(me, fake_at, mask);
    fake_now = me;
}
static inline void fake_fence(fake_scope scope) { fake_now->machine->fence(fake_now, scope); }
/* Orders memory, too. Other operations of a warp do not. */
static inline void fake_sync_warp(fake_mask mask = 0xffffffff) {
    fake_fence(FAKE_BLOCK);
    fake_warp(mask);
}
static inline void fake_pause() {
    fake_item *me = fake_now;
    const fake_site at = fake_at;
    me->machine->pause(me);
    fake_now = me;
    fake_at = at;
}

/* Before an access of memory. The compiler adds calls of __tsan_*; the machine adds others, and calls where
 * the compiler cannot know. */
#define FAKE_SILENT __attribute__((no_sanitize_thread))
#ifdef FAKE_WATCHED
FAKE_SILENT static inline void fake_touch_from(void *at, unsigned bytes, int how, const void *where) {
    fake_item *me = fake_now;
    const fake_site site = fake_at;
    if (!me) return;
    me->machine->access(me, at, bytes, (fake_access)how, where);
    fake_now = me;
    fake_at = site;
}
#define fake_touch(at, bytes, how) fake_touch_from((void *)(at), bytes, how, __builtin_return_address(0))
#define FAKE_CALL(name, bytes, how)                                                                          \
    extern "C" __attribute__((visibility("hidden"))) FAKE_SILENT void __tsan_##name(void *at) {              \
        fake_touch(at, bytes, how);                                                                          \
    }
#define FAKE_CALLS(n)                                                                                        \
    FAKE_CALL(read##n, n, FAKE_READ)                                                                         \
    FAKE_CALL(write##n, n, FAKE_WRITE)                                                                       \
    FAKE_CALL(unaligned_read##n, n, FAKE_READ)                                                               \
    FAKE_CALL(unaligned_write##n, n, FAKE_WRITE)
FAKE_CALLS(1);
FAKE_CALLS(2);
FAKE_CALLS(4);
FAKE_CALLS(8);
FAKE_CALLS(16);
#undef FAKE_CALL
#define FAKE_CALL(name, how)                                                                                 \
    extern "C" __attribute__((visibility("hidden")))                                                         \
    FAKE_SILENT void __tsan_##name(void *at, unsigned long n) {                                              \
        fake_touch(at, (unsigned)n, how);                                                                    \
    }
FAKE_CALL(read_range, FAKE_READ);
FAKE_CALL(write_range, FAKE_WRITE);
extern "C" __attribute__((visibility("hidden"))) FAKE_SILENT void __tsan_init() {}
#else
#define fake_touch(at, bytes, how) (void)0
#endif
/* The compiler calls this function for a pointer that is not a multiple of what its type needs. */
struct fake_mismatch {
    const char *file;
    unsigned line, column;
    const void *type;
    unsigned char log_align, kind;
};
extern "C" __attribute__((visibility("hidden"))) FAKE_SILENT void
__ubsan_handle_type_mismatch_v1(const fake_mismatch *found, unsigned long) {
    fake_now->machine->wrong(fake_now, (int)found->line, "an address that is not aligned for its type");
}
static inline void fake_wrong(const char *what) { fake_now->machine->wrong(fake_now, fake_at.line, what); }
static inline void __threadfence() {
    fake_fence(FAKE_CARD);
    fake_pause();
}
static inline void __threadfence_block() {
    fake_fence(FAKE_BLOCK);
    fake_pause();
}

static inline int fake_lane() {
    const fake_item *me = fake_now;
    return (int)((me->thread.x + me->threads.x * (me->thread.y + me->threads.y * me->thread.z)) % 32);
}
template <class T> static inline T fake_from_lane(fake_mask mask, T value, int lane) {
    static_assert(sizeof(T) <= sizeof(long), "a word");
    T result;
    fake_item *me = fake_now;
    me->give = 0;
    __builtin_memcpy(&me->give, &value, sizeof value);
    me->from = lane;
    fake_warp(mask);
    __builtin_memcpy(&result, &me->got, sizeof result);
    return result;
}
/* A lane whose source is outside of its part of `width` lanes gets its own value. */
template <class T> static inline T fake_shfl(unsigned mask, T v, int lane, int width = 32) {
    return fake_from_lane(mask, v, (fake_lane() & -width) | (lane & (width - 1)));
}
template <class T> static inline T fake_near(unsigned mask, T v, int lane, int width) {
    return fake_from_lane(mask, v, (lane & -width) == (fake_lane() & -width) ? lane : fake_lane());
}
template <class T> static inline T fake_shfl_xor(unsigned mask, T v, int with, int width = 32) {
    return fake_near(mask, v, fake_lane() ^ with, width);
}
template <class T> static inline T fake_shfl_down(unsigned mask, T v, unsigned by, int width = 32) {
    return fake_near(mask, v, fake_lane() + (int)by, width);
}
template <class T> static inline T fake_shfl_up(unsigned mask, T v, unsigned by, int width = 32) {
    return fake_near(mask, v, fake_lane() - (int)by, width);
}
static inline unsigned fake_ballot(unsigned mask, int is) {
    fake_from_lane(mask, is != 0, 0);
    return (unsigned)fake_now->votes;
}

/* Gives each lane the values of the other lanes. All lanes in the mask meet after they have written their
 * values, and meet again before they go on. */
struct fake_shown {
    fake_site here = fake_at;
    fake_mask all;
    fake_shown(const void *mine, fake_mask mask = 0xffffffff) : all(mask) {
        fake_now->give = (unsigned long)mine;
        fake_warp(all);
    }
    ~fake_shown() {
        fake_at = {-here.number, here.line};
        fake_warp(all);
    }
    template <class T> const T *of(int lane) const { return (const T *)fake_now->lanes[lane]; }
};

/* ---- functions ---- */

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

FAKE_SILENT static int atomicCAS(int *p, int expected, int value) {
    fake_pause();
    fake_touch(p, sizeof *p, FAKE_ATOMIC);
    return __sync_val_compare_and_swap(p, expected, value);
}
FAKE_SILENT static int atomicAdd(int *p, int v) {
    fake_pause();
    fake_touch(p, sizeof *p, FAKE_ATOMIC);
    return __sync_fetch_and_add(p, v);
}
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

#ifdef __AMDGCN__
#include "../hip/device_hip.h"
#else
#include "tensor.h"
#endif

template <class... A, std::size_t... I>
FAKE_SILENT static inline void fake_call(void (*kernel)(A...), void **values, std::index_sequence<I...>) {
    kernel(*(std::remove_reference_t<A> *)values[I]...);
}
template <class... A> static inline void fake_call(void (*kernel)(A...), void **values) {
    fake_call(kernel, values, std::index_sequence_for<A...>{});
}
struct w_faults;
template <class F> struct fake_sizes;
template <class... A> struct fake_sizes<void(A...)> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned long end(unsigned long at, unsigned long bytes, unsigned long align) {
        return (at + align - 1) / align * align + bytes;
    }
    static constexpr unsigned long bytes() {
        unsigned long at = 0;
        ((at = end(at, sizeof(A), alignof(A))), ...);
        return at;
    }
    static constexpr unsigned list[sizeof...(A) + 1] = {sizeof(A)..., 0};
    /* which argument is the record of faults, or -1 */
    static constexpr int faults() {
        int found = -1, i = 0;
        ((found = std::is_same<A, w_faults *>::value ? i : found, i++), ...);
        return found;
    }
};
/* threads: the most threads of a block, by __launch_bounds__. */
#define FAKE_KERNEL(name, threads)                                                                           \
    static_assert(fake_sizes<decltype(name)>::bytes() <= FAKE_ARGUMENTS,                                     \
                  #name ": too many bytes of arguments");                                                    \
    extern "C" int fake_faults_##name() { return fake_sizes<decltype(name)>::faults(); }                     \
    extern "C" unsigned fake_threads_##name() { return threads; }                                            \
    extern "C" const unsigned *fake_sizes_##name(unsigned *count) {                                          \
        *count = fake_sizes<decltype(name)>::count;                                                          \
        return fake_sizes<decltype(name)>::list;                                                             \
    }                                                                                                        \
    extern "C" void fake_call_##name(fake_item *me, void **values) {                                         \
        fake_now = me;                                                                                       \
        fake_call(&name, values);                                                                            \
    }
