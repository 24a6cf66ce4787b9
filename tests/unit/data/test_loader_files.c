/* Loaders whose inputs stay in image files: the batches have the bits of those from memory, also when images
 * are changed at random; a file that breaks later is named, and is read again when it is whole. Scans of
 * folders: what they note of images is what memory would hold. */
#define _DEFAULT_SOURCE
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/loader.h"
#include "data/image_pixels.h"
#include "unit/nn_help.h"
#include <weft/loader.h>

enum { N = 11, ROWS = 9, COLUMNS = 7, C = 3, TO = 6, PIXELS = C * TO * TO, BATCH = 4 };

static char root[64];

static const char *path_of(int class, int i) {
    static char path[128];
    if (i < 0)
        snprintf(path, sizeof path, "%s/%d", root, class);
    else
        snprintf(path, sizeof path, "%s/%d/%02d.png", root, class, i);
    return path;
}

static void write_image(int i) {
    uint8_t pixels[ROWS * COLUMNS * C];
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = COLUMNS, .height = ROWS, .format = PNG_FORMAT_RGB};
    for (int k = 0; k < ROWS * COLUMNS * C; k++) pixels[k] = (uint8_t)(i * 23 + k * 3);
    assert_true(png_image_write_to_file(&image, path_of(i % 2, i), 0, pixels, 0, NULL));
}

static int make_folder(void **state) {
    (void)state;
    strcpy(root, "/tmp/weft-files-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (int class = 0; class < 2; class ++) assert_int_equal(mkdir(path_of(class, -1), 0700), 0);
    for (int i = 0; i < N; i++) write_image(i);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command); /* NOLINT(cert-env33-c): the path is this test's own */
}

static void read_folder(weft_context *ctx, bool in_files, weft_image_folder *f) {
    const weft_image_folder_options o = {
        .channels = C, .rows = TO, .columns = TO, .with_classes = true, .in_files = in_files};
    assert_ok(weft_read_image_folder(ctx, root, &o, f));
}

static weft_loader *open_loader(weft_context *ctx, const weft_image_folder *f, weft_loader_options o) {
    weft_loader *loader = NULL;
    o.batch = BATCH;
    o.seed = 3;
    o.classes = 2;
    o.images.channels = C, o.images.rows = TO, o.images.columns = TO;
    if (!f->images.data) o.images.files = (const char *const *)f->files;
    assert_ok(weft_loader_new(ctx, &f->images, &f->labels, &o, &loader));
    return loader;
}

static void test_same_bits(void **state) {
    weft_context *ctx = *state;
    weft_image_folder memory, files;
    read_folder(ctx, false, &memory);
    read_folder(ctx, true, &files);
    assert_null(files.images.data);
    assert_int_equal(files.images.shape[0], N);
    const weft_loader_options kinds[] = {{.in_order = true},
                                         {.scale = 1.0 / 255},
                                         {.images = {.shift = 1, .flip = true}},
                                         {.images = {.crop = 0.5, .rotate = 10, .mixup = 1}},
                                         {.drop_last = true}};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        weft_loader *a = open_loader(ctx, &memory, kinds[k]), *b = open_loader(ctx, &files, kinds[k]);
        assert_false(weft_loader_on_device(b));
        for (uint64_t at = 0; at < 7; at++) {
            static float x[2][BATCH * PIXELS];
            int32_t y[2][BATCH];
            weft_batch batch;
            for (int i = 0; i < 2; i++) {
                weft_scope *scope = weft_scope_open(ctx);
                assert_ok(weft_loader_get(i ? b : a, at, &batch));
                assert_ok(weft_read(weft_cast(batch.x, WEFT_F32), x[i], sizeof x[i]));
                assert_ok(weft_read(batch.y, y[i], sizeof y[i]));
                weft_scope_close(scope);
            }
            assert_memory_equal(x[0], x[1], sizeof x[0]);
            assert_memory_equal(y[0], y[1], sizeof y[0]);
        }
        weft_loader_free(a);
        weft_loader_free(b);
    }
    weft_image_folder_free(ctx, &memory);
    weft_image_folder_free(ctx, &files);
}

static void test_broken_file(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    weft_batch batch;
    read_folder(ctx, true, &f);
    weft_loader *loader = open_loader(ctx, &f, (weft_loader_options){.in_order = true});
    assert_ok(weft_loader_get(loader, 0, &batch)); /* the loader now reads the next batch */
    assert_ok(weft_loader_get(loader, 1, &batch));
    assert_int_equal(truncate(path_of(0, 4), 30), 0); /* the third file, in batch 0 */
    assert_int_equal(weft_loader_get(loader, 3, &batch), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "/0/04.png: the image is damaged, or cut off at byte 30"));
    assert_ok(weft_loader_get(loader, 4, &batch)); /* other batches are as before */
    write_image(4);
    assert_ok(weft_loader_get(loader, 3, &batch));
    assert_int_equal(unlink(path_of(1, 9)), 0);
    assert_int_equal(weft_loader_get(loader, 8, &batch), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "/1/09.png"));
    write_image(9);
    weft_loader_free(loader);
    loader = open_loader(ctx, &f, (weft_loader_options){.in_order = true, .images.max_pixels = 9});
    assert_int_equal(weft_loader_get(loader, 0, &batch), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "1 to 9 are allowed"));
    weft_loader_free(loader);
    weft_image_folder_free(ctx, &f);
}

/* A batch of all samples has their order, wherever the pixels are. */
static void test_all_samples(void **state) {
    weft_context *ctx = *state;
    weft_image_folder memory, files;
    read_folder(ctx, false, &memory);
    read_folder(ctx, true, &files);
    for (int i = 0; i < 3; i++) {
        weft_loader_options o = {.batch = N, .seed = 3, .device_bytes = i == 1 ? -1 : 0};
        o.images.channels = C, o.images.rows = TO, o.images.columns = TO;
        if (i == 2) o.images.files = (const char *const *)files.files;
        weft_image_folder *f = i == 2 ? &files : &memory;
        static float x[N * PIXELS];
        weft_loader *loader;
        weft_batch batch;
        assert_ok(weft_loader_new(ctx, &f->images, &f->labels, &o, &loader));
        weft_scope *scope = weft_scope_open(ctx);
        assert_ok(weft_loader_get(loader, 1, &batch));
        assert_ok(weft_read(weft_cast(batch.x, WEFT_F32), x, sizeof x));
        weft_scope_close(scope);
        for (int k = 0; k < N * PIXELS; k++)
            assert_true(x[k] == (float)((const uint8_t *)memory.images.data)[k]);
        weft_loader_free(loader);
    }
    weft_image_folder_free(ctx, &memory);
    weft_image_folder_free(ctx, &files);
}

/* Replicas take every n-th batch: another guess about the next batch changes nothing. */
static void test_any_order(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    read_folder(ctx, true, &f);
    weft_loader *one = open_loader(ctx, &f, (weft_loader_options){.drop_last = true});
    static const uint64_t order[] = {5, 7, 9, 11, 0, 0, 1, 2, 9, 3, 1000, 1001, 4};
    for (size_t i = 0; i < COUNT(order); i++) {
        int32_t y[2][BATCH];
        weft_loader *fresh = open_loader(ctx, &f, (weft_loader_options){.drop_last = true});
        weft_loader *loaders[] = {one, fresh};
        for (int k = 0; k < 2; k++) {
            weft_batch batch;
            weft_scope *scope = weft_scope_open(ctx);
            assert_ok(weft_loader_get(loaders[k], order[i], &batch));
            assert_ok(weft_read(batch.y, y[k], sizeof y[k]));
            weft_scope_close(scope);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        weft_loader_free(fresh);
    }
    weft_loader_free(one);
    weft_image_folder_free(ctx, &f);
}

/* ---- scans ---- */

static void scan_folder(weft_context *ctx, weft_hash *hash, weft__image_note **notes, weft_image_folder *f) {
    const weft_image_folder_options o = {
        .channels = C, .rows = TO, .columns = TO, .with_classes = true, .skip_bad = true};
    weft__hash_stream pixels = {.hash = hash};
    weft__image_scan scan = {.pixels = &pixels};
    weft__hash_init(hash);
    assert_ok(weft__read_image_folder(ctx, root, &o, &scan, f));
    weft__hash_end(&pixels);
    *notes = scan.notes;
}

static void test_scan(void **state) {
    weft_context *ctx = *state;
    for (int broken = 0; broken < 2; broken++) {
        weft_image_folder memory, files;
        weft__image_note *notes;
        weft_hash wanted, got;
        const weft_image_folder_options o = {
            .channels = C, .rows = TO, .columns = TO, .with_classes = true, .skip_bad = true};
        if (broken) assert_int_equal(truncate(path_of(0, 4), 30), 0);
        assert_ok(weft_read_image_folder(ctx, root, &o, &memory));
        scan_folder(ctx, &got, &notes, &files);
        weft__hash_init(&wanted);
        weft__hash_bytes(&wanted, memory.images.data, memory.images.bytes);
        assert_true(weft__hash_equal(wanted, got));
        assert_null(files.images.data);
        assert_int_equal(files.images.shape[0], N - broken);
        assert_int_equal(files.bad_count, broken);
        if (broken) assert_string_equal(files.bad[0], memory.bad[0]);
        assert_memory_equal(files.labels.data, memory.labels.data, memory.labels.bytes);
        for (int i = 0; i < N - broken; i++) {
            const uint8_t *at = (const uint8_t *)memory.images.data + (size_t)i * PIXELS;
            assert_string_equal(files.files[i], memory.files[i]);
            for (int c = 0; c < C; c++) {
                uint64_t sum = 0, squares = 0;
                for (int k = 0; k < TO * TO; k++, at++) sum += *at, squares += (uint64_t)*at * *at;
                assert_true(sum == notes[i].sums[c] && squares == notes[i].squares[c]);
            }
        }
        weft__free(ctx, notes);
        weft_image_folder_free(ctx, &memory);
        weft_image_folder_free(ctx, &files);
    }
    write_image(4);
}

static void test_expectations(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    weft__image_note *notes;
    weft_hash hash;
    weft_batch batch;
    scan_folder(ctx, &hash, &notes, &f);
    weft_loader *loader = open_loader(ctx, &f, (weft_loader_options){.in_order = true});
    weft__loader_expect(loader, notes, false);
    for (uint64_t at = 0; at < 3; at++) assert_ok(weft_loader_get(loader, at, &batch));
    notes[6].hash ^= 1; /* as if the file had other pixels now; it is in batch 1 */
    assert_ok(weft_loader_get(loader, 2, &batch));
    assert_ok(weft_loader_get(loader, 0, &batch));
    assert_int_equal(weft_loader_get(loader, 4, &batch), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), f.files[6]));
    assert_non_null(strstr(weft_last_error(ctx), "the image has changed since it was read first"));
    notes[6].hash ^= 1;
    assert_ok(weft_loader_get(loader, 4, &batch));
    weft_loader_free(loader);
    weft__free(ctx, notes);
    weft_image_folder_free(ctx, &f);
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    read_folder(ctx, true, &f);
    const weft_loader_options good = {
        .batch = 2,
        .images = {.channels = C, .rows = TO, .columns = TO, .files = (const char *const *)f.files}};
    weft_loader *loader = NULL;
    for (int kind = 0; kind < 5; kind++) {
        weft_array x = f.images;
        weft_loader_options o = good;
        const char *missing[N] = {f.files[0]};
        if (kind == 0) x.dtype = WEFT_F32;
        if (kind == 1) x.data = missing;
        if (kind == 2) o.images.channels = 0;
        if (kind == 3) o.images.rows = TO + 1;
        if (kind == 4) o.images.files = missing;
        assert_int_equal(weft_loader_new(ctx, &x, &f.labels, &o, &loader), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(ctx), "images.files"));
        assert_null(loader);
    }
    weft_image_folder_free(ctx, &f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expectations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
