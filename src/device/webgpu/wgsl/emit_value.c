/* Texts, types and numbers of WGSL. Must not know: memory, statements. Read next: emit_place.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

/* ---- texts ---- */

static void put_args(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    const size_t more = n > 0 ? (size_t)n : 0;
    while (to->length + more + 1 > to->capacity) {
        const size_t capacity = to->capacity ? 2 * to->capacity : 1024;
        char *text = weft__wgsl_alloc(e->run, capacity);
        if (to->length) memcpy(text, to->text, to->length);
        to->text = text;
        to->capacity = capacity;
    }
    vsnprintf(to->text + to->length, more + 1, fmt, again);
    va_end(again);
    to->length += more;
}

void weft__wgsl_put(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_args(e, to, fmt, args);
    va_end(args);
}

void weft__wgsl_line(weft_wgsl_emitter *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    weft__wgsl_put(e, e->out, "%*s", 4 * e->indent, "");
    put_args(e, e->out, fmt, args);
    weft__wgsl_put(e, e->out, "\n");
    va_end(args);
}

bool weft__wgsl_has(const weft_wgsl_names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->list[i], name)) return true;
    return false;
}

bool weft__wgsl_once(weft_wgsl_emitter *e, weft_wgsl_names *names, const char *name) {
    if (weft__wgsl_has(names, name)) return false;
    names->list = weft__wgsl_grow(e->run, names->list, &names->capacity, names->count, sizeof *names->list);
    names->list[names->count++] = name;
    return true;
}

/* Adds the functions that the text of a library function calls, then the function. */
const char *weft__wgsl_help(weft_wgsl_emitter *e, const char *name) {
    const char *text = weft__wgsl_library(name);
    if (!text || !weft__wgsl_once(e, &e->helpers, name)) return name;
    for (const char *p = text; *p;) {
        const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (n > 4 && p[n] == '(' && !strncmp(p, "w64_", 4))
            weft__wgsl_help(e, weft__wgsl_text(e->run, "%.*s", (int)n, p));
        if (n > 3 && p[n] == '(' && !strncmp(p, "wf_", 3))
            weft__wgsl_help(e, weft__wgsl_text(e->run, "%.*s", (int)n, p));
        p += n ? n : 1;
    }
    weft__wgsl_put(e, &e->functions, "%s", text);
    return name;
}

const char *weft__wgsl_temporary(weft_wgsl_emitter *e) {
    return weft__wgsl_text(e->run, "w_t%d", ++e->temporaries);
}

const char *weft__wgsl_safe_name(weft_wgsl_emitter *e, const char *name) {
    static const char reserved[] =
        " NULL Self abstract active alias alignas alignof as asm asm_fragment async attribute auto await "
        "become break "
        "case cast catch class co_await co_return co_yield coherent column_major common compile "
        "compile_fragment "
        "concept const const_assert const_cast consteval constexpr constinit continue continuing crate "
        "debugger "
        "decltype default delete demote demote_to_helper diagnostic discard do dynamic_cast else enable enum "
        "explicit "
        "export extends extern external fallthrough false filter final finally fn for friend from fxgroup "
        "get goto "
        "groupshared highp if impl implements import inline instanceof interface layout let loop lowp macro "
        "macro_rules main match mediump meta mod module move mut mutable namespace new nil noexcept noinline "
        "nointerpolation non_coherent noncoherent noperspective null nullptr of operator override package "
        "packoffset "
        "partition pass patch pixelfragment precise precision premerge priv protected pub public readonly "
        "ref "
        "regardless register reinterpret_cast require requires resource restrict return self set shared "
        "sizeof smooth "
        "snorm static static_assert static_cast std struct subroutine super switch target template this "
        "thread_local "
        "throw trait true try type typedef typeid typename typeof union unless unorm unsafe unsized use "
        "using var "
        "varying virtual volatile wgsl where while with writeonly yield "
        /* names that are declared in every module, as far as this printer uses them */
        "read write read_write function private workgroup uniform storage array atomic bool f16 f32 i32 u32 "
        "ptr vec2 "
        "vec3 vec4 all any select bitcast min max fma sqrt abs floor ceil trunc round clamp "
        "countLeadingZeros "
        "atomicLoad atomicStore ";
    const char *at = reserved;
    const size_t n = strlen(name);
    while ((at = strstr(at, name))) {
        if (at[-1] == ' ' && at[n] == ' ') return weft__wgsl_text(e->run, "%s0", name);
        at += n;
    }
    return name;
}

/* ---- types ---- */

const weft_wgsl_type *weft__wgsl_flat(const weft_wgsl_type *type) {
    while (type->kind == WEFT_WGSL_ARRAY) type = type->of;
    return type->kind == WEFT_WGSL_FOUR ? type->of : type;
}

int weft__wgsl_flat_count(const weft_wgsl_type *type) {
    int count = 1;
    for (; type->kind == WEFT_WGSL_ARRAY; type = type->of) count *= type->count;
    return type->kind == WEFT_WGSL_FOUR ? 4 * count : count;
}

static const char *struct_text(weft_wgsl_emitter *e, const weft_wgsl_type *type, int line) {
    const char *name = type->tag ? weft__wgsl_safe_name(e, type->tag->text)
                                 : weft__wgsl_text(e->run, "w_struct%d", type->number);
    if (!type->complete) weft__wgsl_fail(e->run, line, "struct %s has no members", name);
    if (!weft__wgsl_once(e, &e->known_structs, name)) return name;
    weft_wgsl_buffer text = {0};
    weft__wgsl_put(e, &text, "struct %s {\n", name);
    for (const weft_wgsl_field *f = type->fields; f; f = f->next)
        weft__wgsl_put(e, &text, "    %s: %s,\n", weft__wgsl_safe_name(e, f->name->text),
                       weft__wgsl_type_text(e, f->type, line));
    weft__wgsl_put(e, &e->structs, "%s}\n", text.text);
    return name;
}

const char *weft__wgsl_type_text(weft_wgsl_emitter *e, const weft_wgsl_type *type, int line) {
    switch (type->kind) {
    case WEFT_WGSL_BOOL: return "bool";
    case WEFT_WGSL_I8:
    case WEFT_WGSL_U8:
    case WEFT_WGSL_I16:
    case WEFT_WGSL_U16:
    case WEFT_WGSL_I32:
    case WEFT_WGSL_INDEX: return "i32";
    case WEFT_WGSL_U32: return "u32";
    case WEFT_WGSL_I64:
    case WEFT_WGSL_U64: return "vec2<u32>";
    case WEFT_WGSL_F32: return "f32";
    case WEFT_WGSL_FOUR: /* WGSL has no vectors of vectors */
        return weft__wgsl_text(e->run, weft__wgsl_is_64(type->of) ? "array<%s, 4>" : "vec4<%s>",
                               weft__wgsl_type_text(e, type->of, line));
    case WEFT_WGSL_ARRAY:
        if (weft__wgsl_flat_count(type) == 0) weft__wgsl_fail(e->run, line, "an array has no elements");
        return weft__wgsl_text(e->run, "array<%s, %d>", weft__wgsl_type_text(e, weft__wgsl_flat(type), line),
                               weft__wgsl_flat_count(type));
    case WEFT_WGSL_STRUCT: return struct_text(e, type, line);
    default: break;
    }
    weft__wgsl_fail(e->run, line, "WGSL has no type for %s", weft__wgsl_c_name(e->run, type));
}

/* ---- values ---- */

weft_wgsl_value weft__wgsl_value(const weft_wgsl_type *type, const char *text, int level, int line) {
    return (weft_wgsl_value){.type = type, .text = text, .level = level, .line = line};
}

const char *weft__wgsl_at_level(weft_wgsl_emitter *e, const weft_wgsl_value *v, int level) {
    return v->level < level ? weft__wgsl_text(e->run, "(%s)", v->text) : v->text;
}

/* Cuts a number to the range of a type. */
static int64_t wrapped(const weft_wgsl_type *type, int64_t i) {
    switch (type->kind) {
    case WEFT_WGSL_BOOL: return i != 0;
    case WEFT_WGSL_I8: return (int8_t)(uint64_t)i;
    case WEFT_WGSL_U8: return (uint8_t)(uint64_t)i;
    case WEFT_WGSL_I16: return (int16_t)(uint64_t)i;
    case WEFT_WGSL_U16: return (uint16_t)(uint64_t)i;
    case WEFT_WGSL_U32: return (uint32_t)(uint64_t)i;
    case WEFT_WGSL_I64:
    case WEFT_WGSL_U64: return i;
    default: return (int32_t)(uint64_t)i;
    }
}

weft_wgsl_value weft__wgsl_known(weft_wgsl_emitter *e, const weft_wgsl_type *type, int64_t integer,
                                 int line) {
    weft_wgsl_value v = weft__wgsl_value(type, NULL, WEFT_WGSL_L_PRIMARY, line);
    v.known = true;
    v.integer = wrapped(type, integer);
    if (type->kind == WEFT_WGSL_BOOL) {
        v.text = v.integer ? "true" : "false";
    } else if (type->kind == WEFT_WGSL_U32) {
        v.text = weft__wgsl_text(e->run, "%uu", (unsigned)v.integer);
    } else if (weft__wgsl_is_64(type)) {
        v.text = weft__wgsl_text(e->run, "vec2<u32>(%uu, %uu)", (unsigned)(uint32_t)(uint64_t)v.integer,
                                 (unsigned)((uint64_t)v.integer >> 32));
    } else {
        v.text = weft__wgsl_text(e->run, v.integer == INT32_MIN ? "i32(%lld)" : "%lld", (long long)v.integer);
        if (v.integer < 0 && v.integer != INT32_MIN) v.level = WEFT_WGSL_L_UNARY;
    }
    return v;
}

weft_wgsl_value weft__wgsl_known_float(weft_wgsl_emitter *e, const weft_wgsl_type *type, double number,
                                       int line) {
    weft_wgsl_value v = weft__wgsl_value(type, "", WEFT_WGSL_L_PRIMARY, line);
    char digits[64];
    v.known = true;
    v.number = type->kind == WEFT_WGSL_F32 ? (double)(float)number : number;
    if (!isfinite(v.number)) { /* by a number that compilers do not know */
        v.text = weft__wgsl_text(e->run, "bitcast<f32>(%s | w_words[0].w)",
                                 isnan(v.number) ? "0x7fc00000u"
                                 : v.number < 0  ? "0xff800000u"
                                                 : "0x7f800000u");
        return v;
    }
    if (v.number == rint(v.number) && fabs(v.number) < 1e6)
        snprintf(digits, sizeof digits, "%s%d.0f", signbit(v.number) ? "-" : "", (int)fabs(v.number));
    else
        snprintf(digits, sizeof digits, "%af", v.number);
    for (char *p = digits; *p; p++)
        if (!strchr("0123456789abcdefpx+-", *p)) *p = '.'; /* the decimal separator of another locale */
    v.text = weft__wgsl_text(e->run, "%s", digits);
    if (signbit(v.number)) v.level = WEFT_WGSL_L_UNARY;
    return v;
}

weft_wgsl_value weft__wgsl_keep(weft_wgsl_emitter *e, weft_wgsl_value v) {
    if (v.known ||
        (v.level == WEFT_WGSL_L_PRIMARY && !v.heavy &&
         v.text[strspn(v.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == 0))
        return v;
    const char *name = weft__wgsl_temporary(e);
    weft__wgsl_line(e, "let %s = %s;", name, v.text);
    v.text = name;
    v.level = WEFT_WGSL_L_PRIMARY;
    v.heavy = false;
    return v;
}

/* ---- conversions ---- */

static bool is_signed_register(const weft_wgsl_type *t) {
    return t->kind >= WEFT_WGSL_I8 && t->kind <= WEFT_WGSL_INDEX && t->kind != WEFT_WGSL_U32;
}

static weft_wgsl_value called(weft_wgsl_emitter *e, const weft_wgsl_type *type, const char *f,
                              weft_wgsl_value v) {
    weft_wgsl_value to =
        weft__wgsl_value(type, weft__wgsl_text(e->run, "%s(%s)", f, v.text), WEFT_WGSL_L_PRIMARY, v.line);
    to.heavy = v.heavy;
    return to;
}

weft_wgsl_value weft__wgsl_is_zero(weft_wgsl_emitter *e, const weft_wgsl_value *x, const char *op) {
    const char *text = weft__wgsl_text(e->run, "(bitcast<u32>(%s) & 0x7fffffffu) %s 0u", x->text, op);
    weft_wgsl_value b = weft__wgsl_value(weft__wgsl_type(WEFT_WGSL_BOOL), text, WEFT_WGSL_L_COMPARE, x->line);
    b.heavy = x->heavy;
    return b;
}

static weft_wgsl_value to_bool(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    const char *text;
    if (v.type->kind == WEFT_WGSL_F32) return weft__wgsl_is_zero(e, &v, "!=");
    if (weft__wgsl_is_64(v.type))
        text =
            weft__wgsl_text(e->run, "any(%s != vec2<u32>())", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_SHIFT));
    else
        text = weft__wgsl_text(e->run, "%s != %s", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_ADD),
                               v.type->kind == WEFT_WGSL_U32 ? "0u" : "0");
    weft_wgsl_value b = weft__wgsl_value(
        to, text, weft__wgsl_is_64(v.type) ? WEFT_WGSL_L_PRIMARY : WEFT_WGSL_L_COMPARE, v.line);
    b.heavy = v.heavy;
    return b;
}

/* Cuts an i32 to 8 or 16 bits. */
static weft_wgsl_value narrowed(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    const char *x = weft__wgsl_at_level(e, &v, WEFT_WGSL_L_UNARY);
    const int shift = 32 - 8 * weft__wgsl_size(to);
    const bool keeps = to->kind == WEFT_WGSL_I8 || to->kind == WEFT_WGSL_I16;
    const char *text =
        keeps ? weft__wgsl_text(e->run, "(%s << %uu) >> %uu", x, (unsigned)shift, (unsigned)shift)
              : weft__wgsl_text(e->run, "%s & %d", x, to->kind == WEFT_WGSL_U8 ? 255 : 65535);
    weft_wgsl_value n = weft__wgsl_value(to, text, keeps ? WEFT_WGSL_L_SHIFT : WEFT_WGSL_L_BITS, v.line);
    n.heavy = v.heavy;
    return n;
}

static weft_wgsl_value from_64(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    if (weft__wgsl_is_64(to)) {
        v.type = to;
        return v;
    }
    if (to->kind == WEFT_WGSL_F32)
        return called(e, to,
                      weft__wgsl_help(e, v.type->kind == WEFT_WGSL_I64 ? "w64_f32_of_i64" : "w64_f32_of_u64"),
                      v);
    const char *low = weft__wgsl_text(e->run, "%s.x", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_PRIMARY));
    weft_wgsl_value word = weft__wgsl_value(weft__wgsl_type(WEFT_WGSL_U32), low, WEFT_WGSL_L_PRIMARY, v.line);
    word.heavy = v.heavy;
    return weft__wgsl_convert(e, word, to);
}

static weft_wgsl_value to_64(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    if (v.type->kind == WEFT_WGSL_F32)
        return called(e, to,
                      weft__wgsl_help(e, to->kind == WEFT_WGSL_I64 ? "w64_i64_of_f32" : "w64_u64_of_f32"), v);
    if (is_signed_register(v.type)) return called(e, to, weft__wgsl_help(e, "w64_of_i32"), v);
    if (v.type->kind == WEFT_WGSL_BOOL) v = weft__wgsl_convert(e, v, weft__wgsl_type(WEFT_WGSL_U32));
    v.text = weft__wgsl_text(e->run, "%s, 0u", v.text);
    return called(e, to, "vec2<u32>", v);
}

static weft_wgsl_value convert_known(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    const bool is_float = v.type->kind >= WEFT_WGSL_F16;
    if (to->kind >= WEFT_WGSL_F16)
        return weft__wgsl_known_float(e, to,
                                      is_float                        ? v.number
                                      : v.type->kind == WEFT_WGSL_U64 ? (double)(uint64_t)v.integer
                                                                      : (double)v.integer,
                                      v.line);
    if (!is_float) return weft__wgsl_known(e, to, v.integer, v.line);
    if (to->kind == WEFT_WGSL_BOOL) return weft__wgsl_known(e, to, v.number != 0, v.line);
    if (!(fabs(v.number) < 0x1p63)) weft__wgsl_fail(e->run, v.line, "a constant does not fit in its type");
    return weft__wgsl_known(e, to, (int64_t)v.number, v.line);
}

weft_wgsl_value weft__wgsl_convert(weft_wgsl_emitter *e, weft_wgsl_value v, const weft_wgsl_type *to) {
    const weft_wgsl_type *from = v.type;
    if (from == to || weft__wgsl_same(from, to)) return v;
    if (from->kind == WEFT_WGSL_POINTER && to->kind == WEFT_WGSL_POINTER)
        return weft__wgsl_pointer_cast(e, v, to);
    if (!weft__wgsl_is_number(from) || !weft__wgsl_is_number(to))
        weft__wgsl_fail(e->run, v.line, "%s cannot become %s", weft__wgsl_c_name(e->run, from),
                        weft__wgsl_c_name(e->run, to));
    if (v.known && to->kind != WEFT_WGSL_F16 &&
        (to->kind != WEFT_WGSL_F32 || from->kind <= WEFT_WGSL_U64 || v.number == v.number))
        return convert_known(e, v, to);
    if (from->kind == WEFT_WGSL_F64 || to->kind == WEFT_WGSL_F64 || from->kind == WEFT_WGSL_F16 ||
        to->kind == WEFT_WGSL_F16)
        weft__wgsl_fail(e->run, v.line, "numbers of type %s are not supported",
                        weft__wgsl_c_name(
                            e->run, from->kind == WEFT_WGSL_F64 || from->kind == WEFT_WGSL_F16 ? from : to));
    if (to->kind == WEFT_WGSL_BOOL) return to_bool(e, v, to);
    if (weft__wgsl_is_64(from)) return from_64(e, v, to);
    if (weft__wgsl_is_64(to)) return to_64(e, v, to);
    if (to->kind == WEFT_WGSL_F32) return called(e, to, "f32", v);
    if (to->kind == WEFT_WGSL_U32) return called(e, to, "u32", v);
    const bool wide = weft__wgsl_size(to) >= 4, fits = from->kind == WEFT_WGSL_BOOL;
    if (!is_signed_register(from)) v = called(e, weft__wgsl_type(WEFT_WGSL_I32), "i32", v);
    if (!wide && !fits) return narrowed(e, v, to);
    v.type = to;
    return v;
}

const weft_wgsl_type *weft__wgsl_common(weft_wgsl_emitter *e, const weft_wgsl_type *a,
                                        const weft_wgsl_type *b, int line) {
    if (!weft__wgsl_is_number(a) || !weft__wgsl_is_number(b))
        weft__wgsl_fail(e->run, line, "an operator has operands of the types %s and %s",
                        weft__wgsl_c_name(e->run, a), weft__wgsl_c_name(e->run, b));
    weft_wgsl_kind kind = a->kind > b->kind ? a->kind : b->kind;
    if (kind < WEFT_WGSL_I32) kind = WEFT_WGSL_I32;
    return weft__wgsl_type(kind);
}

/* ---- offsets ---- */

weft_wgsl_offset weft__wgsl_offset_plus(weft_wgsl_emitter *e, weft_wgsl_offset a, weft_wgsl_offset b) {
    weft_wgsl_offset sum = a;
    sum.constant += b.constant;
    if (!b.text) return sum;
    if (!a.text) {
        sum.text = b.text, sum.level = b.level;
        return sum;
    }
    const weft_wgsl_value x = {.text = a.text, .level = a.level}, y = {.text = b.text, .level = b.level};
    sum.text = weft__wgsl_text(e->run, "%s + %s", weft__wgsl_at_level(e, &x, WEFT_WGSL_L_ADD),
                               weft__wgsl_at_level(e, &y, WEFT_WGSL_L_MULTIPLY));
    sum.level = WEFT_WGSL_L_ADD;
    return sum;
}

weft_wgsl_offset weft__wgsl_offset_times(weft_wgsl_emitter *e, weft_wgsl_offset a, int64_t by) {
    const weft_wgsl_value x = {.text = a.text, .level = a.level};
    if (by == 1) return a;
    a.constant *= by;
    if (!a.text) return a;
    a.text =
        weft__wgsl_text(e->run, "%s*%lld", weft__wgsl_at_level(e, &x, WEFT_WGSL_L_MULTIPLY), (long long)by);
    a.level = WEFT_WGSL_L_MULTIPLY;
    return a;
}

const char *weft__wgsl_offset_text(weft_wgsl_emitter *e, weft_wgsl_offset a) {
    const weft_wgsl_value x = {.text = a.text, .level = a.level};
    if (!a.text) return weft__wgsl_text(e->run, "%lld", (long long)a.constant);
    if (!a.constant) return a.text;
    return weft__wgsl_text(e->run, "%s %c %lld", weft__wgsl_at_level(e, &x, WEFT_WGSL_L_ADD),
                           a.constant < 0 ? '-' : '+',
                           (long long)(a.constant < 0 ? -a.constant : a.constant));
}
