/* Weights of published models that stay packed. Must not know: training. Read next: packed.c, load.c. */
#ifndef WEFT_SRC_PUBLISHED_PACKED_H
#define WEFT_SRC_PUBLISHED_PACKED_H

#include "nn/module.h"
#include "published/published.h"
#include "published/tensors.h"

/* Finds a tensor under its name with or without the prefix. */
bool weft__published_find(const weft__published *p, const weft__tensors *tensors, const weft__placed *placed,
                          weft__tensor_at *at);

/* Packs each layer of a gpt whose weight the file holds in formats that can stay packed. */
weft_status weft__published_pack(const weft__published *p, const char *path, weft_module *gpt);

/* Returns the part of a packed weight that has row `row`; *first gets the first row of this part. */
const weft__packed_part *weft__packed_part_at(const weft__packing *packing, int64_t row, int64_t *first);

/* Fills the parts of a packed weight from `count` tensors, which were checked. */
weft_status weft__packed_load(const weft__published *p, const weft__tensors *tensors, const weft_module *m,
                              const weft__placed *placed, int count);

#endif
