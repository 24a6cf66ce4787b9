/* WebGPU as Weft sees it: the types of webgpu.h, written by hand, and functions found in the library that is
 * opened at run time. Structures have the fields of the header under the header's names, and a test compares
 * them. Must not know: Weft's devices. Read next: library.c. */
#ifndef WEFT_DEVICE_WEBGPU_API_H
#define WEFT_DEVICE_WEBGPU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The enumerations of the header have 32 bits. */
typedef uint32_t webgpu_status, webgpu_bool, webgpu_feature_name, webgpu_enum;
typedef uint64_t webgpu_flags;

typedef struct WGPUInstanceImpl *webgpu_instance;
typedef struct WGPUAdapterImpl *webgpu_adapter;
typedef struct WGPUDeviceImpl *webgpu_device;
typedef struct WGPUQueueImpl *webgpu_queue;
typedef struct WGPUBufferImpl *webgpu_buffer;
typedef struct WGPUShaderModuleImpl *webgpu_shader_module;
typedef struct WGPUBindGroupLayoutImpl *webgpu_bind_group_layout;
typedef struct WGPUBindGroupImpl *webgpu_bind_group;
typedef struct WGPUPipelineLayoutImpl *webgpu_pipeline_layout;
typedef struct WGPUComputePipelineImpl *webgpu_compute_pipeline;
typedef struct WGPUQuerySetImpl *webgpu_query_set;
typedef struct WGPUCommandEncoderImpl *webgpu_command_encoder;
typedef struct WGPUCommandBufferImpl *webgpu_command_buffer;
typedef struct WGPUComputePassEncoderImpl *webgpu_compute_pass_encoder;

/* WEBGPU_AdapterType_CPU stands for WGPUAdapterType_CPU, and so on. */
enum {
#define WEBGPU_CONSTANT(name, value) WEBGPU_##name = (value),
#include "device/webgpu/webgpu.def"
#undef WEBGPU_CONSTANT
};

/* ---- texts, chains, callbacks ---- */

#define WEBGPU_STRLEN SIZE_MAX   /* length of a text that ends with 0 */
#define WEBGPU_REST   UINT64_MAX /* size of a binding: the rest of the buffer */

typedef struct webgpu_string_view {
    const char *data;
    size_t length;
} webgpu_string_view;

typedef struct webgpu_chained_struct {
    struct webgpu_chained_struct *next;
    webgpu_enum sType;
} webgpu_chained_struct;

typedef struct webgpu_future {
    uint64_t id;
} webgpu_future;

typedef struct webgpu_future_wait_info {
    webgpu_future future;
    webgpu_bool completed;
} webgpu_future_wait_info;

typedef struct webgpu_request_adapter_callback_info {
    webgpu_chained_struct *nextInChain;
    webgpu_enum mode;
    void (*callback)(webgpu_enum status, webgpu_adapter adapter, webgpu_string_view message, void *user1,
                     void *user2);
    void *userdata1, *userdata2;
} webgpu_request_adapter_callback_info;

typedef struct webgpu_request_device_callback_info {
    webgpu_chained_struct *nextInChain;
    webgpu_enum mode;
    void (*callback)(webgpu_enum status, webgpu_device device, webgpu_string_view message, void *user1,
                     void *user2);
    void *userdata1, *userdata2;
} webgpu_request_device_callback_info;

typedef struct webgpu_device_lost_callback_info {
    webgpu_chained_struct *nextInChain;
    webgpu_enum mode;
    void (*callback)(const webgpu_device *device, webgpu_enum reason, webgpu_string_view message, void *user1,
                     void *user2);
    void *userdata1, *userdata2;
} webgpu_device_lost_callback_info;

typedef struct webgpu_uncaptured_error_callback_info {
    webgpu_chained_struct *nextInChain;
    void (*callback)(const webgpu_device *device, webgpu_enum type, webgpu_string_view message, void *user1,
                     void *user2);
    void *userdata1, *userdata2;
} webgpu_uncaptured_error_callback_info;

typedef struct webgpu_buffer_map_callback_info {
    webgpu_chained_struct *nextInChain;
    webgpu_enum mode;
    void (*callback)(webgpu_enum status, webgpu_string_view message, void *user1, void *user2);
    void *userdata1, *userdata2;
} webgpu_buffer_map_callback_info;

typedef struct webgpu_queue_work_done_callback_info {
    webgpu_chained_struct *nextInChain;
    webgpu_enum mode;
    void (*callback)(webgpu_enum status, webgpu_string_view message, void *user1, void *user2);
    void *userdata1, *userdata2;
} webgpu_queue_work_done_callback_info;

/* ---- instances, adapters, devices ---- */

typedef struct webgpu_instance_descriptor {
    webgpu_chained_struct *nextInChain;
    size_t requiredFeatureCount;
    const webgpu_enum *requiredFeatures;
    const void *requiredLimits;
} webgpu_instance_descriptor;

/* Of wgpu-native. */
typedef struct webgpu_instance_extras {
    webgpu_chained_struct chain;
    webgpu_flags backends, flags;
    webgpu_enum dx12ShaderCompiler, gles3MinorVersion, glFenceBehaviour;
    webgpu_string_view dxcPath;
    webgpu_enum dxcMaxShaderModel, dx12PresentationSystem;
    const uint8_t *budgetForDeviceCreation, *budgetForDeviceLoss;
    uint64_t displayHandle[3];
} webgpu_instance_extras;

typedef struct webgpu_enumerate_options {
    const webgpu_chained_struct *nextInChain;
    webgpu_flags backends;
} webgpu_enumerate_options;

typedef struct webgpu_request_adapter_options {
    webgpu_chained_struct *nextInChain;
    webgpu_enum featureLevel, powerPreference;
    webgpu_bool forceFallbackAdapter;
    webgpu_enum backendType;
    void *compatibleSurface;
} webgpu_request_adapter_options;

typedef struct webgpu_adapter_info {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view vendor, architecture, device, description;
    webgpu_enum backendType, adapterType;
    uint32_t vendorID, deviceID, subgroupMinSize, subgroupMaxSize;
} webgpu_adapter_info;

typedef struct webgpu_limits {
    webgpu_chained_struct *nextInChain;
    uint32_t maxTextureDimension1D, maxTextureDimension2D, maxTextureDimension3D, maxTextureArrayLayers;
    uint32_t maxBindGroups, maxBindGroupsPlusVertexBuffers, maxBindingsPerBindGroup;
    uint32_t maxDynamicUniformBuffersPerPipelineLayout, maxDynamicStorageBuffersPerPipelineLayout;
    uint32_t maxSampledTexturesPerShaderStage, maxSamplersPerShaderStage, maxStorageBuffersPerShaderStage;
    uint32_t maxStorageTexturesPerShaderStage, maxUniformBuffersPerShaderStage;
    uint64_t maxUniformBufferBindingSize, maxStorageBufferBindingSize;
    uint32_t minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment, maxVertexBuffers;
    uint64_t maxBufferSize;
    uint32_t maxVertexAttributes, maxVertexBufferArrayStride, maxInterStageShaderVariables,
        maxColorAttachments;
    uint32_t maxColorAttachmentBytesPerSample, maxComputeWorkgroupStorageSize,
        maxComputeInvocationsPerWorkgroup;
    uint32_t maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ;
    uint32_t maxComputeWorkgroupsPerDimension, maxImmediateSize;
} webgpu_limits;

typedef struct webgpu_queue_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
} webgpu_queue_descriptor;

/* Of Dawn. */
typedef struct webgpu_dawn_toggles {
    webgpu_chained_struct chain;
    size_t enabledToggleCount;
    const char *const *enabledToggles;
    size_t disabledToggleCount;
    const char *const *disabledToggles;
} webgpu_dawn_toggles;

typedef struct webgpu_device_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    size_t requiredFeatureCount;
    const webgpu_feature_name *requiredFeatures;
    const webgpu_limits *requiredLimits;
    webgpu_queue_descriptor defaultQueue;
    webgpu_device_lost_callback_info deviceLostCallbackInfo;
    webgpu_uncaptured_error_callback_info uncapturedErrorCallbackInfo;
} webgpu_device_descriptor;

/* ---- buffers, bindings, pipelines ---- */

typedef struct webgpu_buffer_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    webgpu_flags usage;
    uint64_t size;
    webgpu_bool mappedAtCreation;
} webgpu_buffer_descriptor;

typedef struct webgpu_buffer_binding_layout {
    webgpu_chained_struct *nextInChain;
    webgpu_enum type;
    webgpu_bool hasDynamicOffset;
    uint64_t minBindingSize;
} webgpu_buffer_binding_layout;

typedef struct webgpu_sampler_binding_layout {
    webgpu_chained_struct *nextInChain;
    webgpu_enum type;
} webgpu_sampler_binding_layout;

typedef struct webgpu_texture_binding_layout {
    webgpu_chained_struct *nextInChain;
    webgpu_enum sampleType, viewDimension;
    webgpu_bool multisampled;
} webgpu_texture_binding_layout;

typedef struct webgpu_storage_texture_binding_layout {
    webgpu_chained_struct *nextInChain;
    webgpu_enum access, format, viewDimension;
} webgpu_storage_texture_binding_layout;

typedef struct webgpu_bind_group_layout_entry {
    webgpu_chained_struct *nextInChain;
    uint32_t binding;
    webgpu_flags visibility;
    uint32_t bindingArraySize;
    webgpu_buffer_binding_layout buffer;
    webgpu_sampler_binding_layout sampler;
    webgpu_texture_binding_layout texture;
    webgpu_storage_texture_binding_layout storageTexture;
} webgpu_bind_group_layout_entry;

typedef struct webgpu_bind_group_layout_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    size_t entryCount;
    const webgpu_bind_group_layout_entry *entries;
} webgpu_bind_group_layout_descriptor;

typedef struct webgpu_bind_group_entry {
    webgpu_chained_struct *nextInChain;
    uint32_t binding;
    webgpu_buffer buffer;
    uint64_t offset, size;
    void *sampler, *textureView;
} webgpu_bind_group_entry;

typedef struct webgpu_bind_group_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    webgpu_bind_group_layout layout;
    size_t entryCount;
    const webgpu_bind_group_entry *entries;
} webgpu_bind_group_descriptor;

typedef struct webgpu_pipeline_layout_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    size_t bindGroupLayoutCount;
    const webgpu_bind_group_layout *bindGroupLayouts;
    uint32_t immediateSize;
} webgpu_pipeline_layout_descriptor;

typedef struct webgpu_shader_source_wgsl {
    webgpu_chained_struct chain;
    webgpu_string_view code;
} webgpu_shader_source_wgsl;

typedef struct webgpu_shader_module_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
} webgpu_shader_module_descriptor;

typedef struct webgpu_compute_state {
    webgpu_chained_struct *nextInChain;
    webgpu_shader_module module;
    webgpu_string_view entryPoint;
    size_t constantCount;
    const void *constants;
} webgpu_compute_state;

typedef struct webgpu_compute_pipeline_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    webgpu_pipeline_layout layout;
    webgpu_compute_state compute;
} webgpu_compute_pipeline_descriptor;

/* ---- commands ---- */

typedef struct webgpu_query_set_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    webgpu_enum type;
    uint32_t count;
} webgpu_query_set_descriptor;

typedef struct webgpu_pass_timestamp_writes {
    webgpu_chained_struct *nextInChain;
    webgpu_query_set querySet;
    uint32_t beginningOfPassWriteIndex, endOfPassWriteIndex;
} webgpu_pass_timestamp_writes;

typedef struct webgpu_compute_pass_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
    const webgpu_pass_timestamp_writes *timestampWrites;
} webgpu_compute_pass_descriptor;

typedef struct webgpu_command_encoder_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
} webgpu_command_encoder_descriptor;

typedef struct webgpu_command_buffer_descriptor {
    webgpu_chained_struct *nextInChain;
    webgpu_string_view label;
} webgpu_command_buffer_descriptor;

/* ---- functions ---- */

/* All but those of one library alone are set after weft__webgpu_open_library has returned NULL. */
typedef struct weft__webgpu_functions {
#define WEBGPU_FUNCTION(result, name, arguments) result(*name) arguments;
#define WEBGPU_OPTIONAL(result, name, arguments) result(*name) arguments;
#define WEBGPU_DAWN(result, name, arguments)     result(*name) arguments;
#include "device/webgpu/webgpu.def"
#undef WEBGPU_FUNCTION
#undef WEBGPU_OPTIONAL
#undef WEBGPU_DAWN
} weft__webgpu_functions;
extern weft__webgpu_functions weft__wgpu;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. */
const char *weft__webgpu_open_library(void);
void weft__webgpu_forget_library(void);
/* Returns "wgpu-native 29.0.1.1", or "Dawn", of the open library. */
const char *weft__webgpu_library_name(void);

#endif
