/* Loaders whose inputs stay in tar files: the batches have the bits of those from a folder in memory, also of
 * images that the caller picked; names of members; tar files that change, and options that are refused. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/nn_help.h"
#include <weft/loader.h>

enum { N = 11, ROWS = 9, COLUMNS = 7, C = 3, TO = 6, PIXELS = C * TO * TO, BATCH = 4 };

static char root[64];
static bool absent; /* Weft was built without libarchive */

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void shell(const char *line) {
    char command[512];
    snprintf(command, sizeof command, "cd %s && %s", root, line);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the line is this test's own */
}

static void read_set(weft_context *ctx, const char *name, bool in_files, weft_image_folder *f) {
    const weft_image_folder_options o = {
        .channels = C, .rows = TO, .columns = TO, .with_classes = true, .in_files = in_files};
    assert_ok(weft_read_image_folder(ctx, path_of(name), &o, f));
}

static int make_files(void **state) {
    (void)state;
    strcpy(root, "/tmp/weft-shards-XXXXXX");
    assert_non_null(mkdtemp(root));
    shell("mkdir -p set/0 set/1 tars");
    for (int i = 0; i < N; i++) {
        uint8_t pixels[ROWS * COLUMNS * C];
        char name[32];
        png_image image = {
            .version = PNG_IMAGE_VERSION, .width = COLUMNS, .height = ROWS, .format = PNG_FORMAT_RGB};
        for (int k = 0; k < ROWS * COLUMNS * C; k++) pixels[k] = (uint8_t)(i * 23 + k * 3);
        snprintf(name, sizeof name, "set/%d/%02d.png", i % 2, i);
        assert_true(png_image_write_to_file(&image, path_of(name), 0, pixels, 0, NULL));
    }
    shell("tar cf tars/a.tar set/0/00.png set/0/02.png set/1/0[1-5].png && "
          "tar cf tars/b.tar set/0/0[4-9].png set/0/10.png set/1/0[6-9].png && tar cf one.tar set");
    weft_image_folder f;
    const weft_image_folder_options o = {.in_files = true};
    const weft_status status = weft_read_image_folder(NULL, path_of("one.tar"), &o, &f);
    absent = status != WEFT_OK && strstr(weft_last_error(NULL), "built without libarchive");
    if (absent) return 0;
    assert_int_equal(status, WEFT_OK);
    weft_image_folder_free(NULL, &f);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command); /* NOLINT(cert-env33-c): the path is this test's own */
}

static weft_loader_options options_of(const weft_image_folder *f) {
    weft_loader_options o = {.batch = BATCH, .seed = 3, .classes = 2};
    o.images = (weft_image_options){.channels = C, .rows = TO, .columns = TO, .shift = 1, .flip = true};
    o.images.members = f->members;
    o.images.shards = f->shards;
    return o;
}

static void expect_same(weft_context *ctx, weft_loader *a, weft_loader *b) {
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
}

static void test_same_bits(void **state) {
    weft_context *ctx = *state;
    weft_image_folder folder, tars, memory;
    if (absent) skip();
    read_set(ctx, "set", false, &folder);
    assert_null(folder.shards);
    static const char *const names[] = {"one.tar", "tars", "tars/?.tar"};
    for (size_t i = 0; i < COUNT(names); i++) {
        read_set(ctx, names[i], true, &tars);
        read_set(ctx, names[i], false, &memory);
        assert_null(tars.images.data);
        assert_null(tars.files);
        assert_int_equal(tars.class_count, 2);
        assert_string_equal(tars.classes[1], "1");
        assert_memory_equal(memory.images.data, folder.images.data, folder.images.bytes);
        assert_memory_equal(memory.labels.data, folder.labels.data, folder.labels.bytes);
        const weft_loader_options a_options = options_of(&folder), b_options = options_of(&tars);
        weft_loader *a, *b;
        assert_ok(weft_loader_new(ctx, &folder.images, &folder.labels, &a_options, &a));
        assert_ok(weft_loader_new(ctx, &tars.images, &tars.labels, &b_options, &b));
        assert_false(weft_loader_on_device(b));
        expect_same(ctx, a, b);
        weft_loader_free(a);
        weft_loader_free(b);
        weft_image_folder_free(ctx, &tars);
        weft_image_folder_free(ctx, &memory);
    }
    weft_image_folder_free(ctx, &folder);
}

/* The caller may pick images: every second one, from the last on. */
static void test_picked(void **state) {
    weft_context *ctx = *state;
    weft_image_folder folder, tars;
    if (absent) skip();
    read_set(ctx, "set", false, &folder);
    read_set(ctx, "tars", true, &tars);
    const size_t count = N / 2, bytes = PIXELS;
    for (size_t i = 0; i < count; i++) {
        const size_t from = N - 1 - 2 * i;
        if (from < i) break;
        weft_image_member member = tars.members[from];
        uint8_t pixels[PIXELS];
        tars.members[from] = tars.members[i];
        tars.members[i] = member;
        memcpy(pixels, (uint8_t *)folder.images.data + from * bytes, bytes);
        memcpy((uint8_t *)folder.images.data + from * bytes, (uint8_t *)folder.images.data + i * bytes,
               bytes);
        memcpy((uint8_t *)folder.images.data + i * bytes, pixels, bytes);
    }
    folder.images.shape[0] = tars.images.shape[0] = folder.labels.shape[0] = (int64_t)count;
    folder.images.bytes = tars.images.bytes = folder.labels.bytes = 0;
    const weft_loader_options a_options = options_of(&folder), b_options = options_of(&tars);
    weft_loader *a, *b;
    assert_ok(weft_loader_new(ctx, &folder.images, &folder.labels, &a_options, &a));
    assert_ok(weft_loader_new(ctx, &tars.images, &folder.labels, &b_options, &b));
    expect_same(ctx, a, b);
    weft_loader_free(a);
    weft_loader_free(b);
    weft_image_folder_free(ctx, &folder);
    weft_image_folder_free(ctx, &tars);
}

static void test_names(void **state) {
    weft_context *ctx = *state;
    static const char *const names[] = {"a.tar/set/0/00.png", "a.tar/set/0/02.png", "b.tar/set/0/04.png"};
    weft_image_folder f;
    weft_bytes name;
    if (absent) skip();
    read_set(ctx, "tars", true, &f);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_ok(weft_image_member_name(ctx, f.shards, &f.members[i], &name));
        assert_non_null(strstr((const char *)name.data, names[i]));
        assert_int_equal(strlen((const char *)name.data), name.size);
        weft_bytes_free(ctx, &name);
    }
    weft_image_member wrong = f.members[0];
    wrong.shard = 2;
    assert_int_equal(weft_image_member_name(ctx, f.shards, &wrong, &name), WEFT_ERR_ARGUMENT);
    assert_null(name.data);
    wrong = f.members[0];
    wrong.header = UINT64_MAX - 100;
    assert_int_equal(weft_image_member_name(ctx, f.shards, &wrong, &name), WEFT_ERR_ARGUMENT);
    weft_image_folder_free(ctx, &f);
}

static void test_changed(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    weft_batch batch;
    weft_loader *loader;
    weft_bytes name;
    if (absent) skip();
    shell("cp one.tar later.tar");
    read_set(ctx, "later.tar", true, &f);
    weft_loader_options o = options_of(&f);
    assert_ok(weft_loader_new(ctx, &f.images, &f.labels, &o, &loader));
    assert_ok(weft_loader_get(loader, 0, &batch));
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path_of("later.tar"), old, 0), 0);
    assert_int_equal(weft_loader_get(loader, 4, &batch), WEFT_ERR_FORMAT);
    assert_non_null(
        strstr(weft_last_error(ctx), "later.tar: the tar file has changed since its members were"));
    assert_int_equal(weft_image_member_name(ctx, f.shards, &f.members[0], &name), WEFT_ERR_FORMAT);
    weft_loader_free(loader);
    weft_image_folder_free(ctx, &f);
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_image_folder f;
    const char *files[N] = {"x"};
    if (absent) skip();
    read_set(ctx, "one.tar", true, &f);
    for (int kind = 0; kind < 4; kind++) {
        weft_loader_options o = options_of(&f);
        weft_loader *loader = NULL;
        weft_image_member damaged[N];
        weft_batch batch;
        memcpy(damaged, f.members, sizeof damaged);
        if (kind == 0) o.images.shards = NULL;
        if (kind == 1) o.images.files = files;
        if (kind == 2) o.images.rows++;
        if (kind == 3) o.images.members = damaged;
        for (int i = 0; i < N; i++) damaged[i].header = (uint64_t)1 << 40;
        const weft_status status = weft_loader_new(ctx, &f.images, &f.labels, &o, &loader);
        if (kind == 3) assert_int_equal(weft_loader_get(loader, 0, &batch), WEFT_ERR_ARGUMENT);
        assert_int_equal(status, kind == 3 ? WEFT_OK : WEFT_ERR_ARGUMENT);
        weft_loader_free(loader);
    }
    weft_image_folder_free(ctx, &f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_picked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
