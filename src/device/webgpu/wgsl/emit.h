/* What the files of the printer share. Expressions are typed, lowered and printed in one walk.
 *
 * - A pointer is a base, which is known when a function is printed, and an offset, a number of type i32. The
 * base is a buffer, a workgroup variable, a variable of a function, or the struct of numbers. A function is
 * printed once for each combination of bases, and its pointer parameters are their offsets.
 * - Offsets into buffers count scalars of the pointer's type (structs: words). Other offsets count scalars of
 * a flat array, since all arrays and vectors in them are stored so.
 * - long and ulong are vec2<u32>, the low word first. Smaller integers are i32.
 *
 * Statements that an expression needs before it are written when the expression is printed.
 * Read next: emit_value.c, emit_place.c, emit_expression.c, emit_call.c, emit_statement.c, emit_module.c. */
#ifndef WEFT_DEVICE_WEBGPU_WGSL_EMIT_H
#define WEFT_DEVICE_WEBGPU_WGSL_EMIT_H

#include "device/webgpu/wgsl/tree.h"
#include "device/webgpu/wgsl/wgsl.h"

/* A text that grows. */
typedef struct weft_wgsl_buffer {
    char *text;
    size_t length, capacity;
} weft_wgsl_buffer;

typedef enum weft_wgsl_base_kind {
    WEFT_WGSL_IN_NOTHING,
    WEFT_WGSL_IN_BUFFER,
    WEFT_WGSL_IN_LOCAL,   /* workgroup memory */
    WEFT_WGSL_IN_PRIVATE, /* a variable of a function */
    WEFT_WGSL_IN_NUMBERS  /* the struct of numbers; offsets count bytes */
} weft_wgsl_base_kind;

typedef struct weft_wgsl_base {
    weft_wgsl_base_kind kind;
    int pointer;                 /* of a buffer: the kernel's parameter */
    const char *root;            /* of a variable: its text, with the members that lead to `leaf` */
    const char *variable, *path; /* of a private variable: root is variable + path */
    const weft_wgsl_type *leaf;  /* what is there */
    const weft_wgsl_type *whole; /* type of a private variable */
} weft_wgsl_base;

/* text + constant; the text may be NULL. */
typedef struct weft_wgsl_offset {
    const char *text;
    int level;
    int64_t constant;
} weft_wgsl_offset;

/* How tightly the operators of a text bind. */
enum {
    WEFT_WGSL_L_OR = 2,
    WEFT_WGSL_L_AND,
    WEFT_WGSL_L_BITS,
    WEFT_WGSL_L_COMPARE,
    WEFT_WGSL_L_SHIFT,
    WEFT_WGSL_L_ADD,
    WEFT_WGSL_L_MULTIPLY,
    WEFT_WGSL_L_UNARY,
    WEFT_WGSL_L_PRIMARY
};

/* The value of an expression, or its place in memory. */
typedef struct weft_wgsl_value {
    const weft_wgsl_type *type;
    const char *text; /* of a value that is no pointer */
    int level, line;
    bool known; /* a constant: `integer` or `number` */
    bool heavy; /* reads memory or calls a function */
    int64_t integer;
    double number;
    bool place; /* it can be assigned; base and offset say where it is */
    weft_wgsl_base base;
    weft_wgsl_offset offset;
} weft_wgsl_value;

/* What a symbol is in the function that is being printed. */
typedef struct weft_wgsl_meaning {
    const char *name;
    weft_wgsl_value pointer; /* of a pointer: its base, and its offset unless it is a variable */
    bool bound;
} weft_wgsl_meaning;

typedef struct weft_wgsl_clone {
    const char *key, *name;
    bool group, item; /* whether it needs the numbers of the work-group and the work-item */
    struct weft_wgsl_clone *next;
} weft_wgsl_clone;

typedef struct weft_wgsl_names {
    const char **list;
    size_t count, capacity;
} weft_wgsl_names;

typedef struct weft_wgsl_emitter {
    weft_wgsl_run *run;
    const weft_wgsl_tree *tree;
    const int *binding;          /* of each pointer */
    weft_wgsl_meaning **meaning; /* by the number of a symbol */
    int n_symbols;
    weft_wgsl_buffer *out; /* of the statements that are being printed */
    weft_wgsl_buffer structs, variables, functions;
    weft_wgsl_names known_structs, known_variables, helpers, functions_active;
    weft_wgsl_clone *clones;
    const weft_wgsl_type *result; /* of the function */
    struct {
        bool group, item;
    } needs; /* the function */
    int indent, temporaries;
    int copies; /* of the statements that are being printed, in loops that are unrolled */
    /* found by the walk */
    bool written[WEFT_WGSL_POINTERS], atomic[WEFT_WGSL_POINTERS]; /* by pointer; atomic by binding */
    weft_wgsl_names atomic_variables;                             /* arrays of words in workgroup memory */
    int local_bytes, number_bytes;
} weft_wgsl_emitter;

/* ---- emit_value.c: texts, types and numbers ---- */
void weft__wgsl_put(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const char *fmt, ...) WEFT_PRINTF(3, 4);
void weft__wgsl_line(weft_wgsl_emitter *e, const char *fmt, ...) WEFT_PRINTF(2, 3);
bool weft__wgsl_has(const weft_wgsl_names *names, const char *name);
bool weft__wgsl_once(weft_wgsl_emitter *e, weft_wgsl_names *names,
                     const char *name); /* true the first time */
const char *weft__wgsl_help(weft_wgsl_emitter *e,
                            const char *name); /* a function of library.c; returns its name */
const char *weft__wgsl_temporary(weft_wgsl_emitter *e);
const char *weft__wgsl_safe_name(weft_wgsl_emitter *e, const char *name); /* that WGSL does not reserve */
const char *weft__wgsl_type_text(weft_wgsl_emitter *e, const weft_wgsl_type *type, int line);
const weft_wgsl_type *weft__wgsl_flat(const weft_wgsl_type *type); /* element of its flat array */
int weft__wgsl_flat_count(const weft_wgsl_type *type);
const char *weft__wgsl_at_level(weft_wgsl_emitter *e, const weft_wgsl_value *v,
                                int level); /* with brackets if needed */
weft_wgsl_value weft__wgsl_value(const weft_wgsl_type *type, const char *text, int level, int line);
weft_wgsl_value weft__wgsl_known(weft_wgsl_emitter *e, const weft_wgsl_type *type, int64_t integer, int line);
weft_wgsl_value weft__wgsl_known_float(weft_wgsl_emitter *e, const weft_wgsl_type *type, double number,
                                       int line);
/* Converts as C does. */
weft_wgsl_value weft__wgsl_convert(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to);
/* Compares a float with 0, by == or !=. */
weft_wgsl_value weft__wgsl_is_zero(weft_wgsl_emitter *e, const weft_wgsl_value *x, const char *op);
/* The type in which an operator computes operands of two types. */
const weft_wgsl_type *weft__wgsl_common(weft_wgsl_emitter *e, const weft_wgsl_type *a,
                                        const weft_wgsl_type *b, int line);
/* Stores a value in a constant, unless its text is a name or a number. */
weft_wgsl_value weft__wgsl_keep(weft_wgsl_emitter *e, weft_wgsl_value v);
weft_wgsl_offset weft__wgsl_offset_plus(weft_wgsl_emitter *e, weft_wgsl_offset a, weft_wgsl_offset b);
weft_wgsl_offset weft__wgsl_offset_times(weft_wgsl_emitter *e, weft_wgsl_offset a, int64_t by);
const char *weft__wgsl_offset_text(weft_wgsl_emitter *e, weft_wgsl_offset a);

/* ---- emit_place.c ---- */
int weft__wgsl_stride(weft_wgsl_base_kind kind, const weft_wgsl_type *type); /* units of an element */
int weft__wgsl_unit(weft_wgsl_base_kind kind, const weft_wgsl_type *type);   /* bytes of a unit */
weft_wgsl_value weft__wgsl_load(weft_wgsl_emitter *e, weft_wgsl_value place);
void weft__wgsl_store(weft_wgsl_emitter *e, weft_wgsl_value place, weft_wgsl_value v);
/* Returns the text of the pointer to a word that atomic functions take. The word is in a buffer, or in an
 * array in workgroup memory. */
const char *weft__wgsl_atomic_word(weft_wgsl_emitter *e, weft_wgsl_value pointer);
weft_wgsl_value weft__wgsl_member(weft_wgsl_emitter *e, weft_wgsl_value of, const weft_wgsl_word *name,
                                  int line);
weft_wgsl_value weft__wgsl_element(weft_wgsl_emitter *e, weft_wgsl_value pointer, weft_wgsl_value index);
weft_wgsl_value weft__wgsl_moved(weft_wgsl_emitter *e, weft_wgsl_value pointer, weft_wgsl_value by,
                                 bool back);
weft_wgsl_value weft__wgsl_address(weft_wgsl_emitter *e, weft_wgsl_value place);
weft_wgsl_value weft__wgsl_pointer_cast(weft_wgsl_emitter *e, weft_wgsl_value pointer,
                                        const weft_wgsl_type *to);
bool weft__wgsl_same_base(const weft_wgsl_base *a, const weft_wgsl_base *b);
void weft__wgsl_local_variable(weft_wgsl_emitter *e, const char *name, const weft_wgsl_type *type, int line);

/* ---- emit_expression.c ---- */
weft_wgsl_value weft__wgsl_expression(weft_wgsl_emitter *e, const weft_wgsl_node *n); /* a value */
weft_wgsl_value weft__wgsl_condition(weft_wgsl_emitter *e, const weft_wgsl_node *n);  /* of type bool */
void weft__wgsl_effect(weft_wgsl_emitter *e, const weft_wgsl_node *n); /* a value that is not used */
weft_wgsl_value weft__wgsl_binary(weft_wgsl_emitter *e, const char *op, weft_wgsl_value a, weft_wgsl_value b,
                                  int line);

/* ---- emit_call.c, emit_builtin.c ---- */
weft_wgsl_value weft__wgsl_call(weft_wgsl_emitter *e, const weft_wgsl_node *n);
/* A function of the dialect. False: there is none of this name. */
bool weft__wgsl_builtin(weft_wgsl_emitter *e, const weft_wgsl_node *n, weft_wgsl_value *result);

/* ---- emit_statement.c ---- */
void weft__wgsl_statement(weft_wgsl_emitter *e, const weft_wgsl_node *n);
weft_wgsl_meaning *weft__wgsl_meaning_of(weft_wgsl_emitter *e, const weft_wgsl_symbol *s);

/* ---- emit_module.c ---- */
/* Prints a kernel. `binding` may be NULL: then each pointer has a buffer of its own. Fills in what is known
 * of it. */
const char *weft__wgsl_module(weft_wgsl_run *run, const weft_wgsl_tree *tree,
                              const weft_wgsl_function *kernel, const int *binding, weft_wgsl_kernel *facts);

/* ---- library.c ---- */
/* Returns the text of a function that programs may need. NULL: there is none of this name. */
const char *weft__wgsl_library(const char *name);

#endif
