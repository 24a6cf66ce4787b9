/* Signal handlers. They set a flag that the loop checks, or end the process while there is nothing to save.
 * Must not know: the loop. Read next: loop.c. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "io/publish.h"
#include "train/run/signals.h"

enum { STOPS = 3, HEEDED = 5, PATIENCE_MS = 100 };
static const int heeded[HEEDED] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}; /* the first three are stops */

static struct sigaction before[HEEDED];
static volatile sig_atomic_t stop_signal, save_wanted, mode;
static const char *volatile last_words;

static bool takes_output(int fd, int patience) {
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    return poll(&output, 1, patience) != 0;
}

static _Noreturn void end_now(int signal) {
    weft__remove_temporaries();
    _exit(128 + signal);
}

static void leave(int signal) {
    const char *words = last_words;
    if (words && takes_output(STDERR_FILENO, 0) && write(STDERR_FILENO, words, strlen(words)) < 0)
        words = NULL;
    end_now(signal);
}

static void on_stop(int signal) {
    if (signal == SIGINT && stop_signal == SIGINT) end_now(signal);
    if (mode == WEFT__STOP_AT_ONCE) leave(signal);
    if (stop_signal == 0 || signal == SIGINT) stop_signal = signal;
}

static void on_save(int signal) {
    (void)signal;
    save_wanted = 1;
}

void weft__signals_install(const char *words) {
    struct sigaction action;
    stop_signal = save_wanted = 0;
    weft__signals_mode(WEFT__STOP_AT_ONCE, words);
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < HEEDED; i++) {
        /* A stop interrupts calls that wait. A request for a checkpoint interrupts nothing. */
        action.sa_flags = i < STOPS ? 0 : SA_RESTART;
        action.sa_handler = i < STOPS ? on_stop : heeded[i] == SIGUSR1 ? on_save : SIG_IGN;
        sigaction(heeded[i], NULL, &before[i]);
        const bool nohup = heeded[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
        if (!nohup) sigaction(heeded[i], &action, NULL);
    }
}

void weft__signals_restore(void) {
    for (int i = 0; i < HEEDED; i++) sigaction(heeded[i], &before[i], NULL);
}

void weft__signals_mode(weft__stop_mode now, const char *words) {
    if (words) last_words = words;
    mode = (sig_atomic_t)now;
}

/* Returns a pending stop signal, or 0. The OpenCL device blocks signals while a driver may have replaced the
 * handlers, so a stop can be pending there. */
static int pending_stop(void) {
    sigset_t pending;
    if (sigpending(&pending) != 0) return 0;
    for (int i = 0; i < STOPS; i++)
        if (sigismember(&pending, heeded[i]) == 1) return heeded[i];
    return 0;
}

int weft__signals_stop(void) { return stop_signal; }

bool weft__signals_interrupt(void *unused) {
    (void)unused;
    return mode != WEFT__STOP_UNDER_WAY && (stop_signal || pending_stop());
}

int weft__signals_save(void) {
    int wanted = save_wanted;
    save_wanted = 0;
    return wanted;
}

void weft__signals_drop_output(void) {
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (takes_output(fd, PATIENCE_MS)) continue;
        const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nothing >= 0) (void)dup2(nothing, fd);
        if (nothing >= 0) (void)close(nothing);
    }
}
