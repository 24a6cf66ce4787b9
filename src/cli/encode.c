/* Applies a published encoder to the lines of a file. Lines are computed in batches, padded to a power of two
 * of tokens, so that few programs serve all. Must not know: what becomes of the numbers. Read next: embed.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/encode.h"
#include "published/published.h"

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
    e->tokens = weft__array(NULL, (size_t)(WEFT__ENCODE_BATCH * e->context), sizeof *e->tokens);
    return e->numbers && e->tokens ? WEFT_OK : weft__fail_oom(NULL, 0, "a batch of texts");
}

weft_status weft__encode_open(weft__encode *e, const char *command, const char *folder, const char *device,
                              bool classifies) {
    weft__published p;
    *e = (weft__encode){.command = command, .folder = folder, .classifies = classifies};
    if (!weft_published_is(folder))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s is no published model: it has no config.json",
                          command, folder);
    WEFT_TRY(weft__published_read(NULL, folder, &p));
    WEFT_TRY(check_kind(e, &p));
    e->context = p.context;
    e->labels = p.encoder.labels;
    e->count = classifies ? e->labels : p.encoder.width;
    WEFT_TRY(reserve(e));
    WEFT_TRY(weft_open(&(weft_open_options){.device = device}, &e->ctx));
    weft_status status = weft_published_tokenizer(e->ctx, folder, &e->tokenizer);
    if (status == WEFT_OK) {
        e->model = weft_published_new(e->ctx, folder, NULL);
        status = weft_module_status(e->model);
    }
    if (status == WEFT_OK) status = weft_published_load(e->model, folder);
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

/* Encodes a text into row i. Of a longer one the begin counts, and the special token at its end. */
static weft_status take_tokens(weft__encode *e, int i) {
    const char *text = e->texts[i];
    const size_t bytes = strlen(text);
    int32_t *row = e->tokens + i * e->context, *ids;
    size_t count = 0;
    WEFT_TRY(weft_tokenizer_encode_special(e->tokenizer, text, bytes, NULL, 0, &count));
    ids = weft__array(NULL, count + 1, sizeof *ids);
    if (!ids) return weft__fail_oom(NULL, count * sizeof *ids, "tokens");
    const weft_status status = weft_tokenizer_encode_special(e->tokenizer, text, bytes, ids, count, &count);
    const size_t kept = (size_t)weft__smaller((int64_t)count, e->context);
    if (status == WEFT_OK) memcpy(row, ids, kept * sizeof *ids);
    if (kept < count && weft_tokenizer_is_special(e->tokenizer, ids[count - 1]))
        row[kept - 1] = ids[count - 1];
    e->shortened += kept < count;
    e->lengths[i] = (int64_t)kept;
    weft__free(NULL, ids);
    return status;
}

/* Computes the numbers of `texts` rows, of which the last ones may be empty, in one pass. */
static weft_status compute(weft__encode *e, int rows, int64_t time, const int32_t *tokens,
                           const uint8_t *mask) {
    const int64_t shape[2] = {rows, time};
    weft_scope *scope = weft_scope_open(e->ctx);
    weft_tensor *seen = weft_from(e->ctx, WEFT_BOOL, 2, shape, mask);
    weft_tensor *x = weft_attend(e->model, weft_from(e->ctx, WEFT_I32, 2, shape, tokens),
                                 &(weft_attend_options){.mask = seen});
    x = e->classifies ? weft_encoder_logits(e->model, x) : weft_encoder_pool(x, seen, e->pooling);
    const weft_status status = weft_read(x, e->numbers, (size_t)(rows * e->count) * sizeof *e->numbers);
    weft_scope_close(scope);
    return status == WEFT_OK ? WEFT_OK : weft__fail(NULL, status, "%s", weft_last_error(e->ctx));
}

/* Pads the texts of a batch, and computes it. */
static weft_status compute_batch(weft__encode *e, int texts) {
    const int32_t padding = weft_tokenizer_special(e->tokenizer, WEFT_SPECIAL_PAD);
    int64_t longest = 1, time = SHORTEST;
    int rows = 1;
    for (int i = 0; i < texts; i++) {
        WEFT_TRY(take_tokens(e, i));
        longest = weft__larger(longest, e->lengths[i]);
    }
    while (time < longest) time *= 2;
    while (rows < texts) rows *= 2;
    time = weft__smaller(time, e->context);
    int32_t *tokens = weft__array(NULL, (size_t)(rows * time), sizeof *tokens);
    uint8_t *mask = weft__array(NULL, (size_t)(rows * time), 1);
    weft_status status = tokens && mask ? WEFT_OK : weft__fail_oom(NULL, 0, "a batch of texts");
    for (int64_t i = 0; status == WEFT_OK && i < rows * time; i++) {
        const int64_t row = i / time, at = i % time;
        const int64_t length = row < texts ? e->lengths[row] : 0;
        tokens[i] = at < length ? e->tokens[row * e->context + at] : padding >= 0 ? padding : 0;
        mask[i] = at < length || at == 0; /* a text without tokens still has a mean */
    }
    if (status == WEFT_OK) status = compute(e, rows, time, tokens, mask);
    weft__free(NULL, tokens);
    weft__free(NULL, mask);
    return status;
}

/* ---- lines ---- */

/* Reads up to a batch of lines. Returns their number. */
static int read_lines(weft__encode *e, FILE *file) {
    int n = 0;
    for (; n < WEFT__ENCODE_BATCH; n++) {
        size_t room = 0;
        free(e->texts[n]);
        e->texts[n] = NULL;
        const ssize_t bytes = getline(&e->texts[n], &room, file);
        if (bytes < 0) break;
        e->texts[n][strcspn(e->texts[n], "\r\n")] = '\0';
    }
    return n;
}

static weft_status encode_file(weft__encode *e, FILE *file, weft__encode_show show, void *user) {
    for (int n; (n = read_lines(e, file)) > 0;) {
        WEFT_TRY(compute_batch(e, n));
        for (int i = 0; i < n; i++) WEFT_TRY(show(e, user, e->texts[i], e->numbers + i * e->count));
        if (fflush(stdout) != 0) return weft__encode_print(e, "", 0);
    }
    return WEFT_OK;
}

weft_status weft__encode_lines(weft__encode *e, const char *path, weft__encode_show show, void *user) {
    const bool standard = !path || strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "r");
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
