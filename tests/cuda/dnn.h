/* cuDNN for tests: libcudnn.so.9 for the simulated driver of fake.h. It computes graphs of operations on the
 * processor, in stream order, each operation by its definition.
 *
 * It supports tensors of four dimensions, the operations of attention, and convolutions. It refuses all other
 * input, and input that contradicts cuDNN's manual: it prints a message, and the process ends with status 1.
 * tests/dnn tests which graphs the real cuDNN accepts. Read next: dnn.c (descriptors), dnn_compute.c. */
#ifndef WEFT_TESTS_CUDA_DNN_H
#define WEFT_TESTS_CUDA_DNN_H

/* What tests set and read. The library exports it as fake_cudnn. */
typedef struct fake_cudnn_state {
    /* set by tests; 0: no effect */
    long version;   /* used instead of 9.19.0 */
    long no_handle; /* cudnnCreate fails */
    long no_plan;   /* no engine accepts a graph */
    long fail;      /* 1: the next execution fails ... */
    long unordered; /* engines report that they add in any order */
    /* Engines of a graph are counted from 0. The first one does not build. */
    long engines; /* their number; 0: two */
    long fast;    /* all engines but this one compute everything four times; 0: none does */
    long failing; /* executions of this engine fail; 0: of none */
    long greedy;  /* this engine needs more memory than anybody gives; 0: none does */
    long random;  /* only this engine reports that it adds in any order; 0: none does */
    /* counters */
    long handles, descriptors; /* existing objects */
    long built, restored, executed;
    long last; /* the engine of the last execution */
} fake_cudnn_state;

#ifdef FAKE_CUDNN_INSIDE
#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/dnn/dnn.h"
#include "fake.h"

enum { FAKE_TENSORS = 64, FAKE_OPERATIONS = 32 };

typedef struct fake_tensor {
    int64_t id, dims[4], strides[4];
    unsigned type;
    int hidden, by_value; /* virtual */
} fake_tensor;

/* Operands are indices of tensors; -1: none. */
typedef struct fake_operation {
    unsigned kind, mode; /* of the operation's descriptor, and of the descriptor that it refers to */
    int64_t axis;
    int x, b, t, y;
    int64_t law[6]; /* of a convolution: paddings, strides, dilations */
} fake_operation;

/* A graph without pointers. A plan consists of nothing else. */
typedef struct fake_graph {
    int n_tensors, n_operations, engine, slow;
    int64_t workspace;
    fake_tensor tensors[FAKE_TENSORS];
    fake_operation operations[FAKE_OPERATIONS];
} fake_graph;

/* dnn_compute.c. values: the memory of each tensor that has memory. */
typedef struct fake_execution {
    fake_graph graph;
    void *values[FAKE_TENSORS];
    float numbers[FAKE_TENSORS]; /* values of tensors passed by value */
    void *workspace;
} fake_execution;
unsigned fake_execute(void *execution);
/* dnn.c: finds x, w and y of a convolution, as indices of tensors. Of another operation -1. */
void fake_convolution(const fake_operation *operation, int parts[3]);
#endif

#endif
