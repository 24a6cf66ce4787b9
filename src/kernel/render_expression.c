/* Writes names of types, numbers, and the expressions of ops.def. Must not know: kernels. Read next:
 * render_value.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"

static const char *const expressions[WEFT_OP_COUNT] = {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   [WEFT_OP_##id] = #expr,
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         [WEFT_OP_##id] = #expr,
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) [WEFT_OP_##id] = #expr,
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc)                    [WEFT_OP_##id] = #expr,
#include "ops/ops.def"
};

/* Where a reduction begins: the names of the column `init`. */
enum { START_0, START_1, START_LOWEST, START_HIGHEST };
static const uint8_t starts[WEFT_OP_COUNT] = {
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) [WEFT_OP_##id] = START_##init,
#include "ops/ops.def"
};

/* Rows whose operator may overflow. Signed integers wrap in Weft, but overflow is undefined in C. So these
 * operators compute in the unsigned type. */
static const bool overflows[WEFT_OP_COUNT] = {
    [WEFT_OP_NEG] = true, [WEFT_OP_ADD] = true, [WEFT_OP_SUB] = true,
    [WEFT_OP_MUL] = true, [WEFT_OP_SUM] = true, [WEFT_OP_PROD] = true};

/* ---- types ---- */

static const struct type {
    const char *name, *suffix;
} types[WEFT_RENDER_TYPES] = {
    [WEFT_RENDER_F32] = {"float", "f32"}, [WEFT_RENDER_F64] = {"double", "f64"},
    [WEFT_RENDER_I32] = {"int", "i32"},   [WEFT_RENDER_I64] = {"long", "i64"},
    [WEFT_RENDER_U32] = {"uint", "u32"},  [WEFT_RENDER_U64] = {"ulong", "u64"},
};

const char *weft__type_name(weft_render_type type) { return types[type].name; }
const char *weft__type_suffix(weft_render_type type) { return types[type].suffix; }

weft_render_type weft__render_type(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F32:
    case WEFT_F16:
    case WEFT_BF16: return WEFT_RENDER_F32;
    case WEFT_F64: return WEFT_RENDER_F64;
    case WEFT_I64: return WEFT_RENDER_I64;
    case WEFT_U32: return WEFT_RENDER_U32;
    case WEFT_U64: return WEFT_RENDER_U64;
    default: return WEFT_RENDER_I32;
    }
}

weft_render_type weft__type_of(const weft_render *r, int v) {
    return weft__render_type((weft_dtype)weft__code_of(r, v)->dtype);
}

const char *weft__storage_name(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F16: return "half";
    case WEFT_I8: return "w_i8";
    case WEFT_I16: return "short";
    case WEFT_U8:
    case WEFT_BOOL: return "uchar";
    case WEFT_U16:
    case WEFT_BF16: return "ushort";
    default: return types[weft__render_type(dtype)].name;
    }
}

bool weft__stored_plainly(weft_dtype dtype) {
    return !strcmp(weft__storage_name(dtype), types[weft__render_type(dtype)].name);
}

/* ---- numbers ---- */

void weft__put_float(weft_text *out, double value, weft_render_type type) {
    const char *end = type == WEFT_RENDER_F32 ? "f" : "";
    char digits[64];
    if (isnan(value)) {
        weft__put(out, "NAN");
    } else if (isinf(value)) {
        weft__put(out, value < 0 ? "-INFINITY" : "INFINITY");
    } else if (value == rint(value) && fabs(value) < 1e6) {
        weft__put(out, "%s%d.0%s", signbit(value) ? "-" : "", (int)fabs(value), end);
    } else {
        snprintf(digits, sizeof digits, "%a", type == WEFT_RENDER_F32 ? (double)(float)value : value);
        for (char *p = digits; *p; p++)
            if (!strchr("0123456789abcdefpx+-", *p)) *p = '.'; /* the decimal separator of another locale */
        weft__put(out, "%s%s", digits, end);
    }
}

void weft__put_integer(weft_text *out, int64_t value, weft_render_type type) {
    switch (type) {
    case WEFT_RENDER_I64:
        if (value == INT64_MIN)
            weft__put(out, "(-0x7fffffffffffffffL - 1)");
        else
            weft__put(out, "%" PRId64 "L", value);
        return;
    case WEFT_RENDER_U32: weft__put(out, "%" PRIu32 "u", (uint32_t)value); return;
    case WEFT_RENDER_U64: weft__put(out, "%" PRIu64 "ul", (uint64_t)value); return;
    default:
        if (value == INT32_MIN)
            weft__put(out, "(-0x7fffffff - 1)");
        else
            weft__put(out, "%" PRId32, (int32_t)value);
    }
}

typedef struct limits {
    int64_t least, most;
} limits;

static limits limits_of(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_BOOL: return (limits){0, 1};
    case WEFT_I8: return (limits){INT8_MIN, INT8_MAX};
    case WEFT_I16: return (limits){INT16_MIN, INT16_MAX};
    case WEFT_U8: return (limits){0, UINT8_MAX};
    case WEFT_U16: return (limits){0, UINT16_MAX};
    case WEFT_U32: return (limits){0, UINT32_MAX};
    case WEFT_U64: return (limits){0, -1};
    case WEFT_I64: return (limits){INT64_MIN, INT64_MAX};
    default: return (limits){INT32_MIN, INT32_MAX};
    }
}

void weft__put_start(weft_text *out, int op, weft_dtype dtype) {
    const weft_render_type type = weft__render_type(dtype);
    const bool lowest = starts[op] == START_LOWEST, highest = starts[op] == START_HIGHEST;
    const int number = starts[op] == START_1;
    if (weft_dtype_is_float(dtype))
        weft__put_float(out, lowest ? -HUGE_VAL : highest ? HUGE_VAL : number, type);
    else
        weft__put_integer(out,
                          lowest    ? limits_of(dtype).least
                          : highest ? limits_of(dtype).most
                                    : number,
                          type);
}

/* ---- expressions ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool weft__is_near(const weft_render *r, const weft_instr *in) {
    static const int ops[] = {WEFT_OP_EXP, WEFT_OP_SIGMOID, WEFT_OP_GELU_TANH, WEFT_OP_GELU_TANH_SLOPE};
    const weft_kernel *k = r->kernel;
    if (r->target->dialect != WEFT_DIALECT_CUDA || k->n_reduce + k->n_fold == 0) return false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == in->op) return r->rounded[in->a] && weft__type_of(r, in->a) == WEFT_RENDER_F32;
    return false;
}

void weft__put_row(weft_text *out, int op, weft_render_type type, const char *a, const char *b,
                   const char *c) {
    const char *p = expressions[op];
    const bool wraps = overflows[op] && (type == WEFT_RENDER_I32 || type == WEFT_RENDER_I64);
    const char *as = type == WEFT_RENDER_I64 ? "as_ulong" : "as_uint";
    if (wraps) weft__put(out, "as_%s(", weft__type_name(type));
    while (*p) {
        size_t n = 0;
        while (is_word(p[n])) n++;
        if (n == 0) {
            weft__put(out, "%c", *p++);
            continue;
        }
        const char *operand = n != 1 ? NULL : *p == 'a' ? a : *p == 'b' ? b : *p == 'c' ? c : NULL;
        if (operand && wraps)
            weft__put(out, "%s(%s)", as, operand);
        else if (operand)
            weft__put(out, "%s", operand);
        else if (n == 1 && *p == 'T')
            weft__put(out, "%s", weft__type_name(type));
        else
            weft__put(out, "%.*s%s%s", (int)n, p, p[0] == 'w' ? "_" : "",
                      p[0] == 'w' ? types[type].suffix : "");
        p += n;
    }
    if (wraps) weft__put(out, ")");
}
