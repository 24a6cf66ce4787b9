/* Tuning: which of several variants of a heavy operation is the fastest on this device. All variants compute
 * the same bits. The tuner measures once for each class of shapes, within limits, and stores the answer on
 * disk beside the compiled kernels.
 * Must not know: OpenCL, CUDA. Read next: tune.c, gpu/heavy/matmul/matmul.c, which asks it. */
#ifndef WEFT_DEVICE_GPU_BACKEND_TUNE_H
#define WEFT_DEVICE_GPU_BACKEND_TUNE_H

#include "device/device.h"

enum { WEFT_TUNER_VARIANTS = 7, WEFT_TUNER_NAME = 32 };

typedef struct weft_tuner {
    weft_device *device;
    weft_hash identity; /* hash of device and driver */
    bool on;
    int forced;     /* the variant that all questions get, + 1; 0: measure */
    double seconds; /* spent on the program that is being built */
    struct weft_tuner_choice {
        weft_hash key;
        int variant;
    } * known;
    size_t n_known, known_capacity, choices_capacity;
} weft_tuner;

typedef struct weft_tuner_question {
    weft_hash key; /* of the class of shapes */
    const weft_heavy *heavy;
    int64_t bytes[3]; /* sizes of the operands */
    int usual, variants;
    char what[64], names[WEFT_TUNER_VARIANTS][WEFT_TUNER_NAME];
} weft_tuner_question;

/* Opens the tuner. `identity` names device and driver with their versions. WEFT_TUNE=on or off overrides
 * `usually`. */
void weft__tuner_open(weft_tuner *tuner, weft_device *device, const char *identity, bool usually);
void weft__tuner_close(weft_tuner *tuner);
/* Begins a program. It gets the whole time limit. */
void weft__tuner_begin(weft_tuner *tuner);
/* Finds an earlier answer: from the process whose choices were given to the device, or from disk. */
bool weft__tuner_kept(const weft_tuner *tuner, weft_hash key, void *kept, size_t bytes);
/* Records a choice in the device's list and in the log. weft__tuner_kept will find `answer`. */
void weft__tuner_note(weft_tuner *tuner, weft_tile_choice *choice, weft_hash key, const void *answer,
                      size_t bytes);
/* Returns the seconds of a monotonic clock. */
double weft__tuner_clock(void);
/* Returns whether so many multiplications are worth a choice. NULL is no tuner. */
bool weft__tuner_asks(const weft_tuner *tuner, double work);
/* Returns the variant to use. Never fails: after an error it is the default one. */
int weft__tuner_choose(weft_tuner *tuner, const weft_tuner_question *question);

#endif
