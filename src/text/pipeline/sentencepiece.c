/* Reads the .model files of SentencePiece, which are protocol buffers, and writes the same tokenizer as
 * tokenizer.json. So there is one way to build a pipeline, and weft_tokenizer_save writes a file that others
 * read. Field numbers: sentencepiece_model.proto (github.com/google/sentencepiece).
 *
 * tokenizer.json cannot say all. A mark in the first added token, "weft_sentencepiece", tells that merges
 * which make the same token have one rank, and that the map of characters takes the longest match, as
 * SentencePiece does. Must not know: how texts are encoded. Read next: ../train.c. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/pipeline/pipeline.h"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE }; /* types of pieces */
enum { UNIGRAM = 1, BPE };                                         /* types of models */

typedef struct piece {
    const char *text; /* in the file */
    size_t bytes;
    double score;
    uint64_t type;
} piece;

typedef struct merge {
    uint32_t made, split; /* a piece, and after how many bytes it is cut */
    double score;
} merge;

typedef struct sp_model {
    weft_context *ctx;
    const char *name;
    piece *pieces; /* [count] */
    size_t count, capacity;
    merge *merges; /* [merge_count] */
    size_t merge_count, merge_capacity;
    weft__trie normal; /* ids of normal pieces */
    uint64_t type;     /* of the model */
    int64_t roles[4];  /* ids of unk, bos, eos, pad; -1: none */
    bool byte_fallback, dummy_prefix, squeeze, user_defined, inner_space;
    const char *charsmap;
    size_t charsmap_bytes;
} sp_model;

/* ---- protocol buffers: a cursor with a remaining length ---- */

typedef struct proto {
    const char *at;
    size_t left;
    bool bad;
} proto;

typedef struct proto_field {
    uint64_t number, value; /* of a varint */
    proto inner;            /* of bytes */
    double real;            /* of a float */
} proto_field;

static uint64_t read_varint(proto *p) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (!p->left) break;
        unsigned char byte = (unsigned char)*p->at++;
        p->left--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    p->bad = true;
    return 0;
}

static bool skip(proto *p, size_t bytes) {
    if (p->left < bytes) {
        p->bad = true;
        return false;
    }
    p->at += bytes;
    p->left -= bytes;
    return true;
}

/* Reads the next field. False at the end, and if the data are bad. */
static bool next_field(proto *p, proto_field *f) {
    if (!p->left || p->bad) return false;
    uint64_t tag = read_varint(p), size;
    const char *start = p->at;
    *f = (proto_field){.number = tag >> 3};
    switch (tag & 7) {
    case 0: f->value = read_varint(p); break;
    case 1: skip(p, 8); break;
    case 2:
        size = read_varint(p);
        start = p->at;
        if (!p->bad && skip(p, size > SIZE_MAX ? SIZE_MAX : (size_t)size))
            f->inner = (proto){start, (size_t)size, false};
        break;
    case 5:
        if (skip(p, 4)) {
            float real;
            memcpy(&real, start, sizeof real); /* little endian, as all hosts of Weft */
            f->real = (double)real;
        }
        break;
    default: p->bad = true;
    }
    return !p->bad;
}

/* ---- reading ---- */

static weft_status bad_model(const sp_model *m, const char *what) {
    return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: the file is damaged, or is no SentencePiece model",
                      m->name, what);
}

static weft_status read_piece(sp_model *m, proto p) {
    proto_field f;
    piece new = {.text = "", .type = NORMAL};
    while (next_field(&p, &f)) {
        if (f.number == 1) {
            new.text = f.inner.at ? f.inner.at : "";
            new.bytes = f.inner.left;
        }
        if (f.number == 2) new.score = f.real;
        if (f.number == 3) new.type = f.value;
    }
    const weft__span span = {m->name, new.text, new.bytes};
    if (p.bad || !(new.score - new.score == 0)) return bad_model(m, "a piece");
    WEFT_TRY(weft__check_utf8(m->ctx, &span));
    if (memchr(new.text, 0, new.bytes)) return bad_model(m, "a piece with a NUL");
    if (!weft__grow(m->ctx, &m->pieces, &m->capacity, m->count, sizeof *m->pieces))
        return weft__fail_oom(m->ctx, m->count * sizeof *m->pieces, "a vocabulary");
    m->user_defined |= new.type == USER_DEFINED;
    m->pieces[m->count++] = new;
    return WEFT_OK;
}

static void read_trainer(sp_model *m, proto *p) {
    proto_field f;
    while (next_field(p, &f)) {
        if (f.number == 3) m->type = f.value;
        if (f.number == 35) m->byte_fallback = f.value != 0;
        if (f.number >= 40 && f.number <= 43) m->roles[f.number - 40] = (int32_t)f.value;
    }
}

static void read_normalizer(sp_model *m, proto *p) {
    proto_field f;
    while (next_field(p, &f)) {
        if (f.number == 2) {
            m->charsmap = f.inner.at;
            m->charsmap_bytes = f.inner.left;
        }
        if (f.number == 3) m->dummy_prefix = f.value != 0;
        if (f.number == 4) m->squeeze = f.value != 0;
    }
}

static weft_status read_model(sp_model *m, const char *data, size_t bytes) {
    proto p = {data, bytes, false};
    proto_field f;
    bool bad = false;
    while (next_field(&p, &f)) {
        if (f.number == 1) WEFT_TRY(read_piece(m, f.inner));
        if (f.number == 2) read_trainer(m, &f.inner);
        if (f.number == 3) read_normalizer(m, &f.inner);
        bad |= f.inner.bad;
    }
    if (p.bad || bad || !m->count) return bad_model(m, "its fields");
    if (m->type != UNIGRAM && m->type != BPE)
        return weft__fail(m->ctx, WEFT_ERR_UNSUPPORTED,
                          "%s: its type is %llu; Weft knows unigram (1) and BPE (2)", m->name,
                          (unsigned long long)m->type);
    for (size_t i = 0; i < m->count; i++) {
        const piece *x = &m->pieces[i];
        for (size_t at = 1; at + 3 <= x->bytes; at++)
            m->inner_space |= memcmp(x->text + at, "\xe2\x96\x81", 3) == 0;
    }
    return WEFT_OK;
}

/* ---- merges ---- */

/* Returns the id of a normal piece, or -1. */
static int32_t find_normal(const sp_model *m, const char *text, size_t bytes) {
    uint32_t node = 0;
    for (size_t i = 0; i < bytes; i++) {
        node = weft__trie_child(&m->normal, node, (unsigned char)text[i]);
        if (!node) return -1;
    }
    return m->normal.values[node];
}

static weft_status add_merges(sp_model *m, size_t id) {
    const piece *x = &m->pieces[id];
    uint32_t node = 0;
    for (size_t at = 1; at < x->bytes; at++) {
        node = weft__trie_child(&m->normal, node, (unsigned char)x->text[at - 1]);
        if (m->normal.values[node] < 0 || find_normal(m, x->text + at, x->bytes - at) < 0) continue;
        if (!weft__grow(m->ctx, &m->merges, &m->merge_capacity, m->merge_count, sizeof *m->merges))
            return weft__fail_oom(m->ctx, m->merge_count * sizeof *m->merges, "merges");
        m->merges[m->merge_count++] = (merge){(uint32_t)id, (uint32_t)at, x->score};
    }
    return WEFT_OK;
}

static int compare_merges(const void *a, const void *b) {
    const merge *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->made != y->made) return x->made < y->made ? -1 : 1;
    return x->split < y->split ? -1 : x->split > y->split;
}

/* Each way to cut a piece into two others is a merge. The score of the piece is its rank. */
static weft_status find_merges(sp_model *m) {
    for (size_t id = 0; id < m->count; id++)
        if (m->pieces[id].type == NORMAL)
            WEFT_TRY(
                weft__trie_add(m->ctx, &m->normal, m->pieces[id].text, m->pieces[id].bytes, (int32_t)id));
    for (size_t id = 0; id < m->count; id++)
        if (m->pieces[id].type == NORMAL) WEFT_TRY(add_merges(m, id));
    if (m->merge_count) qsort(m->merges, m->merge_count, sizeof *m->merges, compare_merges);
    return WEFT_OK;
}

/* ---- writing tokenizer.json ---- */

static json_t *text_of(const piece *x) { return json_stringn(x->text, x->bytes); }

static json_t *describe_added(const sp_model *m) {
    static const char *const names[4] = {"unk", "bos", "eos", "pad"};
    json_t *list = json_array();
    for (size_t id = 0; id < m->count; id++) {
        const piece *x = &m->pieces[id];
        bool special = x->type == CONTROL || x->type == UNKNOWN;
        if ((!special && (x->type != USER_DEFINED || m->type != BPE)) || !x->bytes) continue;
        json_t *roles = json_array();
        for (int i = 0; i < 4; i++)
            if (m->roles[i] == (int64_t)id) json_array_append_new(roles, json_string(names[i]));
        json_t *token = json_pack("{s:i, s:o, s:b, s:b, s:b, s:b, s:b, s:o}", "id", (int)id, "content",
                                  text_of(x), "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized",
                                  !special, "special", special, "weft_roles", roles);
        if (json_array_size(list) == 0) json_object_set_new(token, "weft_sentencepiece", json_true());
        json_array_append_new(list, token);
    }
    return list;
}

static json_t *base64_of(const char *data, size_t bytes, weft__buffer *room) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    weft__buffer_set(room, NULL, 0);
    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t bits = 0;
        char four[4];
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < bytes ? (unsigned char)data[i + k] : 0);
        for (size_t k = 0; k < 4; k++) four[k] = i + k > bytes ? '=' : digits[bits >> (18 - 6 * k) & 63];
        weft__buffer_put(room, four, 4);
    }
    return room->failed ? NULL : json_stringn(room->text, room->bytes);
}

static void append_replace(json_t *list, const char *kind, const char *pattern, const char *content) {
    json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", kind, pattern,
                                          "content", content));
}

/* Prefix and spaces in the order of SentencePiece. User-defined pieces are found in the normalized text, and
 * a prefix would become a part of them; so Metaspace then adds it. */
static json_t *describe_normalizer(const sp_model *m, weft__buffer *room) {
    json_t *list = json_array();
    if (m->charsmap_bytes)
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "Precompiled", "precompiled_charsmap",
                                              base64_of(m->charsmap, m->charsmap_bytes, room)));
    if (m->squeeze) {
        append_replace(list, "Regex", "\\A +", "");
        append_replace(list, "Regex", " {2,}", " ");
    }
    append_replace(list, "String", " ", "\xe2\x96\x81");
    if (m->dummy_prefix && !(m->user_defined && m->type == BPE))
        json_array_append_new(list, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", "\xe2\x96\x81"));
    if (m->squeeze) append_replace(list, "Regex", "\xe2\x96\x81+\\z", "");
    return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", list);
}

static json_t *describe_pre_tokenizer(const sp_model *m) {
    if (m->dummy_prefix && m->user_defined && m->type == BPE)
        return json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", "\xe2\x96\x81",
                         "prepend_scheme", "first", "split", !m->inner_space);
    if (m->inner_space) return json_null();
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "String", "\xe2\x96\x81",
                     "behavior", "MergedWithNext", "invert", 0);
}

static json_t *describe_decoder(const sp_model *m) {
    json_t *list = json_array();
    append_replace(list, "String", "\xe2\x96\x81", " ");
    json_array_append_new(list, json_pack("{s:s}", "type", "ByteFallback"));
    json_array_append_new(list, json_pack("{s:s}", "type", "Fuse"));
    if (m->dummy_prefix || m->squeeze)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ",
                                              "start", m->squeeze ? INT16_MAX : 1, "stop", 0));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", list);
}

static json_t *describe_bpe(const sp_model *m, weft__buffer *room) {
    json_t *vocabulary = json_object(), *merges = json_array();
    for (size_t id = 0; id < m->count; id++) {
        weft__buffer_set(room, m->pieces[id].text, m->pieces[id].bytes);
        weft__buffer_put(room, "", 1); /* the NUL of a key */
        if (room->failed) return NULL;
        json_object_set_new(vocabulary, room->text, json_integer((json_int_t)id));
    }
    for (size_t i = 0; i < m->merge_count; i++) {
        const piece *x = &m->pieces[m->merges[i].made];
        size_t split = m->merges[i].split;
        json_array_append_new(merges,
                              json_pack("[s%, s%]", x->text, split, x->text + split, x->bytes - split));
    }
    json_t *unknown =
        m->roles[0] >= 0 && m->roles[0] < (int64_t)m->count ? text_of(&m->pieces[m->roles[0]]) : json_null();
    return json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", unknown, "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
                     "byte_fallback", (int)m->byte_fallback, "ignore_merges", 0, "vocab", vocabulary,
                     "merges", merges);
}

/* The scores of normal pieces are logarithms of probabilities. A user-defined piece has a positive score, so
 * that it is always taken. */
static json_t *describe_unigram(const sp_model *m) {
    json_t *vocabulary = json_array();
    for (size_t id = 0; id < m->count; id++) {
        const piece *x = &m->pieces[id];
        double score = x->type == USER_DEFINED ? (double)x->bytes : x->score;
        json_array_append_new(vocabulary, json_pack("[o, f]", text_of(x), score));
    }
    json_t *unknown =
        m->roles[0] >= 0 && m->roles[0] < (int64_t)m->count ? json_integer(m->roles[0]) : json_null();
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "Unigram", "unk_id", unknown, "vocab", vocabulary,
                     "byte_fallback", (int)m->byte_fallback);
}

static json_t *describe_model(const sp_model *m, weft__buffer *room) {
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", describe_added(m), "normalizer", describe_normalizer(m, room),
                     "pre_tokenizer", describe_pre_tokenizer(m), "post_processor", "decoder",
                     describe_decoder(m), "model",
                     m->type == BPE ? describe_bpe(m, room) : describe_unigram(m));
}

weft_status weft__sentencepiece_text(weft_context *ctx, const char *name, const char *data, size_t bytes,
                                     char **text, size_t *text_bytes) {
    sp_model m = {.ctx = ctx,
                  .name = name,
                  .type = UNIGRAM,
                  .roles = {0, 1, 2, -1},
                  .dummy_prefix = true,
                  .squeeze = true};
    weft__buffer room = {.ctx = ctx};
    weft__json json;
    weft_status status = read_model(&m, data, bytes);
    if (status == WEFT_OK && m.type == BPE) status = find_merges(&m);
    if (status == WEFT_OK) {
        weft__json_build(&json, ctx);
        json_t *root = describe_model(&m, &room);
        status = weft__json_text(&json, root, JSON_COMPACT, name, text, text_bytes);
        if (status != WEFT_OK && room.failed) status = weft__buffer_check(&room);
    }
    weft__buffer_free(&room);
    weft__trie_free(ctx, &m.normal);
    weft__free(ctx, m.pieces);
    weft__free(ctx, m.merges);
    return status;
}
