/* Writes the source file of exported C: weights, memory, the functions of the program, and the functions of
 * the header. Must not know: how kernels are written (device/c99). Read next: export_header.c. */
#include <string.h>

#include "train/export/export_source.h"

static bool is_text(const weft__export_source *s) {
    return s->opened->config.task == WEFT__TASK_LANGUAGE_MODEL;
}

/* ---- data ---- */

static bool all_zero(const weft__export_array *array) {
    const char *bytes = array->buffer->host;
    for (int64_t i = 0; i < array->bytes; i++)
        if (bytes[i]) return false;
    return true;
}

static void put_weights(const weft__export_source *s, weft_text *out) {
    if (s->blob) weft__put(out, "static const float *weights;\n\n");
    for (int i = 0; i < s->n_arrays; i++) {
        const weft__export_array *a = &s->arrays[i];
        const weft_dtype dtype = a->dtypes == 1u << WEFT_F32 ? WEFT_F32 : WEFT_I32;
        const bool kept = a->role == WEFT__EXPORT_KEPT, stored = s->blob && dtype == WEFT_F32;
        if (!kept && (stored || a->role != WEFT__EXPORT_CONSTANT)) continue;
        const int64_t count = a->bytes / 4;
        weft__put(out, "static %s%s %s[%lld]", kept ? "" : "const ", weft__c99_type(dtype), a->name,
                  (long long)count);
        if (!kept || (!stored && !all_zero(a))) {
            weft__put(out, " = ");
            weft__export_numbers(out, dtype, a->buffer->host, count);
        }
        weft__put(out, ";\n\n");
    }
}

/* Elements of different types share the arena, but never at the same time. */
static void put_arena(const weft__export_array *arena, weft_text *out) {
    const long long bytes = (long long)arena->bytes;
    weft__put(out, "static union {\n    float f32[%lld];\n", (bytes + 3) / 4);
    if (arena->dtypes & 1u << WEFT_I32) weft__put(out, "    int32_t i32[%lld];\n", (bytes + 3) / 4);
    if (arena->dtypes & 1u << WEFT_I64) weft__put(out, "    int64_t i64[%lld];\n", (bytes + 7) / 8);
    if (arena->dtypes & (1u << WEFT_BOOL | 1u << WEFT_U8)) weft__put(out, "    uint8_t u8[%lld];\n", bytes);
    weft__put(out, "} arena;\n\n");
}

static void put_memory(const weft__export_source *s, weft_text *out) {
    for (int i = 0; i < s->n_arrays; i++) {
        const weft__export_array *a = &s->arrays[i];
        if (a->role == WEFT__EXPORT_ARENA) put_arena(a, out);
        if (a->role == WEFT__EXPORT_TEXT || a->role == WEFT__EXPORT_NORM)
            weft__put(out, "static float %s[%lld];\n", a->name, (long long)a->bytes / 4);
    }
    if (s->graph.position) weft__put(out, "static int32_t position[1];\n");
    weft__put(out, "\n");
}

static void put_names(const weft__export_source *s, weft_text *out, const char *what, const char *size,
                      char *const *names, int64_t count) {
    weft__put(out, "const char *const %s_%s[", s->name, what);
    weft__export_capitals(out, s->name);
    weft__put(out, "_%s] = {\n", size);
    for (int64_t i = 0; i < count; i++) {
        weft__put(out, "    ");
        if (names)
            weft__export_string(out, names[i], strlen(names[i]));
        else
            weft__put(out, "\"%lld\"", (long long)i); /* classes that are numbers */
        weft__put(out, ",\n");
    }
    weft__put(out, "};\n\n");
}

/* Writes the text of a token of a published model: what the token adds after itself, so that it is the text
 * within a text, and not at its begin. */
static void put_pipeline_token(const weft_tokenizer *tokenizer, int32_t id, weft_text *out) {
    const int32_t ids[2] = {id, id};
    char text[4096];
    size_t first = 0, both = 0;
    bool fits = weft_tokenizer_decode(tokenizer, ids, 1, NULL, 0, &first) == WEFT_OK &&
                weft_tokenizer_decode(tokenizer, ids, 2, text, sizeof text, &both) == WEFT_OK;
    const char *token = fits ? text + first : weft_tokenizer_token(tokenizer, id, &both);
    const size_t bytes = fits ? both - first : token ? both : 0;
    weft__put(out, "    {%zu, ", bytes);
    weft__export_string(out, token ? token : "", bytes);
    weft__put(out, "},\n");
}

static void put_tokens(const weft__export_source *s, weft_text *out) {
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(&s->opened->dataset);
    if (!tokenizer) return;
    weft__put(out, "const %s_token %s_tokens[", s->name, s->name);
    weft__export_capitals(out, s->name);
    weft__put(out, "_VOCABULARY] = {\n");
    for (int64_t i = 0; i < s->graph.outputs; i++) {
        size_t bytes = 0;
        if (weft_tokenizer_kind_of(tokenizer) == WEFT_TOKENIZER_PIPELINE) {
            put_pipeline_token(tokenizer, (int32_t)i, out);
            continue;
        }
        const char *text = weft_tokenizer_token(tokenizer, (int32_t)i, &bytes);
        weft__put(out, "    {%zu, ", text ? bytes : 0);
        weft__export_string(out, text ? text : "", text ? bytes : 0);
        weft__put(out, "},\n");
    }
    weft__put(out, "};\n\n");
}

/* ---- functions ---- */

/* Compilers need not accept strings of more than 4,095 bytes. */
static weft_status check_names(const weft__export_source *s, const char *what, char *const *names,
                               int64_t count) {
    for (int64_t i = 0; names && i < count; i++)
        if (strlen(names[i]) > 4095)
            return weft__fail(s->opened->model.ctx, WEFT_ERR_UNSUPPORTED,
                              "export: the name of %s %lld is longer than the 4,095 bytes that C99 allows",
                              what, (long long)i);
    return WEFT_OK;
}

weft_status weft__export_statements(const weft__export_source *s, const weft__export_program *p,
                                    weft_text *out) {
    weft_context *ctx = s->opened->model.ctx;
    const char **names = weft__array(ctx, (size_t)p->n_slots, sizeof *names);
    char(*places)[WEFT__EXPORT_NAME] = weft__array(ctx, (size_t)p->n_slots, sizeof *places);
    weft_status status = names && places ? WEFT_OK : weft__fail_oom(ctx, (size_t)p->n_slots * 8, "export");
    for (int i = 0; status == WEFT_OK && i < p->n_slots; i++) {
        if (p->arrays[i] < 0) continue;
        const weft__export_array *a = &s->arrays[p->arrays[i]];
        names[i] = a->name;
        if (!s->blob || a->role != WEFT__EXPORT_CONSTANT || !weft__export_stored(a)) continue;
        snprintf(places[i], sizeof places[i], "weights + %lld",
                 (long long)weft__export_offset(s, p->arrays[i]));
        names[i] = places[i];
    }
    if (status == WEFT_OK) status = weft_program_run(p->program); /* the device writes what ran last */
    if (status == WEFT_OK) status = weft__c99_statements(ctx->device, p->prefix, names, out);
    weft__free(ctx, names);
    weft__free(ctx, places);
    return status;
}

/* Writes the routines, and the kernels of each program. */
static weft_status put_functions(const weft__export_source *s, weft_text *out) {
    const weft__export_program *programs[] = {&s->forward, &s->learn};
    weft_device *device = s->opened->model.ctx->device;
    bool used[WEFT_C99_ROUTINES] = {false};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 2; i++) {
            if (!programs[i]->program) continue;
            WEFT_TRY(weft_program_run(programs[i]->program));
            if (pass == 0)
                weft__c99_uses(device, used);
            else
                WEFT_TRY(weft__c99_functions(device, programs[i]->prefix, out));
        }
        if (pass == 0) weft__c99_routines(used, out);
    }
    return WEFT_OK;
}

static weft_status put_forward(const weft__export_source *s, weft_text *out) {
    weft__put(out, "void %s_forward(const float *in, float *out) {\n", s->name);
    WEFT_TRY(weft__export_statements(s, &s->forward, out));
    weft__put(out, "}\n\n");
    return WEFT_OK;
}

static weft_status put_next(const weft__export_source *s, weft_text *out) {
    const char *n = s->name;
    weft__put(out, "void %s_restart(void) {\n", n);
    if (s->graph.position) /* what lies behind the position is not read */
        weft__put(out, "    position[0] = 0;\n");
    for (int i = 0; i < s->n_arrays && !s->graph.position; i++)
        if (s->arrays[i].role == WEFT__EXPORT_TEXT)
            weft__put(out, "    memset(%s, 0, sizeof %s);\n", s->arrays[i].name, s->arrays[i].name);
    weft__put(out, "}\n\nint %s_next(int32_t token, float *out) {\n    const int32_t in[1] = {token};\n", n);
    weft__put(out, "    if (token < 0 || token >= %lld) return 1;\n", (long long)s->graph.outputs);
    if (s->graph.position)
        weft__put(out, "    if (position[0] >= %lld) return 2;\n",
                  (long long)s->opened->config.model_context);
    WEFT_TRY(weft__export_statements(s, &s->forward, out));
    if (s->graph.position) weft__put(out, "    position[0]++;\n");
    weft__put(out,
              "    return 0;\n}\n\n"
              "int %s_forward(const int32_t *tokens, int32_t n, float *logits) {\n"
              "    int failed = 0;\n"
              "    %s_restart();\n"
              "    for (int32_t i = 0; i < n && !failed; i++) failed = %s_next(tokens[i], logits);\n"
              "    return failed;\n}\n\n",
              n, n, n);
    return WEFT_OK;
}

static void put_best(const weft__export_source *s, weft_text *out) {
    weft__put(out,
              "int32_t %s_best(const float *out) {\n"
              "    int32_t best = 0;\n"
              "    for (int32_t i = 1; i < %lld; i++)\n"
              "        if (out[i] > out[best]) best = i;\n"
              "    return best;\n}\n",
              s->name, (long long)s->graph.outputs);
}

/* The head of the weights' file, as weft__export_c writes it. */
static void put_open(const weft__export_source *s, weft_text *out) {
    if (!s->blob) return;
    weft__put(out,
              "int %s_open(const void *blob, size_t bytes) {\n"
              "    const uint32_t id = 0x%08xu;\n"
              "    const float one = 1.0f;\n"
              "    const unsigned char *head = blob;\n"
              "    if (bytes != %lldu || memcmp(head + 8, &id, 4) != 0 || memcmp(head + 12, &one, 4) != 0) "
              "return 1;\n"
              "    weights = (const float *)blob + %d;\n",
              s->name, (unsigned)s->id,
              WEFT__EXPORT_BLOB_HEAD + 4LL * (long long)weft__export_offset(s, s->n_arrays),
              WEFT__EXPORT_BLOB_HEAD / 4);
    for (int i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].role == WEFT__EXPORT_KEPT)
            weft__put(out, "    memcpy(%s, weights + %lld, sizeof %s);\n", s->arrays[i].name,
                      (long long)weft__export_offset(s, i), s->arrays[i].name);
    weft__put(out, "    return 0;\n}\n\n");
}

static void put_head(const weft__export_source *s, weft_text *out) {
    weft__put(out,
              "/* %s.c, written by weft export. It is C99 and needs math.h and string.h only. Do not change "
              "it: export the\n"
              " * run again. */\n#include \"%s.h\"\n\n#include <math.h>\n#include <string.h>\n\n#if ",
              s->name, s->name);
    weft__export_capitals(out, s->name);
    weft__put(out, "_EXPORT != 0x%08xu\n#error \"%s.c and %s.h are of different exports\"\n#endif\n\n",
              (unsigned)s->id, s->name, s->name);
}

weft_status weft__export_body(const weft__export_source *s, weft_text *out) {
    const weft__dataset *d = &s->opened->dataset;
    const bool classes = s->opened->config.task == WEFT__TASK_CLASSIFICATION;
    WEFT_TRY(check_names(s, "column", d->table.inputs, s->graph.inputs));
    WEFT_TRY(check_names(s, "class", d->classes, s->graph.outputs));
    put_head(s, out);
    put_weights(s, out);
    put_memory(s, out);
    WEFT_TRY(put_functions(s, out));
    put_open(s, out);
    if (is_text(s)) {
        put_tokens(s, out);
        WEFT_TRY(put_next(s, out));
    } else {
        if (d->table.inputs) put_names(s, out, "columns", "INPUTS", d->table.inputs, s->graph.inputs);
        if (classes) put_names(s, out, "classes", "OUTPUTS", d->classes, s->graph.outputs);
        WEFT_TRY(put_forward(s, out));
    }
    if (is_text(s) || classes) put_best(s, out);
    return s->step.batch ? weft__export_learn(s, out) : WEFT_OK;
}
