/* The CUDA driver's library, opened at run time.
 * Must not know: devices. Read next: device/shared_library.h, devices.c. */
#include "device/cuda/devices.h"
#include "device/cuda/hooks.h"
#include "device/shared_library.h"

weft__cuda_functions weft__cu;
weft__cuda_hooks weft__cuda_hook;

static const char *const files[] = {
    "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", /* WSL does not list it among the libraries */
};

static const weft_shared_symbol wanted[] = {
#define CUDA_FUNCTION(name, hip, arguments) {#name, offsetof(weft__cuda_functions, name)},
#include "device/gpu/driver/cuda.def"
#undef CUDA_FUNCTION
};

static weft_shared_library library = {
    .files = files,
    .n_files = sizeof files / sizeof *files,
    .wanted = wanted,
    .n_wanted = sizeof wanted / sizeof *wanted,
    .table = &weft__cu,
    .absent = "it comes with the driver of NVIDIA's cards (Debian: nvidia-driver, Ubuntu: nvidia-driver-580)",
    .old = "the driver is older than CUDA 12; install a newer one (525 or later); until then opencl serves "
           "its cards"};

const char *weft__cuda_open_library(void) {
    return weft__shared_library_open(&library, weft__cuda_hook.library, weft__cuda_hook.missing);
}

void weft__cuda_forget_library(void) { library.looked = false; }
