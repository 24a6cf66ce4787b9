/* Applies a published encoder to the lines of a file. Lines are computed in batches, padded to a power of two
 * of tokens, so that few programs serve all. Must not know: what becomes of the numbers. Read next: embed.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/encode.h"
#include "published/published.h"
#include "train/model/published.h"
#include "train/run/opened_model.h"

enum { SHORTEST = 16 }; /* tokens of the shortest batch */

/* ---- opening ---- */

static weft_status check_kind(const weft__encode *e, const weft__published *p) {
    if (!p->encodes)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: a model of type %s is no encoder: use weft generate, or a bert, roberta or "
                          "distilbert",
                          e->folder, p->architecture->type);
    if (e->classifies && p->encoder.labels < 2)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: the model has no classes: architectures in config.json must name a class that "
                          "ends in ForSequenceClassification, and id2label two classes or more",
                          e->folder);
    return WEFT_OK;
}

static weft_status reserve(weft__encode *e) {
    e->numbers = weft__array(NULL, (size_t)(WEFT__ENCODE_BATCH * e->count), sizeof *e->numbers);
    e->tokens = weft__array(NULL, (size_t)(2 * WEFT__ENCODE_BATCH * e->context), sizeof *e->tokens);
    return e->numbers && e->tokens ? WEFT_OK : weft__fail_oom(NULL, 0, "a batch of texts");
}

/* Reads what a run knows: the longest text, and whether its texts are pairs. */
static weft_status describe_run(weft__encode *e) {
    weft__config config;
    weft__dataset dataset = {0};
    weft__config_init(&config);
    weft_status status = weft__opened_model_config(e->folder, NULL, &config);
    if (status == WEFT_OK && !weft__config_is(&config, WEFT__TRAIT_TEXTS))
        status = weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the model of the run %s is no encoder", e->command,
                            e->folder);
    if (status == WEFT_OK) status = weft__config_resolve(&config);
    if (status == WEFT_OK) status = weft__dataset_describe(NULL, &config, e->folder, &dataset);
    e->context = config.model_context;
    e->pairs = dataset.texts.count == 2;
    weft__dataset_free(NULL, &dataset);
    weft__config_free(&config);
    return status;
}

/* Finds the folder that describes the model. */
static weft_status find_model(weft__encode *e, weft__published *p) {
    const bool run = weft__is_run(e->folder);
    const int bytes =
        snprintf(e->described, sizeof e->described, "%s%s", e->folder, run ? "/" WEFT__PUBLISHED_FOLDER : "");
    if (bytes >= (int)sizeof e->described)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", e->folder);
    if (run) WEFT_TRY(describe_run(e));
    if (!weft_published_is(e->described))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s is no published model: it has no config.json",
                          e->command, e->folder);
    WEFT_TRY(weft__published_read(NULL, e->described, p));
    if (!run) e->context = p->context;
    return check_kind(e, p);
}

/* Loads the weights: those of the best checkpoint of a run, otherwise of its newest. */
static weft_status load_weights(const weft__encode *e) {
    weft_checkpoint *checkpoint = NULL;
    if (!weft__is_run(e->folder)) return weft_published_load(e->model, e->folder);
    weft_status status = weft_checkpoint_open_best(e->ctx, e->folder, &checkpoint);
    if (status == WEFT_ERR_STATE) status = weft_checkpoint_open_newest(e->ctx, e->folder, false, &checkpoint);
    if (status == WEFT_OK) status = weft_module_load_from(e->model, weft_checkpoint_model(checkpoint));
    weft_checkpoint_close(checkpoint);
    return status;
}

weft_status weft__encode_open(weft__encode *e, const char *command, const char *folder, const char *device,
                              bool classifies) {
    weft__published p;
    *e = (weft__encode){.command = command, .folder = folder, .classifies = classifies};
    WEFT_TRY(find_model(e, &p));
    e->labels = p.encoder.labels;
    e->count = classifies ? e->labels : p.encoder.width;
    WEFT_TRY(reserve(e));
    WEFT_TRY(weft_open(&(weft_open_options){.device = device}, &e->ctx));
    weft_status status = weft_published_tokenizer(e->ctx, e->described, &e->tokenizer);
    if (status == WEFT_OK) {
        e->model = weft_published_new(e->ctx, e->described, NULL);
        status = weft_module_status(e->model);
    }
    if (status == WEFT_OK) status = load_weights(e);
    if (status != WEFT_OK) return weft__fail(NULL, status, "%s", weft_last_error(e->ctx));
    weft_module_set_training(e->model, false);
    return WEFT_OK;
}

void weft__encode_close(weft__encode *e) {
    for (int i = 0; i < WEFT__ENCODE_BATCH; i++) free(e->texts[i]); /* of getline */
    weft__free(NULL, e->numbers);
    weft__free(NULL, e->tokens);
    weft_tokenizer_free(e->tokenizer);
    weft_close(e->ctx);
}

/* ---- a batch ---- */

/* Splits a line into the two texts of a pair. */
static weft_status split_pair(const weft__encode *e, int i, char **other) {
    char *tab = strchr(e->texts[i], '\t');
    if (!tab || strchr(tab + 1, '\t'))
        return weft__fail(NULL, WEFT_ERR_FORMAT,
                          "line %lld: a pair is two texts with one tab between them, and there is %s tab",
                          (long long)e->lines + i + 1, tab ? "more than one" : "no");
    *other = tab;
    return WEFT_OK;
}

/* Encodes a line into row i: tokens, then types. */
static weft_status take_tokens(weft__encode *e, int i) {
    int32_t *row = e->tokens + 2 * i * e->context;
    char *tab = NULL;
    bool whole = true;
    if (e->pairs) WEFT_TRY(split_pair(e, i, &tab));
    if (tab) *tab = '\0';
    const weft_status status =
        weft_tokenizer_encode_row(e->tokenizer, e->texts[i], tab ? tab + 1 : NULL, e->context, row,
                                  row + e->context, &e->lengths[i], &whole);
    if (tab) *tab = '\t'; /* JSON shows the line */
    e->shortened += !whole;
    return status == WEFT_OK ? WEFT_OK : weft__fail(NULL, status, "%s", weft_last_error(e->ctx));
}

/* Computes the numbers of `rows` rows (rows, 2, time), of which the last ones may be empty, in one pass. */
static weft_status compute(weft__encode *e, int rows, int64_t time, const int32_t *tokens) {
    const int64_t shape[3] = {rows, 2, time};
    weft_scope *scope = weft_scope_open(e->ctx);
    weft_tensor *given = weft_from(e->ctx, WEFT_I32, 3, shape, tokens), *x = weft_forward(e->model, given);
    if (e->classifies) {
        x = weft_encoder_logits(e->model, x);
    } else {
        weft_tensor *types = weft_reshape(weft_narrow(given, 1, 1, 1), 2, (int64_t[]){rows, time});
        x = weft_encoder_pool(x, weft_ge(types, weft_zeros_like(types)), e->pooling);
    }
    const weft_status status = weft_read(x, e->numbers, (size_t)(rows * e->count) * sizeof *e->numbers);
    weft_scope_close(scope);
    return status == WEFT_OK ? WEFT_OK : weft__fail(NULL, status, "%s", weft_last_error(e->ctx));
}

/* Copies the tokens and types of a text into a padded row. */
static void pad_row(const weft__encode *e, int i, int64_t length, int64_t time, int32_t *to) {
    const int32_t padding = weft_tokenizer_special(e->tokenizer, WEFT_SPECIAL_PAD);
    const int32_t *row = e->tokens + 2 * i * e->context;
    for (int64_t at = 0; at < time; at++) {
        to[at] = at < length ? row[at] : padding >= 0 ? padding : 0;
        to[time + at] = at < length ? row[e->context + at] : -1;
    }
    if (length == 0) to[time] = 0; /* a text without tokens still has a mean */
}

/* Pads the texts of a batch, and computes it. */
static weft_status compute_batch(weft__encode *e, int texts) {
    int64_t longest = 1, time = SHORTEST;
    int rows = 1;
    for (int i = 0; i < texts; i++) {
        WEFT_TRY(take_tokens(e, i));
        longest = weft__larger(longest, e->lengths[i]);
    }
    while (time < longest) time *= 2;
    while (rows < texts) rows *= 2;
    time = weft__smaller(time, e->context);
    int32_t *tokens = weft__array(NULL, (size_t)(2 * rows * time), sizeof *tokens);
    if (!tokens) return weft__fail_oom(NULL, 0, "a batch of texts");
    for (int i = 0; i < rows; i++) pad_row(e, i, i < texts ? e->lengths[i] : 0, time, tokens + 2 * i * time);
    const weft_status status = compute(e, rows, time, tokens);
    weft__free(NULL, tokens);
    return status;
}

/* ---- lines ---- */

/* Reads up to a batch of lines; *count becomes their number. */
static weft_status read_lines(weft__encode *e, FILE *file, int *count) {
    int n = 0;
    for (; n < WEFT__ENCODE_BATCH; n++) {
        size_t room = 0;
        free(e->texts[n]);
        e->texts[n] = NULL;
        errno = 0;
        const ssize_t bytes = getline(&e->texts[n], &room, file);
        if (bytes < 0 && errno == ENOMEM) return weft__fail_oom(NULL, room, "a line");
        if (bytes < 0) break;
        e->texts[n][strcspn(e->texts[n], "\r\n")] = '\0';
    }
    *count = n;
    return WEFT_OK;
}

static weft_status encode_file(weft__encode *e, FILE *file, weft__encode_show show, void *user) {
    for (;;) {
        int n;
        WEFT_TRY(read_lines(e, file, &n));
        if (n == 0) return WEFT_OK;
        WEFT_TRY(compute_batch(e, n));
        for (int i = 0; i < n; i++) WEFT_TRY(show(e, user, e->texts[i], e->numbers + i * e->count));
        e->lines += n;
        if (fflush(stdout) != 0) return weft__encode_print(e, "", 0);
    }
}

weft_status weft__encode_lines(weft__encode *e, const char *path, weft__encode_show show, void *user) {
    const bool standard = !path || strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "r");
    if (!file && errno == ENOMEM) return weft__fail_oom(NULL, 0, path);
    if (!file) return weft__fail(NULL, WEFT_ERR_IO, "%s: %s", path, strerror(errno));
    weft_status status = encode_file(e, file, show, user);
    if (status == WEFT_OK && ferror(file))
        status = weft__fail(NULL, WEFT_ERR_IO, "%s: a part of the text could not be read",
                            standard ? "standard input" : path);
    if (!standard) fclose(file);
    return status;
}

weft_status weft__encode_print(weft__encode *e, const char *text, size_t bytes) {
    if (weft__print_text(stdout, text, bytes) && weft__print_text(stdout, "\n", 1)) return WEFT_OK;
    e->reader_left = errno == EPIPE;
    return weft__fail(NULL, WEFT_ERR_IO, "standard output: %s", strerror(errno));
}

int weft__encode_finish(weft__encode *e, weft_status status) {
    if (status == WEFT_OK && e->shortened)
        weft__complain("%s: %lld texts have more than %lld tokens: only their begin counts", e->command,
                       (long long)e->shortened, (long long)e->context);
    const int code = status == WEFT_OK ? WEFT__EXIT_DONE
                     : e->reader_left  ? WEFT__EXIT_IO
                                       : weft__give_up(NULL, status);
    weft__encode_close(e);
    return code;
}
