/* Heavy operations of GPU backends: templates as launches (kernel/source.h), one file an operation. `takes`
 * tells whether the template runs it; only then is the other called. `sink`: the launches do nothing once a
 * fault is recorded. Must not know: OpenCL, CUDA. Read next: gpu.h. */
#ifndef WEFT_DEVICE_GPU_HEAVY_HEAVY_H
#define WEFT_DEVICE_GPU_HEAVY_HEAVY_H

#include "device/device.h"
#include "kernel/source.h"

bool weft__gpu_matmul_takes(const weft_target *target, const weft_heavy_matmul *matmul);
weft_status weft__gpu_matmul(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_conv_takes(const weft_target *target, const weft_heavy_conv *conv);
weft_status weft__gpu_conv(weft_launches *launches, const weft_heavy *heavy, bool sink);
/* conv_direct.c: of groups of so few channels that products would be mostly empty. */
bool weft__gpu_conv_is_direct(const weft_target *target, const weft_heavy_conv *conv);
weft_status weft__gpu_conv_direct(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_attention_takes(const weft_target *target, const weft_heavy_attention *attention);
weft_status weft__gpu_attention(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_scatter_takes(const weft_target *target, const weft_heavy_scatter *scatter);
weft_status weft__gpu_scatter(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_recurrent_takes(const weft_target *target, const weft_heavy_recurrent *recurrent);
weft_status weft__gpu_recurrent(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_update_takes(const weft_target *target, const weft_heavy_update *update);
weft_status weft__gpu_update(weft_launches *launches, const weft_heavy *heavy, bool sink);

/* order.c: groups for so many workers, each of which takes further work until all is done. */
int64_t weft__gpu_groups(const weft_target *target, int64_t workers);

weft_status weft__gpu_scan(weft_launches *launches, const weft_heavy *heavy, bool sink);

bool weft__gpu_source_takes(const weft_target *target, const weft_heavy_source *source);
weft_status weft__gpu_source(weft_launches *launches, const weft_heavy *heavy, bool sink);

weft_status weft__gpu_order(weft_launches *launches, const weft_heavy *heavy, bool sink);

#endif
