/* Single instructions with the values that the PTX ISA gives, and planted faults that must be reported.
 * Kernels are written by hand: `body` reads up to three operands of each lane and writes its results. Must
 * not know Weft. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ptx/ptx.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

/* ---- running text ---- */

/* Memory of the tests: 64-bit words. Threads use words of their own. */
enum { WORDS = 1 << 14 };
static uint64_t memory[WORDS];

static bool range(void *user, uint64_t at, uint64_t *begin, uint64_t *end) {
    (void)user, (void)at;
    *begin = (uint64_t)(uintptr_t)memory;
    *end = *begin + sizeof memory;
    return at >= *begin && at < *end;
}

typedef struct shape {
    unsigned threads, blocks, dynamic;
    uint64_t seed;
} shape;

/* A kernel that gets the memory in %base and in each thread %tid, %mine: the address of word 8 * thread. */
static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n";
static const char start[] = ".visible .entry k(.param .u64 k_0)\n.maxntid 1024, 1, 1\n{\n"
                            ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .f32 %f<20>;\n"
                            ".reg .b64 %d<20>; .reg .f64 %g<20>; .reg .b32 %tid; .reg .b64 %base, %mine;\n"
                            "ld.param.u64 %base, [k_0]; mov.u32 %tid, %tid.x;\n"
                            "mul.wide.u32 %mine, %tid, 64; add.s64 %mine, %mine, %base;\n";

static char why[1000];

/* Returns whether the launch succeeded; otherwise `why` says what is wrong. */
static bool run(const char *functions, const char *body, shape s) {
    static char text[1 << 16];
    uint64_t base = (uint64_t)(uintptr_t)memory;
    void *values[] = {&base};
    snprintf(text, sizeof text, "%s%s%s%s\nret;\n}\n", head, functions, start, body);
    ptx_module *m = ptx_load(text, why, sizeof why);
    if (!m) return false;
    ptx_launch l = {.kernel = ptx_kernel(m, "k"),
                    .blocks = {s.blocks ? s.blocks : 1, 1, 1},
                    .threads = {s.threads ? s.threads : 32, 1, 1},
                    .shared_bytes = s.dynamic,
                    .values = values,
                    .seed = s.seed,
                    .memory = range};
    const bool good = ptx_run(&l);
    if (!good) snprintf(why, sizeof why, "%s", l.why);
    ptx_free(m);
    return good;
}

static void runs(const char *body, shape s) {
    if (!run("", body, s)) fail_msg("%s", why);
}

/* The launch must fail for a reason that contains these words. */
static void is_refused(const char *body, shape s, const char *words) {
    memset(memory, 0, sizeof memory);
    if (run("", body, s)) fail_msg("not refused: %s", words);
    if (!strstr(why, words)) fail_msg("refused for another reason than '%s': %s", words, why);
}

static uint64_t bits64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static uint64_t bits32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- one instruction ---- */

/* opcode to, a, b, c with registers of these types: h 16, r and f 32, d and g 64 bits, p a predicate. `rest`
 * follows. */
typedef struct example {
    const char *opcode, *types, *rest; /* types: of the result and the operands */
    uint64_t a, b, c, expected;
} example;

static void run_example(const example *e) {
    char body[600], *at = body;
    const int n = (int)strlen(e->types);
    for (int i = 1; i < n; i++) {
        const char t = e->types[i];
        const char *width = t == 'h' ? "u16" : t == 'r' || t == 'f' || t == 'p' ? "b32" : "b64";
        at += sprintf(at, "ld.global.%s %%%c%d, [%%mine+%d];\n", width, t == 'p' ? 'r' : t, i, 8 * i);
        if (t == 'p') at += sprintf(at, "setp.ne.s32 %%p%d, %%r%d, 0;\n", i, i);
    }
    at += sprintf(at, "%s %%%c0", e->opcode, e->types[0]);
    for (int i = 1; i < n; i++) at += sprintf(at, ", %%%c%d", e->types[i], i);
    at += sprintf(at, "%s;\n", e->rest ? e->rest : "");
    if (e->types[0] == 'p') at += sprintf(at, "selp.u32 %%r0, 1, 0, %%p0;\n");
    const char t = e->types[0] == 'p' ? 'r' : e->types[0];
    sprintf(at, "mov.b64 %%d19, 0; st.global.u64 [%%mine], %%d19; st.global.%s [%%mine], %%%c0;",
            t == 'h'               ? "u16"
            : t == 'r' || t == 'f' ? "b32"
                                   : "b64",
            t);
    for (int i = 0; i < 32; i++) {
        const uint64_t words[] = {0, e->a, e->b, e->c};
        memcpy(&memory[8 * i], words, sizeof words);
    }
    runs(body, (shape){0});
    for (int i = 0; i < 32; i++)
        if (memory[8 * i] != e->expected)
            fail_msg("%s of %llx, %llx, %llx is %llx, not %llx", e->opcode, (unsigned long long)e->a,
                     (unsigned long long)e->b, (unsigned long long)e->c, (unsigned long long)memory[8 * i],
                     (unsigned long long)e->expected);
}

static void run_examples(const example *list, int count) {
    for (int i = 0; i < count; i++) run_example(&list[i]);
}

#define M1 0xffffffffffffffffull

static void test_integers(void **state) {
    static const example list[] = {
        {"add.s32", "rrr", NULL, 0x7fffffff, 1, 0, 0x80000000},
        {"add.sat.s32", "rrr", NULL, 0x7fffffff, 1, 0, 0x7fffffff},
        {"sub.sat.s32", "rrr", NULL, 0x80000000, 1, 0, 0x80000000},
        {"add.s16", "hhh", NULL, 0xffff, 2, 0, 1},
        {"sub.s64", "ddd", NULL, 0, 1, 0, M1},
        {"mul.lo.s32", "rrr", NULL, 0x10001, 0x10001, 0, 0x20001},
        {"mul.hi.s32", "rrr", NULL, 0xffffffff, 2, 0, 0xffffffff},
        {"mul.hi.u32", "rrr", NULL, 0xffffffff, 2, 0, 1},
        {"mul.wide.s32", "drr", NULL, 0xffffffff, 2, 0, M1 - 1},
        {"mul.wide.u32", "drr", NULL, 0xffffffff, 2, 0, 0x1fffffffe},
        {"mul.wide.u16", "rhh", NULL, 0xffff, 0xffff, 0, 0xfffe0001},
        {"mul.hi.s64", "ddd", NULL, M1, 2, 0, M1},
        {"mul.hi.u64", "ddd", NULL, M1, 2, 0, 1},
        {"mad.lo.s32", "rrrr", NULL, 3, 5, 0xfffffff0, 0xffffffff},
        {"mad.hi.u32", "rrrr", NULL, 0x80000000, 4, 7, 9},
        {"mad.wide.s32", "drrd", NULL, 0xffffffff, 3, 10, 7},
        {"div.s32", "rrr", NULL, 0xfffffff9, 2, 0, 0xfffffffd}, /* -7 / 2 = -3 */
        {"rem.s32", "rrr", NULL, 0xfffffff9, 2, 0, 0xffffffff},
        {"div.u32", "rrr", NULL, 0xfffffff9, 2, 0, 0x7ffffffc},
        {"div.s32", "rrr", NULL, 0x80000000, 0xffffffff, 0, 0x80000000},
        {"rem.s64", "ddd", NULL, 1ull << 63, M1, 0, 0},
        {"div.u64", "ddd", NULL, M1, 10, 0, M1 / 10},
        {"rem.u16", "hhh", NULL, 1000, 7, 0, 6},
        {"min.s32", "rrr", NULL, 0xffffffff, 1, 0, 0xffffffff},
        {"min.u32", "rrr", NULL, 0xffffffff, 1, 0, 1},
        {"max.s64", "ddd", NULL, M1, 1, 0, 1},
        {"abs.s32", "rr", NULL, 0xfffffff0, 0, 0, 16},
        {"neg.s64", "dd", NULL, 1, 0, 0, M1},
        {"copysign.f32", "fff", NULL, 0x80000000, 0x3f800000, 0, 0xbf800000},
        {"setp.lt.s32", "prr", NULL, 0xffffffff, 0, 0, 1},
        {"setp.lt.u32", "prr", NULL, 0xffffffff, 0, 0, 0},
        {"setp.ge.s64", "pdd", NULL, M1, 0, 0, 0},
        {"setp.eq.s16", "phh", NULL, 0x10001, 1, 0, 1},
        {"setp.eq.and.s32", "prrp", NULL, 4, 4, 0, 0},
        {"setp.eq.or.s32", "prrp", NULL, 4, 5, 1, 1},
        {"selp.b32", "rrrp", NULL, 4, 5, 1, 4},
        {"selp.b64", "dddp", NULL, 4, 5, 0, 5},
    };
    (void)state;
    run_examples(list, COUNT(list));
}

static void test_bits(void **state) {
    static const example list[] = {
        {"and.b32", "rrr", NULL, 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00},
        {"xor.b64", "ddd", NULL, M1, 1, 0, M1 - 1},
        {"not.b16", "hh", NULL, 0xff, 0, 0, 0xff00},
        {"not.pred", "pp", NULL, 1, 0, 0, 0},
        {"cnot.b32", "rr", NULL, 0, 0, 0, 1},
        {"lop3.b32", "rrrr", ", 0xca", 0xf0f0f0f0, 0x12345678, 0x9abcdef0, 0x1a3c5e70}, /* a ? b : c */
        {"shl.b32", "rrr", NULL, 1, 31, 0, 0x80000000},
        {"shl.b32", "rrr", NULL, 1, 32, 0, 0},
        {"shl.b64", "ddr", NULL, 3, 63, 0, 1ull << 63},
        {"shr.s32", "rrr", NULL, 0x80000000, 40, 0, 0xffffffff},
        {"shr.u32", "rrr", NULL, 0x80000000, 31, 0, 1},
        {"shr.s64", "ddr", NULL, 1ull << 63, 62, 0, M1 - 1},
        {"shr.s16", "hhr", NULL, 0x8000, 15, 0, 0xffff},
        {"shf.l.wrap.b32", "rrrr", NULL, 0x80000001, 2, 33, 5},
        {"shf.r.clamp.b32", "rrrr", NULL, 1, 0x12345678, 40, 0x12345678},
        {"shf.r.wrap.b32", "rrrr", NULL, 0, 3, 1, 0x80000000},
        {"prmt.b32", "rrrr", NULL, 0x33221100, 0x77665544, 0x7531, 0x77553311},
        {"prmt.b32", "rrrr", NULL, 0x00008000, 0, 0x0009, 0x000000ff},
        {"bfe.u32", "rrrr", NULL, 0x12345678, 8, 12, 0x456},
        {"bfe.s32", "rrrr", NULL, 0x00000f00, 8, 4, 0xffffffff},
        {"bfi.b32", "rrrr", ", 8", 0xab, 0x12345678, 4, 0x12345ab8},
        {"bfi.b64", "dddr", ", 32", 0x89abcdef, 0x1234567, 32, 0x89abcdef01234567},
        {"popc.b64", "rd", NULL, M1, 0, 0, 64},
        {"clz.b32", "rr", NULL, 1, 0, 0, 31},
        {"clz.b64", "rd", NULL, 0, 0, 0, 64},
        {"brev.b32", "rr", NULL, 0x80000001, 0, 0, 0x80000001},
        {"bfind.u32", "rr", NULL, 0x100, 0, 0, 8},
        {"bfind.s32", "rr", NULL, 0xffffffff, 0, 0, 0xffffffff},
    };
    (void)state;
    run_examples(list, COUNT(list));
}

static void test_floats(void **state) {
    const uint64_t one = bits32(1), nan = 0x7fffffff, tiny = 1, inf = bits32(INFINITY);
    const example list[] = {
        {"add.rn.f32", "fff", NULL, one, bits32(0x1p-24f), 0, one},
        {"add.rp.f32", "fff", NULL, one, bits32(0x1p-24f), 0, one + 1},
        {"add.rz.f32", "fff", NULL, one, bits32(-0x1p-26f), 0, one - 1},
        {"add.rm.f32", "fff", NULL, one, bits32(0x1p-24f), 0, one},
        {"add.rn.ftz.f32", "fff", NULL, tiny, tiny, 0, 0},
        {"add.rn.f32", "fff", NULL, tiny, tiny, 0, 2},
        {"add.rn.sat.f32", "fff", NULL, one, one, 0, one},
        {"sub.rn.f32", "fff", NULL, inf, inf, 0, nan},
        {"mul.rn.f32", "fff", NULL, 0xffc12345, one, 0, nan},
        {"mul.rn.f32", "fff", NULL, bits32(1 + 0x1p-12f), bits32(1 + 0x1p-12f), 0, bits32(1 + 0x1p-11f)},
        {"fma.rn.f32", "ffff", NULL, bits32(1 + 0x1p-12f), bits32(1 + 0x1p-12f), bits32(-1 - 0x1p-11f),
         bits32(0x1p-24f)},
        {"fma.rz.f32", "ffff", NULL, one + 1, one + 1, 0, one + 2},
        {"fma.rp.f32", "ffff", NULL, one + 1, one + 1, 0, one + 3},
        {"fma.rn.f64", "gggg", NULL, bits64(1 + 0x1p-30), bits64(1 + 0x1p-30), bits64(-1 - 0x1p-29),
         bits64(0x1p-60)},
        {"div.rn.f32", "fff", NULL, one, bits32(3), 0, bits32(1 / 3.0f)},
        {"div.rp.f32", "fff", NULL, one, bits32(3), 0, bits32(1 / 3.0f)},
        {"div.rm.f32", "fff", NULL, one, bits32(3), 0, bits32(1 / 3.0f) - 1},
        {"div.approx.f32", "fff", NULL, one, bits32(0x1.8p127f), 0, 0},
        {"sqrt.rn.f32", "ff", NULL, bits32(2), 0, 0, bits32(0x1.6a09e6p0f)},
        {"sqrt.rp.f32", "ff", NULL, bits32(2), 0, 0, bits32(0x1.6a09e8p0f)},
        {"sqrt.rn.f64", "gg", NULL, bits64(-1), 0, 0, bits64(-NAN)},
        {"rcp.rn.f32", "ff", NULL, bits32(3), 0, 0, bits32(1 / 3.0f)},
        {"rcp.approx.ftz.f32", "ff", NULL, tiny, 0, 0, inf},
        {"rcp.approx.ftz.f64", "gg", NULL, bits64(3), 0, 0, 0x3fd5555500000000},
        {"rsqrt.approx.ftz.f64", "gg", NULL, bits64(4), 0, 0, bits64(0.5)},
        {"ex2.approx.ftz.f32", "ff", NULL, bits32(-127), 0, 0, 0},
        {"ex2.approx.f32", "ff", NULL, bits32(10), 0, 0, bits32(1024)},
        {"lg2.approx.f32", "ff", NULL, bits32(8), 0, 0, bits32(3)},
        {"min.f32", "fff", NULL, 0xffc00000, one, 0, one},
        {"min.NaN.f32", "fff", NULL, 0xffc00000, one, 0, nan},
        {"min.f32", "fff", NULL, 0, 0x80000000, 0, 0x80000000},
        {"max.f32", "fff", NULL, 0x80000000, 0, 0, 0},
        {"max.f64", "ggg", NULL, bits64(NAN), bits64(2), 0, bits64(2)},
        {"neg.f32", "ff", NULL, 0, 0, 0, 0x80000000},
        {"abs.f64", "gg", NULL, bits64(-3), 0, 0, bits64(3)},
        {"setp.lt.f32", "pff", NULL, nan, one, 0, 0},
        {"setp.ltu.f32", "pff", NULL, nan, one, 0, 1},
        {"setp.ne.f32", "pff", NULL, nan, one, 0, 0},
        {"setp.neu.f64", "pgg", NULL, bits64(NAN), bits64(1), 0, 1},
        {"setp.nan.f32", "pff", NULL, nan, one, 0, 1},
        {"setp.num.f32", "pff", NULL, nan, one, 0, 0},
        {"setp.geu.f32", "pff", NULL, one, one, 0, 1},
        {"testp.subnormal.f32", "pf", NULL, tiny, 0, 0, 1},
    };
    (void)state;
    run_examples(list, COUNT(list));
}

static void test_conversions(void **state) {
    const uint64_t nan = 0x7fffffff;
    const example list[] = {
        {"cvt.rni.s32.f32", "rf", NULL, bits32(2.5f), 0, 0, 2},
        {"cvt.rzi.s32.f32", "rf", NULL, bits32(-2.9f), 0, 0, (uint32_t)-2},
        {"cvt.rmi.s32.f64", "rg", NULL, bits64(-2.1), 0, 0, (uint32_t)-3},
        {"cvt.rpi.f32.f32", "ff", NULL, bits32(2.1f), 0, 0, bits32(3)},
        {"cvt.rmi.f64.f64", "gg", NULL, bits64(0.5), 0, 0, 0},
        {"cvt.rni.f64.f64", "gg", NULL, bits64(3.5), 0, 0, bits64(4)},
        {"cvt.rzi.s32.f32", "rf", NULL, bits32(3e9f), 0, 0, 0x7fffffff},
        {"cvt.rzi.u32.f32", "rf", NULL, bits32(-1), 0, 0, 0},
        {"cvt.rzi.u64.f32", "df", NULL, bits32(0x1p63f), 0, 0, 1ull << 63},
        {"cvt.rzi.s32.f32", "rf", NULL, nan, 0, 0, 0},
        {"cvt.rzi.s64.f32", "df", NULL, nan, 0, 0, 1ull << 63},
        {"cvt.rzi.s32.f64", "rg", NULL, bits64(NAN), 0, 0, 0x80000000},
        {"cvt.rn.f32.s32", "fr", NULL, 0x1000001, 0, 0, bits32(0x1p24f)},
        {"cvt.rz.f32.s32", "fr", NULL, 0x1000003, 0, 0, bits32(0x1000002)},
        {"cvt.rn.f32.u64", "fd", NULL, M1, 0, 0, bits32(0x1p64f)},
        {"cvt.rz.f32.u64", "fd", NULL, M1, 0, 0, bits32(0x1.fffffep63f)},
        {"cvt.rn.f64.s64", "gd", NULL, M1, 0, 0, bits64(-1)},
        {"cvt.rn.f32.f64", "fg", NULL, bits64(1 + 0x1p-24), 0, 0, bits32(1)},
        {"cvt.rp.f32.f64", "fg", NULL, bits64(1 + 0x1p-40), 0, 0, bits32(1 + 0x1p-23f)},
        {"cvt.f64.f32", "gf", NULL, bits32(0.1f), 0, 0, bits64((double)0.1f)},
        {"cvt.s64.s32", "dr", NULL, 0xffffffff, 0, 0, M1},
        {"cvt.u64.u32", "dr", NULL, 0xffffffff, 0, 0, 0xffffffff},
        {"cvt.s32.s8", "rr", NULL, 0x80, 0, 0, 0xffffff80},
        {"cvt.u32.u8", "rr", NULL, 0x1ff, 0, 0, 0xff},
        {"cvt.u16.u64", "hd", NULL, 0x12345, 0, 0, 0x2345},
        {"cvt.sat.u8.s32", "rr", NULL, 300, 0, 0, 255},
        {"cvt.sat.s8.s32", "rr", NULL, 0xffffff00, 0, 0, 0xffffff80},
        {"cvt.rn.f16.f32", "hf", NULL, bits32(1 + 0x1p-11f), 0, 0, 0x3c00}, /* to even */
        {"cvt.rn.f16.f32", "hf", NULL, bits32(1 + 0x3p-11f), 0, 0, 0x3c02},
        {"cvt.rn.f16.f32", "hf", NULL, bits32(65520), 0, 0, 0x7c00},
        {"cvt.rz.f16.f32", "hf", NULL, bits32(-65520), 0, 0, 0xfbff},
        {"cvt.rn.f16.f32", "hf", NULL, bits32(0x1p-24f), 0, 0, 1},
        {"cvt.rn.f16.f32", "hf", NULL, bits32(0x1p-25f), 0, 0, 0},
        {"cvt.rn.f16.f32", "hf", NULL, nan, 0, 0, 0x7fff},
        {"cvt.f32.f16", "fh", NULL, 0x03ff, 0, 0, bits32(0x3ffp-24f)},
        {"cvt.f32.f16", "fh", NULL, 0xfc00, 0, 0, bits32(-INFINITY)},
        {"cvt.rn.bf16.f32", "hf", NULL, 0x3f808000, 0, 0, 0x3f80},
        {"cvt.rn.bf16.f32", "hf", NULL, 0x3f818000, 0, 0, 0x3f82},
        {"cvt.rn.bf16x2.f32", "rff", NULL, 0x40000000, 0x3f808001, 0, 0x40003f81},
        {"cvt.rn.f16x2.f32", "rff", NULL, bits32(2), bits32(1), 0, 0x40003c00},
        {"cvt.rna.tf32.f32", "rf", NULL, 0x3f801000, 0, 0, 0x3f802000},
        {"cvt.f32.bf16", "fh", NULL, 0xc000, 0, 0, bits32(-2)},
    };
    (void)state;
    run_examples(list, COUNT(list));
}

/* ---- moves, carries, memory ---- */

static void test_moves(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs("mov.b64 %d0, 0x1122334455667788; mov.b64 {%r0, %r1}, %d0; mov.b64 %d1, {%r1, %r0};\n"
         "mov.b32 {%h0, %h1}, %r0; mov.b32 %r2, {%h1, %h0}; mov.f64 %g0, 0d3FF0000000000000; mov.b64 {_, "
         "%r3}, %g0;\n"
         "st.global.u64 [%mine], %d1; st.global.v2.u32 [%mine+8], {%r2, %r3};\n"
         "add.cc.u32 %r4, 0xffffffff, 1; addc.u32 %r5, 5, 5; sub.cc.u32 %r6, 0, 1; subc.u32 %r7, 5, 1;\n"
         "st.global.v4.u32 [%mine+16], {%r4, %r5, %r6, %r7};\n"
         "mad.lo.cc.u32 %r8, 0x80000000, 2, 3; madc.hi.u32 %r9, 0x80000000, 2, 3; st.global.v2.u32 "
         "[%mine+32], {%r8, %r9};\n",
         (shape){0});
    assert_int_equal(memory[0], 0x5566778811223344);
    assert_int_equal(memory[1], 0x3ff0000077885566);
    assert_int_equal(memory[2], 11ull << 32);
    assert_int_equal(memory[3], 3ull << 32 | 0xffffffff);
    assert_int_equal(memory[4], 4ull << 32 | 3);
}

static void test_loads(void **state) {
    (void)state;
    memory[1] = 0x8000000080ff80fe;
    runs(
        "ld.global.s8 %r0, [%base+8]; ld.global.u8 %r1, [%base+8]; st.global.v2.u32 [%base+16], {%r0, %r1};\n"
        "ld.global.s16 %r0, [%base+10]; ld.global.s32 %d0, [%base+12]; st.global.u64 [%base+24], %d0;\n"
        "st.global.u32 [%base+32], %r0; ld.global.nc.v2.u32 {%r2, %r3}, [%base+8]; st.global.u32 [%base+40], "
        "%r3;\n"
        "ld.u32 %r4, [%base+8]; st.u32 [%base+44], %r4;\n",
        (shape){.threads = 1});
    assert_int_equal(memory[2], 0xfefffffffeull);
    assert_int_equal(memory[3], 0xffffffff80000000);
    assert_int_equal((uint32_t)memory[4], 0xffff80ff);
    assert_int_equal(memory[5], 0x80ff80fe80000000);
}

static void test_memories(void **state) {
    static const char functions[] =
        ".global .align 4 .b8 table[8] = {1, 2, 3, 4};\n.const .u32 seven = 7;\n"
        ".extern .shared .align 16 .b8 more[];\n"
        ".func (.param .b64 out) twice(.param .b64 in, .param .align 4 .b8 pair[8]) {\n"
        ".reg .b64 %a<3>; .reg .b32 %b; ld.param.u64 %a0, [in]; ld.param.u32 %b, [pair+4];\n"
        "cvt.u64.u32 %a1, %b; mad.lo.u64 %a2, %a0, 2, %a1; st.param.u64 [out], %a2; ret; }\n";
    (void)state;
    memset(memory, 0, sizeof memory);
    if (!run(functions,
             ".shared .align 4 .b8 own[12]; .local .align 8 .b8 pile[16];\n"
             "ld.global.u32 %r0, [table]; mov.u64 %d0, table; cvta.global.u64 %d1, %d0; ld.u8 %r1, [%d1+3];\n"
             "ld.const.u32 %r2, [seven]; st.global.v4.u32 [%mine], {%r0, %r1, %r2, %tid};\n"
             "mov.u64 %d2, own; mov.u64 %d3, more; st.global.v2.u64 [%mine+16], {%d2, %d3};\n"
             "cvta.shared.u64 %d4, %d3; mul.wide.u32 %d5, %tid, 4; add.s64 %d4, %d4, %d5; st.u32 [%d4], "
             "%tid; bar.sync 0;\n"
             "add.s64 %d3, %d3, %d5; ld.shared.u32 %r4, [%d3];\n"
             "mov.u64 %d6, pile; st.local.u32 [%d6+4], %r4; cvta.local.u64 %d7, %d6; ld.u32 %r5, [%d7+4];\n"
             "cvt.u64.u32 %d8, %r5;\n"
             "{ .param .b64 a; .param .align 4 .b8 b[8]; .param .b64 c; st.param.u64 [a], %d8; st.param.u32 "
             "[b+4], 100;\n"
             "call.uni (c), twice, (a, b); ld.param.u64 %d9, [c]; }\n"
             "st.global.u64 [%mine+32], %d9;\n",
             (shape){.dynamic = 128}))
        fail_msg("%s", why);
    for (uint64_t i = 0; i < 32; i++) {
        assert_int_equal(memory[8 * i], 4ull << 32 | 0x04030201);
        assert_int_equal(memory[8 * i + 1], i << 32 | 7);
        assert_int_equal(memory[8 * i + 2], 0);
        assert_int_equal(memory[8 * i + 3], 16);
        assert_int_equal(memory[8 * i + 4], 2 * i + 100);
    }
}

static void test_atomics(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs("atom.global.add.u32 %r0, [%base+8], 1; red.global.max.s32 [%base+12], %tid; mov.u32 %r1, 5;\n"
         "atom.global.cas.b32 %r2, [%base+16], 0, %r1; atom.global.inc.u32 %r3, [%base+20], 9;\n"
         ".shared .u32 sum; setp.ne.s32 %p0, %tid, 0; @%p0 bra L; st.shared.u32 [sum], 0;\nL: bar.sync 0;\n"
         "atom.shared.add.u32 %r4, [sum], %tid; bar.sync 0; ld.shared.u32 %r5, [sum]; st.global.u32 [%base], "
         "%r5;",
         (shape){.threads = 64, .seed = 3});
    assert_int_equal(memory[0], 2016);
    assert_int_equal(memory[1], 63ull << 32 | 64);
    assert_int_equal(memory[2], 4ull << 32 | 5); /* 64 counts to 9 and begins again */
}

/* ---- control ---- */

static void test_branches(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    /* each lane loops as often as its number; then all meet again */
    runs("mov.u32 %r0, 0; mov.u32 %r1, 0;\nAGAIN: setp.ge.u32 %p0, %r0, %tid; @%p0 bra DONE; add.s32 %r1, "
         "%r1, %r0;\n"
         "add.s32 %r0, %r0, 1; bra.uni AGAIN;\nDONE: activemask.b32 %r2; st.global.v2.u32 [%mine], {%r1, "
         "%r2};\n"
         "rem.u32 %r3, %tid, 3;\nts: .branchtargets A, B, C;\nbrx.idx %r3, ts;\nA: mov.u32 %r4, 10; bra "
         "E;\nB: mov.u32 %r4, 11; bra E;\n"
         "C: mov.u32 %r4, 12;\nE: @!%p0 mov.u32 %r4, 0; st.global.u32 [%mine+8], %r4;",
         (shape){0});
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(memory[8 * i], 0xffffffff00000000 | (i * (i - 1) / 2));
        assert_int_equal(memory[8 * i + 1], 10 + i % 3);
    }
}

static void test_block(void **state) {
    /* a sum over a block in shared memory, in any order of warps and blocks */
    static const char body[] =
        ".shared .align 4 .b8 part[512]; mov.u64 %d0, part; mul.wide.u32 %d1, %tid, 4; add.s64 %d2, %d0, "
        "%d1;\n"
        "mov.u32 %r9, %ctaid.x; mad.lo.s32 %r8, %r9, 1000, %tid; st.shared.u32 [%d2], %r8; mov.u32 %r1, 64;\n"
        "LOOP: bar.sync 0; setp.ge.u32 %p0, %tid, %r1; @%p0 bra NEXT; mul.wide.u32 %d3, %r1, 4; add.s64 %d4, "
        "%d2, %d3;\n"
        "ld.shared.u32 %r2, [%d4]; ld.shared.u32 %r3, [%d2]; add.s32 %r3, %r3, %r2; st.shared.u32 [%d2], "
        "%r3;\n"
        "NEXT: shr.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;\n"
        "setp.ne.u32 %p2, %tid, 0; @%p2 bra END; ld.shared.u32 %r4, [part]; mul.wide.u32 %d5, %r9, 8; "
        "add.s64 %d6, %base, %d5;\n"
        "st.global.u32 [%d6], %r4;\nEND:\n"
        "setp.lt.u32 %p3, %tid, 50; bar.red.popc.u32 %r5, 0, %p3; bar.red.and.pred %p4, 0, %p3; "
        "bar.red.or.pred %p5, 0, %p3;\n"
        "selp.u32 %r6, 1, 0, %p4; selp.u32 %r7, 1, 0, %p5; st.global.v4.u32 [%base+4096], {%r5, %r6, %r7, "
        "%r7};\n";
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        memset(memory, 0, sizeof memory);
        runs(body, (shape){.threads = 128, .blocks = 7, .seed = seed});
        for (uint64_t i = 0; i < 7; i++) assert_int_equal(memory[i], 127 * 64 + 128000 * i);
        assert_int_equal(memory[512], 50);
        assert_int_equal(memory[513], 1ull << 32 | 1);
    }
}

/* A block that waits for another one: both must make progress. */
static void test_resident(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs("mov.u32 %r0, %ctaid.x; atom.global.add.u32 %r1, [%base], 1;\n"
         "WAIT: ld.volatile.global.u32 %r2, [%base]; setp.lt.u32 %p0, %r2, 64; @%p0 bra WAIT; st.global.u32 "
         "[%base+8], %r2;",
         (shape){.blocks = 2});
    assert_int_equal(memory[1], 64);
}

/* ---- warps ---- */

static void test_shuffles(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs("shfl.sync.down.b32 %r0|%p0, %tid, 4, 31, -1; shfl.sync.up.b32 %r1|%p1, %tid, 1, 0, -1;\n"
         "shfl.sync.bfly.b32 %r2, %tid, 3, 31, -1; shfl.sync.idx.b32 %r3, %tid, 2, 0x181f, -1;\n"
         "st.global.v4.u32 [%mine], {%r0, %r1, %r2, %r3}; selp.u32 %r4, 1, 0, %p0; selp.u32 %r5, 1, 0, %p1;\n"
         "setp.lt.u32 %p2, %tid, 5; vote.sync.ballot.b32 %r6, %p2, -1; vote.sync.any.pred %p3, %p2, -1; "
         "selp.u32 %r7, 1, 0, %p3;\n"
         "st.global.v4.u32 [%mine+16], {%r4, %r5, %r6, %r7}; and.b32 %r8, %tid, 1; match.any.sync.b32 %r9, "
         "%r8, -1;\n"
         "redux.sync.add.s32 %r10, %tid, -1; st.global.v2.u32 [%mine+32], {%r9, %r10};",
         (shape){0});
    for (uint64_t i = 0; i < 32; i++) {
        const uint32_t *r = (const uint32_t *)&memory[8 * i];
        assert_int_equal(r[0], i + 4 < 32 ? i + 4 : i);
        assert_int_equal(r[1], i ? i - 1 : 0);
        assert_int_equal(r[2], i ^ 3);
        assert_int_equal(r[3], (i & 24) | 2); /* segments of 8 lanes */
        assert_int_equal(r[4], i < 28);
        assert_int_equal(r[5], i > 0);
        assert_int_equal(r[6], 31);
        assert_int_equal(r[7], 1);
        assert_int_equal(r[8], i % 2 ? 0xaaaaaaaa : 0x55555555);
        assert_int_equal(r[9], 496);
    }
}

/* Lanes that come to a shuffle by different ways meet there. */
static void test_meeting(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs("setp.lt.u32 %p0, %tid, 16; mov.u32 %r0, 1; @%p0 bra LATER; mov.u32 %r0, 2; bra.uni LATER;\n"
         "BACK: st.global.u32 [%mine], %r1; bra.uni END;\nLATER: shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1; "
         "bra.uni BACK;\nEND:",
         (shape){0});
    for (int i = 0; i < 32; i++) assert_int_equal(memory[8 * i], i < 16 ? 2 : 1);
}

/* ---- tensor cores ---- */

/* ldmatrix of a matrix whose element (r, c) is 8 r + c, and of its transpose. */
static void test_ldmatrix(void **state) {
    (void)state;
    memset(memory, 0, sizeof memory);
    runs(".shared .align 16 .b8 m[512]; mov.u32 %r9, m; mul.lo.u32 %r8, %tid, 16; add.s32 %r9, %r9, %r8; "
         "shl.b32 %r0, %tid, 3;\n"
         "mad.lo.u32 %r1, %r0, 65537, 65536; add.s32 %r2, %r1, 131074; add.s32 %r3, %r1, 262148; add.s32 "
         "%r4, %r1, 393222;\n"
         "st.shared.v4.u32 [%r9], {%r1, %r2, %r3, %r4}; bar.warp.sync -1;\n"
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r9];\n"
         "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r9];\n"
         "st.global.v4.u32 [%mine], {%r10, %r11, %r12, %r13}; st.global.v2.u32 [%mine+16], {%r14, %r15};",
         (shape){0});
    for (uint32_t l = 0; l < 32; l++) {
        const uint32_t *r = (const uint32_t *)&memory[8 * l], at = l / 4 * 8 + l % 4 * 2,
                       turned = l % 4 * 16 + l / 4;
        for (uint32_t i = 0; i < 4; i++) assert_int_equal(r[i], (64 * i + at) | (64 * i + at + 1) << 16);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(r[4 + i], (64 * i + turned) | (64 * i + turned + 8) << 16);
    }
}

/* mma of small whole numbers, which are exact: a[i][p] = i - p, b[p][j] = p + 2 j, c = 100. `bits` makes a
 * number. */
static void run_mma(const char *shape_words, const char *type, int k, int each, unsigned (*bits)(int)) {
    char body[1200], *at = body;
    const int halves = k / (4 * each), words = 2 * halves;
    memset(memory, 0, sizeof memory);
    for (int l = 0; l < 32; l++) {
        uint32_t *r = (uint32_t *)&memory[8 * l];
        for (int half = 0; half < halves; half++)
            for (int i = 0; i < each; i++) {
                const int p = half * 4 * each + l % 4 * each + i;
                for (int m = 0; m < 2; m++) r[2 * half + m] |= bits(l / 4 + 8 * m - p) << 16 * i;
                r[words + half] |= bits(p + l / 4 * 2) << 16 * i;
            }
    }
    for (int i = 0; i < words + halves; i++)
        at += sprintf(at, "ld.global.u32 %%r%d, [%%mine+%d];\n", i, 4 * i);
    at += sprintf(
        at, "mov.f32 %%f9, 0f42C80000; mma.sync.aligned.%s.row.col.f32.%s.%s.f32 {%%f0, %%f1, %%f2, %%f3}, {",
        shape_words, type, type);
    for (int i = 0; i < words; i++) at += sprintf(at, "%%r%d%s", i, i + 1 < words ? ", " : "}, {");
    for (int i = 0; i < halves; i++) at += sprintf(at, "%%r%d%s", words + i, i + 1 < halves ? ", " : "}, ");
    sprintf(at, "{%%f9, %%f9, %%f9, %%f9}; st.global.v4.f32 [%%mine], {%%f0, %%f1, %%f2, %%f3};");
    runs(body, (shape){0});
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            const int row = l / 4 + 8 * (i / 2), column = 2 * (l % 4) + i % 2;
            float sum = 100, got;
            for (int p = 0; p < k; p++) sum += (float)((row - p) * (p + 2 * column));
            memcpy(&got, (const uint32_t *)&memory[8 * l] + i, sizeof got);
            assert_true(got == sum);
        }
}

static unsigned bf16(int x) { return (unsigned)(bits32((float)x) >> 16); }
static unsigned tf32(int x) { return (unsigned)bits32((float)x) | 0x1fff; } /* the last bits do not count */
static unsigned f16(int x) {
    const unsigned sign = x < 0 ? 0x8000 : 0, size = (unsigned)abs(x);
    unsigned exponent = 0;
    if (!size) return 0;
    while (size >> exponent > 1) exponent++;
    return sign | (exponent + 15) << 10 | (size << (10 - exponent) & 1023);
}

static void test_mma(void **state) {
    (void)state;
    run_mma("m16n8k16", "bf16", 16, 2, bf16);
    run_mma("m16n8k16", "f16", 16, 2, f16);
    run_mma("m16n8k8", "f16", 8, 2, f16);
    run_mma("m16n8k8", "tf32", 8, 1, tf32);
}

/* A copy arrives with the wait, and its tail is 0. */
static void test_copies(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 64; i++) memory[1024 + i] = M1 - i;
    runs(".shared .align 16 .b8 room[1024]; mov.u32 %r0, room; mad.lo.s32 %r1, %tid, 16, %r0; mul.wide.u32 "
         "%d0, %tid, 16;\n"
         "add.s64 %d1, %base, %d0; cp.async.cg.shared.global [%r1], [%d1+8192], 16, 8; "
         "cp.async.commit_group;\n"
         "cp.async.ca.shared.global [%r1+512], [%d1+8192], 8, 8; cp.async.ca.shared.global [%r1+520], "
         "[%d1+8192], 4, 0;\n"
         "cp.async.ca.shared.global [%r1+524], [%d1+8192], 4; cp.async.commit_group; cp.async.wait_group 1;\n"
         "ld.shared.v2.u64 {%d2, %d3}, [%r1]; st.global.v2.u64 [%mine], {%d2, %d3}; cp.async.wait_group 0; "
         "bar.sync 0;\n"
         "ld.shared.v2.u64 {%d4, %d5}, [%r1+512]; st.global.v2.u64 [%mine+16], {%d4, %d5};",
         (shape){0});
    for (uint64_t i = 0; i < 32; i++) {
        assert_int_equal(memory[8 * i], M1 - 2 * i);
        assert_int_equal(memory[8 * i + 1], 0);
        assert_int_equal(memory[8 * i + 2], M1 - 2 * i);
        assert_int_equal(memory[8 * i + 3], (M1 - 2 * i) << 32);
    }
}

/* ---- planted faults ---- */

static void test_memory_faults(void **state) {
    (void)state;
    is_refused("ld.global.u32 %r0, [%base+2];", (shape){0}, "misaligned: 4 bytes");
    is_refused("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%base+8];", (shape){0}, "misaligned: 16 bytes");
    is_refused("ld.global.u32 %r0, [%base+131072];", (shape){0}, "4 bytes at");
    is_refused("st.global.u32 [%base+-4], 1;", (shape){0}, "outside of global memory");
    is_refused(".shared .b8 a[64]; st.shared.u32 [a+64], 1;", (shape){.threads = 1},
               "outside of shared memory");
    is_refused(".shared .align 4 .b8 a[64]; ld.shared.u16 %h0, [a+1];", (shape){.threads = 1},
               "misaligned: 2 bytes");
    is_refused(".local .align 8 .b8 a[16]; ld.local.u64 %d0, [a+16];", (shape){0}, "outside of local memory");
    is_refused("ld.param.u64 %d0, [k_0+8];", (shape){0}, "outside of param memory");
    is_refused(".shared .align 4 .b8 a[49156]; st.shared.u32 [a], 1;", (shape){0},
               "too much shared data (0xc004 bytes, 0xc000 max)");
    is_refused("", (shape){.dynamic = 232449}, "too much shared memory");
    is_refused("", (shape){.threads = 1025}, "too many threads");
}

/* Results that nobody uses may be computed from anything. */
static void test_register_faults(void **state) {
    static const char words[] = "operand 2 was never written, or computed from such a register";
    (void)state;
    runs("add.s32 %r0, %r1, 1; selp.b32 %r2, 5, %r0, 1; st.global.u32 [%base], %r2;\n"
         "setp.eq.s32 %p1, %r1, 0; setp.ne.s32 %p2, 1, 1; and.pred %p3, %p1, %p2; or.pred %p4, %p3, %p2; "
         "@%p4 trap;",
         (shape){0});
    is_refused("st.global.u32 [%base], %r1;", (shape){0}, words);
    is_refused("mov.u32 %r0, %r1; add.s32 %r2, 1, %r0; st.global.u32 [%base], %r2;", (shape){0}, words);
    is_refused("selp.b32 %r2, 5, %r0, 0; st.global.u32 [%base], %r2;", (shape){0}, words);
    is_refused("add.s64 %d0, %d1, %base; ld.global.u32 %r0, [%d0];", (shape){0},
               "operand 1 was never written");
    is_refused("setp.eq.s32 %p1, %r1, 0; setp.eq.s32 %p2, 1, 1; and.pred %p3, %p1, %p2; @%p3 trap;",
               (shape){0}, "the predicate was never written");
    is_refused("setp.lt.u32 %p0, %tid, 7; @%p0 mov.u32 %r0, 1; st.global.u32 [%base], %r0;", (shape){0},
               "thread 7: operand 2");
    is_refused("@%p0 bra END;\nEND:", (shape){0}, "the predicate was never written");
    is_refused("shfl.sync.down.b32 %r0, %tid, 1, 31, -1; add.s32 %r1, %r0, 1; st.global.u32 [%base], %r1;",
               (shape){.threads = 20}, "thread 19: operand 2");
    is_refused("frobnicate.b32 %r0, %r1;", (shape){0}, "the opcode 'frobnicate.b32' is not known");
    is_refused("add.rn.wrong.f32 %f0, %f1, %f2;", (shape){0}, "('wrong')");
    is_refused("cvt.rn.satfinite.f16.f32 %h0, 0f00000000;", (shape){0}, "('satfinite')");
    is_refused("add.rn.f16 %h0, 1, 2;", (shape){0}, "does not know this instruction with this type");
    is_refused("atom.global.add.f32 %f0, [%base], 0f00000000;", (shape){0},
               "does not know this instruction with this type");
    is_refused("trap;", (shape){0}, "trap");
}

static void test_races(void **state) {
    static const char neighbours[] = /* each thread writes its word; then reads that of a neighbour */
        ".shared .align 4 .b8 a[1024]; mov.u32 %%r0, a; mad.lo.u32 %%r1, %%tid, 4, %%r0; st.shared.u32 "
        "[%%r1], %%tid; %s\n"
        "xor.b32 %%r2, %%tid, %d; mad.lo.u32 %%r3, %%r2, 4, %%r0; ld.shared.u32 %%r4, [%%r3]; %s "
        "st.shared.u32 [%%r1], 1;";
    char body[600];
    (void)state;
    static const struct {
        const char *before, *after;
        int neighbour;
        const char *words;
    } list[] = {
        {"", "bar.sync 0;", 1, "of shared memory is"},
        {"bar.sync 0;", "", 1, "which another thread read"},
        {"bar.sync 0;", "bar.sync 0;", 1, NULL},
        {"bar.warp.sync -1;", "bar.warp.sync -1;", 1, NULL},
        {"bar.warp.sync -1;", "bar.warp.sync -1;", 32, "of shared memory is"},
        {"bar.sync 0;", "bar.warp.sync -1;", 32, "of shared memory is"},
        {"", "", 0, NULL},
    };
    for (int i = 0; i < COUNT(list); i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            snprintf(body, sizeof body, neighbours, list[i].before, list[i].neighbour, list[i].after);
            if (list[i].words)
                is_refused(body, (shape){.threads = 64, .seed = seed}, list[i].words);
            else
                runs(body, (shape){.threads = 64, .seed = seed});
        }
    is_refused(".shared .align 4 .b8 a[1024]; st.shared.u16 [a], 1; ld.shared.u32 %r0, [a];",
               (shape){.threads = 1}, "byte 2 of shared memory is read, which the block has not written");
    /* many may write the same value, but not different ones */
    runs(".shared .u32 a; st.shared.u32 [a], 5;", (shape){.threads = 64});
    is_refused(".shared .u32 a; st.shared.u32 [a], %tid;", (shape){.threads = 64}, "race: byte");
}

static void test_copy_faults(void **state) {
    static const char copy[] = ".shared .align 16 .b8 room[512]; mov.u32 %r0, room; mad.lo.s32 %r1, %tid, "
                               "16, %r0; xor.b32 %r2, %r1, 16;\n"
                               "cp.async.cg.shared.global [%r1], [%base], 16, 16; cp.async.commit_group;\n";
    char body[600];
    (void)state;
    snprintf(body, sizeof body, "%sld.shared.u32 %%r3, [%%r1];", copy);
    is_refused(body, (shape){0}, "while cp.async");
    snprintf(body, sizeof body, "%scp.async.wait_group 1; ld.shared.u32 %%r3, [%%r1];", copy);
    is_refused(body, (shape){0}, "while cp.async");
    snprintf(body, sizeof body, "%scp.async.wait_group 0; ld.shared.u32 %%r3, [%%r2];", copy);
    is_refused(body, (shape){0}, "race: byte"); /* a neighbour's copy needs a barrier, too */
    snprintf(body, sizeof body, "%scp.async.wait_group 0; bar.sync 0; ld.shared.u32 %%r3, [%%r2];", copy);
    runs(body, (shape){0});
    is_refused(".shared .align 16 .b8 a[64]; mov.u32 %r0, a; cp.async.ca.shared.global [%r0], [%base+8], 16;",
               (shape){.threads = 1}, "misaligned: 16 bytes");
    is_refused(".shared .align 16 .b8 a[64]; mov.u32 %r0, a; cp.async.cg.shared.global [%r0], [%base+8], 8;",
               (shape){.threads = 1}, "cp.async of 8");
}

static void test_barrier_faults(void **state) {
    (void)state;
    is_refused("setp.lt.u32 %p0, %tid, 40; @%p0 bra END; bar.sync 0;\nEND:", (shape){.threads = 64},
               "have returned before it");
    is_refused("setp.lt.u32 %p0, %tid, 8; @%p0 bar.sync 0; bar.sync 0;", (shape){0}, "divergent: lanes");
    is_refused("setp.lt.u32 %p0, %tid, 32; @%p0 bra A; bar.sync 0; bra.uni END;\nA: bar.sync 0;\nEND:",
               (shape){.threads = 64}, "other threads wait at the barrier in line");
    is_refused("setp.lt.u32 %p0, %tid, 8; @%p0 shfl.sync.idx.b32 %r0, %tid, 0, 31, -1; bar.sync 0;",
               (shape){0}, "divergent: lanes 0xff of the warp");
    is_refused("setp.ge.u32 %p0, %tid, 8; @%p0 bra END; shfl.sync.idx.b32 %r0, %tid, 0, 31, 0xf;\nEND:",
               (shape){0}, "is not in its mask 0xf");
    is_refused("setp.lt.u32 %p0, %tid, 8; @%p0 bra A; bar.warp.sync -1; bra END;\nA: bar.warp.sync -1;\nEND:",
               (shape){0}, "divergent: lanes");
    is_refused("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%tid, %tid}, {%tid}, "
               "{0f00000000, 0f00000000, 0f00000000, 0f00000000};",
               (shape){.threads = 48}, "lanes of the warp are missing: 0xffff0000");
    is_refused("bar.sync 16;", (shape){0}, "barrier 16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_memories),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_ldmatrix),
        cmocka_unit_test(test_mma),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_memory_faults),
        cmocka_unit_test(test_register_faults),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_copy_faults),
        cmocka_unit_test(test_barrier_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
