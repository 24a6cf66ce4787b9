/* tokenizer.json:
 *   {"format": "weft-tokenizer", "version": 1, "kind": "character", "vocabulary": ["\n", " ", ...]}
 * An id is a place in the array, so no file can name one out of range; the kind's index function checks
 * the tokens themselves. Reading takes time linear in the file. Must not know: how kinds cut text. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include <weft/data.h>
#include <weft/io.h>

#include "text/tokenizer.h"

#define FORMAT   "weft-tokenizer"
#define VERSION  1
#define FILE_MAX ((size_t)256 << 20) /* bytes of a file */

/* ---- writing ---- */

static json_t *list_vocabulary(const weft_tokenizer *t) {
    json_t *list = json_array();
    for (size_t id = 0; list && id < t->count; id++) {
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        if (json_array_append_new(list, json_stringn(token, bytes)) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *describe(const weft_tokenizer *t) {
    if (!t->type->listed)
        return json_pack("{s:s, s:i, s:s}", "format", FORMAT, "version", VERSION, "kind", t->type->name);
    return json_pack("{s:s, s:i, s:s, s:o}", "format", FORMAT, "version", VERSION, "kind", t->type->name,
                     "vocabulary", list_vocabulary(t));
}

weft_status weft_tokenizer_save(const weft_tokenizer *t, const char *path) {
    if (!t || !path) return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_tokenizer_save: NULL");
    json_t *root = describe(t);
    size_t bytes = root ? json_dumpb(root, NULL, 0, JSON_INDENT(1)) : 0;
    char *text = bytes ? weft__alloc(t->ctx, bytes + 1) : NULL;
    weft_status status;
    if (!text) {
        status = weft__fail_oom(t->ctx, bytes + 1, "the text of a tokenizer");
    } else {
        (void)json_dumpb(root, text, bytes, JSON_INDENT(1));
        text[bytes] = '\n';
        status = weft_write_file(t->ctx, path, text, bytes + 1);
    }
    weft__free(t->ctx, text);
    json_decref(root);
    return status;
}

/* ---- reading ---- */

static weft_status bad(weft_context *ctx, const char *name, const char *field, const char *why) {
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s: %s", name, field, why);
}

/* jansson would follow 2,048 levels and build each: only an object with an array in it can be a tokenizer. */
static bool is_flat(const char *json, size_t bytes) {
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
            if (++depth > 2) return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

static weft_status read_vocabulary(weft_tokenizer *t, const char *name, const json_t *root) {
    const json_t *list = json_object_get(root, "vocabulary");
    if (!t->type->listed) {
        if (list) return bad(t->ctx, name, "vocabulary", "this kind has none in its file");
        return t->type->build(t, NULL, 0, 0);
    }
    if (!json_is_array(list)) return bad(t->ctx, name, "vocabulary", "must be an array of strings");
    for (size_t id = 0; id < json_array_size(list); id++) {
        const json_t *token = json_array_get(list, id);
        if (!json_is_string(token))
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu is not a string", name, id);
        WEFT_TRY(weft__tokenizer_add(t, json_string_value(token), json_string_length(token)));
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
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "%s: version: %" PRId64 ", this Weft reads %d", name,
                          (int64_t)json_integer_value(version), VERSION);
    if (!kind_name || !weft_tokenizer_kind_parse(kind_name, &kind) ||
        strcmp(kind_name, weft_tokenizer_kind_name(kind)))
        return bad(ctx, name, "kind", "must be character, byte or word");
    weft_tokenizer *t = weft__tokenizer_new(ctx, kind);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a tokenizer");
    weft_status status = WEFT_OK;
    if (json_object_size(root) != (t->type->listed ? 4 : 3))
        status = bad(ctx, name, "fields", "must be format, version, kind, vocabulary");
    if (status == WEFT_OK) status = read_vocabulary(t, name, root);
    if (status == WEFT_OK) status = t->type->index(t, name);
    if (status != WEFT_OK) {
        weft_tokenizer_free(t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

static weft_status parse(weft_context *ctx, const char *name, const char *json, size_t bytes,
                         weft_tokenizer **out) {
    json_error_t error;
    if (!is_flat(json, bytes)) return bad(ctx, name, "JSON", "nested too deeply for a tokenizer");
    json_t *root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: line %d, byte %d: %.160s", name, error.line,
                          error.position, error.text);
    weft_status status = json_is_object(root) ? read_tokenizer(ctx, name, root, out)
                                              : bad(ctx, name, "JSON", "must be an object");
    json_decref(root);
    return status;
}

weft_status weft_tokenizer_parse(weft_context *ctx, const char *json, size_t bytes, weft_tokenizer **out) {
    if (!out || (!json && bytes)) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_parse: NULL");
    *out = NULL;
    return parse(ctx, "tokenizer", json ? json : "", bytes, out);
}

weft_status weft_tokenizer_load(weft_context *ctx, const char *path, weft_tokenizer **out) {
    if (!out) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_load: out is NULL");
    *out = NULL;
    if (!path) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_load: path is NULL");
    weft_bytes file = {0};
    WEFT_TRY(weft_read_file(ctx, path, FILE_MAX, &file));
    weft_status status = parse(ctx, path, (const char *)file.data, file.size, out);
    weft_bytes_free(ctx, &file);
    return status;
}
