/* Appends the key of each kernel source that a test compiles to the file $WEFT_TEST_SOURCES, if it is set.
 * tools/count_sources.py counts the keys. Every test is linked with this file. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/gpu/backend/hooks.h"

static FILE *file;

static void note(uint64_t a, uint64_t b) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    fprintf(file, "%016" PRIx64 "%016" PRIx64 "\n", a, b);
    fflush(file); /* flush now: some tests end by a signal */
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WEFT_TEST_SOURCES");
    if (path && *path && (file = fopen(path, "w"))) weft__gpu_hook.met = note;
}
