/* weft launch: starts a command in several processes of this machine, by mpirun. Must not know: what the
 * command does, and how processes exchange data. Read next: process/launcher.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/text.h"
#include "base/threads.h"
#include "cli/cli.h"
#include "process/group.h"

enum { PATH_BYTES = 1024, PROCESSES_MOST = 4096 };

/* Programs that start processes. engine NULL: the program's version tells. */
static const struct {
    const char *program, *engine;
} starters[] = {
    {"mpirun.openmpi", "openmpi"}, {"mpirun.mpich", "mpich"}, {"mpirun", NULL}, {"mpiexec", NULL}};

/* Finds a program in $PATH. */
static bool find_program(const char *name, char path[PATH_BYTES]) {
    const char *at = getenv("PATH");
    while (at && *at) {
        const size_t size = strcspn(at, ":");
        const int length = snprintf(path, PATH_BYTES, "%.*s/%s", (int)size, at, name);
        if (length < PATH_BYTES && access(path, X_OK) == 0) return true;
        at += size + (at[size] == ':');
    }
    return false;
}

/* Asks a program for its version, and returns the engine that fits. */
static const char *engine_of(const char *path) {
    char command[WEFT__SHELL_WORD(PATH_BYTES) + 32], word[WEFT__SHELL_WORD(PATH_BYTES)], text[512];
    snprintf(command, sizeof command, "%s --version 2>&1", weft__shell_word(path, word, sizeof word));
    FILE *answer = popen(command, "r");
    const size_t size = answer ? fread(text, 1, sizeof text - 1, answer) : 0;
    text[size] = 0;
    if (answer) pclose(answer);
    return strstr(text, "Open MPI") || strstr(text, "OpenRTE") ? "openmpi" : "mpich";
}

/* Chooses a program whose engine Weft has. $WEFT_MPI may name the engine. Returns NULL if there is none, and
 * then complains. */
static const char *choose_starter(char path[PATH_BYTES]) {
    const char *wanted = getenv("WEFT_MPI"), *package = NULL, *lacks = NULL;
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        if (!find_program(starters[i].program, path)) continue;
        const char *engine = starters[i].engine ? starters[i].engine : engine_of(path);
        if (wanted && wanted[0] && strcmp(wanted, engine) != 0) continue;
        if (weft__launcher_has(engine, &package)) return engine;
        lacks = package;
    }
    if (lacks)
        weft__complain("launch: there is an mpirun, but Weft was built without its MPI: install %s, and "
                       "build Weft again",
                       lacks);
    else
        weft__complain(
            "launch: there is no mpirun%s%s: install Open MPI (packages libopenmpi-dev and openmpi-bin) or "
            "MPICH (libmpich-dev and mpich), and build Weft again",
            wanted && wanted[0] ? " of " : "", wanted && wanted[0] ? wanted : "");
    return NULL;
}

/* ---- the launcher runs as a child: it ends with 1, whatever signal stopped it ---- */

static const int passed_on[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}; /* the first three are stops */
enum { STOPS = 3, PASSED_ON = sizeof passed_on / sizeof *passed_on };
static pid_t child;
static volatile sig_atomic_t stop;

/* A signal of the terminal has reached the child, too. A second one would end it before it has saved. */
static void pass_on(int signal, siginfo_t *from, void *context) {
    (void)context;
    for (int i = 0; i < STOPS; i++)
        if (signal == passed_on[i]) stop = signal;
    if (from->si_code <= 0) kill(child, signal);
}

static void heed_signals(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (int i = 0; i < PASSED_ON; i++)
        if (sigaction(passed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(passed_on[i], &action, NULL);
}

static int run_program(const char *path, char *const *argv) {
    sigset_t all, before;
    int status = 0;
    fflush(stdout);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t self = getpid();
    child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* if this command is killed */
        if (getppid() != self) _exit(WEFT__EXIT_FAILED);
#endif
        execv(path, argv);
    }
    if (child <= 0) {
        weft__complain("launch: %s cannot be started: %s", path, strerror(errno));
        if (child == 0) _exit(WEFT__EXIT_FAILED);
        return WEFT__EXIT_FAILED;
    }
    heed_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return WEFT__EXIT_FAILED;
    if (stop) return 128 + stop; /* MPICH ends with 0 if its processes ended by themselves */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Makes the command line of the program, and runs it. */
static int start(const char *path, const char *engine, int64_t n, const weft__repeated *arguments) {
    const char *argv[WEFT__REPEATED_MAX + 16];
    char count[24], self[PATH_BYTES];
    size_t argc = 0;
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    snprintf(count, sizeof count, "%lld", (long long)n);
    argv[argc++] = path;
    argv[argc++] = "-n";
    argv[argc++] = count;
    if (strcmp(engine, "openmpi") == 0) {
        argv[argc++] = "--bind-to"; /* Weft divides the processors itself */
        argv[argc++] = "none";
        if (n > weft__processors()) argv[argc++] = "--oversubscribe";
        if (geteuid() == 0) argv[argc++] = "--allow-run-as-root"; /* as in containers */
    }
    argv[argc++] = size > 0 ? self : weft__program;
    for (size_t i = 0; i < arguments->count; i++) argv[argc++] = arguments->values[i];
    argv[argc] = NULL;
    return run_program(path, (char *const *)(uintptr_t)argv);
}

int weft__command_launch(const weft__command *command, int argc, char **argv) {
    weft__repeated arguments = {0};
    int64_t n = 0;
    int code = 0;
    char path[PATH_BYTES];
    const weft__option options[] = {
        {"-n N", WEFT__OPTION_INT, &n, "the number of processes"},
        {"COMMAND ...", WEFT__OPTION_ARGS, &arguments, "a command of weft and its arguments, after --"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    const char *first = arguments.values[0];
    if (strcmp(first, "train") != 0 && strcmp(first, "resume") != 0 && strcmp(first, "profile") != 0) {
        weft__complain(
            "launch: several processes share the work of 'train', 'resume' and 'profile', not of '%s'",
            first);
        return WEFT__EXIT_USAGE;
    }
    if (n < 1 || n > PROCESSES_MOST) {
        weft__complain("launch: -n is %lld: give the number of processes, from 1 to %d", (long long)n,
                       PROCESSES_MOST);
        return WEFT__EXIT_USAGE;
    }
    const char *engine = choose_starter(path);
    return engine ? start(path, engine, n, &arguments) : WEFT__EXIT_FAILED;
}
