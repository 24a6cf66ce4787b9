/* Lists the members of a tar file, without reading what they hold. Must not know: images. Read next:
 * tar_list.c. */
#ifndef WEFT_SRC_DATA_TAR_LIST_H
#define WEFT_SRC_DATA_TAR_LIST_H

#include <weft/data.h>

#include "base/base.h"

typedef struct weft__tar_member {
    const char *name;     /* without "/" and "./" in front; valid during the call */
    uint64_t header;      /* byte at which its headers begin */
    uint64_t data, size;  /* the bytes of the file */
    const char *no_bytes; /* why the tar does not hold these bytes in one piece, as "a link"; NULL: it does */
} weft__tar_member;

typedef weft_status weft__tar_visit(void *user, const weft__tar_member *member);

/* An open tar file. */
typedef struct weft__tar_file {
    int fd;
    const char *path; /* for messages */
    uint64_t size;    /* bytes */
} weft__tar_file;

/* Calls `visit` for each file and link of a tar, in their order, and ends with the first failure. Folders are
 * left out. WEFT_ERR_FORMAT: this is no tar, or it is packed, cut off, or followed by other bytes. */
weft_status weft__tar_list(weft_context *ctx, const weft__tar_file *tar, weft__tar_visit *visit, void *user);

/* Reads the name of the member whose headers begin at a byte. */
weft_status weft__tar_name(weft_context *ctx, const weft__tar_file *tar, uint64_t header, weft_bytes *name);

/* Reads exactly `size` bytes of a file. WEFT_ERR_FORMAT: it ends before. */
weft_status weft__read_at(weft_context *ctx, int fd, const char *path, uint64_t at, void *to, size_t size);

#endif
