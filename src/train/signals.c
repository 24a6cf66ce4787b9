/* Handlers do nothing but store: all work is done by the loop, between two steps.
 * Must not know: the loop. Read next: loop.c. */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "train/signals.h"

static volatile sig_atomic_t stop_signal, save_wanted;

static void on_stop(int signal) {
    if (signal == SIGINT && stop_signal == SIGINT) _exit(128 + SIGINT);
    if (stop_signal == 0 || signal == SIGINT) stop_signal = signal;
}

static void on_save(int signal) {
    (void)signal;
    save_wanted = 1;
}

void weft__signals_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction was;
    bool nohup = sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
    if (!nohup) sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_save;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

int weft__signals_stop(void) { return stop_signal; }

int weft__signals_save(void) {
    int wanted = save_wanted;
    save_wanted = 0;
    return wanted;
}
