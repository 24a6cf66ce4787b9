/* Contexts, scopes, devices and tensors.
 *
 * A tensor function records a node and returns at once. Values are computed when you ask for them. A failed
 * function returns a poisoned tensor, never NULL, and ops pass it on. The first function that returns a
 * status reports the first cause. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include <weft/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MAX_RANK 8

typedef struct weft_tensor weft_tensor;
typedef struct weft_scope weft_scope;
typedef struct weft_program weft_program;

/* ---- context ---- */

typedef struct weft_open_options {
    /* The device, or a list of devices of which the first that opens is taken: "opencl,cpu".
     * - "cpu" (default), "cuda", "opencl"
     * - "opencl:1", "opencl:NAME": by number, by part of its name
     * - "gpu": the first graphics card
     * - "auto": the first graphics card, or else the cpu; weft_profile_choose chooses by the program's work
     *
     * NULL: WEFT_DEVICE in the environment. */
    const char *device;
    int threads;     /* of the cpu, at most 256; 0: OMP_NUM_THREADS, or one for each processor */
    uint64_t seed;   /* of the random stream */
    weft_log_fn log; /* NULL: no log. Messages that WEFT_DEBUG asks for have level WEFT_LOG_DEBUG */
    void *log_user;
    weft_alloc_fn alloc; /* NULL: the C library's */
    void *alloc_user;
    /* Weft asks this function whether to stop early; NULL: nothing stops early. It asks between the batches
     * of weft_fit and of an evaluation, and between the kernels that a device compiles, in the thread that
     * uses the context. True ends the call with WEFT_ERR_STOPPED. The context stays usable, and the model is
     * as its last complete step left it. */
    bool (*interrupted)(void *user);
    void *interrupted_user;
    bool no_fusion; /* make every op a kernel of its own, to see what fusion changes */
    /* Allow results whose last bits differ from run to run if a library is faster that way: cuDNN's gradients
     * of attention in f16 and bf16. Without it results are always the same. (PyTorch:
     * use_deterministic_algorithms.) */
    bool allow_nondeterministic;
    bool tf32; /* cuda: f32 matmuls may round their operands to TF32 (10 binary digits after the point) and
                  use tensor cores; default: no such rounding */
} weft_open_options;

/* Opens a context on a device. options may be NULL. On failure *ctx is NULL and weft_last_error(NULL) says
 * why. Only one thread at a time may use a context. Two contexts are independent.
 *
 * After fork, the child may open contexts on the cpu and use its parent's cpu contexts. A GPU context stays
 * with the parent: in the child its functions return WEFT_ERR_DEVICE. */
WEFT_API WEFT_CHECKED weft_status weft_open(const weft_open_options *options, weft_context **ctx);

/* Frees the context and everything made in it. NULL is allowed. */
WEFT_API void weft_close(weft_context *ctx);

/* Sets the seed and the step of the random stream. The next step then draws what step `step` of a run
 * draws. */
WEFT_API void weft_seed(weft_context *ctx, uint64_t seed, uint64_t step);

/* ---- devices ---- */

typedef struct weft_device_description {
    const char *name;   /* "cpu" */
    const char *detail; /* instruction set, matmul library, driver */
    const char *reason; /* why it is absent, and what to do; NULL if present */
    bool present;
    int threads;     /* or compute units */
    uint64_t memory; /* bytes */
    /* for GPU backends, otherwise 0 */
    uint64_t buffer_limit; /* bytes of the largest buffer */
    uint64_t local_memory; /* bytes that a group of work-items shares */
    bool f64;              /* supports f64 */
    bool card;             /* is a graphics card */
} weft_device_description;

/* The number of devices that Weft knows on this machine, including absent ones. Looks for GPU drivers. */
WEFT_API int weft_device_count(void);

/* Describes device i; false if there is none. Strings live as long as the process. */
WEFT_API bool weft_device_info(int i, weft_device_description *info);

/* The name of the context's device, as in options.device: "opencl:0". */
WEFT_API const char *weft_device_of(const weft_context *ctx);

/* Describes the context's device. */
WEFT_API void weft_device_describe(const weft_context *ctx, weft_device_description *info);

/* What a graphics card reports about itself now, for all processes that use it. NaN: not reported. */
typedef struct weft_telemetry {
    double utilisation;         /* 0 to 1: the fraction of the last moments in which anything ran on it */
    double memory_used;         /* bytes, of all processes */
    double power;               /* watts */
    double clock, memory_clock; /* MHz: of its processors, of its memory */
    double temperature;         /* degrees Celsius */
} weft_telemetry;

/* Reads these values, which takes milliseconds. False, with all values NaN, if the context's device has
 * none. Another thread may call it while one thread uses the context. */
WEFT_API bool weft_device_telemetry(const weft_context *ctx, weft_telemetry *telemetry);

/* Waits until all submitted work is done, and reports errors in it. */
WEFT_API WEFT_CHECKED weft_status weft_synchronize(weft_context *ctx);

/* ---- scopes ---- */

/* Opens a scope, which owns every temporary recorded until it closes. Scopes nest. Temporaries recorded
 * while no scope is open live until weft_close. NULL if memory is short. */
WEFT_API weft_scope *weft_scope_open(weft_context *ctx);

/* Evaluates the tensors that were kept in the scope, then frees its temporaries. Scopes that are still open
 * inside are closed, too. weft_last_error and the log report errors in kept tensors.
 *
 * Using a temporary after that is a mistake: weft_keep it instead. It is WEFT_ERR_STATE until 4,096 more
 * tensors were freed, and may be another tensor then. Closing a scope that is not open does nothing and sets
 * weft_last_error to WEFT_ERR_STATE. */
WEFT_API void weft_scope_close(weft_scope *scope);

/* Makes t an output: it survives its scope and lives until weft_free or weft_close. It is evaluated when
 * the scope closes, at the latest. Returns t. */
WEFT_API weft_tensor *weft_keep(weft_tensor *t);

/* Frees a kept tensor. Nodes that read it stay valid: they keep it alive until the last of them is
 * evaluated or freed with its scope. NULL and temporaries, which belong to their scope, are ignored. */
WEFT_API void weft_free(weft_tensor *t);

/* ---- making tensors ---- */

/* Makes a tensor with the values at data (row-major, shape[0..rank)), copied to the device. */
WEFT_API weft_tensor *weft_from(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                const void *data);

/* Makes a tensor whose values are all `value`: a constant, part of the program. */
WEFT_API weft_tensor *weft_full(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                double value);
WEFT_API weft_tensor *weft_full_i64(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                    int64_t value);

/* Makes a rank-0 tensor whose value is an input of the program: a new value compiles nothing. weft_scalar
 * is f32. */
WEFT_API weft_tensor *weft_scalar(weft_context *ctx, float value);
WEFT_API weft_tensor *weft_scalar_of(weft_context *ctx, weft_dtype dtype, double value);

/* Counts 0, 1, 2, ... along the last dimension of a tensor of that shape. */
WEFT_API weft_tensor *weft_iota(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape);

/* A vector of start, start + step, ... before stop. 16-bit floats are computed in f32. */
WEFT_API weft_tensor *weft_arange(weft_context *ctx, weft_dtype dtype, double start, double stop,
                                  double step);
/* n numbers from start to stop at equal distances. Both ends are included and exact. */
WEFT_API weft_tensor *weft_linspace(weft_context *ctx, weft_dtype dtype, double start, double stop,
                                    int64_t n);
/* A matrix with 1 on its diagonal and 0 elsewhere. */
WEFT_API weft_tensor *weft_eye(weft_context *ctx, weft_dtype dtype, int64_t rows, int64_t columns);

/* f32 random numbers, uniform in [0, 1) or standard normal. Each call draws new ones. */
WEFT_API weft_tensor *weft_random_uniform(weft_context *ctx, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_random_normal(weft_context *ctx, int rank, const int64_t *shape);
/* 32 random bits in each i32. */
WEFT_API weft_tensor *weft_random_bits(weft_context *ctx, int rank, const int64_t *shape);

/* Makes a variable: named storage that lives until weft_free. You read it like any tensor; weft_assign,
 * weft_write and optimizers change it. Its first value is data, or zeros if data is NULL. */
WEFT_API weft_tensor *weft_variable_new(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                                        const int64_t *shape, const void *data);

/* ---- asking ---- */

/* The rank; -1 for a poisoned tensor. */
WEFT_API int weft_rank(const weft_tensor *t);
/* The extent of dimension `dim`; a negative `dim` counts from the end. -1 if there is none. */
WEFT_API int64_t weft_dim(const weft_tensor *t, int dim);
/* The number of elements; -1 for a poisoned tensor. The next functions return the shape, dtype and context.
 */
WEFT_API int64_t weft_numel(const weft_tensor *t);
WEFT_API const int64_t *weft_shape(const weft_tensor *t);
WEFT_API weft_dtype weft_dtype_of(const weft_tensor *t);
WEFT_API weft_context *weft_context_of(const weft_tensor *t);
/* WEFT_OK, or the error that poisoned t. */
WEFT_API weft_status weft_tensor_status(const weft_tensor *t);

/* ---- values ---- */

/* Computes the tensors in one program. Reports poisoned and stale tensors.
 *
 * A bad value found by the device is WEFT_ERR_INDEX (an index out of range) or WEFT_ERR_NUMERIC (an integer
 * divided by 0). weft_eval reports it if the device is done when weft_eval returns, as the cpu is.
 * Otherwise the next read or weft_synchronize reports it. Until then no variable is changed. */
WEFT_API WEFT_CHECKED weft_status weft_eval(weft_tensor *const *tensors, size_t count);

/* Evaluates t and copies its values, row-major, to out. `bytes` must be exactly the tensor's size. */
WEFT_API WEFT_CHECKED weft_status weft_read(weft_tensor *t, void *out, size_t bytes);

/* The value of a one-element tensor as a double; NaN after an error. */
WEFT_API double weft_item(weft_tensor *t);

/* Replaces the values of a variable or of a tensor made by weft_from. `bytes` must be exactly its size. */
WEFT_API WEFT_CHECKED weft_status weft_write(weft_tensor *t, const void *data, size_t bytes);

/* Evaluates values[i] and makes them the new values of variables[i], in one program. Reads of the old
 * values in this program come first. Shapes and dtypes must agree. */
WEFT_API WEFT_CHECKED weft_status weft_assign(weft_tensor *const *variables, weft_tensor *const *values,
                                              size_t count);

/* Copies the values of t into another context, as a tensor of its innermost scope. */
WEFT_API weft_tensor *weft_to(weft_tensor *t, weft_context *ctx);

/* Writes the values of t as text into buffer, at most `size` bytes with the closing NUL. Long dimensions
 * are shortened with "...". Returns the length of the whole text, or -1 after an error. */
WEFT_API int64_t weft_format(weft_tensor *t, char *buffer, size_t size);

/* ---- compiled programs ---- */

/* Compiles the graph of `outputs`, with the assignments variables[i] <- values[i], into a program.
 * weft_program_run replays it without recording or hashing anything.
 *
 * Tensors made by weft_from and weft_scalar, and variables, are inputs: change them with weft_write and
 * weft_set_scalar. Each run recomputes the outputs in place. The program keeps outputs, inputs and
 * variables alive, even if you free them. Free it with weft_program_free or with the context. */
WEFT_API WEFT_CHECKED weft_status weft_compile(weft_tensor *const *outputs, size_t n_outputs,
                                               weft_tensor *const *variables, weft_tensor *const *values,
                                               size_t n_assign, weft_program **program);
WEFT_API WEFT_CHECKED weft_status weft_program_run(weft_program *program);
WEFT_API void weft_program_free(weft_program *program);
/* Sets the value of a tensor made by weft_scalar, for the next run of a compiled program. */
WEFT_API WEFT_CHECKED weft_status weft_set_scalar(weft_tensor *scalar, double value);

/* ---- gradients ---- */

/* Records d(loss)/d(wrt[i]) for each i into grads[i]. loss has one element. If loss does not depend on a
 * tensor, its gradient is zeros.
 *
 * Errors:
 * - An op between them is not differentiable.
 * - loss depends on a tensor only through integers or bools.
 * - WEFT_ERR_STATE: a tensor between them was evaluated (weft_read, weft_eval), and its scope has closed or
 *   new random numbers were drawn since, so it is unknown how it depends on wrt. Take gradients before, or
 *   use weft_detach.
 * - WEFT_ERR_STALE: what such a tensor was computed from was written since.
 *
 * Reading a tensor changes no gradient while its scope is open. */
WEFT_API WEFT_CHECKED weft_status weft_gradient(weft_tensor *loss, weft_tensor *const *wrt, size_t count,
                                                weft_tensor **grads);

#ifdef __cplusplus
}
#endif
#endif
