/* The instructions of the hottest kernels: counted in the SASS that NVRTC makes for sm_90a, and compared with
 * the ceilings in tests/nvrtc/sass.tsv. Hottest are those of Weft's own kernels that take longest in a step
 * on an H200 without libraries, by the model of the card (device/gpu/card). No card is needed.
 *
 *     test_sass            compares; a kernel that needs more than its ceiling fails, and one that got much
 * better UPDATE=1 test_sass   writes the table: review what changes
 *
 * Counted are the instructions of the loops that move most bytes from or to global memory, and of those that
 * multiply most, without the loops inside of them: for each byte, and for each operation. A kernel without
 * loops counts as a whole. Without NVRTC, with another major version than the table's, or without nvdisasm
 * the test is skipped.
 *
 * Must not know: what kernels compute. Read next: src/device/gpu/card/price.c. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu/backend/program.h"
#include "device/gpu/card/card.h"
#include "device/null/null.h"
#include "train/analysis/planning.h"

enum { SKIPPED = 77, HOT_MOST = 32, LAUNCHES_MOST = 600, LINES_MOST = 40000, PATH_BYTES = 600 };
enum { LOOPS_MOST = 2000, LABELS_MOST = 20000 };
#define LABEL  ".L_x_" /* of nvdisasm */
#define ARCH   "sm_90a"
#define SLACK  1.02 /* above the ceiling */
#define BETTER 0.75 /* of the ceiling: then it must be lowered */

/* ---- the hottest kernels ---- */

typedef struct hot {
    char name[280]; /* net and work */
    char function[64];
    char *source; /* with the prelude */
    double seconds;
    int items;
    bool multiplies; /* it is a matmul, a convolution or attention */
    /* found in SASS */
    int registers, warps;      /* warps of a multiprocessor */
    double per_byte, per_flop; /* instructions of a work-item; 0: it moves or multiplies nothing */
} hot;

#define GPT2                                                                                                 \
    "data.source=tokens", "data.path=none.bin", "model.type=gpt", "model.layers=12", "model.heads=12",       \
        "model.width=768", "model.context=1024", "model.vocab=50304", "train.batch=64",                      \
        "train.precision=bf16"
#define RESNET                                                                                               \
    "task=classification", "data.source=cifar10", "data.path=c.bin", "data.val_fraction=0",                  \
        "train.batch=512", "model.type=resnet", "model.depth=20", "model.width=64", "train.precision=bf16"

static const struct net {
    const char *name, *card;
    int kernels; /* so many of its hottest, if they are not in the list yet */
    const char *settings[14];
} nets[] = {
    {"gpt2", "card:h200", 6, {GPT2}},
    {"gpt2 alone", "card:own.json", 6, {GPT2}},
    {"resnet", "card:h200", 3, {RESNET}},
    {"resnet alone", "card:own.json", 3, {RESNET}},
    {"mlp alone",
     "card:own.json",
     2,
     {"task=classification", "data.source=idx", "data.path=x.idx", "data.labels=y.idx", "data.val_fraction=0",
      "train.batch=128", "model.type=mlp", "model.hidden=[512]"}},
};
enum { NETS = sizeof nets / sizeof *nets, SETTINGS = 14 };

static weft_card card;
static hot hottest[HOT_MOST], found[LAUNCHES_MOST];
static int n_hottest, n_found;

static char *whole_source(const weft_launch *l) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_CUDA, l->prelude, parts);
    size_t size = strlen(l->source) + 1;
    for (int i = 0; i < n; i++) size += strlen(parts[i]);
    char *whole = calloc(1, size);
    weft_text text = weft__text(whole, whole ? size : 0);
    for (int i = 0; i < n; i++) weft__put(&text, "%s", parts[i]);
    weft__put(&text, "%s", l->source);
    return whole;
}

/* Adds a launch to the list; launches of one kernel are added up. */
static void add_launch(const weft_launch *l, const weft_command *command) {
    if (l->call) return;
    hot h = {.seconds = weft__card_price(&card, l, false).seconds,
             .items = l->items[0],
             .source = whole_source(l)};
    char what[128];
    const bool heavy = command->kind == WEFT_COMMAND_HEAVY && strcmp(l->name, "fused_launch") != 0;
    h.multiplies = heavy && weft__heavy_class(&command->heavy)->work != WEFT_WORK_OTHER;
    snprintf(what, sizeof what, "%s", l->name);
    if (heavy) weft__heavy_class(&command->heavy)->describe(&command->heavy, what, sizeof what);
    const bool same = !heavy || strncmp(what, l->name, strlen(l->name)) == 0;
    snprintf(h.name, sizeof h.name, "%s%s%s", same ? what : l->name, same ? "" : " of ", same ? "" : what);
    snprintf(h.function, sizeof h.function, "%s", l->name);
    for (int i = 0; i < n_found; i++) {
        if (strcmp(found[i].source, h.source) != 0 || strcmp(found[i].function, h.function) != 0) continue;
        found[i].seconds += h.seconds;
        free(h.source);
        return;
    }
    if (n_found < LAUNCHES_MOST)
        found[n_found++] = h;
    else
        free(h.source);
}

static void forget_found(void) {
    for (int i = 0; i < n_found; i++) free(found[i].source);
    n_found = 0;
}

/* Each program comes plain and fused, after small ones that make the parameters. The last one counts. */
static void on_program(const weft_gpu_program *p, const weft_commands *commands) {
    forget_found();
    for (int l = 0; l < p->launches.count; l++)
        add_launch(&p->launches.list[l], &commands->list[p->commands[l]]);
}

static int by_seconds(const void *a, const void *b) {
    const hot *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static bool plan(const struct net *net) {
    weft__config config;
    weft__dataset data = {0};
    weft__planned planned;
    weft_status status = WEFT_OK;
    weft__config_init(&config);
    for (int i = 0; i < SETTINGS && net->settings[i] && status == WEFT_OK; i++)
        status = weft__config_set(&config, net->settings[i]);
    if (status == WEFT_OK) status = weft__config_resolve(&config);
    if (status == WEFT_OK) status = weft__planning_data(&config, &data);
    if (status == WEFT_OK) status = weft__planning_step(&config, &data, net->card, &planned);
    if (status != WEFT_OK) printf("FAIL %s: %s\n", net->name, weft_last_error(NULL));
    weft__dataset_free(NULL, &data);
    weft__config_free(&config);
    return status == WEFT_OK;
}

static bool is_listed(const hot *h) {
    for (int i = 0; i < n_hottest; i++)
        if (strcmp(hottest[i].source, h->source) == 0 && strcmp(hottest[i].function, h->function) == 0)
            return true;
    return false;
}

/* Names kernel i. Variants of one kernel are numbered by their time. */
static void name_hot(const char *net, int i) {
    char name[sizeof hottest->name];
    int variant = 1;
    snprintf(name, sizeof name, "%s: %.200s", net, hottest[i].name);
    for (int k = 0; k < i; k++) variant += strncmp(hottest[k].name, name, strlen(name)) == 0;
    snprintf(hottest[i].name, sizeof hottest->name, "%.250s", name);
    if (variant > 1) snprintf(hottest[i].name, sizeof hottest->name, "%.250s (%d)", name, variant);
}

/* Takes the hottest kernels of a net. */
static void take_hottest(const struct net *net) {
    int taken = 0;
    qsort(found, (size_t)n_found, sizeof *found, by_seconds);
    for (int i = 0; i < n_found && taken < net->kernels && n_hottest < HOT_MOST; i++) {
        if (is_listed(&found[i])) continue;
        hottest[n_hottest] = found[i];
        name_hot(net->name, n_hottest);
        found[i].source = NULL;
        n_hottest++, taken++;
    }
    forget_found();
}

static bool write_data(void) {
    enum { SAMPLES = 512 };
    static const unsigned char images[16] = {0, 0, 8, 3, 0, 0, SAMPLES >> 8, 0, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char labels[8] = {0, 0, 8, 1, 0, 0, SAMPLES >> 8, 0};
    FILE *x = fopen("x.idx", "wb"), *y = fopen("y.idx", "wb"), *c = fopen("c.bin", "wb"),
         *f = fopen("own.json", "w");
    if (!x || !y || !c || !f) return false;
    fwrite(images, 1, sizeof images, x);
    fwrite(labels, 1, sizeof labels, y);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 28 * 28; k++) putc((i * 7 + k * 3) % 251, x);
        putc(i % 10, c);
        for (int k = 0; k < 3072; k++) putc((i * 5 + k) % 251, c);
        putc(i % 10, y);
    }
    fputs("{\"like\": \"h200\", \"libraries\": false}", f);
    return fclose(x) + fclose(y) + fclose(c) + fclose(f) == 0;
}

static bool find_hottest(void) {
    bool all = write_data() && weft__card_find(NULL, "h200", &card) == WEFT_OK;
    weft__null_watch = on_program;
    for (int i = 0; i < NETS && all; i++) {
        all = plan(&nets[i]);
        if (all) take_hottest(&nets[i]);
    }
    weft__null_watch = NULL;
    unlink("x.idx"), unlink("y.idx"), unlink("c.bin"), unlink("own.json");
    return all;
}

/* ---- SASS ---- */

typedef struct line {
    long at;
    double bytes, flops; /* of one work-item */
} line;
static line lines[LINES_MOST];
static int n_lines;

/* Bytes that an instruction moves from or to global memory. */
static double bytes_of(const char *op) {
    const bool global = strncmp(op, "LDG", 3) == 0 || strncmp(op, "STG", 3) == 0;
    if (!global) return 0;
    const size_t n = strcspn(op, " ");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), op);
    if (strncmp(name, "LDGSTS", 6) == 0) return strstr(name, ".128") ? 16 : strstr(name, ".64") ? 8 : 4;
    if (strstr(name, ".128")) return 16;
    if (strstr(name, ".64")) return 8;
    if (strstr(name, ".U16") || strstr(name, ".S16")) return 2;
    return strstr(name, ".U8") || strstr(name, ".S8") ? 1 : 4;
}

/* Multiplications and additions of an instruction. A tensor core does those of 32 work-items at once. */
static double flops_of(const char *op) {
    if (strncmp(op, "HMMA.16816", 10) == 0) return 2.0 * 16 * 8 * 16 / 32;
    if (strncmp(op, "HMMA.1688", 9) == 0) return 2.0 * 16 * 8 * 8 / 32;
    if (strncmp(op, "HMMA", 4) == 0) return 2.0 * 16 * 8 * 4 / 32;
    return strncmp(op, "FFMA", 4) == 0 ? 2 : 0;
}

typedef struct loop {
    long start, end;
    double instructions, bytes, flops; /* its own, not those of loops inside */
} loop;
static loop loops[LOOPS_MOST];
static int n_loops;

/* Returns the innermost loop around a place, or NULL. */
static loop *loop_around(long at) {
    loop *best = NULL;
    for (int i = 0; i < n_loops; i++)
        if (at >= loops[i].start && at <= loops[i].end &&
            (!best || loops[i].end - loops[i].start < best->end - best->start))
            best = &loops[i];
    return best;
}

/* Reads one instruction, which follows its place as a comment. Returns the number of the label that it
 * branches to, or -1. */
static int read_line(const char *text) {
    const char *op = strstr(text, "*/") + 2;
    const long at = strtol(strstr(text, "/*") + 2, NULL, 16);
    op += strspn(op, " ");
    if (*op == '@') op += strcspn(op, " ");
    op += strspn(op, " ");
    lines[n_lines++] = (line){at, bytes_of(op), flops_of(op)};
    const char *to = strncmp(op, "BRA", 3) == 0 ? strstr(op, LABEL) : NULL;
    return to ? (int)strtol(to + strlen(LABEL), NULL, 10) : -1;
}

/* Reads the instructions of one function, and marks those that innermost loops run. A loop ends with a branch
 * to a label before it. */
static void read_lines(FILE *from, const char *function) {
    static long labels[LABELS_MOST];
    char text[400], section[100];
    bool inside = false;
    n_lines = n_loops = 0;
    memset(labels, -1, sizeof labels);
    snprintf(section, sizeof section, ".section\t.text.%s,", function);
    while (fgets(text, sizeof text, from)) {
        if (strstr(text, ".section\t")) inside = strstr(text, section) != NULL;
        if (!inside || n_lines == LINES_MOST) continue;
        if (strncmp(text, LABEL, strlen(LABEL)) == 0) {
            const long label = strtol(text + strlen(LABEL), NULL, 10);
            if (label < LABELS_MOST) labels[label] = n_lines ? lines[n_lines - 1].at + 1 : 0;
        }
        if (!strstr(text, "/*") || !strchr(text, ';')) continue;
        const int label = read_line(text);
        if (label < 0 || label >= LABELS_MOST || labels[label] < 0 || n_loops == LOOPS_MOST) continue;
        if (n_lines > 1 && labels[label] <= lines[n_lines - 2].at) /* else it is a branch to itself */
            loops[n_loops++] = (loop){.start = labels[label], .end = lines[n_lines - 1].at};
    }
}

static double bytes_in(const loop *l) { return l->bytes; }
static double flops_in(const loop *l) { return l->flops; }

/* Returns the instructions for each unit of `amount`, in the loops that have at least half as many units as
 * any other. */
static double rate_of(double (*amount)(const loop *)) {
    double most = 0, units = 0, instructions = 0;
    for (int i = 0; i < n_loops; i++) most = fmax(most, amount(&loops[i]));
    for (int i = 0; i < n_loops; i++) {
        if (2 * amount(&loops[i]) < most) continue;
        instructions += loops[i].instructions;
        units += amount(&loops[i]);
    }
    return units > 0 ? instructions / units : 0;
}

/* Adds up the own instructions of each loop. The whole kernel counts as a loop if nothing else moves bytes.
 */
static void count_lines(hot *h) {
    bool any = false;
    for (int pass = 0; pass < 2 && !any; pass++) {
        if (pass == 1) loops[n_loops = 0] = (loop){.end = LONG_MAX}, n_loops = 1;
        for (int i = 0; i < n_lines; i++) {
            loop *l = loop_around(lines[i].at);
            if (!l) continue;
            l->instructions++;
            l->bytes += lines[i].bytes;
            l->flops += lines[i].flops;
            any = any || lines[i].bytes > 0;
        }
    }
    h->per_byte = rate_of(bytes_in);
    h->per_flop = h->multiplies ? rate_of(flops_in) : 0;
}

/* Returns the registers that the assembler's messages name for the function. */
static int registers_of(const char *log, const char *function) {
    char entry[120];
    snprintf(entry, sizeof entry, "Compiling entry function '%s'", function);
    const char *at = log ? strstr(log, entry) : NULL;
    const char *used = at ? strstr(at, "Used ") : NULL;
    return used ? (int)strtol(used + strlen("Used "), NULL, 10) : 0;
}

static int warps_of(const hot *h) {
    const weft_launch one = {
        .groups = {1, 1, 1}, .items = {h->items, 1, 1}, .facts = {.registers = h->registers}};
    return (int)weft__card_price(&card, &one, false).resident / card.units * h->items / 32;
}

static bool disassemble(hot *h, const void *cubin, size_t bytes) {
    char command[PATH_BYTES];
    FILE *file = fopen("kernel.cubin", "wb");
    if (!file || fwrite(cubin, 1, bytes, file) != bytes || fclose(file) != 0) return false;
    snprintf(command, sizeof command, "PATH=$PATH:/usr/local/cuda/bin nvdisasm -c kernel.cubin 2>/dev/null");
    file = popen(command, "r");
    if (!file) return false;
    read_lines(file, h->function);
    const bool done = pclose(file) == 0 && n_lines > 0;
    unlink("kernel.cubin");
    if (done) count_lines(h);
    return done;
}

static bool measure(weft_context *ctx, hot *h) {
    weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = h->source, .arch = ARCH, .verbose = true};
    void *cubin = NULL;
    size_t bytes = 0;
    weft__nvrtc_compile(&job);
    char *log = weft__nvrtc_log(ctx, &job);
    bool done = weft__nvrtc_take(ctx, &job, h->name, &cubin, &bytes) == WEFT_OK;
    if (!done) printf("FAIL %s\n", weft_last_error(ctx));
    h->registers = registers_of(log, h->function);
    h->warps = warps_of(h);
    if (done && !(done = disassemble(h, cubin, bytes))) printf("FAIL %s: its SASS cannot be read\n", h->name);
    weft__free(ctx, cubin);
    weft__free(ctx, log);
    return done;
}

/* ---- the table ---- */

static const char head[] = "kernel\tregisters\twarps\tinstructions_per_byte\tinstructions_per_flop\n";

static bool write_table(const char *path, int major) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fprintf(file, "# NVRTC %d, %s: ceilings of the hottest kernels; UPDATE=1 build/test_sass writes them\n%s",
            major, ARCH, head);
    for (int i = 0; i < n_hottest; i++)
        fprintf(file, "%s\t%d\t%d\t%.2f\t%.4f\n", hottest[i].name, hottest[i].registers, hottest[i].warps,
                hottest[i].per_byte, hottest[i].per_flop);
    return fclose(file) == 0;
}

/* A figure above its ceiling fails, and one far below it. Values round to the digits of the table. */
static bool check(const char *name, const char *what, double is, double ceiling) {
    if (is > ceiling * SLACK + 5e-5)
        printf("FAIL %s: %s %.4g, at most %.4g\n", name, what, is, ceiling);
    else if (is < ceiling * BETTER - 5e-5)
        printf("FAIL %s: %s %.4g, far below %.4g: UPDATE=1 tightens the table\n", name, what, is, ceiling);
    else
        return true;
    return false;
}

/* Compares a line of the table. Sets *index to its kernel, or -1. */
static bool check_line(char *text, int *index) {
    char *fields[5] = {text};
    for (int i = 1; i < 5; i++) {
        char *tab = strchr(fields[i - 1], '\t');
        if (!tab) printf("FAIL a line of the table has not five fields: %s", text);
        if (!tab) return false;
        *tab = 0;
        fields[i] = tab + 1;
    }
    *index = n_hottest - 1;
    while (*index >= 0 && strcmp(hottest[*index].name, text) != 0) --*index;
    if (*index < 0) {
        printf("FAIL %s: it is not one of the hottest any more: UPDATE=1 writes the table\n", text);
        return false;
    }
    const hot *h = &hottest[*index];
    bool fine = check(text, "registers", h->registers, strtod(fields[1], NULL));
    fine = check(text, "instructions a byte", h->per_byte, strtod(fields[3], NULL)) && fine;
    fine = check(text, "instructions an operation", h->per_flop, strtod(fields[4], NULL)) && fine;
    if (h->warps * SLACK < strtod(fields[2], NULL)) {
        printf("FAIL %s: a multiprocessor holds %d warps, before %s\n", text, h->warps, fields[2]);
        fine = false;
    }
    return fine;
}

static bool check_table(FILE *table) {
    char text[400];
    bool fine = true, seen[HOT_MOST] = {false};
    rewind(table);
    while (fgets(text, sizeof text, table)) {
        int index = -1;
        if (text[0] == '#' || strcmp(text, head) == 0) continue;
        fine = check_line(text, &index) && fine;
        if (index >= 0) seen[index] = true;
    }
    for (int i = 0; i < n_hottest; i++)
        if (!seen[i]) {
            printf("FAIL %s: the table lacks it: UPDATE=1 writes the table\n", hottest[i].name);
            fine = false;
        }
    return fine;
}

/* Returns why the test cannot run, or NULL. */
static const char *missing(FILE *table, int *major) {
    int minor, wanted = 0;
    const char *why = weft__nvrtc_open();
    if (why) return why;
    weft__nvrtc_version(major, &minor);
    if (table && (fscanf(table, "# NVRTC %d,", &wanted) != 1 || wanted != *major))
        return "the table is for another version of NVRTC";
    if (system("PATH=$PATH:/usr/local/cuda/bin nvdisasm --version >/dev/null 2>&1") != 0)
        return "nvdisasm is not installed (PyPI: nvidia-cuda-nvdisasm)";
    return NULL;
}

int main(void) {
    const char *root = getenv("WEFT_SOURCE_DIR"), *why;
    char path[PATH_BYTES], here[PATH_BYTES - 32], folder[] = "/tmp/weft-sass-XXXXXX";
    const bool update = getenv("UPDATE") != NULL;
    weft_context ctx = {0};
    int major = 0;
    if (!getcwd(here, sizeof here)) return 1;
    snprintf(path, sizeof path, "%s/tests/nvrtc/sass.tsv", root ? root : here);
    FILE *table = update ? NULL : fopen(path, "r");
    if ((!update && !table) || !mkdtemp(folder) || chdir(folder) != 0) return 1;
    if ((why = missing(table, &major))) {
        printf("sass: skipped, %s\n", why);
        return rmdir(folder) == 0 ? SKIPPED : 1;
    }
    bool fine = find_hottest();
    for (int i = 0; i < n_hottest && fine; i++) {
        hot *h = &hottest[i];
        fine = measure(&ctx, h);
        printf("%-90s %8.1f us  %3d registers  %2d warps  %6.2f a byte  %7.4f an operation\n", h->name,
               1e6 * h->seconds, h->registers, h->warps, h->per_byte, h->per_flop);
    }
    if (fine) fine = update ? write_table(path, major) : check_table(table);
    if (table) fclose(table);
    for (int i = 0; i < n_hottest; i++) free(hottest[i].source);
    weft__strings_free(&ctx);
    printf("sass: kernels=%d %s\n", n_hottest, fine ? "ok" : "FAIL");
    return chdir("/") + rmdir(folder) == 0 && fine ? 0 : 1;
}
