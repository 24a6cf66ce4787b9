/* Writes pictures.json: images of the data, made smaller, as PNG in base64. Must not know: which samples are
 * the worst mistakes (scores.c), HTML. Read next: report_scores.c, which shows them. */
#include <string.h>

#include <png.h>

#include "train/report/pictures.h"
#include "io/sealed.h"

enum {
    SIDE = 64, /* pixels of the longer side at most: about 10 kB for a photo */
    CLASSES_WITH_EXAMPLES = 20,
    EXAMPLES = 3, /* of a class */
    PNG_BYTES = 3 * SIDE * SIDE + 1024
};

/* Room for one picture on its way. */
typedef struct canvas {
    uint8_t pixels[3 * SIDE * SIDE], png[PNG_BYTES];
    char text[(PNG_BYTES + 2) / 3 * 4];
    uint8_t *decoded; /* the pixels of an image that stays in its file; or NULL */
} canvas;

/* ---- one picture ---- */

static size_t to_base64(const uint8_t *bytes, size_t count, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = 0;
    for (size_t i = 0; i < count; i += 3) {
        const size_t here = count - i < 3 ? count - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++) bits = bits << 8 | (j < here ? bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++) out[length++] = j > here ? '=' : digits[bits >> (18 - 6 * j) & 63];
    }
    return length;
}

/* Returns the mean of a block of pixels of one channel. Blocks at the edges are smaller. */
static uint8_t block_mean(const uint8_t *plane, int64_t rows, int64_t columns, int64_t row, int64_t column,
                          int64_t side) {
    int64_t sum = 0, count = 0;
    for (int64_t r = row; r < row + side && r < rows; r++)
        for (int64_t c = column; c < column + side && c < columns; c++, count++)
            sum += plane[r * columns + c];
    return (uint8_t)((sum + count / 2) / count);
}

/* Makes the JSON string of a sample: red, green and blue, or the first channel as grey. */
static weft_status picture(const weft__dataset *d, weft__split split, int64_t sample, canvas *work,
                           json_t **out) {
    const int64_t channels = d->sample[0], rows = d->sample[1], columns = d->sample[2],
                  shown = channels < 3 ? 1 : 3;
    const int64_t longer = rows > columns ? rows : columns, side = (longer + SIDE - 1) / SIDE;
    const uint8_t *planes;
    WEFT_TRY(weft__dataset_pixels(d, split, sample, &work->decoded, &planes));
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)((columns + side - 1) / side),
                       .height = (png_uint_32)((rows + side - 1) / side),
                       .format = shown == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    png_alloc_size_t bytes = sizeof work->png;
    uint8_t *to = work->pixels;
    for (int64_t r = 0; r < rows; r += side)
        for (int64_t c = 0; c < columns; c += side)
            for (int64_t k = 0; k < shown; k++)
                *to++ = block_mean(planes + k * rows * columns, rows, columns, r, c, side);
    if (!png_image_write_to_memory(&image, work->png, &bytes, 0, work->pixels, 0, NULL))
        return weft__fail_oom(NULL, sizeof work->png, "a picture for the report");
    *out = json_stringn(work->text, to_base64(work->png, (size_t)bytes, work->text));
    return WEFT_OK;
}

/* ---- which ones ---- */

static weft_status put_mistakes(const weft__dataset *d, weft__split split, const weft__scores *s,
                                canvas *work, json_t *list) {
    char actual[24], predicted[24];
    for (int i = 0; i < s->mistake_count; i++) {
        const weft__mistake *m = &s->mistakes[i];
        json_t *png;
        WEFT_TRY(picture(d, split, m->sample, work, &png));
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:o}", "class",
                                              weft__class_name(d, m->actual, actual), "predicted",
                                              weft__class_name(d, m->predicted, predicted), "probability",
                                              m->probability, "png", png));
    }
    return WEFT_OK;
}

/* Puts the first training images of each of the first classes. */
static weft_status put_examples(const weft__dataset *d, canvas *work, json_t *list) {
    const int32_t *labels = d->y[WEFT__TRAIN].data;
    char name[24];
    for (int64_t class = 0; class < d->outputs && class < CLASSES_WITH_EXAMPLES; class ++) {
        json_t *pngs = json_array();
        for (int64_t i = 0, found = 0; i < d->x[WEFT__TRAIN].shape[0] && found < EXAMPLES; i++) {
            json_t *png;
            if (labels[i] != class) continue;
            WEFT_TRY(picture(d, WEFT__TRAIN, i, work, &png));
            json_array_append_new(pngs, png);
            found++;
        }
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "class", weft__class_name(d, class, name), "pngs", pngs));
    }
    return WEFT_OK;
}

static bool shows(const weft__dataset *d) {
    return d->task == WEFT__TASK_CLASSIFICATION && d->sample[0] > 0 && d->x[WEFT__TRAIN].dtype == WEFT_U8 &&
           d->y[WEFT__TRAIN].dtype == WEFT_I32;
}

weft_status weft__pictures_write(const char *dir, const weft__dataset *dataset, weft__split split,
                                 const weft__scores *scores) {
    weft__json json;
    if (!shows(dataset)) return WEFT_OK;
    canvas *work = weft__alloc(NULL, sizeof *work);
    if (!work) return weft__fail_oom(NULL, sizeof *work, "the pictures of the report");
    work->decoded = NULL;
    weft__json_build(&json, NULL);
    json_t *mistakes = json_array(), *examples = json_array();
    weft_status status = put_mistakes(dataset, split, scores, work, mistakes);
    if (status == WEFT_OK) status = put_examples(dataset, work, examples);
    weft__free(NULL, work->decoded);
    weft__free(NULL, work);
    if (status != WEFT_OK) {
        weft__json_close(&json);
        return status;
    }
    json_t *all = json_pack("{s:o, s:o}", "mistakes", mistakes, "examples", examples);
    return weft__sealed_write(dir, "pictures.json", &json, all, JSON_REAL_PRECISION(9));
}
