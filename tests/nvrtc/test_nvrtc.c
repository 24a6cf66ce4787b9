/* Compiles kernel sources for CUDA without a GPU:
 *     test_nvrtc               the golden sources (tests/golden/cuda) for one architecture
 *     test_nvrtc FOLDER [1]    also those of models, for all architectures (1: for one), and the sources
 *                              in FOLDER (test_ops null --sources FOLDER) for one
 * FOLDER/report.tsv lists the registers, stack, spills and shared memory of each kernel. A kernel that spills
 * more than a few words fails, and so does one that declares more shared memory than a card gives. The test
 * also compares what Weft declares of NVRTC with its header, if that is installed. Without NVRTC the test is
 * skipped. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif

#include "base/text.h"
#include "cuda_sources.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu/gpu.h"
#include "nvrtc/models.h"

#if __has_include(<nvrtc.h>)
#define NVRTC_FUNCTION(result, name, hip, arguments)                                                         \
    _Static_assert(__builtin_types_compatible_p(result(*) arguments, __typeof__(&name)),                     \
                   #name " is declared otherwise");
#include "device/gpu/driver/nvrtc.def"
#undef NVRTC_FUNCTION
#endif

enum { SKIPPED = 77, THREADS = 2, SOURCES_MOST = 4096, PATH_BYTES = 1200 };

static const char *const archs[] = {"sm_90a", "sm_75", "sm_80", "sm_86",
                                    "sm_120"}; /* the first one is used where one is enough */
enum { ARCHS = sizeof archs / sizeof *archs };

/* Allowed bytes of a thread's stack, and of spill stores and loads together. The assembler may spill a few
 * words to keep one more group resident. More would mean arrays that should be in registers. */
enum { STACK_MOST = 160, SPILLS_MOST = 160 };

/* Bytes of shared memory that source may declare (CUDA C++ Programming Guide, technical specifications).
 * ptxas refuses more, NVRTC 13.0 does not. */
enum { SHARED_MOST = 48 << 10 };

typedef struct cuda_source {
    char *whole;
    char name[128];
    int archs; /* compile for the first `archs` architectures */
} cuda_source;

typedef struct total {
    int sources, kernels, refused, spilled, too_large, most_registers;
    double seconds; /* compile time, all threads together */
    char greediest[128];
} total;

static cuda_source sources[SOURCES_MOST];
static int n_sources;
static atomic_int next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static total totals[ARCHS];
static FILE *report;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- kernel sources ---- */

/* The file, after `room` free bytes. */
static char *read_file(const char *path, size_t room) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *whole = fstat(fileno(file), &info) == 0 ? calloc(1, room + (size_t)info.st_size + 1) : NULL;
    if (whole && fread(whole + room, 1, (size_t)info.st_size, file) != (size_t)info.st_size) {
        free(whole);
        whole = NULL;
    }
    fclose(file);
    return whole;
}

/* A golden file contains only rendered kernels, each after its kernel form, and some have the same name. Adds
 * the prelude and gives each kernel its own name. */
static char *read_golden(const char *path) {
    static const unsigned prelude =
        WEFT_PRELUDE_LANES | WEFT_PRELUDE_F32 | WEFT_PRELUDE_F64 | WEFT_PRELUDE_RANDOM | WEFT_PRELUDE_TENSOR;
    static const char form[] = "/*\nkernel ";
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_CUDA, prelude, parts);
    char *golden = read_file(path, 0), name[128], *whole;
    size_t size = 1;
    if (!golden) return NULL;
    for (int i = 0; i < n; i++) size += strlen(parts[i]);
    size += 2 * strlen(golden) + 4096;
    whole = calloc(1, size);
    weft_text out = weft__text(whole, whole ? size : 0);
    for (int i = 0; i < n; i++) weft__put(&out, "%s", parts[i]);
    weft__put(&out, "#define S float\n"); /* for epilogues, whose matmul kernel would define it */
    int number = 0;
    for (const char *at = strstr(golden, form), *more; at; at = more, number++) {
        more = strstr(at + 1, form);
        if (sscanf(at + strlen(form), "%127[^ ]", name) != 1) break;
        weft__put(&out, "#define %s %s_%d\n", name, name, number);
        weft__put(&out, "%.*s", (int)(more ? more - at : (long)strlen(at)), at);
        weft__put(&out, "#undef %s\n", name);
    }
    free(golden);
    return whole;
}

/* Adds all .cu files of a folder. Returns their number. */
static int add_folder(const char *folder, bool golden, int n_archs) {
    char path[PATH_BYTES];
    const int before = n_sources;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const size_t length = strlen(e->d_name);
        if (length < 4 || strcmp(e->d_name + length - 3, ".cu") != 0 || n_sources == SOURCES_MOST) continue;
        cuda_source *t = &sources[n_sources];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(t->name, sizeof t->name, "%s", e->d_name);
        t->archs = n_archs;
        t->whole = golden ? read_golden(path) : read_file(path, 0);
        if (t->whole) n_sources++;
    }
    if (dir) closedir(dir);
    return n_sources - before;
}

/* ---- messages of the assembler ---- */

static int number_before(const char *line, const char *end, const char *words) {
    const char *at = strstr(line, words);
    if (!at || at >= end) return 0;
    while (at > line && at[-1] == ' ') at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return (int)strtol(at, NULL, 10);
}

/* Reports one kernel, from "Compiling entry function 'NAME'" to the next. */
static void tell_kernel(const cuda_source *t, int arch, const char *from, const char *end) {
    char kernel[128];
    const char *quote = strchr(from, '\'');
    if (sscanf(quote ? quote : "", "'%127[^']", kernel) != 1) return;
    const int stack = number_before(from, end, " bytes stack frame");
    const int stores = number_before(from, end, " bytes spill stores");
    const int loads = number_before(from, end, " bytes spill loads");
    const int shared = number_before(from, end, " bytes smem"),
              registers = number_before(from, end, " registers");
    total *all = &totals[arch];
    all->kernels++;
    if (registers > all->most_registers) {
        all->most_registers = registers;
        snprintf(all->greediest, sizeof all->greediest, "%s", kernel);
    }
    if (report)
        fprintf(report, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", archs[arch], t->name, kernel, registers, stack,
                stores, loads, shared);
    if (shared > SHARED_MOST) {
        all->too_large++;
        printf("FAIL %s %s: %s declares %d bytes of shared memory (at most %d)\n", archs[arch], t->name,
               kernel, shared, SHARED_MOST);
    }
    if (stack <= STACK_MOST && stores + loads <= SPILLS_MOST) return;
    all->spilled++;
    printf("FAIL %s %s: %s has %d bytes of stack (at most %d) and spills %d + %d (%d)\n", archs[arch],
           t->name, kernel, stack, STACK_MOST, stores, loads, SPILLS_MOST);
}

static void tell(const cuda_source *t, int arch, const char *log) {
    static const char head[] = "Compiling entry function ";
    for (const char *at = strstr(log, head), *more; at; at = more) {
        more = strstr(at + 1, head);
        tell_kernel(t, arch, at, more ? more : at + strlen(at));
    }
}

/* ---- compiling ---- */

static void compile(weft_context *ctx, const cuda_source *t, int arch) {
    weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = t->whole, .arch = archs[arch], .verbose = true};
    void *cubin = NULL;
    size_t bytes = 0;
    const double begin = seconds();
    weft__nvrtc_compile(&job);
    const double took = seconds() - begin;
    char *log = weft__nvrtc_log(ctx, &job);
    const weft_status status = weft__nvrtc_take(ctx, &job, t->name, &cubin, &bytes);
    pthread_mutex_lock(&lock);
    totals[arch].sources++;
    totals[arch].seconds += took;
    if (status == WEFT_OK && bytes > 0 && log) {
        tell(t, arch, log);
    } else {
        printf("FAIL %s\n", weft_last_error(ctx));
        totals[arch].refused++;
    }
    pthread_mutex_unlock(&lock);
    weft__free(ctx, cubin);
    weft__free(ctx, log);
}

static bool is_for(const cuda_source *t, int arch) {
    const bool new = strstr(t->name, CUDA_SOURCES_MARK) != NULL;
    return arch < t->archs && !(new &&strtol(archs[arch] + strlen("sm_"), NULL, 10) < CUDA_SOURCES_NEW);
}

static void *work(void *user) {
    weft_context ctx = {0};
    (void)user;
    for (int i = next++; i < n_sources * ARCHS; i = next++)
        if (is_for(&sources[i / ARCHS], i % ARCHS)) compile(&ctx, &sources[i / ARCHS], i % ARCHS);
    weft__strings_free(&ctx);
    return NULL;
}

static bool compile_all(void) {
    pthread_t threads[THREADS];
    int started = 0, bad = 0;
    const double begin = seconds();
    while (started < THREADS && pthread_create(&threads[started], NULL, work, NULL) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int a = 0; a < ARCHS; a++) {
        const total *t = &totals[a];
        bad += t->refused + t->spilled + t->too_large;
        if (t->sources)
            printf("%s: %d sources, %d kernels, %d refused, %d spill, at most %d registers (%s), %.1f s of "
                   "compiling\n",
                   archs[a], t->sources, t->kernels, t->refused, t->spilled, t->most_registers, t->greediest,
                   t->seconds);
    }
    printf("nvrtc: sources=%d fail=%d in %.1f s\n", n_sources, bad, seconds() - begin);
    return started > 0 && bad == 0;
}

/* ---- the tests ---- */

static bool says_what_is_missing(void) {
    weft__nvrtc_file = "libabsent.so";
    weft__nvrtc_forget();
    const char *why = weft__nvrtc_open();
    const bool said = why && strstr(why, "libabsent.so cannot be opened: install NVRTC");
    weft__nvrtc_file = "libm.so.6"; /* not NVRTC */
    weft__nvrtc_forget();
    why = weft__nvrtc_open();
    const bool named = !why || strstr(why, "libm.so.6 has no nvrtcVersion");
    weft__nvrtc_file = NULL;
    weft__nvrtc_forget();
    if (!said || !named) printf("FAIL: what is missing is not said: %s\n", why ? why : "");
    return said && named;
}

/* An invalid kernel source must give an error with the compiler's message. */
static bool says_what_is_wrong(void) {
    weft_context ctx = {0};
    weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = "W_NOTHING", .arch = archs[0]};
    void *cubin;
    size_t bytes;
    weft__nvrtc_compile(&job);
    const weft_status status = weft__nvrtc_take(&ctx, &job, "nothing", &cubin, &bytes);
    const char *words = weft_last_error(&ctx);
    const bool said = status == WEFT_ERR_DEVICE && !cubin && strstr(words, "nothing for sm_90a") &&
                      strstr(words, "error: ");
    if (!said) printf("FAIL: %s\n", words);
    weft__strings_free(&ctx);
    return said;
}

static bool add_models(const char *folder, int n_archs) {
    char models[PATH_BYTES];
    snprintf(models, sizeof models, "%s/models", folder);
    mkdir(models, 0777);
    return write_model_sources(models, "cuda") && add_folder(models, false, n_archs) > 0;
}

int main(int argc, char **argv) {
    char path[PATH_BYTES];
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    const char *root = getenv("WEFT_SOURCE_DIR"), *folder = argc > 1 ? argv[1] : NULL;
    const int n_archs = argc == 2 ? ARCHS : 1;
    bool good = says_what_is_missing();
    const char *why = weft__nvrtc_open();
    int major, minor;
    if (why) {
        printf("nvrtc: skipped, %s\n", why);
        return good ? SKIPPED : 1;
    }
    weft__nvrtc_version(&major, &minor);
    printf("nvrtc: version %d.%d%s\n", major, minor,
           weft__nvrtc_knows(90) ? "" : ", which does not know sm_90");
    good = says_what_is_wrong() && good;
    snprintf(path, sizeof path, "%s/tests/golden/cuda", root ? root : ".");
    good = add_folder(path, true, n_archs) > 0 && good;
    if (folder) {
        good = add_models(folder, n_archs) && add_folder(folder, false, 1) >= 0 && good;
        snprintf(path, sizeof path, "%s/report.tsv", folder);
        report = fopen(path, "w");
        if (report)
            fprintf(report, "arch\tsource\tkernel\tregisters\tstack\tspill_stores\tspill_loads\tshared\n");
    }
    good = compile_all() && good;
    if (report) fclose(report);
    for (int i = 0; i < n_sources; i++) free(sources[i].whole);
    return good ? 0 : 1;
}
