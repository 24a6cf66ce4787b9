/* NCCL, the library of exchanges between NVIDIA's cards.
 * Must not know: what is exchanged. Read next: search.c, gpu/driver/nccl/nccl.h. */
#include "device/cuda/cuda.h"
#include "device/cuda/search.h"

static const char *const files[] = {"libnccl.so.2"};

weft_nccl weft__nccl = {
    .name = "NCCL",
    .library = {.files = files,
                .n_files = 1,
                .wanted = weft__nccl_wanted,
                .n_wanted = WEFT_NCCL_WANTED,
                .optional = weft__nccl_links,
                .n_optional = WEFT_NCCL_LINKS,
                .table = &weft__nccl.functions,
                .absent = "install NCCL (pip install nvidia-nccl-cu13, in the environment that is active; "
                          "$WEFT_CUDA_PATH names any other folder)",
                .old = "install a newer NCCL",
                .search = weft__cuda_search}};
