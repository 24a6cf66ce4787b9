/* Reads back what an export wrote. The files must describe the same model, with all its tensors, and give the
 * logits of a few tokens. Layers of the files are in memory one at a time, so that large models fit.
 * Must not know: how files are written. Read next: export_published.c. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include <weft/data.h>
#include <weft/ops.h>

#include "base/json.h"
#include "io/publish.h"
#include "nn/module.h"
#include "published/gguf.h"
#include "published/packed.h"
#include "published/published.h"
#include "published/quantize.h"
#include "train/export/export.h"

enum { TOKENS = 8 };

/* What a model answers to the tokens: logits, or the states of an encoder. */
typedef struct answer {
    weft_context *ctx;
    int64_t tokens, vocabulary, labels;
    float *values;
    int64_t count;
} answer;

/* Computes a module, or a part of its layers that begins with the states in *a. */
static weft_status take_answer(weft_module *m, bool states, answer *a) {
    int32_t ids[TOKENS];
    const weft_gpt_options *o = weft__gpt_options_of(m);
    weft_scope *scope = weft_scope_open(a->ctx);
    if (!scope) return weft__fail_oom(a->ctx, 0, "a scope");
    for (int i = 0; i < TOKENS; i++) ids[i] = (int32_t)((2 * i + 1) * a->vocabulary / (2 * TOKENS));
    const int64_t shape[3] = {1, a->tokens, a->tokens ? a->count / a->tokens : 0};
    weft_tensor *x = states ? weft_from(a->ctx, WEFT_F32, 3, shape, a->values)
                            : weft_from(a->ctx, WEFT_I32, 2, shape, ids);
    weft_tensor *y = weft_cast(weft_forward(m, x), WEFT_F32);
    if (o && weft_tensor_status(y) == WEFT_OK && y->shape[2] == o->vocab)
        y = weft_narrow(y, 2, 0, o->tokens); /* other rows stand for no token */
    weft_status status = weft_tensor_status(y);
    float *values = status == WEFT_OK ? weft__array(a->ctx, (size_t)y->numel, sizeof *values) : NULL;
    if (status == WEFT_OK && !values) status = weft__fail_oom(a->ctx, (size_t)y->numel, "logits");
    if (status == WEFT_OK) status = weft_read(y, values, (size_t)y->numel * sizeof *values);
    weft__free(a->ctx, a->values);
    a->values = values;
    a->count = values ? y->numel : 0;
    weft_scope_close(scope);
    return status;
}

/* Loads the layers first to end - 1, all of an encoder, and computes them. `file`: weights in GPT-2's format
 * beside the config.json of the folder. */
static weft_status answer_part(const char *path, const char *file, int64_t context, int64_t layer,
                               answer *a) {
    weft_module *m =
        weft_published_new(a->ctx, path, &(weft_published_options){.context = context, .labels = a->labels});
    weft_status status = weft_module_status(m);
    if (status == WEFT_OK && weft__gpt_options_of(m) && !file) weft__gpt_keep(m, layer, layer + 1);
    if (status == WEFT_OK) status = file ? weft_gpt_load(m, file) : weft_published_load(m, path);
    weft_module_set_training(m, false);
    if (status == WEFT_OK) status = take_answer(m, layer > 0, a);
    weft_module_free(m);
    return status;
}

static weft_status answer_files(const char *path, const char *file, const weft__published *p, int64_t context,
                                answer *a) {
    const bool learned = p->encodes || p->gpt.positions == WEFT_POSITION_LEARNED;
    const int64_t layers = p->encodes || file ? 1 : p->gpt.layers, most = learned ? p->context : context;
    for (int64_t i = 0; i < layers; i++) WEFT_TRY(answer_part(path, file, most, i, a));
    return WEFT_OK;
}

/* Compares the root mean square of the difference with that of the first answer. */
static weft_status compare(const answer *a, const answer *b, double within, const char *path) {
    double off = 0, size = 0;
    bool same = a->count == b->count;
    for (int64_t i = 0; same && i < a->count; i++) {
        const double x = (double)a->values[i], y = (double)b->values[i];
        if (isfinite(x) && isfinite(y)) {
            off += (x - y) * (x - y);
            size += x * x;
        } else {
            same = (isnan(x) && isnan(y)) || x == y;
        }
    }
    if (same && sqrt(off) <= within * sqrt(size)) return WEFT_OK;
    if (!same) off = size = 1;
    return weft__fail(a->ctx, WEFT_ERR_NUMERIC,
                      "%s: the logits of %lld tokens differ from the model's by %.2g of their size; at most "
                      "%.2g is right for this format",
                      path, (long long)a->tokens, size > 0 ? sqrt(off / size) : 1, within);
}

/* What the tokens do not show: windows and the other list of divisors of LongRoPE. */
static weft_status compare_options(weft_context *ctx, const weft__published *a, const weft__published *b,
                                   const char *path) {
    const weft_attention_form *form = &a->gpt.form;
    const bool windows = form->window == b->gpt.form.window && a->gpt.window_except == b->gpt.window_except;
    const bool lists = weft__longrope_count(a) > 0 && weft__longrope_count(b) > 0;
    const bool same = a->encodes == b->encodes && a->gpt.vocab == b->gpt.vocab &&
                      (windows || (b->gpt.form.window == 0 && b->context <= form->window)) &&
                      (!lists || memcmp(a->longrope, b->longrope, sizeof a->longrope) == 0);
    return same ? WEFT_OK
                : weft__fail(ctx, WEFT_ERR_FORMAT,
                             "%s: vocabulary, windows or scaled positions are not those of the model", path);
}

/* Whether two tokenizers make the same tokens of a text, or both of them none, because they lack a letter. */
static weft_status compare_tokens(const weft_tokenizer *a, const weft_tokenizer *b, const char *text,
                                  bool *same) {
    enum { MOST = 256 };
    int32_t ids[2][MOST];
    size_t counts[2];
    const size_t bytes = strlen(text);
    const weft_status one = weft_tokenizer_encode_special(a, text, bytes, ids[0], MOST, &counts[0]),
                      other = weft_tokenizer_encode_special(b, text, bytes, ids[1], MOST, &counts[1]);
    if (one == WEFT_ERR_OOM || other == WEFT_ERR_OOM) return WEFT_ERR_OOM;
    *same =
        one == other &&
        (one != WEFT_OK || (counts[0] == counts[1] && memcmp(ids[0], ids[1], counts[0] * sizeof **ids) == 0));
    return WEFT_OK;
}

/* GGUF files may hold a tokenizer that Weft does not read. */
static weft_status compare_tokenizers(weft_context *ctx, const char *from, const char *path) {
    static const char *const texts[] = {"The weft goes 12 times\nover the warp: \xc3\xbc, 3.5", "a"};
    weft_tokenizer *a, *b;
    weft_status status = weft_published_tokenizer(ctx, from, &a);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? status : WEFT_OK;
    status = weft_published_tokenizer(ctx, path, &b);
    for (size_t i = 0; status == WEFT_OK && i < sizeof texts / sizeof *texts; i++) {
        bool same = true;
        status = compare_tokens(a, b, texts[i], &same);
        if (status == WEFT_OK && !same)
            status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: its tokenizer makes other tokens than that of %s",
                                path, from);
    }
    weft_tokenizer_free(a);
    weft_tokenizer_free(b);
    return status;
}

/* Compares the dtypes of the weights with the format. In a GGUF file vectors and positions are f32, and the
 * head may have more bits. */
static weft_status check_dtypes(weft_context *ctx, const char *path, const char *format) {
    const bool gguf = weft__is_gguf(path);
    weft_status status = WEFT_OK;
    weft__format own, head;
    weft__tensors *tensors;
    weft__tensor_at at;
    WEFT_TRY(weft__tensors_open(ctx, path, &tensors));
    for (size_t i = 0; status == WEFT_OK && weft__tensors_get(tensors, i, &at); i++) {
        const bool plain = gguf && (at.rank == 1 || strcmp(at.name, "position_embd.weight") == 0);
        weft__format_find(plain ? "f32" : format, &own);
        weft__format_find(own.head, &head);
        if (at.rank == 2) weft__format_fit(&own, at.shape[1]);
        if (at.rank == 2) weft__format_fit(&head, at.shape[1]);
        if (strcasecmp(at.dtype, own.word) != 0 && strcasecmp(at.dtype, head.word) != 0)
            status =
                weft__fail(ctx, WEFT_ERR_FORMAT, "%s: '%s' is %s, not %s", path, at.name, at.dtype, own.word);
    }
    weft__tensors_close(tensors);
    return status;
}

/* Reads both models, and sets what both are asked for. */
static weft_status check_models(weft_module *model, const char *from, const char *path, const char *file,
                                const weft__format *how, answer *a, answer *b) {
    weft__published p = {0}, q;
    const weft_gpt_options *o = weft__gpt_options_of(model);
    const weft_encoder_options *e = weft__encoder_options_of(model);
    WEFT_TRY(weft__published_read(a->ctx, path, &q));
    WEFT_TRY(check_dtypes(a->ctx, file ? file : path, how->word));
    if (from) {
        WEFT_TRY(weft__published_read(a->ctx, from, &p));
        WEFT_TRY(compare_options(a->ctx, &p, &q, path));
        WEFT_TRY(compare_tokenizers(a->ctx, from, path));
    }
    const int64_t context = weft__smaller(o ? o->context : e ? e->context : p.context, q.context);
    a->tokens = weft__smaller(context, TOKENS);
    a->vocabulary = o ? o->tokens : q.gpt.vocab;
    a->labels = e && e->classifies ? e->labels : 0;
    *b = *a;
    if (model) WEFT_TRY(weft_module_compute(model, WEFT_F32));
    WEFT_TRY(model ? take_answer(model, false, a) : answer_files(from, NULL, &p, context, a));
    WEFT_TRY(answer_files(path, file, &q, context, b));
    return compare(a, b, how->within, path);
}

static weft_status check_in(weft_context *ctx, weft_module *model, const char *from, const char *path,
                            const char *file, const char *format) {
    weft__format how;
    answer a = {.ctx = ctx}, b = {.ctx = ctx};
    weft__format_find(format, &how);
    const weft_status status = check_models(model, from, path, file, &how, &a, &b);
    weft__free(ctx, a.values);
    weft__free(ctx, b.values);
    return status;
}

weft_status weft__export_check(weft_module *model, const char *from, const char *path, const char *file,
                               const char *format) {
    weft_context *ctx;
    if (weft__is_stream(file ? file : path)) return WEFT_OK;
    if (model) return check_in(model->ctx, model, from, path, file, format);
    WEFT_TRY(weft_open(&(weft_open_options){.device = "cpu"}, &ctx));
    const weft_status status = check_in(ctx, NULL, from, path, file, format);
    if (status != WEFT_OK) weft__fail(NULL, status, "%s", weft_last_error(ctx));
    weft_close(ctx);
    return status;
}

/* ---- adapters ---- */

typedef struct adapters_check {
    weft_context *ctx;
    const char *path;
    const weft__published *p;
    weft__tensors *file, *base; /* base NULL: its tensors have other names */
    size_t found;
    double rank, alpha; /* as the export says; rank 0: it does not */
} adapters_check;

/* Reads alpha from a GGUF file, or r and lora_alpha from peft's configuration. */
static weft_status read_scale(adapters_check *c, const char *config) {
    weft__gguf *gguf;
    weft__gguf_value value;
    weft_bytes text;
    weft__json json;
    json_error_t error;
    json_t *root;
    if (!config) {
        WEFT_TRY(weft__gguf_open(c->ctx, c->path, &gguf));
        if (weft__gguf_find(gguf, "adapter.lora.alpha", &value)) weft__gguf_number(&value, &c->alpha);
        weft__gguf_close(gguf);
        return WEFT_OK;
    }
    WEFT_TRY(weft_read_file(c->ctx, config, 1 << 20, &text));
    weft__json_open(&json, c->ctx);
    weft_status status = weft__json_load(&json, (const char *)text.data, text.size, 0, &error, &root);
    if (status == WEFT_OK) {
        c->rank = json_number_value(json_object_get(root, "r"));
        c->alpha = json_number_value(json_object_get(root, "lora_alpha"));
    } else if (status == WEFT_ERR_FORMAT) {
        status = weft__fail(c->ctx, status, "%s: %s", config, error.text);
    }
    weft__json_close(&json);
    weft_bytes_free(c->ctx, &text);
    return status;
}

/* Compares a matrix of an adapter with that of the file. Rows of B are in the order of the layer's rows. */
static weft_status compare_matrix(adapters_check *c, const weft_parameter_info *info,
                                  const weft__placed *placed, const weft__tensor_at *at) {
    const weft_tensor *t = info->tensor;
    const int64_t rows = t->shape[0], columns = t->shape[1];
    const size_t bytes = (size_t)t->numel * sizeof(float);
    const char *dtype = c->p->names & GGUF ? "f32" : weft_dtype_name((weft_dtype)t->dtype);
    if (at->rank != 2 || at->shape[0] != rows || at->shape[1] != columns || strcasecmp(at->dtype, dtype) != 0)
        return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: '%s' has another shape or dtype than the adapter",
                          c->path, at->name);
    float *values = weft__alloc(c->ctx, bytes), *read = weft__alloc(c->ctx, 2 * bytes);
    weft_scope *scope = weft_scope_open(c->ctx);
    weft_status status = values && read && scope ? weft_read(weft_cast(info->tensor, WEFT_F32), values, bytes)
                                                 : weft__fail_oom(c->ctx, bytes, "an adapter");
    if (status == WEFT_OK) status = weft__tensors_rows(c->file, at, 0, rows, read + t->numel, read);
    for (int64_t i = 0; status == WEFT_OK && i < rows; i++) {
        const int64_t row = placed ? weft__published_row(c->p, placed, i) - placed->first : i;
        if (memcmp(values + row * columns, read + i * columns, (size_t)columns * sizeof *read) != 0)
            status =
                weft__fail(c->ctx, WEFT_ERR_NUMERIC, "%s: '%s' differs from the adapter", c->path, at->name);
    }
    weft_scope_close(scope);
    weft__free(c->ctx, values);
    weft__free(c->ctx, read);
    return status;
}

static weft_status compare_adapter(adapters_check *c, weft_module *model, const weft_parameter_info *info) {
    char name[256];
    weft__placed placed;
    weft__tensor_at at;
    const bool gguf = c->p->names & GGUF, is_b = strstr(info->name, ".lora_B.");
    const weft__lora form = weft__lora_form(info->module->parent);
    const double alpha = form.scale * (double)form.rank;
    WEFT_TRY(weft__lora_placed(c->p, model, info->module->parent, &placed));
    if (fabs(c->alpha - alpha) > 1e-6 * alpha || (!gguf && c->rank != (double)form.rank))
        return weft__fail(c->ctx, WEFT_ERR_FORMAT,
                          "%s: the adapter of '%s' has the rank %lld and the alpha %g, but "
                          "the export says %g and %g",
                          c->path, placed.name, (long long)form.rank, alpha, c->rank, c->alpha);
    const int layer = (int)(strlen(placed.name) - strlen(".weight"));
    if (gguf)
        snprintf(name, sizeof name, "%s.lora_%c", placed.name, is_b ? 'b' : 'a');
    else
        snprintf(name, sizeof name, "base_model.model.%s%.*s.lora_%c.weight", c->p->prefix, layer,
                 placed.name, is_b ? 'B' : 'A');
    if (!weft__tensors_find(c->file, name, &at))
        return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: the adapter '%s' is missing", c->path, name);
    c->found++;
    WEFT_TRY(compare_matrix(c, info, is_b && gguf ? &placed : NULL, &at));
    if (!c->base || weft__published_find(c->p, c->base, &placed, &at)) return WEFT_OK;
    return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: the model has no '%s' for '%s'", c->path, placed.name,
                      name);
}

static weft_status compare_adapters(adapters_check *c, weft_module *model) {
    weft_parameter_info info;
    weft__tensor_at at;
    for (size_t i = 0; weft_parameter_get(model, i, &info); i++)
        if (strstr(info.name, ".lora_")) WEFT_TRY(compare_adapter(c, model, &info));
    return weft__tensors_get(c->file, c->found, &at)
               ? weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: a tensor of the file is no adapter", c->path)
               : WEFT_OK;
}

weft_status weft__export_check_adapters(weft_module *model, const char *from, const char *base,
                                        const char *path, const char *config) {
    weft__published p;
    if (weft__is_stream(path)) return WEFT_OK;
    WEFT_TRY(weft__published_read(model->ctx, from, &p));
    if (!config) WEFT_TRY(weft__gguf_use_names(model->ctx, from, &p));
    adapters_check c = {.ctx = model->ctx, .path = path, .p = &p};
    weft_status status = weft__tensors_open(c.ctx, path, &c.file);
    if (status == WEFT_OK) status = read_scale(&c, config);
    if (status == WEFT_OK && weft__is_gguf(base) == !config)
        status = weft__tensors_open(c.ctx, base, &c.base);
    if (status == WEFT_OK) status = compare_adapters(&c, model);
    weft__tensors_close(c.file);
    weft__tensors_close(c.base);
    return status;
}

/* ---- C source ---- */

/* Moves behind a comment, a string or one character. */
static const char *behind(const char *at) {
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    if (*at != '"') return at + 1;
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* Whether each bracket is closed by one of its kind. */
static bool is_closed(const char *source) {
    enum { DEEPEST = 64 };
    char open[DEEPEST];
    int depth = 0;
    for (const char *at = source; *at; at = behind(at)) {
        const char closes = *at == '(' ? ')' : *at == '[' ? ']' : *at == '{' ? '}' : '\0';
        if (closes && depth == DEEPEST) return false;
        if (closes)
            open[depth++] = closes;
        else if ((*at == ')' || *at == ']' || *at == '}') && (depth == 0 || open[--depth] != *at))
            return false;
    }
    return depth == 0;
}

/* Whether the source defines the function whose name, of so many bytes, begins at `name`. */
static bool defines(const char *source, const char *name, size_t bytes) {
    for (const char *at = source; *at; at = behind(at)) {
        if (strncmp(at, name, bytes) != 0 || at[bytes] != '(') continue;
        const char *end = strchr(at, ')');
        if (end && strncmp(end, ") {", 3) == 0) return true;
    }
    return false;
}

weft_status weft__export_check_source(const char *path, const char *header, const char *body,
                                      const char *name) {
    const size_t bytes = strlen(name);
    if (!is_closed(header) || !is_closed(body))
        return weft__fail(NULL, WEFT_ERR_INTERNAL, "%s: a bracket of the source is not closed", path);
    for (const char *at = header; *at; at = behind(at)) {
        size_t end = bytes;
        if (strncmp(at, name, bytes) != 0 || at[bytes] != '_') continue;
        while (isalnum((unsigned char)at[end]) || at[end] == '_') end++;
        if (at[end] == '(' && !defines(body, at, end))
            return weft__fail(NULL, WEFT_ERR_INTERNAL, "%s: the source lacks the function %.*s", path,
                              (int)end, at);
    }
    return WEFT_OK;
}
