/* What the parts of the translator share: memory, errors, words, tokens and macros.
 *
 *     text -> tokens.c -> preprocess.c -> parse.c -> tree -> emit_*.c -> WGSL
 *
 * An error leaves the translator by a jump to its entry (wgsl.c). All memory belongs to an arena, so nothing
 * is lost. Must not know: the WebGPU API. Read next: tree.h. */
#ifndef WEFT_DEVICE_WEBGPU_WGSL_TOKENS_H
#define WEFT_DEVICE_WEBGPU_WGSL_TOKENS_H

#include <setjmp.h>

#include "base/base.h"

typedef struct weft_wgsl_macro weft_wgsl_macro;
struct weft_wgsl_type;

/* A name of the text, stored once. */
typedef struct weft_wgsl_word {
    const char *text;
    size_t length;
    weft_wgsl_macro *macro;
    const struct weft_wgsl_type *type; /* that it names: built in, or by typedef */
    struct weft_wgsl_word *next;       /* with the same hash */
} weft_wgsl_word;

typedef enum weft_wgsl_token_kind {
    WEFT_WGSL_END,
    WEFT_WGSL_NAME,
    WEFT_WGSL_NUMBER,
    WEFT_WGSL_STRING,
    WEFT_WGSL_MARK /* an operator or a bracket */
} weft_wgsl_token_kind;

typedef struct weft_wgsl_token {
    weft_wgsl_token_kind kind;
    int line;
    bool first; /* of its line */
    bool space; /* white space before it */
    bool final; /* a name that is not expanded again */
    const char *text;
    int length;
    weft_wgsl_word *word; /* of a name */
} weft_wgsl_token;

typedef struct weft_wgsl_tokens {
    weft_wgsl_token *list; /* the last one is END */
    size_t count, capacity;
} weft_wgsl_tokens;

enum { WEFT_WGSL_WORDS = 1024 };

/* One run of the translator. */
typedef struct weft_wgsl_run {
    weft_context *ctx;
    weft_arena *arena;
    jmp_buf escape;
    char *message;
    size_t message_bytes;
    bool no_memory;
    size_t used; /* bytes of the arena */
    int depth;   /* of the recursion */
    int line;    /* where it is */
    weft_wgsl_word *words[WEFT_WGSL_WORDS];
} weft_wgsl_run;

enum { WEFT_WGSL_DEPTH = 200 }; /* of brackets, statements and calls */
/* A run that takes more memory ends with a message. All work takes memory, so this also ends sources whose
 * macros or functions multiply. Weft's own sources take at most 1/16 of it. */
enum { WEFT_WGSL_MEMORY = 256 << 20 };

void *weft__wgsl_alloc(weft_wgsl_run *run, size_t bytes); /* zeroed; never NULL */
/* Returns room for one more element of a list. */
void *weft__wgsl_grow(weft_wgsl_run *run, void *list, size_t *capacity, size_t count, size_t size);
const char *weft__wgsl_text(weft_wgsl_run *run, const char *fmt, ...) WEFT_PRINTF(2, 3);
/* Ends the run with the message "line N: ...". */
_Noreturn void weft__wgsl_fail(weft_wgsl_run *run, int line, const char *fmt, ...) WEFT_PRINTF(3, 4);
void weft__wgsl_enter(weft_wgsl_run *run, int line); /* one level deeper */
void weft__wgsl_leave(weft_wgsl_run *run);

weft_wgsl_word *weft__wgsl_word(weft_wgsl_run *run, const char *text, size_t length);
bool weft__wgsl_is(const weft_wgsl_token *token, const char *text);
void weft__wgsl_add(weft_wgsl_run *run, weft_wgsl_tokens *to, weft_wgsl_token token);
/* Divides a text into tokens. */
weft_wgsl_tokens weft__wgsl_tokens(weft_wgsl_run *run, const char *text);
/* Reads the value of an integer without its suffix. False if it is none, or too large. */
bool weft__wgsl_integer(const weft_wgsl_token *token, uint64_t *value, int *suffix_at);

/* preprocess.c: obeys directives and expands macros. */
weft_wgsl_tokens weft__wgsl_preprocess(weft_wgsl_run *run, const weft_wgsl_tokens *from);

#endif
