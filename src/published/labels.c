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

static weft_status read_file(weft_context *ctx, const char *folder, char path[4096], weft_bytes *file) {
    WEFT_TRY(weft__published_path(ctx, folder, "config.json", path));
    return weft_read_file(ctx, path, CONFIG_MAX, file);
}

/* Opens config.json. The caller closes `json`, also after a failure. */
static weft_status open_config(weft_context *ctx, const char *folder, weft__json *json, json_t **root) {
    char path[4096];
    weft_bytes file;
    json_error_t error;
    weft__json_open(json, ctx);
    WEFT_TRY(read_file(ctx, folder, path, &file));
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
    json_t *root;
    *names = NULL;
    *count = 0;
    WEFT_TRY(weft__published_read(ctx, folder, &p));
    if (p.encoder.labels < 1) return WEFT_OK;
    weft_status status = open_config(ctx, folder, &json, &root);
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

typedef struct classes {
    const weft__published *p;
    char *const *names; /* NULL: LABEL_0, LABEL_1, ... */
    size_t count;
} classes;

static void change_classes(json_t *config, const void *user) {
    const classes *c = user;
    char *const *names = c->names;
    const size_t count = c->count;
    json_object_set_new(config, "architectures", json_pack("[s]", class_of(c->p)));
    json_object_set_new(config, "problem_type", json_string("single_label_classification"));
    if (!names && c->p->encoder.labels == (int64_t)count) return;
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
    char path[4096];
    weft_bytes file;
    WEFT_TRY(weft__published_read(ctx, folder, &p));
    WEFT_TRY(read_file(ctx, folder, path, &file));
    const weft_status status = weft__published_rewrite(ctx, (const char *)file.data, file.size, path,
                                                       change_classes, &(classes){&p, names, count});
    weft_bytes_free(ctx, &file);
    return status;
}
