/* The text of a path. Must not know: tokenizers. Read next: corpus_files.c. */
#ifndef WEFT_SRC_TEXT_CORPUS_FILES_H
#define WEFT_SRC_TEXT_CORPUS_FILES_H

#include <weft/data.h>
#include <weft/text.h>

#include "data/image_found.h"

/* What a file of texts holds. */
typedef enum weft__text_form {
    WEFT__TEXT_PLAIN, /* one text */
    WEFT__TEXT_LINES, /* .jsonl: each line is an object whose "text" is a text of its own */
    WEFT__TEXT_ROWS   /* Parquet: each row has a text of its own in the column "text" */
} weft__text_form;

/* Tells the form by the name of the file, and Parquet also by its first bytes. */
weft__text_form weft__text_form_of(const char *path);

/* Tells whether a name has this ending, in any case of letters. */
bool weft__has_ending(const char *name, const char *ending);

/* Reads a file, all files of a folder (names with a dot at the start and subfolders are left out), or all
 * files that match a pattern with * ? or [. Several files follow each other in the order of their names; each
 * must be UTF-8 if `utf8` is set, and gets a newline at its end if it has none. max_bytes limits all of them;
 * 0: 16 GiB. Adds what was read and left out to *files. The caller frees *out with weft_bytes_free. Errors
 * name the file. */
weft_status weft__text_read(weft_context *ctx, const char *path, bool utf8, size_t max_bytes,
                            weft_corpus_files *files, weft_bytes *out);

/* Lists the files that weft__text_read would read, in their order, and adds what is left out to *files. In a
 * folder with .parquet files, the other files are left out. *several: the path is a folder or a pattern. The
 * caller frees the names, also after a failure. */
weft_status weft__text_paths(weft_context *ctx, const char *path, weft_corpus_files *files,
                             weft__names *paths, bool *several);

/* The name of the first tar file that is missing in a corpus, by the numbers of the others; NULL: none. */
const char *weft__corpus_missing(const weft_corpus *corpus);

#endif
