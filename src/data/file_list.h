/* The files that a path names: a file, those of a folder, of a pattern, or of a range. Must not know: what
 * they hold. Read next: file_list.c. */
#ifndef WEFT_SRC_DATA_FILE_LIST_H
#define WEFT_SRC_DATA_FILE_LIST_H

#include "data/image_found.h"

typedef struct weft__file_list {
    weft__names names; /* sorted; those of a range by their numbers */
    bool several;      /* the path is a folder, a pattern or a range */
    bool folder;
    uint64_t hidden;  /* names of the folder that begin with a dot; they are left out */
    uint64_t folders; /* folders inside; they are left out */
} weft__file_list;

/* Lists the files of a path. A path that does not exist, and is no pattern, is a file. WEFT_ERR_IO: no file
 * matches a pattern, or a file of a range is missing. The caller calls weft__file_list_free, also after a
 * failure. */
weft_status weft__file_list_read(weft_context *ctx, const char *path, weft__file_list *list);
void weft__file_list_free(weft_context *ctx, weft__file_list *list);

/* Tells whether a name has this ending, in any case of letters. */
bool weft__has_ending(const char *name, const char *ending);

#endif
