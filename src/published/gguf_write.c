/* Writes the header of a GGUF file. Numbers are little-endian; a text is its length and its bytes. Must not
 * know: architectures. Read next: gguf_save.c. */
#include <string.h>

#include "published/gguf_write.h"
#include "published/published.h"

enum { VERSION = 3, ALIGNMENT = 32 };

weft__gguf_header weft__gguf_header_of(weft_context *ctx) {
    return (weft__gguf_header){.ctx = ctx, .keys.ctx = ctx, .tensors.ctx = ctx};
}

void weft__gguf_header_free(weft__gguf_header *h) {
    weft__buffer_free(&h->keys);
    weft__buffer_free(&h->tensors);
}

/* ---- numbers and texts ---- */

static void put_unsigned(weft__buffer *b, int bytes, uint64_t value) {
    char text[8];
    for (int i = 0; i < bytes; i++) text[i] = (char)(uint8_t)(value >> 8 * i);
    weft__buffer_put(b, text, (size_t)bytes);
}

static void put_string(weft__buffer *b, const char *text, size_t bytes) {
    put_unsigned(b, 8, bytes);
    weft__buffer_put(b, text, bytes);
}

/* ---- metadata ---- */

static void put_key(weft__gguf_header *h, const char *key, weft__gguf_kind kind) {
    put_string(&h->keys, key, strlen(key));
    put_unsigned(&h->keys, 4, (uint64_t)kind);
    h->key_count++;
}

void weft__gguf_put_u32(weft__gguf_header *h, const char *key, uint32_t value) {
    put_key(h, key, WEFT__GGUF_U32);
    put_unsigned(&h->keys, 4, value);
}

void weft__gguf_put_f32(weft__gguf_header *h, const char *key, double value) {
    const float single = (float)value;
    uint32_t raw;
    memcpy(&raw, &single, sizeof raw);
    put_key(h, key, WEFT__GGUF_F32);
    put_unsigned(&h->keys, 4, raw);
}

void weft__gguf_put_bool(weft__gguf_header *h, const char *key, bool value) {
    put_key(h, key, WEFT__GGUF_BOOL);
    put_unsigned(&h->keys, 1, value);
}

void weft__gguf_put_text(weft__gguf_header *h, const char *key, const char *text, size_t bytes) {
    put_key(h, key, WEFT__GGUF_TEXT);
    put_string(&h->keys, text, bytes);
}

#define MAKER "weft.made_by"

void weft__gguf_put_maker(weft__gguf_header *h, const char *command) {
    weft__gguf_put_text(h, MAKER, command, strlen(command));
}

bool weft__gguf_made_by(const char *path, const char *command) {
    weft__gguf *file;
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    if (weft__gguf_open(NULL, path, &file) != WEFT_OK) return false;
    const bool made = weft__gguf_find(file, MAKER, &value) && weft__gguf_text(&value, &text, &bytes) &&
                      bytes == strlen(command) && memcmp(text, command, bytes) == 0;
    weft__gguf_close(file);
    return made;
}

void weft__gguf_put_array(weft__gguf_header *h, const char *key, weft__gguf_kind kind, uint64_t count) {
    put_key(h, key, WEFT__GGUF_ARRAY);
    put_unsigned(&h->keys, 4, (uint64_t)kind);
    put_unsigned(&h->keys, 8, count);
}

void weft__gguf_put_item(weft__gguf_header *h, const char *text, size_t bytes) {
    put_string(&h->keys, text, bytes);
}

void weft__gguf_put_item_i32(weft__gguf_header *h, int32_t value) {
    put_unsigned(&h->keys, 4, (uint32_t)value);
}

void weft__gguf_put_item_f32(weft__gguf_header *h, float value) {
    uint32_t raw;
    memcpy(&raw, &value, sizeof raw);
    put_unsigned(&h->keys, 4, raw);
}

void weft__gguf_put_value(weft__gguf_header *h, const char *key, size_t key_bytes,
                          const weft__gguf_value *value) {
    put_string(&h->keys, key, key_bytes);
    if (value->array) put_unsigned(&h->keys, 4, WEFT__GGUF_ARRAY);
    put_unsigned(&h->keys, 4, (uint64_t)value->kind);
    if (value->array) put_unsigned(&h->keys, 8, value->count);
    weft__buffer_put(&h->keys, (const char *)value->data, (size_t)(value->end - value->data));
    h->key_count++;
}

/* ---- tensors ---- */

static uint64_t padding(uint64_t bytes) { return (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT; }

void weft__gguf_put_tensor(weft__gguf_header *h, const char *name, int rank, const int64_t *shape,
                           const weft__block_type *type) {
    weft__buffer *b = &h->tensors;
    uint64_t blocks = 1;
    put_string(b, name, strlen(name));
    put_unsigned(b, 4, (uint64_t)rank);
    for (int i = rank; i-- > 0;) {
        put_unsigned(b, 8, (uint64_t)shape[i]);
        blocks *= (uint64_t)(i == rank - 1 ? shape[i] / type->elements : shape[i]);
    }
    put_unsigned(b, 4, type->number);
    put_unsigned(b, 8, h->data_bytes);
    h->data_bytes += blocks * type->bytes + padding(blocks * type->bytes);
    h->tensor_count++;
}

/* ---- the file ---- */

weft_status weft__gguf_pad(weft__writer *writer, uint64_t bytes) {
    static const char zeros[ALIGNMENT];
    return weft__writer_write(writer, zeros, (size_t)padding(bytes));
}

static weft_status write_header(const weft__gguf_header *h, const weft__buffer *start, weft__writer *writer) {
    WEFT_TRY(weft__writer_write(writer, start->text, start->bytes));
    WEFT_TRY(weft__writer_write(writer, h->keys.text, h->keys.bytes));
    WEFT_TRY(weft__writer_write(writer, h->tensors.text, h->tensors.bytes));
    return weft__gguf_pad(writer, start->bytes + h->keys.bytes + h->tensors.bytes);
}

weft_status weft__gguf_begin(weft__gguf_header *h, const char *path, weft__writer **writer) {
    weft__buffer start = {.ctx = h->ctx};
    *writer = NULL;
    weft__buffer_put(&start, "GGUF", 4);
    put_unsigned(&start, 4, VERSION);
    put_unsigned(&start, 8, h->tensor_count);
    put_unsigned(&start, 8, h->key_count);
    weft_status status = weft__buffer_check(&start);
    if (status == WEFT_OK) status = weft__buffer_check(&h->keys);
    if (status == WEFT_OK) status = weft__buffer_check(&h->tensors);
    const uint64_t bytes = start.bytes + h->keys.bytes + h->tensors.bytes;
    if (status == WEFT_OK)
        status = weft__writer_open(h->ctx, NULL, path, bytes + padding(bytes) + h->data_bytes, writer);
    if (status == WEFT_OK) status = write_header(h, &start, *writer);
    weft__buffer_free(&start);
    if (status == WEFT_OK) return WEFT_OK;
    weft__writer_abandon(*writer);
    *writer = NULL;
    return status;
}
