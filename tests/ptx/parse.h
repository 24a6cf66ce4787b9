/* The state of the parser. Read next: parse.c, statement.c. */
#ifndef WEFT_TESTS_PTX_PARSE_H
#define WEFT_TESTS_PTX_PARSE_H

#include "module.h"

enum { PTX_NAME = 200 };

/* What a name stands for. */
typedef struct ptx_symbol {
    char name[PTX_NAME];
    int scope;
    ptx_space space;
    ptx_type type;   /* of registers */
    int slot, count; /* registers; count: of a range, else 0 */
    uint64_t at, bytes, multiple;
    bool is_extern;
    int placed_in; /* shared memory: number of the function in which `at` is valid */
} ptx_symbol;

typedef struct ptx_declared {
    char name[PTX_NAME];
    ptx_type type;
    uint64_t multiple, count, one, bytes;
} ptx_declared;

typedef struct ptx_label {
    char name[PTX_NAME];
    int at, scope;
} ptx_label;

/* A place that must get the number of a labelled instruction. */
typedef struct ptx_jump {
    char name[PTX_NAME];
    int instruction;  /* whose target it is, or -1 */
    int table, index; /* or an element of a table */
    int line;
} ptx_jump;

typedef struct ptx_parser {
    ptx_module *module;
    const char *at;
    int line, scope;
    char word[PTX_NAME];
    bool failed;
    char *why;
    size_t why_bytes;
    ptx_symbol *symbols;
    int n_symbols;
    ptx_function *function;
    uint8_t *widths;     /* bits of each register */
    int *fixes, n_fixes; /* constants that become the address of dynamic shared memory */
    unsigned dynamic_multiple;
    ptx_label *labels;
    int n_labels;
    ptx_jump *jumps;
    int n_jumps;
} ptx_parser;

void ptx_wrong(ptx_parser *p, const char *why, ...) __attribute__((format(printf, 2, 3)));
void *ptx_more(void *list, int count, size_t bytes);
void ptx_next(ptx_parser *p);
bool ptx_is(const ptx_parser *p, const char *word);
bool ptx_take(ptx_parser *p, const char *word);
void ptx_want(ptx_parser *p, const char *word);
bool ptx_is_number(const char *word);
uint64_t ptx_number(ptx_parser *p, ptx_type type);
ptx_symbol *ptx_find(ptx_parser *p, const char *name);
int ptx_register(ptx_parser *p, const char *name);
int ptx_constant(ptx_module *m, uint64_t value);
int ptx_address(ptx_parser *p, ptx_symbol *s);
bool ptx_declaration(ptx_parser *p, bool is_extern);
/* A type by its word without the dot, NO_TYPE if it is none. */
ptx_type ptx_type_of(const char *word);

/* ---- statement.c ---- */

/* The statements of a function, up to its closing brace. */
void ptx_statements(ptx_parser *p);
ptx_instruction *ptx_add_instruction(ptx_parser *p);
/* Sets the targets of branches to the labels of the function. */
void ptx_link_labels(ptx_parser *p);

#endif
