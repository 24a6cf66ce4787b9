/* Kernels that only move elements (copies, choices, gathered rows, constants) become kernels of words of the
 * same size. So one source serves f32, i32 and u32, nothing is converted, and 64-bit numbers need no device
 * with f64. Must not know: how lines are written. Read next: render_choose.c. */
#include <string.h>

#include "kernel/render.h"

static weft_dtype word_of(weft_dtype dtype) {
    switch (weft_dtype_size(dtype)) {
    case 1: return WEFT_U8;
    case 2: return WEFT_U16;
    case 4: return WEFT_I32;
    default: return WEFT_I64;
    }
}

/* Does an instruction leave the bits of elements unchanged? */
static bool only_moves(const weft_instr *in) {
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST:
    case WEFT_INSTR_MASK:
    case WEFT_INSTR_LOAD:
    case WEFT_INSTR_GATHER:
    case WEFT_INSTR_STORE: return true;
    case WEFT_INSTR_CALC: return in->op == WEFT_OP_WHERE;
    default: return false;
    }
}

/* Is v a condition or an index that keeps its meaning as a word? */
static bool leads(const weft_kernel *k, int v) {
    const weft_instr *in = &k->code[v];
    return in->kind == WEFT_INSTR_LOAD || in->kind == WEFT_INSTR_MASK;
}

/* The bits of a constant as an integer. */
static int64_t bits_of(const weft_instr *in) {
    const float f32 = (float)in->imm_f;
    int32_t i32;
    int64_t i64 = in->imm_i;
    switch ((weft_dtype)in->dtype) {
    case WEFT_F64: memcpy(&i64, &in->imm_f, sizeof i64); return i64;
    case WEFT_F32: memcpy(&i32, &f32, sizeof i32); return i32;
    case WEFT_F16: return weft_f32_to_f16(f32);
    case WEFT_BF16: return weft_f32_to_bf16(f32);
    case WEFT_BOOL: return i64 != 0;
    case WEFT_I8: return (uint8_t)i64;
    case WEFT_I16: return (uint16_t)i64;
    case WEFT_U32: return (int32_t)(uint32_t)i64;
    default: return i64;
    }
}

bool weft__render_moves(const weft_kernel *k) {
    for (int v = 0; v < k->n_code; v++) {
        const weft_instr *in = &k->code[v];
        if (!only_moves(in)) return false;
        if (in->dtype == WEFT_C64 || in->dtype == WEFT_C128) return false;
        const bool led = in->kind == WEFT_INSTR_GATHER || in->kind == WEFT_INSTR_CALC;
        if (led && !leads(k, in->a)) return false;
    }
    return true;
}

weft_status weft__render_as_words(weft_launches *launches, weft_kernel *k) {
    const size_t arg_bytes = (size_t)k->n_args * sizeof *k->args;
    const size_t code_bytes = (size_t)k->n_code * sizeof *k->code;
    weft_kernel_arg *args = weft__arena_alloc(launches->arena, arg_bytes + 1);
    weft_instr *code = weft__arena_alloc(launches->arena, code_bytes + 1);
    if (!args || !code) return weft__fail_oom(launches->ctx, arg_bytes + code_bytes, "the code of a kernel");
    memcpy(args, k->args, arg_bytes);
    memcpy(code, k->code, code_bytes);
    for (int a = 0; a < k->n_args; a++) args[a].dtype = (uint8_t)word_of((weft_dtype)args[a].dtype);
    for (int v = 0; v < k->n_code; v++) {
        if (code[v].kind == WEFT_INSTR_CONST) code[v].imm_i = bits_of(&k->code[v]);
        code[v].dtype = (uint8_t)word_of((weft_dtype)code[v].dtype);
    }
    k->args = args;
    k->code = code;
    return WEFT_OK;
}
