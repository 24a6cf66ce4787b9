/* Images in a loader: random shifts and mirroring (a function of seed, epoch and sample, the same from host
 * memory and from device memory), scaling, refusals, and the files of CIFAR-10. */
#define _DEFAULT_SOURCE
#include <unistd.h>
#include "data/parse.h"
#include "unit/nn_help.h"
#include <weft/loader.h>

enum { N = 5, C = 2, H = 4, W = 5, PIXELS = C * H * W };

static uint8_t pixel(int sample, int c, int row, int column) {
    return (uint8_t)(1 + sample * PIXELS + (c * H + row) * W + column);
}

static weft_array images(uint8_t *data) {
    for (int s = 0; s < N; s++)
        for (int i = 0; i < PIXELS; i++) data[s * PIXELS + i] = pixel(s, i / (H * W), i / W % H, i % W);
    return (weft_array){.dtype = WEFT_U8, .rank = 2, .shape = {N, PIXELS}, .data = data};
}

/* Finds the shift and mirroring that made this image, and returns them as one number. Fails if none fits. */
static int recognise(const float *got, int sample, int most) {
    for (int code = 0; code < 2 * 9 * 9; code++) {
        const int down = code % 9 - 4, right = code / 9 % 9 - 4, mirrored = code / 81;
        bool same = abs(down) <= most && abs(right) <= most;
        for (int i = 0; i < PIXELS && same; i++) {
            const int c = i / (H * W), row = i / W % H + down, from = mirrored ? W - 1 - i % W : i % W;
            const int column = from + right;
            const bool inside = row >= 0 && row < H && column >= 0 && column < W;
            same = got[i] == (float)(inside ? pixel(sample, c, row, column) : 0);
        }
        if (same) return code;
    }
    fail_msg("sample %d is moved in no known way", sample);
    return -1;
}

static weft_loader *open_loader(weft_context *ctx, weft_array *x, weft_loader_options options) {
    weft_loader *loader = NULL;
    options.batch = options.batch ? options.batch : 2;
    options.images.channels = C, options.images.rows = H, options.images.columns = W;
    assert_ok(weft_loader_new(ctx, x, NULL, &options, &loader));
    return loader;
}

static void get(weft_loader *loader, uint64_t position, float *out, size_t bytes) {
    weft_batch batch;
    assert_ok(weft_loader_get(loader, position, &batch));
    assert_int_equal(weft_rank(batch.x), 2);
    assert_ok(weft_read(batch.x, out, bytes));
}

static void test_moves(void **state) {
    weft_context *ctx = *state;
    uint8_t data[N * PIXELS];
    weft_array x = images(data);
    const weft_loader_options options = {.seed = 7, .images = {.shift = 2, .flip = true}};
    weft_loader_options host = options;
    host.device_bytes = -1;
    weft_loader *loaders[2] = {open_loader(ctx, &x, options), open_loader(ctx, &x, host)};
    int seen[4][N], mirrored = 0, moved = 0, differs = 0;
    for (uint64_t at = 12;
         at-- > 0;) { /* four epochs, backwards: a batch does not depend on earlier batches */
        float a[2 * PIXELS], b[2 * PIXELS];
        get(loaders[0], at, a, sizeof a);
        get(loaders[1], at, b, sizeof b);
        assert_memory_equal(a, b, sizeof a);
        for (int i = 0; i < (at % 3 < 2 ? 2 : 1); i++) {
            float darkest = 255;
            for (int k = 0; k < PIXELS; k++)
                if (a[i * PIXELS + k] > 0 && a[i * PIXELS + k] < darkest) darkest = a[i * PIXELS + k];
            const int sample = ((int)darkest - 1) / PIXELS,
                      code = recognise(a + (size_t)i * PIXELS, sample, 2);
            seen[at / 3][sample] = code;
            mirrored += code / 81;
            moved += code % 81 != 40;
        }
    }
    for (int s = 0; s < N; s++) differs += seen[0][s] != seen[1][s];
    assert_true(mirrored > 3 && mirrored < 17);
    assert_true(moved > 10);
    assert_true(differs > 0);
    weft_loader_free(loaders[0]);
    weft_loader_free(loaders[1]);
}

/* A batch of all samples keeps their order and is augmented like single samples. With in_order nothing is
 * augmented. */
static void test_whole(void **state) {
    weft_context *ctx = *state;
    uint8_t data[N * PIXELS];
    weft_array x = images(data);
    const weft_image_options moves = {.shift = 1};
    weft_loader *whole = open_loader(ctx, &x, (weft_loader_options){.seed = 7, .batch = N, .images = moves});
    weft_loader *ordered = open_loader(ctx, &x, (weft_loader_options){.in_order = true, .images = moves});
    float all[N * PIXELS], two[2 * PIXELS];
    get(whole, 1, all, sizeof all);
    for (int s = 0; s < N; s++) recognise(all + (size_t)s * PIXELS, s, 1);
    get(ordered, 0, two, sizeof two);
    for (int s = 0; s < 2; s++) assert_int_equal(recognise(two + (size_t)s * PIXELS, s, 0), 40);
    weft_loader_free(whole);
    weft_loader_free(ordered);
}

static void test_scaled(void **state) {
    weft_context *ctx = *state;
    uint8_t data[N * PIXELS];
    weft_array x = images(data);
    const float mean[C] = {0.25F, 0.5F}, deviation[C] = {0.5F, 2};
    weft_loader *loader =
        open_loader(ctx, &x,
                    (weft_loader_options){
                        .in_order = true, .scale = 0.5, .images = {.mean = mean, .deviation = deviation}});
    float two[2 * PIXELS];
    get(loader, 1, two, sizeof two);
    for (int i = 0; i < 2 * PIXELS; i++) {
        const int c = i % PIXELS / (H * W);
        assert_true(two[i] == ((float)data[2 * PIXELS + i] * 0.5F - mean[c]) / deviation[c]);
    }
    weft_loader_free(loader);
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    uint8_t data[N * PIXELS];
    weft_array x = images(data);
    const float mean[C] = {0, 0};
    const weft_image_options bad[] = {{.channels = C, .rows = H, .columns = W + 1},
                                      {.channels = -1, .rows = H, .columns = W},
                                      {.channels = C, .rows = H, .columns = W, .shift = H},
                                      {.channels = C, .rows = H, .columns = W, .shift = -1},
                                      {.channels = C, .rows = H, .columns = W, .mean = mean}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        weft_loader *loader = NULL;
        assert_int_not_equal(
            weft_loader_new(ctx, &x, NULL, &(weft_loader_options){.batch = 2, .images = bad[i]}, &loader),
            WEFT_OK);
        assert_null(loader);
    }
}

/* A loader of a file also reads its labels. */
static void open_file(weft_context *ctx, const uint8_t *bytes, size_t size) {
    char path[] = "/tmp/weft-batch-XXXXXX.bin";
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0);
    weft_loader *loader = NULL;
    weft_batch batch;
    const weft_status status = weft_loader_open(
        ctx, path, NULL, &(weft_loader_options){.batch = 2, .in_order = true, .classes = 10}, &loader);
    unlink(path);
    assert_ok(status);
    assert_ok(weft_loader_get(loader, 0, &batch));
    uint8_t classes[2];
    assert_ok(weft_read(batch.y, classes, sizeof classes));
    assert_int_equal(classes[0], 9);
    assert_int_equal(classes[1], 3);
    assert_int_equal(weft_rank(batch.x), 4);
    weft_loader_free(loader);
}

static void test_cifar10(void **state) {
    weft_context *ctx = *state;
    enum { RECORD = 3073 };
    static uint8_t file[2 * RECORD + 1];
    weft_array x, y;
    for (int i = 0; i < 2 * RECORD; i++) file[i] = (uint8_t)i;
    file[0] = 9, file[RECORD] = 3;
    open_file(ctx, file, 2 * (size_t)RECORD);
    assert_ok(weft__parse_cifar10(ctx, file, 2 * (size_t)RECORD, "batch", &x, &y));
    assert_int_equal(x.shape[0], 2);
    assert_int_equal(x.shape[1], 3);
    assert_memory_equal(x.data, file + 1, RECORD - 1);
    assert_memory_equal((const uint8_t *)x.data + RECORD - 1, file + RECORD + 1, RECORD - 1);
    assert_int_equal(((const uint8_t *)y.data)[1], 3);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    const size_t sizes[] = {0, 1, RECORD - 1, 2 * RECORD - 7, 2 * RECORD + 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char text[32];
        assert_int_equal(weft__parse_cifar10(ctx, file, sizes[i], "batch", &x, &y), WEFT_ERR_FORMAT);
        snprintf(text, sizeof text, "batch: byte %zu:", sizes[i]);
        assert_non_null(strstr(weft_last_error(ctx), text));
        assert_null(x.data);
    }
    file[RECORD] = 10;
    assert_int_equal(weft__parse_cifar10(ctx, file, 2 * (size_t)RECORD, "batch", &x, &y), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "byte 3073: record 1 has the label 10"));
    assert_int_equal(weft_read_cifar10(ctx, "/nonexistent", &x, &y), WEFT_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scaled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cifar10, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
