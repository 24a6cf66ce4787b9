/* The choice among the engines that cuDNN proposes for a graph.
 * Must not know: what graphs compute. Read next: dnn_choice.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_CHOICE_H
#define WEFT_DEVICE_CUDA_DNN_DNN_CHOICE_H

#include "device/cuda/cuda.h"

enum { WEFT_DNN_TENSORS = 16 };

/* A problem of cuDNN, and what an execution of it needs. */
typedef struct weft_dnn_problem {
    weft_hash key; /* hash of card, driver, library and problem */
    weft_dnn_request request;
    void (*describe)(weft_dnn_graph *graph, const void *what); /* makes the graph */
    const void *what;
    double work; /* multiplications */
    char name[64];
    /* The tensors of the graph that have memory: on the card, or on the host for a number. */
    int count;
    struct {
        int64_t id;
        size_t bytes, size; /* of all elements, and of one: 2, 4 */
        const float *number;
    } tensors[WEFT_DNN_TENSORS];
    bool f16; /* elements of 2 bytes are f16, not bf16 */
} weft_dnn_problem;

/* Adds a tensor on the card. Adds a number on the host, which must live as long as the problem. */
void weft__dnn_problem_add(weft_dnn_problem *problem, int64_t id, size_t bytes, size_t size);
void weft__dnn_problem_number(weft_dnn_problem *problem, int64_t id, const float *number);

/* Returns the plan of a problem: the one that was kept, else the fastest one that repeats its bits. Returns
 * false and a message if there is none. */
bool weft__dnn_choose(weft__cuda *d, const weft_dnn_problem *problem, weft_dnn_plan *plan,
                      char message[WEFT_DNN_MESSAGE]);

#endif
