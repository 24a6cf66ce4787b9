/* Conversations for language models: reads them by the chat template of the published model, divides them,
 * and packs each part into rows. Must not know: forms of conversations. Read next: text/chats.c. */
#include <weft/published.h>

#include "train/dataset/dataset.h"

/* Packs conversations which[0..n) as a part of the data. */
static weft_status pack_split(const weft_chats *chats, const int64_t *which, int64_t n,
                              const weft__config *config, weft__split split, weft__dataset *d) {
    d->conversations[split] = n;
    return weft_chats_pack(chats, which, n, config->model_context, &d->x[split], &d->y[split],
                           &d->packed[split]);
}

/* Divides the conversations of the training file. */
static weft_status divide_chats(weft_context *ctx, const weft_chats *chats, const weft__config *config,
                                weft__dataset *d) {
    int64_t *order = NULL, kept, count = weft_chats_count(chats);
    if (config->data_val_path) return pack_split(chats, NULL, count, config, WEFT__TRAIN, d);
    WEFT_TRY(weft__dataset_order(ctx, config, count, NULL, &order, &kept));
    weft_status status = pack_split(chats, order, kept, config, WEFT__TRAIN, d);
    if (status == WEFT_OK && kept < count)
        status = pack_split(chats, order + kept, count - kept, config, WEFT__VALIDATION, d);
    weft__free(ctx, order);
    return status;
}

static weft_status read_part(weft_context *ctx, const weft__config *config, const char *path,
                             const weft_chat_template *template, weft__split split, weft__dataset *d) {
    weft_chats *chats;
    WEFT_TRY(weft_chats_read(ctx, path, d->tokenizer, template, &chats));
    d->hash = weft__mix64(d->hash + weft_chats_hash(chats));
    const weft_status status = split == WEFT__TRAIN
                                   ? divide_chats(ctx, chats, config, d)
                                   : pack_split(chats, NULL, weft_chats_count(chats), config, split, d);
    weft_chats_free(chats);
    return status;
}

weft_status weft__dataset_read_chats(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_chat_template *template = NULL;
    if (!config->published || !d->tokenizer)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.source: chats are for published models: name the folder or GGUF file of one "
                          "in model.init");
    weft_status status = weft_published_chat(ctx, config->published, &template);
    if (status == WEFT_ERR_IO) status = WEFT_OK; /* no template: the lines must then be texts */
    d->chats = true;
    for (int i = 0; i < WEFT__SPLIT_COUNT && status == WEFT_OK; i++)
        if (paths[i]) status = read_part(ctx, config, paths[i], template, (weft__split)i, d);
    weft_chat_template_free(template);
    return status;
}
