/* A library for LD_PRELOAD that makes allocation number FAULT_AT of a command fail. With FAULT_EVER all
 * later allocations fail too. Counting starts at main, which excludes the allocations of the dynamic
 * linker. If FAULT_LOG names a file, each allocation appends the hash of its call stack to it (8 bytes),
 * and the failing allocation appends its stack as text. To mark the start of main in a trace of system
 * calls, the library tries to access the path "/main-begins". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAMES = 48 };

/* glibc's own names of the functions that are replaced here. dlsym would allocate. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

typedef int main_function(int argc, char **argv, char **environment);

static atomic_bool counting;
static atomic_ulong calls;
static unsigned long fail_at;
static bool for_ever;
static int log_file = -1;
static main_function *real_main;
static _Thread_local bool inside;

static void note(bool failed) {
    void *frames[FRAMES];
    uint64_t hash = 14695981039346656037u;
    inside = true;
    int count = backtrace(frames, FRAMES);
    for (int i = 2; i < count; i++) hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    if (fail_at == 0)
        (void)!write(log_file, &hash, sizeof hash);
    else if (failed)
        backtrace_symbols_fd(frames, count, log_file);
    inside = false;
}

static bool fails(void) {
    if (!atomic_load(&counting) || inside) return false;
    unsigned long call = atomic_fetch_add(&calls, 1) + 1;
    bool failed = fail_at && (call == fail_at || (for_ever && call > fail_at));
    if (log_file >= 0 && (fail_at == 0 || call == fail_at)) note(failed);
    if (failed) errno = ENOMEM;
    return failed;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return size && fails() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *p = memalign(alignment, size);
    if (p) *out = p;
    return p ? 0 : ENOMEM;
}

static int counted_main(int argc, char **argv, char **environment) {
    const char *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
    void *frames[2];
    (void)backtrace(frames, 2); /* loads the unwinder, which allocates */
    if (log) log_file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    for_ever = getenv("FAULT_EVER") != NULL;
    (void)access("/main-begins", F_OK);
    atomic_store(&counting, true);
    return real_main(argc, argv, environment);
}

/* glibc's startup code, which calls main. */
int __libc_start_main(main_function *program, int argc, char **argv, main_function *init, void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end) {
    typedef int start(main_function *, int, char **, main_function *, void (*)(void), void (*)(void), void *);
    real_main = program;
    return ((start *)dlsym(RTLD_NEXT, "__libc_start_main"))(counted_main, argc, argv, init, fini, linker_fini,
                                                            stack_end);
}
