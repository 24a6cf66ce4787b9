/* Reads data files into host arrays: plain files and .gz, idx, npy, images, csv, JSON matrices, tokens.
 *
 * Weft trusts no byte of a file. A reader is strict. It allocates at most a small multiple of the file's
 * size; for .gz the unpacked size counts, which has a limit of its own. It reads numbers the same way in
 * every locale. gzip is recognised by the first bytes of a file, not by its name.
 *
 * For all functions here:
 * - `ctx` may be NULL. Then memory comes from malloc, and weft_last_error(NULL) has the message.
 * - On failure the outputs are empty. The message names the file, the byte, line or position, and what was
 *   expected there.
 * - Statuses: WEFT_ERR_IO (the file could not be read or written), WEFT_ERR_FORMAT (its content),
 *   WEFT_ERR_ARGUMENT (the call's options), WEFT_ERR_OOM.
 * - Free each result with its own _free function, with the same ctx.
 * - Calls with different contexts, or with NULL, may run in several threads at once. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include <weft/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The content of a file. data[size] is 0, so you can use text as a C string. */
typedef struct weft_bytes {
    uint8_t *data;
    size_t size;
} weft_bytes;

/* Frees the data and makes it empty. NULL is allowed. */
WEFT_API void weft_bytes_free(weft_context *ctx, weft_bytes *bytes);

/* Reads a whole regular file and unpacks gzip. max_bytes limits the (unpacked) size. 0: no limit for a
 * plain file. At no point may a packed file have unpacked to more than 64 MiB plus 32 times the packed
 * bytes read so far. */
WEFT_API WEFT_CHECKED weft_status weft_read_file(weft_context *ctx, const char *path, size_t max_bytes,
                                                 weft_bytes *out);

/* Reads an idx file, the format of MNIST: u8, i8, i16, i32, f32 or f64, 1 to 8 dimensions. */
WEFT_API WEFT_CHECKED weft_status weft_read_idx(weft_context *ctx, const char *path, weft_array *out);

/* Reads a binary batch of CIFAR-10, or several concatenated ones. images: u8 (N, 3, 32, 32). labels: u8
 * (N). */
WEFT_API WEFT_CHECKED weft_status weft_read_cifar10(weft_context *ctx, const char *path, weft_array *images,
                                                    weft_array *labels);

/* Reads an npy file of versions 1 to 3: every dtype but bf16, 0 to 8 dimensions, either byte order. Fortran
 * order is converted to C order. Objects, structures, dates and strings are refused. */
WEFT_API WEFT_CHECKED weft_status weft_read_npy(weft_context *ctx, const char *path, weft_array *out);

/* Writes an npy file: version 1, little-endian, C order. npy has no bf16: WEFT_ERR_DTYPE. The file appears
 * complete under its name or not at all. */
WEFT_API WEFT_CHECKED weft_status weft_write_npy(weft_context *ctx, const char *path,
                                                 const weft_array *array);

/* ---- images ---- */

typedef struct weft_image_folder_options {
    int64_t channels; /* 1: grey, 3: red, green and blue, whatever a file has; 0: as in the first image */
    int64_t rows, columns; /* of each image. Images are cropped in the middle to these proportions and
                              resampled; the filter uses every pixel of the crop. 0: the size of the first
                              image, which all must have */
    bool with_classes;     /* each subfolder of the path is a class, and its images have that class */
    const char *const
        *classes; /* class i is called classes[i], as in the result for the training data; a folder of another
                     name is an error. NULL: the subfolders, sorted by the bytes of their names */
    size_t class_count; /* of `classes` */
    bool skip_bad;      /* leave out images that cannot be read; the result tells why */
    bool in_files; /* find the files, but leave the pixels in them: see weft_image_options.files. Only files
                      that the shape depends on are read, so bad ones are not found */
    int64_t max_pixels; /* of a file, before it is resampled: an image that declares more cannot be read.
                           0: 2^27 */
} weft_image_folder_options;

/* Tar files that hold images. They belong to a weft_image_folder. */
typedef struct weft_image_shards weft_image_shards;

/* Where an image is in tar files. */
typedef struct weft_image_member {
    uint64_t header; /* byte at which its headers begin */
    uint32_t size;   /* bytes of the image file */
    uint16_t shard;  /* number of the tar file, in the order of their paths */
    uint16_t blocks; /* 512-byte blocks of its headers; the image file follows them */
} weft_image_member;

typedef struct weft_image_folder {
    weft_array images; /* u8 (N, channels, rows, columns); with in_files its data is NULL */
    weft_array labels; /* i32 (N); empty without classes */
    char **classes;    /* names, in one block; NULL without classes, or if the options gave them */
    size_t class_count;
    char **files;   /* the path of each image, in one block; NULL for tar files */
    char **skipped; /* sorted paths of what was not read, in one block; NULL: nothing. They are files with
                       other endings, names that begin with a dot, and empty folders, whose paths end in '/'.
                       Not for tar files */
    size_t skipped_count;
    char **bad; /* why each image that was left out cannot be read, in one block; NULL: there is none */
    size_t bad_count;
    weft_image_shards *shards;  /* the tar files that hold the images, or NULL */
    weft_image_member *members; /* [N] where each image is in them, or NULL */
} weft_image_folder;

/* Frees everything and makes it empty. NULL is allowed. */
WEFT_API void weft_image_folder_free(weft_context *ctx, weft_image_folder *images);

/* Reads the images of a folder and its subfolders, sorted by the bytes of their paths. `path` may also be
 * one image, without classes, or tar files: see below.
 *
 * In a folder, files named .png, .jpg, .jpeg, .gif, .webp or .bmp are read; the result names what was
 * skipped. The first bytes of a file tell its format. GIF needs giflib and WebP needs libwebp when Weft is
 * built. Of a moving GIF the first picture is read.
 *
 * Images are turned upright as the camera noted (EXIF). Opacity is ignored. Grey values of colour images are
 * their luma (ITU-R BT.601). All pixels are in memory at once.
 *
 * NULL options: all defaults. WEFT_ERR_FORMAT: images cannot be read; the message has their number and the
 * first one. With skip_bad they are left out, and the others keep their order; a class or folder without any
 * good image is still an error. WEFT_ERR_FORMAT also names an image of another size or in no class.
 *
 * Tar files are a file named .tar, a pattern ("shards/train-*.tar"), a range ("train-{000..012}.tar"), or a
 * folder that holds .tar files but neither images nor folders. The files of a pattern or folder follow each
 * other in the order of their paths. Their images get a class in one of two ways:
 *
 * - CLASS/NAME.jpg: the class is the folder, as in a folder of images. Folders that all members share, and
 *   that lie above the classes, do not count.
 * - NAME.jpg and NAME.cls, as WebDataset writes them: the class is the text of NAME.cls, a name or a number
 *   from 0 on. If they are numbers, `classes` has all from 0 to the largest, as text. NAME ends at the first
 *   dot of the file name. If one member has the ending .cls, all images need one.
 *
 * The images are sorted by class, then by tar file, then by the names of the members as in a folder. So a
 * folder, and its tar file, give the same. With in_files memory holds only `members` and `labels`, and the
 * names of one tar file at a time. Tar files must not be packed. They need libarchive when Weft is built. */
WEFT_API WEFT_CHECKED weft_status weft_read_image_folder(weft_context *ctx, const char *path,
                                                         const weft_image_folder_options *options,
                                                         weft_image_folder *out);

/* Writes "TAR/MEMBER": the path of a tar file, and the name of an image in it. Reads the name from the file.
 * Free it with weft_bytes_free. WEFT_ERR_FORMAT: the tar file has changed. */
WEFT_API WEFT_CHECKED weft_status weft_image_member_name(weft_context *ctx, const weft_image_shards *shards,
                                                         const weft_image_member *member, weft_bytes *name);

/* ---- csv ---- */

typedef enum weft_csv_header {
    WEFT_CSV_HEADER_AUTO, /* the first line names the columns if none of its cells is a number, and none but
                             the first is empty (as pandas writes the name of its index). So do whole numbers
                             that count three columns or more from 0, as those of pandas, or that are, such
                             as years, unlike the numbers in the next lines */
    WEFT_CSV_HEADER_YES,
    WEFT_CSV_HEADER_NO
} weft_csv_header;

typedef enum weft_csv_target {
    WEFT_CSV_TARGET_AUTO,   /* classes if the column's first cell is text, otherwise numbers */
    WEFT_CSV_TARGET_NUMBER, /* f32, or f64 with options.f64 */
    WEFT_CSV_TARGET_CLASS   /* i32 class ids */
} weft_csv_target;

typedef struct weft_csv_options {
    weft_csv_header header;
    char delimiter;             /* any ASCII character but quote, CR and LF. 0: comma, semicolon, tab or |, by
                                   the first lines of the file */
    const char *const *columns; /* names of the feature columns, in the wanted order. NULL: all but the
                                   target. Columns of a file without a header are named "1", "2", ... */
    size_t column_count;        /* of `columns` */
    const char *target;         /* name of the target column, or NULL */
    int target_column;          /* used if `target` is NULL. 0: none, 1: the first, -1: the last column */
    weft_csv_target target_type;
    const char *const *classes; /* class i is called classes[i], as in the result for the training file;
                                   another label is an error. NULL: found in the file */
    size_t class_count;         /* of `classes` */
    bool allow_nonfinite;       /* accept nan, inf and -inf as numbers */
    size_t max_bytes;           /* as in weft_read_file; of Parquet files: of all rows as csv text. 0: a
                                   Parquet file may become 256 MiB and 64 times its size */
    bool text;     /* read the feature columns as text: weft_table.cells; `features` stays empty */
    bool patterns; /* a name of `columns` may be a pattern with * and ?. -NAME leaves out columns; if nothing
                      else is named, all others are read. A column of exactly this name is preferred */
    const char *weight; /* name of a column with the weight of each row, numbers above 0; or NULL. It is no
                           feature */
    char decimal;       /* what separates the fraction of a number: a point or a comma; 0: a point */
    bool f64; /* numbers of features and target are f64, not f32. Large numbers that differ little, such as
                 seconds since 1970, need it: subtract their mean before you make f32 of them */
    bool (*missing)(const void *words, const char *cell); /* tells which cells of the target are missing,
                 besides empty ones, such as "NA": they are an error. NULL: none */
    const void *missing_words;                            /* its first argument */
} weft_csv_options;

/* A table read from csv. Text labels get the ids 0, 1, ... in the order of their bytes, and `classes` has
 * their names. Labels that are all integers from 0 on are used as ids: `classes` is then NULL and
 * class_count is the largest label plus 1. For a numeric target, and without a target, class_count is 0. */
typedef struct weft_table {
    weft_array features; /* f32 [rows, columns]; f64 with options.f64 */
    weft_array target;   /* f32, f64 or i32 [rows]; empty (data NULL) without a target */
    char **columns;      /* names of the feature columns */
    size_t column_count;
    char *target_name; /* NULL without a target */
    char **classes;    /* names of the classes, or NULL */
    size_t class_count;
    char **unused; /* names of the columns that were not read, in one block; NULL: none */
    size_t unused_count;
    char **cells;  /* with options.text: [rows * column_count] cells, row after row, in one block */
    size_t *lines; /* with options.text: [rows] the line of its file on which each row begins, from 1 */
    size_t rows;
    weft_array weights;  /* f32 [rows]; empty (data NULL) without options.weight */
    char **files;        /* of several files: their paths, in the order of the rows, in one block; or NULL */
    size_t *file_rows;   /* [file_count] the first row of each file; NULL without `files` */
    size_t file_count;   /* 0 without `files` */
    bool header;         /* the first line has the names of the columns */
    bool header_guessed; /* and WEFT_CSV_HEADER_AUTO found numbers in it */
} weft_table;

/* Frees everything and makes the table empty. NULL is allowed. */
WEFT_API void weft_table_free(weft_context *ctx, weft_table *table);

/* Reads a csv file, or Parquet files: one, or those of a folder, of a pattern ("houses/part-*.parquet") or of
 * a range ("houses/part-{000..012}.parquet"). DuckDB's library (libduckdb, opened at run time;
 * WEFT_DUCKDB_LIB names it) reads Parquet files; without it the error is WEFT_ERR_IO.
 *
 * Several files are one table. Their rows follow each other in the order of the names. All files have the
 * columns of the first one, in any order, with the same types. Other files of the folder are left out.
 *
 * Fields may be quoted, and "" is a quote inside a quoted field. Lines have at most 1
 * MiB. Only the end of the file may have a blank line. There are at most 65,536 different text labels.
 *
 * Numbers are decimal, without separators of thousands, and correctly rounded. Errors are: a number
 * beyond f32, a missing value in a column that is used, text among numbers, rows of unequal length, bytes
 * that are not UTF-8. With options.text the cells of features may hold anything but NUL bytes.
 *
 * NULL options: all defaults, so no target: every column is a feature. */
WEFT_API WEFT_CHECKED weft_status weft_read_csv(weft_context *ctx, const char *path,
                                                const weft_csv_options *options, weft_table *out);

/* ---- JSON ---- */

typedef enum weft_json_type {
    WEFT_JSON_AUTO, /* i32 if every number is an integer, i64 if one is too large for i32, otherwise f32 */
    WEFT_JSON_F32,
    WEFT_JSON_F64,
    WEFT_JSON_I32, /* a number written with a fraction or an exponent is refused */
    WEFT_JSON_I64
} weft_json_type;

/* One array to read from a JSON file. */
typedef struct weft_json_options {
    const char *key; /* member of the top-level object; NULL: the file itself is the array */
    weft_json_type type;
} weft_json_options;

/* Reads nested arrays of numbers, at most 8 deep, with rows of equal length: {"x": [[...]], "y": [...]} or
 * [[...], ...].
 *
 * Duplicate keys and more than 64 levels are refused anywhere in the file. The file is parsed in place:
 * memory holds only the file and the arrays. NULL options: all defaults. f32 is rounded from f64. */
WEFT_API WEFT_CHECKED weft_status weft_read_json_matrix(weft_context *ctx, const char *path,
                                                        const weft_json_options *options, weft_array *out);

/* Reads `count` arrays of one file, options[i] into out[i]. The file is parsed once. */
WEFT_API WEFT_CHECKED weft_status weft_read_json_matrices(weft_context *ctx, const char *path,
                                                          const weft_json_options *options, size_t count,
                                                          weft_array *out);

/* ---- files of tokens ---- */

typedef struct weft_tokens weft_tokens;

/* Maps files of tokens, which may be larger than memory. Three formats are accepted, all little-endian:
 * - plain u16, as nanoGPT writes them
 * - u16 after llm.c's header (256 i32: 20240520, 1, number of tokens, zeros), whose count must be right
 * - u32 after llm.c's header for Llama 3 (256 i32: 20240801, 7, number of tokens, zeros)
 *
 * `path` is a file, a pattern ("data/train_*.bin") or a range ("data/train_{000..012}.bin"), all of whose
 * files must be there. The files follow each other in the order of their names or numbers. Opening reads
 * everything once, for the three functions below. Do not shorten a mapped file: that would end the process.
 */
WEFT_API WEFT_CHECKED weft_status weft_tokens_open(weft_context *ctx, const char *path, weft_tokens **out);

/* NULL is allowed. */
WEFT_API void weft_tokens_free(weft_tokens *tokens);

/* The number of tokens in all files, the largest token, and a 64-bit hash that changes when a token
 * changes. */
WEFT_API int64_t weft_tokens_count(const weft_tokens *tokens);
WEFT_API int32_t weft_tokens_largest(const weft_tokens *tokens);
WEFT_API uint64_t weft_tokens_hash(const weft_tokens *tokens);

/* Copies `count` tokens from number `first` on, fewer at the end. Returns how many it copied. 0 also if the
 * tokens of a corpus cannot be read; weft_last_error(NULL) then says why. */
WEFT_API size_t weft_tokens_read(const weft_tokens *tokens, int64_t first, size_t count, int32_t *ids);

/* Writes a file of tokens with llm.c's header, all or nothing: u16, or u32 if a token is above 65535.
 * WEFT_ERR_INDEX names a token below 0 or above 16777216. */
WEFT_API WEFT_CHECKED weft_status weft_tokens_write(weft_context *ctx, const char *path, const int32_t *ids,
                                                    size_t count);

#ifdef __cplusplus
}
#endif
#endif
