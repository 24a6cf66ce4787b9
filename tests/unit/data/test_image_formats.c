/* src/data/image_*.c: how a camera was held, inks of print, and the formats that photos come in: GIF, WebP,
 * BMP, and PNG of every kind. The files are made here, byte by byte. */
#include "data_util.h"

#include <turbojpeg.h>

#include "data/image_file.h"
#include "data/image_formats.h"
#include "fuzz/bounded.h"

#define ROOM 65536

typedef struct maker {
    uint8_t bytes[ROOM];
    size_t size;
} maker;

static void put(maker *m, const void *bytes, size_t size) {
    assert_true(m->size + size <= ROOM);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put_number(maker *m, uint32_t value, int bytes, bool big) {
    for (int i = 0; i < bytes; i++) put(m, &(uint8_t){(uint8_t)(value >> 8 * (big ? bytes - 1 - i : i))}, 1);
}

/* Decodes a file into planes of its own upright size. */
static weft_status decode(const maker *m, int64_t channels, uint8_t *planes, int64_t *rows,
                          int64_t *columns) {
    weft__image image;
    WEFT_TRY(weft__image_decode(NULL, m->bytes, m->size, "f",
                                &(weft_image_folder_options){.channels = channels}, &image));
    *rows = weft__image_rows(&image);
    *columns = weft__image_columns(&image);
    assert_true(*rows * *columns * image.channels <= ROOM);
    const weft_status status = weft__image_fit(NULL, &image, *rows, *columns, planes);
    weft__image_free(NULL, &image);
    return status;
}

/* Every shorter file is refused, or has the same pixels: formats may end with bytes that do not matter. Reads
 * a copy without a byte behind its end, so that the sanitizers see what reads too far. */
static void cut_everywhere(const maker *m, size_t from) {
    for (size_t size = from; size < m->size; size++) {
        weft__image image;
        uint8_t *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, m->bytes, size);
        if (weft__image_decode(NULL, copy, size, "f", NULL, &image) == WEFT_OK)
            weft__image_free(NULL, &image);
        free(copy);
    }
}

/* ---- how the camera was held ---- */

enum { TALL = 32, WIDE = 48 };

/* The four quarters of the upright image: black, dark, light, white; left to right, top to bottom. */
static uint8_t quarter(int y, int x) { return (uint8_t)(85 * (2 * (y >= TALL / 2) + (x >= WIDE / 2))); }

static uint8_t *add_segment(uint8_t *jpeg, unsigned long *size, const maker *exif) {
    uint8_t *made = malloc(*size + exif->size + 4);
    assert_non_null(made);
    memcpy(made, jpeg, 2);
    made[2] = 0xff, made[3] = 0xe1;
    made[4] = (uint8_t)((exif->size + 2) >> 8), made[5] = (uint8_t)(exif->size + 2);
    memcpy(made + 6, exif->bytes, exif->size);
    memcpy(made + 6 + exif->size, jpeg + 2, *size - 2);
    *size += exif->size + 4;
    return made;
}

static void put_exif(maker *m, bool big, uint32_t orientation) {
    put(m, "Exif\0", 6);
    put(m, big ? "MM\0*" : "II*\0", 4);
    put_number(m, 8, 4, big);
    put_number(m, 2, 2, big); /* two entries: the first one is the maker of the camera */
    put_number(m, 0x10f, 2, big), put_number(m, 2, 2, big), put_number(m, 4, 4, big), put(m, "Cam", 4);
    put_number(m, 0x112, 2, big), put_number(m, 3, 2, big), put_number(m, 1, 4, big);
    put_number(m, orientation, 2, big), put_number(m, 0, 2, big);
    put_number(m, 0, 4, big);
}

/* Makes the JPEG that a camera stores, held so that `orientation` makes it upright again. */
static void make_photo(int orientation, bool big, maker *m) {
    static uint8_t stored[TALL * WIDE];
    const bool swapped = orientation > 4;
    const int height = swapped ? WIDE : TALL, width = swapped ? TALL : WIDE;
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++) { /* where EXIF's definition puts row r and column c */
            const int up = height - 1 - r, left = width - 1 - c;
            const int at[9][2] = {{0},    {r, c},  {r, left},  {up, left}, {up, c},
                                  {c, r}, {c, up}, {left, up}, {left, r}};
            stored[r * width + c] = quarter(at[orientation][0], at[orientation][1]);
        }
    uint8_t *jpeg = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    assert_int_equal(
        tjCompress2(handle, stored, width, 0, height, TJPF_GRAY, &jpeg, &size, TJSAMP_GRAY, 95, 0), 0);
    tjDestroy(handle);
    maker exif = {0};
    put_exif(&exif, big, (uint32_t)orientation);
    uint8_t *photo = add_segment(jpeg, &size, &exif);
    m->size = 0;
    put(m, photo, size);
    free(photo);
    tjFree(jpeg);
}

static void test_orientations(void **state) {
    (void)state;
    static maker m;
    static uint8_t planes[ROOM];
    for (int code = 0; code < 16; code++) {
        int64_t rows, columns;
        make_photo(1 + code % 8, code >= 8, &m);
        assert_int_equal(decode(&m, 0, planes, &rows, &columns), WEFT_OK);
        assert_int_equal(rows, TALL);
        assert_int_equal(columns, WIDE);
        for (int i = 0; i < TALL * WIDE; i++) assert_true(abs(planes[i] - quarter(i / WIDE, i % WIDE)) < 9);
        uint8_t small[4]; /* scaling comes before turning */
        weft__image image;
        assert_int_equal(weft__image_decode(NULL, m.bytes, m.size, "f",
                                            &(weft_image_folder_options){.rows = 2, .columns = 2}, &image),
                         WEFT_OK);
        assert_int_equal(weft__image_rows(&image), TALL / 8); /* the decoder itself has scaled it */
        assert_int_equal(weft__image_columns(&image), WIDE / 8);
        assert_int_equal(weft__image_fit(NULL, &image, 2, 2, small), WEFT_OK);
        weft__image_free(NULL, &image);
        for (int i = 0; i < 4; i++)
            assert_true(abs(small[i] - 85 * i) < 40 && (i == 0 || small[i] > small[i - 1]));
    }
}

/* Damaged notes of a camera leave the photo as it is stored, and are read only where there are bytes. */
static void test_hostile_exif(void **state) {
    (void)state;
    static maker m;
    make_photo(6, true, &m);
    const size_t head = 2 + 4 + 6 + 8 + 2 + 24; /* up to the end of the entry */
    assert_int_equal(weft__exif_orientation(m.bytes, m.size), 6);
    for (size_t at = 2; at < head; at++)
        for (int bit = 0; bit < 8; bit++) {
            static maker bad;
            bad = m;
            bad.bytes[at] ^= (uint8_t)(1 << bit);
            const int got = weft__exif_orientation(bad.bytes, bad.size);
            assert_true(got >= 1 && got <= 8);
        }
    for (size_t size = 0; size < head; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, m.bytes, size);
        assert_int_equal(weft__exif_orientation(copy, size), 1);
        free(copy);
    }
    static const uint32_t values[] = {0, 9, 65535};
    for (size_t i = 0; i < 3; i++) {
        maker exif = {0};
        unsigned long size = 4;
        put_exif(&exif, false, values[i]);
        uint8_t *photo = add_segment((uint8_t[]){0xff, 0xd8, 0xff, 0xd9}, &size, &exif);
        assert_int_equal(weft__exif_orientation(photo, size), 1);
        free(photo);
    }
}

/* ---- JPEG in colour ---- */

/* Makes a photo of soft colours, which hardly changes from one pixel of chroma to the next. */
static void make_colours(int rows, int columns, int sampling, maker *m) {
    static uint8_t pixels[3 * ROOM];
    uint8_t *jpeg = NULL;
    unsigned long size = 0;
    for (int i = 0; i < rows * columns; i++) {
        const int y = i / columns, x = i % columns;
        pixels[3 * i] = (uint8_t)(40 + 3 * x);
        pixels[3 * i + 1] = (uint8_t)(220 - 2 * y);
        pixels[3 * i + 2] = (uint8_t)(60 + x + y);
    }
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, pixels, columns, 0, rows, TJPF_RGB, &jpeg, &size, sampling, 98, 0),
                     0);
    tjDestroy(handle);
    m->size = 0;
    put(m, jpeg, size);
    tjFree(jpeg);
}

/* Compares scaled planes of luma and chroma with scaled colours. */
static void check_planes(const maker *m, int rows, int columns) {
    static uint8_t planes[2][3 * ROOM];
    weft__image image;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(weft__image_decode(NULL, m->bytes, m->size, "f",
                                            &(weft_image_folder_options){
                                                .channels = 3, .rows = k * rows, .columns = k * columns},
                                            &image),
                         WEFT_OK);
        assert_int_equal(image.chroma_across > 0, k);
        assert_int_equal(weft__image_fit(NULL, &image, rows, columns, planes[k]), WEFT_OK);
        weft__image_free(NULL, &image);
    }
    for (int i = 0; i < 3 * rows * columns; i++)
        if (abs(planes[0][i] - planes[1][i]) > 4)
            fail_msg("%d x %d: number %d is %d, not %d", columns, rows, i, planes[1][i], planes[0][i]);
}

static void test_planes(void **state) {
    (void)state;
    static maker m;
    static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411};
    static const int sizes[][2] = {{48, 64}, {47, 63}, {33, 34}, {1, 1}, {2, 3}};
    for (size_t s = 0; s < sizeof samplings / sizeof *samplings; s++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int rows = sizes[i][0], columns = sizes[i][1];
            make_colours(rows, columns, samplings[s], &m);
            check_planes(&m, 40, 40);
            check_planes(&m, 50, 30);
            weft__image image;
            for (size_t size = 4; i == 0 && size < m.size - 8; size += 16)
                expect_message(
                    weft__image_decode(NULL, m.bytes, size, "f",
                                       &(weft_image_folder_options){.channels = 3, .rows = 8, .columns = 9},
                                       &image),
                    WEFT_ERR_FORMAT, "damaged, or cut off", NULL);
            /* what is not scaled has the colours of the file */
            assert_int_equal(
                weft__image_decode(
                    NULL, m.bytes, m.size, "f",
                    &(weft_image_folder_options){.channels = 3, .rows = rows, .columns = columns}, &image),
                WEFT_OK);
            assert_int_equal(image.chroma_across, 0);
            weft__image_free(NULL, &image);
        }
}

/* A large JPEG is decoded at a part of its size, which takes a part of the time, but at no less than twice
 * what is needed. */
static void test_reduced(void **state) {
    (void)state;
    static maker m;
    static const int needed_and_got[][2] = {{4, 8}, {5, 16}, {8, 16}, {9, 32}, {16, 32}, {17, 64}, {64, 64}};
    make_colours(64, 64, TJSAMP_420, &m);
    for (size_t i = 0; i < sizeof needed_and_got / sizeof *needed_and_got; i++) {
        const int needed = needed_and_got[i][0], got = needed_and_got[i][1];
        weft__image image;
        assert_int_equal(
            weft__image_decode(NULL, m.bytes, m.size, "f",
                               &(weft_image_folder_options){.channels = 3, .rows = needed, .columns = needed},
                               &image),
            WEFT_OK);
        assert_true(image.rows == got && image.columns == got);
        weft__image_free(NULL, &image);
    }
}

/* Puts a progressive JPEG whose last scan stands `more` times more in it, as often as 0xff before it. */
static void make_scans(int more, int fill, maker *m) {
    static const uint8_t grey[64 * 64];
    uint8_t *jpeg = NULL;
    unsigned long size = 0, last = 0;
    tjhandle handle = tjInitCompress();
    assert_int_equal(
        tjCompress2(handle, grey, 64, 0, 64, TJPF_GRAY, &jpeg, &size, TJSAMP_GRAY, 90, TJFLAG_PROGRESSIVE),
        0);
    tjDestroy(handle);
    for (unsigned long i = 0; i + 1 < size; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xda) last = i;
    m->size = 0;
    put(m, jpeg, 2);
    put(m, "\xff\xfe\0\xca", 4); /* a comment full of markers, which do not count */
    for (int i = 0; i < 100; i++) put(m, "\xff\xda", 2);
    put(m, jpeg + 2, size - 4);
    for (int i = 0; i < more; i++) {
        for (int k = 0; k < fill; k++) put(m, "\xff", 1);
        put(m, jpeg + last, size - 2 - last);
    }
    put(m, jpeg + size - 2, 2);
    tjFree(jpeg);
}

/* A grey image has 6 scans. Each takes as long as an image, so a file of few bytes could take minutes. */
static void test_scans(void **state) {
    (void)state;
    static maker m;
    weft__image image;
    for (int fill = 0; fill < 3; fill++) {
        make_scans(64 - 6, fill, &m);
        for (int i = 0; i < 100; i++) put(&m, "\xff\xda", 2); /* behind the end of the image */
        assert_int_equal(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_OK);
        assert_int_equal(image.pixels[64 * 64 - 1], 0);
        weft__image_free(NULL, &image);
        make_scans(65 - 6, fill, &m);
        expect_message(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_ERR_FORMAT,
                       "f: the image has more than 64 scans", "save it again", NULL);
    }
}

/* ---- JPEG for print ---- */

static void test_inks(void **state) {
    (void)state;
    static uint8_t inks[16 * 16 * 4], planes[ROOM];
    static maker m;
    static const int wanted[3] = {200 * 220 / 255, 100 * 220 / 255, 50 * 220 / 255};
    for (int i = 0; i < 16 * 16; i++) memcpy(inks + 4 * (size_t)i, "\xc8\x64\x32\xdc", 4); /* inverted */
    uint8_t *jpeg = NULL;
    unsigned long size = 0;
    int64_t rows, columns;
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, inks, 16, 0, 16, TJPF_CMYK, &jpeg, &size, TJSAMP_444, 98, 0), 0);
    tjDestroy(handle);
    put(&m, jpeg, size);
    tjFree(jpeg);
    assert_int_equal(decode(&m, 0, planes, &rows, &columns), WEFT_OK);
    for (int i = 0; i < 3 * 256; i++) assert_true(abs(planes[i] - wanted[i / 256]) < 4);
    assert_int_equal(decode(&m, 1, planes, &rows, &columns), WEFT_OK);
    for (int i = 0; i < 256; i++)
        assert_true(abs(planes[i] - (299 * wanted[0] + 587 * wanted[1] + 114 * wanted[2]) / 1000) < 4);
}

/* ---- PNG ---- */

static void put_chunk(maker *m, const char *name, const void *content, size_t size) {
    put_number(m, (uint32_t)size, 4, true);
    const size_t begin = m->size;
    put(m, name, 4);
    put(m, content, size);
    put_number(m, (uint32_t)crc32(0, m->bytes + begin, (uInt)(size + 4)), 4, true);
}

/* Makes a PNG of one row from the bytes of its pixels. */
static void make_png(maker *m, uint32_t columns, uint8_t depth, uint8_t colour, const uint8_t *row,
                     size_t bytes, const uint8_t *palette, size_t colours) {
    uint8_t filtered[64] = {0}, packed[128];
    maker header = {0};
    uLongf size = sizeof packed;
    memcpy(filtered + 1, row, bytes);
    assert_int_equal(compress(packed, &size, filtered, bytes + 1), Z_OK);
    put_number(&header, columns, 4, true), put_number(&header, 1, 4, true);
    put(&header, (uint8_t[]){depth, colour, 0, 0, 0}, 5);
    m->size = 0;
    put(m, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(m, "IHDR", header.bytes, header.size);
    if (colours) put_chunk(m, "PLTE", palette, 3 * colours);
    put_chunk(m, "IDAT", packed, size);
    put_chunk(m, "IEND", "", 0);
}

static void test_png_kinds(void **state) {
    (void)state;
    static const uint8_t palette[] = {10, 20, 30, 200, 100, 50};
    static const struct {
        uint8_t depth, colour, row[12];
        size_t bytes, colours, channels;
        uint8_t wanted[6]; /* planes of two pixels */
    } kinds[] = {
        {1, 0, {0x40}, 1, 0, 1, {0, 255}},                     /* grey of one bit */
        {16, 0, {0x40, 0, 0xc0, 0xff}, 4, 0, 1, {0x40, 0xc0}}, /* grey of 16 bits */
        {8, 4, {7, 0, 99, 128}, 4, 0, 1, {7, 99}},             /* grey and opacity */
        {16, 4, {0x40, 0, 9, 9, 0xc0, 0, 9, 9}, 8, 0, 1, {0x40, 0xc0}},
        {4, 3, {0x10}, 1, 2, 3, {200, 10, 100, 20, 50, 30}}, /* palette */
        {16, 2, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}, 12, 0, 3, {1, 4, 2, 5, 3, 6}},
        {8, 6, {1, 2, 3, 0, 4, 5, 6, 255}, 8, 0, 3, {1, 4, 2, 5, 3, 6}}, /* opacity is ignored */
    };
    static maker m;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t planes[6];
        weft__image image;
        make_png(&m, 2, kinds[k].depth, kinds[k].colour, kinds[k].row, kinds[k].bytes, palette,
                 kinds[k].colours);
        assert_int_equal(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_OK);
        assert_int_equal(image.channels, kinds[k].channels);
        assert_int_equal(weft__image_fit(NULL, &image, 1, 2, planes), WEFT_OK);
        weft__image_free(NULL, &image);
        for (size_t i = 0; i < 2 * kinds[k].channels; i++)
            if (abs(planes[i] - kinds[k].wanted[i]) > 1)
                fail_msg("kind %zu: number %zu is %d, not %d", k, i, planes[i], kinds[k].wanted[i]);
        cut_everywhere(&m, 8);
    }
}

/* ---- BMP ---- */

enum { BMP_ROWS = 3, BMP_COLUMNS = 5 };

static uint8_t bmp_value(int y, int x, int c) { return (uint8_t)((y * BMP_COLUMNS + x) * 16 + c); }

/* Puts the rows of a BMP, each padded to four bytes. Pixel (y, x) of an indexed one is y * 5 + x. */
static void put_bmp_rows(maker *m, int bits, bool from_top) {
    for (int i = 0; i < BMP_ROWS; i++) {
        const int y = from_top ? i : BMP_ROWS - 1 - i;
        const size_t begin = m->size;
        uint8_t indices[4] = {0};
        for (int x = 0; x < BMP_COLUMNS; x++) {
            const int index = y * BMP_COLUMNS + x;
            if (bits == 1) indices[0] |= (uint8_t)((index & 1) << (7 - x));
            if (bits == 4) indices[x / 2] |= (uint8_t)(index << (x % 2 ? 0 : 4));
            if (bits == 8) put(m, &(uint8_t){(uint8_t)index}, 1);
            if (bits == 16) put_number(m, (uint32_t)(index << 10 | (31 - index) << 5 | 7), 2, false);
            for (int c = 2; bits >= 24 && c >= 0; c--) put(m, &(uint8_t){bmp_value(y, x, c)}, 1);
            if (bits == 32) put(m, "\x80", 1);
        }
        if (bits < 8) put(m, indices, (size_t)(BMP_COLUMNS * bits + 7) / 8);
        while ((m->size - begin) % 4) put(m, "", 1);
    }
}

static void make_bmp(maker *m, int bits, bool old, bool from_top, uint32_t compression) {
    const uint32_t colours = bits <= 8 ? 1U << bits : 0;
    m->size = 0;
    put(m, "BM\0\0\0\0\0\0\0\0", 10);
    put_number(m, (old ? 26 : 54) + colours * (old ? 3 : 4) + (compression ? 12 : 0), 4, false);
    put_number(m, old ? 12 : 40, 4, false);
    put_number(m, BMP_COLUMNS, old ? 2 : 4, false);
    put_number(m, from_top ? (uint32_t)-BMP_ROWS : BMP_ROWS, old ? 2 : 4, false);
    put_number(m, 1, 2, false), put_number(m, (uint32_t)bits, 2, false);
    if (!old) put_number(m, compression, 4, false), put(m, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    if (compression)
        put_number(m, 0xff0000, 4, false), put_number(m, 0xff00, 4, false), put_number(m, 0xff, 4, false);
    for (uint32_t i = 0; i < colours; i++)
        put(m, (uint8_t[]){(uint8_t)(i * 16 + 2), (uint8_t)(i * 16 + 1), (uint8_t)(i * 16), 0}, old ? 3 : 4);
    put_bmp_rows(m, bits, from_top);
}

static void check_bmp(const maker *m, int bits) {
    uint8_t planes[3 * BMP_ROWS * BMP_COLUMNS];
    int64_t rows, columns;
    assert_int_equal(decode(m, 0, planes, &rows, &columns), WEFT_OK);
    assert_int_equal(rows, BMP_ROWS);
    assert_int_equal(columns, BMP_COLUMNS);
    for (int i = 0; i < BMP_ROWS * BMP_COLUMNS; i++)
        for (int c = 0; c < 3; c++) {
            const int fives[3] = {i, 31 - i, 7};
            const int wanted = bits == 1    ? (i & 1) * 16 + c
                               : bits == 16 ? (fives[c] * 255 + 15) / 31
                                            : bmp_value(i / BMP_COLUMNS, i % BMP_COLUMNS, c);
            assert_int_equal(planes[c * BMP_ROWS * BMP_COLUMNS + i], wanted);
        }
}

static void test_bmp(void **state) {
    (void)state;
    static maker m;
    static const int depths[] = {1, 4, 8, 16, 24, 32};
    for (size_t i = 0; i < 6; i++)
        for (int kind = 0; kind < 3; kind++) {
            if (kind == 1 && (depths[i] == 16 || depths[i] == 32)) continue;
            make_bmp(&m, depths[i], kind == 1, kind == 2, 0);
            check_bmp(&m, depths[i]);
            cut_everywhere(&m, 2);
        }
    make_bmp(&m, 32, false, false, 3);
    check_bmp(&m, 32);
    m.bytes[10] = m.bytes[11] = 0xff; /* where the pixels begin */
    weft__image image;
    expect_message(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_ERR_FORMAT,
                   "f: the image is damaged", "pixels are cut off", NULL);
    make_bmp(&m, 8, false, false, 1);
    expect_message(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_ERR_FORMAT,
                   "a BMP of 8 bits with compression 1", "save it as PNG", NULL);
    make_bmp(&m, 24, false, false, 0);
    memcpy(m.bytes + 18, "\xff\xff\xff\x7f\xff\xff\xff\x7f", 8);
    expect_message(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_ERR_FORMAT,
                   "f: the image is damaged", NULL);
    memcpy(m.bytes + 18, "\0\0\0\0\x01\0\0\0", 8);
    expect_message(weft__image_decode(NULL, m.bytes, m.size, "f", NULL, &image), WEFT_ERR_FORMAT,
                   "declares 0 x 1 pixels", NULL);
}

/* ---- GIF ---- */

/* Tells whether Weft was built without the library of the format. The message must then say what to do. */
static bool is_missing(const maker *m, const char *package) {
    weft__image image;
    if (weft__image_decode(NULL, m->bytes, m->size, "f", NULL, &image) == WEFT_OK) {
        weft__image_free(NULL, &image);
        return false;
    }
    if (!strstr(weft_last_error(NULL), "built without")) fail_msg("%s", weft_last_error(NULL));
    assert_non_null(strstr(weft_last_error(NULL), package));
    printf("not tested: %s\n", weft_last_error(NULL));
    return true;
}

/* Puts a picture of 5 x 9 pixels whose index is 10 y + x, or 127 minus that. Codes of LZW have 8 bits here,
 * because the table of codes is cleared before it grows. */
static void put_picture(maker *m, int left, int top, bool interlaced, bool inverse) {
    static const int order[9] = {0, 8, 4, 2, 6, 1, 3, 5, 7};
    put(m, ",", 1);
    put_number(m, (uint32_t)left, 2, false), put_number(m, (uint32_t)top, 2, false);
    put_number(m, 5, 2, false), put_number(m, 9, 2, false);
    put(m, interlaced ? "\x40" : "\0", 1);
    put(m, "\x07\x38\x80", 3); /* bits, then 56 bytes: clear, 45 pixels, 9 times clear, end */
    for (int i = 0; i < 9; i++) {
        for (int x = 0; x < 5; x++) {
            const int index = (interlaced ? order[i] : i) * 10 + x;
            put(m, &(uint8_t){(uint8_t)(inverse ? 127 - index : index)}, 1);
        }
        put(m, "\x80", 1);
    }
    put(m, "\x81\0", 2);
}

static void make_gif(maker *m, int left, int top, bool interlaced) {
    m->size = 0;
    put(m, "GIF89a", 6);
    put_number(m, 6, 2, false), put_number(m, 10, 2, false);
    put(m, "\xe6\x7f\0", 3); /* a palette of 128 colours; the background is the last one */
    for (int i = 0; i < 128; i++) put(m, (uint8_t[]){(uint8_t)i, (uint8_t)(2 * i), (uint8_t)(255 - i)}, 3);
    put(m, "!\xfe\x03hi!\0", 7); /* a comment */
    put_picture(m, left, top, interlaced, false);
    put_picture(m, 0, 0, false, true); /* the second picture of an animation */
    put(m, ";", 1);
}

static void test_gif(void **state) {
    (void)state;
    static maker m;
    static uint8_t planes[180];
    make_gif(&m, 0, 0, false);
    if (is_missing(&m, "libgif-dev")) skip();
    for (int kind = 0; kind < 3; kind++) {
        const int left = kind == 2 ? 3 : 1, top = kind == 2 ? 4 : 0; /* the last one is partly outside */
        int64_t rows, columns;
        make_gif(&m, left, top, kind == 1);
        assert_int_equal(decode(&m, 0, planes, &rows, &columns), WEFT_OK);
        assert_int_equal(rows, 10);
        assert_int_equal(columns, 6);
        for (int i = 0; i < 60; i++) {
            const int y = i / 6 - top, x = i % 6 - left;
            const int index = y >= 0 && x >= 0 && y < 9 && x < 5 ? y * 10 + x : 127;
            assert_int_equal(planes[i], index);
            assert_int_equal(planes[60 + i], 2 * index);
            assert_int_equal(planes[120 + i], 255 - index);
        }
        cut_everywhere(&m, 6);
    }
    weft__image image;
    expect_message(weft__image_decode(NULL, m.bytes, 430, "f", NULL, &image), WEFT_ERR_FORMAT,
                   "f: the image is damaged, or cut off at byte 430", NULL);
}

/* ---- WebP ---- */

/* 7 x 5 pixels without loss, by libwebp: the first two rows are 200, then pixel x has 30 x + channel. */
static const uint8_t webp[] = {0x52, 0x49, 0x46, 0x46, 0x44, 0x00, 0x00, 0x00, 0x57, 0x45, 0x42, 0x50, 0x56,
                               0x50, 0x38, 0x4c, 0x37, 0x00, 0x00, 0x00, 0x2f, 0x06, 0x00, 0x01, 0x00, 0x3f,
                               0x20, 0xa6, 0x21, 0x26, 0x83, 0x5f, 0xff, 0xa0, 0x42, 0x88, 0x05, 0x53, 0x3c,
                               0x88, 0xee, 0x04, 0xa2, 0x6d, 0xaa, 0x86, 0x70, 0x80, 0xcf, 0x7f, 0xc2, 0xde,
                               0x2c, 0x30, 0xd3, 0xb6, 0xcd, 0xd7, 0xbe, 0xc5, 0x52, 0x2c, 0xe5, 0x12, 0xfe,
                               0x9a, 0xc6, 0x21, 0xa2, 0xff, 0x01, 0xf8, 0xd2, 0xe9, 0x03, 0x00};

static void test_webp(void **state) {
    (void)state;
    static maker m;
    uint8_t planes[105];
    int64_t rows, columns;
    put(&m, webp, sizeof webp);
    if (is_missing(&m, "libwebp-dev")) skip();
    assert_int_equal(decode(&m, 0, planes, &rows, &columns), WEFT_OK);
    assert_int_equal(rows, 5);
    assert_int_equal(columns, 7);
    for (int i = 0; i < 105; i++) assert_int_equal(planes[i], i % 35 < 14 ? 200 : i % 7 * 30 + i / 35);
    weft__image image;
    for (size_t size = 12; size < 70; size++)
        expect_message(weft__image_decode(NULL, m.bytes, size, "f", NULL, &image), WEFT_ERR_FORMAT,
                       "f: the image is damaged, or cut off at byte", NULL);
    static maker exif;
    put_exif(&exif, false, 3); /* turned by 180 degrees */
    put(&m, "EXIF", 4), put_number(&m, (uint32_t)exif.size - 6, 4, false);
    put(&m, exif.bytes + 6, exif.size - 6);
    assert_int_equal(weft__exif_orientation(m.bytes, m.size), 3);
}

/* ---- the most pixels ---- */

/* Decodes a file that declares rows x columns: with so many pixels it is read, with fewer it is refused. */
static void check_most(const maker *m, int rows, int columns, bool fitted) {
    weft_image_folder_options o = {
        .rows = fitted ? 4 : 0, .columns = fitted ? 4 : 0, .max_pixels = (int64_t)rows * columns};
    char size[80];
    weft__image image;
    assert_int_equal(weft__image_decode(NULL, m->bytes, m->size, "f", &o, &image), WEFT_OK);
    weft__image_free(NULL, &image);
    o.max_pixels--;
    snprintf(size, sizeof size, "f: the image declares %d x %d pixels; 1 to %d are allowed", columns, rows,
             rows * columns - 1);
    expect_message(weft__image_decode(NULL, m->bytes, m->size, "f", &o, &image), WEFT_ERR_FORMAT, size,
                   "data.image_pixels", NULL);
    assert_null(image.pixels);
}

static void test_most(void **state) {
    (void)state;
    static maker m;
    for (int fitted = 0; fitted < 2; fitted++) {
        make_colours(33, 35, TJSAMP_420, &m);
        check_most(&m, 33, 35, fitted);
        make_png(&m, 2, 8, 0, (const uint8_t *)"ab", 2, NULL, 0);
        check_most(&m, 1, 2, fitted);
        make_bmp(&m, 24, false, false, 0);
        check_most(&m, BMP_ROWS, BMP_COLUMNS, fitted);
        m.size = 0;
        put(&m, webp, sizeof webp);
        if (!is_missing(&m, "libwebp-dev")) check_most(&m, 5, 7, fitted);
        make_gif(&m, 0, 0, false);
        if (is_missing(&m, "libgif-dev")) continue;
        check_most(&m, 10, 6, fitted);
        m.bytes[6] = m.bytes[8] = 1; /* a canvas of 1 x 1 pixels for a picture of 5 x 9 */
        check_most(&m, 9, 5, fitted);
    }
}

/* An image without opacity takes a byte for each channel while it is decoded. */
static void test_png_memory(void **state) {
    (void)state;
    static uint8_t row[16385];
    static maker m;
    uLongf size = 4096;
    uint8_t packed[4096];
    weft__image image;
    make_png(&m, 16384, 8, 0, row, 1, NULL, 0);
    m.size = 8 + 25; /* the signature and the header */
    assert_int_equal(compress(packed, &size, row, sizeof row), Z_OK);
    put_chunk(&m, "IDAT", packed, size);
    put_chunk(&m, "IEND", "", 0);
    for (int64_t channels = 0; channels <= 3; channels += 3) {
        bounded b;
        weft_context ctx = bounded_context(&b, channels ? 3 * 16384 : 16384);
        const weft_image_folder_options o = {.channels = channels};
        assert_int_equal(weft__image_decode(&ctx, m.bytes, m.size, "f", &o, &image), WEFT_OK);
        weft__image_free(&ctx, &image);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orientations), cmocka_unit_test(test_hostile_exif),
        cmocka_unit_test(test_inks),         cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_bmp),          cmocka_unit_test(test_gif),
        cmocka_unit_test(test_webp),         cmocka_unit_test(test_planes),
        cmocka_unit_test(test_reduced),      cmocka_unit_test(test_scans),
        cmocka_unit_test(test_most),         cmocka_unit_test(test_png_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
