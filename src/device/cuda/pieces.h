/* What CUDA consists of, for `weft doctor`. Read next: pieces.c. */
#ifndef WEFT_DEVICE_CUDA_PIECES_H
#define WEFT_DEVICE_CUDA_PIECES_H

#include <stdbool.h>

enum { WEFT_PIECE_TEXT = 800 };

/* "driver", "card", "NVRTC", "cuBLASLt", "cuDNN", "NCCL" or "NVML": whether it is there. text: its version,
 * or why there is none and what helps. */
bool weft__cuda_piece(const char *name, char text[WEFT_PIECE_TEXT]);

#endif
