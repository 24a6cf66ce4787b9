/* Parquet files as tables: each file becomes csv text. Must not know: what columns are for. Read
 * next: parquet.c, csv.c, and for texts parquet_rows.h. */
#ifndef WEFT_SRC_DATA_PARQUET_H
#define WEFT_SRC_DATA_PARQUET_H

#include <weft/data.h>

#include "base/buffer.h"
#include "data/image_found.h"

/* Lists the Parquet files of a path in the order of their names: a file, or those of a folder, a pattern or a
 * range. None: the path has no Parquet files. WEFT_ERR_FORMAT: a pattern or a range has other files, too. The
 * caller frees the names, also after a failure. */
weft_status weft__parquet_files(weft_context *ctx, const char *path, weft__names *files);

/* Tells whether a folder is a table: it holds .parquet files, and neither images nor folders. */
bool weft__parquet_folder(const char *path);

/* Files of one table while they are read, one after the other. */
typedef struct weft__parquet weft__parquet;

/* Opens DuckDB. The names must outlive *out. The caller frees *out with weft__parquet_close. */
weft_status weft__parquet_open(weft_context *ctx, const weft__names *files, weft__parquet **out);
void weft__parquet_close(weft__parquet *parquet);

/* Reads file i as csv text: with commas, decimal points, and the columns in the order of file 0, which comes
 * first. Only file 0 has a header. max_bytes: of the text; 0: as base/limits.h says. The caller frees *csv.
 * WEFT_ERR_FORMAT: the file is damaged, its columns are not those of file 0, or the text is larger. */
weft_status weft__parquet_read(weft__parquet *parquet, size_t i, size_t max_bytes, weft__buffer *csv);

#endif
