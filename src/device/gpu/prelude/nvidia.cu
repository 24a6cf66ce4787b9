/* The words of cuda.cu that NVIDIA's compiler has. Comes after cuda.cu. Compile with --fmad=false.
 * Read next: amd.cu, which defines the same words. */
#ifndef __AMDGCN__
#define w_group(dim)    ((int)((dim) == 0 ? blockIdx.x : (dim) == 1 ? blockIdx.y : blockIdx.z))
#define w_groups(dim)   ((int)((dim) == 0 ? gridDim.x : (dim) == 1 ? gridDim.y : gridDim.z))
#define w_item(dim)     ((int)((dim) == 0 ? threadIdx.x : (dim) == 1 ? threadIdx.y : threadIdx.z))
#define w_barrier()     __syncthreads()
#define w_barrier_all() __syncthreads()
#define W_ANY_ITEM(x)   __syncthreads_or(x) /* a barrier, too */
#define w_barrier_warp() __syncwarp() /* a barrier for the lanes of a warp */
/* Return the x of the lane that is `by` lanes further in the warp, and of the warp's first lane. `who`: a mask of all
 * lanes that call it together. */
#define w_lane_down(who, x, by) __shfl_down_sync(who, x, by)
#define w_lane_first(who, x)    __shfl_sync(who, x, 0)

W_FN float convert_float_rtz(int x) { return __int2float_rz(x); }
W_FN float convert_float_rtz(uint x) { return __uint2float_rz(x); }
W_FN float convert_float_rtz(long x) { return __ll2float_rz(x); }
W_FN float convert_float_rtz(ulong x) { return __ull2float_rz(x); }
W_FN float convert_float_rtz(double x) { return __double2float_rz(x); }

W_FN float vload_half(long i, const half *p) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(p[i]));
    return x;
}
W_FN void vstore_half_rte(float x, long i, half *p) {
    ushort bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    p[i] = bits;
}

/* Return 2 to the power of x, within 2 ULP. The second one returns 0 instead of subnormal numbers. */
W_FN float w_exp2_near(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
W_FN float w_exp2_normal(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* Returns 1 / x for 1 <= x < 2^126, within 1 ULP. */
W_FN float w_recip_near(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define W_RECIP_NEAR  w_recip_near
#define W_EXP2_NEAR   w_exp2_near
#define W_EXP2_NORMAL w_exp2_normal

/* From compute capability 8.0 on: two numbers as bf16, and the larger or smaller of two numbers, where NaN wins. The
 * conversion of one number takes several times as long. */
#if __CUDA_ARCH__ >= 800
W_FN uint w_cvt_two_bf16(float low, float high) {
    uint bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}
W_FN float w_nan_max(float x, float y) {
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
    return most;
}
W_FN float w_nan_min(float x, float y) {
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
    return least;
}
#define W_CVT_TWO_BF16 w_cvt_two_bf16
#define W_NAN_MAX      w_nan_max
#define W_NAN_MIN      w_nan_min
#endif

W_FN uint mul_hi(uint x, uint y) { return __umulhi(x, y); }
W_FN int atomic_cmpxchg(int *p, int expected, int value) { return atomicCAS(p, expected, value); }
W_FN int atomic_add(int *p, int value) { return atomicAdd(p, value); }
#endif
