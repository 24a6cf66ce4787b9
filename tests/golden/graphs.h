/* The graphs of the golden kernels, and their inputs. Read next: test_golden.c. */
#ifndef WEFT_TESTS_GOLDEN_GRAPHS_H
#define WEFT_TESTS_GOLDEN_GRAPHS_H

#include <weft/weft.h>

/* The tensors that the graphs use, and the values that they evaluate or assign. */
typedef struct golden_board {
    weft_context *ctx;
    weft_tensor *a, *b;     /* f32 [8,16] */
    weft_tensor *row, *col; /* f32 [16], [8,1] */
    weft_tensor *cube, *w;  /* f32 [3,8,16], [16,12] */
    weft_tensor *big;       /* f32 [4,20000] */
    weft_tensor *tall, *up; /* f32 [512,16] */
    weft_tensor *table, *y; /* f32 [10240,4], [10240,1] */
    weft_tensor *mask, *i;  /* bool, i32 [8,16] */
    weft_tensor *index;     /* i32 [5] */
    weft_tensor *half;      /* f16 [8,16] */
    weft_tensor *p, *m;     /* variables, f32 [64] */
    weft_tensor *g;         /* f32 [64] */
    weft_tensor *out[5], *variable[4], *value[4];
    int n, n_assign;
    bool values; /* inputs have values other than 0 */
    int made;    /* so many inputs */
} golden_board;

typedef struct golden_graph {
    const char *name;
    void (*make)(golden_board *s); /* records outputs, or assignments */
} golden_graph;
extern const golden_graph golden_graphs[];
extern const int golden_count;

/* Makes the inputs in the open scope of s->ctx. values: other numbers than 0. */
void golden_fill(golden_board *s, bool values);

#endif
