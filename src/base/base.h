/* The ground that every part of Weft stands on: the context, errors, memory, checked sizes, logging, hashing.
 * Must not know: tensors.
 * Read next: status.c and memory.c, then graph/graph.h. */
#ifndef WEFT_SRC_BASE_BASE_H
#define WEFT_SRC_BASE_BASE_H

#include <stdarg.h>
#include <weft/base.h>
#include <weft/dtype.h>

typedef struct weft_scope weft_scope;
typedef struct weft_tensor weft_tensor;

/* Memory of a device. Devices embed this as their first member. */
typedef struct weft_buffer {
    size_t bytes;
    void *host; /* the address, if the host may access the memory directly; else NULL */
    bool zero;  /* fresh from the system: all bytes are 0, and no page is in memory yet */
} weft_buffer;

#define WEFT_ERROR_SIZE 1024 /* bytes of a message, with its NUL */

typedef struct weft_error {
    weft_status status;
    char text[WEFT_ERROR_SIZE];
} weft_error;

/* The state of one use of Weft. Upper folders hang their own state here. Lower folders reach upper ones only
 * through `hooks`, which weft_open sets. */
struct weft_context {
    struct {                 /* what the C program gave to weft_open */
        weft_alloc_fn alloc; /* NULL: malloc and free */
        void *alloc_user;
        weft_log_fn log;
        void *log_user;
        bool (*interrupted)(void *user); /* asked whether to stop early; NULL: never */
        void *interrupted_user;
        bool completes; /* stopping now would leave the model between two steps, so `interrupted` is not
                         * asked */
    } caller;
    weft_error error;    /* the last error */
    double open_seconds; /* seconds that weft_open took */
    struct {             /* what random numbers depend on */
        uint64_t seed;
        uint64_t step;        /* optimizer steps done */
        uint64_t micro_batch; /* index within an accumulated batch */
        uint64_t ordinal;     /* random nodes recorded outside any module */
    } random;
    int processes;       /* that train together, if an optimizer has joined others; else 0 */
    bool divides;        /* some parameters are divided among them (weft_divided) */
    uint64_t epoch;      /* counts writes to variables; orders reads and writes */
    uint64_t visit;      /* stamp of the last graph walk */
    uint64_t identities; /* the last number given to objects that program keys must tell apart (blocks,
                          * caches) */
    const char *path;    /* layer path of the module being recorded, "" outside */
    uint8_t stage;       /* weft_stage of what is being recorded, for profiles */
    bool training;       /* modules record training behaviour (dropout) */
    weft_scope *root_scope;
    weft_scope *scope;            /* innermost open scope */
    struct weft_strings *strings; /* interned strings, live as long as the context */
    struct weft_device *device;
    struct weft__process_link *link;   /* to the devices of other processes; NULL: exchanges use the host */
    struct weft_compiler *compiler;    /* owner of the program cache */
    struct weft_module *modules;       /* list of root modules */
    struct weft_tombstone *tombstones; /* see weft__tombstone_leave */
    struct weft_graph *graph;          /* state of recording, see graph/graph.h */
    struct {
        /* a scope that closes evaluates what is kept */
        weft_status (*eval)(weft_context *ctx, weft_tensor *const *tensors, size_t count);
        /* variables live in memory of the device, which may have to be 0 */
        weft_status (*buffer_new)(weft_context *ctx, size_t bytes, bool zeroed, weft_buffer **buffer);
        void (*buffer_free)(weft_context *ctx, weft_buffer *buffer);
        /* their values come from the host, and go there */
        weft_status (*upload)(weft_context *ctx, weft_buffer *to, size_t offset, const void *from,
                              size_t bytes);
        weft_status (*download)(weft_context *ctx, const weft_buffer *from, size_t offset, void *to,
                                size_t bytes);
        /* a dtype that the device lacks is refused where it is asked for */
        weft_status (*check_dtype)(weft_context *ctx, int dtype);
        /* a context that closes frees its modules, if there were any; else NULL */
        void (*modules_free)(weft_context *ctx);
        const char *device; /* name of the device: messages of ops name it */
    } hooks;
};

/* ---- errors: status.c ---- */

/* Records a message as the last error of ctx (which may be NULL) and of the thread; returns status. */
weft_status weft__fail(weft_context *ctx, weft_status status, const char *fmt, ...) WEFT_PRINTF(3, 4);
weft_status weft__failv(weft_context *ctx, weft_status status, const char *fmt, va_list args);
/* Reports that `bytes` of memory for `what` could not be allocated. Returns WEFT_ERR_OOM. */
weft_status weft__fail_oom(weft_context *ctx, size_t bytes, const char *what);
/* Returns a copy of the thread's last error, for a poisoned object that has no context to own one. There is
 * one copy a thread; the next call overwrites it. */
weft_error *weft__orphan_error(void);
/* Reports that a public function was given NULL for a required argument. Returns WEFT_ERR_ARGUMENT. */
weft_status weft__fail_null(weft_context *ctx, const char *function, const char *argument);
/* Reports a count that no array can have. Returns WEFT_ERR_ARGUMENT. */
weft_status weft__fail_count(weft_context *ctx, const char *function, const char *argument, size_t count);
/* Whether the program wants the current work to stop (weft_open_options.interrupted). */
bool weft__interrupted(const weft_context *ctx);
/* WEFT_ERR_STOPPED if the program wants to stop, else WEFT_OK. */
weft_status weft__go_on(weft_context *ctx);
void weft__log(weft_context *ctx, weft_log_level level, const char *fmt, ...) WEFT_PRINTF(3, 4);
/* Logs each line of a text, of any length. Overwrites the text's newlines with NULs. */
void weft__log_lines(weft_context *ctx, weft_log_level level, char *text);

#ifdef __clang_analyzer__ /* the analyzer cannot see into status.c: a failing function returns the status it \
                           * was given */
#define weft__fail(ctx, status, ...)     ((void)weft__fail(ctx, status, __VA_ARGS__), (status))
#define weft__fail_oom(ctx, bytes, what) ((void)weft__fail_oom(ctx, bytes, what), WEFT_ERR_OOM)
#endif

/* Evaluates a call and returns its status if it failed. */
#define WEFT_TRY(call)                                                                                       \
    do {                                                                                                     \
        weft_status weft_try_status_ = (call);                                                               \
        if (weft_try_status_ != WEFT_OK) return weft_try_status_;                                            \
    } while (0)

/* Returns WEFT_ERR_ARGUMENT from a public function if a required argument is NULL. ctx may be NULL. */
#define WEFT_NEED(ctx, argument)                                                                             \
    do {                                                                                                     \
        if (!(argument)) return weft__fail_null(ctx, __func__, #argument);                                   \
    } while (0)

/* The same for an array of `count` elements, which may be NULL if count is 0. Also returns if memory cannot
 * hold so many elements. */
#define WEFT_NEED_ARRAY(ctx, array, count)                                                                   \
    do {                                                                                                     \
        if ((count) != 0) WEFT_NEED(ctx, array);                                                             \
        if ((size_t)(count) > PTRDIFF_MAX / sizeof *(array))                                                 \
            return weft__fail_count(ctx, __func__, #count, (size_t)(count));                                 \
    } while (0)

/* The same for a function that returns `result` after an error. */
#define WEFT_NEED_OR(result, ctx, argument)                                                                  \
    do {                                                                                                     \
        if (argument) break;                                                                                 \
        weft__fail_null(ctx, __func__, #argument);                                                           \
        return result;                                                                                       \
    } while (0)

/* ---- memory: memory.c. ctx may be NULL: then plain malloc. All functions return NULL on failure. ---- */
void *weft__alloc(weft_context *ctx, size_t bytes) __attribute__((malloc));
void *weft__zalloc(weft_context *ctx, size_t bytes);
void *weft__array(weft_context *ctx, size_t count, size_t size); /* zeroed; count * size is checked */
void *weft__realloc(weft_context *ctx, void *old, size_t bytes);
void weft__free(weft_context *ctx, void *p);
char *weft__strdup(weft_context *ctx, const char *s);
/* Aligned to 64 bytes, not zeroed. Free it with weft__free_aligned. */
void *weft__alloc_aligned(weft_context *ctx, size_t bytes);
void weft__free_aligned(weft_context *ctx, void *p);
/* Makes room for one more element in a growing array. False on failure; the array is then unchanged. */
bool weft__grow(weft_context *ctx, void *array_pointer, size_t *capacity, size_t count, size_t size);

/* Bytes of memory that the machine has; 0: not known. */
uint64_t weft__host_memory(void);
/* Bytes of host memory that this process can take without pushing others out; 0: not known. */
uint64_t weft__host_memory_free(void);

/* A bump allocator. Its memory is zeroed, aligned to 16 bytes, and freed or reset as a whole. */
typedef struct weft_arena_block weft_arena_block;
typedef struct weft_arena {
    weft_context *ctx;
    weft_arena_block *block; /* the newest block, linked to the older ones */
} weft_arena;
void weft__arena_init(weft_arena *arena, weft_context *ctx);
void *weft__arena_alloc(weft_arena *arena, size_t bytes);
void weft__arena_free(weft_arena *arena);
/* Keeps one block for reuse. All memory handed out before is invalid. */
void weft__arena_reset(weft_arena *arena);

/* What is left of an object that was freed with its owner while the user may still hold a pointer to it. A
 * call with that pointer then reports an error. The tombstone lives until the user frees it or the context
 * closes. It is the first member of the object's struct. */
typedef struct weft_tombstone {
    struct weft_tombstone *next;
} weft_tombstone;
void weft__tombstone_leave(weft_context *ctx, weft_tombstone *tombstone);
void weft__tombstone_free(weft_context *ctx, weft_tombstone *tombstone);
void weft__tombstones_free(weft_context *ctx); /* for weft_close */

/* Returns the same pointer for equal strings, valid until the context closes. NULL gives "". Returns NULL if
 * memory runs out. */
const char *weft__intern(weft_context *ctx, const char *s); /* strings.c */
/* Frees every interned string: for weft_close. */
void weft__strings_free(weft_context *ctx);

/* ---- checked size arithmetic: size.c. False if an argument is negative or the result exceeds PTRDIFF_MAX.
 * ---- */
bool weft__mul(int64_t a, int64_t b, int64_t *out);
bool weft__add(int64_t a, int64_t b, int64_t *out);
bool weft__numel(int rank, const int64_t *shape, int64_t *out);
/* a / b, rounded up. Neither may be negative. */
static inline int64_t weft__ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t weft__smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t weft__larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- dtypes: dtype.c ---- */

/* The dtype of the parts of complex numbers: f32 of c64, f64 of c128. Other dtypes give themselves. */
weft_dtype weft__part_dtype(weft_dtype dtype);

/* Element i of an array as a double; NaN if the dtype is no real number. */
double weft__element(weft_dtype dtype, const void *data, int64_t i);
/* Writes a number in its dtype, and no byte more. Floats and bools are written from f, integers from the low
 * bits of i. */
void weft__store_number(weft_dtype dtype, void *to, double f, int64_t i);

/* ---- hashing: hash.c. Two independent 64-bit lanes. ---- */
typedef struct weft_hash {
    uint64_t a, b;
} weft_hash;
void weft__hash_init(weft_hash *h);

#define WEFT__GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio */

/* The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014, in Stafford's variant 13). */
static inline uint64_t weft__mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Inline, since the walk over a graph calls it for each number of each node. */
static inline void weft__hash_u64(weft_hash *h, uint64_t v) {
    h->a = weft__mix64((h->a ^ v) + WEFT__GOLDEN);
    h->b = weft__mix64(((h->b << 29) | (h->b >> 35)) + v * UINT64_C(0xff51afd7ed558ccd) + 1);
}
void weft__hash_bytes(weft_hash *h, const void *data, size_t bytes);
void weft__hash_str(weft_hash *h, const char *s);
/* Bytes that come in pieces. The result is that of weft__hash_bytes for all of them. Begin with {.hash = h}.
 */
typedef struct weft__hash_stream {
    weft_hash *hash;
    size_t bytes;
    unsigned char rest[8]; /* the last bytes % 8 bytes */
} weft__hash_stream;
void weft__hash_piece(weft__hash_stream *s, const void *data, size_t bytes);
void weft__hash_end(weft__hash_stream *s);
static inline bool weft__hash_equal(weft_hash x, weft_hash y) { return x.a == y.a && x.b == y.b; }

/* ---- Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random.c ----
 */
void weft__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* The Philox key of (seed, stream). Element e of step s is word e % 4 of the block with the counter {e / 4
 * low, e / 4 high, s low, s high}. Devices render this formula. */
void weft__philox_key(uint64_t seed, uint64_t stream, uint32_t key[2]);
/* One random word of (seed, stream) at (step, element). It is the same on every device. */
uint32_t weft__random_u32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t element);
/* Uniform in [0, 1), with 24 bits. */
static inline float weft__unit_float(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
/* Normally distributed, by Box and Muller's method. Uses elements 2*i and 2*i+1 of the stream; computed in
 * double. */
double weft__random_normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t i);
/* The image of i under a keyed permutation of 0..n-1 (a cycle-walking Feistel network over Philox). */
uint64_t weft__permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i);

#endif
