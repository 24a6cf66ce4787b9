/* weft classify: tells the class of each line of a text, by a published encoder. Must not know: how texts are
 * encoded. Read next: encode.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/encode.h"

typedef struct classifying {
    weft__json json;
    const json_t *names; /* id2label */
    bool as_json;
} classifying;

/* Reads config.json, which has the names of the classes. */
static weft_status read_names(const char *folder, classifying *c) {
    char path[4096];
    weft_bytes file;
    json_error_t error;
    json_t *root;
    if (!weft__join(path, sizeof path, folder, "config.json"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    WEFT_TRY(weft_read_file(NULL, path, 1 << 20, &file));
    weft_status status = weft__json_load(&c->json, (const char *)file.data, file.size, 0, &error, &root);
    weft_bytes_free(NULL, &file);
    if (status != WEFT_OK) return status;
    const char *kind = json_string_value(json_object_get(root, "problem_type"));
    c->names = json_object_get(root, "id2label");
    if (kind && strcmp(kind, "single_label_classification") != 0)
        return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: problem_type: Weft knows single_label_classification",
                          path);
    return WEFT_OK;
}

static const char *name_of(const classifying *c, int64_t label, char out[32]) {
    snprintf(out, 32, "%lld", (long long)label);
    const char *name = json_string_value(json_object_get(c->names, out));
    if (!name) snprintf(out, 32, "LABEL_%lld", (long long)label);
    return name ? name : out;
}

/* Turns logits into probabilities. Returns the likeliest class. */
static int64_t softmax(float *numbers, int64_t count) {
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 1; i < count; i++)
        if (numbers[i] > numbers[best]) best = i;
    const double most = (double)numbers[best];
    for (int64_t i = 0; i < count; i++) sum += exp((double)numbers[i] - most);
    for (int64_t i = 0; i < count; i++) numbers[i] = (float)(exp((double)numbers[i] - most) / sum);
    return best;
}

static weft_status print_json(weft__encode *e, const classifying *c, const char *text, int64_t best,
                              const float *numbers) {
    weft__json json;
    char name[32], *line;
    size_t bytes;
    weft__json_build(&json, NULL);
    json_t *each = json_object(), *shown = json_string(text);
    for (int64_t i = 0; i < e->labels; i++)
        json_object_set_new(each, name_of(c, i, name), json_real((double)numbers[i]));
    json_t *object =
        json_pack("{s:o, s:s, s:f, s:o}", "text", shown ? shown : json_null(), "class",
                  name_of(c, best, name), "probability", (double)numbers[best], "probabilities", each);
    WEFT_TRY(weft__json_text(&json, object, JSON_COMPACT | JSON_REAL_PRECISION(9), "a class", &line, &bytes));
    const weft_status status = weft__encode_print(e, line, bytes);
    weft__free(NULL, line);
    return status;
}

static weft_status classify_show(weft__encode *e, void *user, const char *text, float *numbers) {
    const classifying *c = user;
    char name[32], line[512];
    const int64_t best = softmax(numbers, e->labels);
    if (c->as_json) return print_json(e, c, text, best, numbers);
    const int n = snprintf(line, sizeof line, "%.400s\t%.4f", name_of(c, best, name), (double)numbers[best]);
    return weft__encode_print(e, line, (size_t)n);
}

int weft__command_classify(const weft__command *command, int argc, char **argv) {
    const char *folder = NULL, *file = NULL, *device = NULL;
    bool pairs = false;
    classifying c = {0};
    int code = 0;
    const weft__option options[] = {
        {"FOLDER", WEFT__OPTION_ARG, &folder,
         "a run of an encoder, or a published encoder with classes: bert, roberta or distilbert"},
        {"[FILE]", WEFT__OPTION_ARG, &file, "a text with a line for each answer; default: standard input"},
        {"--pairs", WEFT__OPTION_FLAG, &pairs,
         "each line has two texts with a tab between them; a run that learned pairs knows it"},
        {"--json", WEFT__OPTION_FLAG, &c.as_json, "print one JSON object per line, with all probabilities"},
        WEFT__ANY_DEVICE_OPTION(&device),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__encode e;
    weft__json_open(&c.json, NULL);
    weft_status status = weft__encode_open(&e, "classify", folder, device, true);
    if (pairs) e.pairs = true;
    if (status == WEFT_OK) status = read_names(e.described, &c);
    if (status == WEFT_OK) status = weft__encode_lines(&e, file, classify_show, &c);
    code = weft__encode_finish(&e, status);
    weft__json_close(&c.json);
    return code;
}
