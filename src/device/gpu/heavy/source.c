/* A program's own kernel source as a launch: a kernel that calls its function.
 * Must not know: what it computes. Read next: heavy.h, include/weft/op.h. */
#include <string.h>

#include "base/text.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"

enum { OPERANDS = 4 };

static const char *const types[] = {
    [WEFT_F32] = "float", [WEFT_F64] = "double", [WEFT_I8] = "w_i8", [WEFT_U8] = "uchar",
    [WEFT_I16] = "short", [WEFT_U16] = "ushort", [WEFT_I32] = "int", [WEFT_U32] = "uint",
    [WEFT_I64] = "long",  [WEFT_U64] = "ulong"};

bool weft__gpu_source_takes(const weft_target *target, const weft_heavy_source *s) {
    return s->dialect == (uint8_t)target->dialect && s->dtype < sizeof types / sizeof *types &&
           types[s->dtype] && (s->dtype != WEFT_F64 || target->f64);
}

/* Returns the source, followed by the kernel w_own_NAME. */
static const char *gpu_source_source_of(weft_launches *launches, const weft_heavy_source *s) {
    const size_t size = strlen(s->code) + 8 * strlen(s->name) + 1200;
    char *whole = weft__arena_alloc(launches->arena, size);
    const char *type = types[s->dtype];
    if (!whole) return NULL;
    weft_text to = weft__text(whole, size);
    weft__put(&to, "%s\nW_NUMBERS(w_own_%s) {\n    w_i64 ", s->code, s->name);
    for (int i = 0; i < s->arity; i++) weft__put(&to, "at_%d, ", i);
    weft__put(&to,
              "out_at;\n    w_i64 n;\n    int sink, command;\n};\nW_KERNEL W_ITEMS(%d, 1, 1) void w_own_%s(",
              s->items, s->name);
    for (int i = 0; i < s->arity; i++) weft__put(&to, "const W_GLOBAL %s *in_%d, ", type, i);
    weft__put(&to,
              "W_GLOBAL %s *out, W_GLOBAL w_faults *faults, const W_NUMBERS(w_own_%s) of) {\n"
              "    W_RETURN_IF_FAULTED(%d, of.sink)\n    %s(",
              type, s->name, s->items, s->name);
    for (int i = 0; i < s->arity; i++) weft__put(&to, "in_%d + of.at_%d, ", i, i);
    weft__put(&to, "out + of.out_at, of.n);\n}\n");
    return whole;
}

weft_status weft__gpu_source(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_source *s = &heavy->as.source;
    if (s->n == 0) return WEFT_OK;
    const size_t length = strlen(s->name) + sizeof "w_own_";
    char *name = weft__arena_alloc(launches->arena, length);
    const char *source = gpu_source_source_of(launches, s);
    if (!name || !source) return weft__fail_oom(launches->ctx, length, "the kernel source of an op");
    memcpy(name, "w_own_", sizeof "w_own_");
    memcpy(name + sizeof "w_own_" - 1, s->name, strlen(s->name) + 1);
    weft_argument arguments[OPERANDS + 4];
    int n = 0;
    for (; n < s->arity; n++) arguments[n] = (weft_argument)READS(n, s->dtype);
    arguments[n++] = (weft_argument)WRITES(s->arity, s->dtype);
    arguments[n++] = (weft_argument)I64(s->n);
    arguments[n++] = (weft_argument)I32(sink);
    arguments[n++] = (weft_argument)FAULT;
    return weft__launch(launches, &(weft_launch){.name = name,
                                                 .source = source,
                                                 .prelude = weft__gpu_prelude((weft_dtype)s->dtype),
                                                 .n_arguments = n,
                                                 .arguments = arguments,
                                                 .groups = {weft__ceil_div(s->n, s->items), 1, 1},
                                                 .items = {s->items, 1, 1}});
}
