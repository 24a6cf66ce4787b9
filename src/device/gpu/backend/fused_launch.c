/* Fused launches (docs/design/020-fused-launches.md). Several launches become the entries of one launch,
 * which calls the function of each entry. There are two kinds.
 *
 * 1. In sequence: launches of one work-group each. The fused launch has one work-group too, and waits only
 * for its own work-items between entries. The step of a small network becomes one launch.
 * 2. Concurrent, on CUDA, in larger steps: launches of one phase, which do not wait for each other and leave
 * the card half empty. The fused launch divides its work-groups among them.
 *
 * The parameter buffer in memory says which function each entry calls, and with which slots and numbers.
 * Kernels accept too few arguments for that. The compiler sees each function once. On CUDA, the source of a
 * launch in sequence says it instead.
 *
 * Launches are fused only where it pays:
 * - in programs that ran often, since the kernel source of each fused launch takes seconds to compile;
 * - in programs that change variables, as steps do;
 * - in programs with few work-groups for their launches, so that launching takes most of the time.
 *
 * They are not compiled while other runs continue. PoCL compiles most of a kernel at its first launch, and
 * holds a lock that every launch takes.
 *
 * Must not know: what the kernels compute. Read next: gpu/prelude/entries.cl. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "device/gpu/backend/hooks.h"
#include "device/gpu/backend/program.h"
#include "device/gpu/card/card.h"
#include "device/gpu/backend/kernel_source.h"
#include "device/gpu/backend/names.h"

enum {
    FUSE_AFTER = 200, /* runs; compiling takes seconds, which fused launches save only over many runs */
    GROUPS_MEAN = 2,  /* work-groups of a launch, in programs where launching takes most of the time */
    FEW_LAUNCHES = 32,
    KINDS_MOST = 32, /* distinct functions; compilers take long for long functions */
    ENTRIES_MOST = 500,
    SLOTS_MOST = 100,       /* OpenCL guarantees 1,024 bytes of arguments */
    PARAMETERS_MOST = 7000, /* OpenCL guarantees 64 KiB of constants */
    ARENA_SLOT = 0,
    ARENA_MOST = 16 << 10 /* bytes of an arena in local memory */
};

typedef struct fused_launch {
    weft_gpu_program *program;
    const weft_launch *first; /* first of `count` launches */
    bool concurrent;          /* the entries are concurrent, not in sequence */
    int scalars;              /* the slot that each time reads another row of */
    int64_t arena;            /* bytes of the arena in local memory; 0: it is in memory */
    int count;
    int kind[ENTRIES_MOST]; /* the first entry with the same kernel source */
    int n_kinds;
    int slots[SLOTS_MOST];
    int n_slots;
    size_t parameters;
    bool faults;
    unsigned prelude;
} fused_launch;

/* ---- which launches to fuse ---- */

static bool may_sequence(const weft_launch *l) {
    return l->may_fuse && l->groups[0] == 1 && l->groups[1] == 1 && l->groups[2] == 1;
}

/* Returns whether a launch may run concurrently with others. It must not use memory that others of its phase
 * also need. */
static bool may_stand(const weft_gpu_program *p, const weft_launch *l) {
    bool may = l->may_fuse && !l->call && l->shared_bytes == 0;
    for (int a = 0; a < l->n_arguments; a++)
        may =
            may && (l->arguments[a].kind != WEFT_ARGUMENT_BUFFER || l->arguments[a].index != p->scratch_slot);
    return may;
}

static int64_t groups_of(const weft_launch *l) { return l->groups[0] * l->groups[1] * l->groups[2]; }

static int slot_at(fused_launch *c, int slot) {
    int i = 0;
    while (i < c->n_slots && c->slots[i] != slot) i++;
    if (i == c->n_slots && i < SLOTS_MOST) c->slots[c->n_slots++] = slot;
    return i;
}

/* Returns the number of 64-bit words of an entry's numbers. */
static size_t entry_words(const weft_launch *l) {
    size_t words = 0;
    for (int a = 0; a < l->n_arguments; a++)
        if (l->arguments[a].kind == WEFT_ARGUMENT_NUMBERS) words += (size_t)l->arguments[a].i / 8;
    return words;
}

/* Adds one more launch, unless a limit is reached. */
static bool extend(fused_launch *c, const weft_launch *l) {
    const fused_launch before = *c;
    if (!(c->concurrent ? may_stand(c->program, l) : may_sequence(l)) || c->count == ENTRIES_MOST ||
        memcmp(c->first->items, l->items, sizeof l->items) != 0)
        return false;
    int same = 0;
    while (same < c->count && strcmp(c->first[same].source, l->source) != 0) same++;
    bool fits = same < c->count || c->n_kinds < KINDS_MOST;
    c->parameters += entry_words(l);
    for (int a = 0; a < l->n_arguments; a++) {
        const weft_argument *argument = &l->arguments[a];
        c->faults = c->faults || argument->kind == WEFT_ARGUMENT_FAULTS;
        fits = fits && (argument->kind != WEFT_ARGUMENT_BUFFER || slot_at(c, argument->index) < SLOTS_MOST);
    }
    if (!fits || c->parameters > PARAMETERS_MOST) {
        *c = before;
        return false;
    }
    c->n_kinds += same == c->count;
    c->kind[c->count++] = same;
    c->prelude |= l->prelude;
    return true;
}

/* Returns the longest fused launch in sequence that begins with launch l. */
static fused_launch sequence_from(weft_gpu_program *p, const weft_commands *commands, int l) {
    fused_launch c = {.program = p, .first = &p->launches.list[l], .scalars = commands->scalars};
    while (l < p->launches.count && extend(&c, &p->launches.list[l])) l++;
    return c;
}

/* Returns whether launch l does not wait for the launch before it. */
static bool is_concurrent(const weft_gpu_program *p, const weft_commands *commands, int l) {
    for (int c = p->commands[l - 1] + 1; c <= p->commands[l]; c++)
        if (commands->list[c].after) return false;
    return p->commands[l - 1] != p->commands[l];
}

/* Returns a concurrent fused launch of as many launches from l on as the card can run at once. */
static fused_launch concurrent_from(weft_gpu_program *p, const weft_commands *commands, int l) {
    fused_launch c = {.program = p, .first = &p->launches.list[l], .concurrent = true};
    const int64_t most = (int64_t)GROUPS_MEAN * p->launches.target->units;
    int64_t groups = 0;
    for (; l < p->launches.count && (c.count == 0 || is_concurrent(p, commands, l)); l++) {
        groups += groups_of(&p->launches.list[l]);
        if (groups > most || !extend(&c, &p->launches.list[l])) break;
    }
    return c;
}

/* ---- kernel source ---- */

/* For concurrent entries: w_group and w_groups give the group's index within its entry, and the entry's
 * groups. */
static const char place_of_groups[] = "__shared__ int w_place[6];\n"
                                      "#undef w_group\n#undef w_groups\n"
                                      "#define w_group(dim) w_place[dim]\n"
                                      "#define w_groups(dim) w_place[3 + (dim)]\n"
                                      "W_FN void stand(int group, int x, int y, int z) {\n"
                                      "    if (w_item(0) == 0) {\n"
                                      "        w_place[0] = group % x, w_place[1] = group / x % y;\n"
                                      "        w_place[2] = group / x / y;\n"
                                      "        w_place[3] = x, w_place[4] = y, w_place[5] = z;\n"
                                      "    }\n"
                                      "    w_barrier();\n"
                                      "}\n";

/* Returns whether the kernel source contains the numbers of each entry. The compiler then knows all extents
 * and offsets of a small step, and no entry waits for them. Other fused launches read their numbers from the
 * parameter buffer, so that several of them can be one kernel. In OpenCL PoCL 3.1 makes wrong code of it. */
static bool knows_numbers(const fused_launch *c) {
    return !c->concurrent && c->program->launches.target->dialect == WEFT_DIALECT_CUDA;
}

/* It also knows that there is one group. */
static const char one_group[] = "#undef w_group\n#undef w_groups\n"
                                "#define w_group(dim)  0\n#define w_groups(dim) 1\n";

static void put_functions(const fused_launch *c, weft_text *out, const char *tag) {
    char suffix[40];
    weft__put(out, "%s%s", weft__source_prelude_entries,
              c->concurrent      ? place_of_groups
              : knows_numbers(c) ? one_group
                                 : "");
    for (int i = 0; i < c->count; i++) {
        const char *source = c->first[i].source;
        if (c->kind[i] != i) continue;
        snprintf(suffix, sizeof suffix, "%s_%d", tag, i);
        weft__gpu_put_names(out, source, suffix);
        weft__put(out, "%s\n", source);
        weft__gpu_forget_names(out, source);
    }
    weft__put(out, "%s", weft__source_prelude_kernels);
}

/* Writes a table of the numbers of each entry. */
static void put_known_numbers(const fused_launch *c, weft_text *out, const char *tag) {
    for (int i = 0; i < c->count; i++) {
        for (int a = 0; a < c->first[i].n_arguments; a++) {
            const weft_argument *argument = &c->first[i].arguments[a];
            if (argument->kind != WEFT_ARGUMENT_NUMBERS) continue;
            weft__put(out, "W_TABLE long numbers_%s_%d[] = {", tag, i);
            for (int64_t k = 0; k < argument->i / 8; k++) {
                uint64_t word;
                memcpy(&word, (const char *)argument->numbers + 8 * k, sizeof word);
                weft__put(out, "(long)0x%" PRIx64 "UL, ", word);
            }
            weft__put(out, "};\n");
        }
    }
}

/* Writes the buffer in a slot; of the scalars, the row of the time that is running. */
static void put_buffer(fused_launch *c, weft_text *out, int slot) {
    if (slot == ARENA_SLOT && c->arena)
        weft__put(out, "w_any_of(arena)");
    else if (slot == c->scalars && !c->concurrent)
        weft__put(out, "w_any_at(b%d, scalars + time * row)", slot_at(c, slot));
    else
        weft__put(out, "b%d", slot_at(c, slot));
}

/* Writes a call of an entry's function. Its numbers begin at word `word`. */
static void put_call(fused_launch *c, weft_text *out, const char *tag, int entry, size_t word) {
    const weft_launch *l = &c->first[entry];
    char name[128];
    snprintf(name, sizeof name, "%s_%s_%d", l->name, tag, c->kind[entry]);
    weft__put(out, "%s(", name);
    for (int i = 0; i < l->n_arguments; i++) {
        const weft_argument *a = &l->arguments[i];
        if (a->kind == WEFT_ARGUMENT_FAULTS)
            weft__put(out, "faults, ");
        else if (a->kind == WEFT_ARGUMENT_NUMBERS && knows_numbers(c))
            weft__put(out, "*(W_CONSTANT W_NUMBERS(%s) *)numbers_%s_%d", name, tag, entry);
        else if (a->kind == WEFT_ARGUMENT_NUMBERS)
            weft__put(out, "*(W_CONSTANT W_NUMBERS(%s) *)(n + %zu)", name, word);
        else
            put_buffer(c, out, a->index), weft__put(out, ", ");
    }
    if (l->local_bytes) weft__put(out, ", &memory->entry%d", c->kind[entry]);
    weft__put(out, ");");
}

/* Writes the calls one after the other. In a loop with branches, work-items would wait for each other there,
 * and that crashes PoCL 3.1. */
static void put_calls(fused_launch *c, weft_text *out, const char *tag) {
    size_t word = 0;
    for (int i = 0; i < c->count; i++) {
        weft__put(out, "        ");
        put_call(c, out, tag, i, word);
        weft__put(out, "\n        w_barrier_all();\n");
        word += entry_words(&c->first[i]);
    }
}

/* Writes one branch for each entry, which its work-groups take. */
static void put_parts(fused_launch *c, weft_text *out, const char *tag) {
    size_t word = 0;
    int64_t begin = 0;
    weft__put(out, "    const int group = (int)blockIdx.x;\n    n += n_at;\n");
    for (int i = 0; i < c->count; i++) {
        const weft_launch *l = &c->first[i];
        const int64_t end = begin + groups_of(l);
        weft__put(out, "    %sif (group < %lld) {\n        stand(group - %lld, %lld, %lld, %lld);\n        ",
                  i ? "else " : "", (long long)end, (long long)begin, (long long)l->groups[0],
                  (long long)l->groups[1], (long long)l->groups[2]);
        put_call(c, out, tag, i, word);
        weft__put(out, "\n    }\n");
        word += entry_words(l);
        begin = end;
    }
    weft__put(out, "}\n");
}

/* Returns the bytes of local memory that the entry with the most memory needs. */
static int local_bytes(const fused_launch *c) {
    int most = 0;
    for (int i = 0; i < c->count; i++) most = (int)weft__larger(most, c->first[i].local_bytes);
    return most;
}

/* Writes the local memory, which all entries use in turn. A concurrent launch requests it: source may declare
 * 48 KiB, some tiles need exactly that, and w_place needs a little more. */
static void put_memory(const fused_launch *c, weft_text *out, const char *tag) {
    if (!local_bytes(c)) return;
    weft__put(out, "    union w_room {\n");
    for (int i = 0; i < c->count; i++)
        if (c->kind[i] == i && c->first[i].local_bytes)
            weft__put(out, "        W_SHARED(%s_%s_%d) entry%d;\n", c->first[i].name, tag, i, i);
    weft__put(out, "    };\n");
    if (c->concurrent)
        weft__put(out,
                  "    static_assert(sizeof(union w_room) <= %d, \"the launch requests so much\");\n"
                  "    W_MORE_SHARED(union w_room, memory);\n",
                  local_bytes(c));
    else
        weft__put(out,
                  "    W_LOCAL_ROOM union w_room room;\n    W_LOCAL union w_room *const memory = &room;\n");
}

/* Writes the arena, if all its values are in local memory. */
static void put_arena(const fused_launch *c, weft_text *out) {
    if (c->arena) weft__put(out, "    alignas(16) W_LOCAL_ROOM char arena[%lld];\n", (long long)c->arena);
}

static void put_source(fused_launch *c, weft_text *out, const char *tag) {
    const int *items = c->first->items;
    put_functions(c, out, tag);
    if (knows_numbers(c)) put_known_numbers(c, out, tag);
    weft__put(out,
              "W_KERNEL W_ITEMS(%d, %d, %d) void fused_launch(W_CONSTANT long *n, long n_at, int times, "
              "int scalars, int row",
              items[0], items[1], items[2]);
    if (c->faults) weft__put(out, ", W_GLOBAL w_faults *faults");
    for (int s = 0; s < c->n_slots; s++) weft__put(out, ", W_ANY b%d", s);
    weft__put(out, ") {\n");
    put_memory(c, out, tag);
    if (c->concurrent) {
        put_parts(c, out, tag);
        return;
    }
    put_arena(c, out);
    weft__put(out, "    n += n_at;\n    for (int time = 0; time < times; time++) {\n");
    put_calls(c, out, tag);
    weft__put(out, "    }\n}\n");
}

/* Writes the kernel source. Its names contain a hash of the source, so that several fused launches fit in one
 * program. */
static char *write_source(fused_launch *c) {
    char tag[20] = "0000000000000000", *memory = NULL;
    size_t size = 0;
    for (int pass = 0; pass < 3; pass++) {
        weft_text out = weft__text(memory, size);
        put_source(c, &out, tag);
        if (pass == 0) {
            size = out.length + 1;
            memory = weft__arena_alloc(c->program->launches.arena, size);
            if (!memory) return NULL;
        } else if (pass == 1) {
            weft_hash hash;
            weft__hash_init(&hash);
            weft__hash_str(&hash, memory);
            snprintf(tag, sizeof tag, "%016" PRIx64, hash.a);
        }
    }
    return memory;
}

/* ---- the launch ---- */

static weft_status add_parameters(fused_launch *c) {
    weft_gpu_program *p = c->program;
    int64_t *parameters =
        weft__array(p->launches.ctx, p->n_parameters + c->parameters + 1, sizeof *parameters);
    if (!parameters)
        return weft__fail_oom(p->launches.ctx, c->parameters * sizeof *parameters, "a fused launch");
    if (p->n_parameters) memcpy(parameters, p->parameters, p->n_parameters * sizeof *parameters);
    weft__free(p->launches.ctx, p->parameters);
    p->parameters = parameters;
    for (int i = 0; i < c->count && !knows_numbers(c); i++)
        for (int a = 0; a < c->first[i].n_arguments; a++) {
            const weft_argument *argument = &c->first[i].arguments[a];
            if (argument->kind != WEFT_ARGUMENT_NUMBERS) continue;
            memcpy(parameters + p->n_parameters, argument->numbers, (size_t)argument->i);
            p->n_parameters += (size_t)argument->i / 8;
        }
    parameters[p->n_parameters++] = 0; /* the buffer is never empty */
    return WEFT_OK;
}

/* If the whole step is one launch of one work-group, nobody else reads the arena. A small one lies in local
 * memory, which takes an eighth of the time of the cache. Only in CUDA may one pointer point to either. */
static int64_t local_arena(const fused_launch *c, const weft_commands *commands, int64_t guard) {
    const weft_gpu_program *p = c->program;
    const weft_target *target = p->launches.target;
    const int64_t bytes = guard + commands->arena_bytes;
    const bool may =
        target->dialect == WEFT_DIALECT_CUDA && commands->arena_bytes > 0 && c->count == p->launches.count;
    return may && bytes <= ARENA_MOST && bytes + local_bytes(c) <= target->local_bytes ? bytes : 0;
}

/* Returns how many of an entry's waits end with local memory, if the arena is there: to read, to write, and
 * for the other work-items. */
static int near_waits(const weft_launch *l) {
    bool reads = false, writes = false;
    for (int a = 0; a < l->n_arguments; a++) {
        const weft_argument *argument = &l->arguments[a];
        const bool outside = argument->kind == WEFT_ARGUMENT_BUFFER && argument->index != ARENA_SLOT;
        reads = reads || outside;
        writes = writes || (outside && argument->written);
    }
    return writes ? 0 : reads ? 2 : 3;
}

static weft_status make_launch(fused_launch *c, weft_launch *to) {
    weft_gpu_program *p = c->program;
    const size_t most = (size_t)c->n_slots + 3;
    weft_argument *arguments = weft__arena_alloc(p->launches.arena, most * sizeof *arguments);
    const char *source = write_source(c);
    if (!arguments || !source) return weft__fail_oom(p->launches.ctx, 4096, "a fused launch");
    int n = 0;
    arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_PARAMETERS, .i = (int64_t)p->n_parameters};
    arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_TIMES};
    if (c->faults) arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_FAULTS, .written = true};
    for (int s = 0; s < c->n_slots; s++)
        arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_BUFFER, .written = true, .index = c->slots[s]};
    int64_t groups = 0;
    for (int i = 0; i < c->count; i++) groups += groups_of(&c->first[i]);
    WEFT_TRY(add_parameters(c));
    *to = (weft_launch){.name = "fused_launch",
                        .source = source,
                        .prelude = c->prelude,
                        .shares = !c->concurrent && !knows_numbers(c), /* others need w_group */
                        .shared_bytes = c->concurrent ? local_bytes(c) : 0,
                        .n_arguments = n,
                        .arguments = arguments,
                        .groups = {c->concurrent ? groups : 1, 1, 1}};
    memcpy(to->items, c->first->items, sizeof to->items);
    for (int i = 0; i < c->count; i++) {
        weft__facts_join(&to->facts, &c->first[i].facts, c->concurrent);
        if (c->arena) to->facts.near_waits += near_waits(&c->first[i]);
    }
    return WEFT_OK;
}

bool weft__gpu_fuse_now(int64_t *runs, int times) {
    const int64_t enough = weft__gpu_hook.fuse_after ? weft__gpu_hook.fuse_after : FUSE_AFTER + 1;
    const bool late = *runs >= enough;
    *runs += times;
    return !late && *runs >= enough;
}

/* Returns whether concurrent launches save enough. A fused launch waits for the slowest of its entries. In a
 * step of few launches that on average leave the card half empty, launching takes a large part of the time.
 * `groups`: of all launches. */
static bool pays_concurrent(weft_gpu_program *p, const weft_commands *commands, int64_t groups) {
    int kept = 0;
    if (p->launches.target->dialect != WEFT_DIALECT_CUDA) return false;
    for (int l = 0; l < p->launches.count; kept++) {
        const int count = concurrent_from(p, commands, l).count;
        l += count > 1 ? count : 1;
    }
    const int count = p->launches.count;
    const bool small = count <= FEW_LAUNCHES && groups <= (int64_t)count * p->launches.target->units;
    return 4 * kept <= 3 * count || (small && kept + 2 <= count);
}

weft_status weft__gpu_fuse_launches(weft_gpu_program *p, const weft_commands *commands, int64_t guard) {
    weft_launch *list = p->launches.list;
    int64_t groups = 0;
    int kept = 0;
    for (int l = 0; l < p->launches.count; l++) groups += groups_of(&list[l]);
    const bool concurrent = groups > GROUPS_MEAN * p->launches.count;
    if (concurrent && !pays_concurrent(p, commands, groups)) return WEFT_OK;
    for (int l = 0; l < p->launches.count;) {
        fused_launch c = concurrent ? concurrent_from(p, commands, l) : sequence_from(p, commands, l);
        weft_launch launch = list[l];
        if (!concurrent) c.arena = local_arena(&c, commands, guard);
        if (c.count > 1) WEFT_TRY(make_launch(&c, &launch));
        p->repeats = !concurrent && c.count == p->launches.count && c.count > 1;
        p->commands[kept] = p->commands[l];
        list[kept++] = launch;
        l += c.count > 1 ? c.count : 1;
    }
    p->launches.count = kept;
    return WEFT_OK;
}
