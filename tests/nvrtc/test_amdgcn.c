/* Compiles kernel sources for AMD's cards by clang 19, without a card and without ROCm:
 *     test_amdgcn               the sources of models, each for one of two architectures in turn, one with
 * wavefronts of 64 lanes and one with 32 test_amdgcn FOLDER        the sources of models for all
 * architectures, and those in FOLDER (test_ops null --hip-sources FOLDER) for one The code object tells what
 * each kernel needs. A kernel fails that spills more than a few registers, keeps arrays in memory, or
 * declares more local memory than a card gives. FOLDER/report.tsv lists all kernels. Needs Debian's packages
 * clang-19, lld-19 and llvm-19; without them the test is skipped. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvrtc/models.h"

enum { SKIPPED = 77, THREADS = 2, SOURCES_MOST = 4096, PATH_BYTES = 1200 };

/* Sources for matrix cores have the mark of their wavefronts in their names (cuda_sources.h). They must have
 * the instructions, and are compiled for all architectures with such cores: gfx908 compiles no others. */
static const struct {
    const char *name;
    int wave;
    const char *cores; /* NULL: it has no matrix cores */
} archs[] = {{"gfx90a", 64, "v_mfma_f32_16x16x16"},   {"gfx1100", 32, "v_wmma_f32_16x16x16_"},
             {"gfx942", 64, "v_mfma_f32_16x16x16_"},  {"gfx1030", 32, NULL},
             {"gfx1201", 32, "v_wmma_f32_16x16x16_"}, {"gfx908", 64, "v_mfma_f32_16x16x"}};
enum { ARCHS = sizeof archs / sizeof *archs, FEW = 2, USUAL = ARCHS - 1 };

/* Allowed: bytes of a work-item's private memory, spilled vector registers, and bytes of local memory of a
 * group. */
enum { PRIVATE_MOST = 160, SPILLS_MOST = 32, LOCAL_MOST = 64 << 10 };

typedef struct amd_source {
    char path[PATH_BYTES];
    unsigned archs; /* set of the architectures to compile it for */
    bool cores;     /* it is for matrix cores */
} amd_source;

typedef struct needs { /* of a kernel */
    char name[160];
    long local, private, registers, spills, wave;
} needs;

static amd_source sources[SOURCES_MOST];
static int n_sources;
static atomic_int next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int kernels[ARCHS], bad[ARCHS], with_cores[ARCHS];
static long most_registers[ARCHS];
static FILE *report;
static char work_folder[] = "/tmp/weft-amdgcn-XXXXXX";

/* AMD's device libraries compute these in f64, and a remainder in f32. hipRTC links them; here are stand-ins.
 */
static const char stand_ins[] =
    "#define ONE(name) extern \"C\" __attribute__((device, weak, noinline)) double "
    "__ocml_##name##_f64(double x) "
    "{ return x; }\n"
    "#define TWO(name) extern \"C\" __attribute__((device, weak, noinline)) double "
    "__ocml_##name##_f64(double x, "
    "double y) { return x + y; }\n"
    "ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log1p) ONE(sin) ONE(cos) ONE(tanh) ONE(erf) "
    "ONE(erfc)\n"
    "TWO(pow) TWO(hypot) TWO(atan2) TWO(fmod)\n"
    "extern \"C\" __attribute__((device, weak, noinline)) float __ocml_fmod_f32(float x, float y) { return x "
    "+ y; }\n"
    /* the words of CUDA that sources of users may have (tests/ops/defined.c); hipRTC defines them */
    "#define __device__ __attribute__((device))\n"
    "struct amd_dim { unsigned x, y, z; };\n"
    "#define blockIdx (amd_dim{__builtin_amdgcn_workgroup_id_x(), 0, 0})\n"
    "#define threadIdx (amd_dim{__builtin_amdgcn_workitem_id_x(), 0, 0})\n";

/* ---- sources ---- */

/* Returns the architectures with matrix cores for the mark in a name. 0: the name has no mark. */
static unsigned marked(const char *name) {
    const int wave = strstr(name, ".wave64.") ? 64 : strstr(name, ".wave32.") ? 32 : 0;
    unsigned set = 0;
    for (int a = 0; a < ARCHS; a++) set |= (unsigned)(archs[a].cores && archs[a].wave == wave) << a;
    return set;
}

/* Adds all .cu files of a folder, for the architectures of the set, or in turn for one of them. Returns their
 * number. */
static int add_folder(const char *folder, unsigned set, bool turns) {
    const int before = n_sources;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const size_t length = strlen(e->d_name);
        if (length < 4 || strcmp(e->d_name + length - 3, ".cu") != 0 || n_sources == SOURCES_MOST) continue;
        amd_source *s = &sources[n_sources++];
        snprintf(s->path, sizeof s->path, "%s/%s", folder, e->d_name);
        s->archs = marked(e->d_name);
        s->cores = s->archs != 0;
        if (!s->cores) s->archs = turns ? 1u << n_sources % FEW : set;
    }
    if (dir) closedir(dir);
    return n_sources - before;
}

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fputs(text, file);
    return fclose(file) == 0;
}

/* ---- compiling ---- */

/* Returns how many instructions for matrix cores an object file has. */
static int count_cores(const char *object, int arch) {
    char command[300], line[4096];
    int n = 0;
    snprintf(command, sizeof command, "llvm-objdump-19 -d %s", object);
    FILE *text = popen(command, "r");
    while (text && fgets(line, sizeof line, text)) n += strstr(line, archs[arch].cores) != NULL;
    if (text) pclose(text);
    return n;
}

/* Adds to *n the problems of a kernel, and says them unless they are expected. `cores`: it is for matrix
 * cores. Then it may spill nothing. */
static void check(const needs *k, const char *path, int arch, bool cores, int *n, bool quiet) {
    const char *file = strrchr(path, '/') + 1, *wrong = NULL;
    if (k->local > LOCAL_MOST) wrong = "declares too much local memory";
    if (k->private > PRIVATE_MOST) wrong = "keeps too much in private memory";
    if (k->spills > (cores ? 0 : SPILLS_MOST)) wrong = "spills too many registers";
    if (k->wave != archs[arch].wave) wrong = "is for wavefronts of another size";
    if (report)
        fprintf(report, "%s\t%s\t%s\t%ld\t%ld\t%ld\t%ld\n", archs[arch].name, file, k->name, k->registers,
                k->spills, k->private, k->local);
    if (k->registers > most_registers[arch]) most_registers[arch] = k->registers;
    kernels[arch]++;
    if (!wrong) return;
    ++*n;
    if (quiet) return;
    printf("FAIL %s %s: %s %s: local memory %ld (at most %d), private memory %ld (%d), spills %ld (%d), "
           "wavefront %ld\n",
           archs[arch].name, file, k->name, wrong, k->local, LOCAL_MOST, k->private, PRIVATE_MOST, k->spills,
           SPILLS_MOST, k->wave);
}

/* Reads the metadata of a code object. The keys of a kernel are in the order of the alphabet, the last one is
 * .wavefront_size. Returns the number of kernels. */
static int read_notes(FILE *notes, const char *path, int arch, bool cores, int *wrong, bool quiet) {
    char line[4096];
    int n = 0;
    needs k = {.name = ""};
    while (fgets(line, sizeof line, notes)) {
        const char *at = line + strspn(line, " -");
        sscanf(at, ".group_segment_fixed_size: %ld", &k.local);
        sscanf(at, ".name: %159s", k.name);
        sscanf(at, ".private_segment_fixed_size: %ld", &k.private);
        sscanf(at, ".vgpr_count: %ld", &k.registers);
        sscanf(at, ".vgpr_spill_count: %ld", &k.spills);
        if (sscanf(at, ".wavefront_size: %ld", &k.wave) != 1) continue;
        check(&k, path, arch, cores, wrong, quiet);
        k = (needs){.name = ""};
        n++;
    }
    return n;
}

/* Compiles one source, and checks its kernels. Returns the number of problems. `quiet`: problems are
 * expected. */
static int amd_compile(const char *path, int arch, bool cores, int number, bool quiet) {
    char command[3 * PATH_BYTES], object[100], log[120], line[300] = "";
    int wrong = 0;
    snprintf(object, sizeof object, "%s/%d.o", work_folder, number);
    snprintf(log, sizeof log, "%s.log", object);
    /* the options of device/hip/library.c */
    snprintf(command, sizeof command,
             "clang-19 -x hip --cuda-device-only -nogpulib -nogpuinc --no-gpu-bundle-output -O3 -std=c++17 "
             "-ffp-contract=off -fno-strict-aliasing -fwrapv -w --offload-arch=%s -include %s/stand_ins.h -c "
             "'%s' -o %s "
             ">%s 2>&1",
             archs[arch].name, work_folder, path, object, log);
    const bool compiled = system(command) == 0;
    snprintf(command, sizeof command, "llvm-readelf-19 --notes %s 2>/dev/null", object);
    FILE *notes = compiled ? popen(command, "r") : NULL;
    const int on_cores = compiled && cores ? count_cores(object, arch) : 0;
    pthread_mutex_lock(&lock);
    const int found = notes ? read_notes(notes, path, arch, cores, &wrong, quiet) : 0;
    with_cores[arch] += on_cores > 0;
    if (found && cores && !on_cores) {
        wrong++;
        if (!quiet) printf("FAIL %s %s: no instruction for matrix cores\n", archs[arch].name, path);
    }
    FILE *said = compiled ? NULL : fopen(log, "r");
    if (said && !fgets(line, sizeof line, said)) line[0] = 0;
    if (said) fclose(said);
    if (!found && !quiet) printf("FAIL %s %s: %s\n", archs[arch].name, path, compiled ? "no kernel\n" : line);
    pthread_mutex_unlock(&lock);
    if (notes) pclose(notes);
    unlink(object);
    unlink(log);
    return found ? wrong : 1;
}

static void *amd_work(void *user) {
    (void)user;
    for (int i = next++; i < n_sources * ARCHS; i = next++) {
        const int arch = i % ARCHS;
        if (!(sources[i / ARCHS].archs >> arch & 1)) continue;
        const int wrong = amd_compile(sources[i / ARCHS].path, arch, sources[i / ARCHS].cores, i, false);
        pthread_mutex_lock(&lock);
        bad[arch] += wrong;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static bool compile_all(void) {
    pthread_t threads[THREADS];
    int started = 0, all_bad = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, amd_work, NULL) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int a = 0; a < ARCHS; a++) {
        all_bad += bad[a];
        if (kernels[a])
            printf("%s: %d kernels, %d fail, at most %ld registers, %d sources for matrix cores\n",
                   archs[a].name, kernels[a], bad[a], most_registers[a], with_cores[a]);
    }
    printf("amdgcn: sources=%d fail=%d\n", n_sources, all_bad);
    return started > 0 && all_bad == 0;
}

/* ---- the tests ---- */

/* Kernels with a planted fault must fail. */
static bool finds_faults(void) {
    static const char *const faults[] = {
        "W_NOTHING",
        "extern \"C\" __attribute__((global)) void k(float *x) { __attribute__((shared)) static float "
        "y[17000]; "
        "y[__builtin_amdgcn_workitem_id_x()] = *x; __builtin_amdgcn_s_barrier(); *x = y[0]; }",
        "extern \"C\" __attribute__((global)) void k(float *x, int n) { float y[200]; for (int i = 0; i < "
        "200; i++) "
        "y[i] = x[i]; for (int i = 0; i < n; i++) y[i * 7 % 200] += y[i % 200]; *x = y[n % 200]; }",
        /* it should use matrix cores */
        "extern \"C\" __attribute__((global)) void k(float *x) { *x = 1; }"};
    enum { FAULTS = sizeof faults / sizeof *faults };
    char path[100];
    bool good = true;
    for (int i = 0; i < FAULTS; i++) {
        snprintf(path, sizeof path, "%s/fault.cu", work_folder);
        const bool found = write_text(path, faults[i]) && amd_compile(path, 0, i == FAULTS - 1, 0, true) > 0;
        if (!found) printf("FAIL: planted fault %d was not found\n", i);
        good = good && found;
    }
    kernels[0] = 0;
    most_registers[0] = 0;
    unlink(path);
    return good;
}

static bool is_there(const char *program) {
    char command[100];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

int main(int argc, char **argv) {
    static const char *const programs[] = {"clang-19", "ld.lld-19", "llvm-readelf-19", "llvm-objdump-19"};
    char path[PATH_BYTES], models[PATH_BYTES];
    const char *folder = argc > 1 ? argv[1] : NULL;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    for (int i = 0; i < 4; i++)
        if (!is_there(programs[i])) {
            printf("amdgcn: skipped, %s is not installed (Debian: clang-19, lld-19, llvm-19)\n", programs[i]);
            return SKIPPED;
        }
    if (!mkdtemp(work_folder)) return 1;
    snprintf(path, sizeof path, "%s/stand_ins.h", work_folder);
    bool good = write_text(path, stand_ins) && finds_faults();
    snprintf(models, sizeof models, "%s/models", folder ? folder : work_folder);
    mkdir(models, 0777);
    good = write_model_sources(models, "hip") && add_folder(models, (1u << USUAL) - 1, !folder) > 0 && good;
    if (folder) {
        good = add_folder(folder, 1, false) >= 0 && good;
        snprintf(path, sizeof path, "%s/report.tsv", folder);
        report = fopen(path, "w");
        if (report) fprintf(report, "arch\tsource\tkernel\tregisters\tspills\tprivate\tlocal\n");
    }
    good = compile_all() && good;
    if (report) fclose(report);
    snprintf(path, sizeof path, "rm -rf %s", work_folder);
    return system(path) == 0 && good ? 0 : 1;
}
