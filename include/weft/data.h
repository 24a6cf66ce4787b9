/* Reading data files into host arrays: plain files and .gz, idx, npy, images, csv, JSON matrices, tokens.
 *
 * Every byte of a file is distrusted. A reader is strict, allocates no more than a small multiple of the
 * file's size (of its unpacked size, which is itself capped, for .gz), and reads numbers the same way in
 * every locale. Files compressed with gzip are recognised by their first bytes, whatever their name.
 *
 * Everywhere here: `ctx` may be NULL (then plain malloc, and the message is weft_last_error(NULL)); on
 * failure the outputs are empty and the message names the file and the byte, line or position, and what was
 * expected there. Statuses: ERR_IO (the file could not be read or written), ERR_FORMAT (its content),
 * ERR_ARGUMENT (the call's options), ERR_OOM. What is returned is freed with its own _free function
 * under the same ctx. Calls with different contexts, or with NULL, may run in several threads at once. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include <weft/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The content of a file. data[size] is 0, so that text may be used as a C string. */
typedef struct weft_bytes {
    uint8_t *data;
    size_t size;
} weft_bytes;

/* Frees the data and makes it empty. NULL is allowed. */
WEFT_API void weft_bytes_free(weft_context *ctx, weft_bytes *bytes);

/* Reads a whole regular file, unpacking gzip. max_bytes limits the (unpacked) size; 0 means no limit
 * for a plain file; a packed one may then become 64 MiB and 32 times its size, at each byte. */
WEFT_API WEFT_CHECKED weft_status weft_read_file(weft_context *ctx, const char *path, size_t max_bytes,
                                                 weft_bytes *out);

/* Reads an idx file, the format of MNIST: u8, i8, i16, i32, f32 or f64, 1 to 8 dimensions. */
WEFT_API WEFT_CHECKED weft_status weft_read_idx(weft_context *ctx, const char *path, weft_array *out);

/* Reads a binary batch of CIFAR-10, or several put together: images u8 (N, 3, 32, 32), labels u8 (N). */
WEFT_API WEFT_CHECKED weft_status weft_read_cifar10(weft_context *ctx, const char *path, weft_array *images,
                                                    weft_array *labels);

/* Reads an npy file of versions 1 to 3: every dtype but bf16, 0 to 8 dimensions, either byte order. Fortran
 * order is turned into C order; objects, structures, dates and strings are refused. */
WEFT_API WEFT_CHECKED weft_status weft_read_npy(weft_context *ctx, const char *path, weft_array *out);

/* Writes an npy file, version 1, little-endian, C order. bf16, which npy lacks, is refused with ERR_DTYPE.
 * The file appears complete under its name or not at all. */
WEFT_API WEFT_CHECKED weft_status weft_write_npy(weft_context *ctx, const char *path,
                                                 const weft_array *array);

/* ---- images ---- */

typedef struct weft_image_folder_options {
    int64_t channels;      /* 1: grey, 3: red, green, blue, whatever a file has; 0: as the first image */
    int64_t rows, columns; /* of each: the part in the middle that has these proportions is resampled, with a
                              filter that leaves nothing out. 0: the first one's, which all must have */
    bool with_classes;     /* each folder within the path is a class of the images in it */
    const char *const
        *classes;       /* class i is called classes[i], as in the training data's result; a folder of
                           another name is an error. NULL: the folders there are, in the order of bytes */
    size_t class_count; /* of `classes` */
} weft_image_folder_options;

typedef struct weft_image_folder {
    weft_array images; /* u8 (N, channels, rows, columns) */
    weft_array labels; /* i32 (N); empty without classes */
    char **classes;    /* names, one block; NULL where there are none, or they were given */
    size_t class_count;
    char **files; /* the path of each image, one block */
} weft_image_folder;

/* Frees everything and makes it empty. NULL is allowed. */
WEFT_API void weft_image_folder_free(weft_context *ctx, weft_image_folder *images);

/* Reads the PNG and JPEG files of a folder and of folders within it, in the order of their paths' bytes, or
 * one such file (without classes). In a folder those named .png, .jpg or .jpeg are taken, what begins with a
 * dot is not. Opacity is ignored, as is a turn that a camera noted; of colours the grey is their luma (ITU-R
 * BT.601). All pixels are in memory at once. NULL options are the defaults. ERR_FORMAT names an image that is
 * damaged, cut short, of another size or in no class. */
WEFT_API WEFT_CHECKED weft_status weft_read_image_folder(weft_context *ctx, const char *path,
                                                         const weft_image_folder_options *options,
                                                         weft_image_folder *out);

/* ---- csv ---- */

typedef enum weft_csv_header {
    WEFT_CSV_HEADER_AUTO, /* the first line names the columns when none of its cells is empty or a number */
    WEFT_CSV_HEADER_YES,
    WEFT_CSV_HEADER_NO
} weft_csv_header;

typedef enum weft_csv_target {
    WEFT_CSV_TARGET_AUTO,   /* classes when the column's first cell is text, otherwise numbers */
    WEFT_CSV_TARGET_NUMBER, /* f32 */
    WEFT_CSV_TARGET_CLASS   /* i32 class ids */
} weft_csv_target;

typedef struct weft_csv_options {
    weft_csv_header header;
    char delimiter;             /* 0: a comma. Any ASCII character but quote, CR and LF */
    const char *const *columns; /* names of the feature columns, in the order wanted; NULL: all but the
                                   target. Columns of a file without header are named "1", "2", ... */
    size_t column_count;        /* of `columns` */
    const char *target;         /* name of the target column, or NULL */
    int target_column;          /* used without `target`: 0 none, 1 the first, -1 the last column */
    weft_csv_target target_type;
    const char *const *classes; /* class i is called classes[i], as in the training file's result; a label
                                   not among them is an error. NULL: found in the file */
    size_t class_count;         /* of `classes` */
    bool allow_nonfinite;       /* accept nan, inf and -inf as numbers */
    size_t max_bytes;           /* as in weft_read_file */
} weft_csv_options;

/* A table read from csv. Text labels get ids 0, 1, ... in the order of their bytes and are kept in `classes`.
 * Labels that all are integers from 0 on are ids already: `classes` is then NULL and class_count is the
 * largest one plus 1. For a target of numbers and without target, class_count is 0. */
typedef struct weft_table {
    weft_array features; /* f32 [rows, columns] */
    weft_array target;   /* f32 or i32 [rows]; empty (data NULL) without target */
    char **columns;      /* names of the feature columns */
    size_t column_count;
    char *target_name; /* NULL without target */
    char **classes;    /* names of the classes, or NULL */
    size_t class_count;
} weft_table;

/* Frees everything and makes the table empty. NULL is allowed. */
WEFT_API void weft_table_free(weft_context *ctx, weft_table *table);

/* Reads a csv file: fields may be quoted ("" is a quote within), lines are at most 1 MiB, a blank line
 * may only stand at the end. Numbers are decimal, correctly rounded to f32; one that overflows is an
 * error, as are a missing cell in a column that is used, text among numbers, and rows of unequal length. NULL
 * options are the defaults. At most 65,536 distinct text labels. */
WEFT_API WEFT_CHECKED weft_status weft_read_csv(weft_context *ctx, const char *path,
                                                const weft_csv_options *options, weft_table *out);

/* ---- JSON ---- */

typedef enum weft_json_type {
    WEFT_JSON_AUTO, /* i32 when every number is an integer, i64 when one is too large for that; else f32 */
    WEFT_JSON_F32,
    WEFT_JSON_F64,
    WEFT_JSON_I32, /* a number written with a fraction or an exponent is refused */
    WEFT_JSON_I64
} weft_json_type;

/* One array wanted from a JSON file. */
typedef struct weft_json_options {
    const char *key; /* member of the top-level object; NULL: the file itself is the array */
    weft_json_type type;
} weft_json_options;

/* Reads nested arrays of numbers, at most 8 deep, all rows of equal length: {"x": [[...]], "y": [...]} or
 * [[...], ...]. Duplicate keys and more than 64 levels are refused anywhere in the file, which is read
 * where it lies: memory is taken for it and for the arrays alone. NULL options are the defaults. f32 is
 * rounded from f64. */
WEFT_API WEFT_CHECKED weft_status weft_read_json_matrix(weft_context *ctx, const char *path,
                                                        const weft_json_options *options, weft_array *out);

/* Reads `count` arrays of one file, options[i] into out[i], parsing the file once. */
WEFT_API WEFT_CHECKED weft_status weft_read_json_matrices(weft_context *ctx, const char *path,
                                                          const weft_json_options *options, size_t count,
                                                          weft_array *out);

/* ---- files of tokens ---- */

typedef struct weft_tokens weft_tokens;

/* Maps files of 16-bit tokens, which may be larger than memory: little-endian u16 and nothing else, as
 * nanoGPT writes them, or behind llm.c's header (256 i32: 20240520, 1, how many tokens), which is then held
 * to. `path` is a file, or a pattern of names ("data/train_*.bin"), whose files follow each other in the
 * order of their names. All is read once, for what the next functions tell. A mapped file must not be cut:
 * the process would end. */
WEFT_API WEFT_CHECKED weft_status weft_tokens_open(weft_context *ctx, const char *path, weft_tokens **out);

/* NULL is fine. */
WEFT_API void weft_tokens_free(weft_tokens *tokens);

/* How many tokens there are in all files, the largest of them, and 64 bits that differ when one does. */
WEFT_API int64_t weft_tokens_count(const weft_tokens *tokens);
WEFT_API int32_t weft_tokens_largest(const weft_tokens *tokens);
WEFT_API uint64_t weft_tokens_hash(const weft_tokens *tokens);

/* Copies `count` tokens from number `first` on, fewer at the end; returns how many. */
WEFT_API size_t weft_tokens_read(const weft_tokens *tokens, int64_t first, size_t count, int32_t *ids);

/* Writes a file of tokens with llm.c's header, whole or not at all. WEFT_ERR_INDEX names one above 65535. */
WEFT_API WEFT_CHECKED weft_status weft_tokens_write(weft_context *ctx, const char *path, const int32_t *ids,
                                                    size_t count);

#ifdef __cplusplus
}
#endif
#endif
