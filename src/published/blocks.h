/* Blocks of quantised numbers, as GGUF files store them. Must not know: files. Read next: blocks.c. */
#ifndef WEFT_SRC_PUBLISHED_BLOCKS_H
#define WEFT_SRC_PUBLISHED_BLOCKS_H

#include "base/base.h"

/* The numbers of the types in GGUF files. */
enum {
#define BLOCK(number, name, elements, bytes, unpack) WEFT__BLOCK_##name = number,
#include "published/blocks.def"
};

typedef struct weft__block_type {
    uint32_t number; /* in GGUF files */
    const char *name;
    int64_t elements;
    size_t bytes;
    void (*unpack)(const uint8_t *block, float *out);
} weft__block_type;

/* Finds a type by its number; NULL if Weft does not read it. */
const weft__block_type *weft__block_find(uint32_t number);

/* Writes the names of all types, with commas. */
void weft__block_names(char *out, size_t bytes);

/* Unpacks n elements, whole blocks. */
void weft__block_unpack(const weft__block_type *type, const uint8_t *from, int64_t n, float *out);

#endif
