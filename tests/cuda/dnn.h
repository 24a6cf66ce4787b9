/* cuDNN for tests (libcudnn.so.9 beside the driver of fake.h): graphs of operations are computed on the
 * processor, operation by operation as each is defined, in stream order. It knows matrices of four
 * dimensions, the operations of attention and convolutions; what it does not know, or what is filled in
 * otherwise than cuDNN's manual says, is refused aloud, and the process ends with 1. Which graphs the real
 * one takes is another test's matter (tests/dnn). Read next: dnn.c (descriptors), dnn_compute.c. */
#ifndef WEFT_TESTS_CUDA_DNN_H
#define WEFT_TESTS_CUDA_DNN_H

/* What tests set and read, under the name fake_cudnn in the library. */
typedef struct fake_cudnn_state {
    /* set; 0: nothing */
    long version;   /* instead of 9.19.0 */
    long no_handle; /* cudnnCreate fails */
    long no_plan;   /* no engine takes any graph */
    long fail;      /* 1: the next execution fails ... */
    long unordered; /* engines say that they add in any order */
    /* counted */
    long handles, descriptors; /* that exist */
    long built, restored, executed;
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

/* Operands are numbers of tensors; -1: none. */
typedef struct fake_operation {
    unsigned kind, mode; /* of the operation's descriptor, and of what it applies */
    int64_t axis;
    int x, b, t, y;
    int64_t law[6]; /* of a convolution: paddings, strides, dilations */
} fake_operation;

/* A graph without pointers, which is all that a plan is. */
typedef struct fake_graph {
    int n_tensors, n_operations;
    int64_t workspace;
    fake_tensor tensors[FAKE_TENSORS];
    fake_operation operations[FAKE_OPERATIONS];
} fake_graph;

/* dnn_compute.c: `values`: memory of each tensor that has some. */
typedef struct fake_execution {
    fake_graph graph;
    void *values[FAKE_TENSORS];
    float numbers[FAKE_TENSORS]; /* of tensors by value */
    void *workspace;
} fake_execution;
unsigned fake_execute(void *execution);
/* dnn.c: x, w and y of a convolution, as numbers of tensors; of another operation -1. */
void fake_convolution(const fake_operation *operation, int parts[3]);
#endif

#endif
