/* src/device/webgpu: compares the declarations with webgpu.h and wgpu.h, which `make webgpu` fetches, and
 * opens the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<wgpu.h>)
#include <wgpu.h>
#endif

#include "device/webgpu/api.h"
#include "device/shared_library.h"
#include "device/webgpu/hooks.h"

#if __has_include(<wgpu.h>)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs " has another size")
#define FIELD(ours, theirs, field)                                                                           \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, field) &&                                       \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->field),                           \
                   #theirs "." #field " is elsewhere")
SIZE(webgpu_string_view, WGPUStringView);
SIZE(webgpu_chained_struct, WGPUChainedStruct);
SIZE(webgpu_future, WGPUFuture);
SIZE(webgpu_future_wait_info, WGPUFutureWaitInfo);
SIZE(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo);
SIZE(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo);
SIZE(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo);
SIZE(webgpu_uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo);
SIZE(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo);
SIZE(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo);
SIZE(webgpu_instance_descriptor, WGPUInstanceDescriptor);
SIZE(webgpu_instance_extras, WGPUInstanceExtras);
SIZE(webgpu_enumerate_options, WGPUInstanceEnumerateAdapterOptions);
SIZE(webgpu_request_adapter_options, WGPURequestAdapterOptions);
SIZE(webgpu_adapter_info, WGPUAdapterInfo);
SIZE(webgpu_limits, WGPULimits);
SIZE(webgpu_queue_descriptor, WGPUQueueDescriptor);
SIZE(webgpu_device_descriptor, WGPUDeviceDescriptor);
SIZE(webgpu_buffer_descriptor, WGPUBufferDescriptor);
SIZE(webgpu_buffer_binding_layout, WGPUBufferBindingLayout);
SIZE(webgpu_sampler_binding_layout, WGPUSamplerBindingLayout);
SIZE(webgpu_texture_binding_layout, WGPUTextureBindingLayout);
SIZE(webgpu_storage_texture_binding_layout, WGPUStorageTextureBindingLayout);
SIZE(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry);
SIZE(webgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor);
SIZE(webgpu_bind_group_entry, WGPUBindGroupEntry);
SIZE(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor);
SIZE(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor);
SIZE(webgpu_shader_source_wgsl, WGPUShaderSourceWGSL);
SIZE(webgpu_shader_module_descriptor, WGPUShaderModuleDescriptor);
SIZE(webgpu_compute_state, WGPUComputeState);
SIZE(webgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor);
SIZE(webgpu_query_set_descriptor, WGPUQuerySetDescriptor);
SIZE(webgpu_pass_timestamp_writes, WGPUPassTimestampWrites);
SIZE(webgpu_compute_pass_descriptor, WGPUComputePassDescriptor);
SIZE(webgpu_command_encoder_descriptor, WGPUCommandEncoderDescriptor);
SIZE(webgpu_command_buffer_descriptor, WGPUCommandBufferDescriptor);
FIELD(webgpu_string_view, WGPUStringView, data);
FIELD(webgpu_string_view, WGPUStringView, length);
FIELD(webgpu_chained_struct, WGPUChainedStruct, next);
FIELD(webgpu_chained_struct, WGPUChainedStruct, sType);
FIELD(webgpu_future, WGPUFuture, id);
FIELD(webgpu_future_wait_info, WGPUFutureWaitInfo, future);
FIELD(webgpu_future_wait_info, WGPUFutureWaitInfo, completed);
FIELD(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo, nextInChain);
FIELD(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo, mode);
FIELD(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo, callback);
FIELD(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo, userdata1);
FIELD(webgpu_request_adapter_callback_info, WGPURequestAdapterCallbackInfo, userdata2);
FIELD(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo, nextInChain);
FIELD(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo, mode);
FIELD(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo, callback);
FIELD(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo, userdata1);
FIELD(webgpu_request_device_callback_info, WGPURequestDeviceCallbackInfo, userdata2);
FIELD(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo, nextInChain);
FIELD(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo, mode);
FIELD(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo, callback);
FIELD(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo, userdata1);
FIELD(webgpu_device_lost_callback_info, WGPUDeviceLostCallbackInfo, userdata2);
FIELD(webgpu_uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo, nextInChain);
FIELD(webgpu_uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo, callback);
FIELD(webgpu_uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo, userdata1);
FIELD(webgpu_uncaptured_error_callback_info, WGPUUncapturedErrorCallbackInfo, userdata2);
FIELD(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo, nextInChain);
FIELD(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo, mode);
FIELD(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo, callback);
FIELD(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo, userdata1);
FIELD(webgpu_buffer_map_callback_info, WGPUBufferMapCallbackInfo, userdata2);
FIELD(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, nextInChain);
FIELD(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, mode);
FIELD(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, callback);
FIELD(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, userdata1);
FIELD(webgpu_queue_work_done_callback_info, WGPUQueueWorkDoneCallbackInfo, userdata2);
FIELD(webgpu_instance_descriptor, WGPUInstanceDescriptor, nextInChain);
FIELD(webgpu_instance_descriptor, WGPUInstanceDescriptor, requiredFeatureCount);
FIELD(webgpu_instance_descriptor, WGPUInstanceDescriptor, requiredFeatures);
FIELD(webgpu_instance_descriptor, WGPUInstanceDescriptor, requiredLimits);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, chain);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, backends);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, flags);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, dx12ShaderCompiler);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, gles3MinorVersion);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, glFenceBehaviour);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, dxcPath);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, dxcMaxShaderModel);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, dx12PresentationSystem);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, budgetForDeviceCreation);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, budgetForDeviceLoss);
FIELD(webgpu_instance_extras, WGPUInstanceExtras, displayHandle);
FIELD(webgpu_enumerate_options, WGPUInstanceEnumerateAdapterOptions, nextInChain);
FIELD(webgpu_enumerate_options, WGPUInstanceEnumerateAdapterOptions, backends);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, nextInChain);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, featureLevel);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, powerPreference);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, forceFallbackAdapter);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, backendType);
FIELD(webgpu_request_adapter_options, WGPURequestAdapterOptions, compatibleSurface);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, nextInChain);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, vendor);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, architecture);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, device);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, description);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, backendType);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, adapterType);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, vendorID);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, deviceID);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, subgroupMinSize);
FIELD(webgpu_adapter_info, WGPUAdapterInfo, subgroupMaxSize);
FIELD(webgpu_limits, WGPULimits, nextInChain);
FIELD(webgpu_limits, WGPULimits, maxTextureDimension1D);
FIELD(webgpu_limits, WGPULimits, maxTextureDimension2D);
FIELD(webgpu_limits, WGPULimits, maxTextureDimension3D);
FIELD(webgpu_limits, WGPULimits, maxTextureArrayLayers);
FIELD(webgpu_limits, WGPULimits, maxBindGroups);
FIELD(webgpu_limits, WGPULimits, maxBindGroupsPlusVertexBuffers);
FIELD(webgpu_limits, WGPULimits, maxBindingsPerBindGroup);
FIELD(webgpu_limits, WGPULimits, maxDynamicUniformBuffersPerPipelineLayout);
FIELD(webgpu_limits, WGPULimits, maxDynamicStorageBuffersPerPipelineLayout);
FIELD(webgpu_limits, WGPULimits, maxSampledTexturesPerShaderStage);
FIELD(webgpu_limits, WGPULimits, maxSamplersPerShaderStage);
FIELD(webgpu_limits, WGPULimits, maxStorageBuffersPerShaderStage);
FIELD(webgpu_limits, WGPULimits, maxStorageTexturesPerShaderStage);
FIELD(webgpu_limits, WGPULimits, maxUniformBuffersPerShaderStage);
FIELD(webgpu_limits, WGPULimits, maxUniformBufferBindingSize);
FIELD(webgpu_limits, WGPULimits, maxStorageBufferBindingSize);
FIELD(webgpu_limits, WGPULimits, minUniformBufferOffsetAlignment);
FIELD(webgpu_limits, WGPULimits, minStorageBufferOffsetAlignment);
FIELD(webgpu_limits, WGPULimits, maxVertexBuffers);
FIELD(webgpu_limits, WGPULimits, maxBufferSize);
FIELD(webgpu_limits, WGPULimits, maxVertexAttributes);
FIELD(webgpu_limits, WGPULimits, maxVertexBufferArrayStride);
FIELD(webgpu_limits, WGPULimits, maxInterStageShaderVariables);
FIELD(webgpu_limits, WGPULimits, maxColorAttachments);
FIELD(webgpu_limits, WGPULimits, maxColorAttachmentBytesPerSample);
FIELD(webgpu_limits, WGPULimits, maxComputeWorkgroupStorageSize);
FIELD(webgpu_limits, WGPULimits, maxComputeInvocationsPerWorkgroup);
FIELD(webgpu_limits, WGPULimits, maxComputeWorkgroupSizeX);
FIELD(webgpu_limits, WGPULimits, maxComputeWorkgroupSizeY);
FIELD(webgpu_limits, WGPULimits, maxComputeWorkgroupSizeZ);
FIELD(webgpu_limits, WGPULimits, maxComputeWorkgroupsPerDimension);
FIELD(webgpu_limits, WGPULimits, maxImmediateSize);
FIELD(webgpu_queue_descriptor, WGPUQueueDescriptor, nextInChain);
FIELD(webgpu_queue_descriptor, WGPUQueueDescriptor, label);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, nextInChain);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, label);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, requiredFeatureCount);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, requiredFeatures);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, requiredLimits);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, defaultQueue);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, deviceLostCallbackInfo);
FIELD(webgpu_device_descriptor, WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);
FIELD(webgpu_buffer_descriptor, WGPUBufferDescriptor, nextInChain);
FIELD(webgpu_buffer_descriptor, WGPUBufferDescriptor, label);
FIELD(webgpu_buffer_descriptor, WGPUBufferDescriptor, usage);
FIELD(webgpu_buffer_descriptor, WGPUBufferDescriptor, size);
FIELD(webgpu_buffer_descriptor, WGPUBufferDescriptor, mappedAtCreation);
FIELD(webgpu_buffer_binding_layout, WGPUBufferBindingLayout, nextInChain);
FIELD(webgpu_buffer_binding_layout, WGPUBufferBindingLayout, type);
FIELD(webgpu_buffer_binding_layout, WGPUBufferBindingLayout, hasDynamicOffset);
FIELD(webgpu_buffer_binding_layout, WGPUBufferBindingLayout, minBindingSize);
FIELD(webgpu_sampler_binding_layout, WGPUSamplerBindingLayout, nextInChain);
FIELD(webgpu_sampler_binding_layout, WGPUSamplerBindingLayout, type);
FIELD(webgpu_texture_binding_layout, WGPUTextureBindingLayout, nextInChain);
FIELD(webgpu_texture_binding_layout, WGPUTextureBindingLayout, sampleType);
FIELD(webgpu_texture_binding_layout, WGPUTextureBindingLayout, viewDimension);
FIELD(webgpu_texture_binding_layout, WGPUTextureBindingLayout, multisampled);
FIELD(webgpu_storage_texture_binding_layout, WGPUStorageTextureBindingLayout, nextInChain);
FIELD(webgpu_storage_texture_binding_layout, WGPUStorageTextureBindingLayout, access);
FIELD(webgpu_storage_texture_binding_layout, WGPUStorageTextureBindingLayout, format);
FIELD(webgpu_storage_texture_binding_layout, WGPUStorageTextureBindingLayout, viewDimension);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, nextInChain);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, binding);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, visibility);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, bindingArraySize);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, buffer);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, sampler);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, texture);
FIELD(webgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry, storageTexture);
FIELD(webgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor, nextInChain);
FIELD(webgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor, label);
FIELD(webgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor, entryCount);
FIELD(webgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor, entries);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, nextInChain);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, binding);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, buffer);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, offset);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, size);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, sampler);
FIELD(webgpu_bind_group_entry, WGPUBindGroupEntry, textureView);
FIELD(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor, nextInChain);
FIELD(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor, label);
FIELD(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor, layout);
FIELD(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor, entryCount);
FIELD(webgpu_bind_group_descriptor, WGPUBindGroupDescriptor, entries);
FIELD(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, nextInChain);
FIELD(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, label);
FIELD(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, bindGroupLayoutCount);
FIELD(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, bindGroupLayouts);
FIELD(webgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor, immediateSize);
FIELD(webgpu_shader_source_wgsl, WGPUShaderSourceWGSL, chain);
FIELD(webgpu_shader_source_wgsl, WGPUShaderSourceWGSL, code);
FIELD(webgpu_shader_module_descriptor, WGPUShaderModuleDescriptor, nextInChain);
FIELD(webgpu_shader_module_descriptor, WGPUShaderModuleDescriptor, label);
FIELD(webgpu_compute_state, WGPUComputeState, nextInChain);
FIELD(webgpu_compute_state, WGPUComputeState, module);
FIELD(webgpu_compute_state, WGPUComputeState, entryPoint);
FIELD(webgpu_compute_state, WGPUComputeState, constantCount);
FIELD(webgpu_compute_state, WGPUComputeState, constants);
FIELD(webgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor, nextInChain);
FIELD(webgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor, label);
FIELD(webgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor, layout);
FIELD(webgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor, compute);
FIELD(webgpu_query_set_descriptor, WGPUQuerySetDescriptor, nextInChain);
FIELD(webgpu_query_set_descriptor, WGPUQuerySetDescriptor, label);
FIELD(webgpu_query_set_descriptor, WGPUQuerySetDescriptor, type);
FIELD(webgpu_query_set_descriptor, WGPUQuerySetDescriptor, count);
FIELD(webgpu_pass_timestamp_writes, WGPUPassTimestampWrites, nextInChain);
FIELD(webgpu_pass_timestamp_writes, WGPUPassTimestampWrites, querySet);
FIELD(webgpu_pass_timestamp_writes, WGPUPassTimestampWrites, beginningOfPassWriteIndex);
FIELD(webgpu_pass_timestamp_writes, WGPUPassTimestampWrites, endOfPassWriteIndex);
FIELD(webgpu_compute_pass_descriptor, WGPUComputePassDescriptor, nextInChain);
FIELD(webgpu_compute_pass_descriptor, WGPUComputePassDescriptor, label);
FIELD(webgpu_compute_pass_descriptor, WGPUComputePassDescriptor, timestampWrites);
FIELD(webgpu_command_encoder_descriptor, WGPUCommandEncoderDescriptor, nextInChain);
FIELD(webgpu_command_encoder_descriptor, WGPUCommandEncoderDescriptor, label);
FIELD(webgpu_command_buffer_descriptor, WGPUCommandBufferDescriptor, nextInChain);
FIELD(webgpu_command_buffer_descriptor, WGPUCommandBufferDescriptor, label);

/* From here on the names of webgpu.def mean the types of the header. */
#define webgpu_string_view                    WGPUStringView
#define webgpu_chained_struct                 WGPUChainedStruct
#define webgpu_future                         WGPUFuture
#define webgpu_future_wait_info               WGPUFutureWaitInfo
#define webgpu_request_adapter_callback_info  WGPURequestAdapterCallbackInfo
#define webgpu_request_device_callback_info   WGPURequestDeviceCallbackInfo
#define webgpu_device_lost_callback_info      WGPUDeviceLostCallbackInfo
#define webgpu_uncaptured_error_callback_info WGPUUncapturedErrorCallbackInfo
#define webgpu_buffer_map_callback_info       WGPUBufferMapCallbackInfo
#define webgpu_queue_work_done_callback_info  WGPUQueueWorkDoneCallbackInfo
#define webgpu_instance_descriptor            WGPUInstanceDescriptor
#define webgpu_instance_extras                WGPUInstanceExtras
#define webgpu_enumerate_options              WGPUInstanceEnumerateAdapterOptions
#define webgpu_request_adapter_options        WGPURequestAdapterOptions
#define webgpu_adapter_info                   WGPUAdapterInfo
#define webgpu_limits                         WGPULimits
#define webgpu_queue_descriptor               WGPUQueueDescriptor
#define webgpu_device_descriptor              WGPUDeviceDescriptor
#define webgpu_buffer_descriptor              WGPUBufferDescriptor
#define webgpu_buffer_binding_layout          WGPUBufferBindingLayout
#define webgpu_sampler_binding_layout         WGPUSamplerBindingLayout
#define webgpu_texture_binding_layout         WGPUTextureBindingLayout
#define webgpu_storage_texture_binding_layout WGPUStorageTextureBindingLayout
#define webgpu_bind_group_layout_entry        WGPUBindGroupLayoutEntry
#define webgpu_bind_group_layout_descriptor   WGPUBindGroupLayoutDescriptor
#define webgpu_bind_group_entry               WGPUBindGroupEntry
#define webgpu_bind_group_descriptor          WGPUBindGroupDescriptor
#define webgpu_pipeline_layout_descriptor     WGPUPipelineLayoutDescriptor
#define webgpu_shader_source_wgsl             WGPUShaderSourceWGSL
#define webgpu_shader_module_descriptor       WGPUShaderModuleDescriptor
#define webgpu_compute_state                  WGPUComputeState
#define webgpu_compute_pipeline_descriptor    WGPUComputePipelineDescriptor
#define webgpu_query_set_descriptor           WGPUQuerySetDescriptor
#define webgpu_pass_timestamp_writes          WGPUPassTimestampWrites
#define webgpu_compute_pass_descriptor        WGPUComputePassDescriptor
#define webgpu_command_encoder_descriptor     WGPUCommandEncoderDescriptor
#define webgpu_command_buffer_descriptor      WGPUCommandBufferDescriptor
#define webgpu_status                         WGPUStatus
#define webgpu_bool                           WGPUBool
#define webgpu_feature_name                   WGPUFeatureName
#define webgpu_flags                          WGPUFlags
#define WEBGPU_FUNCTION(result, name, arguments)                                                             \
    _Static_assert(__builtin_types_compatible_p(result arguments, __typeof__(name)),                         \
                   #name " is declared otherwise");
#define WEBGPU_OPTIONAL WEBGPU_FUNCTION
#include "device/webgpu/webgpu.def"
#undef WEBGPU_FUNCTION
#undef WEBGPU_OPTIONAL

/* Flags are constant variables in the header, so this comparison runs. */
static void test_constants(void **state) {
    (void)state;
#define WEBGPU_CONSTANT(name, value) assert_int_equal(value, WGPU##name);
#include "device/webgpu/webgpu.def"
#undef WEBGPU_CONSTANT
}
#else
static void test_constants(void **state) {
    (void)state;
    print_message("skipped, no wgpu.h: run `make webgpu`\n");
    skip();
}
#endif

static const char *again(weft__webgpu_hooks hooks) {
    weft__webgpu_hook = hooks;
    weft__webgpu_forget_library();
    const char *why = weft__webgpu_open_library();
    weft__webgpu_hook = (weft__webgpu_hooks){0};
    return why;
}

static void test_absent(void **state) {
    (void)state;
    const char *why = again((weft__webgpu_hooks){.library = "/no/such/library.so"});
    assert_non_null(why);
    assert_non_null(strstr(why, "/no/such/library.so cannot be opened: run `make webgpu`"));
    why = again((weft__webgpu_hooks){.library = "libc.so.6"});
    assert_non_null(why);
    assert_non_null(strstr(why, "libc.so.6 has no wgpuCreateInstance: it is no library of WebGPU"));
}

/* A library with a function that only unfit versions have. */
static void test_gone(void **state) {
    (void)state;
    static const char *const files[] = {"libc.so.6"};
    weft_shared_library library = {
        .files = files, .n_files = 1, .gone = "malloc", .old = "install a newer one"};
    assert_string_equal(weft__shared_library_open(&library, NULL, NULL),
                        "libc.so.6 still has malloc: install a newer one");
    library.gone = "no_such_function";
    library.looked = false;
    assert_null(weft__shared_library_open(&library, NULL, NULL));
}

static void test_library(void **state) {
    (void)state;
    const char *why = again((weft__webgpu_hooks){0});
    if (why) {
        print_message("skipped: %s\n", why);
        skip();
    }
    assert_true(strstr(weft__webgpu_library_name(), weft__wgpu.wgpuGetVersion ? "wgpu-native 29." : "Dawn") !=
                NULL);
    why = again((weft__webgpu_hooks){.missing = "wgpuQueueSubmit"});
    assert_non_null(why);
    assert_non_null(strstr(why, "has no wgpuQueueSubmit: "));
    why = again((weft__webgpu_hooks){.version = 24u << 24 | 3u << 16});
    assert_non_null(why);
    assert_non_null(strstr(why, "is wgpu-native 24.3, but Weft needs 29: run `make webgpu`"));
    /* Without an optional function the library opens, and the pointer is NULL. */
    assert_null(again((weft__webgpu_hooks){.missing = "wgpuDevicePoll"}));
    assert_true(weft__wgpu.wgpuDevicePoll == NULL && weft__wgpu.wgpuQueueSubmit != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
