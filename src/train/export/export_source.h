/* What the files that write C source share. Must not know: files. Read next: export_c.c. */
#ifndef WEFT_SRC_TRAIN_EXPORT_EXPORT_SOURCE_H
#define WEFT_SRC_TRAIN_EXPORT_EXPORT_SOURCE_H

#include "train/export/export.h"

enum { WEFT__EXPORT_NAME = 64 };

/* Everything that the source is written from. */
typedef struct weft__export_source {
    weft__use *use;
    const char *name;
    weft__export_graph graph;
    weft_c99_slot *slots;
    int n_slots;
    char (*names)[WEFT__EXPORT_NAME]; /* [n_slots] the array of each slot */
    bool *constant;                   /* [n_slots] a weight */
    bool blob;                        /* the weights are in a file of their own */
    int64_t weights, memory;          /* bytes */
    uint32_t id;                      /* the same in all files of one export */
} weft__export_source;

/* Writes NAME.h. */
weft_status weft__export_header(const weft__export_source *s, weft_text *out);
/* Writes NAME.c. */
weft_status weft__export_body(const weft__export_source *s, weft_text *out);

/* ---- the file of weights ---- */

#define WEFT__EXPORT_MAGIC "WEFTC99\n"
enum { WEFT__EXPORT_BLOB_HEAD = 16 }; /* the magic, the id, and the number 1 as a float */
/* Returns the first float of a weight behind the head. */
int64_t weft__export_offset(const weft__export_source *s, int slot);

#endif
