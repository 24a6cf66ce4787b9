/* Logits in parts, so that all of them are never in memory at once.
 * Must not know: losses. Read next: head.c. */
#ifndef WEFT_OPS_HEAD_H
#define WEFT_OPS_HEAD_H

#include "graph/graph.h"

/* The number of parts if the user does not set it: the fewest that have at most 1 GiB each. */
int64_t weft__logit_parts_of(int64_t rows, int64_t classes, weft_dtype dtype);
/* Marks the matmul of the logits for so many parts. Does nothing if the logits are not made by a matmul of
 * rows and a matrix. */
void weft__logit_mark(weft_tensor *logits, int64_t parts);
/* The number of parts that the logits' matmul is marked for; 1: whole. */
int64_t weft__logit_parts(weft_tensor *logits);
/* Records part `part` of marked logits (rows, classes), at least one row, by a matmul of its own. Nodes
 * recorded until weft__segment_end(ctx, *segment) belong to the part. */
weft_tensor *weft__logit_part(const char *where, weft_tensor *logits, int64_t part, int64_t parts,
                              uint32_t *segment);

#endif
