/* Logits in parts, so that they are never all there. Read next: head.c. */
#ifndef WEFT_OPS_HEAD_H
#define WEFT_OPS_HEAD_H

#include "graph/graph.h"

/* How many parts logits are made in where nobody says: as few as hold no more than 1 GiB each. */
int64_t weft__logit_parts_of(int64_t rows, int64_t classes, weft_dtype dtype);
/* Marks the product that makes logits for that many parts, where it is one of rows by a matrix. */
void weft__logit_mark(weft_tensor *logits, int64_t parts);
/* The mark of the product that makes them; 1: whole. */
int64_t weft__logit_parts(weft_tensor *logits);
/* Part `part`, at least one row, of such logits (rows, classes), by a product of its own. What is recorded up
 * to weft__segment_end(ctx, *segment) belongs to the part. */
weft_tensor *weft__logit_part(const char *where, weft_tensor *logits, int64_t part, int64_t parts,
                              uint32_t *segment);

#endif
