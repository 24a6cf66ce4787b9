/* The renderer: turns a kernel form into a launch. Its source is C for groups of work-items (kernel/source.h)
 * and readable: one line for each instruction, with values named v0, v1, .. as in kernel/print.c. All shapes
 * of a kind share one source; sizes, strides and constants are arguments. render_choose.c decides what the
 * source looks like. Must not know: devices, their interfaces. Read next: render_choose.c.
 *
 *     file               writes
 *     render.c           head, arguments, the loop over units
 *     render_rows.c      stages, loops over reduced indices, reductions, folds
 *     render_loops.c     which values a loop computes and keeps
 *     render_team.c      teams of lanes and what they hold of a row, on CUDA
 *     render_span.c      several adjacent elements of a lane
 *     render_value.c     the line of an instruction
 *     render_place.c     views as index arithmetic
 *     render_expression.c     types, numbers, expressions
 *     render_epilogue.c  the function of an epilogue
 *     render_facts.c     what the launch moves and computes */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"

/* ---- text ---- */

static void put_indent(weft_render *r) { weft__put(&r->text, "%*s", 4 * r->indent, ""); }

static void put_line(weft_render *r, const char *fmt, va_list args, const char *end) {
    weft_text *text = &r->text;
    put_indent(r);
    const size_t room = text->length < text->size ? text->size - text->length : 0;
    const int n = vsnprintf(room ? text->buffer + text->length : NULL, room, fmt, args);
    if (n > 0) text->length += (size_t)n;
    weft__put(text, "%s", end);
}

void weft__put_line(weft_render *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_line(r, fmt, args, "\n");
    va_end(args);
}

void weft__put_open(weft_render *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_line(r, fmt, args, " {\n");
    va_end(args);
    r->indent++;
}

void weft__put_close(weft_render *r) {
    r->indent--;
    weft__put_line(r, "}");
}

const char *weft__index_type(const weft_render *r) { return r->wide ? "long" : "int"; }

/* ---- numbers ---- */

static const char *interned(weft_render *r, const char *text) {
    const char *known = weft__intern(r->launches->ctx, text);
    if (!known) r->failed = true;
    return known ? known : "";
}

static const char *literal(weft_render *r, weft_argument_kind kind, weft_argument value) {
    char digits[64];
    weft_text text = weft__text(digits, sizeof digits);
    if (kind == WEFT_ARGUMENT_F32 || kind == WEFT_ARGUMENT_F64)
        weft__put_float(&text, value.f, kind == WEFT_ARGUMENT_F32 ? WEFT_RENDER_F32 : WEFT_RENDER_F64);
    else
        weft__put_integer(&text, value.i, kind == WEFT_ARGUMENT_I32 ? WEFT_RENDER_I32 : WEFT_RENDER_I64);
    if (digits[0] != '-') return interned(r, digits);
    char negative[80];
    snprintf(negative, sizeof negative, "(%s)", digits);
    return interned(r, negative);
}

static const char *render_number(weft_render *r, weft_argument_kind kind, weft_argument value,
                                 const char *fmt, va_list args) {
    char name[WEFT_RENDER_NAME];
    if (r->literal) return literal(r, kind, value);
    vsnprintf(name, sizeof name, fmt, args);
    for (size_t i = 0; i < r->n_numbers; i++)
        if (!strcmp(r->numbers[i].name, name)) return r->numbers[i].name;
    if (!weft__grow(r->launches->ctx, &r->numbers, &r->number_capacity, r->n_numbers, sizeof *r->numbers)) {
        r->failed = true;
        return "";
    }
    weft_render_number *n = &r->numbers[r->n_numbers++];
    *n = (weft_render_number){interned(r, name), value};
    n->argument.kind = (uint8_t)kind;
    return n->name;
}

const char *weft__render_number(weft_render *r, weft_argument_kind kind, weft_argument value, const char *fmt,
                                ...) {
    va_list args;
    va_start(args, fmt);
    const char *name = render_number(r, kind, value, fmt, args);
    va_end(args);
    return name;
}

const char *weft__render_size(weft_render *r, int64_t value, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *name = render_number(r, r->wide ? WEFT_ARGUMENT_I64 : WEFT_ARGUMENT_I32,
                                     (weft_argument){.i = value}, fmt, args);
    va_end(args);
    return name;
}

const char *weft__render_extent(weft_render *r, int d) {
    char x[8];
    return weft__render_size(r, r->kernel->extent[d], "n_%s", weft__render_index(r, d, x));
}

/* ---- groups ---- */

/* How the work is divided among groups. */
typedef struct partition {
    int64_t tile, tiles; /* indices of a tile of the lane dimension, if that is parallel; number of
                          * tiles */
    int64_t units, per, groups;
    int items;
} partition;

/* Does each team take units of its own? */
static bool units_of_teams(const weft_render *r) {
    return r->lanes.teams > 1 && !r->lanes.split && r->kernel->n_fold == 0;
}

/* On CUDA a kernel of few units, of `each` elements, is one group. So the launches of a small net can be
 * fused. */
static bool is_small_on_card(const weft_render *r, int64_t units, int64_t each) {
    enum { FEW_TURNS = 4, FEW_ELEMENTS = 4096 };
    return r->target->dialect == WEFT_DIALECT_CUDA && r->kernel->n_fold == 0 && !r->lanes.split &&
           units * each <= FEW_ELEMENTS && units <= FEW_TURNS * (units_of_teams(r) ? r->lanes.teams : 1);
}

/* Divides the work into units, and the units among groups. */
static partition partition_of(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    const int lanes = r->lanes.count;
    const int64_t length = weft__kernel_row_length(k), block = weft__kernel_block_rows(k);
    partition c = {.tile = 1, .tiles = 1, .items = lanes * r->lanes.teams};
    c.units = weft__kernel_rows(k) / block;
    if (r->lanes.dim >= 0 && !r->lanes.reduced) {
        const int64_t n = k->extent[r->lanes.dim];
        c.tile = lanes * r->lanes.span;
        c.tiles = (n + c.tile - 1) / c.tile;
        c.units = c.units / (n > 0 ? n : 1) * c.tiles;
    }
    const int64_t a_unit = (length > 0 ? length : 1) * block * (c.tile > 0 ? c.tile : 1);
    c.per = weft__larger(1, weft__smaller(lanes / a_unit, c.units / (r->target->units * 4)));
    if (units_of_teams(r)) c.per = weft__larger(c.per, r->lanes.teams);
    if (is_small_on_card(r, c.units, a_unit)) c.per = c.units;
    if (r->row.ahead >= 0)
        c.per = weft__larger(c.per, weft__ceil_div(c.units, (int64_t)r->target->units * r->row.together));
    while ((c.units + c.per - 1) / c.per > 65535) c.per *= 2;
    c.groups = (c.units + c.per - 1) / c.per;
    return c;
}

void weft__put_digit(weft_render *r, int d) {
    char x[8];
    weft__put_line(r, "const %s %s = rest %% %s;", weft__index_type(r), weft__render_index(r, d, x),
                   weft__render_extent(r, d));
    weft__put_line(r, "rest /= %s;", weft__render_extent(r, d));
}

/* Writes the indices of a unit: the tile varies fastest, then the parallel indices, the last one first. */
static void put_indices(weft_render *r, const partition *c) {
    const weft_kernel *k = r->kernel;
    const bool tiles = r->lanes.dim >= 0 && !r->lanes.reduced;
    char x[8];
    int left = tiles; /* digits that are left; the last one needs no division */
    for (int d = 0; d < k->n_parallel - k->n_fold; d++) left += k->extent[d] != 1 && d != r->lanes.dim;
    const char *rest = left > 1 ? "rest" : "unit";
    if (left > 1) weft__put_line(r, "%s rest = unit;", weft__index_type(r));
    if (tiles) {
        const char *size = weft__render_size(r, c->tile, "tile_size");
        if (--left == 0) {
            weft__put_line(r, "const %s first_lane = %s * %s;", weft__index_type(r), rest, size);
        } else if (c->tiles == 1) {
            weft__put_line(r, "const %s first_lane = 0;", weft__index_type(r));
        } else {
            const char *count = weft__render_size(r, c->tiles, "tiles");
            weft__put_line(r, "const %s first_lane = rest %% %s * %s;", weft__index_type(r), count, size);
            weft__put_line(r, "rest /= %s;", count);
        }
    }
    for (int d = k->n_parallel - k->n_fold - 1; d >= 0; d--) {
        if (k->extent[d] == 1 || d == r->lanes.dim) continue;
        if (--left > 0)
            weft__put_digit(r, d);
        else
            weft__put_line(r, "const %s %s = %s;", weft__index_type(r), weft__render_index(r, d, x), rest);
    }
    if (!tiles) return;
    const char *extent = weft__render_extent(r, r->lanes.dim);
    r->lanes.outside = r->lanes.span > 1;
    weft__render_index(r, r->lanes.dim, x);
    r->lanes.outside = false;
    if (r->lanes.span > 1)
        weft__put_line(r, "const %s %s = first_lane + lane*%d;", weft__index_type(r), x, r->lanes.span);
    else if (r->lanes.split) /* all items meet at barriers; those beyond the end write nothing */
        weft__put_line(r, "const %s %s = min(first_lane + lane, %s - 1);", weft__index_type(r), x, extent);
    else
        weft__put_line(r, "const %s %s = first_lane + lane;", weft__index_type(r), x);
    if (r->lanes.split)
        weft__put_open(r, " ");
    else
        weft__put_open(r, "if (%s < %s)", x, extent);
}

/* Writes the loop of a group over its units. */
static void put_body(weft_render *r, const partition *c) {
    const bool alone = r->lanes.dim < 0;
    weft__put_line(r, "const %s first = w_group(0)*%s;", weft__index_type(r),
                   weft__render_size(r, c->per, "per"));
    weft__put_line(r, "const %s last = min(first + %s, %s);", weft__index_type(r),
                   weft__render_size(r, c->per, "per"), weft__render_size(r, c->units, "units"));
    weft__put_first_copies(r);
    if (units_of_teams(r))
        weft__put_open(r, "for (%s unit = first + team; unit < last; unit += %d)", weft__index_type(r),
                       r->lanes.teams);
    else
        weft__put_open(r, "for (%s unit = first; unit < last; unit++)", weft__index_type(r));
    put_indices(r, c);
    if (alone) weft__put_open(r, "if (lane == 0)");
    weft__put_unit(r);
    if (alone) weft__put_close(r);
    if (r->lanes.dim >= 0 && !r->lanes.reduced) weft__put_close(r);
    weft__put_close(r);
}

/* ---- the head ---- */

static bool is_memory(const weft_render *r, int a) { return a != r->product || r->kernel->args[a].written; }

/* Is v a fold whose columns lie in the scratch memory? */
static bool is_column_fold(const weft_render *r, int v) {
    return !r->lanes.turns && weft__is_column_fold(r, v);
}

/* The kinds of numbers in the order of the struct, and their types. */
static const struct {
    weft_argument_kind kind;
    const char *type;
} number_types[] = {{WEFT_ARGUMENT_I64, "long"},
                    {WEFT_ARGUMENT_F64, "double"},
                    {WEFT_ARGUMENT_I32, "int"},
                    {WEFT_ARGUMENT_F32, "float"}};
enum { NUMBER_TYPES = sizeof number_types / sizeof *number_types };

/* Writes a line that declares the numbers of type t: as members, or as constants with their values. */
static void put_numbers(weft_render *r, int t, bool members) {
    const char *before = members ? "" : "const ";
    bool any = false;
    for (size_t i = 0; i < r->n_numbers; i++) {
        const char *name = r->numbers[i].name;
        if (r->numbers[i].argument.kind != number_types[t].kind) continue;
        if (any)
            weft__put(&r->text, ", %s", name);
        else
            weft__put(&r->text, "    %s%s %s", before, number_types[t].type, name);
        if (!members) weft__put(&r->text, " = of.%s", name);
        any = true;
    }
    if (any) weft__put(&r->text, ";\n");
}

void weft__put_members(weft_render *r) {
    const char *type = r->target->dialect == WEFT_DIALECT_WGSL ? "w_i64" : "long", *before = "";
    weft__put(&r->text, "    %s ", type);
    for (int a = 0; a < r->kernel->n_args; a++) {
        if (!is_memory(r, a)) continue;
        weft__put(&r->text, "%sarg%d_at", before, a);
        before = ", ";
    }
    for (int v = 0; v < r->kernel->n_code; v++)
        if (is_column_fold(r, v)) weft__put(&r->text, ", fold%d_at", v);
    weft__put(&r->text, ";\n");
    for (int t = 0; t < NUMBER_TYPES; t++) put_numbers(r, t, true);
    if (r->faults) weft__put(&r->text, "    int command;\n");
}

void weft__put_pointers(weft_render *r, const char *line) {
    const weft_kernel *k = r->kernel;
    for (int a = 0; a < k->n_args; a++)
        if (is_memory(r, a))
            weft__put(&r->text, "%s%sW_GLOBAL %s *arg%d_,", line, k->args[a].written ? "" : "const ",
                      weft__storage_name((weft_dtype)k->args[a].dtype), a);
    for (int v = 0; v < k->n_code; v++)
        if (is_column_fold(r, v))
            weft__put(&r->text, "%sW_GLOBAL %s *fold%d_,", line,
                      weft__type_name(weft__render_type((weft_dtype)k->code[v].dtype)), v);
    if (r->faults) weft__put(&r->text, "%sW_GLOBAL w_faults *faults,", line);
}

void weft__put_constants(weft_render *r) {
    const weft_kernel *k = r->kernel;
    for (int a = 0; a < k->n_args; a++)
        if (is_memory(r, a))
            weft__put_line(r, "%sW_GLOBAL %s *arg%d = arg%d_ + of.arg%d_at;",
                           k->args[a].written ? "" : "const ",
                           weft__storage_name((weft_dtype)k->args[a].dtype), a, a, a);
    for (int v = 0; v < k->n_code; v++)
        if (is_column_fold(r, v))
            weft__put_line(r, "W_GLOBAL %s *fold%d = fold%d_ + of.fold%d_at;",
                           weft__type_name(weft__render_type((weft_dtype)k->code[v].dtype)), v, v, v);
    for (int t = 0; t < NUMBER_TYPES; t++) put_numbers(r, t, false);
}

static int bytes_of(weft_render_type type) {
    return type == WEFT_RENDER_F64 || type == WEFT_RENDER_I64 || type == WEFT_RENDER_U64 ? 8 : 4;
}

/* Returns the bytes of a group's local memory. */
static int local_bytes(const weft_render *r) {
    int bytes = 0;
    for (int t = 0; t < WEFT_RENDER_TYPES; t++) bytes += r->local[t] * bytes_of((weft_render_type)t);
    return bytes;
}

/* Writes the struct of a group's local memory. False if it needs none. */
static bool put_shared(weft_render *r, const char *name) {
    bool any = false;
    for (int t = 0; t < WEFT_RENDER_TYPES; t++) {
        if (!r->local[t]) continue;
        if (!any) weft__put(&r->text, "W_SHARED(%s) {\n", name);
        weft__put(&r->text, "    %s %s[%d];\n", weft__type_name((weft_render_type)t),
                  weft__type_suffix((weft_render_type)t), r->local[t]);
        any = true;
    }
    if (any) weft__put(&r->text, "};\n");
    return any;
}

/* Returns the kernel's name as an identifier of C. */
static const char *identifier(weft_render *r) {
    char name[128];
    snprintf(name, sizeof name, "%s", r->kernel->name && r->kernel->name[0] ? r->kernel->name : "kernel");
    for (char *p = name; *p; p++) {
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        if (!letter && (p == name || *p < '0' || *p > '9')) *p = '_';
    }
    return interned(r, name);
}

static void put_kernel(weft_render *r, const partition *c, const char *name, bool shared) {
    const int groups = weft__groups_beside(r, c->items);
    if (groups > 0)
        weft__put(&r->text, "W_KERNEL W_ITEMS_BESIDE(%d, %d) void %s(", c->items, groups, name);
    else
        weft__put(&r->text, "W_KERNEL W_ITEMS(%d, 1, 1) void %s(", c->items, name);
    weft__put_pointers(r, "\n    ");
    weft__put(&r->text, "\n    const W_NUMBERS(%s) of", name);
    if (shared) weft__put(&r->text, " W_ALSO(%s)", name);
    weft__put(&r->text, ") {\n");
    r->indent = 1;
    if (shared) weft__put_line(r, "W_MEMORY(%s)", name);
    weft__put_constants(r);
    if (r->sink) weft__put_line(r, "W_RETURN_IF_FAULTED(%d, 1)", c->items);
    if (r->lanes.teams > 1)
        weft__put_line(r, "const int lane = w_item(0) %% %d, team = w_item(0) / %d;", r->lanes.count,
                       r->lanes.count);
    else
        weft__put_line(r, "const int lane = w_item(0);");
    if (r->row.stash_bytes) weft__put_line(r, "W_STASH_ROOM(stash);");
    put_body(r, c);
    r->indent = 0;
    weft__put_line(r, "}");
}

static void put_all(weft_render *r, const partition *c, const char *name) {
    const bool shared = put_shared(r, name);
    weft__put(&r->text, "W_NUMBERS(%s) {\n", name);
    weft__put_members(r);
    weft__put(&r->text, "};\n");
    put_kernel(r, c, name, shared);
}

/* ---- the launch ---- */

weft_argument *weft__render_arguments(weft_render *r, weft_argument *list) {
    const weft_kernel *k = r->kernel;
    for (int a = 0; a < k->n_args; a++)
        if (is_memory(r, a))
            *list++ = (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                      .dtype = k->args[a].dtype,
                                      .written = k->args[a].written,
                                      .index = a};
    for (int v = 0; v < k->n_code; v++)
        if (is_column_fold(r, v))
            *list++ = (weft_argument){.kind = WEFT_ARGUMENT_SCRATCH,
                                      .dtype = k->code[v].dtype,
                                      .written = true,
                                      .i = r->scratch[v]};
    for (int t = 0; t < NUMBER_TYPES; t++)
        for (size_t i = 0; i < r->n_numbers; i++)
            if (r->numbers[i].argument.kind == number_types[t].kind) *list++ = r->numbers[i].argument;
    if (r->faults) *list++ = (weft_argument){.kind = WEFT_ARGUMENT_FAULT, .written = true};
    return list;
}

size_t weft__render_argument_bytes(const weft_render *r) {
    size_t bytes = (size_t)r->kernel->n_args * 16 + 16;
    for (int v = 0; v < r->kernel->n_code; v++) bytes += is_column_fold(r, v) ? 16 : 0;
    for (size_t i = 0; i < r->n_numbers; i++) {
        const int kind = r->numbers[i].argument.kind;
        bytes += kind == WEFT_ARGUMENT_I32 || kind == WEFT_ARGUMENT_F32 ? 4 : 8;
    }
    return bytes;
}

/* Places the columns of folds in the scratch memory. They are sums in f32 or wider, until they are stored. */
static void place_folds(weft_render *r) {
    const weft_kernel *k = r->kernel;
    const int64_t columns = weft__kernel_rows(k) / weft__kernel_block_rows(k) * weft__kernel_row_length(k);
    for (int v = 0; v < k->n_code; v++) {
        if (!is_column_fold(r, v)) continue;
        const weft_render_type type = weft__render_type((weft_dtype)k->code[v].dtype);
        r->scratch[v] = (r->launches->scratch_bytes + 63) / 64 * 64;
        r->launches->scratch_bytes = r->scratch[v] + columns * bytes_of(type);
    }
}

/* Returns the parts of the prelude. They are the same for most kernels, since sources with the same prelude
 * are compiled together. */
unsigned weft__render_prelude(const weft_render *r) {
    unsigned prelude = WEFT_PRELUDE_LANES | WEFT_PRELUDE_F32 | WEFT_PRELUDE_RANDOM;
    if (r->row.ahead >= 0) prelude |= WEFT_PRELUDE_TENSOR; /* its copies */
    for (int v = 0; v < r->kernel->n_code; v++) {
        const weft_instr *in = &r->kernel->code[v];
        if (in->kind != WEFT_INSTR_STORE && in->dtype == WEFT_F64) prelude |= WEFT_PRELUDE_F64;
    }
    return prelude;
}

/* Writes the body once to find its arguments. Then writes all of the source twice: to learn its length, and
 * into memory. NULL if memory is gone. */
static const char *write_source(weft_render *r, const partition *c, const char *name) {
    char *memory = NULL;
    size_t size = 0;
    for (int pass = 0; pass < 2 && !r->failed; pass++) {
        r->text = weft__text(memory, size);
        put_body(r, c);
        if (!r->literal && weft__render_argument_bytes(r) > WEFT_RENDER_BYTES) {
            r->literal = true;
            r->n_numbers = 0;
            put_body(r, c);
        }
        r->text = weft__text(memory, size);
        put_all(r, c, name);
        if (pass == 1) return r->failed ? NULL : memory;
        size = r->text.length + 1;
        memory = weft__arena_alloc(r->launches->arena, size);
        if (!memory) return NULL;
    }
    return NULL;
}

static weft_status render(weft_render *r) {
    WEFT_TRY(weft__render_choose(r));
    const weft_kernel *k = r->kernel;
    const partition c = partition_of(r);
    const char *name = identifier(r);
    place_folds(r);
    r->faults = r->sink;
    const char *text = write_source(r, &c, name);
    if (!text) return weft__fail_oom(r->launches->ctx, 4096, "the kernel source of a kernel");
    const size_t most = (size_t)(k->n_args + k->n_code) + r->n_numbers + 1;
    weft_argument *arguments = weft__arena_alloc(r->launches->arena, most * sizeof *arguments);
    if (!arguments)
        return weft__fail_oom(r->launches->ctx, most * sizeof *arguments, "the arguments of a kernel");
    const weft_argument *end = weft__render_arguments(r, arguments);
    return weft__launch(r->launches, &(weft_launch){.name = name,
                                                    .source = text,
                                                    .prelude = weft__render_prelude(r),
                                                    .local_bytes = local_bytes(r),
                                                    .n_arguments = (int)(end - arguments),
                                                    .arguments = arguments,
                                                    .groups = {c.groups, 1, 1},
                                                    .items = {c.items, 1, 1},
                                                    .shared_bytes = (int)r->row.stash_bytes,
                                                    .facts = weft__render_facts(r, c.per)});
}

void weft__render_free(weft_render *r) {
    weft_context *ctx = r->launches->ctx;
    weft__free(ctx, r->stage);
    weft__free(ctx, r->varies);
    weft__free(ctx, r->rounded);
    weft__free(ctx, r->wanted);
    weft__free(ctx, r->row.first);
    weft__free(ctx, r->row.kept);
    weft__free(ctx, r->scratch);
    weft__free(ctx, r->row.stash);
    weft__free(ctx, r->numbers);
}

weft_status weft__render(weft_launches *launches, const weft_kernel *kernel, bool sink) {
    weft_kernel words = *kernel;
    if (weft__kernel_rows(kernel) == 0) return WEFT_OK; /* nothing to store */
    if (weft__render_moves(kernel)) WEFT_TRY(weft__render_as_words(launches, &words));
    weft_render r = {
        .launches = launches, .target = launches->target, .kernel = &words, .sink = sink, .product = -1};
    const weft_status status = render(&r);
    weft__render_free(&r);
    return status;
}
