/* The model Unigram: of all ways to spell a word with tokens, the one whose scores have the largest sum
 * (Kudo, "Subword regularization", 2018). Viterbi's algorithm finds it. Must not know: files, how texts are
 * cut. Read next: decoders.c. */
#include <stdio.h>

#include "text/pipeline/pipeline.h"

#define UNKNOWN_PENALTY 10.0 /* an unknown character scores this much below the worst token */

static weft_status unigram_read(weft__reader *r, const json_t *json) {
    weft_tokenizer *t = r->t;
    weft__pipeline *p = t->pipeline;
    const json_t *vocabulary = json_object_get(json, "vocab");
    WEFT_TRY(weft__read_bool(r, json, "byte_fallback", &p->byte.fallback));
    p->unigram.scores = weft__array(t->ctx, t->count + 1, sizeof *p->unigram.scores);
    if (!p->unigram.scores)
        return weft__fail_oom(t->ctx, t->count * sizeof *p->unigram.scores, "scores of tokens");
    for (size_t id = 0; id < json_array_size(vocabulary); id++) {
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        p->unigram.scores[id] = json_number_value(json_array_get(json_array_get(vocabulary, id), 1));
        if (id == 0 || p->unigram.scores[id] < p->unigram.worst) p->unigram.worst = p->unigram.scores[id];
        if (bytes) WEFT_TRY(weft__trie_add(t->ctx, &p->trie, token, bytes, (int32_t)id));
    }
    p->unigram.worst -= UNKNOWN_PENALTY;
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        p->byte.ids[i] = weft__model_id(t, name, 6);
    }
    return WEFT_OK;
}

/* Offers a token that leads to a node. */
static void offer(weft__path_node *node, size_t begin, int32_t id, double score) {
    if (node->begin != SIZE_MAX && score <= node->score) return;
    *node = (weft__path_node){score, begin, id};
}

static weft_status find_path(weft__encoding *e, const char *word, size_t bytes) {
    weft__pipeline *p = e->t->pipeline;
    weft__path_node *path = p->unigram.path;
    path[0] = (weft__path_node){0, 0, -1};
    for (size_t i = 1; i <= bytes; i++) path[i].begin = SIZE_MAX;
    for (size_t at = 0, next; at < bytes; at = next) {
        uint32_t point, node = 0;
        bool single = false;
        size_t i = at;
        next = at + weft__read_point(word, bytes, at, &point);
        for (; i < bytes; i++) {
            node = weft__trie_child(&p->trie, node, (unsigned char)word[i]);
            if (!node) break;
            int32_t id = p->trie.values[node];
            if (id < 0) continue;
            offer(&path[i + 1], at, id, path[at].score + p->unigram.scores[id]);
            single |= i + 1 == next;
        }
        WEFT_TRY(weft__pipeline_work(e->t, i - at));
        if (single) continue;
        if (p->unknown < 0)
            return weft__fail(e->t->ctx, WEFT_ERR_INDEX,
                              "%s: character U+%04X is unknown, and the vocabulary has no unknown token",
                              e->name, (unsigned)point);
        offer(&path[next], at, p->unknown, path[at].score + p->unigram.worst);
    }
    return WEFT_OK;
}

/* Puts out an unknown text: as a token after all, as bytes, or as the unknown token. */
static void put_unknown_text(weft__encoding *e, const char *text, size_t bytes) {
    const weft__pipeline *p = e->t->pipeline;
    int32_t id = weft__model_id(e->t, text, bytes);
    bool falls_back = id < 0 && p->byte.fallback;
    for (size_t i = 0; i < bytes && falls_back; i++) falls_back = p->byte.ids[(unsigned char)text[i]] >= 0;
    if (!falls_back)
        weft__put_id(e->out, id >= 0 ? id : p->unknown);
    else
        for (size_t i = 0; i < bytes; i++) weft__put_id(e->out, p->byte.ids[(unsigned char)text[i]]);
}

static weft_status unigram_encode(weft__encoding *e, const char *word, size_t bytes) {
    weft__pipeline *p = e->t->pipeline;
    if (bytes + 1 > p->unigram.room) {
        size_t wanted = bytes + bytes / 2 + 64;
        weft__free(e->t->ctx, p->unigram.path);
        p->unigram.room = 0;
        p->unigram.path = weft__array(e->t->ctx, wanted, sizeof *p->unigram.path);
        if (!p->unigram.path)
            return weft__fail_oom(e->t->ctx, wanted * sizeof *p->unigram.path, "a long word");
        p->unigram.room = wanted;
    }
    WEFT_TRY(find_path(e, word, bytes));
    /* Turn the links around: path[begin].begin becomes the end of the token that begins there. */
    size_t end = bytes, after = SIZE_MAX;
    for (;;) {
        size_t begin = end ? p->unigram.path[end].begin : SIZE_MAX;
        int32_t id = p->unigram.path[end].id;
        p->unigram.path[end].begin = after;
        if (!end) break;
        after = end;
        end = begin;
        p->unigram.path[begin].score = id; /* ids are exact in a double */
    }
    for (size_t at = 0, next; at < bytes; at = next) {
        int32_t id = (int32_t)p->unigram.path[at].score;
        next = p->unigram.path[at].begin;
        if (id != p->unknown) {
            weft__put_id(e->out, id);
            continue;
        }
        while (next < bytes && (int32_t)p->unigram.path[next].score == p->unknown)
            next = p->unigram.path[next].begin;
        put_unknown_text(e, word + at, next - at);
    }
    return WEFT_OK;
}

const weft__model_type weft__model_unigram = {
    .name = "Unigram", .read = unigram_read, .encode = unigram_encode};
