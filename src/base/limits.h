/* How much a file of others may ask for, however small it is. tools/gen_limits.py writes these lines as the
 * table of SECURITY.md: the name, the value, then what it limits. Must not know: who reads which file. Read
 * next: text/pipeline/pipeline.c, io/gzip.c, data/image_file.c. */
#ifndef WEFT_SRC_BASE_LIMITS_H
#define WEFT_SRC_BASE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- tokenizers ---- */
#define WEFT__PARTS_MAX    128  /* parts of each stage, such as normalizers */
#define WEFT__FRAME_MAX    1024 /* special tokens and texts in a template of a post-processor */
#define WEFT__AFFIX_MAX    256 /* bytes of a prefix or suffix of words, and of a key of precompiled_charsmap */
#define WEFT__MATCH_MEMORY ((size_t)256 << 20) /* bytes that matching a pattern takes */
#define WEFT__GROWTH_RATIO 64                  /* bytes that a byte of a text or a token may become */
#define WEFT__GROWTH_FREE  4096                /* bytes that each text or token may become besides */
#define WEFT__WORK_RATIO   128                 /* steps for each byte of a text or a token */
#define WEFT__MATCH_START  256 /* steps of matching a pattern from one place, which are free */
#define WEFT__MATCH_FREE                                                                                     \
    65536 /* further steps of matching a pattern in a text, besides those for each byte */
#define WEFT__WORK_FREE ((uint64_t)1 << 20) /* steps for each text or token besides */

/* ---- chat templates ---- */
#define JINJA_SOURCE_MAX ((size_t)1 << 20)    /* bytes of a template */
#define JINJA_MEMORY_MAX ((size_t)256 << 20)  /* bytes of all values of a run */
#define JINJA_STEPS_MAX  ((uint64_t)10000000) /* steps of a run */
#define JINJA_NESTED_MAX 200                  /* levels of brackets and blocks in a template, and of values */
#define JINJA_DEPTH_MAX  400                  /* levels of a run, with those of macros */
#define JINJA_RANGE_MAX  100000               /* numbers of a range, as in jinja2's sandbox */

/* ---- JSON schemas ---- */
#define WEFT__SCHEMA_DEPTH  64                /* levels of a schema */
#define WEFT__SCHEMA_VALUES ((size_t)1 << 18) /* values of a schema */
#define WEFT__SCHEMA_ITEMS  ((size_t)1 << 16) /* entries of an object or a list of a schema */

/* ---- files packed with gzip ---- */
#define WEFT__UNPACK_RATIO 32                   /* bytes that a byte of a packed file may become */
#define WEFT__UNPACK_FREE  ((uint64_t)64 << 20) /* bytes that a packed file may become besides */

/* ---- Parquet files ---- */
#define WEFT__PARQUET_RATIO 64 /* bytes of text, or of memory, that a byte of a file may become */
#define WEFT__PARQUET_FREE                                                                                   \
    ((uint64_t)1 << 28) /* bytes of text, or of memory, that a file may become besides; a row of texts is 8  \
                           bytes more */

/* ---- images ---- */
#define WEFT__PIXELS_MAX ((int64_t)1 << 27) /* pixels of an image, unless data.image_pixels is set */
#define WEFT__SCANS_MAX  64                 /* scans of a JPEG file */

/* Takes an amount of work or memory from what is left. False: it is more than is left, and nothing is left
 * then. */
static inline bool weft__spend(uint64_t *left, uint64_t amount) {
    const bool enough = amount <= *left;
    *left = enough ? *left - amount : 0;
    return enough;
}

#endif
