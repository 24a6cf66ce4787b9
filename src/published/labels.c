/* The names of classes in config.json of an encoder: reads them, and writes those of a fine-tuned classifier.
 * Must not know: weights. Read next: encoders.c. */
#include <stdio.h>
#include <string.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/json.h"
#include "data/parse.h"
#include "published/published.h"

#define CONFIG_MAX ((size_t)1 << 20) /* bytes of config.json */

/* Opens config.json. The caller closes `json`, also after a failure. */
static weft_status open_config(weft_context *ctx, const char *folder, weft__json *json, char path[4096],
                               json_t **root) {
    weft_bytes file;
    json_error_t error;
    weft__json_open(json, ctx);
    WEFT_TRY(weft__published_path(ctx, folder, "config.json", path));
    WEFT_TRY(weft_read_file(ctx, path, CONFIG_MAX, &file));
    const weft_status status = weft__json_load(json, (const char *)file.data, file.size, 0, &error, root);
    weft_bytes_free(ctx, &file);
    if (status != WEFT_ERR_FORMAT) return status;
    return weft__fail(ctx, status, "%s: line %d: %.160s", path, error.line, error.text);
}

/* Packs the names of id2label. */
static weft_status pack_names(weft_context *ctx, const json_t *names, size_t count, char ***out) {
    enum { SPELLED = 32 };
    const char **list = weft__array(ctx, count, sizeof *list);
    char *spelled = weft__array(ctx, count, SPELLED);
    for (size_t i = 0; list && spelled && i < count; i++) {
        char key[24], *own = spelled + i * SPELLED;
        snprintf(key, sizeof key, "%zu", i);
        snprintf(own, SPELLED, "LABEL_%zu", i);
        const char *name = json_string_value(json_object_get(names, key));
        list[i] = name ? name : own;
    }
    *out = list && spelled ? weft__strings_pack(ctx, list, count) : NULL;
    weft__free(ctx, list);
    weft__free(ctx, spelled);
    return *out ? WEFT_OK : weft__fail_oom(ctx, count * SPELLED, "the names of classes");
}

weft_status weft__published_labels(weft_context *ctx, const char *folder, char ***names, size_t *count) {
    weft__published p;
    weft__json json;
    char path[4096];
    json_t *root;
    *names = NULL;
    *count = 0;
    WEFT_TRY(weft__published_read(ctx, folder, &p));
    if (p.encoder.labels < 1) return WEFT_OK;
    weft_status status = open_config(ctx, folder, &json, path, &root);
    if (status == WEFT_OK)
        status = pack_names(ctx, json_object_get(root, "id2label"), (size_t)p.encoder.labels, names);
    if (status == WEFT_OK) *count = (size_t)p.encoder.labels;
    weft__json_close(&json);
    return status;
}

/* The class of transformers that has the head which Weft computes. */
static const char *class_of(const weft__published *p) {
    if (p->names & DISTIL) return "DistilBertForSequenceClassification";
    return p->names & ROBERTA_HEAD ? "RobertaForSequenceClassification" : "BertForSequenceClassification";
}

/* Changes a copy of config.json. */
static void change_config(json_t *config, const weft__published *p, char *const *names, size_t count) {
    json_object_set_new(config, "architectures", json_pack("[s]", class_of(p)));
    json_object_set_new(config, "problem_type", json_string("single_label_classification"));
    if (!names && p->encoder.labels == (int64_t)count) return;
    json_t *by_id = json_object(), *by_name = json_object();
    for (size_t i = 0; i < count; i++) {
        char key[24], spelled[32];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(spelled, sizeof spelled, "LABEL_%zu", i);
        json_object_set_new(by_id, key, json_string(names ? names[i] : spelled));
        json_object_set_new(by_name, names ? names[i] : spelled, json_integer((json_int_t)i));
    }
    json_object_set_new(config, "id2label", by_id);
    json_object_set_new(config, "label2id", by_name);
    json_object_del(config, "num_labels");
}

weft_status weft__published_put_labels(weft_context *ctx, const char *folder, char *const *names,
                                       size_t count) {
    weft__published p;
    weft__json read, made;
    char path[4096], *text = NULL;
    size_t bytes = 0;
    json_t *root;
    WEFT_TRY(weft__published_read(ctx, folder, &p));
    weft_status status = open_config(ctx, folder, &read, path, &root);
    if (status == WEFT_OK) {
        weft__json_build(&made, ctx);
        json_t *config = json_deep_copy(root);
        change_config(config, &p, names, count);
        status = weft__json_text(&made, config, JSON_INDENT(2), "config.json", &text, &bytes);
    }
    weft__json_close(&read);
    if (status != WEFT_OK) return status;
    status = weft_write_file(ctx, path, text, bytes);
    weft__free(ctx, text);
    return status;
}
