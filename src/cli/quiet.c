/* Hides what libraries print while they look for devices: Mesa complains about a desktop that is not there,
 * before the output of each command. Descriptor 2 belongs to the whole process, so the command does this, and
 * only during the search. Must not know: devices. Read next: device/quiet.h. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "device/quiet.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int searches, kept = -1; /* searches that are going on; the real descriptor 2 */
static struct sigaction before;

/* A driver ends the process. */
static void on_abort(int signal) {
    static const char words[] =
        "weft: a driver ended the process while Weft looked for devices; WEFT_DEBUG=1 "
        "shows what it printed\n";
    if (write(kept, words, sizeof words - 1) < 0) _exit(128 + signal);
    sigaction(SIGABRT, &before, NULL); /* abort() raises it once more */
}

static void hide(void) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_abort;
    fflush(stderr);
    kept = nowhere < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (kept >= 0) {
        sigaction(SIGABRT, &action, &before);
        dup2(nowhere, STDERR_FILENO);
    }
    if (nowhere >= 0) close(nowhere);
}

static void show(void) {
    if (kept < 0) return;
    dup2(kept, STDERR_FILENO);
    sigaction(SIGABRT, &before, NULL);
    close(kept);
    kept = -1;
}

/* Several threads may look for devices of several kinds at once. */
static void search(bool begins) {
    pthread_mutex_lock(&lock);
    if (begins && searches++ == 0) hide();
    if (!begins && --searches == 0) show();
    pthread_mutex_unlock(&lock);
}

void weft__quiet_searches(void) {
    const char *debug = getenv("WEFT_DEBUG");
    weft__device_search = debug && debug[0] ? NULL : search;
}
