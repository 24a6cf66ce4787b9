/* Finding libraries of CUDA: in $WEFT_CUDA_PATH; where the loader looks; in the toolkit's folder; and in
 * Python's packages, since `pip install` brings NVIDIA's libraries where no toolkit is. A folder that the
 * user names counts before all others, and a virtual environment before the system. Must not know: what the
 * libraries do. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "device/cuda/search.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    const char *variable; /* of the environment, with the folder; NULL: the pattern is the whole */
    const char *pattern;  /* behind it */
} place;

#define PACKAGES(variable, folder)                                                                           \
    {variable, folder "/nvidia/cu1[23]/lib"}, { variable, folder "/nvidia/cuda_nvrtc/lib" }

static const place named[] = {
    {"WEFT_CUDA_PATH", ""},
    {"WEFT_CUDA_PATH", "/lib64"},
    {"WEFT_CUDA_PATH", "/lib"},
    PACKAGES("WEFT_CUDA_PATH", ""),
};
static const place others[] = {
    PACKAGES("VIRTUAL_ENV", "/lib/python3*/site-packages"),
    {"CONDA_PREFIX", "/lib"},
    PACKAGES("CONDA_PREFIX", "/lib/python3*/site-packages"),
    {"CUDA_PATH", "/lib64"},
    {"CUDA_HOME", "/lib64"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-1[23]*/lib64"},
    PACKAGES("HOME", "/.local/lib/python3*/site-packages"),
    PACKAGES(NULL, "/usr/local/lib/python3*/[sd]i[ts][et]-packages"),
    PACKAGES(NULL, "/usr/lib/python3*/[sd]i[ts][et]-packages"),
};

/* The last of the pattern's files that opens: the newest version, as far as names tell. */
static void *open_pattern(const char *pattern, char path[WEFT_CUDA_PATH_SIZE]) {
    glob_t found;
    void *library = NULL;
    if (glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = found.gl_pathc; i-- > 0 && !library;) {
        library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
        if (library) snprintf(path, WEFT_CUDA_PATH_SIZE, "%s", found.gl_pathv[i]);
    }
    globfree(&found);
    return library;
}

static void *open_in(const place *p, const char *name, char path[WEFT_CUDA_PATH_SIZE]) {
    char pattern[WEFT_CUDA_PATH_SIZE];
    const char *folder = p->variable ? secure_getenv(p->variable) : "";
    if (!folder || (p->variable && *folder != '/')) return NULL;
    const int n = snprintf(pattern, sizeof pattern, "%s%s/%s", folder, p->pattern, name);
    return n > 0 && n < (int)sizeof pattern ? open_pattern(pattern, path) : NULL;
}

static void *open_places(const place *places, size_t n_places, const char *const *names, int count,
                         char path[WEFT_CUDA_PATH_SIZE]) {
    void *library = NULL;
    for (size_t p = 0; p < n_places; p++)
        for (int i = 0; i < count && !library; i++) library = open_in(&places[p], names[i], path);
    return library;
}

void *weft__cuda_search(const char *const *names, int count, char path[WEFT_CUDA_PATH_SIZE]) {
    void *library = open_places(named, sizeof named / sizeof *named, names, count, path);
    for (int i = 0; i < count && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) snprintf(path, WEFT_CUDA_PATH_SIZE, "%s", names[i]);
    }
    return library ? library : open_places(others, sizeof others / sizeof *others, names, count, path);
}
