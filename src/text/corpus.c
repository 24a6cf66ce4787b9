/* A corpus: reads text files, builds or borrows a tokenizer, encodes each file once and splits the ids into
 * parts. A part whose text stays in its files has no ids, but a stream that encodes what is read
 * (text_stream.h). Must not know: batches, models. Read next: the loader, data/loader.c. */
#include <math.h>
#include <string.h>

#include <weft/data.h>

#include "text/corpus_files.h"
#include "text/text_stream.h"

struct weft_corpus {
    weft_context *ctx;
    weft_tokenizer *own;                  /* tokenizer built here, or NULL */
    const weft_tokenizer *tokenizer;      /* `own`, or the caller's tokenizer */
    int32_t *ids[WEFT_CORPUS_PART_COUNT]; /* owned; parts[validation] may be a part of the training ids */
    const int32_t *parts[WEFT_CORPUS_PART_COUNT];
    size_t counts[WEFT_CORPUS_PART_COUNT];
    weft__text_stream *streams[WEFT_CORPUS_PART_COUNT]; /* NULL: the ids are in memory */
    const weft_tokens *tokens[WEFT_CORPUS_PART_COUNT];  /* of streams; validation may be a part of training */
    int64_t firsts[WEFT_CORPUS_PART_COUNT];
    uint64_t hash;
    uint64_t bytes;
    char *missing; /* see weft__corpus_missing */
    weft_corpus_files files;
};

/* The files while they are encoded. */
typedef struct sources {
    const char *paths[WEFT_CORPUS_PART_COUNT]; /* NULL: not given */
    weft_bytes files[WEFT_CORPUS_PART_COUNT];
    weft__span spans[WEFT_CORPUS_PART_COUNT]; /* name NULL: not given, or a stream that is not read here */
    weft__buffer characters[WEFT_CORPUS_PART_COUNT]; /* of streams */
} sources;

static void add_files(weft_corpus *c, const weft_corpus_files *found) {
    c->files.read += found->read;
    c->files.hidden += found->hidden;
    c->files.folders += found->folders;
    c->files.others += found->others;
}

static void add_stream_files(weft_corpus *c, weft__text_stream *s) {
    add_files(c, &s->documents.found);
    if (!c->missing) {
        c->missing = s->documents.missing;
        s->documents.missing = NULL;
    }
}

/* Opens the text of a part as a stream if it stays in its files. Files of several texts are streams at first;
 * if the texts do not stay in them, they are read as a whole. */
static weft_status read_stream(weft_corpus *c, const weft_corpus_options *o, const weft__text_files *files,
                               int part, weft_tokenizer_kind kind, sources *s) {
    const char *path = s->paths[part];
    weft__text_stream *stream = NULL;
    if (kind == WEFT_TOKENIZER_PIPELINE && !weft__documents_several(files))
        return weft__fail(
            c->ctx, WEFT_ERR_ARGUMENT,
            "%s: this tokenizer encodes a text as a whole, so the text cannot stay in its file: "
            "write its tokens into files first, with weft tokenize",
            path);
    if (kind == WEFT_TOKENIZER_WORD && o->in_files && !o->tokenizer)
        return weft__fail(
            c->ctx, WEFT_ERR_ARGUMENT,
            "%s: the words of a text are counted in memory, so it cannot stay in its files: use "
            "another tokenizer",
            path);
    WEFT_TRY(weft__text_stream_open(c->ctx, path, files, !o->in_files, &stream));
    add_stream_files(c, stream);
    /* such texts are encoded one by one, so they stay in their files */
    if (o->in_files || kind == WEFT_TOKENIZER_PIPELINE) {
        c->streams[part] = stream;
        c->bytes += stream->documents.bytes;
        return WEFT_OK;
    }
    const weft_status status = weft__text_stream_read(stream, kind != WEFT_TOKENIZER_BYTE, &s->files[part]);
    weft__text_stream_free(stream);
    return status;
}

static weft_status is_empty(const weft_corpus *c, const char *path) {
    return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: the file is empty", path);
}

static weft_status read_corpus_part(weft_corpus *c, const weft_corpus_options *o,
                                    const weft__text_files *files, int part, weft_tokenizer_kind kind,
                                    sources *s) {
    const char *path = s->paths[part];
    weft_bytes *text = &s->files[part];
    const bool several = weft__documents_several(files);
    if (several || o->in_files) {
        WEFT_TRY(read_stream(c, o, files, part, kind, s));
    } else {
        add_files(c, &files->found);
        WEFT_TRY(weft__text_read(c->ctx, path, files, kind != WEFT_TOKENIZER_BYTE, o->max_bytes, text));
    }
    if (c->streams[part]) return WEFT_OK;
    if (text->size == 0) return is_empty(c, path);
    s->spans[part] = weft__span_of(path, text);
    if (several) /* its texts have lost their byte order marks already */
        s->spans[part] = (weft__span){path, (const char *)text->data, text->size};
    c->bytes += text->size;
    return WEFT_OK;
}

static weft_status read_sources(weft_corpus *c, const weft_corpus_options *o, weft_tokenizer_kind kind,
                                sources *s) {
    weft_status status = WEFT_OK;
    for (int part = 0; status == WEFT_OK && part < WEFT_CORPUS_PART_COUNT; part++) {
        weft__text_files files;
        if (!s->paths[part]) continue;
        status = weft__documents_files(c->ctx, s->paths[part], &files);
        if (status == WEFT_OK) status = read_corpus_part(c, o, &files, part, kind, s);
        weft__text_files_free(c->ctx, &files);
    }
    return status;
}

/* Collects the characters of all streams, each once: a vocabulary needs no more. */
static weft_status read_characters(weft_corpus *c, sources *s) {
    enum { POINTS = 0x110000 };
    weft_status status = WEFT_OK;
    for (int part = 0; status == WEFT_OK && part < WEFT_CORPUS_PART_COUNT; part++) {
        if (!c->streams[part]) continue;
        uint8_t *seen = weft__zalloc(c->ctx, POINTS / 8);
        if (!seen) return weft__fail_oom(c->ctx, POINTS / 8, "the characters of a corpus");
        s->characters[part].ctx = c->ctx;
        status = weft__text_stream_characters(c->streams[part], seen, &s->characters[part]);
        weft__free(c->ctx, seen);
        if (status == WEFT_OK && s->characters[part].bytes == 0) status = is_empty(c, s->paths[part]);
    }
    return status;
}

/* Builds the tokenizer. Every character needs an id, so all files are read for characters. Words may be
 * unknown, so only the training file is read for words. */
static weft_status build_tokenizer(weft_corpus *c, const weft_corpus_options *o, sources *s) {
    weft__span spans[WEFT_CORPUS_PART_COUNT];
    size_t count = 0;
    if (o->tokenizer) {
        c->tokenizer = o->tokenizer;
        return WEFT_OK;
    }
    if (o->kind == WEFT_TOKENIZER_CHARACTER) WEFT_TRY(read_characters(c, s));
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        const weft__buffer *characters = &s->characters[part];
        if (s->spans[part].name && (part == WEFT_CORPUS_TRAIN || o->kind == WEFT_TOKENIZER_CHARACTER))
            spans[count++] = s->spans[part];
        if (characters->bytes) spans[count++] = (weft__span){"a text", characters->text, characters->bytes};
    }
    weft_status status = weft__tokenizer_build(c->ctx, o->kind, spans, count, o->max_vocabulary, &c->own);
    c->tokenizer = c->own;
    return status;
}

/* Encodes the given parts, and splits off the end of the training ids if validation_fraction is set. */
static weft_status encode_parts(weft_corpus *c, const weft_corpus_options *o, const sources *s) {
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        if (!s->spans[part].name) continue;
        WEFT_TRY(weft__tokenizer_encode_all(c->tokenizer, c->ctx, &s->spans[part], true, &c->ids[part],
                                            &c->counts[part]));
        c->parts[part] = c->ids[part];
    }
    if (o->validation_fraction > 0 && !c->streams[WEFT_CORPUS_TRAIN]) {
        size_t total = c->counts[WEFT_CORPUS_TRAIN];
        size_t kept = (size_t)floor((double)total * (1.0 - o->validation_fraction));
        if (kept > total) kept = total;
        c->counts[WEFT_CORPUS_TRAIN] = kept;
        c->counts[WEFT_CORPUS_VALIDATION] = total - kept;
        c->parts[WEFT_CORPUS_VALIDATION] = c->ids[WEFT_CORPUS_TRAIN] + kept;
    }
    return WEFT_OK;
}

static void begin_hash(const weft_corpus *c, weft_hash *h) {
    weft__hash_init(h);
    weft__hash_bytes(h, c->tokenizer->text, c->tokenizer->text_used);
    weft__hash_bytes(h, c->tokenizer->ends, c->tokenizer->count * sizeof *c->tokenizer->ends);
}

/* Makes the index of each stream, and the hash of the corpus: that of the same ids in memory. */
static weft_status index_streams(weft_corpus *c, const sources *from, double fraction) {
    weft_hash h;
    bool hashed = false; /* the validation ids, with those of training */
    begin_hash(c, &h);
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        weft__text_stream *s = c->streams[part];
        const double share = part == WEFT_CORPUS_TRAIN ? fraction : 0;
        int64_t kept = 0;
        if (!s) {
            if (part != WEFT_CORPUS_VALIDATION || !hashed)
                weft__hash_bytes(&h, c->parts[part], c->counts[part] * sizeof(int32_t));
            continue;
        }
        WEFT_TRY(weft__text_stream_index(s, c->tokenizer, share, &h, &kept));
        if (weft_tokens_count(s->tokens) == 0) return is_empty(c, from->paths[part]);
        c->tokens[part] = s->tokens;
        c->counts[part] = (size_t)kept;
        if (share == 0) continue;
        hashed = true;
        c->tokens[WEFT_CORPUS_VALIDATION] = s->tokens;
        c->firsts[WEFT_CORPUS_VALIDATION] = kept;
        c->counts[WEFT_CORPUS_VALIDATION] = (size_t)(weft_tokens_count(s->tokens) - kept);
    }
    c->hash = h.a;
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
    const weft_tokenizer_kind kind = o->tokenizer ? o->tokenizer->kind : o->kind;
    sources s = {.paths = {path, o->validation_path, o->test_path}};
    weft_status status = read_sources(c, o, kind, &s);
    if (status == WEFT_OK) status = build_tokenizer(c, o, &s);
    if (status == WEFT_OK) status = encode_parts(c, o, &s);
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        weft_bytes_free(ctx, &s.files[part]);
        weft__buffer_free(&s.characters[part]);
    }
    if (status == WEFT_OK) status = index_streams(c, &s, o->validation_fraction);
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
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++) {
        weft__free(c->ctx, c->ids[part]);
        weft__text_stream_free(c->streams[part]);
    }
    weft__free(c->ctx, c->missing);
    weft__free(c->ctx, c);
}

const int32_t *weft_corpus_ids(const weft_corpus *c, weft_corpus_part part, size_t *count) {
    bool known = c && (unsigned)part < WEFT_CORPUS_PART_COUNT;
    if (count) *count = known ? c->counts[part] : 0;
    return known ? c->parts[part] : NULL;
}

const weft_tokens *weft_corpus_tokens(const weft_corpus *c, weft_corpus_part part, int64_t *first) {
    bool known = c && (unsigned)part < WEFT_CORPUS_PART_COUNT;
    if (first) *first = known ? c->firsts[part] : 0;
    return known ? c->tokens[part] : NULL;
}

const char *weft__corpus_missing(const weft_corpus *c) { return c ? c->missing : NULL; }

const weft_tokenizer *weft_corpus_tokenizer(const weft_corpus *c) { return c ? c->tokenizer : NULL; }

uint64_t weft_corpus_bytes(const weft_corpus *c) { return c ? c->bytes : 0; }

weft_corpus_files weft_corpus_files_of(const weft_corpus *c) { return c ? c->files : (weft_corpus_files){0}; }

uint64_t weft_corpus_hash(const weft_corpus *c) { return c ? c->hash : 0; }
