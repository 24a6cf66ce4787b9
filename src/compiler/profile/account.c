/* Accounts for the memory of a program at its peak, by kind of value. `weft plan` and out-of-memory errors
 * print it. Must not know: how places are found (passes/plan_memory.c). Read next: runtime/memory.c. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/profile/profile.h"

const char *weft_memory_name(weft_memory_kind kind) {
    static const char *const names[] = {
#define NAME(name, text) text,
        WEFT_MEMORY_LIST(NAME)
#undef NAME
    };
    return (unsigned)kind < WEFT_MEMORY_KINDS ? names[kind] : "?";
}

uint64_t weft_memory_total(const weft_memory_plan *plan) {
    uint64_t sum = 0;
    for (int k = 0; plan && k < WEFT_MEMORY_KINDS; k++) sum += plan->kinds[k];
    return sum;
}

/* ---- the peak ---- */

static bool alive(const program_region *r, int phase) { return r->first <= phase && phase <= r->last; }

/* Returns the phase that needs most memory. A lifetime begins in it, so only first phases are searched. */
static int peak_of(const weft_program *program) {
    int64_t most = -1;
    int peak = 0;
    for (int i = 0; i < program->regions.count; i++) {
        const int phase = program->regions.list[i].first;
        int64_t bytes = 0;
        if (phase == peak && most >= 0) continue;
        for (int k = 0; k < program->regions.count; k++)
            bytes += alive(&program->regions.list[k], phase) ? program->regions.list[k].bytes : 0;
        if (bytes > most) most = bytes, peak = phase;
    }
    return peak;
}

/* ---- names ---- */

/* Returns the first command that reads the region. It names a copy, whose own name says nothing. */
static const weft_command *reader_of(const weft_program *program, const program_region *r) {
    const weft_commands *commands = &program->commands;
    for (const weft_command *c = commands->list + r->command + 1; c < commands->list + commands->count; c++)
        for (int k = 0; k < c->n_operands; k++)
            if (c->operands[k].slot == SLOT_ARENA && c->operands[k].offset >= r->offset &&
                c->operands[k].offset < r->offset + r->bytes)
                return c;
    return NULL;
}

const char *weft__account_name(const weft_program *program, const program_region *r, char *name,
                               size_t size) {
    char text[WEFT_COMMAND_TEXT];
    const char *path = "";
    snprintf(name, size, "gaps");
    if (r->kind == WEFT_MEMORY_GRADIENTS) {
        snprintf(name, size, "gradients of the parameters");
    } else if (r->command >= 0) {
        snprintf(name, size, "%s", weft__command_text(&program->commands.list[r->command], text, &path));
        const weft_command *reader = strcmp(text, "copy") == 0 ? reader_of(program, r) : NULL;
        const char *path_of_reader = "";
        if (reader) snprintf(name, size, "copy for %s", weft__command_text(reader, text, &path_of_reader));
        if (!*path) path = path_of_reader;
    }
    return path;
}

/* ---- the largest ---- */

int weft__account_largest(const weft_program *program, const program_region **largest, int most) {
    const int peak = peak_of(program);
    int count = 0;
    for (int i = 0; i < program->regions.count; i++) {
        const program_region *r = &program->regions.list[i];
        if (!alive(r, peak)) continue;
        int at = count < most ? count++ : most;
        for (; at > 0 && largest[at - 1]->bytes < r->bytes; at--)
            if (at < most) largest[at] = largest[at - 1];
        if (at < most) largest[at] = r;
    }
    return count;
}

void weft__path_form(const char *path, char *form, size_t size) {
    size_t used = 0;
    for (const char *at = path; *at && used + 1 < size;) {
        const bool begins = at == path || at[-1] == '.';
        size_t digits = 0;
        while (begins && isdigit((unsigned char)at[digits])) digits++;
        const bool number = digits && (at[digits] == '.' || at[digits] == 0);
        form[used++] = number ? '*' : *at;
        at += number ? digits : 1;
    }
    form[used] = 0;
}

/* Adds the region to the group of the same form, or begins a group. */
static void account_gather(const weft_program *program, const program_region *r, weft_memory_buffer *groups,
                           int *count) {
    char what[sizeof groups->what], form[sizeof groups->layer], other[sizeof groups->layer];
    const char *path = weft__account_name(program, r, what, sizeof what);
    weft__path_form(path, form, sizeof form);
    for (int i = 0; i < *count; i++) {
        weft_memory_buffer *g = &groups[i];
        weft__path_form(g->layer, other, sizeof other);
        if (g->kind != r->kind || strcmp(other, form) != 0 || strcmp(g->what, what) != 0) continue;
        if (strcmp(g->layer, path) != 0) snprintf(g->layer, sizeof g->layer, "%s", form);
        g->bytes += (uint64_t)r->bytes;
        g->count++;
        return;
    }
    weft_memory_buffer *g = &groups[(*count)++];
    *g = (weft_memory_buffer){.bytes = (uint64_t)r->bytes, .count = 1, .kind = r->kind};
    snprintf(g->layer, sizeof g->layer, "%s", path);
    snprintf(g->what, sizeof g->what, "%s", what);
}

static void keep_largest(weft_memory_plan *plan, const weft_memory_buffer *groups, int count) {
    bool taken[256] = {false};
    for (plan->n_largest = 0; plan->n_largest < WEFT_MEMORY_LARGEST; plan->n_largest++) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (!taken[i] && (best < 0 || groups[i].bytes > groups[best].bytes)) best = i;
        if (best < 0) return;
        taken[best] = true;
        plan->largest[plan->n_largest] = groups[best];
    }
}

weft_status weft__account(const weft_program *program, weft_memory_plan *plan) {
    enum { GROUPS = 256 };
    weft_context *ctx = program->ctx;
    weft_memory_buffer *groups = weft__array(ctx, GROUPS, sizeof *groups);
    if (!groups) return weft__fail_oom(ctx, GROUPS * sizeof *groups, "the plan of the memory");
    const int peak = peak_of(program);
    uint64_t sum = 0;
    int count = 0;
    plan->work = (uint64_t)program->arena_bytes;
    for (int i = 0; i < program->regions.count; i++) {
        const program_region *r = &program->regions.list[i];
        if (!alive(r, peak)) continue;
        plan->kinds[r->kind] += (uint64_t)r->bytes;
        sum += (uint64_t)r->bytes;
        if (count < GROUPS) account_gather(program, r, groups, &count);
    }
    plan->kinds[WEFT_MEMORY_SCRATCH] += plan->work - sum;
    keep_largest(plan, groups, count);
    weft__free(ctx, groups);
    return WEFT_OK;
}
