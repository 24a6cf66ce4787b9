/* cuDNN, NVIDIA's library of attention and convolutions, opened at run time. Operations are described as
 * graphs of descriptors (dnn_graph.c). A plan is the compiled form of a graph, for one card and one problem
 * (dnn_plan.c). Plans can also be made without a card, from a description of a card.
 * Must not know: Weft's devices, commands. Read next: dnn_library.c, dnn_attention.h,
 * docs/design/027-cudnn-graphs.md. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_H
#define WEFT_DEVICE_CUDA_DNN_DNN_H

#include "base/base.h"
#include "device/gpu/driver/api.h"

#ifndef CUDNN_GRAPH_H_ /* defined by the vendor's header; a test includes both */
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
enum {
#define DNN_CONSTANT(name, value) name = (value),
#include "device/cuda/dnn/dnn.def"
#undef DNN_CONSTANT
};
#endif

/* The functions. All are set after weft__dnn_open has returned NULL. */
typedef struct weft__dnn_functions {
#define DNN_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/cuda/dnn/dnn.def"
#undef DNN_FUNCTION
} weft__dnn_functions;
extern weft__dnn_functions weft__dnn;

/* ---- dnn_library.c ---- */

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Versions that are
 * known to compute wrong values count as missing. Thread-safe. */
const char *weft__dnn_open(void);
/* Returns the version, such as 91002 for 9.10.2. */
int weft__dnn_version(void);
/* Writes the version, such as "cuDNN 9.10.2". If there is none, writes so in short, and what helps. */
void weft__dnn_describe(char text[96]);
/* Writes why a version is not used, or "" if it is used. */
void weft__dnn_judge(int version, char why[240]);

/* Writes "WHAT: CUDNN_STATUS_...: message". */
enum { WEFT_DNN_MESSAGE = 320 };
void weft__dnn_message(unsigned status, const char *what, char message[WEFT_DNN_MESSAGE]);

/* For tests. */
extern const char *weft__dnn_file; /* opened instead of the usual names; NULL: the usual ones */
void weft__dnn_forget(void);

/* ---- dnn_graph.c: building a graph of operations ---- */

enum { WEFT_DNN_DESCRIPTORS = 128, WEFT_DNN_OPERATIONS = 24 };

/* A graph. Set it to zeros first. After an error, all calls do nothing, and calls that make a descriptor
 * return NULL. */
typedef struct weft_dnn_graph {
    cudnnBackendDescriptor_t made[WEFT_DNN_DESCRIPTORS]; /* all of them */
    cudnnBackendDescriptor_t operations[WEFT_DNN_OPERATIONS];
    int n_made, n_operations;
    unsigned error;
    char message[WEFT_DNN_MESSAGE];
} weft_dnn_graph;

typedef struct weft_dnn_tensor {
    int64_t id; /* its name when memory is bound; 0: it has no memory, and gets a new id */
    unsigned type;
    int64_t dims[4], strides[4];
    bool by_value; /* a single number on the host */
} weft_dnn_tensor;

cudnnBackendDescriptor_t weft__dnn_make(weft_dnn_graph *graph, unsigned type);
void weft__dnn_set(weft_dnn_graph *graph, cudnnBackendDescriptor_t to, unsigned attribute, unsigned type,
                   int64_t count, const void *values);
/* Sets one attribute to a descriptor. */
void weft__dnn_link(weft_dnn_graph *graph, cudnnBackendDescriptor_t to, unsigned attribute,
                    cudnnBackendDescriptor_t value);
void weft__dnn_finish(weft_dnn_graph *graph, cudnnBackendDescriptor_t made);
/* Finishes an operation and appends it to the graph. */
void weft__dnn_add(weft_dnn_graph *graph, cudnnBackendDescriptor_t operation);
void weft__dnn_graph_free(weft_dnn_graph *graph);

cudnnBackendDescriptor_t weft__dnn_tensor(weft_dnn_graph *graph, const weft_dnn_tensor *tensor);
void weft__dnn_matmul(weft_dnn_graph *graph, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                      cudnnBackendDescriptor_t c);
/* Appends an elementwise operation. b and t may be NULL. */
void weft__dnn_map(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                   cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t, cudnnBackendDescriptor_t y);
void weft__dnn_compare(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                       cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y);
/* Appends an operation that sets y to the index of each element of x along an axis. */
void weft__dnn_index(weft_dnn_graph *graph, int64_t axis, cudnnBackendDescriptor_t x,
                     cudnnBackendDescriptor_t y);
void weft__dnn_reduce(weft_dnn_graph *graph, unsigned mode, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t y);
void weft__dnn_reshape(weft_dnn_graph *graph, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);

/* ---- dnn_plan.c: compiled graphs ---- */

/* The card that plans are made for. */
typedef struct weft_dnn_card {
    cudnnHandle_t handle;                /* of an open card; otherwise NULL */
    cudnnBackendDescriptor_t properties; /* of a described card, if handle is NULL */
} weft_dnn_card;

typedef struct weft_dnn_request {
    int64_t workspace; /* bytes, at most */
    unsigned notes;    /* bits 1 << CUDNN_NUMERICAL_NOTE_...: engines with one of these are refused */
} weft_dnn_request;

typedef struct weft_dnn_plan {
    cudnnBackendDescriptor_t descriptor;
    int64_t workspace; /* bytes; the address must be a multiple of 256 */
} weft_dnn_plan;

/* Returns a card that is described by cuDNN's properties in JSON. */
cudnnBackendDescriptor_t weft__dnn_properties(weft_dnn_graph *graph, const char *json);
/* Gets a plan, which it takes over, or NULL after the last one of cuDNN's proposals. Returns whether the
 * search ends. If it does not after NULL, engines of last resort follow. */
typedef bool weft__dnn_visit(void *user, weft_dnn_plan *plan);
/* Makes plans of all engines that build and meet the request, in cuDNN's order, until the visitor ends the
 * search. Returns false and a message if it did not. */
bool weft__dnn_plans(const weft_dnn_card *card, weft_dnn_graph *graph, const weft_dnn_request *request,
                     weft__dnn_visit *visit, void *user, char message[WEFT_DNN_MESSAGE]);
/* Makes a plan with the first of these engines. Returns false and a message if there is none. */
bool weft__dnn_plan(const weft_dnn_card *card, weft_dnn_graph *graph, const weft_dnn_request *request,
                    weft_dnn_plan *plan, char message[WEFT_DNN_MESSAGE]);
/* Save a plan as bytes, and load it again, which takes a thousandth of the time. The caller frees the bytes
 * with weft__free. NULL or false: the plan must be made anew. */
char *weft__dnn_plan_save(weft_context *ctx, const weft_dnn_plan *plan, size_t *bytes);
bool weft__dnn_plan_load(const weft_dnn_card *card, const char *saved, size_t bytes, weft_dnn_plan *plan);
void weft__dnn_plan_free(weft_dnn_plan *plan);

/* Submits a plan to the stream of the handle. values[i] is the memory for ids[i]: on the card, or on the host
 * for numbers. Returns 0 or a status. */
unsigned weft__dnn_execute(cudnnHandle_t handle, const weft_dnn_plan *plan, int count, const int64_t *ids,
                           void *const *values, void *workspace, char message[WEFT_DNN_MESSAGE]);

#endif
