/* What work costs on a device: samples of it are timed, kept on disk, and what a profile holds is priced by
 * them. Read next: probe.c (one sample), rates.c (all that say what a device is like), price.c. */
#ifndef WEFT_COMPILER_PROFILE_PRICE_H
#define WEFT_COMPILER_PROFILE_PRICE_H

#include "compiler/profile/profile.h"

/* ---- probe.c ---- */

/* Nanoseconds of a clock; tests set another, which their devices move. */
extern double (*weft__price_clock)(void);

/* Whether the machine has other work, too much to keep what is measured; likewise. */
extern bool (*weft__price_busy)(void);

/* A device, or a device opened with so many threads, that is being tried out. */
typedef struct weft__probe {
    weft_context *ctx;
    weft_buffer *buffer; /* that all samples work in */
    int runs;            /* timed ones, of which the least counts, after one that is not timed */
    double enough_ns;    /* no further run after so long */
} weft__probe;

weft_status weft__probe_open(weft_context *ctx, size_t bytes, weft__probe *probe);
void weft__probe_close(weft__probe *probe);

/* Makes the buffer's numbers be of that dtype and about 1: products of zeros are faster on cards. */
weft_status weft__probe_fill(weft__probe *probe, weft_dtype dtype);
/* The time of a run of `copies` commands, one after the other, and of waiting for it: products of n x n
 * matrices, x = -x over n floats. `submits` of it are handed over before waiting. */
weft_status weft__probe_product(weft__probe *probe, weft_dtype dtype, int64_t n, int copies, double *ns);
weft_status weft__probe_move(weft__probe *probe, int64_t n, int copies, int submits, double *ns);
/* And of WEFT__PROBE_OPS calculations for each of n floats. */
enum { WEFT__PROBE_OPS = 7 };
weft_status weft__probe_calculation(weft__probe *probe, int64_t n, int copies, double *ns);

/* ---- rates.c ---- */

typedef struct weft__point {
    double size, ns;
} weft__point;

enum { WEFT__POINTS = 4 };

/* What a device is like. */
typedef struct weft__rates {
    double launch_ns; /* of the least command within a program */
    double submit_ns; /* of a program besides its commands */
    double wait_ns;   /* from the end of all work to a number on the host */
    double upload_ns; /* of the least upload */
    double upload_ns_a_byte, download_ns_a_byte;
    double calculation_ns;              /* of one in a kernel, beyond moving */
    weft__point products[WEFT__POINTS]; /* by operations, ascending; a command's whole time */
    weft__point moves[WEFT__POINTS];    /* by bytes read and written */
} weft__rates;

/* By which a figure is kept: a home folder may be shared by machines, and a machine may get another driver.
 */
weft_hash weft__rates_key(const char *what, const weft_device_description *device, int threads);
/* Measures the context's device, in about a tenth of a second once its kernels are compiled. */
weft_status weft__rates_measure(weft_context *ctx, weft__rates *rates);
/* Those of the device, from the disk where they were measured before. name: what it is called, "opencl:0" for
 * "opencl:gpu". */
weft_status weft__rates_of(const char *spec, int threads, char name[64], weft__rates *rates);

/* ---- price.c ---- */

/* Where a choice has rates from: weft__rates_of; tests make some up. */
extern weft_status (*weft__price_rates)(const char *spec, int threads, char name[64], weft__rates *rates);

/* Seconds that the profile's work takes on such a device. */
double weft__price(const weft_profile *profile, const weft__rates *rates);

#endif
