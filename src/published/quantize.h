/* The formats in which Weft writes weights, and their quantisers. Must not know: files. Read next:
 * quantize.c. */
#ifndef WEFT_SRC_PUBLISHED_QUANTIZE_H
#define WEFT_SRC_PUBLISHED_QUANTIZE_H

#include "published/blocks.h"

typedef struct weft__format {
    const char *word;             /* as users write it */
    const weft__block_type *type; /* set by weft__format_find */
    uint32_t number;              /* of the type */
    void (*pack)(const float *from, uint8_t *block);
    const char *instead, *head; /* words of other formats: see formats.def */
    uint32_t file_type;
    double within; /* how far logits may be off */
} weft__format;

/* Finds a format by its word; false if there is none. */
bool weft__format_find(const char *word, weft__format *out);

/* Writes the words of all formats, with commas. */
void weft__format_words(char *out, size_t bytes);

/* Changes a format to one that can hold rows of so many elements. */
void weft__format_fit(weft__format *format, int64_t columns);

/* Returns the first element that the format cannot hold: NaN, an infinity, or a number beyond f16 unless the
 * format is f32 or bf16. n if it can hold all. */
int64_t weft__format_check(const weft__format *format, const float *from, int64_t n);

/* Packs n elements, whole blocks. */
void weft__format_pack(const weft__format *format, const float *from, int64_t n, uint8_t *out);

/* ---- quantize_k.c: blocks of 256 ---- */

void weft__pack_q4_k(const float *from, uint8_t *block);
void weft__pack_q6_k(const float *from, uint8_t *block);

#endif
