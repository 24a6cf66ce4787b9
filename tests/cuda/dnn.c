/* cuDNN descriptors for tests. Attributes are checked when they are set. Missing attributes are detected when
 * a descriptor is finalized. Read next: dnn.h, dnn_compute.c. */
#define FAKE_CUDNN_INSIDE
#include "dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT                                __attribute__((visibility("default")))
#define DNN_FUNCTION(result, name, arguments) EXPORT result name arguments;
#include "device/cuda/dnn/dnn.def"
#undef DNN_FUNCTION

EXPORT fake_cudnn_state fake_cudnn;

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000, ATTRIBUTES = 12 };

static long refused;
static char last[200];

struct cudnnContext {
    bool alive;
    CUstream stream;
};

typedef struct attribute {
    unsigned name;
    int64_t count;
    void *values;
} attribute;

typedef struct descriptor {
    bool alive, done;
    unsigned type;
    attribute list[ATTRIBUTES];
    int n;
    /* made of the attributes: */
    fake_graph *graph; /* of an operation graph, an engine configuration or a plan */
    bool broken;       /* a configuration that cannot be built */
    int engine;        /* of an engine: its number */
} descriptor;

/* ---- refusing calls ---- */

static unsigned refuse(unsigned status, const char *why, unsigned number) {
    refused++;
    snprintf(last, sizeof last, "%s (%u)", why, number);
    fprintf(stderr, "fake cudnn: %s\n", last);
    return status;
}

__attribute__((destructor)) static void at_end(void) {
    if (!refused) return;
    fprintf(stderr, "fake cudnn: %ld calls were refused\n", refused);
    _exit(1);
}

/* An error that the real library returns for correct calls too. */
static unsigned decline(unsigned status, const char *why) {
    snprintf(last, sizeof last, "%s", why);
    return status;
}

/* ---- the library ---- */

size_t cudnnGetVersion(void) { return fake_cudnn.version ? (size_t)fake_cudnn.version : 91900; }

const char *cudnnGetErrorString(unsigned status) {
    return status == NOT_SUPPORTED      ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
           : status                     ? "CUDNN_STATUS_BAD_PARAM"
                                        : "CUDNN_STATUS_SUCCESS";
}

void cudnnGetLastErrorString(char *text, size_t bytes) {
    snprintf(text, bytes, "%s", last);
    last[0] = 0;
}

unsigned cudnnCreate(cudnnHandle_t *handle) {
    if (fake_cudnn.no_handle) return decline(NOT_SUPPORTED, "as a test wishes");
    *handle = calloc(1, sizeof **handle);
    (*handle)->alive = true;
    fake_cudnn.handles++;
    return 0;
}

unsigned cudnnDestroy(cudnnHandle_t handle) {
    if (!handle || !handle->alive) return refuse(BAD_PARAM, "no handle", 0);
    handle->alive = false; /* the memory is not freed, so that later use is detected */
    fake_cudnn.handles--;
    return 0;
}

unsigned cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
    if (!handle || !handle->alive) return refuse(BAD_PARAM, "no handle", 0);
    handle->stream = stream;
    return 0;
}

/* ---- attributes ---- */

/* For each attribute: descriptors that have it, type, count, and whether it is required. */
static const struct law {
    unsigned of, name, type;
    int least, most;
    bool wanted;
} laws[] = {
#define ONE(of, name, type)                                                                                  \
    { CUDNN_BACKEND_##of, CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, 1, true }
#define MAY(of, name, type)                                                                                  \
    { CUDNN_BACKEND_##of, CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, 1, false }
#define LINK(of, name) ONE(of, name, BACKEND_DESCRIPTOR)
#define PAIR(name)                                                                                           \
    { CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_INT64, 2, 2, true }
#define CONVOLVES(kind, x, w, y, how)                                                                        \
    LINK(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##x),                              \
        LINK(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##w),                          \
        LINK(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##y),                          \
        LINK(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##how##_CONV_DESC),            \
        ONE(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##how##_ALPHA, FLOAT),          \
        ONE(OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, OPERATION_CONVOLUTION_##how##_BETA, FLOAT)
    ONE(TENSOR_DESCRIPTOR, TENSOR_DATA_TYPE, DATA_TYPE),
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4, true},
    ONE(TENSOR_DESCRIPTOR, TENSOR_UNIQUE_ID, INT64),
    ONE(TENSOR_DESCRIPTOR, TENSOR_BYTE_ALIGNMENT, INT64),
    MAY(TENSOR_DESCRIPTOR, TENSOR_IS_VIRTUAL, BOOLEAN),
    MAY(TENSOR_DESCRIPTOR, TENSOR_IS_BY_VALUE, BOOLEAN),
    ONE(MATMUL_DESCRIPTOR, MATMUL_COMP_TYPE, DATA_TYPE),
    LINK(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_ADESC),
    LINK(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_BDESC),
    LINK(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_CDESC),
    LINK(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_DESC),
    ONE(POINTWISE_DESCRIPTOR, POINTWISE_MODE, POINTWISE_MODE),
    ONE(POINTWISE_DESCRIPTOR, POINTWISE_MATH_PREC, DATA_TYPE),
    MAY(POINTWISE_DESCRIPTOR, POINTWISE_AXIS, INT64),
    LINK(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_PW_DESCRIPTOR),
    LINK(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_XDESC),
    MAY(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR),
    MAY(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR),
    LINK(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_YDESC),
    ONE(REDUCTION_DESCRIPTOR, REDUCTION_COMP_TYPE, DATA_TYPE),
    ONE(REDUCTION_DESCRIPTOR, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE),
    LINK(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_XDESC),
    LINK(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_YDESC),
    LINK(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_DESC),
    LINK(OPERATION_RESHAPE_DESCRIPTOR, OPERATION_RESHAPE_XDESC),
    LINK(OPERATION_RESHAPE_DESCRIPTOR, OPERATION_RESHAPE_YDESC),
    ONE(CONVOLUTION_DESCRIPTOR, CONVOLUTION_COMP_TYPE, DATA_TYPE),
    ONE(CONVOLUTION_DESCRIPTOR, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE),
    ONE(CONVOLUTION_DESCRIPTOR, CONVOLUTION_SPATIAL_DIMS, INT64),
    PAIR(CONVOLUTION_PRE_PADDINGS),
    PAIR(CONVOLUTION_POST_PADDINGS),
    PAIR(CONVOLUTION_DILATIONS),
    PAIR(CONVOLUTION_FILTER_STRIDES),
    CONVOLVES(FORWARD, FORWARD_X, FORWARD_W, FORWARD_Y, FORWARD),
    CONVOLVES(BACKWARD_DATA, BWD_DATA_DX, BWD_DATA_W, BWD_DATA_DY, BWD_DATA),
    CONVOLVES(BACKWARD_FILTER, BWD_FILTER_X, BWD_FILTER_DW, BWD_FILTER_DY, BWD_FILTER),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
     FAKE_OPERATIONS, true},
    ONE(OPERATIONGRAPH_DESCRIPTOR, OPERATIONGRAPH_HANDLE, HANDLE),
    LINK(ENGINEHEUR_DESCRIPTOR, ENGINEHEUR_OPERATION_GRAPH),
    ONE(ENGINEHEUR_DESCRIPTOR, ENGINEHEUR_MODE, HEUR_MODE),
    MAY(EXECUTION_PLAN_DESCRIPTOR, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR),
    ONE(EXECUTION_PLAN_DESCRIPTOR, EXECUTION_PLAN_HANDLE, HANDLE),
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
     1, 1 << 20, false},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     FAKE_TENSORS, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1,
     FAKE_TENSORS, true},
    ONE(VARIANT_PACK_DESCRIPTOR, VARIANT_PACK_WORKSPACE, VOID_PTR),
};
enum { LAWS = sizeof laws / sizeof *laws };

static size_t bytes_of(unsigned type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4; /* enumerations */
    }
}

static const attribute *find(const descriptor *d, unsigned name) {
    for (int i = 0; i < d->n; i++)
        if (d->list[i].name == name) return &d->list[i];
    return NULL;
}

static int64_t number(const descriptor *d, unsigned name, int64_t otherwise) {
    const attribute *a = find(d, name);
    return a ? *(int64_t *)a->values : otherwise;
}

static unsigned word(const descriptor *d, unsigned name) { return *(unsigned *)find(d, name)->values; }

static bool flag(const descriptor *d, unsigned name) {
    const attribute *a = find(d, name);
    return a && *(bool *)a->values;
}

static descriptor *linked(const descriptor *d, unsigned name) {
    const attribute *a = find(d, name);
    return a ? *(descriptor **)a->values : NULL;
}

unsigned cudnnBackendCreateDescriptor(unsigned type, cudnnBackendDescriptor_t *made) {
    descriptor *d = calloc(1, sizeof *d);
    *d = (descriptor){.alive = true, .type = type};
    fake_cudnn.descriptors++;
    *made = d;
    return 0;
}

unsigned cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t given) {
    descriptor *d = given;
    if (!d || !d->alive) return refuse(BAD_PARAM, "no descriptor is destroyed", 0);
    for (int i = 0; i < d->n; i++) free(d->list[i].values);
    free(d->graph);
    *d = (descriptor){.alive = false}; /* the memory is not freed */
    fake_cudnn.descriptors--;
    return 0;
}

unsigned cudnnBackendSetAttribute(cudnnBackendDescriptor_t given, unsigned name, unsigned type, int64_t n,
                                  const void *values) {
    descriptor *d = given;
    const struct law *law = NULL;
    if (!d || !d->alive || d->done) return refuse(BAD_PARAM, "no descriptor in the making", name);
    for (int i = 0; i < LAWS; i++)
        if (laws[i].of == d->type && laws[i].name == name) law = &laws[i];
    if (!law) return refuse(BAD_PARAM, "an attribute that is not known here", name);
    if (law->type != type || n < law->least || n > law->most || !values || find(d, name) ||
        d->n == ATTRIBUTES)
        return refuse(BAD_PARAM, "type or count of an attribute, or it is there", name);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < n; i++) {
            const descriptor *of = ((descriptor *const *)values)[i];
            if (!of || !of->alive || !of->done)
                return refuse(BAD_PARAM, "a descriptor that is not done", name);
        }
    const size_t bytes = (size_t)n * bytes_of(type);
    d->list[d->n] = (attribute){name, n, malloc(bytes)};
    memcpy(d->list[d->n++].values, values, bytes);
    return 0;
}

/* ---- finalizing ---- */

static unsigned check_tensor(const descriptor *d) {
    const int64_t *dims = find(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->values;
    const int64_t *strides = find(d, CUDNN_ATTR_TENSOR_STRIDES)->values;
    for (int i = 0; i < 4; i++)
        if (dims[i] < 1 || strides[i] < 1) return refuse(BAD_PARAM, "dimensions", (unsigned)i);
    return 0;
}

/* Adds the tensor to the graph, unless it is there. Returns its index. */
static int join(fake_graph *g, const descriptor *d) {
    if (!d) return -1;
    const int64_t id = number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    fake_tensor t = {.id = id,
                     .type = word(d, CUDNN_ATTR_TENSOR_DATA_TYPE),
                     .hidden = flag(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                     .by_value = flag(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    memcpy(t.dims, find(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->values, sizeof t.dims);
    memcpy(t.strides, find(d, CUDNN_ATTR_TENSOR_STRIDES)->values, sizeof t.strides);
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].id == id) {
            if (memcmp(&g->tensors[i], &t, sizeof t) != 0)
                refuse(BAD_PARAM, "two tensors of one id", (unsigned)id);
            return i;
        }
    if (g->n_tensors == FAKE_TENSORS) return (int)refuse(0, "too many tensors", 0);
    g->tensors[g->n_tensors] = t;
    return g->n_tensors++;
}

/* A convolution. x and b are the tensors it reads, y is the tensor it writes. */
static fake_operation convolution_of(fake_graph *g, const descriptor *d, const unsigned *names, int written) {
    const descriptor *how = linked(d, names[3]);
    fake_operation o = {.kind = d->type, .axis = -1, .t = -1};
    int *const to[3] = {&o.x, &o.b, &o.y};
    for (int i = 0, n = 0; i < 3; i++) *to[i == written ? 2 : n++] = join(g, linked(d, names[i]));
    memcpy(o.law, find(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->values, 2 * sizeof *o.law);
    memcpy(o.law + 2, find(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->values, 2 * sizeof *o.law);
    memcpy(o.law + 4, find(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->values, 2 * sizeof *o.law);
    if (memcmp(o.law, find(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->values, 2 * sizeof *o.law) != 0 ||
        word(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
        *(float *)find(d, names[4])->values != 1 || *(float *)find(d, names[5])->values != 0)
        refuse(BAD_PARAM, "a convolution that is not known here", d->type);
    return o;
}

static fake_operation operation_of(fake_graph *g, const descriptor *d) {
    fake_operation o = {.kind = d->type, .axis = -1, .b = -1, .t = -1};
    const descriptor *what;
    switch (d->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        o.x = join(g, linked(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
        o.b = join(g, linked(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
        o.y = join(g, linked(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
        break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        what = linked(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        o.mode = word(what, CUDNN_ATTR_POINTWISE_MODE);
        o.axis = number(what, CUDNN_ATTR_POINTWISE_AXIS, -1);
        o.x = join(g, linked(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
        o.b = join(g, linked(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        o.t = join(g, linked(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
        o.y = join(g, linked(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        o.mode = word(linked(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC), CUDNN_ATTR_REDUCTION_OPERATOR);
        o.x = join(g, linked(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
        o.y = join(g, linked(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        o.x = join(g, linked(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
        o.y = join(g, linked(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
        break;
#define NAMES(x, w, y, how)                                                                                  \
    (const unsigned[]) {                                                                                     \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##x, CUDNN_ATTR_OPERATION_CONVOLUTION_##w,                          \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##y, CUDNN_ATTR_OPERATION_CONVOLUTION_##how##_CONV_DESC,        \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##how##_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_##how##_BETA    \
    }
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolution_of(g, d, NAMES(FORWARD_X, FORWARD_W, FORWARD_Y, FORWARD), 2);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return convolution_of(g, d, NAMES(BWD_DATA_DX, BWD_DATA_W, BWD_DATA_DY, BWD_DATA), 0);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolution_of(g, d, NAMES(BWD_FILTER_X, BWD_FILTER_DW, BWD_FILTER_DY, BWD_FILTER), 1);
    default: refuse(BAD_PARAM, "an operation that is not known here", d->type);
    }
    return o;
}

/* x, w and y of a convolution, as indices of tensors. */
void fake_convolution(const fake_operation *o, int parts[3]) {
    const int forward[3] = {o->x, o->b, o->y}, data[3] = {o->y, o->x, o->b}, filter[3] = {o->x, o->y, o->b};
    const int *of = o->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR           ? forward
                    : o->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR   ? data
                    : o->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? filter
                                                                                                : NULL;
    parts[0] = -1;
    for (int i = 0; of && i < 3; i++) parts[i] = of[i];
}

static unsigned check_convolution(const fake_graph *g, const fake_operation *o, const int parts[3]) {
    const int64_t *x = g->tensors[parts[0]].dims, *w = g->tensors[parts[1]].dims,
                  *y = g->tensors[parts[2]].dims;
    bool fits = x[0] == y[0] && w[0] == y[1] && x[1] % w[1] == 0 && y[1] % (x[1] / w[1]) == 0;
    for (int d = 0; d < 2; d++)
        fits =
            fits &&
            y[2 + d] == (x[2 + d] + 2 * o->law[d] - o->law[4 + d] * (w[2 + d] - 1) - 1) / o->law[2 + d] + 1;
    return fits ? 0 : refuse(BAD_PARAM, "shapes of a convolution", o->kind);
}

/* Matmuls are (m, k) x (k, n). Other operations write a tensor of the size that they read, except
 * reductions. */
static unsigned check_operation(const fake_graph *g, const fake_operation *o) {
    int parts[3];
    fake_convolution(o, parts);
    if (parts[0] >= 0) return check_convolution(g, o, parts);
    const int64_t *x = g->tensors[o->x].dims, *y = g->tensors[o->y].dims;
    const int64_t *b = o->b < 0 ? NULL : g->tensors[o->b].dims;
    bool fits = true;
    if (o->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        fits = x[3] == b[2] && y[2] == x[2] && y[3] == b[3] && x[0] == b[0] && x[1] == b[1];
    if (o->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) fits = y[2] == x[2] && y[3] == 1;
    if (o->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        for (int i = 0; i < 4; i++)
            fits = fits && (x[i] == y[i] || x[i] == 1) && (!b || b[i] == y[i] || b[i] == 1);
    return fits && x[0] <= y[0] && x[1] <= y[1] ? 0 : refuse(BAD_PARAM, "shapes of an operation", o->kind);
}

/* Bytes for the gradient of the scores, which a backward pass with a fixed order keeps. A backward pass may
 * not need more, except for dq. */
static int64_t workspace_of(const fake_graph *g) {
    int products = 0, identities = 0;
    int64_t scores = 0;
    for (int i = 0; i < g->n_operations; i++) {
        const fake_operation *o = &g->operations[i];
        products += o->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
        identities +=
            o->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && o->mode == CUDNN_POINTWISE_IDENTITY;
        const int64_t *d = g->tensors[o->y].dims;
        if (products == 1 && !scores) scores = d[0] * d[1] * d[2] * d[3];
    }
    return products == 5 && !identities ? 2 * scores + 128 : 256;
}

static unsigned finish_graph(descriptor *d) {
    const attribute *operations = find(d, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    fake_graph *g = d->graph = calloc(1, sizeof *g);
    const long before = refused;
    for (int64_t i = 0; i < operations->count && refused == before; i++) {
        g->operations[g->n_operations] = operation_of(g, ((descriptor **)operations->values)[i]);
        if (refused == before) check_operation(g, &g->operations[g->n_operations++]);
    }
    g->workspace = workspace_of(g);
    return refused == before ? 0 : BAD_PARAM;
}

static fake_graph *copy(const fake_graph *g) {
    fake_graph *made = malloc(sizeof *made);
    return memcpy(made, g, sizeof *made);
}

/* The text that a plan is restored from: its bytes as letters. */
static const char head[] = "{\"fake plan\": \"";
enum { SAVED = sizeof head - 1 + 2 * sizeof(fake_graph) + 2 };

static fake_graph *restore(const attribute *saved) {
    const char *text = saved->values;
    if (saved->count != SAVED || memcmp(text, head, sizeof head - 1) != 0) return NULL;
    fake_graph *g = calloc(1, sizeof *g);
    for (size_t i = 0; i < 2 * sizeof *g; i++)
        ((unsigned char *)g)[i / 2] |= (unsigned char)((text[sizeof head - 1 + i] - 'a') << (i % 2 ? 4 : 0));
    return g;
}

static unsigned finish_plan(descriptor *d) {
    const attribute *saved = find(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    const descriptor *from = linked(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (saved) {
        d->graph = restore(saved);
        fake_cudnn.restored += d->graph != NULL;
        return d->graph ? 0 : decline(BAD_PARAM, "a plan that cannot be read");
    }
    if (!from) return refuse(BAD_PARAM, "a plan of nothing", 0);
    if (from->broken) return decline(NOT_SUPPORTED, "an engine that does not build");
    d->graph = copy(from->graph);
    d->graph->slow = fake_cudnn.fast && fake_cudnn.fast != d->graph->engine;
    if (fake_cudnn.greedy && fake_cudnn.greedy == d->graph->engine) d->graph->workspace = INT64_C(1) << 50;
    fake_cudnn.built++;
    return 0;
}

unsigned cudnnBackendFinalize(cudnnBackendDescriptor_t given) {
    descriptor *d = given;
    unsigned status = 0;
    if (!d || !d->alive || d->done) return refuse(BAD_PARAM, "no descriptor in the making is finished", 0);
    for (int i = 0; i < LAWS; i++)
        if (laws[i].of == d->type && laws[i].wanted && !find(d, laws[i].name))
            return refuse(BAD_PARAM, "an attribute is missing", laws[i].name);
    if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) status = check_tensor(d);
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) status = finish_graph(d);
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) status = finish_plan(d);
    d->done = !status;
    return status;
}

/* ---- queries ---- */

/* Gives engines. The first one fails only when it is built. */
static void give_engines(const descriptor *heuristics, int64_t most, int64_t *n, descriptor **list) {
    const int64_t engines = fake_cudnn.engines ? fake_cudnn.engines : 2;
    *n = fake_cudnn.no_plan || fake_declines() ? 0 : most < engines ? most : engines;
    for (int64_t i = 0; i < *n; i++) {
        list[i]->graph = copy(linked(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph);
        list[i]->graph->engine = (int)i;
        list[i]->broken = i == 0;
        list[i]->done = true;
    }
}

static void give_text(const descriptor *plan, int64_t most, int64_t *n, char *text) {
    *n = SAVED;
    if (most < SAVED) return;
    memcpy(text, head, sizeof head - 1);
    text += sizeof head - 1;
    for (size_t i = 0; i < 2 * sizeof *plan->graph; i++)
        *text++ = (char)('a' + (((const unsigned char *)plan->graph)[i / 2] >> (i % 2 ? 4 : 0) & 15));
    memcpy(text, "\"}", 2);
}

unsigned cudnnBackendGetAttribute(cudnnBackendDescriptor_t given, unsigned name, unsigned type, int64_t most,
                                  int64_t *n, void *values) {
    const descriptor *d = given;
    (void)type;
    if (!d || !d->alive || !n) return refuse(BAD_PARAM, "no descriptor is asked", name);
    if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        const bool any_order = fake_cudnn.unordered || (fake_cudnn.random && fake_cudnn.random == d->engine);
        *n = 1;
        *(unsigned *)values =
            any_order ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        return 0;
    }
    if (!d->done) return refuse(BAD_PARAM, "a descriptor in the making is asked", name);
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: give_engines(d, most, n, values); return 0;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        *n = 1;
        (*(descriptor **)values)->engine = d->graph->engine;
        return 0;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *n = 1;
        *(int64_t *)values = d->graph->workspace;
        return 0;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: give_text(d, most, n, values); return 0;
    default: return refuse(BAD_PARAM, "asked for what is not known here", name);
    }
}

/* ---- executing ---- */

/* Each tensor has memory, except the virtual tensors of the graph, which must not have any. */
static unsigned fill(fake_execution *e, const int64_t *ids, void *const *values, int64_t n) {
    int64_t used = 0;
    for (int t = 0; t < e->graph.n_tensors; t++) {
        const fake_tensor *is = &e->graph.tensors[t];
        void *value = NULL;
        for (int64_t i = 0; i < n; i++)
            if (ids[i] == is->id) value = values[i];
        if (is->hidden != !value) return refuse(BAD_PARAM, "memory of a tensor", (unsigned)is->id);
        used += value != NULL;
        e->values[t] = value;
        if (is->by_value)
            e->numbers[t] = *(float *)value; /* read now: it is the host's memory */
        else if ((uintptr_t)value % 16)
            return refuse(BAD_PARAM, "memory is not aligned", (unsigned)is->id);
    }
    return used == n ? 0 : refuse(BAD_PARAM, "memory of no tensor", 0);
}

unsigned cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t given) {
    const descriptor *p = plan, *pack = given;
    fake_execution e;
    if (!handle || !handle->alive || !handle->stream) return refuse(BAD_PARAM, "no handle, or no stream", 0);
    if (!p || !p->alive || !p->done || !pack || !pack->alive || !pack->done)
        return refuse(BAD_PARAM, "no plan is executed", 0);
    if (fake_cudnn.fail && --fake_cudnn.fail == 0) return decline(EXECUTION_FAILED, "as a test wishes");
    if (fake_cudnn.failing && fake_cudnn.failing == p->graph->engine)
        return decline(EXECUTION_FAILED, "an engine that does not run");
    const attribute *ids = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                    *values = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    if (ids->count != values->count) return refuse(BAD_PARAM, "a pack of two lengths", 0);
    e.graph = *p->graph;
    e.workspace = *(void **)find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values;
    if ((uintptr_t)e.workspace % 256) return refuse(BAD_PARAM, "the workspace is not aligned", 0);
    const unsigned status = fill(&e, ids->values, values->values, ids->count);
    if (status) return status;
    fake_cudnn.executed++;
    fake_cudnn.last = e.graph.engine;
    return fake_enqueue(handle->stream, fake_execute, &e, sizeof e) ? EXECUTION_FAILED : 0;
}
