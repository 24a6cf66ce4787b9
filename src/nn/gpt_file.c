/* Files of weights in the format in which GPT-2 was published:
 *   - names may begin with "transformer.";
 *   - matrices of blocks are (in, out), the transpose of Weft's (out, in);
 *   - entries that are no weights, such as attention masks, are skipped;
 *   - a head that equals the token table is skipped.
 *
 * Must not know: the bytes of safetensors, training. Read next: decode.c. */
#include <stdio.h>
#include <string.h>

#include "nn/module.h"
#include "ops/build.h"

#define PREFIX "transformer."

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Whether the published files store this matrix transposed. */
static bool is_crossed(const char *name) {
    return strncmp(name, "h.", 2) == 0 && (ends_in(name, ".c_attn.weight") ||
                                           ends_in(name, ".c_proj.weight") || ends_in(name, ".c_fc.weight"));
}

/* ---- reading ---- */

typedef struct reading {
    weft_context *ctx;
    weft_safetensors *file;
    const char *path;
    bool crossed; /* the file stores matrices transposed, as published */
} reading;

static bool gpt_file_find(const reading *r, const char *name, size_t *at, weft_entry_info *info) {
    char longer[WEFT_ENTRY_NAME_MAX];
    int n = snprintf(longer, sizeof longer, PREFIX "%s", name);
    if (!weft_safetensors_find(r->file, name, at) &&
        (n < 0 || (size_t)n >= sizeof longer || !weft_safetensors_find(r->file, longer, at)))
        return false;
    return weft_safetensors_entry(r->file, *at, info);
}

/* Finds the entry of a parameter and checks its shape. A missing head is the token table. */
static weft_status entry_of(const reading *r, const weft_parameter_info *p, size_t *at,
                            weft_entry_info *info) {
    const weft_tensor *t = p->tensor;
    char there[WEFT_SHAPE_TEXT], here[WEFT_SHAPE_TEXT];
    const bool table = strcmp(p->name, "wte.weight") == 0, head = strcmp(p->name, "lm_head.weight") == 0;
    if (!gpt_file_find(r, p->name, at, info) && !(head && gpt_file_find(r, "wte.weight", at, info)))
        return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: the file has no tensor '%s'", r->path, p->name);
    const int last = t->rank - 1, crossed = r->crossed && is_crossed(p->name);
    bool same = info->rank == t->rank && (info->dtype == WEFT_F32 || info->dtype == WEFT_F16 ||
                                          info->dtype == WEFT_BF16 || info->dtype == WEFT_F64);
    if (same) same = info->shape[crossed ? 0 : last] == t->shape[last];
    if (same && last > 0) {
        const int64_t rows = info->shape[crossed ? 1 : 0];
        same = rows == t->shape[0] || ((table || head) && rows > 0 && rows < t->shape[0]) ||
               (strcmp(p->name, "wpe.weight") == 0 && rows > t->shape[0]);
    }
    if (same) return WEFT_OK;
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: '%s' is %s %s, but this model has %s%s", r->path,
                      info->name, weft_dtype_name(info->dtype),
                      weft__shape_text(info->rank, info->shape, there), weft__tensor_text(t, here),
                      crossed ? " transposed" : "");
}

/* Whether some parameter has this name, or the entry is known to be no weight. */
static bool is_known(weft_module *gpt, const char *name) {
    weft_parameter_info info;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0) name += sizeof PREFIX - 1;
    return weft_parameter_find(gpt, name, &info) || ends_in(name, ".attn.bias") ||
           ends_in(name, ".attn.masked_bias") || strcmp(name, "lm_head.weight") == 0;
}

static weft_status gpt_file_check(const reading *r, weft_module *gpt) {
    weft_parameter_info p;
    weft_entry_info info;
    size_t at;
    for (size_t i = 0; weft_parameter_get(gpt, i, &p); i++) WEFT_TRY(entry_of(r, &p, &at, &info));
    for (size_t i = 0; weft_safetensors_entry(r->file, i, &info); i++)
        if (!is_known(gpt, info.name))
            return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                              "%s: '%s' is not a tensor of this model: does the model have fewer layers?",
                              r->path, info.name);
    return WEFT_OK;
}

static void gpt_file_store(weft_dtype dtype, void *to, int64_t i, double value) {
    if (dtype == WEFT_F64)
        ((double *)to)[i] = value;
    else if (dtype == WEFT_F32)
        ((float *)to)[i] = (float)value;
    else
        ((uint16_t *)to)[i] =
            dtype == WEFT_F16 ? weft_f32_to_f16((float)value) : weft_f32_to_bf16((float)value);
}

/* Fills a parameter. Rows of the token table that the file lacks become the mean of its rows, so that these
 * tokens are about as likely as any other. */
static void convert(const weft_tensor *t, const weft_entry_info *info, bool crossed, const void *from,
                    void *to) {
    const weft_dtype dtype = (weft_dtype)t->dtype;
    const int64_t columns = t->shape[t->rank - 1], rows = t->rank > 1 ? t->shape[0] : 1;
    const int64_t there = t->rank == 1 ? 1 : crossed ? info->shape[1] : info->shape[0];
    for (int64_t i = 0; i < weft__smaller(rows, there); i++)
        for (int64_t j = 0; j < columns; j++)
            gpt_file_store(dtype, to, i * columns + j,
                           weft__element(info->dtype, from, crossed ? j * there + i : i * columns + j));
    for (int64_t j = 0; there < rows && j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < there; i++) sum += weft__element(info->dtype, from, i * columns + j);
        for (int64_t i = there; i < rows; i++)
            gpt_file_store(dtype, to, i * columns + j, sum / (double)there);
    }
}

static weft_status gpt_file_fill(const reading *r, const weft_parameter_info *p) {
    const size_t bytes = (size_t)p->tensor->numel * weft_dtype_size((weft_dtype)p->tensor->dtype);
    weft_entry_info info;
    size_t at;
    WEFT_TRY(entry_of(r, p, &at, &info));
    void *from = weft__alloc(r->ctx, info.bytes + 1), *to = weft__alloc(r->ctx, bytes + 1);
    weft_status status = from && to ? weft_safetensors_read(r->file, at, 0, from, info.bytes)
                                    : weft__fail_oom(r->ctx, info.bytes + bytes, p->name);
    if (status == WEFT_OK) {
        convert(p->tensor, &info, r->crossed && is_crossed(p->name), from, to);
        status = weft_write(p->tensor, to, bytes);
    }
    weft__free(r->ctx, from);
    weft__free(r->ctx, to);
    return status;
}

/* Whether the file has transposed matrices: (width, 3 width). */
static bool has_crossed(const reading *r) {
    weft_entry_info info;
    size_t at;
    return gpt_file_find(r, "h.0.attn.c_attn.weight", &at, &info) && info.rank == 2 &&
           info.shape[0] < info.shape[1];
}

static weft_status check_module(weft_module *gpt) {
    WEFT_TRY(weft_module_status(gpt));
    if (weft__gpt_options_of(gpt) && !gpt->parent) return WEFT_OK;
    return weft__fail(gpt->ctx, WEFT_ERR_ARGUMENT,
                      "GPT-2's files are for a gpt that is not part of another module");
}

weft_status weft_gpt_load(weft_module *gpt, const char *path) {
    WEFT_NEED(NULL, gpt);
    WEFT_NEED(gpt->ctx, path);
    WEFT_TRY(check_module(gpt));
    reading r = {.ctx = gpt->ctx, .path = path};
    weft_parameter_info p;
    WEFT_TRY(weft_safetensors_open(gpt->ctx, path, &r.file));
    r.crossed = has_crossed(&r);
    weft_status status = weft__module_use(gpt);
    if (status == WEFT_OK) status = gpt_file_check(&r, gpt);
    for (size_t i = 0; status == WEFT_OK && weft_parameter_get(gpt, i, &p); i++)
        status = gpt_file_fill(&r, &p);
    weft_safetensors_close(r.file);
    return status;
}

weft_status weft_gpt_file_vocab(weft_context *ctx, const char *path, int64_t *vocab) {
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, vocab);
    reading r = {.ctx = ctx, .path = path};
    weft_entry_info info;
    size_t at;
    WEFT_TRY(weft_safetensors_open(ctx, path, &r.file));
    bool found = gpt_file_find(&r, "wte.weight", &at, &info) && info.rank == 2;
    *vocab = found ? info.shape[0] : 0;
    weft_safetensors_close(r.file);
    return found ? WEFT_OK
                 : weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file has no token table 'wte.weight'", path);
}

/* ---- writing ---- */

weft_status weft_gpt_save(weft_module *gpt, const char *path) {
    WEFT_NEED(NULL, gpt);
    WEFT_NEED(gpt->ctx, path);
    /* readers of published weights require the format */
    const weft_metadata metadata[] = {{"format", "pt"}, {"weft", weft_version()}};
    WEFT_TRY(check_module(gpt));
    weft_context *ctx = gpt->ctx;
    const weft_gpt_options *o = weft__gpt_options_of(gpt);
    if (o->norm != WEFT_NORM_LAYER || o->positions != WEFT_POSITION_LEARNED || o->gated || o->no_bias ||
        (o->kv_heads && o->kv_heads != o->heads))
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED,
                          "%s: GPT-2's format is for models with layer norms, biases, learned positions, a "
                          "GELU, and as many KV heads as query heads; weft_module_save writes any model",
                          path);
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(gpt, i, &p); i++)
        if (p.buffer)
            return weft__fail(
                ctx, WEFT_ERR_UNSUPPORTED,
                "%s: '%s' is packed, which GPT-2's format is not: load the model unpacked, or use "
                "weft_published_save",
                path, p.name);
    WEFT_TRY(weft__module_use(gpt));
    const size_t count = weft_parameter_count(gpt);
    weft_named_tensor *list = weft__array(ctx, count + 1, sizeof *list);
    if (!list) return weft__fail_oom(ctx, count * sizeof *list, "a list of parameters");
    weft_scope *scope = weft_scope_open(ctx);
    const int64_t tokens = weft__gpt_options_of(gpt)->tokens;
    for (size_t i = 0; i < count && weft_parameter_get(gpt, i, &p); i++) {
        const bool table = strcmp(p.name, "wte.weight") == 0 || strcmp(p.name, "lm_head.weight") == 0;
        list[i] = (weft_named_tensor){.name = p.name,
                                      .tensor = is_crossed(p.name) ? weft_transpose(p.tensor, 0, 1)
                                                : table            ? weft_narrow(p.tensor, 0, 0, tokens)
                                                                   : p.tensor};
    }
    weft_entry *entries = NULL;
    weft_status status =
        scope ? weft_entries_new(ctx, list, count, &entries) : weft__fail_oom(ctx, 0, "a scope");
    if (status == WEFT_OK) status = weft_safetensors_write(ctx, path, entries, count, metadata, 2);
    weft_entries_free(ctx, entries, count);
    weft_scope_close(scope);
    weft__free(ctx, list);
    return status;
}
