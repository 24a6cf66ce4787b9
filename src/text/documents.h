/* The texts that a path names, left in their files: plain files, JSON lines, Parquet files, or members of
 * tar files. Must not know:
 * tokenizers. Read next: documents.c, passages.h. */
#ifndef WEFT_SRC_TEXT_DOCUMENTS_H
#define WEFT_SRC_TEXT_DOCUMENTS_H

#include "base/buffer.h"
#include "data/parquet_rows.h"
#include "data/shard_files.h"
#include "text/corpus_files.h"

/* Where a text, or several, are. */
typedef struct weft__document {
    uint64_t at, size; /* its bytes in the file; of a Parquet file its rows, from 0 on */
    uint32_t file;
    weft__text_form form;
} weft__document;

typedef struct weft__documents {
    weft_context *ctx;
    weft_image_shards *files; /* open files */
    weft__document *list;     /* [count], in the order of the training data */
    size_t count, capacity;
    uint64_t bytes;          /* of all of them; of Parquet files about */
    weft__rows *rows;        /* reads Parquet files; NULL: there are none */
    weft_bytes *unpacked;    /* of each file, if it is packed with gzip; NULL: none is */
    bool tars;               /* they are members of tar files */
    bool closed;             /* each gets a newline at its end if it has none */
    weft_corpus_files found; /* what was read and left out */
    char *missing;           /* see weft__tokens_missing */
} weft__documents;

/* Lists the files of a path, also tar files. The caller calls weft__text_files_free, also after a failure. */
weft_status weft__documents_files(weft_context *ctx, const char *path, weft__text_files *files);

/* Tells whether some of these files hold several texts each: tar files, .jsonl or Parquet files. */
bool weft__documents_several(const weft__text_files *files);

/* Lists the texts of the files of a path. The texts follow each other in the order of their files. Members of
 * a tar file are sorted by name. The caller calls weft__documents_free, also after a failure.
 * `unpack`: unpacks files into memory that are packed with gzip. WEFT_ERR_FORMAT: a tar file is damaged or
 * holds no text, a file is packed in another way or `unpack` is false, or a Parquet file cannot be read or
 * has no texts. */
weft_status weft__documents_list(weft_context *ctx, const char *path, const weft__text_files *files,
                                 bool unpack, weft__documents *out);
void weft__documents_free(weft__documents *documents);

/* Writes the name of a document for messages: FILE, or TAR/MEMBER. */
void weft__documents_name(const weft__documents *documents, size_t document, char *name, size_t size);

/* Reads bytes of a document. A failure is that of the calling thread. */
weft_status weft__documents_read(const weft__documents *documents, size_t document, uint64_t from, void *to,
                                 size_t size);

/* Gives a row of a document of rows, valid until the next call. It is read with those that follow before row
 * `end`. A failure is that of the calling thread. */
weft_status weft__documents_row(const weft__documents *documents, size_t document, uint64_t row, uint64_t end,
                                const char **text, size_t *bytes);

#endif
