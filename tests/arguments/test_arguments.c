/* Every public function with NULL, 0, -1 and the largest and smallest values in the place of each parameter
 * and in each field of its options: none may crash, hang or read what is not there. A failure says why, and
 * of NULL names function and parameter. The calls are made from the headers by make_calls.py when this is
 * built, so that a new function is called too. Where one is NULL in every place, its valid call comes first
 * and must succeed.
 *
 * The calls of a function run in a child process; one that ends in a call is replaced by one that goes on
 * behind it. test_arguments NAME makes the calls of functions whose names contain NAME, test_arguments NAME
 * -v prints them. Must not know: what the functions do. Read next: make_calls.py, values.h. */
#define _XOPEN_SOURCE   700 /* nftw */
#define _DEFAULT_SOURCE 1   /* MAP_ANONYMOUS */
#include <ctype.h>
#include <float.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments/values.h"
#include "base/base.h"

#ifdef WEFT_SANITIZED
enum { SECONDS = 60, WATCHED = 1 };
/* What is too large is NULL as elsewhere; what a call leaks in a child that ends is not looked for here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024:detect_leaks=0";
}
#else
enum { SECONDS = 10, WATCHED = 0 };
#endif

typedef struct public_call {
    void (*make)(int which);
    const char *function, *parameter, *value; /* "weft_exp", "x", "x = NULL" */
    int which;                                /* 0: all values are valid */
    int cannot;                               /* the valid call fails */
    int destroys;                             /* frees one of its arguments */
} public_call;

/* What a child tells. */
static struct shared {
    int at; /* the call under way */
    int problems;
} * shared;
static const public_call *now;
static const char untouched[] = "no error";

static void problem(const char *fmt, ...) WEFT_PRINTF(1, 2);
static void problem(const char *fmt, ...) {
    va_list args;
    printf("%s(%s): ", now->function, now->value);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    shared->problems++;
}

/* ---- what a call may do ---- */

static bool holds_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++) {
        const bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !(isalnum((unsigned char)at[n]) || at[n] == '_')) return true;
    }
    return false;
}

/* Does the message name the function: weft_relu_at, weft_relu or relu; of weft_conv2d_layer conv2d too? */
static bool names_function(const char *text) {
    char name[128];
    snprintf(name, sizeof name, "%s", now->function);
    for (char *end; (end = strrchr(name, '_')); *end = '\0')
        if (holds_word(text, name) || holds_word(text, name + strlen("weft_"))) return true;
    return false;
}

static bool names_argument(const char *text) {
    return holds_word(text, now->parameter) || holds_word(text, "operand");
}

/* A failure of a valid call, or one that does not say why. */
static void check(int which, bool failed) {
    const char *text = weft_last_error(NULL);
    char null[128];
    if (!failed) return;
    if (which == 0 && !now->cannot) problem("the valid call fails: %s", text);
    if (strcmp(text, untouched) == 0) problem("fails without a message");
    if (now->cannot) return;
    snprintf(null, sizeof null, "%s = NULL", now->parameter);
    if (strcmp(now->parameter, "options") == 0) return; /* they are all defaults, one of which may not do */
    if (strcmp(now->value, null) == 0 && !(names_function(text) && names_argument(text)))
        problem("the message does not name function and argument: %s", text);
}

static void check_status(int which, weft_status status) { check(which, status != WEFT_OK); }
static void check_pointer(int which, const void *p) { check(which, !p); }

static void check_tensor(int which, weft_tensor *t) {
    if (!t) {
        problem("returns NULL, not a poisoned tensor");
        return;
    }
    weft_status status = weft_tensor_status(t);
    check(which, status != WEFT_OK);
    if (status != WEFT_OK) return;
    status = weft_eval(&t, 1);
    if (which == 0 && status != WEFT_OK) problem("the result cannot be computed: %s", weft_last_error(NULL));
}

static void check_module(int which, weft_module *m) {
    if (!m) {
        problem("returns NULL, not a poisoned module");
        return;
    }
    weft_status status = weft_module_status(m);
    check(which, status != WEFT_OK);
    if (status != WEFT_OK || weft_parameter_count(m) == 0) return;
    weft_tensor *y = weft_forward(m, good_tensor());
    if (weft_tensor_status(y) == WEFT_OK) (void)!weft_eval(&y, 1);
}

static void check_optimizer(int which, weft_optimizer *opt) {
    if (!opt) {
        problem("returns NULL, not a poisoned optimizer");
        return;
    }
    check(which, weft_optimizer_status(opt) != WEFT_OK);
}

/* ---- what was made is used ---- */

static void use_loader(weft_loader *loader) {
    weft_batch batch;
    (void)!weft_loader_get(loader, 0, &batch);
    (void)!weft_loader_get(loader, UINT64_MAX, &batch);
}

static void use_program(weft_program *program) { (void)!weft_run(program); }

/* ---- the calls ---- */

#include "arguments/calls.inc"

enum { COUNT = (int)(sizeof calls / sizeof *calls) };

/* The calls of one function, from number `first` on; _exit with 0 after the last of them. */
static void make_calls(int first, int last, bool verbose) {
    const struct rlimit no_core = {0, 0}, space = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    setrlimit(RLIMIT_CORE, &no_core);
    if (!WATCHED) setrlimit(RLIMIT_AS, &space);
    for (int i = first; i < last; i++) {
        shared->at = i;
        now = &calls[i];
        alarm(SECONDS);
        if (verbose) printf("%s(%s)\n", now->function, now->value), fflush(stdout);
        weft__fail(NULL, WEFT_OK, "%s", untouched);
        now->make(now->which);
        if (verbose) printf("    %s\n", weft_last_error(NULL)), fflush(stdout);
        if (now->destroys)
            good_forget();
        else
            good_end();
    }
    _exit(0);
}

/* Runs them in children; how many calls ended one. */
static int run_function(int first, int last, bool verbose) {
    int crashes = 0;
    while (first < last) {
        int status;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) make_calls(first, last, verbose);
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        now = &calls[shared->at];
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            problem("takes more than %d seconds", (int)SECONDS);
        else if (WIFSIGNALED(status))
            problem("crashes: %s", strsignal(WTERMSIG(status)));
        else
            problem("ends the process with code %d", WEXITSTATUS(status));
        crashes++;
        first = shared->at + 1;
    }
    return crashes;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info, (void)type, (void)at;
    return remove(path);
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    const bool verbose = argc > 2;
    char home[] = "/tmp/weft-arguments-XXXXXX";
    int made = 0, crashes = 0, status;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(home) || chdir(home) != 0) return 1;
    const pid_t child = fork(); /* threads of the library stay in children */
    if (child == 0) {
        good_files();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    for (int i = 0, next; i < COUNT; i = next) {
        for (next = i + 1; next < COUNT && calls[next].make == calls[i].make;) next++;
        if (!strstr(calls[i].function, wanted)) continue;
        crashes += run_function(i, next, verbose);
        made += next - i;
    }
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d calls, %d of which end the process, %d problems\n", made, crashes, shared->problems);
    return shared->problems || made == 0 ? 1 : 0;
}
