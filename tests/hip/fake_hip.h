/* A simulated HIP runtime, for tests on machines without an AMD card: the files of tests/cuda, built with
 * FAKE_HIP as libamdhip64.so.6 and libhiprtc.so.6. They export HIP's names instead of CUDA's (the column
 * `hip` of device/cuda/driver/cuda.def), and driver.c has the functions that differ. Kernels are compiled as
 * for AMD, with the words of prelude/amd.cu, on clang's builtins as device_hip.h defines them. All checks of
 * cuda/fake.h hold.
 *
 * Environment, besides that of cuda/fake.h:
 *     FAKE_HIP_WAVE=32    wavefronts of 32 lanes, as gfx1100 has them; default: 64, as gfx90a
 * The lanes of a warp (32) meet at an operation of the warp; the other half of a wavefront of 64 may be
 * elsewhere. A lane that reads a lane of the other warp gets garbage.
 *
 * Read next: driver.c, device_hip.h. */
#ifndef WEFT_TESTS_HIP_FAKE_HIP_H
#define WEFT_TESTS_HIP_FAKE_HIP_H

#include <stdlib.h>

static inline int fake_hip_wave(void) {
    static int wave;
    const char *wish = getenv("FAKE_HIP_WAVE");
    if (!wave) wave = wish && atoi(wish) == 32 ? 32 : 64;
    return wave;
}

#endif
