/* A corpus: reads text files, builds or borrows a tokenizer, encodes each file once and splits the ids into
 * parts. Must not know: batches, models. Read next: the loader, data/loader.c. */
#include <math.h>
#include <string.h>

#include <weft/data.h>

#include "text/corpus_files.h"
#include "text/tokenizer.h"

struct weft_corpus {
    weft_context *ctx;
    weft_tokenizer *own;                  /* tokenizer built here, or NULL */
    const weft_tokenizer *tokenizer;      /* `own`, or the caller's tokenizer */
    int32_t *ids[WEFT_CORPUS_PART_COUNT]; /* owned; parts[validation] may be a part of the training ids */
    const int32_t *parts[WEFT_CORPUS_PART_COUNT];
    size_t counts[WEFT_CORPUS_PART_COUNT];
    uint64_t bytes;
    weft_corpus_files files;
};

/* The files while they are encoded. */
typedef struct sources {
    weft_bytes files[WEFT_CORPUS_PART_COUNT];
    weft__span spans[WEFT_CORPUS_PART_COUNT]; /* name NULL: not given */
} sources;

static weft_status read_sources(weft_corpus *c, const char *const paths[WEFT_CORPUS_PART_COUNT], bool utf8,
                                size_t max_bytes, sources *s) {
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        if (!paths[part]) continue;
        WEFT_TRY(weft__text_read(c->ctx, paths[part], utf8, max_bytes, &c->files, &s->files[part]));
        if (s->files[part].size == 0)
            return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: the file is empty", paths[part]);
        s->spans[part] = weft__span_of(paths[part], &s->files[part]);
        c->bytes += s->files[part].size;
    }
    return WEFT_OK;
}

/* Builds the tokenizer. Every character needs an id, so all files are read for characters. Words may be
 * unknown, so only the training file is read for words. */
static weft_status build_tokenizer(weft_corpus *c, const weft_corpus_options *o, const sources *s) {
    weft__span spans[WEFT_CORPUS_PART_COUNT];
    size_t count = 0;
    if (o->tokenizer) {
        c->tokenizer = o->tokenizer;
        return WEFT_OK;
    }
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++)
        if (s->spans[part].name && (part == WEFT_CORPUS_TRAIN || o->kind == WEFT_TOKENIZER_CHARACTER))
            spans[count++] = s->spans[part];
    weft_status status = weft__tokenizer_build(c->ctx, o->kind, spans, count, o->max_vocabulary, &c->own);
    c->tokenizer = c->own;
    return status;
}

/* Encodes the given parts, and splits off the end of the training ids if validation_fraction is set. */
static weft_status encode_parts(weft_corpus *c, const weft_corpus_options *o, const sources *s) {
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        if (!s->spans[part].name) continue;
        WEFT_TRY(weft__tokenizer_encode_all(c->tokenizer, c->ctx, &s->spans[part], &c->ids[part],
                                            &c->counts[part]));
        c->parts[part] = c->ids[part];
    }
    if (o->validation_fraction > 0) {
        size_t total = c->counts[WEFT_CORPUS_TRAIN];
        size_t kept = (size_t)floor((double)total * (1.0 - o->validation_fraction));
        if (kept > total) kept = total;
        c->counts[WEFT_CORPUS_TRAIN] = kept;
        c->counts[WEFT_CORPUS_VALIDATION] = total - kept;
        c->parts[WEFT_CORPUS_VALIDATION] = c->ids[WEFT_CORPUS_TRAIN] + kept;
    }
    return WEFT_OK;
}

static weft_status corpus_check_options(weft_context *ctx, const weft_corpus_options *o) {
    if ((unsigned)o->kind >= WEFT_TOKENIZER_KIND_COUNT)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_corpus_open: unknown kind %d of tokenizer",
                          (int)o->kind);
    if (!(o->validation_fraction >= 0 && o->validation_fraction < 1))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_corpus_open: validation_fraction must be 0 to less than 1");
    if (o->validation_fraction > 0 && o->validation_path)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_corpus_open: give validation_fraction or validation_path, not both");
    return WEFT_OK;
}

weft_status weft_corpus_open(weft_context *ctx, const char *path, const weft_corpus_options *options,
                             weft_corpus **out) {
    static const weft_corpus_options defaults;
    const weft_corpus_options *o = options ? options : &defaults;
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    WEFT_TRY(corpus_check_options(ctx, o));
    weft_corpus *c = weft__zalloc(ctx, sizeof *c);
    if (!c) return weft__fail_oom(ctx, sizeof *c, "a corpus");
    c->ctx = ctx;
    const char *const paths[WEFT_CORPUS_PART_COUNT] = {path, o->validation_path, o->test_path};
    const weft_tokenizer_kind kind = o->tokenizer ? o->tokenizer->kind : o->kind;
    sources s;
    memset(&s, 0, sizeof s);
    weft_status status = read_sources(c, paths, kind != WEFT_TOKENIZER_BYTE, o->max_bytes, &s);
    if (status == WEFT_OK) status = build_tokenizer(c, o, &s);
    if (status == WEFT_OK) status = encode_parts(c, o, &s);
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) weft_bytes_free(ctx, &s.files[part]);
    if (status == WEFT_OK) {
        *out = c;
    } else {
        weft_corpus_free(c);
    }
    return status;
}

void weft_corpus_free(weft_corpus *c) {
    if (!c) return;
    weft_tokenizer_free(c->own);
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) weft__free(c->ctx, c->ids[part]);
    weft__free(c->ctx, c);
}

const int32_t *weft_corpus_ids(const weft_corpus *c, weft_corpus_part part, size_t *count) {
    bool known = c && (unsigned)part < WEFT_CORPUS_PART_COUNT;
    if (count) *count = known ? c->counts[part] : 0;
    return known ? c->parts[part] : NULL;
}

const weft_tokenizer *weft_corpus_tokenizer(const weft_corpus *c) { return c ? c->tokenizer : NULL; }

uint64_t weft_corpus_bytes(const weft_corpus *c) { return c ? c->bytes : 0; }

weft_corpus_files weft_corpus_files_of(const weft_corpus *c) { return c ? c->files : (weft_corpus_files){0}; }

uint64_t weft_corpus_hash(const weft_corpus *c) {
    weft_hash h;
    if (!c) return 0;
    weft__hash_init(&h);
    weft__hash_bytes(&h, c->tokenizer->text, c->tokenizer->text_used);
    weft__hash_bytes(&h, c->tokenizer->ends, c->tokenizer->count * sizeof *c->tokenizer->ends);
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++)
        weft__hash_bytes(&h, c->parts[part], c->counts[part] * sizeof(int32_t)); /* also hashes the size */
    return h.a;
}
