/* weft embed: turns each line of a text into a vector of length 1. Must not know: how texts are encoded. Read
 * next: encode.c. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/encode.h"

/* ---- what sentence-transformers writes beside a model ---- */

typedef struct side_file {
    char path[4096];
    weft__json json;
    json_t *root; /* NULL: there is no such file */
} side_file;

static weft_status open_side(const char *folder, const char *name, side_file *f) {
    weft_bytes file;
    json_error_t error;
    f->root = NULL;
    weft__json_open(&f->json, NULL);
    if (!weft__join(f->path, sizeof f->path, folder, name) || access(f->path, F_OK) != 0) return WEFT_OK;
    WEFT_TRY(weft_read_file(NULL, f->path, 1 << 20, &file));
    const weft_status status =
        weft__json_load(&f->json, (const char *)file.data, file.size, 0, &error, &f->root);
    weft_bytes_free(NULL, &file);
    if (status != WEFT_ERR_FORMAT) return status;
    return weft__fail(NULL, status, "%s: line %d: %.160s", f->path, error.line, error.text);
}

/* Reads how the states of the tokens become a vector; without the file it is their mean. */
static weft_status read_pooling(const char *folder, weft_pooling *pooling) {
    side_file f;
    weft_status status = open_side(folder, "1_Pooling/config.json", &f);
    const bool first = json_is_true(json_object_get(f.root, "pooling_mode_cls_token"));
    const bool mean = json_is_true(json_object_get(f.root, "pooling_mode_mean_tokens"));
    *pooling = first ? WEFT_POOL_FIRST : WEFT_POOL_MEAN;
    if (status == WEFT_OK && f.root && first == mean)
        status = weft__fail(NULL, WEFT_ERR_FORMAT,
                            "%s: Weft knows pooling_mode_cls_token and pooling_mode_mean_tokens: choose one "
                            "with --pooling",
                            f.path);
    weft__json_close(&f.json);
    return status;
}

/* Reads how many tokens of a text count. */
static weft_status read_longest(const char *folder, int64_t *context) {
    side_file f;
    const weft_status status = open_side(folder, "sentence_bert_config.json", &f);
    const json_int_t most = json_integer_value(json_object_get(f.root, "max_seq_length"));
    if (most > 0 && most < *context) *context = most;
    weft__json_close(&f.json);
    return status;
}

/* ---- output ---- */

static void normalise(float *numbers, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += (double)numbers[i] * (double)numbers[i];
    const double length = sqrt(squares);
    for (int64_t i = 0; i < count && length > 0; i++) numbers[i] = (float)((double)numbers[i] / length);
}

static weft_status print_json(weft__encode *e, const char *text, const float *numbers) {
    weft__json json;
    char *line;
    size_t bytes;
    weft__json_build(&json, NULL);
    json_t *list = json_array(), *shown = json_string(text);
    for (int64_t i = 0; i < e->count; i++) json_array_append_new(list, json_real((double)numbers[i]));
    json_t *object = json_pack("{s:o, s:o}", "text", shown ? shown : json_null(), "embedding", list);
    WEFT_TRY(
        weft__json_text(&json, object, JSON_COMPACT | JSON_REAL_PRECISION(9), "a vector", &line, &bytes));
    const weft_status status = weft__encode_print(e, line, bytes);
    weft__free(NULL, line);
    return status;
}

static weft_status embed_show(weft__encode *e, void *user, const char *text, float *numbers) {
    const bool *json = user;
    char number[32];
    normalise(numbers, e->count);
    if (*json) return print_json(e, text, numbers);
    for (int64_t i = 0; i < e->count; i++) {
        const int n = snprintf(number, sizeof number, "%s%.9g", i ? "\t" : "", (double)numbers[i]);
        weft__print_text(stdout, number, (size_t)n);
    }
    return weft__encode_print(e, "", 0);
}

int weft__command_embed(const weft__command *command, int argc, char **argv) {
    const char *folder = NULL, *file = NULL, *pooling = NULL, *device = NULL;
    bool json = false;
    int code = 0;
    const weft__option options[] = {
        {"FOLDER", WEFT__OPTION_ARG, &folder,
         "a published encoder: bert, roberta or distilbert, or a run of one"},
        {"[FILE]", WEFT__OPTION_ARG, &file, "a text with a line for each vector; default: standard input"},
        {"--pooling P", WEFT__OPTION_TEXT, &pooling,
         "mean of all tokens, or cls, the first one; default: as 1_Pooling/config.json says, or mean"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object per line"},
        WEFT__ANY_DEVICE_OPTION(&device),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (pooling && strcmp(pooling, "mean") != 0 && strcmp(pooling, "cls") != 0) {
        weft__complain("embed: --pooling %s: give mean or cls", pooling);
        return WEFT__EXIT_USAGE;
    }
    weft__encode e;
    weft_status status = weft__encode_open(&e, "embed", folder, device, false);
    e.pairs = false; /* each line is a text, whatever the run learned */
    if (status == WEFT_OK && !pooling) status = read_pooling(e.described, &e.pooling);
    if (pooling) e.pooling = strcmp(pooling, "cls") == 0 ? WEFT_POOL_FIRST : WEFT_POOL_MEAN;
    if (status == WEFT_OK) status = read_longest(e.described, &e.context);
    if (status == WEFT_OK) status = weft__encode_lines(&e, file, embed_show, &json);
    return weft__encode_finish(&e, status);
}
