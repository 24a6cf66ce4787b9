/* src/data/image_*.c: PNG and JPEG of each kind, truncated at every byte; resampling like Pillow; folders. */
#include "data_util.h"

#include <math.h>
#include <png.h>
#include <sys/stat.h>
#include <turbojpeg.h>

#include "data/image_file.h"
#include "data/image_lines.h"
#include "device/cpu/cpu.h"
#include "unit/failing_alloc.h"

#define ROOM 65536

/* Channel c of pixel (y, x) in the generated images. */
static uint8_t pixel(int64_t y, int64_t x, int64_t c) {
    return (uint8_t)((x * 37 + y * 91 + c * 50 + x * y * 5) % 256);
}

static size_t make_png(int rows, int columns, png_uint_32 format, uint8_t out[ROOM]) {
    static uint8_t pixels[ROOM];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)columns,
                       .height = (png_uint_32)rows,
                       .format = format};
    const int channels = (int)PNG_IMAGE_SAMPLE_CHANNELS(format);
    png_alloc_size_t size = ROOM;
    for (int i = 0; i < rows * columns; i++)
        for (int c = 0; c < channels; c++)
            pixels[i * channels + c] = c == 3 ? (uint8_t)(i * 11) : pixel(i / columns, i % columns, c);
    assert_true(png_image_write_to_memory(&image, out, &size, 0, pixels, 0, NULL));
    return size;
}

/* All pixels are (200, 100, 50), or 77. */
static size_t make_jpeg(int rows, int columns, bool colour, uint8_t out[ROOM]) {
    static uint8_t pixels[ROOM];
    uint8_t *made = NULL;
    unsigned long size = 0;
    tjhandle jpeg = tjInitCompress();
    for (int i = 0; i < rows * columns; i++)
        memcpy(pixels + (colour ? 3 * i : i), colour ? "\xc8\x64\x32" : "M", colour ? 3 : 1);
    assert_int_equal(tjCompress2(jpeg, pixels, columns, 0, rows, colour ? TJPF_RGB : TJPF_GRAY, &made, &size,
                                 colour ? TJSAMP_420 : TJSAMP_GRAY, 95, 0),
                     0);
    assert_true(size <= ROOM);
    memcpy(out, made, size);
    tjFree(made);
    tjDestroy(jpeg);
    return size;
}

static void assert_near(int got, int wanted, int by) {
    if (abs(got - wanted) > by) fail_msg("%d is not within %d of %d", got, by, wanted);
}

static void test_png(void **state) {
    (void)state;
    static uint8_t file[ROOM];
    static const png_uint_32 formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
    weft__image image;
    for (int f = 0; f < 3; f++) {
        const size_t size = make_png(5, 7, formats[f], file);
        const int channels = f == 0 ? 1 : 3;
        assert_int_equal(weft__image_decode(NULL, file, size, "f.png", NULL, &image), WEFT_OK);
        assert_int_equal(image.rows, 5);
        assert_int_equal(image.columns, 7);
        assert_int_equal(image.channels, channels);
        for (int i = 0; i < 35; i++)
            for (int c = 0; c < channels; c++)
                assert_int_equal(image.pixels[i * channels + c], pixel(i / 7, i % 7, c));
        weft__image_free(NULL, &image);
        for (size_t cut = 8; cut < size - 12; cut++) { /* the last 12 bytes are only the end marker */
            expect_message(weft__image_decode(NULL, file, cut, "f.png", NULL, &image), WEFT_ERR_FORMAT,
                           "f.png: the image is damaged, or cut off at byte", NULL);
            assert_null(image.pixels);
        }
    }
    const size_t size = make_png(5, 7, PNG_FORMAT_RGB, file); /* the luma of the colour */
    assert_int_equal(
        weft__image_decode(NULL, file, size, "f.png", &(weft_image_folder_options){.channels = 1}, &image),
        WEFT_OK);
    for (int i = 0; i < 35; i++)
        assert_near(image.pixels[i],
                    (int)(0.299 * pixel(i / 7, i % 7, 0) + 0.587 * pixel(i / 7, i % 7, 1) +
                          0.114 * pixel(i / 7, i % 7, 2) + 0.5),
                    1);
    weft__image_free(NULL, &image);
}

static void test_jpeg(void **state) {
    (void)state;
    static uint8_t file[ROOM];
    static const int colours[] = {200, 100, 50};
    weft__image image;
    size_t size = make_jpeg(21, 35, true, file);
    assert_int_equal(weft__image_decode(NULL, file, size, "f.jpg", NULL, &image), WEFT_OK);
    assert_int_equal(image.channels, 3);
    assert_int_equal(image.rows, 21);
    assert_int_equal(image.columns, 35);
    for (int i = 0; i < 21 * 35 * 3; i++) assert_near(image.pixels[i], colours[i % 3], 2);
    weft__image_free(NULL, &image);
    assert_int_equal(
        weft__image_decode(NULL, file, size, "f.jpg", &(weft_image_folder_options){.channels = 1}, &image),
        WEFT_OK);
    for (int i = 0; i < 21 * 35; i++) assert_near(image.pixels[i], 124, 2);
    weft__image_free(NULL, &image);
    for (size_t cut = 3; cut < size - 4; cut++)
        expect_message(weft__image_decode(NULL, file, cut, "f.jpg", NULL, &image), WEFT_ERR_FORMAT,
                       "f.jpg: the image is damaged, or cut off at byte", NULL);
    for (size_t i = 0; i + 9 < size; i++) /* the header now declares 65,500 x 65,500 */
        if (file[i] == 0xff && file[i + 1] == 0xc0) memcpy(file + i + 5, "\xff\xdc\xff\xdc", 4);
    expect_message(weft__image_decode(NULL, file, size, "f.jpg", NULL, &image), WEFT_ERR_FORMAT,
                   "f.jpg: the image declares 65500 x 65500 pixels", NULL);
    expect_message(weft__image_decode(NULL, file, size, "f.jpg",
                                      &(weft_image_folder_options){.rows = 8, .columns = 8}, &image),
                   WEFT_ERR_FORMAT, "f.jpg: the image declares 65500 x 65500 pixels", NULL);
    size = make_jpeg(8, 9, false, file);
    assert_int_equal(
        weft__image_decode(NULL, file, size, "f.jpg", &(weft_image_folder_options){.channels = 3}, &image),
        WEFT_OK);
    for (int i = 0; i < 8 * 9 * 3; i++) assert_near(image.pixels[i], 77, 1);
    weft__image_free(NULL, &image);
    expect_message(weft__image_decode(NULL, "%PDF-1", 6, "f.pdf", 0, &image), WEFT_ERR_FORMAT,
                   "f.pdf: this is not a PNG, JPEG, GIF, WebP or BMP image", NULL);
    expect_message(weft__image_decode(NULL, "", 0, "empty", 0, &image), WEFT_ERR_FORMAT,
                   "empty: this is not a PNG", NULL);
}

/* Expected values by Pillow 12.0: ImageOps.fit(image, (columns, rows), BILINEAR), which rounds after each
 * pass. */
static void test_fit(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns, channels, to_rows, to_columns;
        uint8_t pixels[72];
    } cases[] = {
        {9, 14, 3, 4, 4, {117, 125, 116, 147, 123, 128, 150, 129, 131, 153, 149, 128, 118, 134, 133, 114,
                          121, 121, 111, 121, 122, 119, 127, 122, 130, 139, 138, 135, 138, 124, 136, 122,
                          136, 116, 120, 149, 115, 124, 121, 124, 127, 127, 123, 121, 106, 108, 127, 143}},
        {5, 4, 1, 8, 9, {40,  47,  65,  82,  100, 117, 134, 152, 158, 81,  88,  107, 124, 143, 162,
                         180, 198, 205, 121, 129, 148, 162, 144, 126, 140, 160, 167, 162, 170, 190,
                         199, 131, 63,  72,  93,  100, 145, 154, 175, 185, 118, 51,  61,  82,  91,
                         72,  81,  103, 120, 105, 89,  107, 129, 138, 27,  36,  59,  83,  106, 129,
                         141, 152, 156, 68,  77,  101, 125, 150, 174, 143, 104, 90}},
        {40, 30, 1, 3, 5, {129, 131, 129, 128, 127, 135, 146, 124, 118, 127, 131, 134, 119, 122, 124}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t pixels[1200], planes[72];
        const int64_t columns = cases[i].columns, channels = cases[i].channels;
        const int64_t count = channels * cases[i].to_rows * cases[i].to_columns;
        for (int64_t k = 0; k < cases[i].rows * columns * channels; k++)
            pixels[k] = pixel(k / channels / columns, k / channels % columns, k % channels);
        const weft__image image = {
            .pixels = pixels, .rows = cases[i].rows, .columns = columns, .channels = channels};
        assert_int_equal(weft__image_fit(NULL, &image, cases[i].to_rows, cases[i].to_columns, planes),
                         WEFT_OK);
        for (int64_t k = 0; k < count; k++) assert_near(planes[k], cases[i].pixels[k], 1);
    }
}

/* The value of an output pixel by the filter in double: a triangle around its middle in each direction, over
 * the part of the image with the wanted proportions. */
static double exact(const weft__image *p, int64_t rows, int64_t columns, int64_t y, int64_t x, int64_t c) {
    const double width = fmin((double)p->columns, (double)(p->rows * columns) / (double)rows),
                 height = fmin((double)p->rows, (double)(p->columns * rows) / (double)columns),
                 down = height / (double)rows, across = width / (double)columns;
    const double row = ((double)p->rows - height) / 2 + ((double)y + 0.5) * down,
                 column = ((double)p->columns - width) / 2 + ((double)x + 0.5) * across;
    double sum = 0, all = 0;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->columns; j++) {
            const double weight = fmax(0, 1 - fabs((double)i + 0.5 - row) / fmax(down, 1)) *
                                  fmax(0, 1 - fabs((double)j + 0.5 - column) / fmax(across, 1));
            sum += weight * p->pixels[(i * p->columns + j) * p->channels + c];
            all += weight;
        }
    return sum / all;
}

/* Sizes with one, few and many lines in a sum, blocks that are not full, and the same size. The rows are
 * rounded before the columns, so a value may be off by twice 0.5 and by what integers lose. */
static void test_fit_exact(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns, channels, to_rows, to_columns;
    } cases[] = {{17, 23, 3, 17, 23}, {33, 50, 3, 7, 11}, {90, 31, 1, 2, 2}, {6, 5, 3, 70, 41},
                 {64, 64, 3, 63, 65}, {1, 1, 3, 5, 3},    {41, 1, 1, 3, 1},  {37, 70, 4, 16, 32},
                 {100, 100, 1, 1, 1}, {48, 20, 3, 33, 17}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint8_t pixels[16384], planes[16384];
        const weft__image image = {.pixels = pixels,
                                   .rows = cases[i].rows,
                                   .columns = cases[i].columns,
                                   .channels = cases[i].channels};
        const int64_t rows = cases[i].to_rows, columns = cases[i].to_columns;
        const int64_t all = image.rows * image.columns * image.channels;
        for (int64_t k = 0; k < all; k++) pixels[k] = (uint8_t)((uint64_t)k * 2654435761u >> 13);
        assert_int_equal(weft__image_fit(NULL, &image, rows, columns, planes), WEFT_OK);
        for (int64_t k = 0; k < image.channels * rows * columns; k++) {
            const double wanted =
                exact(&image, rows, columns, k / columns % rows, k % columns, k / columns / rows);
            if (fabs(planes[k] - wanted) > 1.13)
                fail_msg("case %zu, value %lld: %d, not %g", i, (long long)k, planes[k], wanted);
        }
        static const uint8_t flat[] = {0, 1, 127, 254, 255};
        for (size_t v = 0; v < sizeof flat; v++) {
            memset(pixels, flat[v], (size_t)all);
            assert_int_equal(weft__image_fit(NULL, &image, rows, columns, planes), WEFT_OK);
            for (int64_t k = 0; k < image.channels * rows * columns; k++)
                assert_int_equal(planes[k], flat[v]);
        }
    }
}

/* The loops of all instruction sets give the same bytes, with few and with many lines in a sum. */
static void test_line_loops(void **state) {
    (void)state;
    enum { SIZE = 531, LINES = 40, TO = SIZE + WEFT__TILE };
    static uint8_t from[LINES * TO], to[2][TO * TO];
    const weft__line_loops *loops[] = {
        &weft__line_loops_baseline,
#if defined(__x86_64__)
        &weft__line_loops_avx2,
        &weft__line_loops_avx512
#endif
    };
    for (size_t k = 0; k < sizeof from; k++) from[k] = (uint8_t)(k * 2654435761u >> 11);
    for (int isa = 1; isa <= (int)weft__cpu_isa(); isa++)
        for (int64_t taps = 1; taps <= LINES; taps++) {
            int64_t first = 0;
            uint32_t weights[LINES];
            const uint32_t one = taps <= WEFT__TAPS_NARROW ? WEFT__ONE_NARROW : WEFT__ONE_WIDE;
            for (int64_t k = 0; k < taps; k++) weights[k] = one / (uint32_t)taps;
            const weft__line_sums sums = {1, taps, &first, &taps, weights};
            loops[0]->sum(&sums, 0, 1, SIZE - taps, from, TO, to[0], TO);
            loops[isa]->sum(&sums, 0, 1, SIZE - taps, from, TO, to[1], TO);
            assert_memory_equal(to[0], to[1], (size_t)(SIZE - taps));
            memset(to, 0, sizeof to);
            for (int k = 0; k < 2; k++)
                loops[k ? isa : 0]->transpose(from, TO, taps < 24 ? taps : 24, SIZE - taps, to[k], TO);
            assert_memory_equal(to[0], to[1], sizeof to[0]);
            assert_int_equal(to[1][(SIZE - taps - 1) * TO], from[SIZE - taps - 1]);
        }
}

/* All colours of JPEG, by the equations of JFIF. The loops of all instruction sets give the same bytes. */
static void test_colours(void **state) {
    (void)state;
    enum { STEPS = 52, SIZE = STEPS * STEPS * STEPS };
    static uint8_t given[3][SIZE], found[3][SIZE];
    const weft__line_loops *const loops[] = {
        &weft__line_loops_baseline,
#if defined(__x86_64__)
        &weft__line_loops_avx2,
        &weft__line_loops_avx512
#endif
    };
    for (int i = 0; i < SIZE; i++)
        for (int c = 0, rest = i; c < 3; c++, rest /= STEPS) given[c][i] = (uint8_t)(rest % STEPS * 5);
    for (int isa = 0; isa <= (int)weft__cpu_isa(); isa++) {
        memcpy(found, given, sizeof found);
        loops[isa]->colour(found[0], found[1], found[2], SIZE);
        for (int i = 0; i < SIZE; i++) {
            const double y = given[0][i], cb = given[1][i] - 128.0, cr = given[2][i] - 128.0;
            const double wanted[3] = {y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb};
            for (int c = 0; c < 3; c++)
                if (fabs(found[c][i] - fmin(fmax(wanted[c], 0), 255)) > 0.54)
                    fail_msg("isa %d, colour %d of %d: %d, not %g", isa, c, i, found[c][i], wanted[c]);
        }
    }
}

/* ---- folders ---- */

static char root[64];

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name, const void *data, size_t size) {
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int make_folders(void **state) {
    (void)state;
    static uint8_t file[ROOM];
    strcpy(root, "/tmp/weft-images-XXXXXX");
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {
        "all", "all/cat", "all/cat/more", "all/ant",      "empty",
        "one", "one/dog", "all/.git",     "all/cat/void", "all/cat/void/deep"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(path_of(folders[i]), 0700), 0);
    size_t size = make_png(4, 4, PNG_FORMAT_RGB, file);
    put("all/ant/b.png", file, size);
    put("all/cat/more/a.PNG", file, size);
    put("all/cat/.hidden.png", "no", 2);
    put("all/cat/notes.txt", "no", 2);
    put("all/classes.csv", "no", 2);
    put("one/dog/x.png", file, size);
    size = make_jpeg(8, 8, true, file);
    put("all/ant/a.jpeg", file, size);
    size = make_png(6, 9, PNG_FORMAT_GRAY, file);
    put("all/cat/z.png", file, size);
    return 0;
}

static int remove_folders(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command); /* NOLINT(cert-env33-c): the path is this test's own */
}

static void test_folder(void **state) {
    (void)state;
    static const char *const files[] = {"ant/a.jpeg", "ant/b.png", "cat/z.png", "cat/more/a.PNG"};
    const weft_image_folder_options options = {.channels = 3, .rows = 4, .columns = 4, .with_classes = true};
    weft_image_folder f;
    assert_int_equal(weft_read_image_folder(NULL, path_of("all"), &options, &f), WEFT_OK);
    assert_int_equal(f.class_count, 2);
    assert_string_equal(f.classes[0], "ant");
    assert_string_equal(f.classes[1], "cat");
    assert_int_equal(f.images.rank, 4);
    assert_int_equal(f.images.bytes, 4 * 3 * 4 * 4);
    assert_int_equal(f.labels.shape[0], 4);
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(f.files[i], files[i]));
        assert_int_equal(((int32_t *)f.labels.data)[i], i / 2);
    }
    const uint8_t *images = f.images.data;
    static const char *const skipped[] = {"/all/.git", "/all/cat/.hidden.png", "/all/cat/notes.txt",
                                          "/all/cat/void/deep/", "/all/classes.csv"};
    assert_int_equal(f.skipped_count, 5);
    for (size_t i = 0; i < 5; i++) assert_string_equal(f.skipped[i] + strlen(root), skipped[i]);
    for (int i = 0; i < 48; i++) assert_near(images[i], i < 16 ? 200 : i < 32 ? 100 : 50, 2);
    for (int i = 0; i < 48; i++) {
        assert_int_equal(images[48 + i], pixel(i % 16 / 4, i % 4, i / 16));
        assert_int_equal(images[3 * 48 + i], images[48 + i]);
        assert_int_equal(images[2 * 48 + i], images[2 * 48 + i % 16]); /* grey in three planes */
    }
    weft_image_folder_free(NULL, &f);
}

static void test_folder_alone(void **state) {
    (void)state;
    weft_image_folder f;
    assert_int_equal(weft_read_image_folder(NULL, path_of("all/cat/more"), NULL, &f), WEFT_OK);
    assert_int_equal(f.images.shape[0], 1);
    assert_int_equal(f.images.shape[1], 3);
    assert_null(f.labels.data);
    assert_null(f.classes);
    assert_null(f.skipped);
    weft_image_folder_free(NULL, &f);
    assert_int_equal(weft_read_image_folder(NULL, path_of("all/cat/z.png"), NULL, &f), WEFT_OK);
    assert_int_equal(f.images.shape[1], 1);
    assert_int_equal(f.images.shape[2], 6);
    assert_int_equal(f.images.shape[3], 9);
    weft_image_folder_free(NULL, &f);
    const weft_image_folder_options larger = {.rows = 1, .columns = 3};
    assert_int_equal(weft_read_image_folder(NULL, path_of("all"), &larger, &f), WEFT_OK);
    assert_int_equal(f.images.shape[0], 4);
    weft_image_folder_free(NULL, &f);
}

static void refuse(const char *path, weft_image_folder_options options, weft_status status,
                   const char *word) {
    weft_image_folder f;
    expect_message(weft_read_image_folder(NULL, path_of(path), &options, &f), status, word, NULL);
    assert_null(f.images.data);
    assert_null(f.files);
}

/* one/dog/y.jpg is damaged. */
static void test_skip_bad(void) {
    weft_image_folder_options options = {.with_classes = true, .skip_bad = true, .rows = 2, .columns = 2};
    weft_image_folder f;
    assert_int_equal(weft_read_image_folder(NULL, path_of("one"), &options, &f), WEFT_OK);
    assert_int_equal(f.images.shape[0], 1);
    assert_int_equal(f.images.bytes, 12);
    assert_int_equal(f.labels.shape[0], 1);
    assert_int_equal(f.bad_count, 1);
    assert_non_null(strstr(f.bad[0], "one/dog/y.jpg: the image is damaged"));
    assert_non_null(strstr(f.files[0], "one/dog/x.png"));
    weft_image_folder_free(NULL, &f);
    options = (weft_image_folder_options){.skip_bad = true};
    refuse("one/dog/y.jpg", options, WEFT_ERR_FORMAT, "1 of 1 images cannot be read");
}

static void test_refused(void **state) {
    (void)state;
    static const char *const known[] = {"ant", "cat"};
    refuse("nowhere", (weft_image_folder_options){0}, WEFT_ERR_IO, "nowhere");
    refuse("nowhere", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_IO, "nowhere");
    refuse("empty", (weft_image_folder_options){0}, WEFT_ERR_FORMAT, "empty: this folder holds no images");
    refuse("empty", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_FORMAT,
           "this folder holds no folders");
    refuse("all/cat", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_FORMAT,
           "z.png: this image is not in the folder of a class");
    refuse("one", (weft_image_folder_options){.with_classes = true, .classes = known, .class_count = 2},
           WEFT_ERR_FORMAT, "one/dog: no class of the training data has this name");
    refuse("all", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_FORMAT,
           "ant/b.png: this image has 3 channels, 4 rows and 4 columns, but the first image has 3, 8 and 8");
    refuse("all", (weft_image_folder_options){.rows = 3}, WEFT_ERR_ARGUMENT, "rows and columns together");
    refuse("all", (weft_image_folder_options){.max_pixels = 15}, WEFT_ERR_FORMAT,
           "4 of 4 images cannot be read; the first: ");
    refuse("all/cat/z.png", (weft_image_folder_options){.max_pixels = 53}, WEFT_ERR_FORMAT,
           "z.png: the image declares 9 x 6 pixels; 1 to 53 are allowed");
    refuse("all", (weft_image_folder_options){.channels = 2}, WEFT_ERR_ARGUMENT, "2 channels");
    put("one/dog/y.jpg", "\xff\xd8\xff", 3);
    refuse("one", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_FORMAT,
           "1 of 2 images cannot be read; the first: ");
    test_skip_bad();
    assert_int_equal(unlink(path_of("one/dog/y.jpg")), 0);
    assert_int_equal(mkdir(path_of("one/eel"), 0700), 0);
    refuse("one", (weft_image_folder_options){.with_classes = true}, WEFT_ERR_FORMAT,
           "one/eel: this folder holds no images");
    assert_int_equal(rmdir(path_of("one/eel")), 0);
}

static weft_status read_folder(weft_context *ctx) {
    const weft_image_folder_options options = {.channels = 1, .rows = 4, .columns = 4, .with_classes = true};
    weft_image_folder f;
    WEFT_TRY(weft_read_image_folder(ctx, path_of("all"), &options, &f));
    weft_image_folder_free(ctx, &f);
    return WEFT_OK;
}

static void test_memory(void **state) {
    (void)state;
    assert_true(fail_each_allocation(read_folder) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),       cmocka_unit_test(test_jpeg),         cmocka_unit_test(test_fit),
        cmocka_unit_test(test_fit_exact), cmocka_unit_test(test_line_loops),   cmocka_unit_test(test_colours),
        cmocka_unit_test(test_folder),    cmocka_unit_test(test_folder_alone), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
