/* GGUF files: metadata and tensors (the format of llama.cpp: docs/gguf.md of
 * https://github.com/ggml-org/ggml). A file is mapped into memory. Must not know: what the metadata means.
 * Read next: gguf.c. */
#ifndef WEFT_SRC_PUBLISHED_GGUF_H
#define WEFT_SRC_PUBLISHED_GGUF_H

#include "published/blocks.h"

typedef struct weft__gguf weft__gguf;

typedef enum weft__gguf_kind {
    WEFT__GGUF_U8,
    WEFT__GGUF_I8,
    WEFT__GGUF_U16,
    WEFT__GGUF_I16,
    WEFT__GGUF_U32,
    WEFT__GGUF_I32,
    WEFT__GGUF_F32,
    WEFT__GGUF_BOOL,
    WEFT__GGUF_TEXT,
    WEFT__GGUF_ARRAY,
    WEFT__GGUF_U64,
    WEFT__GGUF_I64,
    WEFT__GGUF_F64,
    WEFT__GGUF_KINDS
} weft__gguf_kind;

/* A value, or the values of an array, in the file's bytes. */
typedef struct weft__gguf_value {
    weft__gguf_kind kind; /* of the elements of an array */
    bool array;
    uint64_t count; /* 1 for a value that is no array */
    const uint8_t *data, *end;
} weft__gguf_value;

typedef struct weft__gguf_tensor {
    char *name;
    int rank;
    int64_t shape[4]; /* row-major, so the reverse of the order in the file */
    const weft__block_type *type;
    const uint8_t *data;
    size_t row_bytes; /* of the last dimension */
} weft__gguf_tensor;

/* The arrays of SentencePiece's BPE, of equal length. */
typedef struct weft__gguf_pieces {
    weft__gguf_value tokens, types, scores;
} weft__gguf_pieces;

/* Opens a file and checks its header: every length, that names are unique, and that all data lies in the
 * file. WEFT_ERR_FORMAT names the byte, the tensor or key, or a dtype that Weft does not read. */
weft_status weft__gguf_open(weft_context *ctx, const char *path, weft__gguf **out);
/* The same for bytes in memory, which must outlive the result. */
weft_status weft__gguf_open_memory(weft_context *ctx, const char *name, const void *data, size_t bytes,
                                   weft__gguf **out);
void weft__gguf_close(weft__gguf *g);

/* Returns the number of tensors, sorted by name, and tensor i. */
size_t weft__gguf_count(const weft__gguf *g);
const weft__gguf_tensor *weft__gguf_tensor_at(const weft__gguf *g, size_t i);

/* Gives key i of the metadata, in the order of the file; its name has no NUL. False if there is none. */
bool weft__gguf_key(const weft__gguf *g, size_t i, const char **name, size_t *bytes, weft__gguf_value *value);
/* Finds a value of the metadata. */
bool weft__gguf_find(const weft__gguf *g, const char *key, weft__gguf_value *value);

/* Return a value as a number or, as `count` bytes at *text, a text; false if it is none. Of an array these
 * take the next element, and move data forward. */
bool weft__gguf_number(weft__gguf_value *value, double *number);
bool weft__gguf_text(weft__gguf_value *value, const char **text, size_t *bytes);

#endif
