/* The rows of the op table as C99 expressions, by math.h. Ops that are missing here cannot be exported, and
 * are refused by name. Must not know: kernels. Read next: kernel.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/c99/c99.h"

/* f32. The choices of max and min let NaN win, as the op table does. */
static const char *const floats[WEFT_OP_COUNT] = {
    [WEFT_OP_NEG] = "-$a",
    [WEFT_OP_EXP] = "expf($a)",
    [WEFT_OP_EXP2] = "exp2f($a)",
    [WEFT_OP_LOG] = "logf($a)",
    [WEFT_OP_LOG2] = "log2f($a)",
    [WEFT_OP_LOG1P] = "log1pf($a)",
    [WEFT_OP_EXPM1] = "expm1f($a)",
    [WEFT_OP_SIN] = "sinf($a)",
    [WEFT_OP_COS] = "cosf($a)",
    [WEFT_OP_TANH] = "tanhf($a)",
    [WEFT_OP_ERF] = "erff($a)",
    [WEFT_OP_SQRT] = "sqrtf($a)",
    [WEFT_OP_RSQRT] = "1.0f / sqrtf($a)",
    [WEFT_OP_RECIP] = "1.0f / $a",
    [WEFT_OP_ABS] = "fabsf($a)",
    [WEFT_OP_FLOOR] = "floorf($a)",
    [WEFT_OP_CEIL] = "ceilf($a)",
    [WEFT_OP_ROUND] = "rintf($a)",
    [WEFT_OP_TRUNC] = "truncf($a)",
    [WEFT_OP_SIGN] = "$a > 0.0f ? 1.0f : $a < 0.0f ? -1.0f : $a",
    [WEFT_OP_ISNAN] = "$a != $a",
    [WEFT_OP_ISINF] = "fabsf($a) == HUGE_VALF",
    [WEFT_OP_RELU] = "$a < 0.0f ? 0.0f : $a",
    [WEFT_OP_SIGMOID] = "1.0f / (1.0f + expf(-$a))",
    [WEFT_OP_GELU] = "0.5f * $a * erfcf(-0.707106781f * $a)",
    [WEFT_OP_GELU_TANH] = "0.5f * $a * (1.0f + tanhf(0.797884561f * ($a + 0.044715f * $a * $a * $a)))",
    [WEFT_OP_GELU_SLOPE] = "0.5f * erfcf(-0.707106781f * $a) + 0.398942280f * $a * expf(-0.5f * $a * $a)",
    [WEFT_OP_GELU_TANH_SLOPE] = "0.5f * (1.0f + tanhf(0.797884561f * ($a + 0.044715f * $a * $a * $a))) + "
                                "0.398942280f * $a * (1.0f + 0.134145f * $a * $a) / "
                                "powf(coshf(0.797884561f * ($a + 0.044715f * $a * $a * $a)), 2.0f)",
    [WEFT_OP_ADD] = "$a + $b",
    [WEFT_OP_SUB] = "$a - $b",
    [WEFT_OP_MUL] = "$a * $b",
    [WEFT_OP_DIV] = "$a / $b",
    [WEFT_OP_MAXIMUM] = "$a > $b || $a != $a ? $a : $b",
    [WEFT_OP_MINIMUM] = "$a < $b || $a != $a ? $a : $b",
    [WEFT_OP_MAX] = "$a > $b || $a != $a ? $a : $b",
    [WEFT_OP_MIN] = "$a < $b || $a != $a ? $a : $b",
    [WEFT_OP_POW] = "powf($a, $b)",
    [WEFT_OP_SUM] = "$a + $b",
    [WEFT_OP_PROD] = "$a * $b",
};

/* i32 and i64, whose sums wrap. $t is the type; with a u before it, the unsigned type. */
#define C99_SHIFT "($b & (int32_t)(sizeof $a * 8 - 1))"
static const char *const integers[WEFT_OP_COUNT] = {
    [WEFT_OP_ADD] = "($t)((u$t)$a + (u$t)$b)",
    [WEFT_OP_SUB] = "($t)((u$t)$a - (u$t)$b)",
    [WEFT_OP_MUL] = "($t)((u$t)$a * (u$t)$b)",
    [WEFT_OP_MAXIMUM] = "$a > $b ? $a : $b",
    [WEFT_OP_MINIMUM] = "$a < $b ? $a : $b",
    [WEFT_OP_MAX] = "$a > $b ? $a : $b",
    [WEFT_OP_MIN] = "$a < $b ? $a : $b",
    [WEFT_OP_SUM] = "($t)((u$t)$a + (u$t)$b)",
    [WEFT_OP_NOT] = "~$a",
    [WEFT_OP_AND] = "$a & $b",
    [WEFT_OP_OR] = "$a | $b",
    [WEFT_OP_XOR] = "$a ^ $b",
    [WEFT_OP_SHL] = "($t)((u$t)$a << " C99_SHIFT ")",
    [WEFT_OP_SHR] = "$a < 0 ? ~(~$a >> " C99_SHIFT ") : $a >> " C99_SHIFT,
};
#undef C99_SHIFT

/* The same for all dtypes. */
static const char *const all[WEFT_OP_COUNT] = {
    [WEFT_OP_EQ] = "$a == $b",        [WEFT_OP_NE] = "$a != $b", [WEFT_OP_LT] = "$a < $b",
    [WEFT_OP_LE] = "$a <= $b",        [WEFT_OP_GT] = "$a > $b",  [WEFT_OP_GE] = "$a >= $b",
    [WEFT_OP_WHERE] = "$a ? $b : $c",
};

/* u8, whose sums wrap. */
static const char *const bytes[WEFT_OP_COUNT] = {
    [WEFT_OP_ADD] = "($t)($a + $b)",
    [WEFT_OP_SUB] = "($t)($a - $b)",
    [WEFT_OP_MUL] = "($t)($a * $b)",
    [WEFT_OP_MAXIMUM] = "$a > $b ? $a : $b",
    [WEFT_OP_MINIMUM] = "$a < $b ? $a : $b",
    [WEFT_OP_AND] = "$a & $b",
    [WEFT_OP_OR] = "$a | $b",
    [WEFT_OP_XOR] = "$a ^ $b",
};

static const char *const bools[WEFT_OP_COUNT] = {
    [WEFT_OP_NOT] = "!$a",
    [WEFT_OP_AND] = "$a & $b",
    [WEFT_OP_OR] = "$a | $b",
    [WEFT_OP_XOR] = "$a ^ $b",
};

const char *weft__c99_type(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F32: return "float";
    case WEFT_I32: return "int32_t";
    case WEFT_I64: return "int64_t";
    case WEFT_U8:
    case WEFT_BOOL: return "uint8_t";
    default: return NULL;
    }
}

const char *weft__c99_row(int op, weft_dtype dtype) {
    if (op < 0 || op >= WEFT_OP_COUNT || !weft__c99_type(dtype)) return NULL;
    if (all[op]) return all[op];
    switch (dtype) {
    case WEFT_F32: return floats[op];
    case WEFT_BOOL: return bools[op];
    case WEFT_U8: return bytes[op];
    default: return integers[op];
    }
}

const char *weft__c99_start(int op, weft_dtype dtype) {
    const bool whole = dtype == WEFT_I32 || dtype == WEFT_I64, wide = dtype == WEFT_I64;
    if (!whole && dtype != WEFT_F32) return NULL;
    switch (op) {
    case WEFT_OP_SUM: return whole ? "0" : "0.0";
    case WEFT_OP_PROD: return whole ? NULL : "1.0f";
    case WEFT_OP_MAX: return wide ? "INT64_MIN" : whole ? "INT32_MIN" : "-HUGE_VALF";
    case WEFT_OP_MIN: return wide ? "INT64_MAX" : whole ? "INT32_MAX" : "HUGE_VALF";
    default: return NULL;
    }
}

void weft__c99_put(weft_text *out, const char *expression, weft_dtype dtype, const char *const operands[3]) {
    for (const char *at = expression; *at; at++) {
        const char *dollar = strchr(at, '$');
        const int plain = dollar ? (int)(dollar - at) : (int)strlen(at);
        weft__put(out, "%.*s", plain, at);
        if (!dollar) return;
        weft__put(out, "%s", dollar[1] == 't' ? weft__c99_type(dtype) : operands[dollar[1] - 'a']);
        at = dollar + 1;
    }
}

void weft__c99_f32(weft_text *out, float value) {
    char text[32];
    if (isnan(value)) {
        weft__put(out, "NAN");
        return;
    }
    if (isinf(value)) {
        weft__put(out, value < 0 ? "-HUGE_VALF" : "HUGE_VALF");
        return;
    }
    snprintf(text, sizeof text, "%.9g", (double)value); /* nine digits give the same f32 again */
    weft__put(out, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

void weft__c99_integer(weft_text *out, int64_t value) {
    if (value == (int32_t)value && value != INT32_MIN)
        weft__put(out, "%lld", (long long)value);
    else /* the smallest number has no constant: it would be minus a number that is too large */
        weft__put(out, "(%lldLL - 1)", (long long)value + 1);
}
