/* Finds the libraries of CUDA. It searches, in this order: $WEFT_CUDA_PATH, the loader's folders, the folder
 * beside the program where `make cuda` puts them, virtual environments, the toolkit's folder, and Python's
 * packages. `pip install` brings NVIDIA's libraries to machines without a toolkit.
 * Must not know: what the libraries do. Read next: search.h, docs/devices.md. */
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
    const char *variable; /* an environment variable with the folder; NULL: the pattern is the whole path */
    const char *pattern;  /* appended to the folder */
} place;

/* A folder of Python packages. Each package has a folder of its own, or all share "cu13". */
#define PACKAGES(variable, folder)                                                                           \
    { variable, folder "/nvidia/*/lib" }

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

/* Opens the last file that matches the pattern and can be opened. By name this is the newest version. */
static void *open_pattern(const char *pattern, char path[WEFT_LIBRARY_PATH]) {
    glob_t found;
    void *library = NULL;
    if (glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = found.gl_pathc; i-- > 0 && !library;) {
        library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
        if (library) snprintf(path, WEFT_LIBRARY_PATH, "%s", found.gl_pathv[i]);
    }
    globfree(&found);
    return library;
}

static void *open_in(const char *folder, const char *pattern, const char *name,
                     char path[WEFT_LIBRARY_PATH]) {
    char whole[WEFT_LIBRARY_PATH];
    const int n = snprintf(whole, sizeof whole, "%s%s/%s", folder, pattern, name);
    return n > 0 && n < (int)sizeof whole ? open_pattern(whole, path) : NULL;
}

static void *open_places(const place *places, size_t n_places, const char *name,
                         char path[WEFT_LIBRARY_PATH]) {
    void *library = NULL;
    for (const place *p = places; p < places + n_places && !library; p++) {
        const char *folder = p->variable ? secure_getenv(p->variable) : "";
        if (folder && (!p->variable || *folder == '/')) library = open_in(folder, p->pattern, name, path);
    }
    return library;
}

/* Searches build/cuda, if the running program is build/weft or one of its tests. */
static void *open_beside(const char *name, char path[WEFT_LIBRARY_PATH]) {
    char program[WEFT_LIBRARY_PATH];
    return weft__program_folder(program) ? open_in(program, "/cuda/nvidia/*/lib", name, path) : NULL;
}

static bool oldest_first;

void weft__cuda_libraries_for(int driver) { oldest_first = driver < 13000; }

void *weft__cuda_search(const weft_shared_library *l, char path[WEFT_LIBRARY_PATH]) {
    const char *files[WEFT_CUDA_FILES];
    void *library = NULL;
    for (int i = 0; i < l->n_files; i++) files[i] = l->files[oldest_first ? l->n_files - 1 - i : i];
    for (int i = 0; i < l->n_files && !library; i++)
        library = open_places(named, sizeof named / sizeof *named, files[i], path);
    for (int i = 0; i < l->n_files && !library; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        if (library) snprintf(path, WEFT_LIBRARY_PATH, "%s", files[i]);
    }
    for (int i = 0; i < l->n_files && !library; i++) library = open_beside(files[i], path);
    for (int i = 0; i < l->n_files && !library; i++)
        library = open_places(others, sizeof others / sizeof *others, files[i], path);
    return library;
}
