/* A library that is opened at run time, so that the same program also runs on a machine without it.
 * Must not know: what libraries do. Read next: shared_library.c, opencl/library.c. */
#ifndef WEFT_DEVICE_SHARED_LIBRARY_H
#define WEFT_DEVICE_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_LIBRARY_PATH = 1024 };

typedef struct weft_shared_symbol {
    const char *name;
    size_t at; /* offset of its pointer in the table */
} weft_shared_symbol;

typedef struct weft_shared_library weft_shared_library;
struct weft_shared_library {
    const char *const *files; /* names, the best first */
    int n_files;
    const char *variable; /* of the environment, which may name another file; NULL: there is none */
    const weft_shared_symbol *wanted; /* all functions that Weft calls */
    int n_wanted;
    const weft_shared_symbol *optional; /* functions that some versions lack; their pointers are then NULL */
    int n_optional;
    void *table;      /* receives the pointers of all functions */
    const char *gone; /* a function that only versions have which do not fit; NULL: there is none */
    /* What helps if no file can be opened, and if the version does not fit. */
    const char *absent, *old;
    /* Searches for the files, opens one and writes its name to `path`. Returns NULL if there is none. NULL:
     * the files are opened by name. */
    void *(*search)(const weft_shared_library *library, char path[WEFT_LIBRARY_PATH]);
    /* Starts the library once it is open. If this fails, writes why to library->reason. NULL: nothing to
     * do. */
    void (*start)(weft_shared_library *library);
    bool looked;                  /* set it to false to look again */
    char path[WEFT_LIBRARY_PATH]; /* the file that was opened */
    char reason[500];             /* why none is open, and what helps */
};

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. For
 * tests: `file` replaces the search and the variable, and the function `hidden` is reported as missing. Both
 * may be NULL. */
const char *weft__shared_library_open(weft_shared_library *library, const char *file, const char *hidden);

/* Writes the folder of the running program. `make cuda` and `make webgpu` put libraries below it. Returns
 * false if the system does not tell. */
bool weft__program_folder(char path[WEFT_LIBRARY_PATH]);

#endif
