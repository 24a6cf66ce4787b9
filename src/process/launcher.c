/* Finds the MPI whose launcher started this process, and opens its engine. Must not know: transfers. Read
 * next: mpi/mpi.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/shared_library.h"
#include "process/group.h"

typedef struct engine {
    const char *name, *file; /* of $WEFT_MPI; of the library */
    const char *package;     /* of Debian, with which the library can be built */
} engine;
static const engine openmpi = {"openmpi", "libweft-openmpi.so", "libopenmpi-dev"},
                    mpich = {"mpich", "libweft-mpich.so", "libmpich-dev"};

/* The variables by which launchers tell a process that it has others beside it. */
static const struct {
    const char *variable;
    const engine *engine;
    bool counts; /* the value is the number of processes */
} marks[] = {
    {"OMPI_COMM_WORLD_SIZE", &openmpi, true}, /* mpirun of Open MPI */
    {"PMIX_RANK", &openmpi, false},           /* srun --mpi=pmix */
    {"PMI_SIZE", &mpich, true},               /* mpiexec of MPICH and Intel MPI */
    {"PMI_RANK", &mpich, false},              /* srun --mpi=pmi2 */
};

/* Returns the number of processes that a variable tells, 0 if it does not. */
static long processes_in(const char *value) { return value ? strtol(value, NULL, 10) : 0; }

/* Returns the engine that fits the launcher, or NULL if this process was started alone. */
static const engine *launched_by(void) {
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *value = getenv(marks[i].variable);
        if (value && !(marks[i].counts && processes_in(value) < 2)) return marks[i].engine;
    }
    return NULL;
}

/* Opens a file in the folder of the program, in ../lib of it, or where the system finds libraries. MPI loads
 * parts of itself, which look for the symbols of MPI among the global ones. */
static void *open_engine(const char *file, char path[WEFT_LIBRARY_PATH]) {
    static const char *const places[] = {"", "../lib/"};
    char folder[WEFT_LIBRARY_PATH];
    void *library = NULL;
    const bool known = !strchr(file, '/') && weft__program_folder(folder);
    for (size_t i = 0; known && !library && i < sizeof places / sizeof *places; i++) {
        const int length = snprintf(path, WEFT_LIBRARY_PATH, "%s/%s%s", folder, places[i], file);
        if (length < WEFT_LIBRARY_PATH) library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    if (library) return library;
    snprintf(path, WEFT_LIBRARY_PATH, "%s", file);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

bool weft__launcher_has(const char *name, const char **package) {
    const engine *e = strcmp(name, mpich.name) == 0 ? &mpich : &openmpi;
    char path[WEFT_LIBRARY_PATH];
    *package = e->package;
    return open_engine(e->file, path) != NULL;
}

static weft_status start_engine(const char *file, const char *package, weft_transport **transport) {
    char path[WEFT_LIBRARY_PATH], hint[160] = "";
    weft_transport_open_fn open = NULL;
    void *library = open_engine(file, path);
    if (!library && package)
        snprintf(hint, sizeof hint, ": build Weft where %s is installed, or set WEFT_MPI=off to train alone",
                 package);
    const char *why = library ? NULL : dlerror();
    if (!library)
        return weft__fail(NULL, WEFT_ERR_STATE,
                          "this process was started with others, but %s cannot be opened%s (%s)", file, hint,
                          why ? why : "no reason is known");
    void *symbol = dlsym(library, WEFT_TRANSPORT_OPEN);
    memcpy(&open, &symbol, sizeof open);
    const char *error = open ? open(transport) : "it is no engine of Weft";
    if (error) return weft__fail(NULL, WEFT_ERR_DEVICE, "%s: %s", path, error);
    if ((*transport)->version != WEFT_TRANSPORT_VERSION)
        return weft__fail(NULL, WEFT_ERR_STATE, "%s belongs to another version of Weft: build it again",
                          path);
    return WEFT_OK;
}

weft_status weft__launcher_open(weft_transport **transport) {
    const char *wanted = getenv("WEFT_MPI"), *tasks = getenv("SLURM_STEP_NUM_TASKS");
    const engine *found = launched_by();
    *transport = NULL;
    if (wanted && strcmp(wanted, "off") == 0) return WEFT_OK;
    if (wanted && wanted[0] && strcmp(wanted, openmpi.name) != 0 && strcmp(wanted, mpich.name) != 0)
        return start_engine(wanted, NULL, transport);
    if (wanted && wanted[0]) found = strcmp(wanted, mpich.name) == 0 ? &mpich : &openmpi;
    if (!found && processes_in(tasks) > 1)
        return weft__fail(
            NULL, WEFT_ERR_STATE,
            "srun started %s tasks without MPI, so that each would train alone: use srun --mpi=pmix "
            "(Open MPI) or --mpi=pmi2 (MPICH), or set WEFT_MPI=off if this is what you want",
            tasks);
    return found ? start_engine(found->file, found->package, transport) : WEFT_OK;
}
