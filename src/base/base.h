/* What every part of Weft stands on: the context, failing with a message, memory, checked sizes,
 * logging, hashing. Knows nothing of tensors. Read next: graph/graph.h. */
#ifndef WEFT_SRC_BASE_BASE_H
#define WEFT_SRC_BASE_BASE_H

#include <stdarg.h>
#include <weft/base.h>
#include <weft/dtype.h>

typedef struct weft_scope weft_scope;
typedef struct weft_tensor weft_tensor;
struct weft_buffer;

#define WEFT_ERROR_SIZE 1024 /* bytes kept of a message */

typedef struct weft_error {
    weft_status status;
    char text[WEFT_ERROR_SIZE];
} weft_error;

/* The state of one use of Weft. Upper folders hang their own state here and are reached from lower
 * ones only through `hooks`, which weft_open sets. */
struct weft_context {
    weft_alloc_fn alloc; /* NULL: malloc and free */
    void *alloc_user;
    weft_log_fn log;
    void *log_user;
    bool (*interrupted)(void *user); /* NULL: nothing ends early */
    void *interrupted_user;
    bool completes;          /* what is under way would leave the model between two steps: it is not asked */
    weft_error error;        /* the last one */
    double open_seconds;     /* that opening it took */
    uint64_t seed;           /* of the random stream */
    uint64_t step;           /* optimizer steps done: part of every random counter */
    uint64_t micro_batch;    /* index within an accumulated batch */
    uint64_t random_ordinal; /* random nodes recorded outside any module */
    uint64_t epoch;          /* writes to variables so far; orders reads and writes */
    uint64_t visit;          /* stamp of the last graph walk */
    uint64_t identities;     /* handed out to what the keys of programs must tell apart (blocks, caches) */
    const char *path;        /* layer path of the module being recorded, "" outside */
    uint8_t stage;           /* weft_stage of what is being recorded, for profiles */
    bool training;           /* modules record training behaviour (dropout) */
    weft_scope *root_scope;
    weft_scope *scope;            /* innermost open one */
    struct weft_strings *strings; /* interned strings, live as long as the context */
    struct weft_device *device;
    struct weft_compiler *compiler; /* program cache */
    struct weft_module *modules;    /* list of roots */
    struct weft_shell *shells;      /* see weft__shell_leave */
    struct weft_graph *graph;       /* what recording needs */
    struct {
        weft_status (*eval)(weft_context *ctx, weft_tensor *const *tensors, size_t count);
        weft_status (*buffer_new)(weft_context *ctx, size_t bytes, struct weft_buffer **buffer);
        weft_status (*buffer_zeroed)(weft_context *ctx, size_t bytes, struct weft_buffer **buffer);
        void (*buffer_free)(weft_context *ctx, struct weft_buffer *buffer);
        /* Where the host may touch its memory directly, else NULL. */
        void *(*buffer_host)(const struct weft_buffer *buffer);
        weft_status (*upload)(weft_context *ctx, struct weft_buffer *to, size_t offset, const void *from,
                              size_t bytes);
        weft_status (*download)(weft_context *ctx, const struct weft_buffer *from, size_t offset, void *to,
                                size_t bytes);
        weft_status (*check_dtype)(weft_context *ctx, int dtype);
        void (*modules_free)(weft_context *ctx);
    } hooks;
};

/* ---- failing: status.c ---- */

/* Records a message as the last error of ctx (which may be NULL) and of the thread; returns status. */
weft_status weft__fail(weft_context *ctx, weft_status status, const char *fmt, ...) WEFT_PRINTF(3, 4);
weft_status weft__failv(weft_context *ctx, weft_status status, const char *fmt, va_list args);
/* Out of memory while wanting `bytes` for `what`. */
weft_status weft__fail_oom(weft_context *ctx, size_t bytes, const char *what);
/* A copy of the thread's last error, for a poisoned object that has no context to own one: one a thread,
 * until the next. */
weft_error *weft__orphan_error(void);
/* WEFT_ERR_ARGUMENT where a public function was given NULL for an argument that it needs. */
weft_status weft__fail_null(weft_context *ctx, const char *function, const char *argument);
/* The same for a count that no array can have. */
weft_status weft__fail_count(weft_context *ctx, const char *function, const char *argument, size_t count);
/* Whether the program wants what is under way to end (weft_open_options.interrupted). */
bool weft__interrupted(const weft_context *ctx);
/* WEFT_ERR_STOPPED where it does. */
weft_status weft__go_on(weft_context *ctx);
void weft__log(weft_context *ctx, weft_log_level level, const char *fmt, ...) WEFT_PRINTF(3, 4);
/* Each line of a text, however long; its newlines become NULs. */
void weft__log_lines(weft_context *ctx, weft_log_level level, char *text);

#ifdef __clang_analyzer__ /* cannot see into status.c: what fails returns the status it was given */
#define weft__fail(ctx, status, ...)     ((void)weft__fail(ctx, status, __VA_ARGS__), (status))
#define weft__fail_oom(ctx, bytes, what) ((void)weft__fail_oom(ctx, bytes, what), WEFT_ERR_OOM)
#endif

/* Evaluates a call and passes a failure on. */
#define WEFT_TRY(call)                                                                                       \
    do {                                                                                                     \
        weft_status weft_try_status_ = (call);                                                               \
        if (weft_try_status_ != WEFT_OK) return weft_try_status_;                                            \
    } while (0)

/* Returns from a public function, with that error, where an argument that it needs is NULL. ctx may be NULL.
 */
#define WEFT_NEED(ctx, argument)                                                                             \
    do {                                                                                                     \
        if (!(argument)) return weft__fail_null(ctx, __func__, #argument);                                   \
    } while (0)

/* The same for an array of `count` elements, which is needed unless there are none; and returns where memory
 * cannot hold so many. */
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

/* ---- memory: memory.c. ctx may be NULL: then plain malloc. All return NULL on failure. ---- */
void *weft__alloc(weft_context *ctx, size_t bytes) __attribute__((malloc));
void *weft__zalloc(weft_context *ctx, size_t bytes);
void *weft__array(weft_context *ctx, size_t count, size_t size); /* zeroed, product checked */
void *weft__realloc(weft_context *ctx, void *old, size_t bytes);
void weft__free(weft_context *ctx, void *p);
char *weft__strdup(weft_context *ctx, const char *s);
/* Aligned to 64 bytes, to be freed with weft__free_aligned. Not zeroed. */
void *weft__alloc_aligned(weft_context *ctx, size_t bytes);
void weft__free_aligned(weft_context *ctx, void *p);
/* Makes room for one more element in a growing array: false on failure, array unchanged. */
bool weft__grow(weft_context *ctx, void *array_pointer, size_t *capacity, size_t count, size_t size);

/* Bytes of the host's memory that a process can take without pushing others out; 0: not known. */
uint64_t weft__host_memory_free(void);

/* A bump allocator: freed or rewound at once. Memory is zeroed and aligned to 16 bytes. */
typedef struct weft_arena_block weft_arena_block;
typedef struct weft_arena {
    weft_context *ctx;
    weft_arena_block *block; /* newest, linked to older ones */
} weft_arena;
void weft__arena_init(weft_arena *arena, weft_context *ctx);
void *weft__arena_alloc(weft_arena *arena, size_t bytes);
void weft__arena_free(weft_arena *arena);
/* Keeps one block for reuse and forgets what was in it. */
void weft__arena_reset(weft_arena *arena);

/* What is freed with its owner while its user may still hold it leaves a shell, which says so until its user
 * frees it too, or the context is closed. It is the first member of its struct. */
typedef struct weft_shell {
    struct weft_shell *next;
} weft_shell;
void weft__shell_leave(weft_context *ctx, weft_shell *shell);
void weft__shell_free(weft_context *ctx, weft_shell *shell);
void weft__shells_free(weft_context *ctx); /* for weft_close */

/* The same pointer for equal strings, valid until the context closes; "" for NULL; NULL when memory runs out.
 */
const char *weft__intern(weft_context *ctx, const char *s); /* strings.c */
/* Frees every interned string: for weft_close. */
void weft__strings_free(weft_context *ctx);

/* ---- checked size arithmetic: size.c. False on overflow past PTRDIFF_MAX or a negative value. ---- */
bool weft__mul(int64_t a, int64_t b, int64_t *out);
bool weft__add(int64_t a, int64_t b, int64_t *out);
bool weft__numel(int rank, const int64_t *shape, int64_t *out);
/* How many parts of b there are in a, the last maybe smaller; neither is negative. */
static inline int64_t weft__ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t weft__smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t weft__larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- dtypes: dtype.c ---- */

/* Of c64 f32, of c128 f64; of what is not complex itself. */
weft_dtype weft__part_dtype(weft_dtype dtype);

/* Element i of an array; NaN of a dtype that is no real number. */
double weft__element(weft_dtype dtype, const void *data, int64_t i);
/* Writes a number as the dtype has it, and no byte more: f of floats and bools, the low bits of i of
 * integers.
 */
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

/* Inline: the walk over a graph calls it for each number of each node. */
static inline void weft__hash_u64(weft_hash *h, uint64_t v) {
    h->a = weft__mix64((h->a ^ v) + WEFT__GOLDEN);
    h->b = weft__mix64(((h->b << 29) | (h->b >> 35)) + v * UINT64_C(0xff51afd7ed558ccd) + 1);
}
void weft__hash_bytes(weft_hash *h, const void *data, size_t bytes);
void weft__hash_str(weft_hash *h, const char *s);
static inline bool weft__hash_equal(weft_hash x, weft_hash y) { return x.a == y.a && x.b == y.b; }

/* ---- Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random.c ----
 */
void weft__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* The Philox key of (seed, stream). Element e of step s is word e % 4 of the block whose counter is
 * {e / 4 low, e / 4 high, s low, s high}: what a device renders. */
void weft__philox_key(uint64_t seed, uint64_t stream, uint32_t key[2]);
/* The stream of (seed, stream) at (step, element): one word. The same on every device. */
uint32_t weft__random_u32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t element);
/* Uniform in [0, 1) with 24 bits. */
static inline float weft__unit_float(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
/* Normal by Box and Muller from elements 2*i and 2*i+1 of a stream, computed in double. */
double weft__random_normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t i);
/* A keyed permutation of 0..n-1 (cycle-walking Feistel network over Philox): the image of i. */
uint64_t weft__permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i);

#endif
