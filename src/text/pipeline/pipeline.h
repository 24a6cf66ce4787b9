/* The private interface of tokenizers that others have published: a pipeline that tokenizer.json of Hugging
 * Face's library `tokenizers` describes. A text passes these stages:
 *
 *     added tokens     are cut out (added_tokens.c): <|endoftext|> and others that the model does not make
 *     normalizers      change the text (normalizers.c, unicode.c, charsmap.c)
 *     pre-tokenizers   cut it into words (pre_tokenizers.c, split.c)
 *     model            turns each word into ids (model_*.c)
 *     post-processor   adds special tokens, if the caller wants them (post_processor.c)
 *
 * Decoders turn ids back into text, id by id (decoders.c). The names and the behaviour of all parts are those
 * of the crate `tokenizers` 0.22 (github.com/huggingface/tokenizers). Texts get the same ids.
 *
 * Must not know: files (read.c does). Read next: pipeline.c, then read.c. */
#ifndef WEFT_SRC_TEXT_PIPELINE_H
#define WEFT_SRC_TEXT_PIPELINE_H

#include <jansson.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "text/merges.h"

/* ---- characters: unicode.c ---- */

/* Reads the code point at `at` < bytes of a text that is UTF-8, and returns its length. */
size_t weft__read_point(const char *text, size_t bytes, size_t at, uint32_t *point);

bool weft__is_space(uint32_t point);       /* White_Space */
bool weft__is_word(uint32_t point);        /* \w of Unicode: letters, marks, digits, connectors */
bool weft__is_numeric(uint32_t point);     /* categories N */
bool weft__is_punctuation(uint32_t point); /* ASCII punctuation, and categories P */
bool weft__is_mark(uint32_t point);        /* categories M */

/* ---- regular expressions: regex.c ---- */

typedef struct weft__regex weft__regex;

/* Compiles a pattern in the syntax of Oniguruma, or a text to find as it is. `where` names the part. */
weft_status weft__regex_new(weft_context *ctx, const char *where, const char *pattern, size_t bytes,
                            bool literal, weft__regex **out);
void weft__regex_free(weft__regex *regex);

/* The matches of a pattern in a text, one after the other. */
typedef struct weft__search {
    weft__regex *regex;
    const char *text;
    size_t bytes, at, last; /* `last` is the end of the last match; SIZE_MAX: there was none */
    size_t begin, end;      /* the current match */
    uint64_t steps_left;
} weft__search;

weft__search weft__search_of(weft__regex *regex, const char *text, size_t bytes);
/* Finds the next match. */
weft_status weft__search_next(weft__search *m, bool *found);

/* ---- a trie of tokens: trie.c ---- */

typedef struct weft__trie {
    uint64_t *keys;   /* [slots] (node + 1) << 8 | byte; 0 is a free slot */
    uint32_t *childs; /* [slots] */
    size_t slots;     /* a power of two */
    int32_t *values;  /* [count] id of the token that ends at a node, or -1 */
    size_t count, capacity;
    uint64_t key;
} weft__trie;

weft_status weft__trie_add(weft_context *ctx, weft__trie *trie, const char *token, size_t bytes, int32_t id);
/* Returns the child of a node, or 0 if there is none. Node 0 is the root. */
uint32_t weft__trie_child(const weft__trie *trie, uint32_t node, unsigned char byte);
void weft__trie_free(weft_context *ctx, weft__trie *trie);

/* ---- parts: normalizers, pre-tokenizers and decoders ---- */

/* What becomes of the matches of a pattern that cuts a text. */
typedef enum weft__behaviour {
    WEFT__REMOVED,
    WEFT__ISOLATED,
    WEFT__MERGED_WITH_PREVIOUS,
    WEFT__MERGED_WITH_NEXT,
    WEFT__CONTIGUOUS
} weft__behaviour;

typedef enum weft__prepend { WEFT__PREPEND_ALWAYS, WEFT__PREPEND_FIRST, WEFT__PREPEND_NEVER } weft__prepend;

struct weft__charsmap;

/* One normalizer, pre-tokenizer or decoder. Each type uses some of the fields. */
typedef struct weft__part {
    const struct weft__part_type *type;
    weft__buffer text; /* Replace: the new text; Metaspace: the replacement; decoders: prefix or suffix */
    weft__regex *regex;
    struct weft__charsmap *charsmap;
    weft__buffer room, points; /* work memory */
    weft__behaviour behaviour;
    weft__prepend prepend;
    size_t start, stop; /* Strip: how many characters */
    bool invert, split, add_space, use_regex;
    bool clean, chinese, accents, lowercase; /* BertNormalizer */
    bool left, right;                        /* Strip */
    bool longest; /* Precompiled: takes the longest match, and knows no grapheme clusters */
    bool fused;   /* decoders: it follows Fuse, so that all tokens count as one */
} weft__part;

/* Writes a text with each match of the part's pattern replaced: the normalizer and the decoder Replace. */
weft_status weft__run_replace(weft__part *p, const char *text, size_t bytes, weft__buffer *out);

typedef struct weft__parts {
    weft__part *list; /* [count] */
    size_t count, capacity;
} weft__parts;

void weft__parts_free(weft_context *ctx, weft__parts *parts);

/* What all functions of an encoding need. */
typedef struct weft__encoding {
    weft_tokenizer *t;
    const char *name; /* the text's, for messages */
    weft__ids *out;
} weft__encoding;

/* A piece of text on its way to the model. */
typedef struct weft__piece {
    const char *text;
    size_t bytes;
    bool first; /* it begins where the whole text begins */
} weft__piece;

/* What reading a part needs. */
typedef struct weft__reader {
    weft_tokenizer *t;
    const char *name;  /* of the file */
    const char *stage; /* "normalizer", "pre_tokenizer", ... */
    const char *part;  /* type of the part, such as "Replace" */
} weft__reader;

/* What decoding remembers from one id to the next. */
typedef struct weft__part_type {
    const char *name;
    weft_status (*read)(weft__reader *r, const json_t *json, weft__part *part); /* NULL: no fields */
    /* One of these three, by the stage of the part. */
    weft_status (*normalize)(weft__part *part, const char *text, size_t bytes, weft__buffer *out);
    /* Passes pieces to weft__pre_tokenize with step + 1. */
    weft_status (*cut)(weft__part *part, weft__encoding *e, size_t step, const weft__piece *piece);
    /* Changes the text of one token. */
    weft_status (*decode)(weft__part *part, weft__decoding *d, const char *text, size_t bytes,
                          weft__buffer *out);
} weft__part_type;

extern const weft__part_type weft__normalizers[], weft__pre_tokenizers[], weft__decoders[];
/* The second half of ByteLevel: writes bytes as characters. */
extern const weft__part_type weft__byte_characters;

/* Passes a piece through the pre-tokenizers from `step` on, and then to the model. */
weft_status weft__pre_tokenize(weft__encoding *e, size_t step, const weft__piece *piece);

/* ---- normalizers in files of their own ---- */

weft_status weft__normalize_unicode(weft__part *part, const char *text, size_t bytes, bool compose,
                                    bool compatible, weft__buffer *out);
weft_status weft__normalize_bert(weft__part *part, const char *text, size_t bytes, weft__buffer *out);
void weft__put_lowercase(weft__buffer *out, uint32_t point);
/* Makes the map of a charsmap in base64. */
weft_status weft__charsmap_read(weft__reader *r, const char *base64, size_t bytes,
                                struct weft__charsmap **out);
weft_status weft__charsmap_run(weft__part *part, const char *text, size_t bytes, weft__buffer *out);
void weft__charsmap_free(weft_context *ctx, struct weft__charsmap *map);

/* ---- cutting: split.c ---- */

typedef struct weft__splitter {
    weft__encoding *e;
    size_t step; /* of the next part */
    const weft__piece *piece;
    weft__behaviour behaviour;
    bool invert;
    bool holds, before; /* a range waits; whether it, or the last range, was a match */
    size_t begin, end;  /* the range that waits */
} weft__splitter;

/* Takes the next range of the piece. Ranges follow each other without gaps. */
weft_status weft__splitter_put(weft__splitter *s, size_t begin, size_t end, bool match);
weft_status weft__splitter_end(weft__splitter *s);
/* Cuts a piece at the matches of a pattern, or at characters. */
weft_status weft__split_regex(weft__splitter *s, weft__regex *regex);
weft_status weft__split_points(weft__splitter *s, bool (*is)(uint32_t point));
weft_status weft__split_text(weft__splitter *s, const char *text, size_t bytes);

/* ---- models ---- */

typedef struct weft__model_type {
    const char *name;
    weft_status (*read)(weft__reader *r, const json_t *json);
    weft_status (*encode)(weft__encoding *e, const char *word, size_t bytes);
} weft__model_type;

extern const weft__model_type weft__model_bpe, weft__model_wordpiece, weft__model_wordlevel,
    weft__model_unigram;

/* A node of the best path of Unigram. */
typedef struct weft__path_node {
    double score;
    size_t begin; /* where the best token that ends here begins; SIZE_MAX: no token ends here */
    int32_t id;
} weft__path_node;

/* ---- added tokens: added_tokens.c ---- */

typedef struct weft__added_token {
    weft__buffer content; /* what the text spells; normalized, if the token is */
    int32_t id;
    bool special, single_word, left, right, normalized;
} weft__added_token;

typedef struct weft__added_set {
    weft__trie trie;  /* its values are indices of added tokens */
    bool starts[256]; /* bytes with which a token begins */
    size_t count;
} weft__added_set;

weft_status weft__added_tokens_read(weft__reader *r, const json_t *list);
weft_status weft__added_tokens_index(weft__reader *r);
/* Cuts added tokens of set 0 (as spelled) or 1 (normalized) out of a piece. Passes what lies between to
 * `next`. */
weft_status weft__added_tokens_cut(weft__encoding *e, int set, const weft__piece *piece,
                                   weft_status (*next)(weft__encoding *e, const weft__piece *piece));

/* ---- the pipeline ---- */

#define WEFT__TEXT_PLACE  (-1) /* in a frame: the ids of the text */
#define WEFT__OTHER_PLACE (-2) /* in a frame of a pair: those of the second text */

/* A frame of special tokens around one text, or around a pair. */
typedef struct weft__frame_item {
    int32_t id, type; /* type: which text it belongs to, 0 or 1 */
} weft__frame_item;

typedef struct weft__frame {
    weft__frame_item *items; /* [count] */
    size_t count, capacity;
} weft__frame;

typedef struct weft__pipeline {
    weft__buffer source; /* the text of tokenizer.json */
    weft__parts normalizers, pre_tokenizers, decoders;
    struct {
        weft__added_token *list;
        size_t count, capacity;
        weft__added_set sets[2];
        uint32_t *of; /* [count] of the vocabulary: 1 + the index of the added token, or 0 */
    } added;
    size_t model_count; /* ids from here on belong to added tokens alone */
    int32_t roles[WEFT_SPECIAL_COUNT];
    struct {
        weft__frame single, pair; /* special tokens around texts; no items: there are none */
        bool configured;          /* the frame is not in tokenizer.json, but in a file beside it */
    } frame;
    bool sentencepiece; /* the file was made from a .model: see sentencepiece.c */
    struct {
        weft__buffer rooms[3]; /* a text without bad bytes, two steps of normalization */
        weft__buffer words[2]; /* of models and decoders */
    } work;                    /* memory */
    struct {
        uint64_t most; /* bytes that the text, or the token, at hand may become */
        uint64_t text, steps;
    } left;
    /* ---- the model ---- */
    const weft__model_type *model;
    weft__buffer prefix, suffix; /* continuing_subword_prefix, end_of_word_suffix */
    int32_t unknown;             /* id of the unknown token, or -1 */
    bool fuse_unknown, ignore_merges;
    struct {
        bool folded, fallback;
        int32_t ids[256]; /* of bytes: folded, or of the fallback; -1: none */
    } byte;
    weft__merges merges;
    weft__merging merging;
    weft__word_cache cache;
    weft__trie trie; /* of WordPiece and Unigram */
    struct {
        uint32_t inner; /* the node behind the prefix */
        size_t longest; /* most characters of a word */
    } wordpiece;
    struct {
        double *scores;        /* [count] */
        double worst;          /* score of an unknown character */
        weft__path_node *path; /* [room] */
        size_t room;
    } unigram;
} weft__pipeline;

void weft__pipeline_free(weft_tokenizer *t);

/* Copies a text, with U+FFFD for each malformed sequence. Python's errors="replace" does the same. */
weft_status weft__replace_bad_bytes(const weft__span *span, weft__buffer *room);

/* ---- what a file may ask for: limits.h ---- */

/* Starts the budget of a text or a token. */
void weft__pipeline_begin(weft_tokenizer *t, size_t bytes);
/* These take steps, or bytes of text, from it. WEFT_ERR_UNSUPPORTED: it is used up. */
weft_status weft__pipeline_work(weft_tokenizer *t, uint64_t steps);
weft_status weft__pipeline_grow(weft_tokenizer *t, uint64_t bytes);
/* Empties the work memory of a part, which may then hold what the text may become. */
void weft__room_begin(const weft_tokenizer *t, weft__buffer *room);
weft_status weft__room_check(weft_tokenizer *t, const weft__buffer *room);

/* Normalizes a text. The result is valid until the next call. */
weft_status weft__normalize(weft_tokenizer *t, weft__piece *piece);

/* Returns the id of a token of the model, or -1. */
int32_t weft__model_id(const weft_tokenizer *t, const char *token, size_t bytes);

/* Gives the text that an id adds, valid until the next call. */
weft_status weft__pipeline_decode(weft_tokenizer *t, weft__decoding *d, int32_t id, const char **text,
                                  size_t *bytes);

/* ---- reading: read.c ---- */

/* Makes the tokenizer of a tokenizer.json that is parsed. `name` is the file's. */
weft_status weft__pipeline_read(weft_context *ctx, const char *name, const json_t *root, const char *text,
                                size_t bytes, weft_tokenizer **out);
/* Reads the special tokens that tokenizer_config.json names. */
weft_status weft__pipeline_configure(weft_tokenizer *t, const char *name, const char *text, size_t bytes);
/* Reads the roles that Weft wrote into an added token. */
void weft__roles_read(weft_tokenizer *t, const json_t *added_token, int32_t id);
/* Writes tokenizer.json. Free *text with weft__free. It has room for one more byte. */
weft_status weft__pipeline_text(const weft_tokenizer *t, char **text, size_t *bytes);
weft_status weft__post_processor_read(weft__reader *r, const json_t *json);
weft_status weft__frame_put(weft_tokenizer *t, weft__frame *frame, int32_t id, int32_t type);

/* Writes the bytes of a .model of SentencePiece as tokenizer.json. Free *text with weft__free. */
weft_status weft__sentencepiece_text(weft_context *ctx, const char *name, const char *data, size_t bytes,
                                     char **text, size_t *text_bytes);

/* WEFT_ERR_FORMAT or WEFT_ERR_UNSUPPORTED, with the file, the stage and the part before the message. */
weft_status weft__reader_fail(const weft__reader *r, weft_status status, const char *fmt, ...)
    WEFT_PRINTF(3, 4);
/* These read a field. A field that is absent or null leaves the value as it is. */
weft_status weft__read_bool(const weft__reader *r, const json_t *json, const char *key, bool *value);
weft_status weft__read_size(const weft__reader *r, const json_t *json, const char *key, size_t *value);
weft_status weft__read_text(const weft__reader *r, const json_t *json, const char *key, weft__buffer *value);
/* Reads {"String": ...} or {"Regex": ...}. A plain string is text, too. */
weft_status weft__read_pattern(const weft__reader *r, const json_t *json, weft__regex **value);
weft_status weft__read_replace(weft__reader *r, const json_t *json, weft__part *p);
/* Reads the name of a value; `names` ends with NULL. */
weft_status weft__read_choice(const weft__reader *r, const json_t *json, const char *key,
                              const char *const *names, int *value);

#endif
