/* Writes the line of each instruction. Must not know: loops and stages. Read next: render_rows.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

#define LINE 1600 /* most bytes of an expression */

static const char *dtype_of(const weft_render *r, int arg) {
    return weft_dtype_name((weft_dtype)r->kernel->args[arg].dtype);
}

/* ---- operands ---- */

/* Familiar constants are literals, which makes the source readable. Others are arguments, so one source
 * serves all of their values. */
static bool is_known(double f) {
    return isnan(f) || isinf(f) || f == 0.5 || f == -0.5 || (f == rint(f) && fabs(f) <= 16);
}

static void put_const(weft_render *r, weft_text *out, int v) {
    const weft_instr *in = weft__code_of(r, v);
    const weft_render_type type = weft__type_of(r, v);
    const bool is_64 = type == WEFT_RENDER_I64 || type == WEFT_RENDER_U64;
    if (weft_dtype_is_float((weft_dtype)in->dtype)) {
        double f = in->imm_f;
        if (in->dtype == WEFT_F16) f = (double)weft_f16_to_f32(weft_f32_to_f16((float)f));
        if (in->dtype == WEFT_BF16) f = (double)weft_bf16_to_f32(weft_f32_to_bf16((float)f));
        if (is_known(f) || r->literal)
            weft__put_float(out, f, type);
        else
            weft__put(out, "%s",
                      weft__render_number(r, type == WEFT_RENDER_F64 ? WEFT_ARGUMENT_F64 : WEFT_ARGUMENT_F32,
                                          (weft_argument){.f = f}, "c%d", v));
        return;
    }
    const int64_t i = in->dtype == WEFT_BOOL ? in->imm_i != 0 : in->imm_i;
    if ((i >= -64 && i <= 64) || r->literal || type == WEFT_RENDER_U32 || type == WEFT_RENDER_U64)
        weft__put_integer(out, i, type);
    else
        weft__put(out, "%s",
                  weft__render_number(r, is_64 ? WEFT_ARGUMENT_I64 : WEFT_ARGUMENT_I32,
                                      (weft_argument){.i = i}, "c%d", v));
}

void weft__put_operand(weft_render *r, weft_text *out, int v) {
    if (weft__code_of(r, v)->kind == WEFT_INSTR_CONST)
        put_const(r, out, v);
    else
        weft__put(out, "v%d", v);
}

static const char *operand(weft_render *r, int v, char *buffer, size_t size) {
    weft_text text = weft__text(buffer, size);
    if (v >= 0) weft__put_operand(r, &text, v);
    return buffer;
}

/* ---- calculations ---- */

/* Writes the element number of a bad value in its tensor. -1: the value was computed, not loaded. */
static const char *put_origin(weft_render *r, int v, weft_place *p) {
    while (weft__code_of(r, v)->kind == WEFT_INSTR_CAST) v = weft__code_of(r, v)->a;
    if (weft__code_of(r, v)->kind != WEFT_INSTR_LOAD) return "-1";
    weft__put_place(r, v, p);
    return p->element;
}

/* Writes the check for a divisor of 0. */
static void put_divide_check(weft_render *r, int b, const char *divisor) {
    weft_place p;
    r->faults = true;
    weft__put_open(r, "if (%s == 0)", divisor);
    weft__put_line(r, "w_fault(faults, of.command, W_FAULT_DIVIDE, 0, 0, %s);", put_origin(r, b, &p));
    weft__put_close(r);
}

static void put_calc(weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    const weft_row *row = weft__row(in->op);
    const int first = row->arity == 3 ? in->b : in->a; /* an operand of the dtype in which the op is
                                                        * computed */
    const weft_dtype dtype = (weft_dtype)weft__code_of(r, first)->dtype;
    const weft_render_type type = weft__render_type(dtype);
    char a[128], b[160], c[128], line[LINE];
    weft_text out = weft__text(line, sizeof line);
    operand(r, in->a, a, sizeof a);
    operand(r, in->b, b, sizeof b);
    operand(r, in->c, c, sizeof c);
    const bool is_float = weft_dtype_is_float(dtype);
    if ((in->op == WEFT_OP_DIV || in->op == WEFT_OP_MOD) && !is_float) put_divide_check(r, in->b, b);
    if (in->op == WEFT_OP_SHL || in->op == WEFT_OP_SHR) { /* shift counts are taken modulo the width of a
                                                           * narrow dtype */
        const size_t bits = dtype == WEFT_BOOL ? 1 : 8 * weft_dtype_size(dtype);
        if (bits < 32) snprintf(b + strlen(b), sizeof b - strlen(b), " & %d", (int)bits - 1);
    }
    const bool wrap = weft__row_wraps(in->op, dtype, 4);
    const bool compares = row->to_bool && in->op != WEFT_OP_ISNAN && in->op != WEFT_OP_ISINF;
    if (wrap) weft__put(&out, "w_wrap_%s(", weft_dtype_name(dtype));
    if (compares) weft__put(&out, "w_bool(");
    if (in->op == WEFT_OP_NOT && dtype == WEFT_BOOL)
        weft__put(&out, "%s ^ 1", a);
    else if (weft__is_near(r, in))
        weft__put(&out, "w_%s_near_f32(%s)", row->name, a);
    else
        weft__put_row(&out, in->op, type, a, b, c);
    if (wrap || compares) weft__put(&out, ")");
    weft__put_line(r, "const %s v%d = %s;", weft__type_name(weft__type_of(r, v)), v, line);
}

/* ---- casts ---- */

/* Writes a cast from float to integer. It saturates, and NaN gives 0. */
static void put_saturated(weft_text *out, weft_dtype to, const char *a) {
    const char *type = weft__type_name(weft__render_type(to));
    const struct {
        weft_dtype dtype;
        int least, most;
    } narrow[] = {{WEFT_I8, -128, 127}, {WEFT_I16, -32768, 32767}, {WEFT_U8, 0, 255}, {WEFT_U16, 0, 65535}};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (narrow[i].dtype == to) {
            weft__put(out, "clamp(convert_int_sat(%s), %d, %d)", a, narrow[i].least, narrow[i].most);
            return;
        }
    if (to == WEFT_U32 || to == WEFT_U64) /* a driver converts NaN to the largest number */
        weft__put(out, "w_sel_%s(w_bool(%s == %s), convert_%s_sat(%s), (%s)(0))", weft_dtype_name(to), a, a,
                  type, a, type);
    else
        weft__put(out, "convert_%s_sat(%s)", type, a);
}

static void put_cast(weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    const weft_dtype to = (weft_dtype)in->dtype, from = (weft_dtype)weft__code_of(r, in->a)->dtype;
    const bool same = weft__render_type(from) == weft__render_type(to);
    const char *type = weft__type_name(weft__render_type(to));
    const bool half = to == WEFT_F16 || to == WEFT_BF16;
    char a[128], line[LINE];
    weft_text out = weft__text(line, sizeof line);
    operand(r, in->a, a, sizeof a);
    if (to == from || (same && (to == WEFT_F32 || to == WEFT_I32 || from == WEFT_BOOL)))
        weft__put(&out, "%s", a);
    else if (to == WEFT_BOOL)
        weft__put(&out, "w_bool(%s != 0)", a);
    else if (half && (from == WEFT_F32 || from == WEFT_F16 || from == WEFT_BF16))
        weft__put(&out, "w_round_%s(%s)", weft_dtype_name(to), a);
    else if (half)
        weft__put(&out, "w_round_%s(w_odd_%s(%s))", weft_dtype_name(to),
                  weft__type_suffix(weft__render_type(from)), a);
    else if (weft_dtype_is_float(to) || (!weft_dtype_is_float(from) && weft__stored_plainly(to)))
        weft__put(&out, "convert_%s(%s)", type, a);
    else if (weft_dtype_is_float(from))
        put_saturated(&out, to, a);
    else
        weft__put(&out, same ? "w_wrap_%s(%s)" : "w_wrap_%s(convert_int(%s))", weft_dtype_name(to), a);
    weft__put_line(r, "const %s v%d = %s;", type, v, line);
}

/* ---- reading ---- */

/* Writes a value, or 0 where the guard of the place fails. */
static void put_guarded(weft_render *r, int v, const weft_place *p, const char *value) {
    const char *name = weft__type_name(weft__type_of(r, v));
    if (!p->guard[0])
        weft__put_line(r, "const %s v%d = %s;", name, v, value);
    else
        weft__put_line(r, "const %s v%d = %s ? %s : 0;", name, v, p->guard, value);
}

/* Reads an element of an argument. */
static void put_read(weft_render *r, int v, int arg, const weft_place *p) {
    char line[LINE];
    weft_text out = weft__text(line, sizeof line);
    if (weft__stored_plainly((weft_dtype)r->kernel->args[arg].dtype))
        weft__put(&out, "arg%d[%s]", arg, p->element);
    else
        weft__put(&out, "w_get_%s(arg%d, %s)", dtype_of(r, arg), arg, p->element);
    put_guarded(r, v, p, line);
}

static void put_load(weft_render *r, int v) {
    weft_place p;
    if (weft__in_span(r, v)) {
        weft__put_line(r, "const %s v%d = span%d[e];", weft__type_name(weft__type_of(r, v)), v, v);
        return;
    }
    weft__put_place(r, v, &p);
    put_read(r, v, weft__code_of(r, v)->arg, &p);
}

/* Writes the value that the matmul passes to its epilogue, rounded as if it were stored. */
static void put_product(weft_render *r, int v) {
    const weft_dtype dtype = (weft_dtype)weft__code_of(r, v)->dtype;
    const char *type = weft__type_name(weft__type_of(r, v));
    char rounded[32] = "";
    if (dtype == WEFT_F16 || dtype == WEFT_BF16)
        snprintf(rounded, sizeof rounded, "w_round_%s", weft_dtype_name(dtype));
    else if (!weft_dtype_is_float(dtype)) /* the matmul sums integers as unsigned numbers */
        snprintf(rounded, sizeof rounded, "as_%s", type);
    weft__put_line(r, rounded[0] ? "const %s v%d = %s(value);" : "const %s v%d = %svalue;", type, v, rounded);
}

/* ---- gather ---- */

/* Appends to a string. */
static void render_value_append(char *string, size_t size, const char *fmt, ...) WEFT_PRINTF(3, 4);
static void render_value_append(char *string, size_t size, const char *fmt, ...) {
    const size_t length = strlen(string);
    va_list args;
    va_start(args, fmt);
    vsnprintf(string + length, size - length, fmt, args);
    va_end(args);
}

static void put_gather(weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    const bool is_64 = weft__code_of(r, in->a)->dtype == WEFT_I64;
    char at[128];
    weft_place p, origin;
    weft__put_place(r, v, &p);
    operand(r, in->a, at, sizeof at);
    const char *bound = weft__render_number(r, is_64 || r->wide ? WEFT_ARGUMENT_I64 : WEFT_ARGUMENT_I32,
                                            (weft_argument){.i = in->bound}, "bound%d", v);
    const char *pitch = weft__render_size(r, in->imm_i, "pitch%d", v);
    r->faults = true;
    weft__put_line(r, "const int in%d = %s >= 0 && %s < %s;", v, at, at, bound);
    weft__put_open(r, p.guard[0] ? "if (!in%d && %s)" : "if (!in%d%s)", v, p.guard);
    weft__put_line(r, "w_fault(faults, of.command, W_FAULT_GATHER, %s, %s, %s);", at, bound,
                   put_origin(r, in->a, &origin));
    weft__put_close(r);
    render_value_append(p.element, sizeof p.element, " + convert_%s(%s)*%s", weft__index_type(r), at, pitch);
    render_value_append(p.guard, sizeof p.guard, "%sin%d", p.guard[0] ? " && " : "", v);
    put_read(r, v, in->arg, &p);
}

/* ---- values that no buffer holds ---- */

static void put_numbered(weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    const char *type = weft__type_name(weft__type_of(r, v)), *index = weft__index_type(r);
    char line[LINE];
    weft_place p;
    weft__put_place(r, v, &p);
    weft_text out = weft__text(line, sizeof line);
    if (in->kind == WEFT_INSTR_MASK) {
        weft__put_line(r, "const int v%d = %s;", v, p.guard[0] ? p.guard : "1");
        return;
    }
    if (in->kind == WEFT_INSTR_RANDOM)
        weft__put(&out, "w_random(arg%d, convert_ulong((%s)(%s)))", in->arg, index, p.element);
    else
        weft__put(&out, "convert_%s((%s)(%s))", type, index, p.element);
    put_guarded(r, v, &p, line);
}

void weft__put_value(weft_render *r, int v) {
    switch ((weft_instr_kind)weft__code_of(r, v)->kind) {
    case WEFT_INSTR_LOAD:
        if (weft__code_of(r, v)->arg == r->product)
            put_product(r, v);
        else
            put_load(r, v);
        break;
    case WEFT_INSTR_GATHER: put_gather(r, v); break;
    case WEFT_INSTR_INDEX:
    case WEFT_INSTR_MASK:
    case WEFT_INSTR_RANDOM: put_numbered(r, v); break;
    case WEFT_INSTR_CALC: put_calc(r, v); break;
    case WEFT_INSTR_CAST: put_cast(r, v); break;
    default: break; /* constants are written where they are used */
    }
}

/* ---- writing ---- */

void weft__put_store(weft_render *r, int v, const char *value) {
    const weft_instr *in = weft__code_of(r, v);
    const weft_dtype dtype = (weft_dtype)r->kernel->args[in->arg].dtype;
    weft_place p;
    if (weft__in_span(r, v)) {
        weft__put_line(r, "span%d[e] = %s;", v, value);
        return;
    }
    weft__put_place(r, v, &p);
    if (p.guard[0]) weft__put_open(r, "if (%s)", p.guard);
    if (weft__stored_plainly(dtype))
        weft__put_line(r, "arg%d[%s] = %s;", in->arg, p.element, value);
    else
        weft__put_line(r, "w_put_%s(arg%d, %s, %s);", weft_dtype_name(dtype), in->arg, p.element, value);
    if (p.guard[0]) weft__put_close(r);
}
