/* Writes GGUF files, version 3: first metadata and the list of tensors in memory, then the data of the
 * tensors in the order of the list. Must not know: architectures. Read next: gguf_write.c. */
#ifndef WEFT_SRC_PUBLISHED_GGUF_WRITE_H
#define WEFT_SRC_PUBLISHED_GGUF_WRITE_H

#include "io/publish.h"
#include "published/gguf.h"
#include "published/quantize.h"
#include "text/pipeline/pipeline.h"

/* A header that is being made. Memory that is short is noted, and weft__gguf_begin reports it. */
typedef struct weft__gguf_header {
    weft_context *ctx;
    weft__buffer keys, tensors; /* as they will be in the file */
    uint64_t key_count, tensor_count, data_bytes;
} weft__gguf_header;

weft__gguf_header weft__gguf_header_of(weft_context *ctx);
void weft__gguf_header_free(weft__gguf_header *h);

/* Append a value to the metadata. */
void weft__gguf_put_u32(weft__gguf_header *h, const char *key, uint32_t value);
void weft__gguf_put_f32(weft__gguf_header *h, const char *key, double value);
void weft__gguf_put_bool(weft__gguf_header *h, const char *key, bool value);
void weft__gguf_put_text(weft__gguf_header *h, const char *key, const char *text, size_t bytes);
/* Notes which command, such as "export", makes the file. */
void weft__gguf_put_maker(weft__gguf_header *h, const char *command);
/* Copies a value of another file. */
void weft__gguf_put_value(weft__gguf_header *h, const char *key, size_t key_bytes,
                          const weft__gguf_value *value);

/* Begins an array of `count` elements, which must follow at once: texts or numbers. */
void weft__gguf_put_array(weft__gguf_header *h, const char *key, weft__gguf_kind kind, uint64_t count);
void weft__gguf_put_item(weft__gguf_header *h, const char *text, size_t bytes);
void weft__gguf_put_item_i32(weft__gguf_header *h, int32_t value);
void weft__gguf_put_item_f32(weft__gguf_header *h, float value);

/* Appends a tensor to the list, with the shape in row-major order. Its data begins on a boundary of 32
 * bytes, so weft__gguf_pad must follow the data of each tensor. */
void weft__gguf_put_tensor(weft__gguf_header *h, const char *name, int rank, const int64_t *shape,
                           const weft__block_type *type);

/* Starts the file and writes the header. Commit or abandon *writer. */
weft_status weft__gguf_begin(weft__gguf_header *h, const char *path, weft__writer **writer);
/* Writes zeros behind so many bytes of data, up to the next boundary. */
weft_status weft__gguf_pad(weft__writer *writer, uint64_t bytes);

#endif
