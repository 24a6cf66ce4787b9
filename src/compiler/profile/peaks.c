/* The peak rates of a device: large matmuls of each dtype, and moving much memory. The bound of a profile
 * compares with them. They are measured once and kept with the compiled kernels. Must not know: programs.
 * Read next: probe.c, profile_text.c. */
#include <string.h>

#include "compiler/profile/price.h"
#include "device/cache.h"

/* Samples grow until one takes so long. So a slow device, such as one for tests, is measured by smaller
 * samples. */
#define LONG_PRODUCT_NS 1e7
#define LONG_UPDATE_NS  2e7
#define ALIKE           0.8 /* two measurements */

enum { LEAST = 3, MOST = 8 }; /* measurements */

/* Measures operations per second of matmuls of the dtype. */
static weft_status products(weft_context *ctx, uint64_t dtype, double *reached) {
    double ns = 0;
    for (int64_t n = 64; n <= 4096 && ns < LONG_PRODUCT_NS; n *= 2) {
        weft__probe probe;
        weft_status status =
            weft__probe_open(ctx, 3 * (size_t)(n * n) * weft_dtype_size((weft_dtype)dtype), &probe);
        if (status == WEFT_OK) status = weft__probe_fill(&probe, (weft_dtype)dtype);
        if (status == WEFT_OK) status = weft__probe_matmul(&probe, (weft_dtype)dtype, n, 1, &ns);
        weft__probe_close(&probe);
        if (status == WEFT_ERR_OOM && *reached > 0) return WEFT_OK; /* as large as memory allows */
        WEFT_TRY(status);
        const double rate = 2.0 * (double)n * (double)n * (double)n / (ns + 1) * 1e9;
        if (rate > *reached) *reached = rate;
    }
    return WEFT_OK;
}

/* Measures bytes per second, read and written in place. Sizes that fit into a cache move faster, so the last
 * and largest size counts. */
static weft_status updates(weft_context *ctx, uint64_t wanted, double *reached) {
    const uint64_t least = UINT64_C(1) << 22;
    weft__probe probe;
    double ns = 0;
    weft_status status = weft__probe_open(ctx, (size_t)wanted, &probe);
    while (status == WEFT_ERR_OOM && wanted > least)
        status = weft__probe_open(ctx, (size_t)(wanted /= 2), &probe);
    for (uint64_t bytes = least; ns < LONG_UPDATE_NS && status == WEFT_OK;
         bytes = 4 * bytes < wanted ? 4 * bytes : wanted) {
        status = weft__probe_move(&probe, (int64_t)(bytes / sizeof(float)), 1, 1, &ns);
        if (status == WEFT_OK) *reached = 2.0 * (double)bytes / (ns + 1) * 1e9;
        if (bytes == wanted) break;
    }
    weft__probe_close(&probe);
    return status;
}

/* Measures several times and returns the highest rate, which a second measurement confirms: what else runs on
 * the machine for a moment can only make it slower. */
static weft_status steadily(weft_context *ctx, uint64_t of,
                            weft_status (*measure)(weft_context *ctx, uint64_t of, double *reached),
                            double *reached) {
    double second = 0;
    for (int i = 0; i < LEAST || (i < MOST && second < ALIKE * *reached); i++) {
        double now = 0;
        WEFT_TRY(measure(ctx, of, &now));
        second = now > *reached ? *reached : now > second ? now : second;
        if (now > *reached) *reached = now;
    }
    return WEFT_OK;
}

/* Reads a rate from disk, or measures it. Keeps a new measurement unless the machine is busy. */
static weft_status recall(weft_context *ctx, const char *what, uint64_t of,
                          weft_status (*measure)(weft_context *ctx, uint64_t of, double *reached),
                          double *reached) {
    weft_device_description d;
    void *bytes = NULL;
    size_t size = 0;
    weft_device_describe(ctx, &d);
    weft_hash key = weft__rates_key(what, &d, ctx->device->threads);
    weft__hash_u64(&key, of);
    weft__hash_u64(&key, ctx->device->tf32);
    if (weft__gpu_cache_load(NULL, key, &bytes, &size) && size == sizeof *reached)
        memcpy(reached, bytes, sizeof *reached);
    weft__free(NULL, bytes);
    if (*reached > 0) return WEFT_OK;
    WEFT_TRY(steadily(ctx, of, measure, reached));
    if (!weft__price_busy()) weft__gpu_cache_store(NULL, key, reached, sizeof *reached);
    return WEFT_OK;
}

/* As much memory as the context uses, rounded up to a power of two: from 64 MiB to 1 GiB. */
static uint64_t wanted_of(const weft_context *ctx) {
    uint64_t wanted = UINT64_C(1) << 26;
    while (wanted < ctx->device->bytes_in_use && wanted < UINT64_C(1) << 30) wanted *= 2;
    return wanted;
}

static weft_status peaks_measure(weft_profile *p) {
    if (!(p->peak_flops[WEFT_F32] > 0))
        WEFT_TRY(recall(p->ctx, "products", WEFT_F32, products, &p->peak_flops[WEFT_F32]));
    if (!(p->peak_bytes > 0)) WEFT_TRY(recall(p->ctx, "updates", wanted_of(p->ctx), updates, &p->peak_bytes));
    for (size_t i = 0; i < p->n_commands; i++) {
        const weft_dtype dtype = p->commands[i].dtype;
        if (weft_dtype_is_float(dtype) && !(p->peak_flops[dtype] > 0))
            WEFT_TRY(recall(p->ctx, "products", dtype, products, &p->peak_flops[dtype]));
    }
    return WEFT_OK;
}

/* Leaves the measurement out of the running profile: its time, and its transfers since `was`. */
static void leave_out(weft_profile *p, weft__traffic was, double spent) {
    const weft__traffic now = weft__profile_traffic(p);
    p->since_ns += spent;
    p->started_ns += spent;
    p->before.uploads += now.uploads - was.uploads;
    p->before.downloads += now.downloads - was.downloads;
    p->before.bytes_up += now.bytes_up - was.bytes_up;
    p->before.bytes_down += now.bytes_down - was.bytes_down;
    p->before.submissions += now.submissions - was.submissions;
}

weft_status weft_profile_peaks(weft_profile *profile, double *flops, double *bytes) {
    WEFT_NEED(NULL, profile);
    const weft__traffic was = weft__profile_traffic(profile);
    const double from = weft__profile_now();
    const weft_status status = peaks_measure(profile);
    if (profile->running) leave_out(profile, was, weft__profile_now() - from);
    if (flops) *flops = profile->peak_flops[WEFT_F32];
    if (bytes) *bytes = profile->peak_bytes;
    return status;
}

double weft__profile_bound(const weft_profile *p, const weft_profile_entry *e) {
    const double own = p->peak_flops[e->dtype], rate = own > 0 ? own : p->peak_flops[WEFT_F32];
    if (!(rate > 0 && p->peak_bytes > 0)) return 0;
    const double compute = e->flops / rate, move = e->bytes / p->peak_bytes;
    return compute > move ? compute : move;
}
