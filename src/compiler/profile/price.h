/* Prices: how long the work of a profile would take on another device. Samples of work are timed on a device,
 * and the results are kept on disk. Must not know: how a profile is collected. Read next: probe.c (times one
 * sample), rates.c (all samples of a device), price.c. */
#ifndef WEFT_COMPILER_PROFILE_PRICE_H
#define WEFT_COMPILER_PROFILE_PRICE_H

#include "compiler/profile/profile.h"

/* ---- probe.c ---- */

/* The clock, in nanoseconds. Tests set another one, which their devices advance. */
extern double (*weft__price_clock)(void);

/* Is the machine too busy to keep measurements? Tests set this as well. */
extern bool (*weft__price_busy)(void);

/* A device that is being measured. A device with another number of threads counts as another device. */
typedef struct weft__probe {
    weft_context *ctx;
    weft_buffer *buffer; /* all samples work in it */
    int runs;            /* timed runs, of which the fastest counts; one untimed run comes first */
    double enough_ns;    /* starts no further run after so long */
} weft__probe;

weft_status weft__probe_open(weft_context *ctx, size_t bytes, weft__probe *probe);
void weft__probe_close(weft__probe *probe);

/* Fills the buffer with random numbers of the dtype, of magnitude about 1. GPUs multiply zeros faster. */
weft_status weft__probe_fill(weft__probe *probe, weft_dtype dtype);
/* Times one run of `copies` commands in sequence, and waiting for it. _product: matmuls of n x n matrices.
 * _move: x = -x over n floats; the program is submitted `submits` times before waiting. */
weft_status weft__probe_matmul(weft__probe *probe, weft_dtype dtype, int64_t n, int copies, double *ns);
weft_status weft__probe_move(weft__probe *probe, int64_t n, int copies, int submits, double *ns);
/* The same for WEFT__PROBE_OPS operations on each of n floats. */
enum { WEFT__PROBE_OPS = 7 };
weft_status weft__probe_calculation(weft__probe *probe, int64_t n, int copies, double *ns);

/* ---- rates.c ---- */

typedef struct weft__point {
    double size, ns;
} weft__point;

enum { WEFT__POINTS = 4 };

/* The rates of a device. */
typedef struct weft__rates {
    double launch_ns; /* the smallest command of a program */
    double submit_ns; /* a program, besides its commands */
    double wait_ns;   /* from the end of all work until a number is on the host */
    double upload_ns; /* the smallest upload */
    double upload_ns_a_byte, download_ns_a_byte;
    double calculation_ns;              /* one operation of a kernel, besides moving the data */
    weft__point products[WEFT__POINTS]; /* by number of operations, ascending; the whole time of a command */
    weft__point moves[WEFT__POINTS];    /* by bytes read and written */
} weft__rates;

/* The key under which a measurement is kept. It includes the machine and the driver: machines may share a
 * home folder, and a machine may get another driver. */
weft_hash weft__rates_key(const char *what, const weft_device_description *device, int threads);
/* Measures the context's device. Takes about a tenth of a second after its kernels are compiled. */
weft_status weft__rates_measure(weft_context *ctx, weft__rates *rates);
/* Returns the rates of a device, from disk if they were measured before. `name` becomes the device's own
 * name, such as "opencl:0" for "opencl:gpu". */
weft_status weft__rates_of(const char *spec, int threads, char name[64], weft__rates *rates);

/* ---- price.c ---- */

/* Where a choice gets its rates: weft__rates_of. Tests set their own function. */
extern weft_status (*weft__price_rates)(const char *spec, int threads, char name[64], weft__rates *rates);

/* Seconds that the profile's work takes on a device with these rates. */
double weft__price(const weft_profile *profile, const weft__rates *rates);

#endif
