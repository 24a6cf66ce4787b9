/* A simulated HIP runtime, for tests on machines without an AMD card: the files of tests/cuda, built with
 * FAKE_HIP as libamdhip64.so.6 and libhiprtc.so.6. They export HIP's names instead of CUDA's (the column
 * `hip` of device/gpu/driver/cuda.def), and driver.c has the functions that differ. Kernels are compiled as
 * for AMD, with the words of prelude/amd.cu, on clang's builtins as device_hip.h defines them. All checks of
 * cuda/fake.h hold.
 *
 * Environment, besides that of cuda/fake.h:
 *     FAKE_HIP_WAVE=32       wavefronts of 32 lanes, as gfx1100 has them; default: 64, as gfx90a
 *     FAKE_HIP_ARCH=gfx1201  this architecture, with its wavefronts and matrix cores
 *     FAKE_HIPBLASLT_VERSION=600  the version that hipBLASLt tells (blas.c); default: 1000, which is 0.10
 * The lanes of a warp (32) meet at an operation of the warp; the other half of a wavefront of 64 may be
 * elsewhere. A lane that reads a lane of the other warp gets garbage.
 *
 * Read next: driver.c, device_hip.h, matrix.h. */
#ifndef WEFT_TESTS_HIP_FAKE_HIP_H
#define WEFT_TESTS_HIP_FAKE_HIP_H

#include <stdlib.h>

static inline const char *fake_hip_arch(void) {
    const char *arch = getenv("FAKE_HIP_ARCH"), *wave = getenv("FAKE_HIP_WAVE");
    if (arch) return arch;
    return wave && atoi(wave) == 32 ? "gfx1100" : "gfx90a:sramecc+:xnack-";
}

/* Architectures of gfx9, such as gfx90a, have 64 lanes. */
static inline int fake_hip_wave(void) {
    static int wave;
    if (!wave) wave = fake_hip_arch()[3] == '9' ? 64 : 32;
    return wave;
}

#endif
