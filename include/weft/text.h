/* Text to numbers and back: tokenizers, and corpora split into training and validation parts.
 *
 * The context of each function may be NULL: it serves memory and errors, nothing else. Objects are used
 * by one thread at a time and must be freed before their context. Ids are int32_t, 0 to vocabulary-1. */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers ---- */

typedef enum weft_tokenizer_kind {
    WEFT_TOKENIZER_CHARACTER, /* one id for each code point of the corpus, in ascending order */
    WEFT_TOKENIZER_BYTE,      /* 256 ids: any bytes */
    WEFT_TOKENIZER_WORD,      /* words between white space; a newline is the token <eos> */
    WEFT_TOKENIZER_BPE,       /* GPT-2's pairs of bytes, from its files: any bytes */
    WEFT_TOKENIZER_KIND_COUNT
} weft_tokenizer_kind;

typedef struct weft_tokenizer weft_tokenizer;

typedef struct weft_tokenizer_options {
    size_t max_vocabulary; /* of the word tokenizer, <unk> and <eos> included; 0: every word of the corpus */
} weft_tokenizer_options;

/* "character", "byte", "word", "bpe"; NULL for an unknown value. */
WEFT_API const char *weft_tokenizer_kind_name(weft_tokenizer_kind kind);

/* The kind of that name ("char" too); false when there is none. */
WEFT_API bool weft_tokenizer_kind_parse(const char *name, weft_tokenizer_kind *kind);

/* Makes a tokenizer from a corpus: `bytes` bytes of UTF-8 (any bytes for WEFT_TOKENIZER_BYTE, which does
 * not look at them). The word vocabulary is <unk>, <eos>, then words by falling count, equal counts by
 * their bytes. options may be NULL. WEFT_TOKENIZER_BPE is not made so but loaded. WEFT_ERR_FORMAT names the
 * first byte that is not UTF-8; WEFT_ERR_ARGUMENT for an empty corpus. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind,
                                                       const char *text, size_t bytes,
                                                       const weft_tokenizer_options *options,
                                                       weft_tokenizer **out);

/* GPT-2's tokenizer from the folder of its files: encoder.json and vocab.bpe, or vocab.json and merges.txt,
 * which hold the same; each may be packed and end in .gz. Texts have the ids that tiktoken gives them. A
 * token that no merge makes (<|endoftext|>) is special: where a text spells it, it has its id. Any bytes can
 * be encoded, and decode to themselves. WEFT_ERR_IO, or WEFT_ERR_FORMAT naming file and line or id. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_load_gpt2(weft_context *ctx, const char *folder,
                                                           weft_tokenizer **out);

/* NULL is fine. */
WEFT_API void weft_tokenizer_free(weft_tokenizer *tokenizer);

/* Which kind it was built as. */
WEFT_API weft_tokenizer_kind weft_tokenizer_kind_of(const weft_tokenizer *tokenizer);

/* How many ids there are. */
WEFT_API size_t weft_tokenizer_vocabulary(const weft_tokenizer *tokenizer);

/* The bytes that id stands for, not ended by NUL, valid as long as the tokenizer ("\n" for <eos>); NULL
 * when the id is out of range. */
WEFT_API const char *weft_tokenizer_token(const weft_tokenizer *tokenizer, int32_t id, size_t *bytes);

/* Text to ids. *count is how many ids the text has; with ids NULL they are only counted. There are never
 * more ids than bytes. WEFT_ERR_ARGUMENT when capacity is too small (*count is set), WEFT_ERR_FORMAT for
 * malformed UTF-8, WEFT_ERR_INDEX for a character outside the vocabulary; both name the byte. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_encode(const weft_tokenizer *tokenizer, const char *text,
                                                        size_t bytes, int32_t *ids, size_t capacity,
                                                        size_t *count);

/* Ids to text, not ended by NUL. *bytes is the length; with out NULL it is only counted. Words are joined
 * by one space. WEFT_ERR_INDEX names an id out of range, WEFT_ERR_ARGUMENT a capacity that is too small
 * (*bytes is set). */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_decode(const weft_tokenizer *tokenizer, const int32_t *ids,
                                                        size_t count, char *out, size_t capacity,
                                                        size_t *bytes);

/* Writes tokenizer.json (atomically), reads it (of a folder: weft_tokenizer_load_gpt2), or reads it from
 * memory. Deterministic. A file that is not exactly such a tokenizer is refused: WEFT_ERR_FORMAT names field
 * and id. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_save(const weft_tokenizer *tokenizer, const char *path);
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_load(weft_context *ctx, const char *path,
                                                      weft_tokenizer **out);
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_parse(weft_context *ctx, const char *json, size_t bytes,
                                                       weft_tokenizer **out);

/* ---- streaming decode: one id at a time, always whole UTF-8 ---- */

typedef struct weft_decoder weft_decoder;

/* The tokenizer must outlive the decoder. */
WEFT_API WEFT_CHECKED weft_status weft_decoder_open(const weft_tokenizer *tokenizer, weft_decoder **out);

/* NULL is fine. */
WEFT_API void weft_decoder_free(weft_decoder *decoder);

/* Takes one id and gives the text that it completes, ended by NUL, valid until the next call; *bytes may
 * be 0 while a character is incomplete. Bytes that cannot be UTF-8 come out as U+FFFD. */
WEFT_API WEFT_CHECKED weft_status weft_decoder_push(weft_decoder *decoder, int32_t id, const char **text,
                                                    size_t *bytes);

/* Gives what is left (an incomplete character as U+FFFD) and begins anew. */
WEFT_API WEFT_CHECKED weft_status weft_decoder_finish(weft_decoder *decoder, const char **text,
                                                      size_t *bytes);

/* ---- corpora ---- */

typedef enum weft_corpus_part {
    WEFT_CORPUS_TRAIN,
    WEFT_CORPUS_VALIDATION,
    WEFT_CORPUS_TEST,
    WEFT_CORPUS_PART_COUNT
} weft_corpus_part;

typedef struct weft_corpus weft_corpus;

typedef struct weft_corpus_options {
    weft_tokenizer_kind kind; /* character when 0 */
    size_t max_vocabulary;    /* see weft_tokenizer_options */
    const weft_tokenizer
        *tokenizer; /* use this one (resume, predict) instead of building; must outlive the corpus */
    const char *validation_path; /* a file of its own for validation; then the fraction must be 0 */
    const char *test_path;       /* a file for the test part */
    double validation_fraction;  /* of the ids, the last ones: 0 to less than 1; 0: no validation part */
    uint64_t max_bytes;          /* of one text after unpacking; 0: 16 GiB */
} weft_corpus_options;

/* Reads text (plain or gzip, told by content), builds the tokenizer unless one is given, and encodes all
 * parts. A character vocabulary covers all files; a word vocabulary the first one. With a fraction f and n
 * ids the training part is the first floor(n * (1 - f)). options may be NULL. WEFT_ERR_IO and
 * WEFT_ERR_FORMAT name path and byte. */
WEFT_API WEFT_CHECKED weft_status weft_corpus_open(weft_context *ctx, const char *path,
                                                   const weft_corpus_options *options, weft_corpus **out);

/* NULL is fine. */
WEFT_API void weft_corpus_free(weft_corpus *corpus);

/* The ids of a part, valid until the corpus is freed. *count may be 0. */
WEFT_API const int32_t *weft_corpus_ids(const weft_corpus *corpus, weft_corpus_part part, size_t *count);

/* The corpus's tokenizer: its own, or the one given. */
WEFT_API const weft_tokenizer *weft_corpus_tokenizer(const weft_corpus *corpus);

/* Bytes of text read for all parts, after unpacking. */
WEFT_API uint64_t weft_corpus_bytes(const weft_corpus *corpus);

/* 64 bits that differ when an id of any part or a token of the vocabulary does: the data hash of a
 * checkpoint. */
WEFT_API uint64_t weft_corpus_hash(const weft_corpus *corpus);

#ifdef __cplusplus
}
#endif
#endif
