/* NVRTC for tests. A "cubin" is a shared library that the host's C++ compiler makes from the kernel source,
 * with device.h in front of it. This file must not know the driver. Read next: device.h, rooms.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cubins.h"
#include "rooms.h"
#ifdef FAKE_HIP
#include "hip/fake_hip.h"
#endif

typedef struct program {
    char *text, *log, *cubin;
    int arch;
    char name[16]; /* of AMD's architecture, such as "gfx90a" */
    size_t cubin_bytes;
} program;
typedef program *nvrtcProgram;

enum { OK, OUT_OF_MEMORY, INVALID_INPUT = 3, INVALID_PROGRAM, INVALID_OPTION, COMPILATION };

#ifdef FAKE_HIP /* hipRTC's names and options */
#define NVRTC_FUNCTION(result, name, hip, arguments) result name arguments __asm__(#hip);
#define NVRTC_ONLY(result, name, arguments)          result name arguments;
#define ARCH_OPTION                                  "--offload-arch=gfx"
enum { MAJOR = 6, MINOR = 3, SHORTEST = 1 };
static const int archs[] = {900, 906, 908, 1030, 1100, 1201, 90, 942};
#else
#define NVRTC_FUNCTION(result, name, hip, arguments) result name arguments;
#define ARCH_OPTION                                  "--gpu-architecture=sm_"
enum { MAJOR = 13, MINOR = 0, SHORTEST = 2 };
static const int archs[] = {75, 80, 86, 90, 120};
#endif
#include "device/gpu/driver/nvrtc.def"
#undef NVRTC_FUNCTION
#undef NVRTC_ONLY
enum { ARCHS = sizeof archs / sizeof *archs };

unsigned nvrtcVersion(int *major, int *minor) {
    *major = MAJOR;
    *minor = MINOR;
    return OK;
}

unsigned nvrtcGetNumSupportedArchs(int *count) {
    *count = ARCHS;
    return OK;
}

unsigned nvrtcGetSupportedArchs(int *list) {
    memcpy(list, archs, sizeof archs);
    return OK;
}

const char *nvrtcGetErrorString(unsigned result) {
    static const char *const names[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "",
                                        "NVRTC_ERROR_INVALID_INPUT",
                                        "NVRTC_ERROR_INVALID_PROGRAM",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION"};
    return result <= COMPILATION ? names[result] : "NVRTC_ERROR unknown";
}

unsigned nvrtcCreateProgram(nvrtcProgram *p, const char *text, const char *name, int n_headers,
                            const char *const *headers, const char *const *names) {
    (void)name, (void)headers, (void)names;
    if (!p || !text || n_headers) return INVALID_INPUT;
    *p = calloc(1, sizeof **p);
    if (*p) (*p)->text = strdup(text);
    return *p ? OK : OUT_OF_MEMORY;
}

unsigned nvrtcDestroyProgram(nvrtcProgram *p) {
    if (!p || !*p) return INVALID_PROGRAM;
    free((*p)->text);
    free((*p)->log);
    free((*p)->cubin);
    free(*p);
    *p = NULL;
    return OK;
}

/* ---- compiling ---- */

static char *read_file(const char *folder, const char *name, size_t *bytes) {
    char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *all = malloc((size_t)size + 1);
    *bytes = fread(all, 1, (size_t)size, file);
    all[*bytes] = 0;
    fclose(file);
    return all;
}

static int command(const char *folder, const char *format) {
    char text[2000];
    snprintf(text, sizeof text, format, folder, folder, folder);
    return system(text);
}

/* Translates asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(y)); to fake_asm_cvt_f32_f16(x, y); and returns the
 * end of the statement. */
static const char *put_asm(const char *from, FILE *to) {
    const char *at = strchr(from, '"') + 1, *end = strchr(from, ';');
    fprintf(to, "FAKE_HERE(fake_asm_");
    for (; *at != ' ' && *at != ';'; at++) fputc(*at == '.' ? '_' : *at, to);
    end = strchr(end + 1, ';'); /* the first one is inside the instruction */
    const char *before = "";
    fputc('(', to);
    for (const char *open = strchr(strchr(at, '"'), '('); open && open < end; open = strchr(open, '(')) {
        int depth = 0;
        fputs(before, to);
        for (;; open++) {
            depth += (*open == '(') - (*open == ')');
            fputc(*open, to);
            if (depth == 0) break;
        }
        before = ", ";
    }
    fprintf(to, "))");
    for (; from < end; from++) /* keeps the numbers of lines */
        if (*from == '\n') fputc('\n', to);
    return end;
}

static const char kernel_mark[] = "FAKE_GLOBAL", bounds_mark[] = "FAKE_BOUNDS(";

/* Returns the end of the marks before a kernel, which give the most threads of a block in parentheses: from
 * *bounds, *n characters. */
static const char *end_of_marks(const char *at, const char **bounds, int *n) {
    at += strlen(kernel_mark);
    at += strspn(at, " \n");
    *bounds = "1024";
    *n = 4;
    if (strncmp(at, bounds_mark, strlen(bounds_mark)) != 0) return at;
    *bounds = at += strlen(bounds_mark);
    const char *comma = NULL; /* before the number of blocks in a multiprocessor */
    for (int depth = 1; *at; at++) {
        if ((depth += (*at == '(') - (*at == ')')) == 0) break;
        if (*at == ',' && depth == 1) comma = at;
    }
    *n = (int)((comma ? comma : at) - *bounds);
    return at + 1;
}

/* Writes device.h, the preprocessed source with translated asm statements, and a line for each kernel. The
 * source is also stored as it is, for reports. */
static void put_text(const char *text, FILE *to) {
    const char *bounds;
    int n;
    fprintf(to, "#include \"device.h\"\nasm(\".pushsection .rodata\\n.globl fake_text\\nfake_text: .incbin "
                "\\\"whole.cc\\\"\\n.byte 0\\n.popsection\");\n#line 1\n");
    for (const char *at = text; *at;) {
        if (strncmp(at, kernel_mark, strlen(kernel_mark)) == 0)
            at = end_of_marks(at, &bounds, &n);
        else if ((strncmp(at, "asm(", 4) == 0 || strncmp(at, "asm volatile(", 13) == 0) &&
                 (at == text || strchr(" ;{}\n\t", at[-1])))
            at = put_asm(at, to);
        else
            fputc(*at++, to);
    }
    for (const char *at = strstr(text, kernel_mark); at; at = strstr(at + 1, kernel_mark)) {
        const char *end = strchr(end_of_marks(at, &bounds, &n), '('), *name = end;
        while (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
               (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= 'A' && name[-1] <= 'Z'))
            name--;
        fprintf(to, "FAKE_KERNEL(%.*s, (%.*s))\n", (int)(end - name), name, n, bounds);
    }
}

static void write_file(const char *folder, const char *name, const char *text,
                       void (*put)(const char *, FILE *)) {
    char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return;
    put(text, file);
    fclose(file);
}

static void put_plain(const char *text, FILE *to) { fputs(text, to); }

/* Writes the bytes of shared memory of each kernel, as symbols for the linker. Returns false and writes to
 * the log if a kernel has more than ptxas allows. */
static bool check_rooms(const char *folder) {
    size_t bytes;
    char path[500];
    char *object = read_file(folder, "text.o", &bytes);
    snprintf(path, sizeof path, "%s/rooms.ld", folder);
    FILE *symbols = fopen(path, "w");
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *log = fopen(path, "w");
    const bool fits = object && symbols && log && fake_put_rooms(object, symbols, log);
    if (symbols) fclose(symbols);
    if (log) fclose(log);
    free(object);
    return fits;
}

/* Is something to be told of each access? Then the compiler adds a call before it. */
static bool watches_accesses(void) { return getenv("FAKE_CUDA_RACES") || getenv("FAKE_CUDA_DELAYS"); }

static const char compiler_options[] =
    "-std=c++17 -O1 -w -fPIC -march=native -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fwrapv "
    "-fno-gnu-unique -ffunction-sections -fdata-sections -malign-data=abi -fsanitize=alignment";

static const char *watch(void) {
    return watches_accesses()
               ? "-g1 -fsanitize=thread -DFAKE_WATCHED --param tsan-instrument-func-entry-exit=0"
               : "";
}

/* The options that depend on the GPU. */
static void put_machine(const program *p, char *machine, size_t room) {
#ifdef FAKE_HIP
    snprintf(machine, room,
             "-D__AMDGCN__ -D__%s__ -D__HIP__ -DFAKE_HIP -DFAKE_WAVE=%d -DW_WAVE_BARRIER=FAKE_WAVE_BARRIER "
             "-DW_WAVE_PERMUTE=FAKE_WAVE_PERMUTE "
             "-DW_TWO_WAVES=",
             p->name, fake_hip_wave());
#else
    snprintf(machine, room, "-D__CUDACC_RTC__ -D__CUDA_ARCH__=%d", 10 * p->arch);
#endif
}

/* Compiles the source in a folder of its own. Sets the log and, if the source has no errors, the cubin. */
static unsigned compile_source(program *p, const char *machine) {
    char folder[] = "/tmp/fake-nvrtc-XXXXXX", first[800];
    size_t bytes;
    if (!mkdtemp(folder)) return OUT_OF_MEMORY;
    write_file(folder, "text.cu", p->text, put_plain);
    snprintf(first, sizeof first,
             "c++ -x c++ -std=c++17 -E -P -w -D__global__=FAKE_GLOBAL "
             "'-D__launch_bounds__(...)=FAKE_BOUNDS(__VA_ARGS__)' "
             "'-DW_MORE_SHARED(type,name)=type *const name = (type *)fake_now->shared' "
             "'-DW_STASH_ROOM(name)=char *const name = (char *)fake_now->shared' "
             "%s %%s/text.cu >%%s/whole.cc 2>%%s/log",
             machine);
    int failed = command(folder, first);
    char *whole = failed ? NULL : read_file(folder, "whole.cc", &bytes);
    if (whole) {
        write_file(folder, "text.cc", whole, put_text);
        char second[1500];
        snprintf(second, sizeof second, "cd %%s && c++ -c %s %s %s -I" FAKE_CUDA_FOLDER " text.cc >log 2>&1",
                 compiler_options, machine, watch());
        failed = command(folder, second) || !check_rooms(folder) ||
                 command(folder, "c++ -shared -nostartfiles %s/text.o %s/rooms.ld -o %s/cubin");
    }
    free(whole);
    p->log = read_file(folder, "log", &bytes);
    if (!failed) p->cubin = read_file(folder, "cubin", &p->cubin_bytes);
    if (!getenv("FAKE_CUDA_KEEP")) (void)command(folder, "rm -rf %s");
    return p->cubin ? OK : COMPILATION;
}

/* Adds what all kernels depend on: options, files, and the compiler. */
static cubin_key begin_key(const char *machine) {
    static const char *const files[] = {"nvrtc.c",         "rooms.c",          "device.h",
                                        "fake.h",          "tensor.h",         "../hip/device_hip.h",
                                        "../hip/matrix.h", "../hip/fake_hip.h"};
    static char version[200]; /* of the compiler; "" until it is known */
    cubin_key key = {0};
    FILE *from = *version ? NULL : popen("c++ --version", "r");
    if (from && !fgets(version, sizeof version, from)) strcpy(version, "unknown");
    if (from) pclose(from);
    cubin_add(&key, version, strlen(version));
    cubin_add(&key, machine, strlen(machine));
    cubin_add(&key, watch(), strlen(watch()));
    cubin_add(&key, compiler_options, sizeof compiler_options);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = 0;
        char *all = read_file(FAKE_CUDA_FOLDER, files[i], &bytes);
        if (all) cubin_add(&key, all, bytes);
        free(all);
    }
    return key;
}

/* Takes the compiled kernel from the folder $FAKE_CUDA_CACHE, or compiles it and stores it there. */
static unsigned compile(program *p) {
    char machine[200];
    const char *kept = getenv("FAKE_CUDA_KEEP") ? NULL : getenv("FAKE_CUDA_CACHE");
    put_machine(p, machine, sizeof machine);
    if (!kept) return compile_source(p, machine);
    cubin_key key = begin_key(machine);
    cubin_add(&key, p->text, strlen(p->text));
    p->cubin = cubin_find(kept, key, &p->cubin_bytes);
    if (p->cubin) return OK;
    mkdir(kept, 0777);
    const unsigned result = compile_source(p, machine);
    if (result == OK) cubin_keep(kept, key, p->cubin, p->cubin_bytes);
    return result;
}

unsigned nvrtcCompileProgram(nvrtcProgram p, int n_options, const char *const *options) {
    int known = 0;
    if (!p) return INVALID_PROGRAM;
    for (int i = 0; i < n_options; i++) {
        static const char arch[] = ARCH_OPTION;
        if (strncmp(options[i], arch, sizeof arch - 1) == 0)
            for (int k = 0; k < ARCHS; k++) {
                p->arch = atoi(options[i] + sizeof arch - 1);
                snprintf(p->name, sizeof p->name, "gfx%.*s", (int)strcspn(options[i] + sizeof arch - 1, ":"),
                         options[i] + sizeof arch - 1);
                known += archs[k] == p->arch;
            }
        else if (strncmp(options[i], "--", SHORTEST) != 0)
            return INVALID_OPTION;
    }
    return known == 1 ? compile(p) : INVALID_OPTION;
}

unsigned nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes) {
    if (!p) return INVALID_PROGRAM;
    *bytes = p->log ? strlen(p->log) + 1 : 1;
    return OK;
}

unsigned nvrtcGetProgramLog(nvrtcProgram p, char *log) {
    if (!p) return INVALID_PROGRAM;
    strcpy(log, p->log ? p->log : "");
    return OK;
}

unsigned nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes) {
    if (!p || !p->cubin) return INVALID_PROGRAM;
    *bytes = p->cubin_bytes;
    return OK;
}

unsigned nvrtcGetCUBIN(nvrtcProgram p, char *cubin) {
    if (!p || !p->cubin) return INVALID_PROGRAM;
    memcpy(cubin, p->cubin, p->cubin_bytes);
    return OK;
}
