/* The types of the C dialect, with their sizes in memory.
 * Must not know: how values are printed. Read next: parse.c. */
#include <string.h>

#include "device/webgpu/wgsl/tree.h"

static const weft_wgsl_type plain[] = {
    {.kind = WEFT_WGSL_VOID},  {.kind = WEFT_WGSL_BOOL}, {.kind = WEFT_WGSL_I8},  {.kind = WEFT_WGSL_U8},
    {.kind = WEFT_WGSL_I16},   {.kind = WEFT_WGSL_U16},  {.kind = WEFT_WGSL_I32}, {.kind = WEFT_WGSL_U32},
    {.kind = WEFT_WGSL_INDEX}, {.kind = WEFT_WGSL_I64},  {.kind = WEFT_WGSL_U64}, {.kind = WEFT_WGSL_F16},
    {.kind = WEFT_WGSL_F32},   {.kind = WEFT_WGSL_F64}};

static const weft_wgsl_type fours[] = {{.kind = WEFT_WGSL_FOUR, .of = &plain[WEFT_WGSL_F32], .count = 4},
                                       {.kind = WEFT_WGSL_FOUR, .of = &plain[WEFT_WGSL_U32], .count = 4},
                                       {.kind = WEFT_WGSL_FOUR, .of = &plain[WEFT_WGSL_I32], .count = 4},
                                       {.kind = WEFT_WGSL_FOUR, .of = &plain[WEFT_WGSL_U64], .count = 4},
                                       {.kind = WEFT_WGSL_FOUR, .of = &plain[WEFT_WGSL_F64], .count = 4}};

static const struct named {
    const char *name;
    const weft_wgsl_type *type;
} names[] = {{"void", &plain[WEFT_WGSL_VOID]},
             {"bool", &plain[WEFT_WGSL_BOOL]},
             {"char", &plain[WEFT_WGSL_I8]},
             {"uchar", &plain[WEFT_WGSL_U8]},
             {"short", &plain[WEFT_WGSL_I16]},
             {"ushort", &plain[WEFT_WGSL_U16]},
             {"int", &plain[WEFT_WGSL_I32]},
             {"uint", &plain[WEFT_WGSL_U32]},
             {"w_index", &plain[WEFT_WGSL_INDEX]},
             {"long", &plain[WEFT_WGSL_I64]},
             {"ulong", &plain[WEFT_WGSL_U64]},
             {"half", &plain[WEFT_WGSL_F16]},
             {"float", &plain[WEFT_WGSL_F32]},
             {"double", &plain[WEFT_WGSL_F64]},
             {"float4", &fours[0]},
             {"uint4", &fours[1]},
             {"int4", &fours[2]},
             {"ulong4", &fours[3]},
             {"double4", &fours[4]}};

const weft_wgsl_type *weft__wgsl_type(weft_wgsl_kind kind) { return &plain[kind]; }

void weft__wgsl_builtin_types(weft_wgsl_run *run) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        weft__wgsl_word(run, names[i].name, strlen(names[i].name))->type = names[i].type;
}

/* Returns a type that consists of types of a depth. */
static weft_wgsl_type *deeper(weft_wgsl_run *run, weft_wgsl_type *type, int depth) {
    type->depth = depth + 1;
    if (type->depth > WEFT_WGSL_TYPE_DEPTH)
        weft__wgsl_fail(run, run->line, "a type is nested more than %d deep", WEFT_WGSL_TYPE_DEPTH);
    return type;
}

const weft_wgsl_type *weft__wgsl_pointer(weft_wgsl_run *run, const weft_wgsl_type *of,
                                         weft_wgsl_space space) {
    weft_wgsl_type *t = weft__wgsl_alloc(run, sizeof *t);
    *t = (weft_wgsl_type){.kind = WEFT_WGSL_POINTER, .of = of, .space = space};
    return deeper(run, t, of->depth);
}

const weft_wgsl_type *weft__wgsl_array(weft_wgsl_run *run, const weft_wgsl_type *of, int count) {
    weft_wgsl_type *t = weft__wgsl_alloc(run, sizeof *t);
    *t = (weft_wgsl_type){.kind = WEFT_WGSL_ARRAY, .of = of, .count = count};
    if (count > WEFT_WGSL_TYPE_BYTES || (int64_t)count * weft__wgsl_size(of) > WEFT_WGSL_TYPE_BYTES)
        weft__wgsl_fail(run, run->line, "an array has more than %d bytes", WEFT_WGSL_TYPE_BYTES);
    return deeper(run, t, of->depth);
}

static int alignment_of(const weft_wgsl_type *type) {
    switch (type->kind) {
    case WEFT_WGSL_ARRAY: return alignment_of(type->of);
    case WEFT_WGSL_STRUCT:
    case WEFT_WGSL_UNION: return type->alignment;
    default: return weft__wgsl_size(type);
    }
}

static int up(int n, int to) { return (n + to - 1) / to * to; }

int weft__wgsl_size(const weft_wgsl_type *type) {
    switch (type->kind) {
    case WEFT_WGSL_VOID:
    case WEFT_WGSL_BOOL:
    case WEFT_WGSL_I8:
    case WEFT_WGSL_U8: return 1;
    case WEFT_WGSL_I16:
    case WEFT_WGSL_U16:
    case WEFT_WGSL_F16: return 2;
    case WEFT_WGSL_I32:
    case WEFT_WGSL_U32:
    case WEFT_WGSL_F32: return 4;
    case WEFT_WGSL_FOUR: return 4 * weft__wgsl_size(type->of);
    case WEFT_WGSL_ARRAY: return type->count * weft__wgsl_size(type->of);
    case WEFT_WGSL_STRUCT:
    case WEFT_WGSL_UNION: return type->bytes;
    default: return 8;
    }
}

void weft__wgsl_layout(weft_wgsl_run *run, weft_wgsl_type *type, int line) {
    int at = 0, end = 0, depth = 0;
    type->alignment = 1;
    for (weft_wgsl_field *f = type->fields; f; f = f->next) {
        const int alignment = alignment_of(f->type);
        f->offset = up(type->kind == WEFT_WGSL_UNION ? 0 : at, alignment);
        at = f->offset + weft__wgsl_size(f->type); /* both are below 2^21 */
        if (at > WEFT_WGSL_TYPE_BYTES)
            weft__wgsl_fail(run, line, "a struct has more than %d bytes", WEFT_WGSL_TYPE_BYTES);
        if (at > end) end = at;
        if (alignment > type->alignment) type->alignment = alignment;
        if (f->type->depth > depth) depth = f->type->depth;
    }
    type->bytes = up(end, type->alignment);
    deeper(run, type, depth);
}

const weft_wgsl_field *weft__wgsl_field_of(const weft_wgsl_type *type, const weft_wgsl_word *name) {
    if (type->kind != WEFT_WGSL_STRUCT) return NULL;
    for (const weft_wgsl_field *f = type->fields; f; f = f->next)
        if (f->name == name) return f;
    return NULL;
}

const char *weft__wgsl_c_name(weft_wgsl_run *run, const weft_wgsl_type *type) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type) return names[i].name;
    switch (type->kind) {
    case WEFT_WGSL_POINTER: return weft__wgsl_text(run, "%s *", weft__wgsl_c_name(run, type->of));
    case WEFT_WGSL_ARRAY:
        return weft__wgsl_text(run, "%s[%d]", weft__wgsl_c_name(run, type->of), type->count);
    case WEFT_WGSL_UNION: return "union";
    default: return weft__wgsl_text(run, "struct %s", type->tag ? type->tag->text : "without a name");
    }
}

bool weft__wgsl_same(const weft_wgsl_type *a, const weft_wgsl_type *b) {
    if (a == b) return true;
    if (a->kind != b->kind) return false;
    if (a->kind == WEFT_WGSL_ARRAY) return a->count == b->count && weft__wgsl_same(a->of, b->of);
    if (a->kind == WEFT_WGSL_POINTER || a->kind == WEFT_WGSL_FOUR) return weft__wgsl_same(a->of, b->of);
    return a->kind < WEFT_WGSL_FOUR;
}
