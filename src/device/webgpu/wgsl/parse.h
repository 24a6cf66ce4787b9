/* What the two files of the parser share. Read next: parse.c. */
#ifndef WEFT_DEVICE_WEBGPU_WGSL_PARSE_H
#define WEFT_DEVICE_WEBGPU_WGSL_PARSE_H

#include "device/webgpu/wgsl/tree.h"

typedef struct weft_wgsl_scope {
    weft_wgsl_symbol **list;
    size_t count, capacity;
} weft_wgsl_scope;

typedef struct weft_wgsl_parser {
    weft_wgsl_run *run;
    const weft_wgsl_token *at;
    weft_wgsl_scope scope; /* symbols that are visible, the newest last */
    weft_wgsl_tree *tree;
    int n_symbols, n_structs;
    int items[3]; /* that the last attribute said */
    bool unroll;  /* the last attribute was _Pragma("unroll") */
} weft_wgsl_parser;

weft_wgsl_node *weft__wgsl_node(weft_wgsl_parser *p, weft_wgsl_node_kind kind);
bool weft__wgsl_accept(weft_wgsl_parser *p, const char *text);
void weft__wgsl_expect(weft_wgsl_parser *p, const char *text);

/* parse_expression.c */
weft_wgsl_node *weft__wgsl_parse_expression(weft_wgsl_parser *p); /* with commas */
weft_wgsl_node *weft__wgsl_parse_assignment(weft_wgsl_parser *p); /* without */
/* Returns the value of a constant expression of integers. */
int weft__wgsl_parse_constant(weft_wgsl_parser *p);

/* parse.c: types */
typedef struct weft_wgsl_specifiers {
    const weft_wgsl_type *type;
    weft_wgsl_space space;
    bool is_typedef, kernel;
} weft_wgsl_specifiers;
bool weft__wgsl_begins_type(const weft_wgsl_parser *p);
weft_wgsl_specifiers weft__wgsl_parse_specifiers(weft_wgsl_parser *p);
const weft_wgsl_type *weft__wgsl_parse_pointers(weft_wgsl_parser *p, const weft_wgsl_specifiers *s);

#endif
