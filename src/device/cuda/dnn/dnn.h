/* cuDNN, NVIDIA's library of attention and convolutions, opened at run time: operations are described as
 * graphs of descriptors (dnn_graph.c), for which it has plans, kernels compiled for one card and one problem
 * (dnn_plan.c). Plans can be made without a card, for one that is described. Must not know: devices of Weft,
 * commands. Read next: dnn_library.c, dnn_attention.h. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_H
#define WEFT_DEVICE_CUDA_DNN_DNN_H

#include "base/base.h"
#include "device/cuda/driver/api.h"

#ifndef CUDNN_GRAPH_H_ /* the vendor's header, beside which a test includes this one */
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
enum {
#define DNN_CONSTANT(name, value) name = (value),
#include "device/cuda/dnn/dnn.def"
#undef DNN_CONSTANT
};
#endif

/* The functions; all there once weft__dnn_open has returned NULL. */
typedef struct weft__dnn_functions {
#define DNN_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/cuda/dnn/dnn.def"
#undef DNN_FUNCTION
} weft__dnn_functions;
extern weft__dnn_functions weft__dnn;

/* ---- dnn_library.c ---- */

/* Opens the library, once a process; NULL, or why that cannot be and what helps: a version that is known to
 * compute wrong values is none. Thread-safe. */
const char *weft__dnn_open(void);
/* 91002 for 9.10.2 */
int weft__dnn_version(void);
/* "cuDNN 9.10.2", or that there is none and what helps, in short. */
void weft__dnn_describe(char text[96]);
/* Why a version is not used, "" where it is. */
void weft__dnn_judge(int version, char why[240]);

/* "WHAT: CUDNN_STATUS_...: words" */
enum { WEFT_DNN_WORDS = 320 };
void weft__dnn_words(unsigned status, const char *what, char words[WEFT_DNN_WORDS]);

/* For tests. */
extern const char *weft__dnn_file; /* instead of the usual names; NULL: those */
void weft__dnn_forget(void);

/* ---- dnn_graph.c: operations in the making ---- */

enum { WEFT_DNN_DESCRIPTORS = 128, WEFT_DNN_OPERATIONS = 24 };

/* After an error all calls do nothing, and those that make a descriptor return NULL. Begins as zeros. */
typedef struct weft_dnn_graph {
    cudnnBackendDescriptor_t made[WEFT_DNN_DESCRIPTORS]; /* all of them */
    cudnnBackendDescriptor_t operations[WEFT_DNN_OPERATIONS];
    int n_made, n_operations;
    unsigned error;
    char words[WEFT_DNN_WORDS];
} weft_dnn_graph;

typedef struct weft_dnn_tensor {
    int64_t id; /* by which an execution gives it memory; 0: it has none, and the number is a new one */
    unsigned type;
    int64_t dims[4], strides[4];
    bool by_value; /* one number on the host */
} weft_dnn_tensor;

cudnnBackendDescriptor_t weft__dnn_make(weft_dnn_graph *graph, unsigned type);
void weft__dnn_set(weft_dnn_graph *graph, cudnnBackendDescriptor_t to, unsigned attribute, unsigned type,
                   int64_t count, const void *values);
/* Fills in one attribute with a descriptor, or a number of `type`. */
void weft__dnn_link(weft_dnn_graph *graph, cudnnBackendDescriptor_t to, unsigned attribute,
                    cudnnBackendDescriptor_t value);
void weft__dnn_finish(weft_dnn_graph *graph, cudnnBackendDescriptor_t made);
/* The same of an operation, which becomes the graph's next. */
void weft__dnn_add(weft_dnn_graph *graph, cudnnBackendDescriptor_t operation);
void weft__dnn_graph_free(weft_dnn_graph *graph);

cudnnBackendDescriptor_t weft__dnn_tensor(weft_dnn_graph *graph, const weft_dnn_tensor *tensor);
void weft__dnn_matmul(weft_dnn_graph *graph, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                      cudnnBackendDescriptor_t c);
/* b and t may be NULL. */
void weft__dnn_map(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                   cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t, cudnnBackendDescriptor_t y);
void weft__dnn_compare(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                       cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y);
/* y: where each element of x is along an axis. */
void weft__dnn_index(weft_dnn_graph *graph, int64_t axis, cudnnBackendDescriptor_t x,
                     cudnnBackendDescriptor_t y);
void weft__dnn_reduce(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t y);
void weft__dnn_reshape(weft_dnn_graph *graph, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);

/* ---- dnn_plan.c: what cuDNN makes of them ---- */

/* What plans are made for. */
typedef struct weft_dnn_card {
    cudnnHandle_t handle;                /* of an open card, or NULL and */
    cudnnBackendDescriptor_t properties; /* of one that is described */
} weft_dnn_card;

typedef struct weft_dnn_wish {
    int64_t workspace; /* bytes at most */
    unsigned notes;    /* 1 << CUDNN_NUMERICAL_NOTE_...: engines with one of these are not taken */
} weft_dnn_wish;

typedef struct weft_dnn_plan {
    cudnnBackendDescriptor_t descriptor;
    int64_t workspace; /* bytes, at an address that is a multiple of 256 */
} weft_dnn_plan;

/* A card described by what cuDNN calls its properties, in JSON. */
cudnnBackendDescriptor_t weft__dnn_properties(weft_dnn_graph *graph, const char *json);
/* The first of cuDNN's engines that builds and is as wished; false: none, in words. */
bool weft__dnn_plan(const weft_dnn_card *card, weft_dnn_graph *graph, const weft_dnn_wish *wish,
                    weft_dnn_plan *plan, char words[WEFT_DNN_WORDS]);
/* A plan as bytes, to be freed with weft__free, and again as a plan, which takes a thousandth of the time;
 * NULL, false: no matter. */
char *weft__dnn_plan_save(weft_context *ctx, const weft_dnn_plan *plan, size_t *bytes);
bool weft__dnn_plan_load(const weft_dnn_card *card, const char *saved, size_t bytes, weft_dnn_plan *plan);
void weft__dnn_plan_free(weft_dnn_plan *plan);

/* Submits it to the stream of the handle: values[i] is what ids[i] names, memory of the card, or of the host
 * for numbers. 0, or a status. */
unsigned weft__dnn_execute(cudnnHandle_t handle, const weft_dnn_plan *plan, int count, const int64_t *ids,
                           void *const *values, void *workspace, char words[WEFT_DNN_WORDS]);

#endif
