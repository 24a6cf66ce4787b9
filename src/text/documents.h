/* The texts that a path names, left in their files: plain files, or members of tar files. Must not know:
 * tokenizers. Read next: documents.c, passages.h. */
#ifndef WEFT_SRC_TEXT_DOCUMENTS_H
#define WEFT_SRC_TEXT_DOCUMENTS_H

#include "base/buffer.h"
#include "data/shard_files.h"
#include "text/corpus_files.h"

/* Where a text is. */
typedef struct weft__document {
    uint64_t at, size; /* its bytes in the file */
    uint32_t file;
    bool lines; /* .jsonl: each line is an object whose "text" is a text of its own */
} weft__document;

typedef struct weft__documents {
    weft_context *ctx;
    weft_image_shards *files; /* open files */
    weft__document *list;     /* [count], in the order of the training data */
    size_t count, capacity;
    uint64_t bytes;          /* of all of them */
    bool tars;               /* they are members of tar files */
    bool closed;             /* each gets a newline at its end if it has none */
    weft_corpus_files found; /* what was read and left out */
    char *missing;           /* see weft__tokens_missing */
} weft__documents;

/* Tells whether the path names tar files: a file, a pattern, or a folder of them. */
weft_status weft__documents_in_tars(weft_context *ctx, const char *path, bool *tars);

/* Lists the texts of a path. The texts follow each other in the order of their files. Members of a tar file
 * are sorted by name. The caller calls weft__documents_free, also after a failure. WEFT_ERR_FORMAT: a tar
 * file is damaged or holds no text, or a plain file is packed. */
weft_status weft__documents_list(weft_context *ctx, const char *path, weft__documents *out);
void weft__documents_free(weft__documents *documents);

/* Writes the name of a document for messages: FILE, or TAR/MEMBER. */
void weft__documents_name(const weft__documents *documents, size_t document, char *name, size_t size);

/* Reads bytes of a document. A failure is that of the calling thread. */
weft_status weft__documents_read(const weft__documents *documents, size_t document, uint64_t from, void *to,
                                 size_t size);

#endif
