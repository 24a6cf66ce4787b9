/* Writes a model as a GGUF file. One parameter after the other is taken from a module, or from the files of a
 * published model; its rows are packed by all processors. Must not know: training. Read next: gguf_write.c,
 * quantize.c. */
#include <stdatomic.h>
#include <string.h>

#include "base/text.h"
#include "base/threads.h"
#include "nn/module.h"
#include "ops/build.h"
#include "published/gguf_write.h"
#include "published/published.h"

enum { QUANTIZATION_VERSION = 2 }; /* of ggml's layouts of blocks */
#define PIECE ((int64_t)1 << 20)   /* elements that are packed at once */

typedef struct saving {
    weft_context *ctx;
    const char *from;  /* where the model came from */
    weft__published p; /* with the names of GGUF files */
    weft_module *model;
    weft__weights *weights; /* NULL: the values are those of the module */
    weft__format format;
    weft__gguf_header header;
    weft__writer *writer;
    float *values, *rows; /* of a parameter; rows of a tensor */
    uint8_t *packed;
} saving;

/* ---- what the tensors are ---- */

/* Calls `each` for all tensors of the file, in order. */
static weft_status each_tensor(saving *s, weft_status (*begin)(saving *s, const weft_parameter_info *p),
                               weft_status (*each)(saving *s, const weft_parameter_info *p,
                                                   const weft__placed *placed)) {
    weft_parameter_info p;
    weft__placed placed[WEFT__PARTS];
    for (size_t i = 0; weft_parameter_get(s->model, i, &p); i++) {
        if (weft__published_added(&p)) continue;
        const int count = weft__published_names(&s->p, &p, placed);
        if (count == 0)
            return weft__fail(s->ctx, WEFT_ERR_FORMAT, "%s: GGUF files of this architecture have no '%s'",
                              s->from, p.name);
        if (begin) WEFT_TRY(begin(s, &p));
        for (int j = 0; j < count; j++) WEFT_TRY(each(s, &p, &placed[j]));
    }
    return WEFT_OK;
}

/* The shape of a parameter; of a packed weight, which is bytes, that of its numbers. */
static void shape_of(const weft_parameter_info *p, int64_t *rows, int64_t *columns) {
    *rows = p->tensor->shape[0];
    *columns = p->tensor->rank > 1 ? p->tensor->shape[1] : 1;
    if (p->tensor->dtype == WEFT_U8) weft__packing_of(p->module, rows, columns);
}

static int64_t columns_of(const weft_parameter_info *p) {
    int64_t rows, columns;
    shape_of(p, &rows, &columns);
    return columns;
}

static size_t count_of(const weft_parameter_info *p) {
    int64_t rows, columns;
    shape_of(p, &rows, &columns);
    return (size_t)rows * (size_t)columns;
}

/* The format of a tensor: vectors and positions stay f32, and the matrix that makes the logits needs more
 * bits than others. */
static weft__format format_of(const saving *s, const weft_parameter_info *p, const weft__placed *placed) {
    const char *head = s->p.gpt.untied_head ? "lm_head.weight" : "wte.weight";
    weft__format format = s->format;
    if (p->tensor->rank == 1 || placed->part == WEFT__PART_FIRST)
        weft__format_find("f32", &format);
    else if (strcmp(p->name, head) == 0)
        weft__format_find(s->format.head, &format);
    weft__format_fit(&format, columns_of(p));
    return format;
}

static weft_status list_tensor(saving *s, const weft_parameter_info *p, const weft__placed *placed) {
    const weft__format format = format_of(s, p, placed);
    const int64_t shape[2] = {placed->rows, columns_of(p)};
    weft__gguf_put_tensor(&s->header, placed->name, p->tensor->rank, shape, format.type);
    return WEFT_OK;
}

/* ---- values ---- */

static weft_status module_values(saving *s, const weft_parameter_info *p) {
    weft_scope *scope = weft_scope_open(s->ctx);
    if (!scope) return weft__fail_oom(s->ctx, 0, "a scope");
    weft_tensor *t = weft__whole_weight(p->module, p->tensor);
    if (p->tensor->rank == 2) t = weft__lora_merged(p->module, t);
    const weft_status status = weft_read(weft_cast(t, WEFT_F32), s->values, count_of(p) * sizeof(float));
    weft_scope_close(scope);
    return status;
}

static weft_status take_values(saving *s, const weft_parameter_info *p) {
    const size_t bytes = count_of(p) * sizeof(float);
    WEFT_TRY(weft__go_on(s->ctx));
    weft__free(s->ctx, s->values);
    s->values = weft__alloc(s->ctx, bytes);
    if (!s->values) return weft__fail_oom(s->ctx, bytes, p->name);
    return s->weights ? weft__weights_read(s->weights, p, s->values) : module_values(s, p);
}

/* ---- packing ---- */

/* Rows that several threads pack. */
typedef struct packing {
    const weft__format *format;
    const float *from;
    uint8_t *to;
    int64_t rows, columns;
    size_t row_bytes;
    atomic_llong next;
} packing;

static void *pack_rows(void *user) {
    packing *p = user;
    for (int64_t row; (row = atomic_fetch_add(&p->next, 1)) < p->rows;)
        weft__format_pack(p->format, p->from + row * p->columns, p->columns,
                          p->to + (size_t)row * p->row_bytes);
    return NULL;
}

static weft_status check_row(const saving *s, const weft__format *format, const char *name, const float *row,
                             int64_t columns) {
    const int64_t bad = weft__format_check(format, row, columns);
    if (bad == columns) return WEFT_OK;
    return weft__fail(s->ctx, WEFT_ERR_FORMAT,
                      "%s: the tensor '%s' has the weight %g, which the format %s cannot hold%s", s->from,
                      name, (double)row[bad], format->word,
                      row[bad] - row[bad] == 0 ? ": choose f32 or bf16" : "");
}

/* Writes rows first to first + count - 1 of a tensor. */
static weft_status write_rows(saving *s, const weft__format *format, const weft__placed *placed,
                              int64_t columns, int64_t first, int64_t count) {
    const size_t row_bytes = (size_t)(columns / format->type->elements) * format->type->bytes;
    packing work = {format, s->rows, s->packed, count, columns, row_bytes, 0};
    const bool large = count * columns > 1 << 16;
    for (int64_t r = 0; r < count; r++) {
        float *row = s->rows + r * columns;
        memcpy(row, s->values + weft__published_row(&s->p, placed, first + r) * columns,
               (size_t)columns * sizeof *row);
        if (placed->part == WEFT__PART_PLUS_ONE) row[0] += 1;
        WEFT_TRY(check_row(s, format, placed->name, row, columns));
    }
    weft__parallel(large ? weft__default_threads() : 1, pack_rows, &work);
    return weft__writer_write(s->writer, s->packed, (size_t)count * row_bytes);
}

static weft_status write_tensor(saving *s, const weft_parameter_info *p, const weft__placed *placed) {
    const weft__format format = format_of(s, p, placed);
    const int64_t columns = columns_of(p), block = weft__larger(PIECE / columns, 1);
    const size_t row_bytes = (size_t)(columns / format.type->elements) * format.type->bytes;
    const size_t rows = (size_t)weft__smaller(block, placed->rows);
    s->rows = weft__array(s->ctx, rows * (size_t)columns, sizeof *s->rows);
    s->packed = weft__array(s->ctx, rows, row_bytes);
    weft_status status =
        s->rows && s->packed ? WEFT_OK : weft__fail_oom(s->ctx, rows * row_bytes, "rows of a tensor");
    for (int64_t first = 0; status == WEFT_OK && first < placed->rows; first += block)
        status = write_rows(s, &format, placed, columns, first, weft__smaller(block, placed->rows - first));
    if (status == WEFT_OK) status = weft__gguf_pad(s->writer, (uint64_t)placed->rows * row_bytes);
    weft__free(s->ctx, s->rows);
    weft__free(s->ctx, s->packed);
    return status;
}

/* ---- the file ---- */

weft_status weft__gguf_use_names(weft_context *ctx, const char *from, weft__published *p) {
    const weft__gguf_architecture *a = weft__gguf_architecture_of(p->architecture->type);
    char known[256];
    weft__gguf_types(known, sizeof known);
    if (!a)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: Weft does not write the architecture %s to GGUF files; it writes %s", from,
                          p->architecture->type, known);
    p->names = a->names;
    p->prefix = "";
    return WEFT_OK;
}

static weft_status make_header(saving *s, const weft__gguf_divisor_list *divisors, int lists) {
    weft__gguf_header *h = &s->header;
    WEFT_TRY(weft__gguf_use_names(s->ctx, s->from, &s->p));
    const weft__gguf_architecture *a = weft__gguf_architecture_of(s->p.architecture->type);
    const int64_t positions = weft__published_positions(s->model);
    if (positions) s->p.context = positions;
    WEFT_TRY(weft__gguf_describe(s->ctx, s->from, &s->p, a, h));
    weft__gguf_put_u32(h, "general.file_type", s->format.file_type);
    weft__gguf_put_u32(h, "general.quantization_version", QUANTIZATION_VERSION);
    weft__gguf_put_maker(h, s->weights ? "quantize" : "export");
    WEFT_TRY(weft__gguf_put_tokenizer(s->ctx, s->from, s->p.gpt.vocab, h));
    for (int i = 0; i < lists; i++)
        weft__gguf_put_tensor(h, divisors[i].name, 1, &divisors[i].count, weft__block_find(WEFT__BLOCK_F32));
    return each_tensor(s, NULL, list_tensor);
}

static weft_status write_file(saving *s, const char *path) {
    weft__gguf_divisor_list divisors[2];
    const int lists = weft__gguf_divisors(&s->p, divisors);
    WEFT_TRY(make_header(s, divisors, lists));
    WEFT_TRY(weft__gguf_begin(&s->header, path, &s->writer));
    for (int i = 0; i < lists; i++) {
        const size_t bytes = (size_t)divisors[i].count * sizeof(float);
        WEFT_TRY(weft__writer_write(s->writer, divisors[i].values, bytes));
        WEFT_TRY(weft__gguf_pad(s->writer, bytes));
    }
    WEFT_TRY(each_tensor(s, take_values, write_tensor));
    weft__writer *writer = s->writer;
    s->writer = NULL;
    return weft__writer_commit(writer);
}

/* Checks the format, and writes the file from what *s has. */
static weft_status save(saving *s, const char *path, const char *format) {
    char known[128];
    weft__format_words(known, sizeof known);
    if (!weft__format_find(format, &s->format))
        return weft__fail(s->ctx, WEFT_ERR_ARGUMENT, "Weft does not know the format '%.40s'; it knows %s",
                          format, known);
    s->header = weft__gguf_header_of(s->ctx);
    const weft_status status = write_file(s, path);
    weft__writer_abandon(s->writer);
    weft__gguf_header_free(&s->header);
    weft__free(s->ctx, s->values);
    return status;
}

weft_status weft_published_save_gguf(weft_module *model, const char *from, const char *path,
                                     const char *format) {
    WEFT_NEED(NULL, model);
    WEFT_NEED(model->ctx, from);
    WEFT_NEED(model->ctx, path);
    WEFT_NEED(model->ctx, format);
    saving s = {.ctx = model->ctx, .from = from, .model = model};
    WEFT_TRY(weft_module_status(model));
    WEFT_TRY(weft__published_read(s.ctx, from, &s.p));
    return save(&s, path, format);
}

/* Converts in a context whose device has no memory, so that the module has only names and shapes. */
static weft_status convert(weft_context *ctx, const char *from, const char *path, const char *format) {
    saving s = {.ctx = ctx, .from = from};
    WEFT_TRY(weft__published_read(ctx, from, &s.p));
    s.model = weft_published_new(ctx, from, &(weft_published_options){.context = s.p.context});
    WEFT_TRY(weft_module_status(s.model));
    WEFT_TRY(weft__weights_open(s.model, from, &s.weights));
    const weft_status status = save(&s, path, format);
    weft__weights_close(s.weights);
    return status;
}

weft_status weft_published_quantize(weft_context *ctx, const char *from, const char *path,
                                    const char *format) {
    WEFT_NEED(ctx, ctx);
    WEFT_NEED(ctx, from);
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, format);
    weft_context *names = NULL;
    const weft_open_options options = {.device = "null",
                                       .alloc = ctx->caller.alloc,
                                       .alloc_user = ctx->caller.alloc_user,
                                       .interrupted = ctx->caller.interrupted,
                                       .interrupted_user = ctx->caller.interrupted_user};
    weft_status status = weft_open(&options, &names);
    if (status != WEFT_OK) return weft__fail(ctx, status, "%s", weft_last_error(NULL));
    status = convert(names, from, path, format);
    if (status != WEFT_OK) weft__fail(ctx, status, "%s", weft_last_error(names));
    weft_close(names);
    return status;
}
