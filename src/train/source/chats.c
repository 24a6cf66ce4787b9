/* Conversations and preferences for language models: reads them by the chat template of the published model,
 * divides them, and makes rows of each part. Must not know: forms of conversations. Read next: text/chats.c,
 * text/preferences.c. */
#include <weft/preferences.h>
#include <weft/published.h>

#include "train/dataset/dataset_summary.h"

/* Makes rows of the conversations, or pairs, which[0..n), as a part of the data. */
static weft_status pack_split(weft_context *ctx, const weft_chats *chats, const int64_t *which, int64_t n,
                              const weft__config *config, weft__split split, weft__dataset *d) {
    d->chats.count[split] = n;
    WEFT_TRY((d->chats.pairs ? weft_preferences_pack : weft_chats_pack)(
        chats, which, n, config->model_context, &d->x[split], &d->y[split], &d->chats.packed[split]));
    if (!d->chats.pairs) return WEFT_OK;
    const int64_t shape[2] = {d->x[split].shape[0], 2};
    WEFT_TRY(weft_array_new(ctx, WEFT_F32, 2, shape, &d->chats.reference[split]));
    float *reference = d->chats.reference[split].data;
    for (int64_t i = 0; i < shape[0] * 2; i++) reference[i] = 0;
    return WEFT_OK;
}

/* Divides the conversations of the training file. */
static weft_status divide_chats(weft_context *ctx, const weft_chats *chats, int64_t count,
                                const weft__config *config, weft__dataset *d) {
    int64_t *order = NULL, kept;
    if (config->data_val_path) return pack_split(ctx, chats, NULL, count, config, WEFT__TRAIN, d);
    WEFT_TRY(weft__dataset_order(ctx, config, count, NULL, &order, &kept));
    weft_status status = pack_split(ctx, chats, order, kept, config, WEFT__TRAIN, d);
    if (status == WEFT_OK && kept < count)
        status = pack_split(ctx, chats, order + kept, count - kept, config, WEFT__VALIDATION, d);
    weft__free(ctx, order);
    return status;
}

static weft_status read_part(weft_context *ctx, const weft__config *config, const char *path,
                             const weft_chat_template *template, weft__split split, weft__dataset *d) {
    weft_chats *chats;
    WEFT_TRY((d->chats.pairs ? weft_preferences_read : weft_chats_read)(ctx, path, d->tokens.tokenizer,
                                                                        template, &chats));
    d->hash = weft__mix64(d->hash + weft_chats_hash(chats));
    const int64_t count = weft_chats_count(chats) / (d->chats.pairs ? 2 : 1);
    const weft_status status = split == WEFT__TRAIN ? divide_chats(ctx, chats, count, config, d)
                                                    : pack_split(ctx, chats, NULL, count, config, split, d);
    weft_chats_free(chats);
    return status;
}

static weft_status chats_read(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_chat_template *template = NULL;
    d->chats.rows = true;
    d->chats.pairs = weft__source_of(config)->pairs;
    if (!config->published || !d->tokens.tokenizer)
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "data.source: %s are for published models: name the folder or GGUF file of one in "
            "model.init; a new model learns texts: objects with a \"text\", with data.source=text",
            d->chats.pairs ? "preferences" : "chats");
    weft_status status = weft_published_chat(ctx, config->published, &template);
    if (status == WEFT_ERR_IO) status = WEFT_OK; /* no template: the lines must then be texts */
    for (int i = 0; i < WEFT__SPLIT_COUNT && status == WEFT_OK; i++)
        if (paths[i]) status = read_part(ctx, config, paths[i], template, (weft__split)i, d);
    weft_chat_template_free(template);
    return status;
}

/* ---- a question ---- */

weft_status weft__dataset_question(weft_context *ctx, const weft__dataset *d, char **text, int32_t *end) {
    const weft__split split = d->x[WEFT__VALIDATION].rank ? WEFT__VALIDATION : WEFT__TRAIN;
    const weft_array *x = &d->x[split], *y = &d->y[split];
    *text = NULL;
    if (!d->chats.rows || !x->rank) return WEFT_OK;
    const int64_t length = x->shape[2];
    const int32_t *tokens = x->data, *begins = tokens + length, *next = y->data; /* of the first row */
    int64_t last = 0, answered;
    while (last < length && next[last] < 0) last++;
    if (last == length) return WEFT_OK;
    for (answered = last; answered + 1 < length && next[answered + 1] >= 0;) answered++;
    *end = next[answered];
    const int32_t *first = tokens + begins[last];
    const size_t count = (size_t)(last + 1 - begins[last]);
    size_t bytes = 0;
    WEFT_TRY(weft_tokenizer_decode(d->tokens.tokenizer, first, count, NULL, 0, &bytes));
    char *out = weft__alloc(ctx, bytes + 1);
    if (!out) return weft__fail_oom(ctx, bytes, "a question");
    *text = out;
    out[bytes] = '\0';
    return weft_tokenizer_decode(d->tokens.tokenizer, first, count, out, bytes, &bytes);
}

/* ---- the summary ---- */

static void pair_lines(const weft__dataset *d, const weft__config *config, const weft_chats_packed *all,
                       int64_t pairs, weft__lines *l) {
    weft__line(l, "data: %lld pairs of answers, %lld tokens, from %.300s", (long long)pairs,
               (long long)all->tokens, weft__line_file(config->data_path));
    weft__line(l, "rows of %lld tokens, each a pair; those of the answers count: %lld",
               (long long)d->x[WEFT__TRAIN].shape[2], (long long)all->learned);
    if (all->cut + all->dropped > 0)
        weft__line(l, "longer than model.context: %lld pairs lost their ends, %lld were left out",
                   (long long)all->cut, (long long)all->dropped);
    if (all->same > 0)
        weft__line(l, "chosen and rejected are equal in %lld pairs, from which nothing is learned",
                   (long long)all->same);
}

static void conversation_lines(const weft__config *config, const weft_chats_packed *all,
                               int64_t conversations, int64_t rows, weft__lines *l) {
    weft__line(l, "data: %lld conversations of %lld tokens, in %lld rows of %lld, from %.300s",
               (long long)conversations, (long long)all->tokens, (long long)rows,
               (long long)config->model_context, weft__line_file(config->data_path));
    weft__line(l, "learned: %lld tokens, those of the answers", (long long)all->learned);
    if (all->cut + all->dropped > 0)
        weft__line(l, "longer than model.context: %lld conversations lost their end, %lld were left out",
                   (long long)all->cut, (long long)all->dropped);
}

static void chat_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    int64_t conversations = 0, rows = 0;
    weft_chats_packed all = {0};
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        conversations += d->chats.count[i];
        rows += d->x[i].rank ? d->x[i].shape[0] : 0;
        all.tokens += d->chats.packed[i].tokens;
        all.learned += d->chats.packed[i].learned;
        all.cut += d->chats.packed[i].cut;
        all.dropped += d->chats.packed[i].dropped;
        all.same += d->chats.packed[i].same;
    }
    if (d->chats.pairs)
        pair_lines(d, config, &all, conversations, l);
    else
        conversation_lines(config, &all, conversations, rows, l);
    weft__line(l, "vocabulary: %lld tokens", (long long)d->tokens.vocabulary);
}

/* ---- the sources ---- */

/* The uses that have no message of a reader of texts: the reader will say what is wrong. A published model
 * learns texts as chats. */
static bool chats_guess(const weft__path_facts *path) {
    switch (path->use) {
    case WEFT__USE_NONE: return weft__path_ends(path, ".jsonl");
    case WEFT__USE_CHATS: return true;
    case WEFT__USE_PREFERENCES: return false;
    case WEFT__USE_OTHER: return !path->parquet;
    case WEFT__USE_EMPTY:
    case WEFT__USE_TEXTS: break;
    }
    return path->published && !path->parquet;
}

static const weft__tuning chats_tuning = {512, 4, 3, 5e-5, 2e-4}, pairs_tuning = {1024, 4, 1, 1e-6, 2e-5};

const weft__source_kind weft__data_chats = {.form = WEFT__FORM_CORPUS,
                                            .unit = "token",
                                            .tuning = &chats_tuning,
                                            .answers = true,
                                            .guess = chats_guess,
                                            .read = chats_read,
                                            .lines = chat_lines};

static bool preferences_guess(const weft__path_facts *path) { return path->use == WEFT__USE_PREFERENCES; }

static weft_status preferences_check(const weft__config *config) {
    if (config->train_label_smoothing <= 0) return WEFT_OK;
    return weft__config_blame(config, WEFT__KEY_train_label_smoothing,
                              "preferences have a label smoothing of their own: use dpo.label_smoothing");
}

const weft__source_kind weft__data_preferences = {.form = WEFT__FORM_CORPUS,
                                                  .unit = "token",
                                                  .tuning = &pairs_tuning,
                                                  .answers = true,
                                                  .pairs = true,
                                                  .guess = preferences_guess,
                                                  .check = preferences_check,
                                                  .read = chats_read,
                                                  .lines = chat_lines};
