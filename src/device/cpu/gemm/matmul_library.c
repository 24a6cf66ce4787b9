/* The matmul library, opened at run time: oneDNN, MKL or OpenBLAS, the first one that is installed and knows
 * this processor. Otherwise own kernels are used. WEFT_MATMUL chooses. Every matmul runs on the calling
 * thread alone, so Weft decides the partition into tasks, and with it the bits.
 * Must not know: operations, tasks. Read next: matmul_library.def, matmul.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/matmul_library.h"

typedef enum library_kind { LIBRARY_OWN, LIBRARY_DNNL, LIBRARY_MKL, LIBRARY_OPENBLAS } library_kind;

/* The functions of all libraries. Functions of libraries that are not in use stay NULL. */
static struct {
#define LIBRARY_FUNCTION(library, result, name, arguments) result(*name) arguments;
#include "device/cpu/gemm/matmul_library.def"
#undef LIBRARY_FUNCTION
    /* OpenMP's functions in the library's namespace. */
    int (*omp_get_max_threads)(void);
    void (*omp_set_num_threads)(int threads);
} call;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weft_matmul_library in_use;
static library_kind kind;
static char description[768];
static char refused[384]; /* why earlier candidates were refused */

static void cpu_matmul_library_refuse(const char *name, const char *why) {
    size_t used = strlen(refused);
    if (used + 1 < sizeof refused)
        snprintf(refused + used, sizeof refused - used, "%s%s: %s", used ? "; " : "", name, why);
}

/* ---- opening ---- */

#define NEED_dnnl     1u
#define NEED_cblas    2u
#define NEED_openblas 4u
#define NEED_mkl      8u

/* Resolves all functions of the groups in `need`. Returns the name of the first missing one, or NULL. */
static const char *resolve(void *handle, unsigned need) {
    memset(&call, 0, sizeof call);
    void *symbol;
#define LIBRARY_FUNCTION(library, result, name, arguments)                                                   \
    if (need & NEED_##library) {                                                                             \
        symbol = dlsym(handle, #name);                                                                       \
        if (!symbol) return #name;                                                                           \
        memcpy(&call.name, &symbol, sizeof symbol);                                                          \
    }
#include "device/cpu/gemm/matmul_library.def"
#undef LIBRARY_FUNCTION
    symbol = dlsym(handle, "omp_get_max_threads");
    memcpy(&call.omp_get_max_threads, &symbol, sizeof symbol);
    symbol = dlsym(handle, "omp_set_num_threads");
    memcpy(&call.omp_set_num_threads, &symbol, sizeof symbol);
    return NULL;
}

/* Libraries in C++ end the process if memory is short while they are opened, or compile kernels. More than 32
 * MiB come from the system, and go back there. */
#define ROOM ((size_t)48 << 20)

static bool has_room(weft_context *ctx) {
    void *room = weft__alloc(ctx, ROOM);
    weft__free(ctx, room);
    return room != NULL;
}

/* Opens a library and restores the thread's floating-point state. Libraries linked with fast-math flags
 * disable subnormals for the thread that opens them. */
static void *open_keeping_float_state(const char *path) {
#if defined(__x86_64__)
    unsigned state = _mm_getcsr();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (_mm_getcsr() != state) _mm_setcsr(state);
    return handle;
#else
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#endif
}

/* Returns the file from which a function came. */
static const char *origin(const void *function) {
    Dl_info info;
    return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "?";
}

static const char *dnnl_isa_name(int isa) {
    static const struct {
        int isa;
        const char *name;
    } names[] = {{0x1, "sse41"},
                 {0x3, "avx"},
                 {0x7, "avx2"},
                 {0x27, "avx512_core"},
                 {0x67, "avx512_core_vnni"},
                 {0xe7, "avx512_core_bf16"},
                 {0x407, "avx2_vnni"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].isa == isa) return names[i].name;
    return isa & 0x20 ? "avx512_core and later" : "default";
}

static const char *try_dnnl(void *handle) {
    const char *missing = resolve(handle, NEED_dnnl);
    if (missing) return missing;
#if defined(__x86_64__)
    /* Versions 2.x and 3.x use the same numbers. sse41 is the lowest that oneDNN has. */
    if (weft__cpu_isa() == WEFT_ISA_BASELINE) call.dnnl_set_max_cpu_isa(0x1);
    if (weft__cpu_isa() == WEFT_ISA_AVX2) call.dnnl_set_max_cpu_isa(0x7);
#endif
    const weft_dnnl_version *version = call.dnnl_version();
    void *function;
    memcpy(&function, &call.dnnl_sgemm, sizeof function);
    snprintf(description, sizeof description, "oneDNN %d.%d.%d (%s), %s", version->major, version->minor,
             version->patch, dnnl_isa_name(call.dnnl_get_effective_cpu_isa()), origin(function));
    in_use = (weft_matmul_library){.f32 = true};
    kind = LIBRARY_DNNL;
    return NULL;
}

static const char *try_mkl(void *handle) {
    const char *missing = resolve(handle, NEED_cblas | NEED_mkl);
    if (missing) return missing;
    char version[160] = "";
    call.MKL_Set_Interface_Layer(0); /* LP64 */
    call.MKL_Set_Threading_Layer(1); /* sequential */
#if defined(__x86_64__)
    /* Conditional numerical reproducibility. The branch is the limit of WEFT_CPU_ISA, and bits do not depend
     * on alignment. */
    static const int branch[] = {[WEFT_ISA_BASELINE] = 4, [WEFT_ISA_AVX2] = 10, [WEFT_ISA_AVX512] = 12};
    if (call.MKL_CBWR_Set(branch[weft__cpu_isa()] | 0x10000) != 0 &&
        call.MKL_CBWR_Set(branch[weft__cpu_isa()]) != 0)
        return "has no code path for this instruction set";
#endif
    call.MKL_Get_Version_String(version, (int)sizeof version - 1);
    void *function;
    memcpy(&function, &call.cblas_sgemm, sizeof function);
    snprintf(description, sizeof description, "MKL (%s), %s", version, origin(function));
    in_use = (weft_matmul_library){.f32 = true, .f64 = true, .complex = true};
    kind = LIBRARY_MKL;
    return NULL;
}

/* Returns the instruction set of OpenBLAS's kernels, from the name of the processor that they were made
 * for. */
static weft_cpu_isa openblas_isa(const char *core) {
    static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
    for (size_t i = 0; i < sizeof avx512 / sizeof *avx512; i++)
        if (strcasecmp(core, avx512[i]) == 0) return WEFT_ISA_AVX512;
    for (size_t i = 0; i < sizeof avx2 / sizeof *avx2; i++)
        if (strcasecmp(core, avx2[i]) == 0) return WEFT_ISA_AVX2;
    return WEFT_ISA_BASELINE;
}

static const char *try_openblas(void *handle, bool by_name) {
    static char why[160];
    const char *missing = resolve(handle, NEED_cblas | NEED_openblas);
    if (missing) return missing;
    const char *core = call.openblas_get_corename();
    call.openblas_set_num_threads(1);
#if defined(__x86_64__)
    /* A release older than the processor falls back to kernels of twenty years ago, which are five times
     * slower. Its choice cannot be changed after it is opened. So kernels above the limit of WEFT_CPU_ISA are
     * refused, too. */
    if (openblas_isa(core) > weft__cpu_isa()) {
        snprintf(why, sizeof why, "its %s kernels are above WEFT_CPU_ISA", core);
        return why;
    }
    if (openblas_isa(core) < weft__cpu_isa() && !by_name) {
        snprintf(why, sizeof why, "its %s kernels are older than this processor", core);
        return why;
    }
#else
    (void)by_name;
    (void)openblas_isa;
#endif
    void *function;
    memcpy(&function, &call.cblas_sgemm, sizeof function);
    snprintf(description, sizeof description, "OpenBLAS (%s; %s), %s", core, call.openblas_get_config(),
             origin(function));
    in_use = (weft_matmul_library){.f32 = true, .f64 = true, .complex = true};
    kind = LIBRARY_OPENBLAS;
    return NULL;
}

/* Opens one file and finds out which library it is. A refused library stays open, since some start threads
 * that run its code. */
static bool try_file(const char *path, bool by_name) {
    if (!has_room(NULL)) {
        cpu_matmul_library_refuse(path, "memory is too short to open it");
        return false;
    }
    void *handle = open_keeping_float_state(path);
    if (!handle) {
        if (by_name) {
            const char *why = dlerror();
            cpu_matmul_library_refuse(path, why ? why : "cannot be opened");
        }
        return false;
    }
    const char *why;
    if (dlsym(handle, "dnnl_sgemm"))
        why = try_dnnl(handle);
    else if (dlsym(handle, "MKL_Get_Version_String"))
        why = try_mkl(handle);
    else if (dlsym(handle, "openblas_get_corename"))
        why = try_openblas(handle, by_name);
    else
        why = "neither oneDNN nor MKL nor OpenBLAS";
    if (why) cpu_matmul_library_refuse(path, why);
    return why == NULL;
}

static const struct {
    const char *name, *file;
} candidates[] = {{"onednn", "libdnnl.so.3"},
                  {"onednn", "libdnnl.so.2"},
                  {"mkl", "libmkl_rt.so.3"},
                  {"mkl", "libmkl_rt.so.2"},
                  {"openblas", "libopenblas.so.0"}};

/* Returns WEFT_MATMUL, unless the process has more rights than its user. */
static const char *wanted_library(void) {
#if defined(__GLIBC__)
    const char *text = secure_getenv("WEFT_MATMUL");
#else
    const char *text = getenv("WEFT_MATMUL");
#endif
    return text && *text ? text : NULL;
}

static void open_library(void) {
    const char *name = wanted_library();
    bool known = !name || strcmp(name, "own") == 0, found = false;
    if (name && name[0] == '/') {
        known = true;
        found = try_file(name, true);
    }
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !found; i++) {
        bool named = name && strcmp(name, candidates[i].name) == 0;
        known = known || named;
        if (!name || named) found = try_file(candidates[i].file, named);
    }
    if (!known)
        cpu_matmul_library_refuse("WEFT_MATMUL", "must be onednn, mkl, openblas, own or an absolute path");
    if (found) return;
    memset(&in_use, 0, sizeof in_use);
    kind = LIBRARY_OWN;
    snprintf(description, sizeof description, "own kernels (%s)%s%s", weft__cpu_isa_name(weft__cpu_isa()),
             refused[0] ? "; not used: " : "", refused);
}

const weft_matmul_library *weft__matmul_library(void) {
    pthread_once(&once, open_library);
    return &in_use;
}

const char *weft__cpu_matmul_description(void) {
    pthread_once(&once, open_library);
    return description;
}

/* ---- calling ---- */

/* oneDNN compiles its kernels of f32 when it is called first, all at once. */
weft_status weft__library_prepare(weft_context *ctx) {
    enum { N = 64 };
    static atomic_bool ready;
    static float zeros[3][N * N];
    if (kind != LIBRARY_DNNL || atomic_load(&ready)) return WEFT_OK;
    if (!has_room(ctx)) return weft__fail_oom(ctx, ROOM, "the kernels of oneDNN");
    const int threads = weft__library_enter();
    (void)call.dnnl_sgemm('N', 'N', N, N, N, 1, zeros[0], N, zeros[1], N, 0, zeros[2], N);
    weft__library_leave(threads);
    atomic_store(&ready, true);
    return WEFT_OK;
}

/* oneDNN uses as many threads as OpenMP allows for the calling thread, so the number is set to one meanwhile.
 * MKL and OpenBLAS were made sequential when they were opened. */
int weft__library_enter(void) {
    if (kind != LIBRARY_DNNL || !call.omp_get_max_threads || !call.omp_set_num_threads) return 0;
    int threads = call.omp_get_max_threads();
    if (threads != 1) call.omp_set_num_threads(1);
    return threads;
}

void weft__library_leave(int token) {
    if (token > 1) call.omp_set_num_threads(token);
}

/* Returns true if an operand (rows, cols) with these strides is stored by rows ('N') or by columns ('T').
 * *leading is its leading dimension. */
static bool layout(int64_t rows, int64_t cols, int64_t s_row, int64_t s_col, char *trans, int64_t *leading) {
    if (s_col == 1 || cols == 1) {
        *trans = 'N';
        *leading = rows == 1 && s_row < cols ? cols : s_row;
        if (*leading >= cols) return true;
    }
    if (s_row == 1 || rows == 1) {
        *trans = 'T';
        *leading = cols == 1 && s_col < rows ? rows : s_col;
        if (*leading >= rows) return true;
    }
    return false;
}

bool weft__library_fits(const weft_gemm *g) {
    char trans;
    int64_t a, b;
    if (g->m <= 0 || g->n <= 0 || g->k <= 0) return false;
    if (!layout(g->m, g->k, g->a_m, g->a_k, &trans, &a) || !layout(g->k, g->n, g->b_k, g->b_n, &trans, &b))
        return false;
    int64_t c = g->m == 1 ? g->n : g->c_m;
    return c >= g->n && g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX && a <= INT32_MAX &&
           b <= INT32_MAX && c <= INT32_MAX;
}

#define ROW_MAJOR 101
#define CBLAS(t)  ((t) == 'N' ? 111 : (t) == 'T' ? 112 : 113)

void weft__library_f32(const weft_gemm *g, const float *a, const float *b, float *c) {
    char ta = 'N', tb = 'N';
    int64_t lda = 1, ldb = 1, ldc = g->m == 1 ? g->n : g->c_m;
    layout(g->m, g->k, g->a_m, g->a_k, &ta, &lda);
    layout(g->k, g->n, g->b_k, g->b_n, &tb, &ldb);
    float beta = g->add ? 1.0f : 0.0f;
    if (kind == LIBRARY_DNNL)
        call.dnnl_sgemm(ta, tb, g->m, g->n, g->k, 1.0f, a, lda, b, ldb, beta, c, ldc);
    else
        call.cblas_sgemm(ROW_MAJOR, CBLAS(ta), CBLAS(tb), (int)g->m, (int)g->n, (int)g->k, 1.0f, a, (int)lda,
                         b, (int)ldb, beta, c, (int)ldc);
}

void weft__library_f64(const weft_gemm *g, const double *a, const double *b, double *c) {
    char ta = 'N', tb = 'N';
    int64_t lda = 1, ldb = 1, ldc = g->m == 1 ? g->n : g->c_m;
    layout(g->m, g->k, g->a_m, g->a_k, &ta, &lda);
    layout(g->k, g->n, g->b_k, g->b_n, &tb, &ldb);
    call.cblas_dgemm(ROW_MAJOR, CBLAS(ta), CBLAS(tb), (int)g->m, (int)g->n, (int)g->k, 1.0, a, (int)lda, b,
                     (int)ldb, g->add ? 1.0 : 0.0, c, (int)ldc);
}

/* Returns the CBLAS letter of an operand, or 0 if there is none. CBLAS cannot conjugate without transposing.
 * A matrix that has both layouts counts as transposed. */
static char letter_of(int64_t rows, int64_t cols, int64_t s_row, int64_t s_col, bool conj, int64_t *leading) {
    char trans = 0;
    if (conj) return s_row == 1 && s_col >= rows && (*leading = s_col) ? 'C' : 0;
    return layout(rows, cols, s_row, s_col, &trans, leading) ? trans : 0;
}

bool weft__library_takes_complex(const weft_gemm *g, int conj) {
    int64_t leading;
    return weft__matmul_library()->complex && weft__library_fits(g) &&
           letter_of(g->m, g->k, g->a_m, g->a_k, conj & 1, &leading) &&
           letter_of(g->k, g->n, g->b_k, g->b_n, conj & 2, &leading);
}

void weft__library_complex(const weft_gemm *g, weft_dtype dtype, int conj, const void *a, const void *b,
                           void *c) {
    static const float ones[2] = {1, 0};
    static const double one[2] = {1, 0}, none[2] = {0, 0};
    int64_t lda = 1, ldb = 1, ldc = g->m == 1 ? g->n : g->c_m;
    const int ta = CBLAS(letter_of(g->m, g->k, g->a_m, g->a_k, conj & 1, &lda)),
              tb = CBLAS(letter_of(g->k, g->n, g->b_k, g->b_n, conj & 2, &ldb));
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    if (dtype == WEFT_C64)
        call.cblas_cgemm(ROW_MAJOR, ta, tb, m, n, k, ones, a, (int)lda, b, (int)ldb,
                         g->add ? (const void *)ones : none, c, (int)ldc);
    else
        call.cblas_zgemm(ROW_MAJOR, ta, tb, m, n, k, one, a, (int)lda, b, (int)ldb, g->add ? one : none, c,
                         (int)ldc);
}
