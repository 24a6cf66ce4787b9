/* Writes what exported C source has besides if it trains: the training step, saved states, and the table of
 * parameters. Must not know: how kernels are written, what a step computes (export_step.c). Read next:
 * export_body.c. */
#include <string.h>

#include "nn/module.h"
#include "train/export/export_source.h"

static bool texts(const weft__export_source *s) { return s->step.window > 0; }

bool weft__export_learnt(const weft__export_source *s, size_t i, weft_parameter_info *info, int *array,
                         int64_t *first) {
    weft_module *m = s->opened->model.module;
    const size_t count = s->step.batch ? weft_parameter_count(m) : 0;
    for (size_t k = 0; k < count; k++) {
        if (!weft_parameter_get(m, k, info)) continue;
        *first = info->tensor->offset;
        for (*array = 0; *array < s->n_arrays; ++*array)
            if (s->arrays[*array].role == WEFT__EXPORT_KEPT &&
                s->arrays[*array].buffer == info->tensor->storage->buffer)
                break;
        if (*array < s->n_arrays && i-- == 0) return true;
    }
    return false;
}

static size_t count_learnt(const weft__export_source *s) {
    weft_parameter_info info;
    int array;
    int64_t first;
    size_t n = 0;
    while (weft__export_learnt(s, n, &info, &array, &first)) n++;
    return n;
}

/* ---- the header ---- */

static void put_sizes(const weft__export_source *s, weft_text *out) {
    weft__export_define(s, out, "BATCH", (long long)s->step.batch,
                        texts(s) ? "texts of a training step" : "samples of a training step");
    if (texts(s)) weft__export_define(s, out, "WINDOW", (long long)s->step.window, "tokens of such a text");
    weft__export_define(s, out, "STATE", (long long)s->state,
                        "bytes of a saved state; it needs as much static memory, besides MEMORY");
    weft__export_define(s, out, "LEARNT", (long long)s->learnt, "bytes of it that are weights");
    weft__export_define(s, out, "PARAMETERS", (long long)count_learnt(s),
                        "entries of the table of parameters");
    weft__put(out, "#define ");
    weft__export_capitals(out, s->name);
    weft__put(out, "_RATE ");
    weft__c99_f32(out, (float)s->opened->config.optimizer_lr);
    weft__put(out, " /* optimizer.lr of the run */\n\n");
}

static void put_train_arguments(const weft__export_source *s, weft_text *out, bool described) {
    if (texts(s)) {
        weft__put(out, described ? "in: BATCH texts of WINDOW tokens, one after the other.\n"
                                 : "const int32_t *in, ");
    } else {
        weft__put(out, described ? "in: BATCH samples, one after the other.\n" : "const float *in, ");
        if (s->step.kinds)
            weft__put(out,
                      described ? " * targets: the class of each sample.\n" : "const int32_t *targets, ");
        else if (s->step.target)
            weft__put(out, described ? " * targets: OUTPUTS numbers for each sample, in the units of the "
                                       "training data.\n"
                                     : "const float *targets, ");
    }
    if (!described) weft__put(out, "float rate");
}

void weft__export_learn_header(const weft__export_source *s, weft_text *out) {
    const char *n = s->name;
    put_sizes(s, out);
    weft__put(out, "/* Trains with one batch: changes the weights as a step of weft train does.\n * ");
    put_train_arguments(s, out, true);
    weft__put(out, " * rate: the learning rate. Returns the loss of the batch before the step.%s",
              s->step.kinds ? " If there is no such\n" : "\n");
    if (s->step.kinds)
        weft__put(out, " * %s, returns -1 and changes nothing.\n", texts(s) ? "token" : "class");
    weft__put(out,
              " * A loss that is not finite means that the weights are lost: load a saved state. */\n"
              "float %s_train(",
              n);
    put_train_arguments(s, out, false);
    weft__put(out, ");\n\n");
    if (s->step.carried[0])
        weft__put(
            out,
            "/* Sets the states to 0 that the texts of a step leave to those of the next step. Call this "
            "where the texts\n * begin anew. */\nvoid %s_streams_restart(void);\n\n",
            n);
    weft__put(
        out,
        "/* Returns the norm of all gradients of the last step, before clipping. */\n"
        "float %s_norm(void);\n\n"
        "/* Returns the number of steps, those of the run included. */\nuint64_t %s_steps(void);\n\n"
        "/* Writes all that training has changed, STATE bytes. Only the same kind of processor can read "
        "them. */\n"
        "void %s_save(void *state);\n\n"
        "/* Goes on from a saved state. Returns 0; or 1 if it is damaged or belongs to another export. "
        "Then nothing\n * has changed. */\n"
        "int %s_load(const void *state, size_t bytes);\n\n"
        "/* The weights, and the numbers that layers keep. You may read and write the values. */\n"
        "typedef struct %s_parameter {\n    const char *name;\n    int32_t count, rank, shape[%d];\n"
        "    float *values;\n} %s_parameter;\nextern const %s_parameter %s_parameters[",
        n, n, n, n, n, WEFT_MAX_RANK, n, n, n);
    weft__export_capitals(out, n);
    weft__put(out, "_PARAMETERS];\n\n");
}

/* ---- numbers of a step ---- */

/* Writes "numbers.f32[3] = ...;" for a number that follows from rate and step. */
static void put_rule(const weft__step_input *input, bool corrects, weft_text *out) {
    const weft__step_rule *rule = &input->rule;
    weft__put(out, "    numbers.f32[%lld] = (float)(", (long long)input->offset / 4);
    if (rule->per_rate != 0) {
        if (rule->constant != 0) weft__put(out, "(%.17g + ", rule->constant);
        if (rule->per_rate != 1) weft__put(out, "%.17g * ", rule->per_rate);
        weft__put(out, "(double)rate%s", rule->constant != 0 ? ")" : "");
    } else {
        weft__put(out, "%.17g", rule->constant);
    }
    if (corrects && rule->second) weft__put(out, " * second");
    if (corrects && rule->first) weft__put(out, " / first");
    weft__put(out, ");\n");
}

/* Writes the eight words of a random key. */
static void put_key(const weft__step_input *input, weft_text *out) {
    for (int k = 0; k < 8; k++) {
        weft__put(out, "    numbers.i32[%lld] = ", (long long)input->offset / 4 + k);
        if (k == 2)
            weft__put(out, "(int32_t)(uint32_t)steps");
        else if (k == 3)
            weft__put(out, "(int32_t)(uint32_t)(steps >> 32)");
        else
            weft__c99_integer(out, (int32_t)input->key[k]);
        weft__put(out, ";\n");
    }
}

static void put_step_inputs(const weft__export_source *s, weft_text *out) {
    const weft_optimizer *opt = s->opened->model.optimizer;
    const bool corrects = weft__optimizer_corrects(opt);
    if (corrects)
        weft__put(out,
                  "    const double t = (double)(steps + 1);\n"
                  "    const double first = 1.0 - pow(%.17g, t), second = sqrt(1.0 - pow(%.17g, t));\n",
                  opt->hyper.beta1, opt->hyper.beta2);
    for (size_t i = 0; i < s->step.n_inputs; i++)
        if (s->step.inputs[i].random)
            put_key(&s->step.inputs[i], out);
        else
            put_rule(&s->step.inputs[i], corrects, out);
}

/* ---- the source ---- */

static void put_numbers(const weft__export_source *s, weft_text *out) {
    for (int i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].role == WEFT__EXPORT_NUMBERS)
            weft__put(out,
                      "    union {\n        float f32[%lld];\n        int32_t i32[%lld];\n    } numbers;\n",
                      (long long)s->arrays[i].bytes / 4, (long long)s->arrays[i].bytes / 4);
}

static weft_status put_train(const weft__export_source *s, weft_text *out) {
    const long long checked = (long long)s->step.batch * (texts(s) ? (long long)s->step.window : 1);
    const char *what = texts(s) ? "in" : "targets";
    weft__put(out, "float %s_train(", s->name);
    put_train_arguments(s, out, false);
    weft__put(out, ") {\n    float loss[1];\n");
    put_numbers(s, out);
    if (s->step.kinds)
        weft__put(out,
                  "    for (int32_t i = 0; i < %lld; i++)\n"
                  "        if (%s[i] < 0 || %s[i] >= %lld) return -1.0f;\n",
                  checked, what, what, (long long)s->step.kinds);
    put_step_inputs(s, out);
    WEFT_TRY(weft__export_statements(s, &s->learn, out));
    weft__put(out, "    steps++;\n    return loss[0];\n}\n\n");
    return WEFT_OK;
}

static void put_streams(const weft__export_source *s, weft_text *out) {
    if (!s->step.carried[0]) return;
    weft__put(out, "void %s_streams_restart(void) {\n", s->name);
    for (size_t i = 0; i < 2 && s->step.carried[i]; i++) {
        const weft_tensor *states = s->opened->model.module->parameters[i].variable;
        for (int a = 0; a < s->n_arrays; a++)
            if (s->arrays[a].buffer == states->storage->buffer)
                weft__put(out, "    memset(%s, 0, sizeof %s);\n", s->arrays[a].name, s->arrays[a].name);
    }
    weft__put(out, "}\n\n");
}

/* A saved state: the id of the export, 1 as a float, the steps, a checksum of all else, and the arrays. */
static void put_state(const weft__export_source *s, weft_text *out) {
    weft__put(out,
              "/* The checksum of a saved state (FNV-1a). */\n"
              "static uint32_t checksum(const unsigned char *state) {\n"
              "    uint32_t sum = 2166136261u;\n"
              "    for (int32_t i = 0; i < %lld; i++)\n"
              "        if (i < 16 || i >= %d) sum = (sum ^ state[i]) * 16777619u;\n"
              "    return sum;\n}\n\n"
              "static const uint32_t id = 0x%08xu;\nstatic const float one = 1.0f;\n\n"
              "void %s_save(void *state) {\n"
              "    unsigned char *to = state;\n"
              "    uint32_t sum;\n"
              "    memcpy(to, &id, 4);\n    memcpy(to + 4, &one, 4);\n    memcpy(to + 8, &steps, 8);\n",
              (long long)s->state, WEFT__EXPORT_STATE_HEAD, (unsigned)s->id, s->name);
    long long at = WEFT__EXPORT_STATE_HEAD;
    for (int i = 0; i < s->n_arrays; i++) {
        if (s->arrays[i].role != WEFT__EXPORT_KEPT) continue;
        weft__put(out, "    memcpy(to + %lld, %s, sizeof %s);\n", at, s->arrays[i].name, s->arrays[i].name);
        at += s->arrays[i].bytes;
    }
    weft__put(out,
              "    sum = checksum(to);\n    memcpy(to + 16, &sum, 4);\n}\n\n"
              "int %s_load(const void *state, size_t bytes) {\n"
              "    const unsigned char *from = state;\n"
              "    uint32_t sum;\n"
              "    if (bytes != %lldu || memcmp(from, &id, 4) != 0 || memcmp(from + 4, &one, 4) != 0) return "
              "1;\n"
              "    sum = checksum(from);\n"
              "    if (memcmp(from + 16, &sum, 4) != 0) return 1;\n"
              "    memcpy(&steps, from + 8, 8);\n",
              s->name, (long long)s->state);
    at = WEFT__EXPORT_STATE_HEAD;
    for (int i = 0; i < s->n_arrays; i++) {
        if (s->arrays[i].role != WEFT__EXPORT_KEPT) continue;
        weft__put(out, "    memcpy(%s, from + %lld, sizeof %s);\n", s->arrays[i].name, at, s->arrays[i].name);
        at += s->arrays[i].bytes;
    }
    weft__put(out, "    return 0;\n}\n\n");
}

static void put_parameters(const weft__export_source *s, weft_text *out) {
    weft_parameter_info info;
    int array;
    int64_t first;
    weft__put(out, "const %s_parameter %s_parameters[", s->name, s->name);
    weft__export_capitals(out, s->name);
    weft__put(out, "_PARAMETERS] = {\n");
    for (size_t i = 0; weft__export_learnt(s, i, &info, &array, &first); i++) {
        weft__put(out, "    {");
        weft__export_string(out, info.name, strlen(info.name));
        weft__put(out, ", %lld, %d, {", (long long)info.tensor->numel, info.tensor->rank);
        for (int d = 0; d < info.tensor->rank || d < 1; d++)
            weft__put(out, "%s%lld", d ? ", " : "",
                      d < info.tensor->rank ? (long long)info.tensor->shape[d] : 0);
        weft__put(out, "}, %s + %lld},\n", s->arrays[array].name, (long long)first);
    }
    weft__put(out, "};\n");
}

weft_status weft__export_learn(const weft__export_source *s, weft_text *out) {
    weft__put(out, "\n/* ---- training ---- */\n\nstatic uint64_t steps = %lluu;\n\n",
              (unsigned long long)s->opened->step);
    WEFT_TRY(put_train(s, out));
    weft__put(out, "float %s_norm(void) { return norm[0]; }\n\nuint64_t %s_steps(void) { return steps; }\n\n",
              s->name, s->name);
    put_streams(s, out);
    put_state(s, out);
    put_parameters(s, out);
    return WEFT_OK;
}
