/* Reads the chat template of a folder of Hugging Face, and the special tokens that are its variables.
 *
 * Must not know: how templates run. Read next: chat.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "text/template/chat.h"

#define PATH_BYTES 4096
#define FILE_MAX   ((size_t)64 << 20)

/* A JSON file of the folder. */
typedef struct json_file {
    char path[PATH_BYTES];
    weft__json json;
    json_t *root; /* an object; NULL: the file is not there */
} json_file;

static weft_status open_json(weft_context *ctx, const char *folder, const char *name, json_file *f) {
    weft_bytes bytes = {0};
    json_error_t error;
    weft__json_open(&f->json, ctx);
    f->root = NULL;
    if (!weft__join(f->path, sizeof f->path, folder, name))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    if (access(f->path, F_OK) != 0) return WEFT_OK;
    WEFT_TRY(weft_read_file(ctx, f->path, FILE_MAX, &bytes));
    weft_status status = weft__json_load(&f->json, (const char *)bytes.data, bytes.size,
                                         JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error, &f->root);
    weft_bytes_free(ctx, &bytes);
    if (status == WEFT_ERR_FORMAT)
        return weft__fail(ctx, status, "%s: line %d, byte %d: %.160s", f->path, error.line, error.position,
                          error.text);
    if (status == WEFT_OK && !json_is_object(f->root))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: must be an object", f->path);
    return status;
}

/* Finds the template in tokenizer_config.json. NULL: there is none. */
static weft_status find_template(weft_context *ctx, const json_file *f, const json_t **out) {
    const json_t *found = json_object_get(f->root, "chat_template");
    *out = NULL;
    if (!found) return WEFT_OK;
    if (json_is_null(found)) return WEFT_OK;
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        const json_t *item = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0) *out = json_object_get(item, "template");
    }
    if (json_string_value(found)) *out = found;
    if (json_string_value(*out)) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: chat_template must be a string, or a list with a template of the name 'default'",
                      f->path);
}

/* Copies the text of the template, and writes to `path` where it is. *text is NULL if there is none. */
static weft_status copy_template(weft_context *ctx, const char *folder, const json_file *config,
                                 char path[PATH_BYTES + 32], char **text, size_t *bytes) {
    weft_bytes file = {0};
    const json_t *found = NULL;
    *text = NULL;
    if (!weft__join(path, PATH_BYTES + 32, folder, "chat_template.jinja"))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    const bool own = access(path, F_OK) == 0;
    if (own) WEFT_TRY(weft_read_file(ctx, path, JINJA_SOURCE_MAX + 1, &file));
    if (!own) {
        WEFT_TRY(find_template(ctx, config, &found));
        if (!found) return WEFT_OK;
        snprintf(path, PATH_BYTES + 32, "%s: chat_template", config->path);
    }
    *bytes = own ? file.size : json_string_length(found);
    *text = weft__alloc(ctx, *bytes + 1);
    if (*text) memcpy(*text, own ? (const char *)file.data : json_string_value(found), *bytes);
    weft_bytes_free(ctx, &file);
    if (!*text) return weft__fail_oom(ctx, *bytes, "a chat template");
    (*text)[*bytes] = '\0';
    return WEFT_OK;
}

static weft_status read_template(weft_context *ctx, const char *folder, const json_file *config,
                                 weft_chat_template **out) {
    char path[PATH_BYTES + 32], *text;
    size_t bytes = 0;
    WEFT_TRY(copy_template(ctx, folder, config, path, &text, &bytes));
    if (!text)
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: no chat template: neither chat_template.jinja nor chat_template in "
                          "tokenizer_config.json. A model that was not trained for chats has none",
                          folder);
    const weft_status status = weft_chat_template_new(ctx, text, bytes, path, out);
    weft__free(ctx, text);
    return status;
}

weft_status weft__chat_template_text(weft_context *ctx, const char *folder, char **text, size_t *bytes) {
    char path[PATH_BYTES + 32];
    json_file config;
    *text = NULL;
    weft_status status = open_json(ctx, folder, "tokenizer_config.json", &config);
    if (status == WEFT_OK) status = copy_template(ctx, folder, &config, path, text, bytes);
    weft__json_close(&config.json);
    return status;
}

/* Sets a variable for each key that ends in "_token" and has a text, or an object with the text "content". */
static weft_status set_tokens(weft_chat_template *chat, const json_t *root) {
    static const char suffix[] = "_token";
    json_t *object = (json_t *)(uintptr_t)root; /* jansson's iterators take no const */
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        const size_t bytes = strlen(key);
        if (bytes < sizeof suffix || strcmp(key + bytes - (sizeof suffix - 1), suffix) != 0) continue;
        if (json_is_object(value)) value = json_object_get(value, "content");
        if (!json_is_string(value)) continue;
        WEFT_TRY(weft__chat_set(chat, key, json_string_value(value), json_string_length(value)));
    }
    return WEFT_OK;
}

weft_status weft_chat_template_load(weft_context *ctx, const char *folder, weft_chat_template **out) {
    json_file config, map;
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, folder);
    weft_status status = open_json(ctx, folder, "tokenizer_config.json", &config);
    if (status == WEFT_OK) status = read_template(ctx, folder, &config, out);
    if (status == WEFT_OK) {
        status = open_json(ctx, folder, "special_tokens_map.json", &map);
        if (status == WEFT_OK) status = set_tokens(*out, map.root);
        weft__json_close(&map.json);
    }
    if (status == WEFT_OK) status = set_tokens(*out, config.root);
    weft__json_close(&config.json);
    if (status != WEFT_OK) {
        weft_chat_template_free(*out);
        *out = NULL;
    }
    return status;
}
