/* Prints the functions that the dialect has built in: those of OpenCL C that the preludes use, and
 * w_uniform, w_exact and w_round_to_f16 of prelude/wgsl.cl. Must not know: functions of the source. */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

enum { ARGUMENTS = 5 };

typedef struct call {
    weft_wgsl_emitter *e;
    const char *name;
    const weft_wgsl_node *node;
    weft_wgsl_value a[ARGUMENTS];
    int count;
} call;

static const weft_wgsl_type *type(weft_wgsl_kind kind) { return weft__wgsl_type(kind); }

/* Evaluates the arguments, which must be n. */
static void take(call *c, int n) {
    for (const weft_wgsl_node *a = c->node->list; a; a = a->next) {
        if (c->count == n) n = -1;
        if (n < 0) break;
        c->a[c->count++] = weft__wgsl_expression(c->e, a);
    }
    if (c->count != n)
        weft__wgsl_fail(c->e->run, c->node->line, "%s is called with other arguments than it has", c->name);
}

static weft_wgsl_value result(const call *c, weft_wgsl_kind kind, const char *text) {
    weft_wgsl_value v = weft__wgsl_value(type(kind), text, WEFT_WGSL_L_PRIMARY, c->node->line);
    for (int i = 0; i < c->count; i++) v.heavy = v.heavy || c->a[i].heavy;
    return v;
}

/* Writes a statement; the function returns nothing. */
static weft_wgsl_value nothing(const call *c) {
    return weft__wgsl_value(type(WEFT_WGSL_VOID), "", WEFT_WGSL_L_PRIMARY, c->node->line);
}

/* ---- conversions ---- */

static bool kind_named(const char *name, weft_wgsl_kind *kind) {
    static const struct {
        const char *name;
        weft_wgsl_kind kind;
    } kinds[] = {{"int", WEFT_WGSL_I32},
                 {"uint", WEFT_WGSL_U32},
                 {"long", WEFT_WGSL_I64},
                 {"ulong", WEFT_WGSL_U64},
                 {"float", WEFT_WGSL_F32}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(name, kinds[i].name)) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* as_TYPE: the same bits. */
static weft_wgsl_value same_bits(call *c, weft_wgsl_kind to) {
    take(c, 1);
    weft_wgsl_value v = c->a[0];
    if (v.type->kind < WEFT_WGSL_I32) v = weft__wgsl_convert(c->e, v, type(WEFT_WGSL_I32));
    if (weft__wgsl_size(type(to)) != weft__wgsl_size(v.type) || !weft__wgsl_is_number(v.type))
        weft__wgsl_fail(c->e->run, c->node->line, "%s has an argument of type %s", c->name,
                        weft__wgsl_c_name(c->e->run, v.type));
    const bool floats = to == WEFT_WGSL_F32 || v.type->kind == WEFT_WGSL_F32;
    if (!floats || v.type->kind == to) return weft__wgsl_convert(c->e, v, type(to));
    if (v.known && to == WEFT_WGSL_F32) { /* WGSL refuses constants that are NaN */
        const uint32_t bits = (uint32_t)(uint64_t)v.integer;
        return result(c, to, weft__wgsl_text(c->e->run, "bitcast<f32>(%uu | w_words[0].w)", bits));
    }
    if (v.known) {
        const float f = (float)v.number;
        int32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return weft__wgsl_known(c->e, type(to), bits, c->node->line);
    }
    return result(c, to,
                  weft__wgsl_text(c->e->run, "bitcast<%s>(%s)",
                                  weft__wgsl_type_text(c->e, type(to), c->node->line), v.text));
}

static const char *short_name(weft_wgsl_kind kind) {
    switch (kind) {
    case WEFT_WGSL_U32: return "u32";
    case WEFT_WGSL_I64: return "i64";
    case WEFT_WGSL_U64: return "u64";
    case WEFT_WGSL_F32: return "f32";
    default: return "i32";
    }
}

/* convert_TYPE, and with _sat or _rtz behind it. */
static weft_wgsl_value converted(call *c, weft_wgsl_kind to, const char *how) {
    take(c, 1);
    weft_wgsl_value v = c->a[0];
    if (!weft__wgsl_is_number(v.type))
        weft__wgsl_fail(c->e->run, c->node->line, "%s has an argument that is no number", c->name);
    const bool from_float = v.type->kind == WEFT_WGSL_F32, saturates = !strcmp(how, "_sat");
    if (from_float &&
        to < WEFT_WGSL_F32) /* C's conversion of other numbers is not defined, so it may be this one */
        return result(
            c, to,
            weft__wgsl_text(c->e->run, "%s(%s)",
                            weft__wgsl_help(c->e, weft__wgsl_text(c->e->run,
                                                                  weft__wgsl_is_64(type(to)) ? "w64_%s_of_f32"
                                                                                             : "wf_%s_of_f32",
                                                                  short_name(to))),
                            v.text));
    if (*how && !from_float) {
        if (saturates) weft__wgsl_fail(c->e->run, c->node->line, "%s is only supported for floats", c->name);
        v = weft__wgsl_convert(c->e, v, weft__wgsl_common(c->e, v.type, type(WEFT_WGSL_I32), c->node->line));
        const bool is_64 = weft__wgsl_is_64(v.type);
        return result(c, to,
                      weft__wgsl_text(c->e->run, "%s(%s)",
                                      weft__wgsl_help(c->e, weft__wgsl_text(c->e->run,
                                                                            is_64 ? "w64_f32_rtz_of_%s"
                                                                                  : "wf_f32_rtz_of_%s",
                                                                            short_name(v.type->kind))),
                                      v.text));
    }
    return weft__wgsl_convert(c->e, v, type(to));
}

static bool conversion(call *c, weft_wgsl_value *to) {
    const char *name = c->name;
    char word[16];
    weft_wgsl_kind kind;
    if (!strncmp(name, "as_", 3) && kind_named(name + 3, &kind)) {
        *to = same_bits(c, kind);
        return true;
    }
    if (strncmp(name, "convert_", 8) != 0) return false;
    const size_t n = strcspn(name + 8, "_");
    if (n >= sizeof word) return false;
    memcpy(word, name + 8, n);
    word[n] = 0;
    const char *how = name + 8 + n;
    if (!kind_named(word, &kind) || (*how && strcmp(how, "_sat") != 0 && strcmp(how, "_rtz") != 0))
        return false;
    *to = converted(c, kind, how);
    return true;
}

/* ---- numbers ---- */

static weft_wgsl_value smallest(call *c) {
    const bool least = !strcmp(c->name, "min");
    take(c, 2);
    weft_wgsl_emitter *e = c->e;
    const weft_wgsl_type *t = weft__wgsl_common(e, c->a[0].type, c->a[1].type, c->node->line);
    weft_wgsl_value a = weft__wgsl_convert(e, c->a[0], t), b = weft__wgsl_convert(e, c->a[1], t);
    if (t->kind >= WEFT_WGSL_F16)
        weft__wgsl_fail(e->run, c->node->line, "%s is only supported for integers", c->name);
    if (a.known && b.known && t->kind != WEFT_WGSL_U64)
        return weft__wgsl_known(e, t, (a.integer < b.integer) == least ? a.integer : b.integer,
                                c->node->line);
    if (!weft__wgsl_is_64(t))
        return result(c, t->kind, weft__wgsl_text(e->run, "%s(%s, %s)", c->name, a.text, b.text));
    a = weft__wgsl_keep(e, a), b = weft__wgsl_keep(e, b);
    const weft_wgsl_value less = weft__wgsl_binary(e, "<", least ? a : b, least ? b : a, c->node->line);
    return result(c, t->kind, weft__wgsl_text(e->run, "select(%s, %s, %s)", b.text, a.text, less.text));
}

static weft_wgsl_value clamped(call *c) {
    take(c, 3);
    weft_wgsl_emitter *e = c->e;
    const weft_wgsl_type *t = weft__wgsl_common(e, c->a[0].type, type(WEFT_WGSL_I32), c->node->line);
    if (t->kind >= WEFT_WGSL_F16 || weft__wgsl_is_64(t))
        weft__wgsl_fail(e->run, c->node->line, "clamp is only supported for integers of 32 bits");
    for (int i = 0; i < 3; i++) c->a[i] = weft__wgsl_convert(e, c->a[i], t);
    return result(c, t->kind,
                  weft__wgsl_text(e->run, "clamp(%s, %s, %s)", c->a[0].text, c->a[1].text, c->a[2].text));
}

/* Functions of floats, and their names in WGSL or in library.c. */
static const struct {
    const char *name, *as;
    int arguments;
} floats[] = {{"fma", "fma", 3},      {"sqrt", "sqrt", 1},    {"fabs", "abs", 1},
              {"floor", "floor", 1},  {"ceil", "ceil", 1},    {"fmax", "wf_fmax", 2},
              {"fmin", "wf_fmin", 2}, {"fmod", "wf_fmod", 2}, {"w_round_to_f16", "wf_round_f16", 1}};

static bool float_function(call *c, weft_wgsl_value *to) {
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        if (strcmp(c->name, floats[i].name) != 0) continue;
        const char *text = weft__wgsl_help(c->e, floats[i].as);
        take(c, floats[i].arguments);
        for (int k = 0; k < c->count; k++) {
            if (c->a[k].type->kind == WEFT_WGSL_F64 && !c->a[k].known)
                weft__wgsl_fail(c->e->run, c->node->line, "numbers of type double are not supported");
            text = weft__wgsl_text(c->e->run, "%s%s%s", text, k ? ", " : "(",
                                   weft__wgsl_convert(c->e, c->a[k], type(WEFT_WGSL_F32)).text);
        }
        *to = result(c, WEFT_WGSL_F32, weft__wgsl_text(c->e->run, "%s)", text));
        return true;
    }
    return false;
}

/* ---- memory ---- */

static weft_wgsl_value half_place(call *c, int i, int p) {
    weft_wgsl_value pointer = c->a[p];
    if (pointer.type->kind != WEFT_WGSL_POINTER || pointer.type->of->kind != WEFT_WGSL_F16)
        weft__wgsl_fail(c->e->run, c->node->line, "%s needs a pointer to half", c->name);
    return weft__wgsl_element(c->e, pointer, c->a[i]);
}

/* Adds to a word, or exchanges it if it is as expected. Returns the word before. */
static weft_wgsl_value atomic(call *c) {
    const bool exchanges = !strcmp(c->name, "atomic_cmpxchg");
    weft_wgsl_emitter *e = c->e;
    take(c, exchanges ? 3 : 2);
    const char *word = weft__wgsl_atomic_word(e, c->a[0]), *name = weft__wgsl_temporary(e);
    /* words of buffers are u32 */
    const bool signs = c->a[0].base.kind == WEFT_WGSL_IN_LOCAL && c->a[0].type->of->kind == WEFT_WGSL_I32;
    const weft_wgsl_type *word_type = type(signs ? WEFT_WGSL_I32 : WEFT_WGSL_U32);
    const weft_wgsl_value x = weft__wgsl_keep(e, weft__wgsl_convert(e, c->a[1], word_type));
    if (!exchanges) {
        weft__wgsl_line(e, "let %s = atomicAdd(%s, %s);", name, word, x.text);
    } else { /* WGSL's exchange may fail without a reason */
        const weft_wgsl_value y = weft__wgsl_keep(e, weft__wgsl_convert(e, c->a[2], word_type));
        weft__wgsl_line(e, "var %s: %s;", name, signs ? "i32" : "u32");
        weft__wgsl_line(e, "loop {");
        weft__wgsl_line(e, "    let w_exchange = atomicCompareExchangeWeak(%s, %s, %s);", word, x.text,
                        y.text);
        weft__wgsl_line(e, "    %s = w_exchange.old_value;", name);
        weft__wgsl_line(e, "    if (w_exchange.exchanged || %s != %s) {", name, x.text);
        weft__wgsl_line(e, "        break;");
        weft__wgsl_line(e, "    }");
        weft__wgsl_line(e, "}");
    }
    return weft__wgsl_convert(e, result(c, word_type->kind, name), c->a[0].type->of);
}

/* ---- work-items ---- */

static bool work_item(call *c, weft_wgsl_value *to) {
    static const char *const names[] = {"get_group_id", "get_local_id", "get_num_groups"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(c->name, names[i]) != 0) continue;
        take(c, 1);
        if (!c->a[0].known || c->a[0].integer < 0 || c->a[0].integer > 2)
            weft__wgsl_fail(c->e->run, c->node->line, "%s needs a dimension, 0 to 2", c->name);
        const char dimension = "xyz"[c->a[0].integer];
        if (i == 2) {
            *to = result(c, WEFT_WGSL_I32, weft__wgsl_text(c->e->run, "i32(w_words[0].%c)", dimension));
        } else {
            *to = result(c, WEFT_WGSL_I32,
                         weft__wgsl_text(c->e->run, "%s.%c", i ? "w_item" : "w_group", dimension));
            c->e->needs.group = c->e->needs.group || i == 0;
            c->e->needs.item = c->e->needs.item || i == 1;
        }
        return true;
    }
    return false;
}

/* w_uniform(x): the first work-item evaluates x, an int or a condition, and all of the work-group get its
 * answer. It is a barrier. */
static weft_wgsl_value uniform(call *c) {
    weft_wgsl_emitter *e = c->e;
    const char *name = weft__wgsl_temporary(e);
    if (!c->node->list || c->node->list->next)
        weft__wgsl_fail(e->run, c->node->line, "w_uniform needs one argument");
    weft__wgsl_local_variable(e, "w_answer", type(WEFT_WGSL_I32), c->node->line);
    e->needs.item = true;
    weft__wgsl_line(e, "if (all(w_item == vec3<i32>())) {");
    e->indent++;
    const weft_wgsl_value v =
        weft__wgsl_convert(e, weft__wgsl_expression(e, c->node->list), type(WEFT_WGSL_I32));
    weft__wgsl_line(e, "w_answer = %s;", v.text);
    e->indent--;
    weft__wgsl_line(e, "}");
    weft__wgsl_line(e, "let %s = workgroupUniformLoad(&w_answer);", name);
    return weft__wgsl_value(type(WEFT_WGSL_I32), name, WEFT_WGSL_L_PRIMARY, c->node->line);
}

static bool statement(call *c, weft_wgsl_value *to) {
    const bool all = !strcmp(c->name, "w_barrier_all");
    *to = nothing(c);
    if (all || !strcmp(c->name, "w_barrier")) {
        take(c, 0);
        if (all) weft__wgsl_line(c->e, "storageBarrier();");
        weft__wgsl_line(c->e, "workgroupBarrier();");
    } else if (!strcmp(c->name, "vstore_half_rte")) {
        take(c, 3);
        weft__wgsl_store(c->e, half_place(c, 1, 2), c->a[0]);
    } else if (!strcmp(c->name, "vload_half")) {
        take(c, 2);
        *to = weft__wgsl_load(c->e, half_place(c, 0, 1));
    } else if (!strcmp(c->name, "atomic_cmpxchg") || !strcmp(c->name, "atomic_add")) {
        *to = atomic(c);
    } else if (!strcmp(c->name, "w_exact")) { /* by a zero that compilers do not know */
        take(c, 1);
        const weft_wgsl_value x = weft__wgsl_convert(c->e, c->a[0], type(WEFT_WGSL_F32));
        *to = result(c, WEFT_WGSL_F32,
                     weft__wgsl_text(c->e->run, "bitcast<f32>(bitcast<u32>(%s) | w_words[0].w)", x.text));
    } else if (!strcmp(c->name, "w_uniform")) {
        *to = uniform(c);
    } else {
        return false;
    }
    return true;
}

bool weft__wgsl_builtin(weft_wgsl_emitter *e, const weft_wgsl_node *n, weft_wgsl_value *to) {
    call c = {.e = e, .name = n->word->text, .node = n};
    if (conversion(&c, to) || float_function(&c, to) || work_item(&c, to) || statement(&c, to)) return true;
    if (!strcmp(c.name, "min") || !strcmp(c.name, "max")) {
        *to = smallest(&c);
    } else if (!strcmp(c.name, "clamp")) {
        *to = clamped(&c);
    } else if (!strcmp(c.name, "w_from_f16_bits") || !strcmp(c.name, "w_to_f16_bits")) {
        const bool from = c.name[2] == 'f';
        take(&c, 1);
        const weft_wgsl_value x = weft__wgsl_convert(e, c.a[0], type(from ? WEFT_WGSL_U32 : WEFT_WGSL_F32));
        const char *f = weft__wgsl_help(e, from ? "wf_f32_of_f16" : "wf_f16_of_f32");
        *to = result(&c, from ? WEFT_WGSL_F32 : WEFT_WGSL_U32, weft__wgsl_text(e->run, "%s(%s)", f, x.text));
    } else if (!strcmp(c.name, "mul_hi")) {
        take(&c, 2);
        const weft_wgsl_type *u32 = type(WEFT_WGSL_U32);
        *to = result(&c, WEFT_WGSL_U32,
                     weft__wgsl_text(e->run, "%s(%s, %s)", weft__wgsl_help(e, "w64_mul_hi"),
                                     weft__wgsl_convert(e, c.a[0], u32).text,
                                     weft__wgsl_convert(e, c.a[1], u32).text));
    } else {
        return false;
    }
    return true;
}
