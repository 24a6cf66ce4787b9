/* Plans. cuDNN's heuristics name engines for a graph, the best first. The engines that build and meet the
 * request are shown to the caller, one after the other.
 * Must not know: what graphs compute, where plans are stored. Read next: dnn_choice.c. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/dnn/dnn.h"

enum { CONFIGURATIONS = 64 /* examined for each mode */, NOTES = 16 };

cudnnBackendDescriptor_t weft__dnn_properties(weft_dnn_graph *g, const char *json) {
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    weft__dnn_set(g, to, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  (int64_t)strlen(json) + 1, json);
    weft__dnn_finish(g, to);
    return to;
}

/* Returns whether an engine has one of the notes. */
static bool noted(weft_dnn_graph *g, cudnnBackendDescriptor_t configuration, unsigned notes) {
    cudnnBackendDescriptor_t engine = weft__dnn_make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    unsigned list[NOTES];
    int64_t count = 0;
    if (!engine ||
        weft__dnn.cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) != 0 ||
        weft__dnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &count, list) != 0)
        return true; /* unknown, so it is refused */
    for (int64_t i = 0; i < count && i < NOTES; i++)
        if (list[i] < 32 && notes >> list[i] & 1) return true;
    return false;
}

/* Makes a plan for a card, from a configuration or from saved bytes. Returns 0 or a status. */
static unsigned dnn_plan_make(const weft_dnn_card *card, unsigned from, unsigned type, int64_t bytes,
                              const void *what, weft_dnn_plan *plan) {
    int64_t count = 0;
    *plan = (weft_dnn_plan){.descriptor = NULL};
    unsigned status =
        weft__dnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan->descriptor);
    if (!status)
        status =
            card->handle
                ? weft__dnn.cudnnBackendSetAttribute(plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                                     CUDNN_TYPE_HANDLE, 1, &card->handle)
                : weft__dnn.cudnnBackendSetAttribute(plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card->properties);
    if (!status) status = weft__dnn.cudnnBackendSetAttribute(plan->descriptor, from, type, bytes, what);
    if (!status) status = weft__dnn.cudnnBackendFinalize(plan->descriptor);
    if (!status)
        status =
            weft__dnn.cudnnBackendGetAttribute(plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                               CUDNN_TYPE_INT64, 1, &count, &plan->workspace);
    return status;
}

static bool dnn_plan_build(const weft_dnn_card *card, cudnnBackendDescriptor_t configuration,
                           const weft_dnn_request *request, weft_dnn_plan *plan,
                           char message[WEFT_DNN_MESSAGE]) {
    const unsigned status = dnn_plan_make(card, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration, plan);
    if (!status && plan->workspace <= request->workspace) return true;
    if (status)
        weft__dnn_message(status, "a plan", message);
    else
        snprintf(message, WEFT_DNN_MESSAGE, "it needs %lld bytes of memory", (long long)plan->workspace);
    weft__dnn_plan_free(plan);
    return false;
}

/* Lists the engines that cuDNN proposes in a mode. The graph owns the descriptors. Returns their number. */
static int propose(const weft_dnn_card *card, weft_dnn_graph *g, cudnnBackendDescriptor_t operations,
                   unsigned mode, cudnnBackendDescriptor_t list[CONFIGURATIONS]) {
    cudnnBackendDescriptor_t from = weft__dnn_make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0;
    weft__dnn_link(g, from, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    weft__dnn_set(g, from, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!card->handle) weft__dnn_link(g, from, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, card->properties);
    weft__dnn_finish(g, from);
    for (int i = 0; i < CONFIGURATIONS; i++) list[i] = weft__dnn_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->error ||
        weft__dnn.cudnnBackendGetAttribute(from, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           CONFIGURATIONS, &count, list) != 0)
        return 0;
    return count < CONFIGURATIONS ? (int)count : CONFIGURATIONS;
}

typedef struct visitor {
    weft__dnn_visit *visit;
    void *user;
} visitor;

static bool search(const weft_dnn_card *card, weft_dnn_graph *found, cudnnBackendDescriptor_t operations,
                   unsigned mode, const weft_dnn_request *request, const visitor *to,
                   char message[WEFT_DNN_MESSAGE]) {
    cudnnBackendDescriptor_t list[CONFIGURATIONS];
    weft_dnn_plan plan;
    const int count = propose(card, found, operations, mode, list);
    for (int i = 0; i < count; i++) {
        weft_dnn_graph engine = {.error = 0};
        const bool refused = request->notes && noted(&engine, list[i], request->notes);
        weft__dnn_graph_free(&engine);
        if (refused)
            snprintf(message, WEFT_DNN_MESSAGE, "its engines compute in another precision or order");
        else if (dnn_plan_build(card, list[i], request, &plan, message) && to->visit(to->user, &plan))
            return true;
    }
    return to->visit(to->user, NULL);
}

bool weft__dnn_plans(const weft_dnn_card *card, weft_dnn_graph *g, const weft_dnn_request *request,
                     weft__dnn_visit *visit, void *user, char message[WEFT_DNN_MESSAGE]) {
    const visitor to = {visit, user};
    const unsigned modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t operations = weft__dnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    weft__dnn_set(g, operations, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  g->n_operations, g->operations);
    if (card->handle)
        weft__dnn_set(g, operations, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &card->handle);
    weft__dnn_finish(g, operations);
    snprintf(message, WEFT_DNN_MESSAGE, "%s", g->error ? g->message : "it has no engine for this problem");
    bool done = false;
    for (int m = 0; m < 2 && !g->error && !done; m++) {
        weft_dnn_graph found = {.error = 0};
        done = search(card, &found, operations, modes[m], request, &to, message);
        if (found.error) memcpy(message, found.message, WEFT_DNN_MESSAGE);
        weft__dnn_graph_free(&found);
    }
    return done;
}

static bool take_first(void *user, weft_dnn_plan *plan) {
    if (!plan) return false;
    *(weft_dnn_plan *)user = *plan;
    return true;
}

bool weft__dnn_plan(const weft_dnn_card *card, weft_dnn_graph *g, const weft_dnn_request *request,
                    weft_dnn_plan *plan, char message[WEFT_DNN_MESSAGE]) {
    return weft__dnn_plans(card, g, request, take_first, plan, message);
}

char *weft__dnn_plan_save(weft_context *ctx, const weft_dnn_plan *plan, size_t *bytes) {
    const unsigned what = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    int64_t count = 0;
    if (weft__dnn.cudnnBackendGetAttribute(plan->descriptor, what, CUDNN_TYPE_CHAR, 0, &count, NULL) != 0 ||
        count <= 0)
        return NULL;
    char *saved = weft__alloc(ctx, (size_t)count + 1);
    if (!saved) return NULL;
    if (weft__dnn.cudnnBackendGetAttribute(plan->descriptor, what, CUDNN_TYPE_CHAR, count, &count, saved) !=
        0) {
        weft__free(ctx, saved);
        return NULL;
    }
    *bytes = (size_t)count;
    return saved;
}

bool weft__dnn_plan_load(const weft_dnn_card *card, const char *saved, size_t bytes, weft_dnn_plan *plan) {
    if (dnn_plan_make(card, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)bytes,
                      saved, plan) == 0)
        return true;
    weft__dnn_plan_free(plan);
    return false;
}

void weft__dnn_plan_free(weft_dnn_plan *plan) {
    if (plan->descriptor) weft__dnn.cudnnBackendDestroyDescriptor(plan->descriptor);
    plan->descriptor = NULL;
}

unsigned weft__dnn_execute(cudnnHandle_t handle, const weft_dnn_plan *plan, int count, const int64_t *ids,
                           void *const *values, void *workspace, char message[WEFT_DNN_MESSAGE]) {
    weft_dnn_graph g = {.error = 0};
    cudnnBackendDescriptor_t pack = weft__dnn_make(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    weft__dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    weft__dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, values);
    weft__dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    weft__dnn_finish(&g, pack);
    unsigned status = g.error;
    if (!status) {
        status = weft__dnn.cudnnBackendExecute(handle, plan->descriptor, pack);
        if (status) weft__dnn_message(status, "an execution", message);
    } else {
        memcpy(message, g.message, WEFT_DNN_MESSAGE);
    }
    weft__dnn_graph_free(&g);
    return status;
}
