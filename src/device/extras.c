/* The functions that a device may leave out, with their defaults.
 * Must not know: any device. Read next: device.h. */
#include "device/device.h"
#include "device/quiet.h"

void (*weft__device_search)(bool begins);

static const weft_device_extras none;

static const weft_device_extras *extras_of(const weft_device_ops *kind) {
    return kind->extras ? kind->extras : &none;
}

uint64_t weft__device_memory_free(weft_device *device) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->memory_free ? e->memory_free(device) : 0;
}

int weft__device_threads_of(const weft_device *device, const weft_executable *executable) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->threads_of ? e->threads_of(executable) : 0;
}

int weft__device_launches_of(const weft_device *device, const weft_executable *executable) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->launches_of ? e->launches_of(executable) : 0;
}

bool weft__device_has_rows(const weft_device *device) { return extras_of(device->ops)->run_rows != NULL; }

bool weft__device_reads_rows(const weft_device *device, const weft_executable *executable) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->reads_rows && e->reads_rows(device, executable);
}

void weft__device_set_timing(weft_device *device, bool on) {
    const weft_device_extras *e = extras_of(device->ops);
    if (e->set_timing) e->set_timing(device, on);
}

const weft_timing *weft__device_timings(weft_device *device, const weft_executable *executable) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->timings ? e->timings(device, executable) : NULL;
}

weft_status weft__device_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                             weft_dtype dtype, size_t count, bool *done) {
    const weft_device_extras *e = extras_of(devices[0]->ops);
    *done = false;
    return e->sum ? e->sum(devices, buffers, n, dtype, count, done) : WEFT_OK;
}

const weft_link_functions *weft__device_links(const weft_device *device) {
    return extras_of(device->ops)->links;
}

weft_status weft__device_download_all(weft_device *device, const weft_piece *pieces, size_t n) {
    const weft_device_extras *e = extras_of(device->ops);
    if (e->download_all) return e->download_all(device, pieces, n);
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(
            device->ops->download(device, pieces[i].from, pieces[i].offset, pieces[i].to, pieces[i].bytes));
    return WEFT_OK;
}

bool weft__device_telemetry(const weft_device *device, weft_telemetry *telemetry) {
    const weft_device_extras *e = extras_of(device->ops);
    return e->telemetry && e->telemetry(device, telemetry);
}
