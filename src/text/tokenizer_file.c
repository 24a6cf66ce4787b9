/* Reads and writes tokenizer.json:
 *
 *     {"format": "weft-tokenizer", "version": 1, "kind": "character", "vocabulary": ["\n", " ", ...]}
 *
 * A file of kind bpe writes its tokens in the alphabet of bytes (bpe.h), and also has "merges": ["\u0120 t",
 * ...]. An id is an index in the array, so no file can have an id out of range. The index function of the
 * kind checks the tokens. Reading takes time linear in the size of the file.
 *
 * Must not know: how kinds split text. Read next: tokenizer_gpt2.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/json.h"
#include "text/bpe.h"
#include "text/pipeline/pipeline.h"

#define FORMAT     "weft-tokenizer"
#define VERSION    1
#define FILE_MAX   ((size_t)64 << 20) /* bytes of a file */
#define PATH_BYTES 4096

/* ---- writing ---- */

/* Writes the token of an id to `out`, as it appears in the file. Returns the number of bytes. */
static size_t write_token(const weft_tokenizer *t, size_t id, char *out) {
    size_t bytes;
    const char *token = weft__token(t, id, &bytes);
    if (t->type->merged) return weft__bpe_print(token, bytes, out);
    memcpy(out, token, bytes);
    return bytes;
}

/* Returns the bytes of the longest token, as written. */
static size_t longest(const weft_tokenizer *t) {
    size_t most = 0, bytes;
    for (size_t id = 0; id < t->count; id++) {
        (void)weft__token(t, id, &bytes);
        if (bytes > most) most = bytes;
    }
    return t->type->merged ? 2 * most : most;
}

/* Returns a list of `count` strings: tokens, or merges. NULL on failure. */
static json_t *list(const weft_tokenizer *t, size_t count, bool merges, char *room) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        size_t bytes = write_token(t, merges ? (size_t)t->bpe->merges.list[i].left : i, room);
        if (merges) {
            room[bytes++] = ' ';
            bytes += write_token(t, (size_t)t->bpe->merges.list[i].right, room + bytes);
        }
        if (json_array_append_new(array, json_stringn(room, bytes)) != 0) return NULL;
    }
    return array;
}

static json_t *tokenizer_file_describe(const weft_tokenizer *t, char *room) {
    json_t *root = json_pack("{s:s, s:i, s:s}", "format", FORMAT, "version", VERSION, "kind", t->type->name);
    bool made = true;
    if (t->type->listed) made = json_object_set_new(root, "vocabulary", list(t, t->count, false, room)) == 0;
    if (made && t->type->merged)
        made = json_object_set_new(root, "merges", list(t, t->bpe->merges.count, true, room)) == 0;
    return made ? root : NULL;
}

/* Makes the text of Weft's own format. */
static weft_status own_text(const weft_tokenizer *tokenizer, char **text, size_t *bytes) {
    size_t room_bytes = 2 * longest(tokenizer) + 2; /* enough for one merge */
    char *room = weft__alloc(tokenizer->ctx, room_bytes);
    if (!room) return weft__fail_oom(tokenizer->ctx, room_bytes, "the text of a tokenizer");
    weft__json json;
    weft__json_build(&json, tokenizer->ctx);
    json_t *root = tokenizer_file_describe(tokenizer, room);
    weft__free(tokenizer->ctx, room);
    return weft__json_text(&json, root, JSON_INDENT(1), "the text of a tokenizer", text, bytes);
}

weft_status weft_tokenizer_save(const weft_tokenizer *tokenizer, const char *path) {
    char *text;
    size_t bytes = 0;
    WEFT_NEED(NULL, tokenizer);
    WEFT_NEED(tokenizer->ctx, path);
    WEFT_TRY(tokenizer->pipeline ? weft__pipeline_text(tokenizer, &text, &bytes)
                                 : own_text(tokenizer, &text, &bytes));
    text[bytes] = '\n'; /* replaces the NUL */
    weft_status status = weft_write_file(tokenizer->ctx, path, text, bytes + 1);
    weft__free(tokenizer->ctx, text);
    return status;
}

/* ---- reading ---- */

static weft_status bad(weft_context *ctx, const char *name, const char *field, const char *why) {
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s: %s", name, field, why);
}

/* Tells whether the JSON has at most 64 levels. jansson would read up to 2,048 levels and build each one. */
static bool is_shallow(const char *json, size_t bytes) {
    int depth = 0;
    bool string = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = json[i];
        if (string) {
            if (c == '\\') i++;
            if (c == '"') string = false;
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > 64) return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

static weft_status read_vocabulary(weft_tokenizer *t, const char *name, const json_t *root) {
    const json_t *list = json_object_get(root, "vocabulary");
    if (!t->type->listed) {
        if (list) return bad(t->ctx, name, "vocabulary", "this kind has no vocabulary in its file");
        return t->type->build(t, NULL, 0, 0);
    }
    if (!json_is_array(list)) return bad(t->ctx, name, "vocabulary", "must be an array of strings");
    for (size_t id = 0; id < json_array_size(list); id++) {
        const json_t *token = json_array_get(list, id);
        if (!json_is_string(token))
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu is not a string", name, id);
        const char *text = json_string_value(token);
        size_t bytes = json_string_length(token);
        WEFT_TRY(t->type->merged ? weft__bpe_add_token(t, name, text, bytes)
                                 : weft__tokenizer_add(t, text, bytes));
    }
    return WEFT_OK;
}

static weft_status read_merges(weft_tokenizer *t, const char *name, const json_t *root) {
    const json_t *list = json_object_get(root, "merges");
    if (!t->type->merged) return WEFT_OK; /* an unexpected "merges" was already counted as a field too many */
    if (!json_is_array(list)) return bad(t->ctx, name, "merges", "must be an array of strings");
    WEFT_TRY(weft__bpe_begin(t, name));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *merge = json_array_get(list, i);
        if (!json_is_string(merge))
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: merges: number %zu is not a string", name, i + 1);
        WEFT_TRY(weft__bpe_add_merge(t, name, "merge", i + 1, json_string_value(merge),
                                     json_string_length(merge)));
    }
    return WEFT_OK;
}

static weft_status read_tokenizer(weft_context *ctx, const char *name, const json_t *root,
                                  weft_tokenizer **out) {
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *kind_name = json_string_value(json_object_get(root, "kind"));
    const json_t *version = json_object_get(root, "version");
    weft_tokenizer_kind kind;
    if (!format || strcmp(format, FORMAT) != 0) return bad(ctx, name, "format", "must be \"" FORMAT "\"");
    if (!json_is_integer(version)) return bad(ctx, name, "version", "must be an integer");
    if (json_integer_value(version) != VERSION)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "%s: version: %" PRId64 ", but this Weft reads %d", name,
                          (int64_t)json_integer_value(version), VERSION);
    if (!kind_name || !weft_tokenizer_kind_parse(kind_name, &kind) ||
        strcmp(kind_name, weft_tokenizer_kind_name(kind)) || kind == WEFT_TOKENIZER_PIPELINE)
        return bad(ctx, name, "kind", "must be character, byte, word or bpe");
    weft_tokenizer *t = weft__tokenizer_new(ctx, kind);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a tokenizer");
    weft_status status = WEFT_OK;
    if (json_object_size(root) != (size_t)(3 + t->type->listed + t->type->merged))
        status =
            bad(ctx, name, "fields", "must be format, version, kind, vocabulary, and for kind bpe merges");
    if (status == WEFT_OK) status = read_vocabulary(t, name, root);
    if (status == WEFT_OK) status = read_merges(t, name, root);
    if (status == WEFT_OK) status = t->type->index(t, name);
    if (status != WEFT_OK) {
        weft_tokenizer_free(t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

weft_status weft__tokenizer_json(weft__json *json, const char *name, const char *text, size_t bytes,
                                 size_t flags, json_t **root) {
    json_error_t error;
    if (!is_shallow(text, bytes)) return bad(json->ctx, name, "JSON", "nested too deeply for a tokenizer");
    const weft_status status =
        weft__json_load(json, text, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | flags, &error, root);
    if (status != WEFT_ERR_FORMAT) return status;
    return weft__fail(json->ctx, WEFT_ERR_FORMAT, "%s: line %d, byte %d: %.160s", name, error.line,
                      error.position, error.text);
}

static weft_status parse(weft_context *ctx, const char *name, const char *text, size_t bytes,
                         weft_tokenizer **out) {
    weft__json json;
    json_t *root;
    weft__json_open(&json, ctx);
    weft_status status = weft__tokenizer_json(&json, name, text, bytes, 0, &root);
    if (status == WEFT_OK && !json_is_object(root)) status = bad(ctx, name, "JSON", "must be an object");
    if (status == WEFT_OK)
        status = json_is_object(json_object_get(root, "model"))
                     ? weft__pipeline_read(ctx, name, root, text, bytes, out)
                     : read_tokenizer(ctx, name, root, out);
    weft__json_close(&json);
    return status;
}

weft_status weft_tokenizer_parse(weft_context *ctx, const char *json, size_t bytes, weft_tokenizer **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED_ARRAY(ctx, json, bytes);
    return parse(ctx, "tokenizer", json ? json : "", bytes, out);
}

weft_status weft__tokenizer_copy(const weft_tokenizer *t, weft_context *ctx, weft_tokenizer **out) {
    char *text;
    size_t bytes = 0;
    *out = NULL;
    WEFT_TRY(t->pipeline ? weft__pipeline_text(t, &text, &bytes) : own_text(t, &text, &bytes));
    const weft_status status = parse(ctx, "tokenizer", text, bytes, out);
    weft__free(t->ctx, text);
    return status;
}

/* Reads the special tokens of a file beside tokenizer.json, if it is there. */
static weft_status configure(weft_tokenizer *t, const char *path, const char *name) {
    char beside[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    weft_bytes file = {0};
    if (snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name) >=
            PATH_BYTES ||
        access(beside, F_OK) != 0)
        return WEFT_OK;
    WEFT_TRY(weft_read_file(t->ctx, beside, FILE_MAX, &file));
    weft_status status = weft__pipeline_configure(t, beside, (const char *)file.data, file.size);
    weft_bytes_free(t->ctx, &file);
    return status;
}

static bool ends_with(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

static weft_status parse_sentencepiece(weft_context *ctx, const char *path, const char *data, size_t bytes,
                                       weft_tokenizer **out) {
    char *text;
    WEFT_TRY(weft__sentencepiece_text(ctx, path, data, bytes, &text, &bytes));
    weft_status status = parse(ctx, path, text, bytes, out);
    weft__free(ctx, text);
    return status;
}

static weft_status load_file(weft_context *ctx, const char *path, weft_tokenizer **out) {
    weft_bytes file = {0};
    WEFT_TRY(weft_read_file(ctx, path, FILE_MAX, &file));
    weft_status status = ends_with(path, ".model")
                             ? parse_sentencepiece(ctx, path, (const char *)file.data, file.size, out)
                             : parse(ctx, path, (const char *)file.data, file.size, out);
    weft_bytes_free(ctx, &file);
    if (status != WEFT_OK || !(*out)->pipeline) return status;
    status = configure(*out, path, "special_tokens_map.json");
    if (status == WEFT_OK) status = configure(*out, path, "tokenizer_config.json");
    if (status != WEFT_OK) {
        weft_tokenizer_free(*out);
        *out = NULL;
    }
    return status;
}

weft_status weft_tokenizer_load(weft_context *ctx, const char *path, weft_tokenizer **out) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "spiece.model",
                                        "sentencepiece.bpe.model"};
    char inside[PATH_BYTES];
    struct stat st;
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    const bool there = stat(path, &st) == 0;
    if (!there && errno == ENOMEM) return weft__fail_oom(ctx, 0, path);
    if (!there || !S_ISDIR(st.st_mode)) return load_file(ctx, path, out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (snprintf(inside, sizeof inside, "%s/%s", path, names[i]) < PATH_BYTES &&
            access(inside, F_OK) == 0)
            return load_file(ctx, inside, out);
    return weft_tokenizer_load_gpt2(ctx, path, out);
}
