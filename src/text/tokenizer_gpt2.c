/* Reads the files of GPT-2. encoder.json is an object from tokens to ids. vocab.bpe has one merge per line,
 * the best first. vocab.json and merges.txt are other names for these files. Must not know: how texts are
 * encoded. Read next: corpus.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/json.h"
#include "text/bpe.h"

#define FILE_MAX   ((size_t)64 << 20) /* bytes of a file */
#define PATH_BYTES 4096

/* Finds the first of the names that exists, with or without .gz. */
static weft_status tokenizer_gpt2_find(weft_context *ctx, const char *folder, const char *const names[2],
                                       char *path) {
    for (int i = 0; i < 4; i++) {
        int n = snprintf(path, PATH_BYTES, "%s/%s%s", folder, names[i / 2], i % 2 ? ".gz" : "");
        if (n >= PATH_BYTES) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
        if (access(path, F_OK) == 0) return WEFT_OK;
    }
    return weft__fail(ctx, WEFT_ERR_IO,
                      "%s: the folder has neither %s nor %s, not even with .gz, and no tokenizer.json",
                      folder, names[0], names[1]);
}

/* ---- the vocabulary ---- */

/* Sorts the tokens by their ids, which must be 0, 1, 2, ... */
static weft_status order(weft_context *ctx, const char *name, json_t *root, const char **tokens) {
    size_t count = json_object_size(root);
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || (uint64_t)id >= count)
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: token '%.40s': its id must be a number from 0 to %zu", name, key,
                              count - 1);
        if (tokens[id])
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: tokens '%.40s' and '%.40s' have one id, %lld", name,
                              tokens[id], key, (long long)id);
        tokens[id] = key;
    }
    return WEFT_OK;
}

static weft_status add_tokens(weft_tokenizer *t, const char *name, json_t *root) {
    if (!json_is_object(root) || json_object_size(root) == 0)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: must be a JSON object with tokens and their ids",
                          name);
    size_t count = json_object_size(root);
    const char **tokens = weft__array(t->ctx, count, sizeof *tokens);
    if (!tokens) return weft__fail_oom(t->ctx, count * sizeof *tokens, "a vocabulary");
    weft_status status = order(t->ctx, name, root, tokens);
    for (size_t id = 0; status == WEFT_OK && id < count; id++)
        status = weft__bpe_add_token(t, name, tokens[id], strlen(tokens[id]));
    weft__free(t->ctx, tokens);
    return status;
}

static weft_status read_vocabulary(weft_tokenizer *t, const weft__span *json) {
    weft__json document;
    json_t *root = NULL;
    weft__json_open(&document, t->ctx);
    weft_status status = weft__tokenizer_json(&document, json->name, json->text, json->bytes, 0, &root);
    if (status == WEFT_OK) status = add_tokens(t, json->name, root);
    weft__json_close(&document);
    return status;
}

/* ---- the merges ---- */

static weft_status read_merges(weft_tokenizer *t, const weft__span *lines) {
    const char *at = lines->text, *end = at + lines->bytes;
    for (size_t line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t bytes = (size_t)(stop - at);
        if (bytes && at[bytes - 1] == '\r') bytes--;
        bool version = line == 1 && bytes >= 8 && memcmp(at, "#version", 8) == 0;
        bool last = bytes == 0 && stop + 1 >= end;
        if (!version && !last) WEFT_TRY(weft__bpe_add_merge(t, lines->name, "line", line, at, bytes));
        at = newline ? newline + 1 : end;
    }
    return WEFT_OK;
}

/* ---- both ---- */

weft_status weft__tokenizer_parse_gpt2(weft_context *ctx, const weft__span *json, const weft__span *merges,
                                       weft_tokenizer **out) {
    *out = NULL;
    weft_tokenizer *t = weft__tokenizer_new(ctx, WEFT_TOKENIZER_BPE);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a tokenizer");
    weft_status status = read_vocabulary(t, json);
    if (status == WEFT_OK) status = weft__bpe_begin(t, json->name);
    if (status == WEFT_OK) status = read_merges(t, merges);
    if (status == WEFT_OK) status = t->type->index(t, merges->name);
    if (status == WEFT_OK)
        *out = t;
    else
        weft_tokenizer_free(t);
    return status;
}

weft_status weft_tokenizer_load_gpt2(weft_context *ctx, const char *folder, weft_tokenizer **out) {
    static const char *const vocabularies[2] = {"encoder.json", "vocab.json"};
    static const char *const merges[2] = {"vocab.bpe", "merges.txt"};
    char path[PATH_BYTES], merges_path[PATH_BYTES];
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, folder);
    WEFT_TRY(tokenizer_gpt2_find(ctx, folder, vocabularies, path));
    WEFT_TRY(tokenizer_gpt2_find(ctx, folder, merges, merges_path));
    weft_bytes json = {0}, lines = {0};
    weft_status status = weft_read_file(ctx, path, FILE_MAX, &json);
    if (status == WEFT_OK) status = weft_read_file(ctx, merges_path, FILE_MAX, &lines);
    const weft__span first = {path, (const char *)json.data, json.size};
    const weft__span second = {merges_path, (const char *)lines.data, lines.size};
    if (status == WEFT_OK) status = weft__tokenizer_parse_gpt2(ctx, &first, &second, out);
    weft_bytes_free(ctx, &json);
    weft_bytes_free(ctx, &lines);
    return status;
}
