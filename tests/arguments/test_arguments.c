/* Calls every public function with NULL, 0, -1 and extreme values for each parameter and for each field of
 * its options. No call may crash, hang or read invalid memory. A failing call must say why. If the cause is
 * NULL, the message must name the function and the parameter. make_calls.py generates the calls from the
 * headers during the build, so new functions are covered too. Before the calls with a NULL, the valid call
 * of the function is made and must succeed.
 *
 * The calls of a function run in a child process. If a call ends the child, a new child continues after
 * that call. test_arguments NAME makes the calls of functions whose names contain NAME, and test_arguments
 * NAME -v prints them. Must not know: what the functions do. Read next: make_calls.py, values.h. */
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
/* Too large requests return NULL, as without a sanitizer. Leaks in a child that a call ended are not
 * checked. */
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
    int cannot;                               /* the valid call fails on this machine */
    int destroys;                             /* frees one of its arguments */
} public_call;

/* Memory in which a child reports. */
static struct shared {
    int at; /* the current call */
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

/* Whether the message names the function. For weft_relu_at, weft_relu or relu will do; for weft_nn_conv2d
 * also conv2d, the kind of the module. */
static bool names_function(const char *text) {
    char name[128];
    snprintf(name, sizeof name, "%s", now->function);
    for (char *end; (end = strrchr(name, '_')); *end = '\0')
        if (holds_word(text, name) || holds_word(text, name + strlen("weft_")) ||
            (strncmp(name, "weft_nn_", 8) == 0 && name[8] && holds_word(text, name + 8)))
            return true;
    return false;
}

static bool names_argument(const char *text) {
    return holds_word(text, now->parameter) || holds_word(text, "operand");
}

/* Reports a valid call that fails, or a failure without a reason. */
static void check(int which, bool failed) {
    const char *text = weft_last_error(NULL);
    char null[128];
    if (!failed) return;
    if (which == 0 && !now->cannot) problem("the valid call fails: %s", text);
    if (strcmp(text, untouched) == 0) problem("fails without a message");
    if (now->cannot) return;
    snprintf(null, sizeof null, "%s = NULL", now->parameter);
    if (strcmp(now->parameter, "options") == 0)
        return; /* NULL means all defaults, and a default may be invalid here */
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

/* ---- use what the call made ---- */

static void use_loader(weft_loader *loader) {
    weft_batch batch;
    (void)!weft_loader_get(loader, 0, &batch);
    (void)!weft_loader_get(loader, UINT64_MAX, &batch);
}

static void use_program(weft_program *program) { (void)!weft_program_run(program); }

/* ---- the calls ---- */

#include "arguments/calls.inc"

enum { COUNT = (int)(sizeof calls / sizeof *calls) };

/* Makes the calls of one function from number `first` on, then ends the child by _exit with 0. */
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

/* Runs the calls in children. Returns how many calls ended their child. */
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
    const pid_t child = fork(); /* threads of the library must only exist in children */
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
