/* Contexts, scopes, devices and tensors.
 *
 * A tensor function records a node and returns at once; values are computed when asked for. A failed
 * function returns a poisoned tensor, never NULL; ops pass it on, and the first function that returns
 * a status reports the first cause. */
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
    /* "cpu" (default), "cuda", "opencl", "opencl:1", "opencl:NAME" (part of its name), "gpu" (the first
     * card), "auto" (that, or the cpu; weft_profile_choose knows better what suits a program), or a list of
     * which the first that opens is taken: "opencl,cpu"; WEFT_DEVICE in the environment where NULL. */
    const char *device;
    int threads;     /* of the cpu, at most 256; 0: OMP_NUM_THREADS, or one for each processor */
    uint64_t seed;   /* of the random stream */
    weft_log_fn log; /* NULL: no log; what WEFT_DEBUG asks for comes as WEFT_LOG_DEBUG */
    void *log_user;
    weft_alloc_fn alloc; /* NULL: the C library's */
    void *alloc_user;
    /* Asked whether what is under way should end: between the batches of weft_fit and of an evaluation, and
     * between the kernels that a device compiles. True ends it with WEFT_ERR_STOPPED. The context stays as
     * usable as it was, and the model as its last whole step left it. Called by the thread
     * that uses the context; NULL: nothing ends early. */
    bool (*interrupted)(void *user);
    void *interrupted_user;
    bool no_fusion; /* every op a kernel of its own: to see what fusion changes */
    /* Results may differ in their last bits from run to run, where a library is faster so: cuDNN's gradients
     * of attention, in f16 and bf16. Otherwise they never do (PyTorch: use_deterministic_algorithms). */
    bool allow_nondeterministic;
    bool tf32; /* cuda: products of f32 may round what they multiply to TF32, 10 binary digits behind the
                * point, which tensor cores take; else f32 is f32 */
} weft_open_options;

/* Opens a context on a device. options may be NULL. On failure *ctx is NULL and weft_last_error(NULL)
 * says why. A context is used by one thread at a time; two contexts are independent.
 *
 * After fork: the child may open contexts on the cpu and use those of its parent there. A GPU context stays
 * with the parent: in the child its functions return WEFT_ERR_DEVICE. */
WEFT_API WEFT_CHECKED weft_status weft_open(const weft_open_options *options, weft_context **ctx);

/* Frees the context and everything made in it. NULL is fine. */
WEFT_API void weft_close(weft_context *ctx);

/* Sets seed and step of the random stream: the next step draws what step `step` of a run draws. */
WEFT_API void weft_seed(weft_context *ctx, uint64_t seed, uint64_t step);

/* ---- devices ---- */

typedef struct weft_device_description {
    const char *name;   /* "cpu" */
    const char *detail; /* instruction set, matmul library, driver */
    const char *reason; /* why it is absent, and the remedy; NULL when present */
    bool present;
    int threads;     /* or compute units */
    uint64_t memory; /* bytes */
    /* of GPU backends, else 0 */
    uint64_t buffer_limit; /* bytes of the largest buffer */
    uint64_t local_memory; /* bytes that a group of work-items shares */
    bool f64;              /* it computes in f64 */
    bool card;             /* a graphics card */
} weft_device_description;

/* How many devices Weft knows on this machine, absent ones included. Looks for drivers of cards. */
WEFT_API int weft_device_count(void);

/* Describes device i; false when there is none. Strings live as long as the process. */
WEFT_API bool weft_device_info(int i, weft_device_description *info);

/* Name of the context's device, as options.device names it: "opencl:0". */
WEFT_API const char *weft_device_of(const weft_context *ctx);

/* Describes the context's device. */
WEFT_API void weft_device_describe(const weft_context *ctx, weft_device_description *info);

/* What a card says of itself at the moment, whoever uses it besides. NaN: it does not tell. */
typedef struct weft_gauges {
    double utilisation;         /* 0 to 1: the part of the last moments in which anything ran on it */
    double memory_used;         /* bytes, of all processes */
    double power;               /* watts */
    double clock, memory_clock; /* MHz: of its processors, of its memory */
    double temperature;         /* degrees Celsius */
} weft_gauges;

/* Reads them, which takes milliseconds; false, and all NaN, where the context's device has none. Another
 * thread may do so while one uses the context. */
WEFT_API bool weft_device_gauges(const weft_context *ctx, weft_gauges *gauges);

/* Waits until all submitted work is done; reports what went wrong in it. */
WEFT_API WEFT_CHECKED weft_status weft_synchronize(weft_context *ctx);

/* ---- scopes ---- */

/* Opens a scope: it owns every temporary recorded until it is closed. Scopes nest. NULL when memory is gone.
 */
WEFT_API weft_scope *weft_scope_open(weft_context *ctx);

/* Evaluates what was kept in it, then frees its temporaries (and those of scopes still open inside, which are
 * closed with it). Errors in kept tensors are reported by weft_last_error and the log. A temporary used after
 * that is WEFT_ERR_STATE as long as nothing else has taken its place: it is a mistake, weft_keep it. Closing
 * a scope that is not open does nothing and is WEFT_ERR_STATE in weft_last_error. */
WEFT_API void weft_scope_close(weft_scope *scope);

/* Makes t an output: it survives its scope, evaluated at the latest when the scope closes, and lives until
 * weft_free or weft_close. Returns t. */
WEFT_API weft_tensor *weft_keep(weft_tensor *t);

/* Frees a kept tensor. What was recorded and reads it stays valid: it lives on, unseen, until its last reader
 * is evaluated or freed with its scope. Other tensors belong to their scope; NULL and temporaries are
 * ignored. */
WEFT_API void weft_free(weft_tensor *t);

/* ---- making tensors ---- */

/* A tensor with the values at data (row-major, shape[0..rank)), copied to the device. */
WEFT_API weft_tensor *weft_from(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                const void *data);

/* A tensor whose values are all `value`: a constant, part of the program. */
WEFT_API weft_tensor *weft_full(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                double value);
WEFT_API weft_tensor *weft_full_i64(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                                    int64_t value);

/* A rank-0 f32 tensor whose value is an input of the program: a new value never compiles anything. */
WEFT_API weft_tensor *weft_scalar(weft_context *ctx, float value);
WEFT_API weft_tensor *weft_scalar_of(weft_context *ctx, weft_dtype dtype, double value);

/* 0, 1, 2, ... counted along the last dimension of a tensor of that shape. */
WEFT_API weft_tensor *weft_iota(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape);

/* start, start + step, ... before stop, as a vector; computed in f32 for 16-bit floats. */
WEFT_API weft_tensor *weft_arange(weft_context *ctx, weft_dtype dtype, double start, double stop,
                                  double step);
/* n numbers from start to stop, both included and exact, at equal distances. */
WEFT_API weft_tensor *weft_linspace(weft_context *ctx, weft_dtype dtype, double start, double stop,
                                    int64_t n);
/* A matrix of 1 on its diagonal, 0 elsewhere. */
WEFT_API weft_tensor *weft_eye(weft_context *ctx, weft_dtype dtype, int64_t rows, int64_t columns);

/* Uniform in [0, 1), f32; and standard normal, f32. Another draw at each call. */
WEFT_API weft_tensor *weft_random_uniform(weft_context *ctx, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_random_normal(weft_context *ctx, int rank, const int64_t *shape);
/* 32 random bits each, i32. */
WEFT_API weft_tensor *weft_random_bits(weft_context *ctx, int rank, const int64_t *shape);

/* A variable: named storage that lives until weft_free, is read like any tensor and changed by weft_assign,
 * weft_write and optimizers. Its first value is data, or zeros where data is NULL. */
WEFT_API weft_tensor *weft_variable_new(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                                        const int64_t *shape, const void *data);

/* ---- asking ---- */

/* -1 for a poisoned tensor. */
WEFT_API int weft_rank(const weft_tensor *t);
/* Extent of dimension `dim`; negative counts from the end. -1 when there is none. */
WEFT_API int64_t weft_dim(const weft_tensor *t, int dim);
/* Number of elements; -1 for a poisoned tensor. */
WEFT_API int64_t weft_numel(const weft_tensor *t);
WEFT_API const int64_t *weft_shape(const weft_tensor *t);
WEFT_API weft_dtype weft_dtype_of(const weft_tensor *t);
WEFT_API weft_context *weft_context_of(const weft_tensor *t);
/* WEFT_OK, or the error that poisoned t. */
WEFT_API weft_status weft_tensor_status(const weft_tensor *t);

/* ---- values ---- */

/* Computes the tensors in one program. Poisoned or stale ones are reported. A bad value met on the way (an
 * index out of range: WEFT_ERR_INDEX; an integer divided by 0: WEFT_ERR_NUMERIC) is reported here where the
 * device is done when this returns, as cpu is, and else by the next read or weft_synchronize; no variable is
 * changed after it until then. */
WEFT_API WEFT_CHECKED weft_status weft_eval(weft_tensor *const *tensors, size_t count);

/* Evaluates t and copies its values, row-major, to out, which holds `bytes`, exactly the tensor's size. */
WEFT_API WEFT_CHECKED weft_status weft_read(weft_tensor *t, void *out, size_t bytes);

/* The value of a one-element tensor as a double; NaN after an error. */
WEFT_API double weft_item(weft_tensor *t);

/* Replaces the values of a variable or of a tensor made by weft_from. */
WEFT_API WEFT_CHECKED weft_status weft_write(weft_tensor *t, const void *data, size_t bytes);

/* Evaluates values[i] and makes them the new values of variables[i], in one program, ordered after all
 * readers in it. Shapes and dtypes must agree. */
WEFT_API WEFT_CHECKED weft_status weft_assign(weft_tensor *const *variables, weft_tensor *const *values,
                                              size_t count);

/* Copies the values of t into another context, as a tensor of its innermost scope. */
WEFT_API weft_tensor *weft_to(weft_tensor *t, weft_context *ctx);

/* Writes a readable form of t's values into buffer (at most `size` bytes with the closing NUL), long
 * dimensions shortened with "...". Returns the length that the whole text has, or -1 after an error. */
WEFT_API int64_t weft_format(weft_tensor *t, char *buffer, size_t size);

/* ---- programs held by hand ---- */

/* Compiles the graph of `outputs` with the assignments variables[i] <- values[i] into a program that
 * weft_run replays, with nothing rebuilt or hashed. Tensors made by weft_from, weft_scalar and variables are
 * its inputs: change them with weft_write and weft_set_scalar. outputs are re-evaluated in place at each run.
 * The program keeps outputs, inputs and variables alive, whoever else frees them; it is freed with
 * weft_program_free or with the context. */
WEFT_API WEFT_CHECKED weft_status weft_compile(weft_tensor *const *outputs, size_t n_outputs,
                                               weft_tensor *const *variables, weft_tensor *const *values,
                                               size_t n_assign, weft_program **program);
WEFT_API WEFT_CHECKED weft_status weft_run(weft_program *program);
WEFT_API void weft_program_free(weft_program *program);
/* Changes the value of a tensor made by weft_scalar, for the next run of a held program. */
WEFT_API WEFT_CHECKED weft_status weft_set_scalar(weft_tensor *scalar, double value);

/* ---- gradients ---- */

/* Records d(loss)/d(wrt[i]) for each i into grads[i]. loss has one element. A tensor that loss does not
 * depend on gets zeros. Fails where an op on the way is not differentiable, where loss depends on a tensor
 * only through integers or bools, and with WEFT_ERR_STATE where it cannot be known whether it depends on a
 * variable, as something made of variables was evaluated before (weft_read, weft_eval): take gradients first.
 */
WEFT_API WEFT_CHECKED weft_status weft_gradient(weft_tensor *loss, weft_tensor *const *wrt, size_t count,
                                                weft_tensor **grads);

#ifdef __cplusplus
}
#endif
#endif
