/* What the decoders of image files share. Each decoder gets a whole file in memory, checks the size that the
 * file declares before it allocates, and returns the stored pixels. The rotation of the camera is not yet
 * applied then. Must not know: folders. Read next: image_file.c, then image_bmp.c, the one without a
 * library. */
#ifndef WEFT_SRC_DATA_IMAGE_FORMATS_H
#define WEFT_SRC_DATA_IMAGE_FORMATS_H

#include "data/image_file.h"

typedef struct weft__encoded {
    const uint8_t *bytes;
    size_t size;
    const char *name; /* for messages */
    int64_t channels; /* wanted: 1 or 3, or 0 for the channels of the file */
    int64_t most;     /* pixels that it may have */
    /* the size, as stored, that the image will be scaled to; 0: not known. A decoder may return an image that
       is smaller than the file says, but at least twice as large as this */
    int64_t rows, columns;
} weft__encoded;

/* Checks the size that a file declares. */
weft_status weft__image_check(weft_context *ctx, const weft__encoded *file, int64_t rows, int64_t columns);

/* Checks the size, and allocates rows x columns pixels of `stored` channels. out->channels is `channels`. */
weft_status weft__image_new(weft_context *ctx, const weft__encoded *file, int64_t rows, int64_t columns,
                            int64_t stored, int64_t channels, weft__image *out);

/* Reports a decoding error. Libraries tell "out of memory" from "damaged" only by their messages. */
weft_status weft__image_damaged(weft_context *ctx, const weft__encoded *file, const char *message);

/* Converts pixels of red, green, blue and what follows, `stored` bytes each, to the channels of the image, in
 * place. Grey is the luma of ITU-R BT.601, as in JPEG. */
void weft__image_pack(weft__image *image, int64_t stored);

weft_status weft__decode_jpeg(weft_context *ctx, const weft__encoded *file, weft__image *out);
weft_status weft__decode_gif(weft_context *ctx, const weft__encoded *file, weft__image *out);
weft_status weft__decode_webp(weft_context *ctx, const weft__encoded *file, weft__image *out);
weft_status weft__decode_bmp(weft_context *ctx, const weft__encoded *file, weft__image *out);

/* Returns how the camera was held, 1 to 8 as in EXIF: 1 is upright. 1 also for a file that does not say it,
 * or says it in a damaged way: the pixels are good without it. */
int weft__exif_orientation(const uint8_t *bytes, size_t size);

/* Numbers of files. The caller has checked that the bytes are there. */
static inline uint32_t weft__le16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t weft__le32(const uint8_t *at) { return weft__le16(at) | weft__le16(at + 2) << 16; }
static inline uint32_t weft__be16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static inline uint32_t weft__be32(const uint8_t *at) { return weft__be16(at) << 16 | weft__be16(at + 2); }

#endif
