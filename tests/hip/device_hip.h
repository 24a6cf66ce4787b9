/* What clang provides for AMD's cards, for the host's compiler: the builtins that prelude/amd.cu uses, and
 * the functions of AMD's device libraries. Comes after device.h, which includes it. FAKE_WAVE: lanes of a
 * wavefront. */

#define __builtin_amdgcn_workgroup_id_x()   (fake_now->block.x)
#define __builtin_amdgcn_workgroup_id_y()   (fake_now->block.y)
#define __builtin_amdgcn_workgroup_id_z()   (fake_now->block.z)
#define __builtin_amdgcn_workgroup_size_x() (fake_now->threads.x)
#define __builtin_amdgcn_workgroup_size_y() (fake_now->threads.y)
#define __builtin_amdgcn_workgroup_size_z() (fake_now->threads.z)
#define __builtin_amdgcn_workitem_id_x()    (fake_now->thread.x)
#define __builtin_amdgcn_workitem_id_y()    (fake_now->thread.y)
#define __builtin_amdgcn_workitem_id_z()    (fake_now->thread.z)
#define __builtin_amdgcn_grid_size_x()      (fake_now->blocks.x * fake_now->threads.x)
#define __builtin_amdgcn_grid_size_y()      (fake_now->blocks.y * fake_now->threads.y)
#define __builtin_amdgcn_grid_size_z()      (fake_now->blocks.z * fake_now->threads.z)

/* The lane in its wavefront; a set of all lanes of its warp. */
static inline unsigned fake_wave_lane() {
    const fake_item *me = fake_now;
    return (me->thread.x + me->threads.x * (me->thread.y + me->threads.y * me->thread.z)) % FAKE_WAVE;
}
static inline fake_mask fake_team() { return 0xffffffffUL << (fake_wave_lane() & 32); }
#define __builtin_amdgcn_mbcnt_lo(mask, add) (add)
#define __builtin_amdgcn_mbcnt_hi(mask, add) ((add) + fake_wave_lane())

/* scope: "agent", "workgroup" or "wavefront" */
#define __builtin_amdgcn_fence(order, scope) fake_fence((scope)[0] == 'a' ? FAKE_CARD : FAKE_BLOCK)
#define __builtin_amdgcn_s_barrier()         FAKE_HERE((void)fake_barrier())
#define __builtin_amdgcn_wave_barrier()      FAKE_HERE(fake_warp(fake_team()))
#define FAKE_WAVE_BARRIER()                  FAKE_HERE(fake_warp(~0ul)) /* prelude/matrix.cu: of a whole wavefront */
/* at: a lane of the wavefront, times 4; FAKE_WAVE_PERMUTE: all lanes of the wavefront are there
 * (prelude/matrix.cu) */
#define FAKE_WAVE_PERMUTE(at, x) FAKE_HERE(fake_from_lane(~0ul, (x), (int)((unsigned)(at) / 4 % FAKE_WAVE)))
#define __builtin_amdgcn_ds_bpermute(at, x)                                                                  \
    FAKE_HERE(fake_from_lane(fake_team(), (x), (int)((unsigned)(at) / 4 % FAKE_WAVE)))

FAKE_SILENT static int fake_atomic_or(int *p, int v) {
    fake_pause();
    fake_touch(p, sizeof *p, FAKE_ATOMIC);
    return __sync_fetch_and_or(p, v);
}
#define __hip_atomic_fetch_or(p, v, order, scope)  fake_atomic_or(p, v)
#define __hip_atomic_fetch_add(p, v, order, scope) atomicAdd(p, v)
#define __hip_atomic_compare_exchange_strong(p, expected, v, order, failed, scope)                           \
    (*(expected) = atomicCAS(p, *(expected), v))

#define W_CORE_ANEW(x) (void)(x) /* prelude/matrix.cu: only for the compiler */

#include "matrix.h"

#define FAKE_OCML_1(name)                                                                                    \
    extern "C" __attribute__((visibility("hidden"))) double __ocml_##name##_f64(double x) { return name(x); }
#define FAKE_OCML_2(name)                                                                                    \
    extern "C" __attribute__((visibility("hidden"))) double __ocml_##name##_f64(double x, double y) {        \
        return name(x, y);                                                                                   \
    }
FAKE_OCML_1(exp)
FAKE_OCML_1(exp2)
FAKE_OCML_1(expm1)
FAKE_OCML_1(log)
FAKE_OCML_1(log2)
FAKE_OCML_1(log1p)
FAKE_OCML_1(sin)
FAKE_OCML_1(cos)
FAKE_OCML_1(tanh)
FAKE_OCML_1(erf)
FAKE_OCML_1(erfc)
FAKE_OCML_2(pow)
FAKE_OCML_2(hypot)
FAKE_OCML_2(atan2)
FAKE_OCML_2(fmod)
extern "C" __attribute__((visibility("hidden"))) float __ocml_fmod_f32(float x, float y) {
    return fmodf(x, y);
}
