/* Text to ids and back: tokenizers, and corpora split into training and validation parts.
 *
 * The context of each function may be NULL. It serves only memory and errors. Only one thread at a time may
 * use an object. Free objects before their context. Ids are int32_t, 0 to vocabulary-1. */
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
    WEFT_TOKENIZER_BPE,       /* GPT-2's byte pair encoding, from its files: any bytes */
    WEFT_TOKENIZER_PIPELINE,  /* of a published model: see weft_tokenizer_load */
    WEFT_TOKENIZER_KIND_COUNT
} weft_tokenizer_kind;

typedef struct weft_tokenizer weft_tokenizer;

typedef struct weft_tokenizer_options {
    size_t max_vocabulary; /* of the word tokenizer, with <unk> and <eos>; 0: every word of the corpus */
} weft_tokenizer_options;

/* The name of a kind: "character", "byte", "word", "bpe", "pipeline"; NULL for an unknown value. */
WEFT_API const char *weft_tokenizer_kind_name(weft_tokenizer_kind kind);

/* The kind of a name ("char" is accepted, too); false if there is none. */
WEFT_API bool weft_tokenizer_kind_parse(const char *name, weft_tokenizer_kind *kind);

/* Builds a tokenizer from a corpus of `bytes` bytes of UTF-8. WEFT_TOKENIZER_BYTE accepts any bytes and
 * does not read them. The word vocabulary is <unk>, <eos>, then the words by falling count, equal counts by
 * their bytes. options may be NULL. WEFT_TOKENIZER_BPE and WEFT_TOKENIZER_PIPELINE
 * cannot be built, only loaded.
 *
 * WEFT_ERR_FORMAT names the first byte that is not UTF-8. WEFT_ERR_ARGUMENT: the corpus is empty. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind,
                                                       const char *text, size_t bytes,
                                                       const weft_tokenizer_options *options,
                                                       weft_tokenizer **out);

/* Loads GPT-2's tokenizer from the folder of its files: encoder.json and vocab.bpe, or vocab.json and
 * merges.txt, which have the same content. Each file may be packed and end in .gz.
 *
 * Texts get the same ids as from tiktoken. A token that no merge makes (<|endoftext|>) is special: where a
 * text spells it, it gets its id. Any bytes can be encoded and decode to themselves. WEFT_ERR_IO, or
 * WEFT_ERR_FORMAT, which names file and line or id. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_load_gpt2(weft_context *ctx, const char *folder,
                                                           weft_tokenizer **out);

/* NULL is allowed. */
WEFT_API void weft_tokenizer_free(weft_tokenizer *tokenizer);

/* The kind of the tokenizer. */
WEFT_API weft_tokenizer_kind weft_tokenizer_kind_of(const weft_tokenizer *tokenizer);

/* The number of ids. */
WEFT_API size_t weft_tokenizer_vocabulary(const weft_tokenizer *tokenizer);

/* The bytes of a token ("\n" for <eos>), without a closing NUL. A pipeline gives it as its file writes it,
 * for example with U+2581 for a space. Valid as long as the tokenizer. NULL if the id is out of range. */
WEFT_API const char *weft_tokenizer_token(const weft_tokenizer *tokenizer, int32_t id, size_t *bytes);

/* Text to ids. *count is the number of ids of the text. With ids NULL they are only counted. Only a tokenizer
 * of kind pipeline can give more ids than the text has bytes.
 *
 * A pipeline takes malformed UTF-8 as U+FFFD. If the text spells a special token, it gets its id.
 *
 * WEFT_ERR_ARGUMENT: capacity is too small (*count is set). WEFT_ERR_FORMAT: malformed UTF-8.
 * WEFT_ERR_INDEX: a character outside the vocabulary. The last two name the byte. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_encode(const weft_tokenizer *tokenizer, const char *text,
                                                        size_t bytes, int32_t *ids, size_t capacity,
                                                        size_t *count);

/* The same, with the special tokens that the model expects around a text, such as [CLS] and [SEP]. Only the
 * file of a pipeline names such tokens. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_encode_special(const weft_tokenizer *tokenizer,
                                                                const char *text, size_t bytes, int32_t *ids,
                                                                size_t capacity, size_t *count);

/* The same for a pair of texts, such as a question and an answer. *types, if it is not NULL, says to which of
 * the two each id belongs: 0 or 1 (BERT's token types). Without special tokens, the ids of the texts follow
 * each other. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_encode_pair(const weft_tokenizer *tokenizer,
                                                             const char *text, size_t bytes,
                                                             const char *other, size_t other_bytes,
                                                             int32_t *ids, int32_t *types, size_t capacity,
                                                             size_t *count);

/* An input of an encoder: a text, or a pair if `other` is not NULL, with the special tokens around it. ids
 * and types have room for `most` numbers, and *count becomes the number of ids. Without a second text all
 * types are 0. A longer text loses its end, of a pair the text that has more tokens; *whole then is false.
 *
 * WEFT_ERR_ARGUMENT: `most` has no room for a token besides the special ones. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_encode_row(const weft_tokenizer *tokenizer, const char *text,
                                                            const char *other, int64_t most, int32_t *ids,
                                                            int32_t *types, int64_t *count, bool *whole);

/* What a special token is for. */
typedef enum weft_special {
    WEFT_SPECIAL_BOS, /* begin of a text */
    WEFT_SPECIAL_EOS, /* end of a text: generation stops here */
    WEFT_SPECIAL_PAD,
    WEFT_SPECIAL_UNK,
    WEFT_SPECIAL_SEP,
    WEFT_SPECIAL_CLS,
    WEFT_SPECIAL_MASK,
    WEFT_SPECIAL_COUNT
} weft_special;

/* The id of a special token; -1 if the files of the tokenizer do not name it. GPT-2's <|endoftext|> begins
 * and ends texts. */
WEFT_API int32_t weft_tokenizer_special(const weft_tokenizer *tokenizer, weft_special role);

/* Whether an id is a special token, which readers of a text do not want to see. */
WEFT_API bool weft_tokenizer_is_special(const weft_tokenizer *tokenizer, int32_t id);

/* The id of a token as weft_tokenizer_token gives it; -1 if there is none. */
WEFT_API int32_t weft_tokenizer_id(const weft_tokenizer *tokenizer, const char *token, size_t bytes);

/* Ids to text, without a closing NUL. *bytes is the length; with out NULL it is only counted. Words are
 * joined by one space. WEFT_ERR_INDEX names an id out of range. WEFT_ERR_ARGUMENT: capacity is too small
 * (*bytes is set). */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_decode(const weft_tokenizer *tokenizer, const int32_t *ids,
                                                        size_t count, char *out, size_t capacity,
                                                        size_t *bytes);

/* Writes tokenizer.json atomically. The same tokenizer always gives the same file. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_save(const weft_tokenizer *tokenizer, const char *path);

/* Reads a tokenizer from a file or a folder. Weft recognises which of these it is:
 *   - tokenizer.json that Weft wrote.
 *   - tokenizer.json of Hugging Face's library `tokenizers`: the kind is WEFT_TOKENIZER_PIPELINE. The special
 *     tokens that tokenizer_config.json and special_tokens_map.json beside it name get their roles.
 *   - a file of SentencePiece, if its name ends in ".model": unigram or BPE. weft_tokenizer_save writes it as
 *     tokenizer.json.
 *   - a folder with such a file (tokenizer.json, tokenizer.model, spiece.model or sentencepiece.bpe.model),
 * or with GPT-2's files (see weft_tokenizer_load_gpt2).
 *
 * A pipeline gives the ids of the library. WEFT_ERR_UNSUPPORTED names a part that Weft does not know, and
 * those it knows. WEFT_ERR_FORMAT names the field. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_load(weft_context *ctx, const char *path,
                                                      weft_tokenizer **out);

/* Reads tokenizer.json from memory. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_parse(weft_context *ctx, const char *json, size_t bytes,
                                                       weft_tokenizer **out);

/* ---- training ---- */

/* How a text is cut into words, within which pairs are merged. */
typedef enum weft_tokenizer_pattern {
    WEFT_TOKENIZER_CL100K, /* of GPT-4 and Llama 3: numbers have at most three digits */
    WEFT_TOKENIZER_GPT2,
    WEFT_TOKENIZER_PATTERN_COUNT
} weft_tokenizer_pattern;

/* The pattern of a name, "cl100k" or "gpt2"; false if there is none. */
WEFT_API bool weft_tokenizer_pattern_parse(const char *name, weft_tokenizer_pattern *pattern);

typedef struct weft_tokenizer_train_options {
    size_t vocabulary; /* most tokens, with the special ones and 256 bytes; 0: 32,000 */
    weft_tokenizer_pattern pattern;
    const char *const *special; /* [special_count] the first ids; NULL: <|endoftext|>. The first one gets the
                                   roles bos and eos */
    size_t special_count;
    uint64_t min_count; /* a pair must occur so often to be merged; 0: once */
} weft_tokenizer_train_options;

/* Trains a byte-level BPE on `count` text files, plain or packed with gzip, or on the texts of Parquet,
 * .jsonl and tar files, as weft_corpus_open reads them. options may be NULL. Its merges are those of
 * BpeTrainer of the library `tokenizers`; save it with weft_tokenizer_save, and both read it. There are fewer
 * tokens than wanted if no pair is left.
 *
 * Memory does not grow with the files: beyond 64 MiB of distinct words, the rarest are dropped, which is
 * logged. It needs at most about 1.5 GB. WEFT_ERR_IO names the file. WEFT_ERR_STOPPED: the program wants to
 * stop. */
WEFT_API WEFT_CHECKED weft_status weft_tokenizer_train(weft_context *ctx, const char *const *paths,
                                                       size_t count,
                                                       const weft_tokenizer_train_options *options,
                                                       weft_tokenizer **out);

/* ---- streaming decode: one id at a time, always whole UTF-8 ---- */

typedef struct weft_decoder weft_decoder;

/* Opens a decoder. The tokenizer must outlive it. */
WEFT_API WEFT_CHECKED weft_status weft_decoder_open(const weft_tokenizer *tokenizer, weft_decoder **out);

/* NULL is allowed. */
WEFT_API void weft_decoder_free(weft_decoder *decoder);

/* Takes one id and returns the text that it completes, ended by NUL, valid until the next call. *bytes may
 * be 0 while a character is incomplete. Bytes that cannot be UTF-8 become U+FFFD. */
WEFT_API WEFT_CHECKED weft_status weft_decoder_push(weft_decoder *decoder, int32_t id, const char **text,
                                                    size_t *bytes);

/* Returns what is left (an incomplete character as U+FFFD) and starts again. */
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
    weft_tokenizer_kind kind;        /* 0: character */
    size_t max_vocabulary;           /* see weft_tokenizer_options */
    const weft_tokenizer *tokenizer; /* use this tokenizer (resume, predict) instead of building one; it must
                                        outlive the corpus */
    const char *validation_path;     /* a separate file for validation; the fraction must then be 0 */
    const char *test_path;           /* a file for the test part */
    double validation_fraction; /* the last ids are the validation part: 0 to less than 1; 0: no validation
                                   part */
    uint64_t max_bytes;         /* of one text after unpacking; 0: 16 GiB. Not for texts that stay in files */
    bool
        in_files; /* the text stays in its files, for texts larger than memory: see weft_corpus_tokens. Not
                     for packed files and word tokenizers, and for pipelines only in files of several texts */
} weft_corpus_options;

/* Reads text (plain or gzip, recognised by its content) from a file, from all files of a folder, or from all
 * that match a pattern such as "part-*.txt", in the order of their names. Builds the tokenizer unless one is
 * given, and encodes all parts. options may be NULL.
 *
 * Each row of a Parquet file has a text in the column "text", and each line of a .jsonl file is an object
 * with one. So is each line of a .json file whose first line is such an object. Both may be packed with gzip
 * unless they stay in their files. In a folder with .parquet files, other files are left out. Parquet files
 * need DuckDB's library, which is opened at run time: libduckdb, or the file that WEFT_DUCKDB_LIB names.
 *
 * A path may also name tar files: a file, a pattern, or a folder of .tar files. Their members .txt and .md
 * are texts, and so is the "text" of each line of a member .jsonl. The texts follow each other by the order
 * of the tar files and the names of their members. In all these files each text gets a newline at its end if
 * it has none, and a pipeline encodes each text by itself. It puts the special tokens around each text that
 * weft_tokenizer_encode_special puts there. Tar files must not be packed, and need libarchive
 * when Weft is built.
 *
 * A character vocabulary covers all files; a word vocabulary only the first one. With a fraction f and n
 * ids, the training part is the first floor(n * (1 - f)) ids. WEFT_ERR_IO and WEFT_ERR_FORMAT name path and
 * byte. */
WEFT_API WEFT_CHECKED weft_status weft_corpus_open(weft_context *ctx, const char *path,
                                                   const weft_corpus_options *options, weft_corpus **out);

/* NULL is allowed. */
WEFT_API void weft_corpus_free(weft_corpus *corpus);

/* The ids of a part, valid until the corpus is freed. *count may be 0. NULL, but with the count, if the text
 * stays in its files. */
WEFT_API const int32_t *weft_corpus_ids(const weft_corpus *corpus, weft_corpus_part part, size_t *count);

typedef struct weft_tokens weft_tokens; /* see weft/data.h */

/* The tokens of a part whose text stays in its files, for weft_loader_mapped; NULL for other parts. The part
 * has those from *first on, as many as weft_corpus_ids counts. Blocks of some KiB are read and encoded when
 * they are needed; memory holds 24 bytes for each file or member and each 16 KiB of text. Valid until the
 * corpus is freed. `first` may be NULL. */
WEFT_API const weft_tokens *weft_corpus_tokens(const weft_corpus *corpus, weft_corpus_part part,
                                               int64_t *first);

/* The tokenizer that the corpus built, or the one that was given. */
WEFT_API const weft_tokenizer *weft_corpus_tokenizer(const weft_corpus *corpus);

/* The bytes of text in all parts, after unpacking. */
WEFT_API uint64_t weft_corpus_bytes(const weft_corpus *corpus);

typedef struct weft_corpus_files {
    uint64_t read;            /* files of all parts */
    uint64_t hidden, folders; /* skipped in folders: names that begin with a dot, and subfolders */
    uint64_t others; /* skipped: members of tar files that are not .txt, .md or .jsonl, and other files
                        beside .parquet files */
} weft_corpus_files;

/* The files that were read and skipped. */
WEFT_API weft_corpus_files weft_corpus_files_of(const weft_corpus *corpus);

/* A 64-bit hash that changes when an id of any part or a token of the vocabulary changes. Checkpoints use
 * it as the data hash. */
WEFT_API uint64_t weft_corpus_hash(const weft_corpus *corpus);

#ifdef __cplusplus
}
#endif
#endif
