/* Finds how a camera was held, which it notes in its photos as EXIF: a TIFF directory within a JPEG, PNG or
 * WebP file. Trusts no offset and no length. Must not know: pixels. Read next: image_fit.c, which turns
 * them. */
#include <string.h>

#include "data/image_formats.h"

enum { UPRIGHT = 1, TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, ENTRY = 12, DIRECTORY_AT = 4, HEADER = 8 };

/* A part of a file. */
typedef struct part {
    const uint8_t *at;
    size_t size;
} part;

static part skip(part p, size_t bytes) {
    const size_t n = bytes < p.size ? bytes : p.size;
    return (part){p.at + n, p.size - n};
}

static bool begins(part p, const char *with, size_t size) {
    return p.size >= size && memcmp(p.at, with, size) == 0;
}

/* Reads the orientation from a TIFF structure:
 *
 *     "II" or "MM" (the byte order) | 42 (2 bytes) | offset of the directory (4)
 *     directory: count (2) | entries of tag (2), type (2), count (4), value (4) */
static int tiff_orientation(part tiff) {
    const bool big = begins(tiff, "MM\0*", 4);
    if ((!big && !begins(tiff, "II*\0", 4)) || tiff.size < HEADER) return UPRIGHT;
    const uint8_t *offset = tiff.at + DIRECTORY_AT;
    const part directory = skip(tiff, big ? weft__be32(offset) : weft__le32(offset));
    if (directory.size < 2) return UPRIGHT;
    const uint32_t count = big ? weft__be16(directory.at) : weft__le16(directory.at);
    part entries = skip(directory, 2);
    for (uint32_t i = 0; i < count && entries.size >= ENTRY; i++, entries = skip(entries, ENTRY)) {
        const uint8_t *e = entries.at;
        if ((big ? weft__be16(e) : weft__le16(e)) != TAG_ORIENTATION) continue;
        if ((big ? weft__be16(e + 2) : weft__le16(e + 2)) != TYPE_SHORT) return UPRIGHT;
        const uint32_t value = big ? weft__be16(e + 8) : weft__le16(e + 8);
        return value >= 1 && value <= 8 ? (int)value : UPRIGHT;
    }
    return UPRIGHT;
}

/* A JPEG is a sequence of segments: 0xff | marker | length, which counts itself (2) | content. EXIF is in
 * segment APP1, before the first scan (SOS). */
static part find_in_jpeg(part p) {
    enum { SOS = 0xda, APP1 = 0xe1 };
    p = skip(p, 2);
    while (p.size >= 4 && p.at[0] == 0xff) {
        if (p.at[1] == 0xff) { /* filling */
            p = skip(p, 1);
            continue;
        }
        const size_t length = weft__be16(p.at + 2);
        part content = skip(p, 4);
        if (p.at[1] == SOS || length < 2 || length - 2 > content.size) break;
        content.size = length - 2;
        if (p.at[1] == APP1 && begins(content, "Exif\0\0", 6)) return skip(content, 6);
        p = skip(p, 2 + length);
    }
    return (part){0};
}

/* A PNG is a sequence of chunks: length of the content (4) | name (4) | content | checksum (4). */
static part find_in_png(part p) {
    for (p = skip(p, 8); p.size >= 8;) {
        const size_t length = weft__be32(p.at);
        part content = skip(p, 8);
        if (length > content.size || memcmp(p.at + 4, "IEND", 4) == 0) break;
        content.size = length;
        if (memcmp(p.at + 4, "eXIf", 4) == 0) return content;
        p = skip(p, length + 12);
    }
    return (part){0};
}

/* A WebP is a sequence of chunks, after "RIFF", size (4), "WEBP": name (4) | length of the content (4) |
 * content, and a byte if the length is odd. */
static part find_in_webp(part p) {
    for (p = skip(p, 12); p.size >= 8;) {
        const size_t length = weft__le32(p.at + 4);
        part content = skip(p, 8);
        if (length > content.size) break;
        content.size = length;
        if (memcmp(p.at, "EXIF", 4) == 0) return begins(content, "Exif\0\0", 6) ? skip(content, 6) : content;
        p = skip(p, 8 + length + (length & 1));
    }
    return (part){0};
}

int weft__exif_orientation(const uint8_t *bytes, size_t size) {
    const part file = {bytes, size};
    if (begins(file, "\xff\xd8", 2)) return tiff_orientation(find_in_jpeg(file));
    if (begins(file, "\x89PNG", 4)) return tiff_orientation(find_in_png(file));
    if (begins(file, "RIFF", 4)) return tiff_orientation(find_in_webp(file));
    return UPRIGHT;
}
