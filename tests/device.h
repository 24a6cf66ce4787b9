/* The device that a test's contexts are opened on: the CPU, or the one named by $WEFT_TEST_DEVICE
 * (tests.cmake runs a list of tests so once more). A test whose device is absent ends as skipped. */
#ifndef WEFT_TESTS_DEVICE_H
#define WEFT_TESTS_DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { TEST_SKIPPED = 77 };

static inline const char *test_device(void) {
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named && *named ? named : "cpu";
}

static inline bool test_on_cpu(void) { return strcmp(test_device(), "cpu") == 0; }

/* weft_open on that device; options that name one keep it. */
static inline weft_status test_open(const weft_open_options *options, weft_context **ctx) {
    weft_open_options chosen = options ? *options : (weft_open_options){0};
    if (!chosen.device) chosen.device = test_device();
    weft_status status = weft_open(&chosen, ctx);
    if (status == WEFT_ERR_DEVICE && strcmp(chosen.device, test_device()) == 0 && !test_on_cpu()) {
        printf("skipped, no device %s: %s\n", chosen.device, weft_last_error(NULL));
        exit(TEST_SKIPPED);
    }
    return status;
}

#endif
