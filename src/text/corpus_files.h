/* The text of a path. Must not know: tokenizers. Read next: corpus_files.c. */
#ifndef WEFT_SRC_TEXT_CORPUS_FILES_H
#define WEFT_SRC_TEXT_CORPUS_FILES_H

#include <weft/data.h>
#include <weft/text.h>

#include "data/file_list.h"

/* What a file of texts holds. */
typedef enum weft__text_form {
    WEFT__TEXT_PLAIN, /* one text */
    WEFT__TEXT_LINES, /* JSON lines: each line is an object whose "text" is a text of its own */
    WEFT__TEXT_ROWS   /* Parquet: each row has a text of its own in the column "text" */
} weft__text_form;

/* The files of a path. */
typedef struct weft__text_files {
    weft__names names;
    weft__text_form *forms;  /* [names.count]; NULL: they are tar files (documents.h) */
    bool several;            /* the path is a folder, a pattern or a range */
    weft_corpus_files found; /* what is read and left out */
} weft__text_files;

/* Lists a file, all files of a folder (names with a dot at the start and subfolders are left out), or all
 * files that match a pattern with * ? or [, in the order of their names. In a folder with Parquet files, the
 * other files are left out. The form follows from the name of a file, or else from its first bytes. Each file
 * is opened at most once, and a .json file twice. The caller calls weft__text_files_free, also after a
 * failure. */
weft_status weft__text_files_list(weft_context *ctx, const char *path, weft__text_files *files);
void weft__text_files_free(weft_context *ctx, weft__text_files *files);

/* Reads the files of a path, one after the other. Each of several files must be UTF-8 if `utf8` is set, and
 * gets a newline at its end if it has none. max_bytes limits all of them; 0: 16 GiB. The caller frees *out
 * with weft_bytes_free. Errors name the file. */
weft_status weft__text_read(weft_context *ctx, const char *path, const weft__text_files *files, bool utf8,
                            size_t max_bytes, weft_bytes *out);

/* The name of the first tar file that is missing in a corpus, by the numbers of the others; NULL: none. */
const char *weft__corpus_missing(const weft_corpus *corpus);

#endif
