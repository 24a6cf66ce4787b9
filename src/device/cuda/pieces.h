/* The pieces of CUDA, for `weft doctor`.
 * Must not know: what a piece does. Read next: pieces.c. */
#ifndef WEFT_DEVICE_CUDA_PIECES_H
#define WEFT_DEVICE_CUDA_PIECES_H

#include <stdbool.h>

enum { WEFT_PIECE_TEXT = 800 };

/* Returns whether a piece is installed: "driver", "card", "NVRTC", "cuBLASLt", "cuDNN", "NCCL" or "NVML".
 * text receives its version, or why it is missing and what helps. */
bool weft__cuda_piece(const char *name, char text[WEFT_PIECE_TEXT]);

#endif
