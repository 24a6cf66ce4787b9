/* Tokens behind weft_tokens: mapped files, or a source that makes tokens when they are read. Must not know:
 * tokenizers, batches. Read next: tokens.c. */
#ifndef WEFT_SRC_DATA_TOKENS_H
#define WEFT_SRC_DATA_TOKENS_H

#include <weft/data.h>

#include "data/image_found.h"

/* Writes exactly `count` tokens from number `first` on. Several threads may call it at once. A failure is
 * that of the calling thread (context NULL). */
typedef weft_status weft__tokens_source(void *user, int64_t first, size_t count, int32_t *ids);

/* What a source has: the results of weft_tokens_count, _largest and _hash. */
typedef struct weft__tokens_facts {
    int64_t count;
    int32_t largest;
    uint64_t hash;
} weft__tokens_facts;

/* Makes tokens that a source gives. `user` must outlive them. */
weft_status weft__tokens_from(weft_context *ctx, const weft__tokens_facts *facts, weft__tokens_source *source,
                              void *user, weft_tokens **out);

/* Copies exactly `count` tokens, which must be there. A failure is that of the calling thread. */
weft_status weft__tokens_get(const weft_tokens *tokens, int64_t first, size_t count, int32_t *ids);

/* The path of the first file that has the largest token; NULL: there are no files. */
const char *weft__tokens_largest_file(const weft_tokens *tokens);
/* The name of the first file that is missing, by the numbers of the others: part-02.bin between part-01.bin
 * and part-03.bin. NULL: none. */
const char *weft__tokens_missing(const weft_tokens *tokens);

/* Writes a file of tokens, as weft_tokens_write does. `wide`: with 32 bits a token in any case. */
weft_status weft__tokens_write(weft_context *ctx, const char *path, const int32_t *ids, size_t count,
                               bool wide);

/* ---- numbered.c ---- */

/* Looks for a gap in the numbers of files, which are sorted by name: 000.tar, 002.tar. Returns the name of
 * the first one that is missing, or NULL if there is none, or if the names do not differ in one number alone.
 * The caller frees it with weft__free. Also NULL if memory is short: a gap is only a note. */
char *weft__numbered_gap(weft_context *ctx, char *const *paths, size_t count);

/* Writes out a path with a range of numbers, as WebDataset has them: t-{000..012}.tar is 13 paths. *range:
 * the path has one, and no file has this name. WEFT_ERR_IO names a file that is missing. The caller frees the
 * names, also after a failure. */
weft_status weft__numbered_range(weft_context *ctx, const char *path, weft__names *paths, bool *range);

#endif
