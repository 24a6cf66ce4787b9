/* Random changes of training images: their numbers are a function of seed, epoch and sample, and have the
 * distributions that they should; pixels and targets follow the numbers, on any device, with any number of
 * threads, from host memory or device memory. */
#include "data/image_augment.h"
#include "learn/loss.h"
#include "unit/nn_help.h"

enum { N = 7, C = 3, H = 12, W = 16, PIXELS = C * H * W, DRAWS = 4000 };

static uint8_t data[N * PIXELS];
static int32_t classes[N];

/* Smooth images, all different, with pixels from 20 to 235. */
static void make_images(weft_array *x, weft_array *y) {
    for (int i = 0; i < N * PIXELS; i++) {
        const int s = i / PIXELS, c = i / (H * W) % C, row = i / W % H, column = i % W;
        data[i] = (uint8_t)(20 + s * 7 + c * 31 + row * 5 + column * 3);
        classes[s] = s;
    }
    *x = (weft_array){.dtype = WEFT_U8, .rank = 2, .shape = {N, PIXELS}, .data = data};
    *y = (weft_array){.dtype = WEFT_I32, .rank = 1, .shape = {N}, .data = classes};
}

static weft_loader *open_loader(weft_context *ctx, weft_loader_options o) {
    weft_array x, y;
    weft_loader *loader = NULL;
    make_images(&x, &y);
    if (!o.batch) o.batch = 3;
    o.seed = 5;
    o.images.channels = C, o.images.rows = H, o.images.columns = W;
    assert_ok(weft_loader_new(ctx, &x, &y, &o, &loader));
    return loader;
}

static const weft_image_options everything = {.shift = 2,
                                              .flip = true,
                                              .crop = 0.3,
                                              .rotate = 20,
                                              .brightness = 0.3,
                                              .contrast = 0.3,
                                              .saturation = 0.5,
                                              .erase = 0.5,
                                              .mixup = 0.4,
                                              .cutmix = 1};

/* What a batch holds. */
typedef struct seen {
    float x[3 * PIXELS], share[3];
    int32_t y[3], other[3];
} seen;

static void look(weft_loader *loader, uint64_t position, seen *out) {
    weft_batch batch;
    memset(out, 0, sizeof *out);
    weft_scope *scope = weft_scope_open(loader->ctx);
    assert_ok(weft_loader_get(loader, position, &batch));
    assert_ok(weft_read(batch.x, out->x, sizeof out->x));
    assert_ok(weft_read(batch.y, out->y, sizeof out->y));
    if (batch.share) assert_ok(weft_read(batch.share, out->share, sizeof out->share));
    if (batch.other_y) assert_ok(weft_read(batch.other_y, out->other, sizeof out->other));
    weft_scope_close(scope);
}

/* ---- numbers ---- */

static void drawn(const weft_image_options *o, uint64_t sample, float *values, int32_t *places) {
    weft_image_options sized = *o;
    sized.channels = C, sized.rows = H, sized.columns = W;
    const int32_t still[WEFT__MOVES] = {0};
    weft__augment_draw(&sized, &(weft__draw_key){.seed = 9, .epoch = 2, .sample = sample}, still, values,
                       places);
}

static void assert_between(double value, double low, double high) {
    if (!(value >= low && value <= high)) fail_msg("%g is not between %g and %g", value, low, high);
}

/* A crop lies within the image, and its area is spread evenly from the least share on. */
static void test_crops(void **state) {
    (void)state;
    double area = 0, small = 0, middle = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        float v[WEFT__VALUES];
        int32_t places[WEFT__PLACES];
        drawn(&(weft_image_options){.crop = 0.25}, i, v, places);
        assert_true(v[WEFT__ROW_X] == 0 && v[WEFT__COLUMN_Y] == 0);
        const double height = (double)v[WEFT__ROW_Y], width = (double)v[WEFT__COLUMN_X];
        const double top = (double)v[WEFT__ROW] + 0.5 - height / 2,
                     left = (double)v[WEFT__COLUMN] + 0.5 - width / 2;
        assert_between(height, 0.25, 1), assert_between(width, 0.25, 1);
        assert_between(height * width, 0.249, 1), assert_between(width / height, 0.749, 1.334);
        assert_between(top, -1e-4, H * (1 - height) + 1e-4);
        assert_between(left, -1e-4, W * (1 - width) + 1e-4);
        area += height * width / DRAWS;
        small += (height * width < 0.4) / (double)DRAWS;
        middle += (height > 0.99 ? 0.5 : top < H * (1 - height) / 2) / (double)DRAWS;
    }
    assert_between(area, 0.57, 0.64); /* 0.625 less what the border cuts off wide and high crops */
    assert_between(small, 0.17, 0.24);
    assert_between(middle, 0.46, 0.54);
}

static void test_rotations(void **state) {
    (void)state;
    double sum = 0, least = 0, most = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        float v[WEFT__VALUES];
        int32_t places[WEFT__PLACES];
        drawn(&(weft_image_options){.rotate = 30}, i, v, places);
        const double angle = atan2((double)v[WEFT__ROW_X], (double)v[WEFT__ROW_Y]) * 180 / 3.14159265358979;
        /* the middle of the image stays where it is */
        assert_between((double)(v[WEFT__ROW] + 5.5F * v[WEFT__ROW_Y] + 7.5F * v[WEFT__ROW_X]), 5.4999,
                       5.5001);
        assert_between((double)(v[WEFT__COLUMN] + 5.5F * v[WEFT__COLUMN_Y] + 7.5F * v[WEFT__COLUMN_X]),
                       7.4999, 7.5001);
        sum += angle / DRAWS;
        least = fmin(least, angle), most = fmax(most, angle);
    }
    assert_between(sum, -1, 1);
    assert_between(least, -30.01, -29);
    assert_between(most, 29, 30.01);
}

/* Shares of Beta(a, a) are symmetric with the variance 1 / (8 a + 4); those of cutmix are the share of the
 * area that stays. */
static void test_shares(void **state) {
    (void)state;
    const double alphas[] = {0.2, 1};
    for (int k = 0; k < 4; k++) {
        const bool cuts = k >= 2;
        const double alpha = alphas[k % 2];
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            float v[WEFT__VALUES];
            int32_t p[WEFT__PLACES];
            drawn(cuts ? &(weft_image_options){.cutmix = alpha} : &(weft_image_options){.mixup = alpha}, i, v,
                  p);
            const int32_t *cut = p + WEFT__CUT;
            const int area = (cut[WEFT__BOTTOM] - cut[WEFT__TOP]) * (cut[WEFT__FAR] - cut[WEFT__LEFT]);
            assert_between(cut[WEFT__BOTTOM], cut[WEFT__TOP], H);
            assert_between(cut[WEFT__FAR], cut[WEFT__LEFT], W);
            assert_between((double)v[WEFT__SHARE], 0, 1);
            if (cuts)
                assert_between((double)v[WEFT__SHARE], 1 - area / 192.0 - 1e-6, 1 - area / 192.0 + 1e-6);
            if (!cuts) assert_true(v[WEFT__SHARE] == v[WEFT__BLEND] && area == 0);
            sum += (double)v[WEFT__SHARE] / DRAWS;
            squares += (double)(v[WEFT__SHARE] * v[WEFT__SHARE]) / DRAWS;
        }
        if (cuts)
            assert_between(sum, 0.5, 0.75); /* the border cuts off a part of the rectangle */
        else
            assert_between(sum, 0.47, 0.53),
                assert_between(squares - sum * sum, 0.9 / (8 * alpha + 4), 1.1 / (8 * alpha + 4));
    }
}

static void test_erased(void **state) {
    (void)state;
    int erased = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        float v[WEFT__VALUES];
        int32_t p[WEFT__PLACES];
        drawn(&(weft_image_options){.erase = 0.25}, i, v, p);
        const int area = (p[WEFT__BOTTOM] - p[WEFT__TOP]) * (p[WEFT__FAR] - p[WEFT__LEFT]);
        assert_true(p[WEFT__TOP] >= 0 && p[WEFT__BOTTOM] <= H && p[WEFT__LEFT] >= 0 && p[WEFT__FAR] <= W);
        assert_between(area / 192.0, 0, 0.45); /* 0.33, before it is rounded to whole pixels */
        erased += area > 0;
    }
    assert_between(erased / (double)DRAWS, 0.22, 0.28);
}

/* ---- pixels ---- */

/* The same bits from host memory and device memory, with one thread and with three, forwards and backwards.
 */
static void test_same_bits(void **state) {
    weft_context *one = *state, *three = NULL;
    static seen first[9], again;
    assert_ok(test_open(&(weft_open_options){.seed = 11, .threads = 3}, &three));
    weft_loader *a = open_loader(one, (weft_loader_options){.images = everything});
    weft_loader *b = open_loader(one, (weft_loader_options){.images = everything, .device_bytes = -1});
    weft_loader *c = open_loader(three, (weft_loader_options){.images = everything});
    int differs = 0;
    for (uint64_t at = 0; at < 9; at++) look(a, at, &first[at]);
    for (uint64_t at = 9; at-- > 0;) {
        look(a, at, &again);
        assert_memory_equal(&first[at], &again, sizeof again);
        look(b, at, &again);
        assert_memory_equal(&first[at], &again, sizeof again);
        look(c, at, &again);
        assert_memory_equal(&first[at], &again, sizeof again);
        differs += memcmp(first[at % 3].share, again.share, sizeof again.share) != 0;
    }
    assert_true(differs >= 5); /* each epoch draws anew */
    weft_loader_free(a);
    weft_loader_free(b);
    weft_loader_free(c);
    weft_close(three);
}

/* All changes at once on another device give what they give on the CPU. So the tests of single changes
 * compute their wanted values on the CPU alone: each change would be kernels of its own. */
static void test_as_on_cpu(void **state) {
    weft_context *cpu = NULL;
    static seen here, there;
    if (test_on_cpu()) skip();
    assert_ok(weft_open(&(weft_open_options){.seed = 11, .device = "cpu"}, &cpu));
    weft_loader *a = open_loader(*state, (weft_loader_options){.images = everything});
    weft_loader *b = open_loader(cpu, (weft_loader_options){.images = everything});
    for (uint64_t at = 0; at < 9; at++) {
        look(a, at, &here);
        look(b, at, &there);
        for (int i = 0; i < 3 * PIXELS; i++)
            assert_between((double)here.x[i], (double)there.x[i] - 0.02, (double)there.x[i] + 0.02);
        assert_memory_equal(here.y, there.y, sizeof here.y);
        assert_memory_equal(here.other, there.other, sizeof here.other);
        for (int i = 0; i < 3; i++)
            assert_between((double)here.share[i], (double)there.share[i] - 1e-6,
                           (double)there.share[i] + 1e-6);
    }
    weft_loader_free(a);
    weft_loader_free(b);
    weft_close(cpu);
}

/* The pixel of an image at a place between pixels; 0 outside. */
static double between(const uint8_t *plane, double row, double column) {
    double sum = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            sum += fmax(0, 1 - fabs(row - y)) * fmax(0, 1 - fabs(column - x)) * plane[y * W + x];
    return sum;
}

static void test_warped(void **state) {
    weft_context *ctx = *state;
    static seen got;
    if (!test_on_cpu()) skip(); /* see test_as_on_cpu */
    weft_image_options o = {.shift = 2, .flip = true, .crop = 0.4, .rotate = 25};
    weft_loader *loader = open_loader(ctx, (weft_loader_options){.images = o});
    for (uint64_t at = 0; at < 4; at++) {
        look(loader, at, &got);
        for (int b = 0; b < 3; b++) {
            const float *v = loader->augment->values_host + b * WEFT__VALUES;
            for (int i = 0; i < PIXELS; i++) {
                const double y = i / W % H, x = i % W;
                const double row = (double)v[WEFT__ROW] + (double)v[WEFT__ROW_Y] * y +
                                   (double)v[WEFT__ROW_X] * x,
                             column = (double)v[WEFT__COLUMN] + (double)v[WEFT__COLUMN_Y] * y +
                                      (double)v[WEFT__COLUMN_X] * x;
                const double wanted = between(data + (got.y[b] * C + i / (H * W)) * H * W, row, column);
                assert_between((double)got.x[b * PIXELS + i], wanted - 0.02, wanted + 0.02);
            }
        }
    }
    weft_loader_free(loader);
    /* without a rotation and with the whole area, a shift and a flip are what they are without a crop */
    weft_image_options plain = {.shift = 2, .flip = true},
                       warped = {.shift = 2, .flip = true, .rotate = 1e-12};
    weft_loader *a = open_loader(ctx, (weft_loader_options){.images = plain}),
                *b = open_loader(ctx, (weft_loader_options){.images = warped});
    for (uint64_t at = 0; at < 6; at++) {
        static seen same;
        look(a, at, &got);
        look(b, at, &same);
        for (int i = 0; i < 3 * PIXELS; i++)
            assert_between((double)same.x[i], (double)got.x[i] - 0.01, (double)got.x[i] + 0.01);
    }
    weft_loader_free(a);
    weft_loader_free(b);
}

static double luma_of(const float *x, int i) {
    return 0.299 * (double)x[i] + 0.587 * (double)x[H * W + i] + 0.114 * (double)x[2 * H * W + i];
}

static void test_colours(void **state) {
    weft_context *ctx = *state;
    static seen got;
    if (!test_on_cpu()) skip(); /* see test_as_on_cpu */
    for (int kind = 0; kind < 3; kind++) {
        weft_image_options o = {.brightness = kind == 0 ? 0.1 : 0,
                                .contrast = kind == 1 ? 0.3 : 0,
                                .saturation = kind == 2 ? 0.4 : 0};
        weft_loader *loader = open_loader(ctx, (weft_loader_options){.images = o});
        look(loader, 1, &got);
        for (int b = 0; b < 3; b++) {
            const float *v = loader->augment->values_host + b * WEFT__VALUES;
            const double f = (double)v[WEFT__BRIGHTNESS + kind], most[] = {0.1, 0.3, 0.4};
            static float own[PIXELS];
            double mean = 0;
            assert_between(fabs(f - 1), 1e-4, most[kind]);
            for (int i = 0; i < PIXELS; i++) own[i] = data[got.y[b] * PIXELS + i];
            for (int i = 0; i < H * W; i++) mean += luma_of(own, i) / (H * W);
            for (int i = 0; i < PIXELS; i++) {
                const double from = kind == 0 ? 0 : kind == 1 ? mean : luma_of(own, i % (H * W));
                const double wanted = fmin(255, from + ((double)own[i] - from) * f);
                assert_between((double)got.x[b * PIXELS + i], wanted - 0.01, wanted + 0.01);
            }
        }
        weft_loader_free(loader);
    }
}

/* Erased pixels are 0 after scaling. Mixed images and targets come from the partner, which is never padding.
 */
static void test_mixed(void **state) {
    weft_context *ctx = *state;
    static seen got;
    int cut = 0, blended = 0, erased = 0;
    if (!test_on_cpu()) skip(); /* see test_as_on_cpu */
    weft_loader *loader = open_loader(
        ctx, (weft_loader_options){.scale = 0.5, .images = {.erase = 0.5, .mixup = 1, .cutmix = 1}});
    for (uint64_t at = 0; at < 12; at++) {
        look(loader, at, &got);
        const int real = at % 3 == 2 ? 1 : 3; /* 7 samples: the last batch has one */
        for (int b = 0; b < real; b++) {
            const int32_t *places = loader->augment->places_host + b * WEFT__PLACES;
            const float *v = loader->augment->values_host + b * WEFT__VALUES;
            const int partner = places[WEFT__PARTNER];
            assert_between(partner, 0, real - 1);
            if (real > 1) assert_int_not_equal(partner, b);
            assert_int_equal(got.other[b], got.y[partner]);
            assert_true(got.share[b] == v[WEFT__SHARE]);
            int inside = 0;
            for (int i = 0; i < PIXELS; i++) {
                const int y = i / W % H, x = i % W;
                double pixels[2];
                for (int k = 0; k < 2; k++) {
                    const int32_t *p = loader->augment->places_host + (k ? partner : b) * WEFT__PLACES;
                    const bool gone =
                        y >= p[WEFT__TOP] && y < p[WEFT__BOTTOM] && x >= p[WEFT__LEFT] && x < p[WEFT__FAR];
                    pixels[k] = gone ? 0 : 0.5 * data[got.y[k ? partner : b] * PIXELS + i];
                    erased += gone;
                }
                const int32_t *r = places + WEFT__CUT;
                const bool within =
                    y >= r[WEFT__TOP] && y < r[WEFT__BOTTOM] && x >= r[WEFT__LEFT] && x < r[WEFT__FAR];
                inside += within;
                const double own = within ? 0 : (double)v[WEFT__BLEND],
                             wanted = own * pixels[0] + (1 - own) * pixels[1];
                assert_between((double)got.x[b * PIXELS + i], wanted - 1e-3, wanted + 1e-3);
            }
            cut += inside > 0;
            blended += v[WEFT__BLEND] < 1;
            if (inside > 0)
                assert_between((double)got.share[b], 1 - inside / (double)PIXELS - 1e-5,
                               1 - inside / (double)PIXELS + 1e-5);
        }
    }
    assert_true(cut > 3 && blended > 3 && erased > 100);
    weft_loader_free(loader);
}

/* The loss of a mixed batch is the blend of two losses, for each kind of loss, with weights and padding. */
static void test_mixed_loss(void **state) {
    weft_context *ctx = *state;
    double x[4 * C];
    fill(x, 4 * C, 3);
    const int32_t own[4] = {0, 2, 1, 2}, other[4] = {1, 2, 0, 1};
    const float share[4] = {0.25F, 0.5F, 1, 0.875F}, mask[4] = {1, 1, 1, 0}, weights[3] = {1, 2, 0.5F};
    weft_tensor *logits = weft_cast(wide_from(ctx, SHAPE(4, C), x), WEFT_F32);
    weft_batch batch = {.y = weft_from(ctx, WEFT_I32, SHAPE(4), own),
                        .other_y = weft_from(ctx, WEFT_I32, SHAPE(4), other),
                        .share = weft_from(ctx, WEFT_F32, SHAPE(4), share)};
    for (int kind = test_on_cpu() ? 0 : 3; kind < 4; kind++) {
        weft__loss loss = {.kind = WEFT_LOSS_CROSS_ENTROPY};
        if (kind & 1) loss.weights = weft_from(ctx, WEFT_F32, SHAPE(3), weights);
        batch.mask = kind & 2 ? weft_from(ctx, WEFT_F32, SHAPE(4), mask) : NULL;
        const int real = kind & 2 ? 3 : 4;
        double sum = 0, got;
        for (int b = 0; b < real; b++) {
            double all = 0;
            for (int c = 0; c < C; c++) all += exp(x[b * C + c]);
            for (int k = 0; k < 2; k++) {
                const int target = k ? other[b] : own[b];
                const double part =
                    (k ? 1 - (double)share[b] : (double)share[b]) * (kind & 1 ? (double)weights[target] : 1);
                sum += part * (log(all) - x[b * C + target]);
            }
        }
        got = weft_item(weft__loss_mean(&loss, logits, &batch));
        assert_close(&got, &(double){sum / real}, 1, 1e-5);
    }
    batch.mask = NULL;
    const double got = weft_item(weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, logits, &batch));
    weft_batch plain = {.y = batch.y};
    assert_true(fabs(got - weft_item(weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, logits, &plain))) > 1e-3);
}

/* A loader in order changes nothing: evaluation sees the images as they are. */
static void test_in_order(void **state) {
    weft_context *ctx = *state;
    static seen got;
    weft_loader *loader = open_loader(ctx, (weft_loader_options){.in_order = true, .images = everything});
    weft_batch batch;
    look(loader, 1, &got);
    for (int i = 0; i < 3 * PIXELS; i++) assert_true(got.x[i] == (float)data[3 * PIXELS + i]);
    assert_ok(weft_loader_get(loader, 0, &batch));
    assert_null(batch.other_y);
    assert_null(batch.share);
    weft_loader_free(loader);
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_array x, y;
    make_images(&x, &y);
    const struct {
        weft_image_options o;
        const char *says;
    } bad[] = {{{.crop = 1.5}, "images.crop is 1.5; 0 to 1"},
               {{.rotate = -1}, "images.rotate"},
               {{.brightness = NAN}, "images.brightness"},
               {{.contrast = 2}, "images.contrast"},
               {{.saturation = -0.1}, "images.saturation"},
               {{.erase = 1.01}, "images.erase"},
               {{.mixup = 1.1}, "images.mixup"},
               {{.cutmix = -1}, "images.cutmix"},
               {{.mixup = 0.2}, "need targets"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        weft_loader *loader = NULL;
        weft_loader_options o = {.batch = 2, .images = bad[i].o};
        o.images.channels = C, o.images.rows = H, o.images.columns = W;
        assert_int_equal(weft_loader_new(ctx, &x, i + 1 < COUNT(bad) ? &y : NULL, &o, &loader),
                         WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(ctx), bad[i].says));
        assert_null(loader);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crops),
        cmocka_unit_test(test_rotations),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_erased),
        cmocka_unit_test_setup_teardown(test_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_as_on_cpu, setup, teardown),
        cmocka_unit_test_setup_teardown(test_warped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_colours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mixed_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
