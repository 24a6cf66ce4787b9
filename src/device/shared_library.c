/* Opens libraries at run time, and finds their functions.
 * Must not know: what libraries do. Read next: shared_library.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "device/shared_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weft__program_folder(char path[WEFT_LIBRARY_PATH]) {
    const ssize_t n = readlink("/proc/self/exe", path, WEFT_LIBRARY_PATH - 1);
    path[n > 0 ? n : 0] = 0;
    char *end = strrchr(path, '/');
    if (end) *end = 0;
    return end != NULL;
}

/* Finds a function. Returns false if it is missing. */
static bool find(const weft_shared_library *l, void *handle, const weft_shared_symbol *s,
                 const char *hidden) {
    void *symbol = hidden && strcmp(hidden, s->name) == 0 ? NULL : dlsym(handle, s->name);
    memcpy((char *)l->table + s->at, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Finds all functions. Returns the name of the first wanted one that is missing, or NULL. */
static const char *resolve(const weft_shared_library *l, void *handle, const char *hidden) {
    for (int i = 0; i < l->n_wanted; i++)
        if (!find(l, handle, &l->wanted[i], hidden)) return l->wanted[i].name;
    for (int i = 0; i < l->n_optional; i++) find(l, handle, &l->optional[i], hidden);
    return NULL;
}

static void *open_file(weft_shared_library *l, const char *file) {
    snprintf(l->path, sizeof l->path, "%s", file);
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

static void *open_any(weft_shared_library *l, const char *file) {
    void *handle = NULL;
    if (file) return open_file(l, file);
    if (l->search) return l->search(l, l->path);
    for (int i = 0; i < l->n_files && !handle; i++) handle = open_file(l, l->files[i]);
    return handle;
}

/* Returns why the loader refuses a file that is there, as " (reason)", or "". */
static const char *refusal(const char *file, char text[200]) {
    const char *said = dlerror();
    text[0] = 0;
    if (!said || access(file, R_OK) != 0) return text;
    if (strncmp(said, file, strlen(file)) == 0 && said[strlen(file)] == ':') said += strlen(file) + 2;
    snprintf(text, 200, " (%.150s)", said);
    return text;
}

static void shared_library_look(weft_shared_library *l, const char *file, const char *hidden) {
    char why[200];
    const char *named = l->variable && !file ? secure_getenv(l->variable) : NULL;
    if (named && *named) file = named;
    void *handle = open_any(l, file);
    const char *missing = handle ? resolve(l, handle, hidden) : NULL;
    l->reason[0] = 0;
    if (!handle)
        snprintf(l->reason, sizeof l->reason, "%.150s cannot be opened%s: %s", file ? file : l->files[0],
                 file ? refusal(file, why) : "", l->absent);
    else if (missing)
        snprintf(l->reason, sizeof l->reason, "%.150s has no %s: %s", l->path, missing, l->old);
    else if (l->gone && dlsym(handle, l->gone))
        snprintf(l->reason, sizeof l->reason, "%.150s still has %s: %s", l->path, l->gone, l->old);
    else if (l->start)
        l->start(l);
}

const char *weft__shared_library_open(weft_shared_library *library, const char *file, const char *hidden) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!library->looked) shared_library_look(library, file, hidden);
    library->looked = true;
    pthread_mutex_unlock(&lock);
    return library->reason[0] ? library->reason : NULL;
}
