/* The tree of a source: types, expressions, statements, functions. Names are resolved; types of expressions
 * are found when they are printed (emit.h), since functions are printed once for each buffer that their
 * pointers point to. Read next: parse.c. */
#ifndef WEFT_DEVICE_WEBGPU_WGSL_TREE_H
#define WEFT_DEVICE_WEBGPU_WGSL_TREE_H

#include "device/webgpu/wgsl/tokens.h"

/* INDEX has 64 bits in memory and 32 in registers: w_i64 of the dialect. F16 is only in memory. */
typedef enum weft_wgsl_kind {
    WEFT_WGSL_VOID,
    WEFT_WGSL_BOOL,
    WEFT_WGSL_I8,
    WEFT_WGSL_U8,
    WEFT_WGSL_I16,
    WEFT_WGSL_U16,
    WEFT_WGSL_I32,
    WEFT_WGSL_U32,
    WEFT_WGSL_INDEX,
    WEFT_WGSL_I64,
    WEFT_WGSL_U64,
    WEFT_WGSL_F16,
    WEFT_WGSL_F32,
    WEFT_WGSL_F64,
    WEFT_WGSL_FOUR, /* a vector of four of `of` */
    WEFT_WGSL_POINTER,
    WEFT_WGSL_ARRAY,
    WEFT_WGSL_STRUCT,
    WEFT_WGSL_UNION
} weft_wgsl_kind;

typedef enum weft_wgsl_space { WEFT_WGSL_PRIVATE, WEFT_WGSL_GLOBAL, WEFT_WGSL_LOCAL } weft_wgsl_space;

typedef struct weft_wgsl_field {
    weft_wgsl_word *name;
    const struct weft_wgsl_type *type;
    int offset; /* bytes, with C's layout */
    struct weft_wgsl_field *next;
} weft_wgsl_field;

typedef struct weft_wgsl_type {
    weft_wgsl_kind kind;
    weft_wgsl_space space;           /* of what a pointer points to */
    const struct weft_wgsl_type *of; /* element, or target of a pointer */
    int count;                       /* of an array */
    int depth;                       /* of the types that it consists of */
    /* of a struct or a union */
    weft_wgsl_word *tag;
    weft_wgsl_field *fields;
    int bytes, alignment;
    bool begun, complete; /* its members are being read, or are known */
    int number;           /* of a struct without a tag */
} weft_wgsl_type;

/* A variable or a parameter. */
typedef struct weft_wgsl_symbol {
    weft_wgsl_word *name;
    const weft_wgsl_type *type;
    weft_wgsl_space space; /* of the variable itself */
    bool changed;          /* it is assigned, or its address is taken */
    bool table;            /* a constant outside of functions */
    struct weft_wgsl_node *value;
    int line, number;
} weft_wgsl_symbol;

typedef struct weft_wgsl_function {
    weft_wgsl_word *name;
    const weft_wgsl_type *type; /* of the result */
    weft_wgsl_symbol **parameters;
    int n_parameters;
    bool kernel;
    int items[3];
    struct weft_wgsl_node *body;
    int line;
    struct weft_wgsl_function *next;
} weft_wgsl_function;

typedef enum weft_wgsl_node_kind {
    /* expressions */
    WEFT_WGSL_N_INTEGER,
    WEFT_WGSL_N_FLOAT,
    WEFT_WGSL_N_SYMBOL,
    WEFT_WGSL_N_WORD,   /* a name that is not declared: a constant that is built in */
    WEFT_WGSL_N_CALL,   /* word (list) */
    WEFT_WGSL_N_INDEX,  /* a[b] */
    WEFT_WGSL_N_FIELD,  /* a.word */
    WEFT_WGSL_N_ARROW,  /* a->word */
    WEFT_WGSL_N_UNARY,  /* op a */
    WEFT_WGSL_N_BEFORE, /* ++a, --a */
    WEFT_WGSL_N_AFTER,  /* a++, a-- */
    WEFT_WGSL_N_BINARY, /* a op b */
    WEFT_WGSL_N_ASSIGN, /* a op b; op: = or += .. */
    WEFT_WGSL_N_CHOICE, /* a ? b : c */
    WEFT_WGSL_N_CAST,   /* (type)a */
    WEFT_WGSL_N_COMMA,  /* a, b */
    WEFT_WGSL_N_LIST,   /* {list} */
    /* statements */
    WEFT_WGSL_N_BLOCK,   /* list */
    WEFT_WGSL_N_DECLARE, /* list of DECLARE, with symbol */
    WEFT_WGSL_N_EXPRESSION,
    WEFT_WGSL_N_IF,
    WEFT_WGSL_N_FOR, /* for (list; a; b) c; symbol: a counter that c leaves as it is, if it is to be unrolled
                      */
    WEFT_WGSL_N_WHILE,
    WEFT_WGSL_N_DO,
    WEFT_WGSL_N_RETURN,
    WEFT_WGSL_N_BREAK,
    WEFT_WGSL_N_CONTINUE,
    WEFT_WGSL_N_EMPTY
} weft_wgsl_node_kind;

typedef struct weft_wgsl_node {
    weft_wgsl_node_kind kind;
    int line;
    char op[4];
    struct weft_wgsl_node *a, *b, *c, *list, *next;
    weft_wgsl_word *word;
    weft_wgsl_symbol *symbol;
    const weft_wgsl_type *type; /* of a cast, or of a number */
    uint64_t integer;
    double number;
} weft_wgsl_node;

typedef struct weft_wgsl_tree {
    weft_wgsl_function *functions; /* the last one first */
} weft_wgsl_tree;

/* parse.c */
weft_wgsl_tree *weft__wgsl_parse(weft_wgsl_run *run, const weft_wgsl_tokens *tokens);

/* types.c */
enum { WEFT_WGSL_TYPE_DEPTH = 64, WEFT_WGSL_TYPE_BYTES = 1 << 20 }; /* limits of a type */
const weft_wgsl_type *weft__wgsl_type(weft_wgsl_kind kind);
const weft_wgsl_type *weft__wgsl_pointer(weft_wgsl_run *run, const weft_wgsl_type *of, weft_wgsl_space space);
const weft_wgsl_type *weft__wgsl_array(weft_wgsl_run *run, const weft_wgsl_type *of, int count);
void weft__wgsl_builtin_types(weft_wgsl_run *run); /* makes their names words of types */
int weft__wgsl_size(const weft_wgsl_type *type);   /* bytes in memory, as in C */
/* Sets the offsets of the fields of a struct or a union, its size and its alignment. */
void weft__wgsl_layout(weft_wgsl_run *run, weft_wgsl_type *type, int line);
const weft_wgsl_field *weft__wgsl_field_of(const weft_wgsl_type *type, const weft_wgsl_word *name);
const char *weft__wgsl_c_name(weft_wgsl_run *run, const weft_wgsl_type *type); /* for messages */
bool weft__wgsl_same(const weft_wgsl_type *a, const weft_wgsl_type *b);

static inline bool weft__wgsl_is_integer(const weft_wgsl_type *t) {
    return t->kind >= WEFT_WGSL_BOOL && t->kind <= WEFT_WGSL_U64;
}
static inline bool weft__wgsl_is_64(const weft_wgsl_type *t) {
    return t->kind == WEFT_WGSL_I64 || t->kind == WEFT_WGSL_U64;
}
static inline bool weft__wgsl_is_number(const weft_wgsl_type *t) {
    return t->kind >= WEFT_WGSL_BOOL && t->kind <= WEFT_WGSL_F64;
}

#endif
