/* Writes the header of exported C source: sizes, and what each function takes and returns.
 * Must not know: how the program is computed. Read next: export_body.c. */
#include "train/export/export_source.h"

void weft__export_define(const weft__export_source *s, weft_text *out, const char *what, long long value,
                         const char *why) {
    weft__put(out, "#define ");
    weft__export_capitals(out, s->name);
    weft__put(out, "_%s %lld /* %s */\n", what, value, why);
}

static void put_inputs(const weft__export_source *s, weft_text *out) {
    const weft__dataset *d = &s->opened->dataset;
    if (d->image[0])
        weft__put(out,
                  "/* in: an image of %lld channel%s, %lld rows and %lld columns: the first channel row by "
                  "row, then\n"
                  " * the next one. Values are as in the training data%s.\n",
                  (long long)d->image[0], d->image[0] == 1 ? "" : "s", (long long)d->image[1],
                  (long long)d->image[2], d->scaling.factor != 0 ? ", 0 to 255 for bytes" : "");
    else
        weft__put(out, "/* in: the inputs of one sample, as they are in the training data%s.\n",
                  d->table.inputs          ? ", in the order of the columns"
                  : d->scaling.factor != 0 ? ", 0 to 255 for bytes"
                                           : "");
    if (!weft__columns_plain(&d->table.kinds))
        weft__put(
            out,
            " * Some columns are no numbers, or have missing cells. Such a column is several inputs, which "
            "%s_columns\n"
            " * names: \"sex=female\" is 1 for female and 0 for others, \"age (missing)\" is 1 if the cell "
            "is "
            "missing.\n",
            s->name);
    if (s->opened->config.task == WEFT__TASK_CLASSIFICATION)
        weft__put(out, " * out: the probability of each class. */\n");
    else
        weft__put(out, " * out: the predicted numbers, in the units of the training data. */\n");
}

static void put_vectors(const weft__export_source *s, weft_text *out) {
    const char *n = s->name;
    weft__export_define(s, out, "INPUTS", s->graph.inputs, "numbers of a sample");
    weft__export_define(s, out, "OUTPUTS", s->graph.outputs,
                        s->opened->config.task == WEFT__TASK_CLASSIFICATION ? "classes"
                                                                            : "numbers that are predicted");
    weft__put(out, "\n");
    put_inputs(s, out);
    weft__put(out, "void %s_forward(const float *in, float *out);\n\n", n);
    if (s->opened->dataset.table.inputs) {
        weft__put(out, "/* The names of the inputs. */\nextern const char *const %s_columns[", n);
        weft__export_capitals(out, n);
        weft__put(out, "_INPUTS];\n\n");
    }
    if (s->opened->config.task != WEFT__TASK_CLASSIFICATION) return;
    weft__put(out, "/* The names of the classes. */\nextern const char *const %s_classes[", n);
    weft__export_capitals(out, n);
    weft__put(out,
              "_OUTPUTS];\n\n/* Returns the most probable class. */\nint32_t %s_best(const float *out);\n\n",
              n);
}

static void put_text(const weft__export_source *s, weft_text *out) {
    const char *n = s->name;
    weft__export_define(s, out, "VOCABULARY", s->graph.outputs, "tokens, and logits");
    if (s->graph.position)
        weft__export_define(s, out, "CONTEXT", s->opened->config.model_context, "most tokens of a text");
    weft__put(out,
              "\n/* Begins a new text. */\nvoid %s_restart(void);\n\n"
              "/* Continues the text with a token, and computes the logits of the token that follows. "
              "Returns 0; or 1 if\n"
              " * there is no such token%s. Then nothing has changed. */\n"
              "int %s_next(int32_t token, float *logits);\n\n"
              "/* Begins a new text, continues it with n tokens, and computes the logits of the token that "
              "follows. Returns\n"
              " * what %s_next returned last. */\n"
              "int %s_forward(const int32_t *tokens, int32_t n, float *logits);\n\n"
              "/* Returns the most probable token. */\nint32_t %s_best(const float *logits);\n\n",
              n, s->graph.position ? ", or 2 if the text is as long as the context" : "", n, n, n, n);
    if (!weft__dataset_tokenizer(&s->opened->dataset)) return;
    weft__put(out,
              "/* The bytes that each token stands for (without a closing NUL in `bytes`). A token that is "
              "no text has\n"
              " * none. */\n"
              "typedef struct %s_token {\n    int32_t bytes;\n    const char *text;\n} %s_token;\n"
              "extern const %s_token %s_tokens[",
              n, n, n, n);
    weft__export_capitals(out, n);
    weft__put(out, "_VOCABULARY];\n\n");
}

static void put_blob(const weft__export_source *s, weft_text *out) {
    const char *n = s->name;
    if (!s->blob) return;
    weft__export_define(s, out, "WEIGHTS",
                        WEFT__EXPORT_BLOB_HEAD + 4LL * (long long)weft__export_offset(s, s->n_arrays),
                        "bytes of the file of weights");
    weft__put(out,
              "\n/* Sets the weights: the whole file %s.bin, which must stay in memory, at an address that a "
              "float may\n"
              " * have. Call this first. Returns 0, or 1 if these are not the weights of this model. */\n"
              "int %s_open(const void *weights, size_t bytes);\n\n",
              n, n);
}

weft_status weft__export_header(const weft__export_source *s, weft_text *out) {
    char model[64];
    weft__put(out, "/* %s.h, written by weft export: the model ", s->name);
    weft__export_comment(out, weft__model_name(&s->opened->config, &s->opened->dataset, model));
    weft__put(out,
              ", step %llu.\n * The functions share static memory: call them from one thread at a time. */\n",
              (unsigned long long)s->opened->step);
    weft__put(
        out,
        "#ifndef WEFT_EXPORT_%s_H\n#define WEFT_EXPORT_%s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
        s->name, s->name);
    weft__put(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n#define ");
    weft__export_capitals(out, s->name);
    weft__put(out, "_EXPORT 0x%08xu /* the same in all files of one export */\n", (unsigned)s->id);
    weft__export_define(s, out, "MEMORY", (long long)s->memory,
                        s->step.batch ? "bytes of static memory for values between layers"
                                      : "bytes of static memory, without the weights");
    put_blob(s, out);
    if (s->opened->config.task == WEFT__TASK_LANGUAGE_MODEL)
        put_text(s, out);
    else
        put_vectors(s, out);
    if (s->step.batch) weft__export_learn_header(s, out);
    weft__put(out, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return WEFT_OK;
}
