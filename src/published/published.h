/* The private interface of published models: the table of architectures, and what config.json says of a
 * model. Must not know: training, terminals. Read next: architectures.def, config.c, then names.c. */
#ifndef WEFT_SRC_PUBLISHED_PUBLISHED_H
#define WEFT_SRC_PUBLISHED_PUBLISHED_H

#include <weft/published.h>

#include "base/base.h"

/* How architectures with the same reader differ. */
typedef enum weft__published_trait {
    WEFT__QKV_BIAS = 1, /* queries, keys and values have a bias, whatever config.json says */
    WEFT__QK_NORM = 2,
    WEFT__WINDOW = 4, /* config.json may set a sliding window */
    WEFT__GEMMA =
        8, /* norms with 1 + weight and after branches, scaled token vectors, soft caps, tied head */
    WEFT__PADDED = 16 /* the positions of tokens begin behind the number of the padding token */
} weft__published_trait;

/* The sets of names in architectures.def. */
enum {
    GPT2 = 1,
    NEOX = 2,
    OUTER = 4,
    SPLIT = 8,
    PACKED = 16,
    NORMS = 32,
    BRANCH_NORMS = 64,
    GGUF = 128,
    GGUF_SPLIT = 256,
    GGUF_PLAIN = 512,
    GGUF_TURNED = 1024,
    GGUF_PACKED = 2048,
    BERT = 4096,
    BERT_HEAD = 8192,
    ROBERTA_HEAD = 16384,
    DISTIL = 32768,
    GGUF_NORMS = 65536,
    GGUF_GEMMA = 131072
};

/* Which part of a parameter a tensor of the file is. */
typedef enum weft__published_part {
    WEFT__PART_WHOLE,
    WEFT__PART_PLUS_ONE,   /* the whole, a vector; the file has 1 + each number */
    WEFT__PART_FIRST,      /* the whole; the file may have more rows */
    WEFT__PART_TRANSPOSED, /* the whole, (in, out) */
    WEFT__PART_QUERIES,    /* rows of c_attn */
    WEFT__PART_KEYS,
    WEFT__PART_VALUES,
    WEFT__PART_TURNED_QUERIES, /* the same; in each head, channels i and D / 2 + i come one after the other */
    WEFT__PART_TURNED_KEYS,
    WEFT__PART_BY_HEAD, /* all rows of c_attn, but for each head its queries, keys and values */
    WEFT__PART_GATE,    /* the first half of the rows of c_fc */
    WEFT__PART_UP       /* the second half */
} weft__published_part;

/* The lists of divisors of LongRoPE: for texts as in the training, and for longer ones. */
enum { WEFT__LONGROPE_SHORT, WEFT__LONGROPE_LONG, WEFT__LONGROPE_LISTS, WEFT__LONGROPE_MOST = 256 };

struct weft__fields;
typedef struct weft__published {
    weft_gpt_options gpt;         /* without dtype and context */
    bool encodes;                 /* an encoder; of gpt only vocab, width and heads are set */
    weft_encoder_options encoder; /* without dtype and context */
    int64_t context;              /* the longest text that the model was made for */
    const struct weft__architecture *architecture;
    unsigned names; /* sets of names of tensors */
    const char *prefix;
    float longrope[WEFT__LONGROPE_LISTS][WEFT__LONGROPE_MOST]; /* of rotation.scaling WEFT_ROTARY_LONG */
} weft__published;

typedef struct weft__architecture {
    const char *type, *prefix;
    unsigned names; /* sets of names.c */
    int traits;     /* of weft__published_trait */
    void (*read)(struct weft__fields *fields, weft__published *p);
} weft__architecture;

/* Finds the architecture of a model_type; NULL if there is none. */
const weft__architecture *weft__architecture_find(const char *type);

/* Reads config.json of a folder, or the metadata of a GGUF file. WEFT_ERR_FORMAT also names what Weft
 * cannot compute. */
weft_status weft__published_read(weft_context *ctx, const char *path, weft__published *p);

/* Unties the head if the weights of the folder say so, as transformers does. Files that are missing or
 * malformed change nothing: loading them says what is wrong. */
weft_status weft__published_untie(weft_context *ctx, const char *folder, weft__published *p);

/* ---- longrope.c ---- */

/* The number of divisors in a list; 0: the model has no LongRoPE. */
int64_t weft__longrope_count(const weft__published *p);
/* Makes a variable of the divisors for a module of so many tokens. The caller frees it. */
weft_tensor *weft__longrope_divisors(weft_context *ctx, const weft__published *p, int64_t context);

/* ---- GGUF ---- */

/* Writes the metadata of a GGUF file as the text of config.json, which the caller frees with weft__free.
 * *names gets the sets of names of its tensors. */
struct weft__gguf;
weft_status weft__gguf_config(weft_context *ctx, const char *path, const struct weft__gguf *g,
                              unsigned *names, char **text, size_t *bytes);

/* An architecture in GGUF files: the name in the file, the model_type, the class of transformers, and the
 * sets of names of tensors. */
typedef struct weft__gguf_architecture {
    const char *name, *type, *class_name;
    unsigned names;
} weft__gguf_architecture;

/* Finds the architecture of a model_type; NULL if GGUF files of it are not known. */
const weft__gguf_architecture *weft__gguf_architecture_of(const char *type);
/* Writes the model_types that GGUF files can have, with commas. */
void weft__gguf_types(char *out, size_t bytes);

/* Replaces the names of a model's tensors by those of GGUF files. WEFT_ERR_FORMAT: there are none. */
weft_status weft__gguf_use_names(weft_context *ctx, const char *from, weft__published *p);

/* Appends the metadata that describes a model: all but its tokenizer, and its vocabulary. Returns
 * WEFT_ERR_FORMAT for a model that the architecture of GGUF files does not compute. */
struct weft__gguf_header;
weft_status weft__gguf_describe(weft_context *ctx, const char *path, const weft__published *p,
                                const weft__gguf_architecture *architecture,
                                struct weft__gguf_header *header);
/* Gemma: adds to config.json what GGUF files leave to the reader, and tells what of a model they cannot hold;
 * NULL: nothing. */
struct json_t;
void weft__gguf_gemma_config(struct json_t *config);
const char *weft__gguf_gemma_lacks(const weft__published *p);

/* A tensor of divisors of the rates of rotary positions. */
enum { WEFT__GGUF_DIVISORS = 512 };
typedef struct weft__gguf_divisor_list {
    const char *name;
    int64_t count;
    float values[WEFT__GGUF_DIVISORS];
} weft__gguf_divisor_list;

/* Gives the tensors of divisors of a model. Returns their number: one for Llama 3, two for LongRoPE. */
int weft__gguf_divisors(const weft__published *p, weft__gguf_divisor_list out[2]);

/* Appends the tokenizer of a folder or of a GGUF file, with `rows` tokens, and the chat template.
 * WEFT_ERR_FORMAT names what GGUF files cannot hold. */
weft_status weft__gguf_put_tokenizer(weft_context *ctx, const char *path, int64_t rows,
                                     struct weft__gguf_header *header);

/* How texts are split before BPE: the names of tokenizer.ggml.pre, with the parts of the models' own
 * tokenizer.json. */
typedef struct weft__gguf_split {
    const char *name, *split; /* split NULL: GPT-2's words */
    bool digits, whole, nfc;  /* split digits first; a token that is in the vocabulary needs no merges */
} weft__gguf_split;
enum { WEFT__GGUF_SPLITS = 5 };
extern const weft__gguf_split weft__gguf_splits[WEFT__GGUF_SPLITS];

/* tokenizer.json and tokenizer_config.json as texts. */
typedef struct weft__gguf_files {
    char *tokenizer, *config;
    size_t tokenizer_bytes, config_bytes;
} weft__gguf_files;

/* Writes the tokenizer of a GGUF file, as Hugging Face's files. Free them with weft__gguf_files_free. */
weft_status weft__gguf_tokenizer(weft_context *ctx, const char *path, const struct weft__gguf *g,
                                 weft__gguf_files *files);
/* Makes tokenizer.json of SentencePiece's BPE from a vocabulary and the added tokens. NULL: the file is
 * malformed, or memory is short; *starved says so, or the document that is being built. */
struct weft__gguf_pieces;
struct json_t *weft__gguf_pieces_json(weft_context *ctx, const struct weft__gguf *g,
                                      const struct weft__gguf_pieces *pieces, struct json_t *vocabulary,
                                      struct json_t *added, bool *starved);
void weft__gguf_files_free(weft_context *ctx, weft__gguf_files *files);

/* The special tokens of a GGUF file: the key of the id, and the name in tokenizer_config.json. */
typedef struct weft__gguf_role {
    const char *key, *name;
} weft__gguf_role;
enum { WEFT__GGUF_ROLES = 4 };
extern const weft__gguf_role weft__gguf_roles[WEFT__GGUF_ROLES];

/* Finds the text of a special token; false if the file does not name it. */
bool weft__gguf_token(const struct weft__gguf *g, const weft__gguf_role *role, const char **text,
                      size_t *bytes);

/* Whether a path names a GGUF file: it is no folder. */
bool weft__is_gguf(const char *path);

/* Returns whether a command, such as "export", made a GGUF file. */
bool weft__gguf_made_by(const char *path, const char *command);

/* Writes the path of a file of a folder. */
weft_status weft__published_path(weft_context *ctx, const char *folder, const char *file, char out[4096]);

/* Copies the files that describe a model, such as config.json and tokenizer.json, into a folder, which is
 * made. config.json gets `dtype`, the number of learned positions unless that is 0, and whether a head is
 * untied. */
weft_status weft__published_copy(weft_context *ctx, const char *from, const char *to, weft_dtype dtype,
                                 int64_t positions, bool untied);
/* Removes what weft__published_copy wrote, and the folder if nothing else is in it. */
void weft__published_uncopy(const char *from, const char *to);
/* The rows of a gpt's table of learned positions; 0: it has none. */
int64_t weft__published_positions(const weft_module *model);

/* ---- labels.c: the names of classes in config.json ---- */

/* Reads the names of the classes of an encoder's head. *count is 0 if it has none. *names is one block, freed
 * with weft__free. A class without a name is LABEL_0, LABEL_1, ... */
weft_status weft__published_labels(weft_context *ctx, const char *folder, char ***names, size_t *count);

/* Writes the text of config.json to `path`, as `change` changes it. */
weft_status weft__published_rewrite(weft_context *ctx, const char *old, size_t old_bytes, const char *path,
                                    void (*change)(struct json_t *config, const void *user),
                                    const void *user);

/* Writes config.json of a folder again, as that of a classifier with these classes. names NULL: they have
 * none; names that the file has stay if their number is the same. */
weft_status weft__published_put_labels(weft_context *ctx, const char *folder, char *const *names,
                                       size_t count);

/* ---- load.c ---- */

/* As weft_published_load, but the last layer of a classifier (weft_published_options.labels) stays random. */
weft_status weft__published_load_body(weft_module *model, const char *folder);

/* The files of a model's weights. */
typedef struct weft__weights weft__weights;

/* Opens the files, and checks that they have the weights of a module of weft_published_new and no others. */
weft_status weft__weights_open(weft_module *model, const char *folder, weft__weights **out);
void weft__weights_close(weft__weights *weights);

/* Reads the values of a parameter, in its dtype. */
weft_status weft__weights_read(weft__weights *weights, const weft_parameter_info *parameter, void *values);

/* ---- names.c ---- */

/* The place of a tensor of the file in a parameter. */
typedef struct weft__placed {
    weft__published_part part;
    int64_t first, rows; /* the rows of the parameter that the tensor holds */
    char name[160];      /* of the tensor, without the prefix */
    bool bare;           /* the name never has the prefix */
} weft__placed;

enum { WEFT__PARTS = 3 }; /* most tensors that make a parameter */

/* Gives the tensors that make a parameter. Returns their number; 0 if the table has no name for it. */
int weft__published_names(const weft__published *p, const weft_parameter_info *parameter,
                          weft__placed out[WEFT__PARTS]);
/* The same for a parameter of so many rows. */
int weft__published_names_of(const weft__published *p, const char *parameter, int64_t rows,
                             weft__placed out[WEFT__PARTS]);

/* Returns the row of the parameter that row `row` of the tensor is. */
int64_t weft__published_row(const weft__published *p, const weft__placed *placed, int64_t row);

/* Whether the files do not have a parameter: of an adapter, or a further part of a packed weight. */
bool weft__published_added(const weft_parameter_info *parameter);

/* Whether a tensor of the file is known to be no weight. */
bool weft__published_ignores(const weft__published *p, const char *name);

/* ---- save_lora.c ---- */

/* Finds the tensor of the published model to which an adapter of weft_gpt_lora adds. WEFT_ERR_UNSUPPORTED: it
 * adds to a part of a tensor. */
weft_status weft__lora_placed(const weft__published *p, weft_module *model, const weft_module *adapter,
                              weft__placed *out);

#endif
