/* Writes a model as a folder that transformers reads. Must not know: training. Read next: names.c. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/text.h"
#include "base/json.h"
#include "nn/module.h"
#include "ops/build.h"
#include "published/gguf.h"
#include "published/published.h"

#define FILE_MAX ((size_t)256 << 20) /* bytes of a copied file */

/* ---- weights ---- */

/* The part of a parameter that a tensor of the file holds. */
static weft_tensor *part_of(const weft__published *p, const weft__placed *placed, weft_tensor *t) {
    const int64_t heads = p->gpt.heads, d = placed->rows / (3 * heads), rest = t->rank > 1 ? t->shape[1] : 1;
    switch (placed->part) {
    case WEFT__PART_WHOLE:
    case WEFT__PART_FIRST: return t;
    case WEFT__PART_TRANSPOSED: return weft_transpose(t, 0, 1);
    case WEFT__PART_BY_HEAD: /* (3, heads, d, rest) to (heads, 3, d, rest) */
        t = weft_permute(weft_reshape(t, 4, (int64_t[]){3, heads, d, rest}), (int[]){1, 0, 2, 3});
        return rest > 1 ? weft_reshape(t, 2, (int64_t[]){placed->rows, rest})
                        : weft_reshape(t, 1, &placed->rows);
    case WEFT__PART_QUERIES:
    case WEFT__PART_KEYS:
    case WEFT__PART_VALUES:
    case WEFT__PART_GATE:
    case WEFT__PART_UP:
    case WEFT__PART_PLUS_ONE: /* only in GGUF files, as the next two */
    case WEFT__PART_TURNED_QUERIES:
    case WEFT__PART_TURNED_KEYS: break;
    }
    return weft_narrow(t, 0, placed->first, placed->rows);
}

/* Tensors with their names in the file. */
typedef struct saving {
    weft_named_tensor *list;
    char *names; /* [count] of NAME_BYTES each */
    size_t count;
} saving;

enum { NAME_BYTES = 192 };

static weft_status save_list(weft_module *model, const weft__published *p, weft_dtype dtype, saving *s) {
    weft_parameter_info parameter;
    weft__placed placed[WEFT__PARTS];
    for (size_t i = 0; weft_parameter_get(model, i, &parameter); i++) {
        if (weft__published_added(&parameter)) continue;
        const int count = weft__published_names(p, &parameter, placed);
        if (count == 0)
            return weft__fail(
                model->ctx, WEFT_ERR_ARGUMENT,
                "a model of type %s has no parameter '%s': was this module made by weft_published_new?",
                p->architecture->type, parameter.name);
        weft_tensor *merged = weft__whole_weight(parameter.module, parameter.tensor);
        if (parameter.tensor->rank == 2) merged = weft__lora_merged(parameter.module, merged);
        for (int j = 0; j < count; j++) {
            char *name = s->names + s->count * NAME_BYTES;
            weft_text text = weft__text(name, NAME_BYTES);
            weft__put(&text, "%s%s", placed[j].bare ? "" : p->prefix, placed[j].name);
            s->list[s->count++] =
                (weft_named_tensor){.name = name, .tensor = weft_cast(part_of(p, &placed[j], merged), dtype)};
        }
    }
    return WEFT_OK;
}

static weft_status save_weights(weft_module *model, const weft__published *p, weft_dtype dtype,
                                const char *path) {
    static const weft_metadata metadata = {"format", "pt"}; /* transformers requires it */
    weft_context *ctx = model->ctx;
    const size_t most = WEFT__PARTS * weft_parameter_count(model) + 1;
    saving s = {.list = weft__array(ctx, most, sizeof *s.list), .names = weft__array(ctx, most, NAME_BYTES)};
    weft_scope *scope = weft_scope_open(ctx);
    weft_entry *entries = NULL;
    weft_status status =
        s.list && s.names && scope ? WEFT_OK : weft__fail_oom(ctx, most * NAME_BYTES, "names");
    if (status == WEFT_OK) status = save_list(model, p, dtype, &s);
    if (status == WEFT_OK) status = weft_entries_new(ctx, s.list, s.count, &entries);
    if (status == WEFT_OK) status = weft_safetensors_write(ctx, path, entries, s.count, &metadata, 1);
    weft_entries_free(ctx, entries, s.count);
    weft_scope_close(scope);
    weft__free(ctx, s.list);
    weft__free(ctx, s.names);
    return status;
}

/* ---- the other files ---- */

int64_t weft__published_positions(const weft_module *model) {
    const weft_gpt_options *o = weft__gpt_options_of(model);
    return o && o->positions == WEFT_POSITION_LEARNED ? o->context : 0;
}

weft_status weft__published_rewrite(weft_context *ctx, const char *old, size_t old_bytes, const char *path,
                                    void (*change)(json_t *config, const void *user), const void *user) {
    weft__json read, made;
    json_error_t error;
    json_t *root;
    char *text;
    size_t bytes = 0;
    weft__json_open(&read, ctx);
    weft_status status = weft__json_load(&read, old, old_bytes, 0, &error, &root);
    if (status == WEFT_OK) {
        weft__json_build(&made, ctx);
        json_t *copy = json_deep_copy(root);
        change(copy, user);
        status = weft__json_text(&made, copy, JSON_INDENT(2), "config.json", &text, &bytes);
    }
    weft__json_close(&read);
    if (status != WEFT_OK) return status;
    status = weft_write_file(ctx, path, text, bytes);
    weft__free(ctx, text);
    return status;
}

/* What config.json says of the weights. */
typedef struct weights_of {
    weft_dtype dtype;
    int64_t positions; /* rows of the table of learned positions; 0: as the file says */
    bool untied;       /* the head has weights of its own, whatever the file says */
} weights_of;

static void change_weights(json_t *config, const void *user) {
    const weights_of *w = user;
    const char *name = w->dtype == WEFT_F16 ? "float16" : w->dtype == WEFT_BF16 ? "bfloat16" : "float32";
    json_object_set_new(config, json_object_get(config, "dtype") ? "dtype" : "torch_dtype",
                        json_string(name));
    if (w->untied) json_object_set_new(config, "tie_word_embeddings", json_false());
    for (int i = 0; w->positions && i < 2; i++) {
        const char *field = i ? "n_ctx" : "n_positions"; /* older files have both */
        if (i == 0 || json_object_get(config, field))
            json_object_set_new(config, field, json_integer((json_int_t)w->positions));
    }
}

/* Whether a file is one that describes the model, such as tokenizer.json: not hidden, and no weights. */
static bool is_copied(const char *name) {
    static const char *const weights[] = {"*.safetensors", "*.bin",        "*.gguf", "*.pt",     "*.pth",
                                          "*.h5",          "*.index.json", "*.onnx", "*.msgpack"};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (weft__matches(weights[i], name)) return false;
    return name[0] != '.';
}

static weft_status copy_file(weft_context *ctx, const char *from, const char *to, const char *name,
                             const weights_of *weights) {
    char source[4096], target[4096];
    struct stat kind;
    weft_bytes file;
    WEFT_TRY(weft__published_path(ctx, from, name, source));
    WEFT_TRY(weft__published_path(ctx, to, name, target));
    if (stat(source, &kind) != 0 || !S_ISREG(kind.st_mode)) return WEFT_OK;
    WEFT_TRY(weft_read_file(ctx, source, FILE_MAX, &file));
    const weft_status status = strcmp(name, "config.json") == 0
                                   ? weft__published_rewrite(ctx, (const char *)file.data, file.size, target,
                                                             change_weights, weights)
                                   : weft_write_file(ctx, target, file.data, file.size);
    weft_bytes_free(ctx, &file);
    return status;
}

/* Writes a text to a file of a folder. */
static weft_status save_text(weft_context *ctx, const char *folder, const char *name, const char *text,
                             size_t bytes) {
    char target[4096];
    WEFT_TRY(weft__published_path(ctx, folder, name, target));
    return weft_write_file(ctx, target, text, bytes);
}

/* Writes the tokenizer of a GGUF file. One that Weft cannot read is left out. */
static weft_status copy_tokenizer(weft_context *ctx, const char *from, const weft__gguf *gguf,
                                  const char *to) {
    weft__gguf_files files;
    weft_status status = weft__gguf_tokenizer(ctx, from, gguf, &files);
    if (status == WEFT_ERR_FORMAT) return WEFT_OK;
    if (status == WEFT_OK)
        status = save_text(ctx, to, "tokenizer.json", files.tokenizer, files.tokenizer_bytes);
    if (status == WEFT_OK)
        status = save_text(ctx, to, "tokenizer_config.json", files.config, files.config_bytes);
    weft__gguf_files_free(ctx, &files);
    return status;
}

/* Writes the metadata of a GGUF file as config.json and the files of its tokenizer. */
static weft_status copy_gguf(weft_context *ctx, const char *from, const char *to, const weights_of *weights) {
    char target[4096];
    weft__gguf *gguf;
    char *text = NULL;
    size_t bytes = 0;
    unsigned names;
    WEFT_TRY(weft__published_path(ctx, to, "config.json", target));
    WEFT_TRY(weft__gguf_open(ctx, from, &gguf));
    weft_status status = weft__gguf_config(ctx, from, gguf, &names, &text, &bytes);
    if (status == WEFT_OK)
        status = weft__published_rewrite(ctx, text, bytes, target, change_weights, weights);
    if (status == WEFT_OK) status = copy_tokenizer(ctx, from, gguf, to);
    weft__gguf_close(gguf);
    weft__free(ctx, text);
    return status;
}

weft_status weft__published_copy(weft_context *ctx, const char *from, const char *to, weft_dtype dtype,
                                 int64_t positions, bool untied) {
    const weights_of weights = {dtype, positions, untied};
    if (mkdir(to, 0777) != 0 && errno != EEXIST)
        return weft__fail(ctx, WEFT_ERR_IO, "%s: the folder cannot be made: %s", to, strerror(errno));
    if (weft__is_gguf(from)) return copy_gguf(ctx, from, to, &weights);
    DIR *folder = opendir(from);
    if (!folder) return weft__fail(ctx, WEFT_ERR_IO, "%s: %s", from, strerror(errno));
    weft_status status = WEFT_OK;
    for (const struct dirent *entry; status == WEFT_OK && (entry = readdir(folder));)
        if (is_copied(entry->d_name)) status = copy_file(ctx, from, to, entry->d_name, &weights);
    closedir(folder);
    return status;
}

void weft__published_uncopy(const char *from, const char *to) {
    static const char *const of_gguf[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    char path[4096];
    DIR *folder = opendir(from);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_copied(entry->d_name) && weft__join(path, sizeof path, to, entry->d_name)) unlink(path);
    for (size_t i = 0; !folder && i < sizeof of_gguf / sizeof *of_gguf; i++)
        if (weft__join(path, sizeof path, to, of_gguf[i])) unlink(path);
    if (folder) closedir(folder);
    rmdir(to);
}

weft_status weft_published_save(weft_module *model, const char *from, const char *to, weft_dtype dtype) {
    WEFT_NEED(NULL, model);
    weft_context *ctx = model->ctx;
    WEFT_NEED(ctx, from);
    WEFT_NEED(ctx, to);
    weft__published p;
    char path[4096];
    WEFT_TRY(weft_module_status(model));
    if (dtype != WEFT_F32 && dtype != WEFT_F16 && dtype != WEFT_BF16)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_published_save: the dtype is f32, f16 or bf16, not %s",
                          weft_dtype_name(dtype));
    WEFT_TRY(weft__published_read(ctx, from, &p));
    p.names = p.architecture->names; /* those of a GGUF file are others */
    p.prefix = p.architecture->prefix;
    WEFT_TRY(weft__published_copy(ctx, from, to, dtype, weft__published_positions(model), p.gpt.untied_head));
    WEFT_TRY(weft__published_path(ctx, to, "model.safetensors", path));
    return save_weights(model, &p, dtype, path);
}
