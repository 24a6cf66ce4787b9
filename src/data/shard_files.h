/* Tar files, and other files of texts, open for reading at any place by many threads. Must not know: what
 * they hold, libarchive. Read next: shard_files.c, image_shards.c, text/documents.h. */
#ifndef WEFT_SRC_DATA_SHARD_FILES_H
#define WEFT_SRC_DATA_SHARD_FILES_H

#include "data/image_found.h"
#include "data/image_skipped.h"
#include "data/tar_list.h"

enum { WEFT__SHARDS_MOST = 65536 };

/* Takes the paths of tar files. The caller frees *out with weft__shards_free. */
weft_status weft__shards_new(weft_context *ctx, const weft__names *paths, weft_image_shards **out);
void weft__shards_free(weft_context *ctx, weft_image_shards *shards);

size_t weft__shards_count(const weft_image_shards *shards);
const char *weft__shards_path(const weft_image_shards *shards, size_t shard);
/* What lies among the images. */
weft__skipped *weft__shards_skipped(const weft_image_shards *shards);

/* Calls `visit` for all members of a tar file, and notes how large and how old the file is. */
weft_status weft__shards_list(weft_context *ctx, weft_image_shards *shards, size_t shard,
                              weft__tar_visit *visit, void *user);

/* For a file that is no tar file: notes how large and how old it is. */
weft_status weft__shards_plain(weft_context *ctx, weft_image_shards *shards, size_t shard, uint64_t *size);

/* Uses an open file whose content is no matter of bytes. Fails like weft__shards_read if the file is not the
 * one that was listed. */
typedef weft_status weft__shard_use(void *user, int fd, const char *path);
weft_status weft__shards_use(weft_context *ctx, const weft_image_shards *shards, size_t shard,
                             weft__shard_use *use, void *user);

/* Reads bytes of a file. WEFT_ERR_STATE: the file is not the one that was listed. ctx is NULL when
 * several threads do this at once. */
weft_status weft__shards_read(weft_context *ctx, const weft_image_shards *shards, size_t shard, uint64_t at,
                              void *to, size_t size);

/* Reads the image file of a member. */
weft_status weft__shards_image(weft_context *ctx, const weft_image_shards *shards,
                               const weft_image_member *member, weft_bytes *out);

#endif
