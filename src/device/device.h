/* The whole interface between Weft and a device. A device sees kernels, heavy operations and commands; it
 * never sees nodes. Adding a device is filling one weft_device_ops and one line in registry.c. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include <weft/ops.h>
#include <weft/tensor.h>
#include "base/base.h"
#include "kernel/source.h"

typedef struct weft_device weft_device;

/* Memory of a device. Devices embed this as their first member. */
typedef struct weft_buffer {
    size_t bytes;
    void *host; /* where the host may touch the memory directly, else NULL */
    bool zero;  /* fresh from the system: all bytes are 0, and not in memory yet */
} weft_buffer;

/* What a bad value is; numbers as in gpu/prelude/opencl.cl. compiler/runtime/program.c has status and text.
 */
typedef enum weft_fault_kind {
    WEFT_FAULT_NONE,
    WEFT_FAULT_GATHER,
    WEFT_FAULT_DIVIDE, /* an integer by 0: value and bound are 0 */
    WEFT_FAULT_SCATTER,
    WEFT_FAULT_UPDATE,
    WEFT_FAULT_KINDS
} weft_fault_kind;

/* The first bad value that the work since the last report met. Updates that follow in the same run are not
 * applied. */
typedef struct weft_fault {
    int set; /* written last */
    weft_fault_kind kind;
    const char *path;     /* layer */
    int64_t value, bound; /* the index and its limit */
    int64_t element;      /* which element of the index tensor */
} weft_fault;

/* ---- heavy operations: a device takes one whole, or declines and the compiler expands it ---- */

#define WEFT_BATCH_DIMS 4

/* c[i] = a[i] b[i] for every batch index i: (m, k) x (k, n) -> (m, n). Sums accumulate in f32 or wider.
 * Strides in elements; those of c describe a matrix with c_n == 1. Operands, in order: a, b, c.
 *
 * With an epilogue c is contiguous, and what is stored is what that map kernel stores (kernel/epilogue.c):
 * its loads of argument `product` yield the elements of c, rounded to out_dtype, and c itself is memory only
 * where the kernel writes it. Operands: a, b, the kernel's arguments. */
typedef struct weft_heavy_matmul {
    uint8_t dtype; /* of a and b: f32, f64, f16, bf16, i32, i64; c64, c128: pairs, and strides count them */
    uint8_t out_dtype; /* of c: the same, or f32 */
    uint8_t conj;      /* of complex numbers, 1: those of a are conjugated, 2: those of b */
    int batch_rank;
    int64_t batch[WEFT_BATCH_DIMS], a_batch[WEFT_BATCH_DIMS], b_batch[WEFT_BATCH_DIMS],
        c_batch[WEFT_BATCH_DIMS];
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n,
        c_m;                     /* one of a_m, a_k is 1, and one of b_k, b_n (extent 1 aside); all >= 0 */
    const weft_kernel *epilogue; /* NULL: none */
    int product;
    bool sums; /* the last operand gets the sums of a over k, m of them; there is no batch, and a is of floats
                */
} weft_heavy_matmul;

/* Of those sums, of a in dtype; of what has none, a dtype that no sum has. */
static inline weft_dtype weft__heavy_sums_dtype(const weft_heavy_matmul *mm) {
    return mm->dtype == WEFT_F64                        ? WEFT_F64
           : weft_dtype_is_float((weft_dtype)mm->dtype) ? WEFT_F32
                                                        : WEFT_BOOL;
}

/* out (rows, inner) = base, or 0; out[index[i], :] += source[i, :] for i in order, 0 <= i < count. An index
 * outside is a fault and skipped. Deterministic. outer repeats it over leading blocks that share the index.
 * In place when base and out are one buffer. unique: no index comes twice, so the order is no matter.
 * Operands: index (i32 or i64), source (outer, count, inner), with a base that, out (outer, rows, inner). */
typedef struct weft_heavy_scatter {
    uint8_t dtype, index_dtype;
    bool based, in_place, unique;
    int64_t outer, count, rows, inner;
} weft_heavy_scatter;

/* Is each element of out written by its index alone: nothing to set to zero or to the base before? */
static inline bool weft__scatter_is_direct(const weft_heavy_scatter *sc) {
    return sc->unique && (sc->in_place || sc->count == sc->rows);
}

/* Scaled dot-product attention (Vaswani et al. 2017, eq. 1), blocked so that no (t_q, t_k) matrix is kept
 * (Dao et al. 2022, algorithms 1 and 4). Tensors (batch, heads, t, d) with any strides over the first three
 * dimensions and 1 over the last. Key j is seen by query i where j <= i + (t_k - t_q) when causal. A row that
 * sees no key is 0. Cached, k and v are caches for t_k: the position, one i32 on the device, is there instead
 * of the random key, and key j is seen where j <= i + position. Dropout of the weights: element ((b * heads +
 * h) * t_q + i) * t_k + j of the random key. Forward operands: q, k, v, random key (i32[8], unused without
 * dropout), out, lse (batch, heads, t_q, f32 or f64). Backward operands: q, k, v, key, out, lse, dout, dq,
 * dk, dv. Heads may share keys and values: `sharing` of them that follow each other have one head of k and v,
 * each its own of dk and dv.
 * With a mask that is an operand behind the key, with any strides: bool, true where a query sees a key, or
 * numbers, which are added to scores; one of -inf hides a key, whatever the score. lse is (2, batch, heads,
 * t_q) then: of a query's scores the largest, 0 where it sees no key, and the logarithm of the sum of their
 * exponentials less that, -inf where it sees none: a score of -1e9 leaves no room for it. */
typedef struct weft_heavy_attention {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    bool causal, backward, cached;
    double scale, dropout;
    int64_t batch, heads, t_q, t_k, d;
    int64_t sharing; /* 0 counts as 1 */
    bool masked;
    uint8_t mask_dtype;                   /* bool, or f64 for f64, else f32 */
    int64_t mask[4];                      /* strides of batch, head, t of queries and of keys; 0: repeated */
    int64_t q[3], k[3], v[3], out[3];     /* strides of batch, head, t */
    int64_t dout[3], dq[3], dk[3], dv[3]; /* backward */
} weft_heavy_attention;

/* How many heads of queries a head of keys and values has. */
static inline int64_t weft__sharing(const weft_heavy_attention *at) { return at->sharing ? at->sharing : 1; }

/* out = input with `value` written at offset along one dimension, the offset a device scalar: the slice
 * assignment of a key/value cache. In place when input and out are one buffer.
 * Operands: input, value, offset (i32), out. value (outer, extent, inner), out (outer, total, inner). */
typedef struct weft_heavy_update {
    uint8_t dtype;
    bool in_place;
    int64_t outer, total, extent, inner;
} weft_heavy_update;

/* Convolution (cross-correlation) of images with their channels last, and its two gradients; each of the
 * three has the other two as its gradients. x (n, x[0], x[1], groups in), w (groups out, size[0], size[1],
 * in), y (n, y[0], y[1], groups out), all contiguous. Element (o, i) of x's window at y is x at y*stride +
 * tap*dilation - padding, 0 outside. Sums in f32 or wider. Operands: FORWARD x, w, y; INPUT y (gradient), w,
 * x (gradient); WEIGHT x, y (gradient), w (gradient). */
typedef enum weft_conv_pass { WEFT_CONV_FORWARD, WEFT_CONV_INPUT, WEFT_CONV_WEIGHT } weft_conv_pass;
typedef struct weft_heavy_conv {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    uint8_t pass;
    int64_t n, groups, in, out; /* images; channels of a group in x and in y */
    int64_t x[2], size[2], y[2], stride[2], padding[2], dilation[2];
} weft_heavy_conv;

/* A recurrent layer over all steps of time, as ops/recurrent.c defines it, with its tensors: row-major, of
 * dtype but for `cells`, which is f64 or f32. Forward operands: x, w, the biases of x and of the recurrent
 * product, h, an LSTM's c, lengths (i32) where masked, states, of gated kinds gates, an LSTM's cells.
 * Backward operands: w, states, of gated kinds gates, an LSTM's cells and c, the gradient of states, lengths
 * where masked, dx, dh, an LSTM's dc or a GRU's dz. Of a step behind a sequence's length, gates and cells may
 * be anything. */
typedef struct weft_heavy_recurrent {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    weft_recurrent_kind kind;
    bool reverse, masked, backward;
    int64_t t, batch, width; /* of h */
} weft_heavy_recurrent;

/* out[o, i, c] = input[o, 0, c] + ... + input[o, i, c], or the product of these; reverse: from the last one
 * on. Accumulates in f32 or wider, the same at every run. Operands: input, out, both (outer, extent, inner).
 */
typedef struct weft_heavy_scan {
    uint8_t dtype; /* f32, f64, i32, i64 */
    bool product, reverse;
    int64_t outer, extent, inner;
} weft_heavy_scan;

/* The positions of the first `count` elements of each row in ascending or descending order, equal ones by
 * position; NaN is larger than all else, -0 is 0. Operands: input (rows, extent), out (rows, count), i32. */
typedef struct weft_heavy_order {
    uint8_t dtype; /* f32, f64, i32, i64 */
    bool descending;
    int64_t rows, extent, count;
} weft_heavy_order;

/* out = a function of a program's own source, called by work-items enough for one an element: the pointers of
 * the operands, of out, and n, how many elements each of them has. Operands: `arity`, out, all of dtype. */
typedef struct weft_heavy_source {
    const char *name, *text; /* live as long as the context */
    uint8_t dtype, language; /* weft_language */
    int arity, items;        /* of a group */
    int64_t n;
} weft_heavy_source;

typedef enum weft_heavy_kind {
    WEFT_HEAVY_MATMUL,
    WEFT_HEAVY_SCATTER,
    WEFT_HEAVY_ATTENTION,
    WEFT_HEAVY_UPDATE,
    WEFT_HEAVY_CONV,
    WEFT_HEAVY_RECURRENT,
    WEFT_HEAVY_SCAN,
    WEFT_HEAVY_ORDER,
    WEFT_HEAVY_SOURCE
} weft_heavy_kind;

typedef struct weft_heavy {
    weft_heavy_kind kind;
    const char *path; /* layer */
    union {
        weft_heavy_matmul matmul;
        weft_heavy_scatter scatter;
        weft_heavy_attention attention;
        weft_heavy_update update;
        weft_heavy_scan scan;
        weft_heavy_order order;
        weft_heavy_conv conv;
        weft_heavy_recurrent recurrent;
        weft_heavy_source source;
    } as;
} weft_heavy;

/* How many operands are results, but for the sums of a product. */
static inline int weft__heavy_results(const weft_heavy *heavy) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    if (heavy->kind == WEFT_HEAVY_ATTENTION) return heavy->as.attention.backward ? 3 : 2;
    if (heavy->kind != WEFT_HEAVY_RECURRENT) return 1;
    if (r->backward) return r->kind == WEFT_LSTM || r->kind == WEFT_GRU ? 3 : 2;
    return r->kind == WEFT_LSTM ? 3 : r->kind == WEFT_GRU ? 2 : 1;
}

/* ---- programs ---- */

/* Where an operand lies: byte `offset` in the buffer bound to `slot`. Slot 0 is the program's arena. */
typedef struct weft_operand {
    int slot;
    int64_t offset;
} weft_operand;

typedef enum weft_command_kind {
    WEFT_COMMAND_KERNEL,
    WEFT_COMMAND_HEAVY,
    WEFT_COMMAND_COPY,
    WEFT_COMMAND_ZERO
} weft_command_kind;

typedef struct weft_command {
    weft_command_kind kind;
    bool sink;  /* changes a variable: skipped once a fault is recorded */
    bool after; /* must wait for all commands before it; false: independent of those since the last `after` */
    const weft_kernel *kernel; /* KERNEL */
    weft_heavy heavy;          /* HEAVY */
    int64_t bytes;             /* COPY (operands: from, to), ZERO (operand: to) */
    int n_operands;
    weft_operand *operands;
} weft_command;

typedef struct weft_commands {
    int count, n_slots;
    weft_command *list;
} weft_commands;

typedef struct weft_executable weft_executable; /* a device's form of a program */

/* Nanoseconds of one command in the last run, for the profile. */
typedef struct weft_timing {
    double start_ns, end_ns;
} weft_timing;

/* What programs are made for on a device that need not be open, nor even be there: for plans, which the
 * device "null:as:opencl" and the like makes. */
typedef struct weft_device_outline {
    char name[32], detail[400];
    bool absent;     /* it stands for devices of the kind: none is here */
    uint64_t memory; /* bytes; 0: not known */
    bool launches;   /* its commands are launches for `target` */
    weft_target target;
    bool (*takes)(const weft_target *target, const weft_heavy *heavy);
} weft_device_outline;

typedef struct weft_device_ops {
    const char *name; /* of the kind: "opencl" */
    /* How many devices of the kind there are; 1 where describe tells why there is none. */
    int (*count)(void);
    /* Fills in what device i is or why it is absent; never fails. */
    void (*describe)(int i, weft_device_description *description);
    /* selector: what stands behind "opencl:" in the specification, "" where nothing does. */
    weft_status (*open)(weft_context *ctx, const char *selector, const weft_open_options *options,
                        weft_device **device);
    void (*close)(weft_device *device);
    /* Describes one for plans, opening nothing; NULL: not for this kind. */
    weft_status (*outline)(weft_context *ctx, const char *selector, weft_device_outline *outline);
    /* Bytes that buffers may yet take; NULL, or 0: not known. */
    uint64_t (*memory_free)(weft_device *device);
    /* Refuses, by name, a dtype that the device lacks. */
    weft_status (*check_dtype)(weft_device *device, weft_dtype dtype);
    weft_status (*buffer_new)(weft_device *device, size_t bytes, weft_buffer **buffer);
    void (*buffer_free)(weft_device *device, weft_buffer *buffer);
    weft_status (*upload)(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes);
    weft_status (*download)(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes);
    /* Makes bytes 0. */
    weft_status (*zero)(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
    /* True when the device runs this heavy operation itself. */
    bool (*takes)(weft_device *device, const weft_heavy *heavy);
    /* Compiles the commands, which stay alive with the executable. */
    weft_status (*build)(weft_device *device, const weft_commands *commands, weft_executable **executable);
    void (*executable_free)(weft_device *device, weft_executable *executable);
    /* How many threads of the host run it; NULL: none do. */
    int (*threads_of)(const weft_executable *executable);
    /* How many launches of kernels a run is; NULL: there are none. */
    int (*launches_of)(const weft_executable *executable);
    /* Submits one run, and need not wait for it; buffers[i] is bound to slot i. Repeats it `times` times. */
    weft_status (*run)(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                       int times);
    /* Waits until all submitted work is done. */
    weft_status (*synchronize)(weft_device *device);
    /* Moves the recorded fault out; fault->set is 0 when there is none. Waits for the work. */
    weft_status (*take_fault)(weft_device *device, weft_fault *fault);
    /* Timings of the commands of the last run, when switched on. */
    void (*set_timing)(weft_device *device, bool on);
    const weft_timing *(*timings)(weft_device *device, const weft_executable *executable);
    /* Makes the first `count` elements of buffers[i], of devices[i], the sum of all n; f32 or f64. *done:
     * false where these devices cannot. NULL: none can. */
    weft_status (*sum)(weft_device *const *devices, weft_buffer *const *buffers, size_t n, weft_dtype dtype,
                       size_t count, bool *done);
    /* Fills in what the card says of itself, which is all NaN before; false: it cannot be asked. May be
     * called by another thread than the device's. NULL: there is none. */
    bool (*gauges)(const weft_device *device, weft_gauges *gauges);
} weft_device_ops;

/* What a device found out by measuring, of ways that compute the same. */
enum { WEFT_CHOICE_BYTES = 96 };
typedef struct weft_tile_choice {
    char what[64], chosen[32];
    double gain;                           /* times as fast as what it would have taken otherwise */
    weft_hash key;                         /* of the question, the device and its driver, */
    unsigned char kept[WEFT_CHOICE_BYTES]; /* and the answer, as the tuner keeps it */
    size_t bytes;
} weft_tile_choice;

/* Devices embed this as their first member. */
struct weft_device {
    const weft_device_ops *ops;
    weft_context *ctx;
    const char *name; /* what opens it again: "opencl:1" */
    bool
        asynchronous; /* a run returns before its work is done: faults are taken when the host waits anyway */
    int threads;      /* of the host, for what the host does for it; 0 counts as 1 */
    int forks;        /* of an asynchronous one: weft__forks() when it was opened */
    uint64_t bytes_in_use, bytes_peak;
    bool tf32;          /* products of f32 may round what they multiply to TF32 */
    uint64_t workspace; /* of these what kernels need besides their operands */
    weft_tile_choice *choices;
    int n_choices;
    const weft_tile_choice *given; /* choices of an earlier process, which count more than what is on disk */
    int n_given;
    /* counted by the compiler's calls, for profile and tests */
    uint64_t uploads, downloads, submissions;
    uint64_t bytes_up, bytes_down;
};

/* registry.c */
int weft__device_kinds(void);
const weft_device_ops *weft__device_kind(int i);
/* How many devices of kinds that have one each; the kind itself checks what it is asked for. */
int weft__device_one(void);
/* The next of a list, without spaces around it; false at its end. */
bool weft__device_next(const char **list, char *spec, size_t size);
/* False where the machine shows no sign of a graphics card, so that no driver need be loaded to look for one.
 */
bool weft__device_cards(void);
/* Opens by specification: a kind ("cpu", "opencl"), one of several ("opencl:1", "opencl:NAME"), "gpu" (the
 * first card), "auto" (that, or the cpu; who knows the program asks weft_profile_choose before), or a list of
 * which the first that opens is taken ("cuda,opencl,cpu"), with a warning that says why the others are not. A
 * device named alone is that or an error, which names what there is. */
weft_status weft__device_open(weft_context *ctx, const char *spec, const weft_open_options *options,
                              weft_device **device);
/* An error in a child of fork, where the driver of a device that the parent opened does not work. The cpu
 * does. */
weft_status weft__device_usable(const weft_device *device);
/* Why a driver that was loaded when weft__forks() was `forks` cannot be used any more; NULL where it can. */
const char *weft__device_forked(int forks);
/* Outlines by specification, as above. */
weft_status weft__device_outline_of(weft_context *ctx, const char *spec, weft_device_outline *outline);
extern const weft_device_ops weft__device_cpu, weft__device_cuda, weft__device_opencl, weft__device_null,
    weft__device_interp;

#endif
