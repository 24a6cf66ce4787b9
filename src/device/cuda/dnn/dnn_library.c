/* Opens cuDNN, and knows which versions are used.
 * Must not know: what it computes. Read next: cuda/search.c, dnn_graph.c. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/dnn/dnn.h"
#include "device/cuda/search.h"

#define PACKAGE "nvidia-cudnn-cu13"

weft__dnn_functions weft__dnn;
const char *weft__dnn_file;

static const char *const files[] = {"libcudnn.so.9"};

static const weft_shared_symbol wanted[] = {
#define DNN_FUNCTION(result, name, arguments) {#name, offsetof(weft__dnn_functions, name)},
#include "device/cuda/dnn/dnn.def"
#undef DNN_FUNCTION
};

static weft_shared_library library = WEFT_CUDA_LIBRARY("cuDNN", PACKAGE, files, wanted, weft__dnn);

/* Refuses versions with known errors. Before 9.10 a mask cannot be -inf. Before 9.6 the accumulator of dq is
 * not cleared. The first two releases of 9.10 give wrong gradients. */
void weft__dnn_judge(int version, char why[240]) {
    const int major = version / 10000, minor = version / 100 % 100, patch = version % 100;
    why[0] = 0;
    if (version == 91000 || version == 91001)
        snprintf(why, 240, "cuDNN %d.%d.%d computes wrong gradients of attention: install 9.10.2 or later",
                 major, minor, patch);
    else if (version < 91002)
        snprintf(why, 240, "cuDNN %d.%d.%d is too old: install 9.10.2 or later (pip install %s)", major,
                 minor, patch, PACKAGE);
}

const char *weft__dnn_open(void) {
    static char why[240];
    const char *reason = weft__shared_library_open(&library, weft__dnn_file, NULL);
    if (reason) return reason;
    weft__dnn_judge(weft__dnn_version(), why);
    return why[0] ? why : NULL;
}

int weft__dnn_version(void) { return (int)weft__dnn.cudnnGetVersion(); }

void weft__dnn_describe(char text[96]) {
    const char *reason = weft__dnn_open();
    const int v = reason && library.reason[0] ? 0 : weft__dnn_version();
    if (!reason)
        snprintf(text, 96, "cuDNN %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    else if (v)
        snprintf(text, 96, "cuDNN %d.%d.%d not used (attention on own kernels: pip install -U %s)", v / 10000,
                 v / 100 % 100, v % 100, PACKAGE);
    else
        snprintf(text, 96, "no cuDNN (attention on own kernels: pip install %s)", PACKAGE);
}

void weft__dnn_message(unsigned status, const char *what, char message[WEFT_DNN_MESSAGE]) {
    char said[200] = "";
    weft__dnn.cudnnGetLastErrorString(said, sizeof said);
    said[sizeof said - 1] = 0;
    said[strcspn(said, "\n")] = 0;
    snprintf(message, WEFT_DNN_MESSAGE, "%.60s: %.50s%s%s", what, weft__dnn.cudnnGetErrorString(status),
             said[0] ? ": " : "", said);
}

void weft__dnn_forget(void) { library.looked = false; }
