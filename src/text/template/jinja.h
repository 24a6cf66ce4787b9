/* The templates of chat models: a part of the language Jinja. A text becomes tokens (lexer.c), a tree
 * (parser.c, parser_tags.c) and, with variables, a text (run.c, evaluate.c).
 *
 * Results are those of jinja2 as transformers sets it up: trim_blocks and lstrip_blocks are on, values cannot
 * be changed except for namespaces, and tojson writes what Python's json.dumps writes. jinja.def lists what
 * the language has. All memory of a template belongs to its arena, and all memory of a run to the run's.
 *
 * Must not know: files, chats (chat.c). Read next: jinja.def, lexer.c, parser.c, run.c. */
#ifndef WEFT_SRC_TEXT_TEMPLATE_JINJA_H
#define WEFT_SRC_TEXT_TEMPLATE_JINJA_H

#include <jansson.h>

#include "base/base.h"
#include "base/limits.h"

/* ---- values ---- */

typedef enum jinja_kind {
    JINJA_UNDEFINED, /* string: the name of what is not there */
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_NAMESPACE, /* dict */
    JINJA_LOOP,
    JINJA_MACRO,
    JINJA_FUNCTION, /* of the table of functions */
    JINJA_METHOD,   /* of the table of methods, with its object */
} jinja_kind;

typedef struct jinja_string {
    const char *text; /* UTF-8, not ended by NUL */
    size_t bytes;
} jinja_string;

typedef struct jinja_value {
    jinja_kind kind;
    union {
        bool flag;
        int64_t integer;
        double number;
        jinja_string string;
        struct jinja_list *list;
        struct jinja_dict *dict;
        struct jinja_loop *loop;
        const struct jinja_macro *macro;
        int function;
        const struct jinja_method *method;
    } as;
} jinja_value;

typedef struct jinja_list {
    jinja_value *items;
    size_t count, capacity;
    bool generator; /* as Python's: true, of unknown length, empty after it was read */
} jinja_list;

typedef struct jinja_pair {
    jinja_value key, value;
} jinja_pair;

typedef struct jinja_dict {
    jinja_pair *pairs; /* in the order of insertion */
    size_t count, capacity;
} jinja_dict;

typedef struct jinja_loop {
    const jinja_value *items;
    size_t count, index; /* index from 0 */
    int depth;           /* from 1 */
} jinja_loop;

typedef struct jinja_method {
    jinja_value object;
    int method;
} jinja_method;

/* ---- the tree ---- */

typedef enum jinja_node_kind {
    NODE_TEXT,       /* value */
    NODE_OUTPUT,     /* a */
    NODE_BLOCK,      /* first: statements */
    NODE_IF,         /* a: condition, first: body, b: NODE_IF or NODE_BLOCK, or NULL */
    NODE_FOR,        /* a: target, b: list, c: condition or NULL, first: body, d: NODE_BLOCK or NULL */
    NODE_SET,        /* a: target, b: value */
    NODE_SET_BLOCK,  /* a: target, first: body, b: NODE_FILTER that takes NODE_HOLE, or NULL */
    NODE_FILTERED,   /* first: body, b: NODE_FILTER that takes NODE_HOLE */
    NODE_MACRO,      /* value: name, a: parameters (NODE_KEYWORD), first: body */
    NODE_GENERATION, /* first: body */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_CONST, /* value */
    NODE_HOLE,  /* value: set by the run */
    NODE_NAME,  /* value: name */
    NODE_LIST,  /* first: items */
    NODE_TUPLE,
    NODE_DICT,    /* first: NODE_PAIR */
    NODE_PAIR,    /* a, b */
    NODE_COMPARE, /* a, first: NODE_OPERAND */
    NODE_OPERAND, /* op, a */
    NODE_AND,
    NODE_OR,
    NODE_NOT,
    NODE_BINARY,    /* op, a, b */
    NODE_UNARY,     /* op, a */
    NODE_CHOICE,    /* a if b else c; c may be NULL */
    NODE_ATTRIBUTE, /* a, value: name */
    NODE_ITEM,      /* a, b */
    NODE_SLICE,     /* a, b, c, d; b to d may be NULL */
    NODE_CALL,      /* a, first: arguments */
    NODE_KEYWORD,   /* value: name, a: value */
    NODE_FILTER,    /* index, a, first: arguments */
    NODE_TEST,      /* index, a, first: arguments */
} jinja_node_kind;

/* An operator: its one or two characters, and these words. */
#define OP2(a, b) ((a) << 8 | (b))
#define OP_IN     OP2('i', 'n')
#define OP_NOT_IN OP2('n', 'i')

typedef struct jinja_node {
    jinja_node_kind kind;
    int op;    /* OP2, or the index of a filter or test */
    size_t at; /* byte of the source */
    jinja_value value;
    struct jinja_node *a, *b, *c, *d, *first, *next;
} jinja_node;

typedef struct jinja_program {
    weft_context *ctx;
    weft_arena arena;
    const char *name; /* for messages */
    const char *source;
    size_t bytes;
    jinja_node *body;     /* NODE_BLOCK */
    bool has_generations; /* it has a block {% generation %} */
} jinja_program;

/* Parses a template. WEFT_ERR_UNSUPPORTED or WEFT_ERR_FORMAT names line and column. Free the program with
 * weft__jinja_free after a failure, too. */
weft_status weft__jinja_parse(jinja_program *program, weft_context *ctx, const char *name, const char *source,
                              size_t bytes);
void weft__jinja_free(jinja_program *program);

/* An error at a byte of the source. */
weft_status weft__jinja_fail_at(const jinja_program *program, size_t at, weft_status status, const char *fmt,
                                ...) WEFT_PRINTF(4, 5);

/* ---- tokens: lexer.c ---- */

typedef enum jinja_token_kind {
    TOKEN_TEXT,
    TOKEN_OUTPUT_BEGIN,
    TOKEN_OUTPUT_END,
    TOKEN_TAG_BEGIN,
    TOKEN_TAG_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OPERATOR,
    TOKEN_END,
} jinja_token_kind;

typedef struct jinja_token {
    jinja_token_kind kind;
    int op;
    size_t at;
    jinja_value value; /* of a text, a name or a literal */
} jinja_token;

/* Cuts the source into tokens. The last one is TOKEN_END. Free *tokens with weft__free. */
weft_status weft__jinja_lex(jinja_program *program, jinja_token **tokens);

/* ---- the parser: parser.c, parser_tags.c ---- */

typedef struct jinja_parser {
    jinja_program *program;
    const jinja_token *token; /* the next one */
    int nested;               /* levels */
    int loops;                /* loops around the token, which break and continue leave */
} jinja_parser;

/* Each sets *out to a node, and returns an error for a text that is none. */
weft_status weft__jinja_expression(jinja_parser *p, jinja_node **out);
/* An expression, or several with commas: a tuple. `choice`: "a if b else c" is allowed. */
weft_status weft__jinja_tuple(jinja_parser *p, bool choice, jinja_node **out);
/* The filters after `node`: "| name(...) | ...". `begun`: the first one has no bar. */
weft_status weft__jinja_filters(jinja_parser *p, jinja_node *node, bool begun, jinja_node **out);
/* Reads tokens to the end of the source. */
weft_status weft__jinja_statements(jinja_parser *p, jinja_node *block);

weft_status weft__jinja_node(jinja_parser *p, jinja_node_kind kind, jinja_node **out);
weft_status weft__jinja_unexpected(jinja_parser *p, const char *expected);
bool weft__jinja_is_name(const jinja_token *token, const char *name);
bool weft__jinja_is_op(const jinja_token *token, int op);
/* Skips the token if it is this one. */
bool weft__jinja_accept(jinja_parser *p, int op);
weft_status weft__jinja_expect(jinja_parser *p, int op);
weft_status weft__jinja_expect_name(jinja_parser *p, const char *name);
weft_status weft__jinja_enter(jinja_parser *p);

/* ---- a run ---- */

typedef struct jinja_text {
    char *text;
    size_t bytes, capacity;
} jinja_text;

typedef struct jinja_scope jinja_scope;

typedef struct jinja_macro {
    const jinja_node *node;
    jinja_scope *scope; /* where it was defined */
} jinja_macro;

typedef struct jinja_range {
    size_t begin, end; /* bytes of the result */
} jinja_range;

typedef struct jinja_run {
    weft_context *ctx;
    const jinja_program *program; /* NULL: only values are made */
    weft_arena arena;
    const jinja_node *at; /* what is evaluated, for messages */
    size_t memory;
    uint64_t steps;
    int depth;
    weft_status status; /* of the last weft__jinja_take that failed */
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
    jinja_scope *scope;
    jinja_text result;
    jinja_text *out;  /* &result, or the text of a macro or a block */
    jinja_value hole; /* what NODE_HOLE is */
    int64_t time;     /* seconds since 1970 that strftime_now tells */
    bool tracks;      /* note the places of generation blocks */
    jinja_range *generations;
    size_t generation_count, generation_capacity;
} jinja_run;

/* Starts a run. End it with weft__jinja_close, whatever happens. */
void weft__jinja_open(jinja_run *run, const jinja_program *program, weft_context *ctx, int64_t time);
void weft__jinja_close(jinja_run *run);
/* Sets a variable of the outermost scope. Names and values must outlive the run. */
weft_status weft__jinja_define(jinja_run *run, jinja_string name, const jinja_value *value);
/* Runs the template. The text is run->result. */
weft_status weft__jinja_render(jinja_run *run);

weft_status weft__jinja_fail(jinja_run *run, weft_status status, const char *fmt, ...) WEFT_PRINTF(3, 4);
/* Counts work. An error ends a template that takes too much. */
weft_status weft__jinja_work(jinja_run *run, uint64_t steps);
/* Zeroed memory that lives as long as the run. NULL on failure: return run->status. */
void *weft__jinja_take(jinja_run *run, size_t bytes);
weft_status weft__jinja_deeper(jinja_run *run); /* run->depth + 1; the caller takes it back */

/* ---- scopes and statements: run.c ---- */
weft_status weft__jinja_scope_enter(jinja_run *run, jinja_scope *parent, jinja_scope **previous);
weft_status weft__jinja_lookup(jinja_run *run, jinja_string name, jinja_value *out);
weft_status weft__jinja_statements_run(jinja_run *run, const jinja_node *first);
/* Calls a macro; the result is a string. */
typedef struct jinja_arguments jinja_arguments;
weft_status weft__jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                                   jinja_value *out);

/* ---- expressions: evaluate.c, operators.c ---- */
struct jinja_arguments {
    const jinja_value *values; /* positional ones, then those with names */
    const jinja_string *names; /* of the latter */
    size_t positional, named;
};
weft_status weft__jinja_evaluate(jinja_run *run, const jinja_node *node, jinja_value *out);
weft_status weft__jinja_arguments(jinja_run *run, const jinja_node *first, jinja_arguments *out);
weft_status weft__jinja_attribute(jinja_run *run, const jinja_value *object, jinja_string name,
                                  jinja_value *out);
/* The attribute "a.b.0" of an object, as filters name it. */
weft_status weft__jinja_path(jinja_run *run, const jinja_value *object, const jinja_value *path,
                             jinja_value *out);
weft_status weft__jinja_item(jinja_run *run, const jinja_value *object, const jinja_value *index,
                             jinja_value *out);
weft_status weft__jinja_slice(jinja_run *run, const jinja_value *object, const jinja_value bounds[3],
                              jinja_value *out);
weft_status weft__jinja_binary(jinja_run *run, int op, const jinja_value *a, const jinja_value *b,
                               jinja_value *out);
weft_status weft__jinja_unary(jinja_run *run, int op, const jinja_value *a, jinja_value *out);
weft_status weft__jinja_compare(jinja_run *run, int op, const jinja_value *a, const jinja_value *b,
                                bool *out);

/* ---- values: values.c, write.c ---- */
static inline jinja_value weft__jinja_none(void) { return (jinja_value){.kind = JINJA_NONE}; }
static inline jinja_value weft__jinja_bool(bool flag) {
    return (jinja_value){.kind = JINJA_BOOL, .as.flag = flag};
}
static inline jinja_value weft__jinja_int(int64_t i) {
    return (jinja_value){.kind = JINJA_INT, .as.integer = i};
}
static inline jinja_value weft__jinja_float(double f) {
    return (jinja_value){.kind = JINJA_FLOAT, .as.number = f};
}
static inline jinja_value weft__jinja_text(const char *text, size_t bytes) {
    return (jinja_value){.kind = JINJA_STRING, .as.string = {text, bytes}};
}
static inline jinja_value weft__jinja_undefined(jinja_string name) {
    return (jinja_value){.kind = JINJA_UNDEFINED, .as.string = name};
}
jinja_string weft__jinja_literal(const char *text);
bool weft__jinja_same(jinja_string a, const char *b);
const char *weft__jinja_kind_name(const jinja_value *value); /* as Python calls it */
bool weft__jinja_truth(const jinja_value *value);
bool weft__jinja_is_integer(const jinja_value *value, int64_t *out); /* also true and false */
bool weft__jinja_is_number(const jinja_value *value, double *out);
weft_status weft__jinja_list(jinja_run *run, jinja_kind kind, size_t capacity, jinja_value *out);
weft_status weft__jinja_append(jinja_run *run, jinja_value *list, const jinja_value *item);
weft_status weft__jinja_dict(jinja_run *run, jinja_kind kind, jinja_value *out);
/* The value of a key; NULL: there is none, or an error, which *status tells. */
weft_status weft__jinja_find(jinja_run *run, const jinja_dict *dict, const jinja_value *key,
                             jinja_pair **out);
weft_status weft__jinja_put(jinja_run *run, jinja_dict *dict, const jinja_value *key,
                            const jinja_value *value);
/* Adds a key that the dict does not have. */
weft_status weft__jinja_add(jinja_run *run, jinja_dict *dict, const jinja_value *key,
                            const jinja_value *value);
weft_status weft__jinja_equal(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *out);
/* -1, 0 or 1; an error if Python has no order of the two. */
weft_status weft__jinja_order(jinja_run *run, const jinja_value *a, const jinja_value *b, int *out);
/* The items that a loop goes over. */
weft_status weft__jinja_items(jinja_run *run, const jinja_value *value, const jinja_value **items,
                              size_t *count);
weft_status weft__jinja_length(jinja_run *run, const jinja_value *value, size_t *out);
/* A value of JSON. */
weft_status weft__jinja_from_json(jinja_run *run, const json_t *json, jinja_value *out);

weft_status weft__jinja_write(jinja_run *run, jinja_text *to, const char *text, size_t bytes);
weft_status weft__jinja_string(jinja_run *run, const jinja_text *text, jinja_value *out);
/* Writes a value as Python's str() does, and with `quoted` as repr(). */
weft_status weft__jinja_print(jinja_run *run, jinja_text *to, const jinja_value *value, bool quoted);
/* The string that weft__jinja_print writes. */
weft_status weft__jinja_to_string(jinja_run *run, const jinja_value *value, jinja_string *out);

typedef struct jinja_json {
    jinja_string indent; /* of one level */
    bool lines;          /* each item on a line */
    bool ascii, sorted;
    jinja_string comma, colon;
} jinja_json;
weft_status weft__jinja_print_json(jinja_run *run, jinja_text *to, const jinja_value *value,
                                   const jinja_json *how);

/* ---- strings: strings.c. Indices count characters, as in Python. ---- */
size_t weft__jinja_characters(jinja_string s);
size_t weft__jinja_character(jinja_string s, size_t at); /* bytes of the one at a byte */
jinja_string weft__jinja_trim(jinja_string s, const jinja_string *characters, bool left, bool right);
/* The byte where `part` begins in s from `at` on; SIZE_MAX: nowhere. */
size_t weft__jinja_search(jinja_string s, jinja_string part, size_t at);
typedef enum jinja_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_JINJA_TITLE } jinja_case;
weft_status weft__jinja_case(jinja_run *run, jinja_string s, jinja_case how, jinja_value *out);
weft_status weft__jinja_replace(jinja_run *run, jinja_string s, jinja_string from, jinja_string to,
                                int64_t count, jinja_value *out);

/* Reads a line from *at on and moves behind it. False: there is none. `ended`: with its newline. */
bool weft__jinja_line(jinja_string s, size_t *at, bool ended, jinja_string *out);

/* ---- arguments of filters: filters_list.c ---- */
/* The argument as text; undefined: `otherwise`. */
weft_status weft__jinja_text_argument(jinja_run *run, const jinja_value *argument, const char *otherwise,
                                      jinja_string *out);
weft_status weft__jinja_int_argument(jinja_run *run, const jinja_value *argument, int64_t otherwise,
                                     int64_t *out);
/* Sorts a list by keys; equal keys keep their order. */
weft_status weft__jinja_sort(jinja_run *run, jinja_value *keys, jinja_value *items, size_t count,
                             bool reverse);

/* ---- tables: tables.c. The arguments are in the order of the table; missing ones are undefined. ---- */

#define JINJA_ARGUMENTS 4

typedef struct jinja_call {
    jinja_value object; /* of a filter, test or method */
    jinja_value args[JINJA_ARGUMENTS];
    size_t given; /* positional arguments */
    const jinja_arguments *all;
} jinja_call;

typedef weft_status (*jinja_function)(jinja_run *run, const jinja_call *call, jinja_value *out);

typedef struct jinja_entry {
    const char *name;
    jinja_function function; /* NULL: known, but not supported */
    const char *parameters;  /* names, with commas; "*": any */
    int required;            /* arguments that must be given */
    jinja_kind object;       /* of a method */
} jinja_entry;

extern const jinja_entry weft__jinja_filter_table[], weft__jinja_test_table[], weft__jinja_function_table[],
    weft__jinja_method_table[];

/* The index of a name; -1: unknown. */
int weft__jinja_entry_of(const jinja_entry *table, jinja_string name);
/* The index of a method of objects of this kind; -1: unknown. */
int weft__jinja_method_of(jinja_kind object, jinja_string name);
/* Writes the names of a table that are supported, with commas; of methods, those of this kind. */
void weft__jinja_names(const jinja_entry *table, jinja_kind object, char *out, size_t bytes);
weft_status weft__jinja_call(jinja_run *run, const jinja_entry *entry, const jinja_value *object,
                             const jinja_arguments *arguments, jinja_value *out);

#define JINJA_FUNCTION_NAME(group, name)                                                                     \
    weft_status weft__jinja_##group##_##name(jinja_run *run, const jinja_call *call, jinja_value *out);
#define FILTER(name, function, parameters, required)         JINJA_FUNCTION_NAME(filter, function)
#define TEST(name, function, parameters, required)           JINJA_FUNCTION_NAME(test, function)
#define FUNCTION(name, function, parameters, required)       JINJA_FUNCTION_NAME(global, function)
#define METHOD(object, name, function, parameters, required) JINJA_FUNCTION_NAME(method, function)
#define NO_FILTER(name)
#define NO_TEST(name)
#define NO_FUNCTION(name)
#define NO_TAG(name)
#include "text/template/jinja.def"

#endif
