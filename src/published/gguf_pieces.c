/* Writes SentencePiece's BPE of a GGUF file as tokenizer.json: the inverse of gguf_sentencepiece.c. The file
 * has a score for each token. Two neighbours whose joint token has the largest score are joined first, so
 * each pair of tokens that makes a token is a merge, and the merges are sorted by score. Must not know: how
 * texts are encoded. Read next: text/pipeline/model_bpe.c. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "published/gguf.h"
#include "published/published.h"
#include "text/pipeline/pipeline.h"

#define SPACE "\xe2\x96\x81" /* U+2581 */

#define LONGEST 512 /* bytes of a piece that merges make; SentencePiece's are shorter */

enum { NORMAL = 1, UNKNOWN = 2 }; /* values of token_type */

typedef struct piece {
    const char *text;
    size_t bytes, id;
    double type, score;
} piece;

static int compare_pieces(const void *a, const void *b) {
    const piece *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Lists the pieces. False: the arrays have other elements, or a score is no number. */
static bool list_pieces(const weft__gguf_pieces *arrays, piece *list) {
    weft__gguf_value tokens = arrays->tokens, types = arrays->types, scores = arrays->scores;
    for (size_t i = 0; i < arrays->tokens.count; i++) {
        list[i].id = i;
        if (!weft__gguf_text(&tokens, &list[i].text, &list[i].bytes) ||
            !weft__gguf_number(&types, &list[i].type) || !weft__gguf_number(&scores, &list[i].score) ||
            !isfinite(list[i].score))
            return false;
    }
    return true;
}

/* Appends the pairs of tokens that make a piece. */
static void put_pairs(const piece *p, const json_t *vocabulary, json_t *merges) {
    size_t next;
    uint32_t point;
    for (size_t at = 0; at < p->bytes; at = next) {
        next = at + weft__read_point(p->text, p->bytes, at, &point);
        if (next < p->bytes && json_object_getn(vocabulary, p->text, next) &&
            json_object_getn(vocabulary, p->text + next, p->bytes - next))
            json_array_append_new(merges,
                                  json_pack("[s%, s%]", p->text, next, p->text + next, p->bytes - next));
    }
}

/* How spaces are written, and how they are read again. */
static json_t *normalizer_of(bool prefix) {
    json_t *list = json_array();
    if (prefix) json_array_append_new(list, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", SPACE));
    json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", " ",
                                          "content", SPACE));
    return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", list);
}

static json_t *decoder_of(bool prefix) {
    json_t *list = json_array();
    json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String",
                                          SPACE, "content", " "));
    json_array_append_new(list, json_pack("{s:s}", "type", "ByteFallback"));
    json_array_append_new(list, json_pack("{s:s}", "type", "Fuse"));
    if (prefix)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", list);
}

static json_t *pieces_json(const weft__gguf *g, const piece *list, size_t count, json_t *vocabulary,
                           json_t *added) {
    static const char key[] = "tokenizer.ggml.add_space_prefix";
    weft__gguf_value value;
    double prefix = 1;
    json_t *merges = json_array(), *unknown = json_null();
    if (weft__gguf_find(g, key, &value)) weft__gguf_number(&value, &prefix);
    for (size_t i = 0; i < count; i++) {
        if (list[i].type == UNKNOWN) unknown = json_stringn(list[i].text, list[i].bytes);
        if (list[i].type == NORMAL && list[i].bytes <= LONGEST) put_pairs(&list[i], vocabulary, merges);
    }
    json_t *model =
        json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                  unknown, "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1, "byte_fallback",
                  1, "ignore_merges", 0, "vocab", vocabulary, "merges", merges);
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:n, s:n, s:o, s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", added, "normalizer", normalizer_of(prefix != 0),
                     "pre_tokenizer", "post_processor", "decoder", decoder_of(prefix != 0), "model", model);
}

json_t *weft__gguf_pieces_json(weft_context *ctx, const weft__gguf *g, const weft__gguf_pieces *pieces,
                               json_t *vocabulary, json_t *added, bool *starved) {
    const size_t count = (size_t)pieces->tokens.count;
    piece *list = weft__array(ctx, count + 1, sizeof *list);
    json_t *root = NULL;
    *starved = !list;
    if (list && list_pieces(pieces, list)) {
        qsort(list, count, sizeof *list, compare_pieces);
        root = pieces_json(g, list, count, vocabulary, added);
    }
    weft__free(ctx, list);
    return root;
}
