/* Tuning: which of several ways to run a heavy operation is the fastest on this device, where all of them
 * compute the same bits. Measured once for each class of shapes, within limits, and kept on disk beside
 * compiled kernels. Knows devices by their interface alone. Read next: tune.c, then matmul.c (who asks). */
#ifndef WEFT_DEVICE_GPU_BACKEND_TUNE_H
#define WEFT_DEVICE_GPU_BACKEND_TUNE_H

#include "device/device.h"

enum { WEFT_TUNER_WAYS = 7, WEFT_TUNER_NAME = 32 };

typedef struct weft_tuner {
    weft_device *device;
    weft_hash identity; /* of device and driver */
    bool on;
    int forced;     /* the way that all take, + 1; 0: what is chosen */
    double seconds; /* spent on the program that is being built */
    struct weft_tuner_choice {
        weft_hash key;
        int way;
    } * known;
    size_t n_known, known_capacity, choices_capacity;
} weft_tuner;

typedef struct weft_tuner_question {
    weft_hash key; /* of the class */
    const weft_heavy *heavy;
    int64_t bytes[3]; /* of its operands */
    int usual, ways;
    char what[64], names[WEFT_TUNER_WAYS][WEFT_TUNER_NAME];
} weft_tuner_question;

/* `identity`: device and driver, with their versions. WEFT_TUNE=on or off counts more than `usually`. */
void weft__tuner_open(weft_tuner *tuner, weft_device *device, const char *identity, bool usually);
void weft__tuner_close(weft_tuner *tuner);
/* A program begins, with all of its time. */
void weft__tuner_begin(weft_tuner *tuner);
/* What was chosen before: by the process whose choices were given to the device, or by any (on disk). */
bool weft__tuner_kept(const weft_tuner *tuner, weft_hash key, void *kept, size_t bytes);
/* For whoever asks the device what was chosen, with what weft__tuner_kept is to find; to the log as well. */
void weft__tuner_note(weft_tuner *tuner, weft_tile_choice *choice, weft_hash key, const void *answer,
                      size_t bytes);
/* Seconds, of a clock that nobody sets. */
double weft__tuner_clock(void);
/* Whether a choice matters: so many multiplications. NULL is no tuner. */
bool weft__tuner_asks(const weft_tuner *tuner, double work);
/* The way to take. Never fails: then it is the usual one. */
int weft__tuner_choose(weft_tuner *tuner, const weft_tuner_question *question);

#endif
