/* What the files that write C source share. Must not know: files. Read next: export_c.c. */
#ifndef WEFT_SRC_TRAIN_EXPORT_EXPORT_SOURCE_H
#define WEFT_SRC_TRAIN_EXPORT_EXPORT_SOURCE_H

#include "train/export/export.h"

enum { WEFT__EXPORT_NAME = 64 };

/* What an array of the source is. */
typedef enum weft__export_role {
    WEFT__EXPORT_ARENA,
    WEFT__EXPORT_NUMBERS,  /* of a step: such as its rate. They lie in the function */
    WEFT__EXPORT_ARGUMENT, /* of a function */
    WEFT__EXPORT_CONSTANT, /* weights, and numbers of the normalization */
    WEFT__EXPORT_KEPT,     /* training changes it, and a saved state has it: weights, the optimizer's state */
    WEFT__EXPORT_TEXT,     /* kept from token to token of a text */
    WEFT__EXPORT_NORM      /* the norm of the gradients */
} weft__export_role;

typedef struct weft__export_array {
    const weft_buffer *buffer;
    char name[WEFT__EXPORT_NAME];
    weft__export_role role;
    unsigned dtypes; /* 1u << dtype for each dtype of its elements */
    int64_t bytes;
} weft__export_array;

/* A program of the source. */
typedef struct weft__export_program {
    weft_program *program; /* NULL: the source has no such program */
    const char *prefix;    /* of its kernels */
    weft_c99_slot *slots;
    int n_slots;
    int *arrays; /* [n_slots] the array of each slot, -1: none */
} weft__export_program;

/* Everything that the source is written from. */
typedef struct weft__export_source {
    weft__opened_model *opened;
    const char *name;
    weft__export_graph graph;
    weft__export_step step; /* batch 0: the source only predicts */
    weft__export_program forward, learn;
    weft__export_array *arrays;
    int n_arrays;
    bool blob;                       /* the weights are in a file of their own */
    int64_t weights, memory, learnt; /* bytes: of weights; of other static memory; of weights that change */
    int64_t state;                   /* bytes of a saved state, 0: none */
    uint32_t id;                     /* the same in all files of one export */
} weft__export_source;

/* Writes NAME.h. */
weft_status weft__export_header(const weft__export_source *s, weft_text *out);
/* Writes "#define NAME_WHAT value", and why as a comment. */
void weft__export_define(const weft__export_source *s, weft_text *out, const char *what, long long value,
                         const char *why);
/* Writes NAME.c. */
weft_status weft__export_body(const weft__export_source *s, weft_text *out);

/* Writes the statements of a program. */
weft_status weft__export_statements(const weft__export_source *s, const weft__export_program *p,
                                    weft_text *out);

/* ---- export_learn.c: what a source that trains has besides ---- */

void weft__export_learn_header(const weft__export_source *s, weft_text *out);
weft_status weft__export_learn(const weft__export_source *s, weft_text *out);
/* Finds parameter i of the module that training changes: its array, and its first element there. Returns
 * false if there are fewer. */
bool weft__export_learnt(const weft__export_source *s, size_t i, weft_parameter_info *info, int *array,
                         int64_t *first);

/* ---- the file of weights, and saved states ---- */

#define WEFT__EXPORT_MAGIC "WEFTC99\n"
enum {
    WEFT__EXPORT_BLOB_HEAD = 16, /* the magic, the id, and the number 1 as a float */
    WEFT__EXPORT_STATE_HEAD = 20 /* the id, the number 1 as a float, the step (2), and a checksum */
};
/* Is the array in the file of weights? */
bool weft__export_stored(const weft__export_array *array);
/* Returns the first float of an array behind the head. */
int64_t weft__export_offset(const weft__export_source *s, int array);

#endif
