/* src/device/webgpu/wgsl: what the translator refuses, and how; what it finds about a kernel; how kernels
 * print whose lines matter. The goldens of tests/golden/wgsl hold whole modules. Texts that are cut off or
 * damaged give a message or a module, and never end the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/gpu/gpu.h"
#include "device/webgpu/wgsl/wgsl.h"

enum { TEXT = 1 << 18, MESSAGE = 400 };

/* Puts the prelude before a text. */
static const char *whole(const char *text, unsigned prelude) {
    static char to[TEXT];
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_WGSL, prelude, parts);
    size_t length = 0;
    for (int i = 0; i <= n; i++)
        length += (size_t)snprintf(to + length, sizeof to - length, "%s", i < n ? parts[i] : text);
    assert_true(length < sizeof to);
    return to;
}

static weft_status read_text(const char *text, weft_wgsl_source **source, char *message) {
    static weft_context ctx;
    message[0] = 0;
    return weft__wgsl_read(&ctx, text, source, message, MESSAGE);
}

/* Prints the only kernel of a text. Without `binding` each pointer has a buffer of its own. */
static char *printed(const char *text, unsigned prelude, const int *binding) {
    static const int apart[WEFT_WGSL_POINTERS] = {0, 1, 2, 3, 4, 5};
    char message[MESSAGE], *wgsl = NULL;
    weft_wgsl_source *source;
    if (read_text(whole(text, prelude), &source, message) != WEFT_OK) fail_msg("%s", message);
    assert_int_equal(weft__wgsl_kernels(source), 1);
    assert_int_equal(weft__wgsl_print(source, 0, binding ? binding : apart, &wgsl), WEFT_OK);
    weft__wgsl_free(source);
    return wgsl;
}

static void expect(const char *wgsl, const char *line) {
    if (!strstr(wgsl, line)) fail_msg("not in the module: %s\n%s", line, wgsl);
}

#define KERNEL(name, pointers, body)                                                                         \
    "W_NUMBERS(" name ") { w_i64 at; int n; };\n"                                                            \
    "W_KERNEL W_ITEMS(64, 1, 1) void " name "(" pointers ", const W_NUMBERS(" name ") of) {\n" body "\n}\n"

/* ---- what is refused ---- */

static void refuses(const char *text, const char *expected) {
    char message[MESSAGE];
    weft_wgsl_source *source = (weft_wgsl_source *)message;
    assert_int_equal(read_text(text, &source, message), WEFT_ERR_DEVICE);
    assert_null(source);
    if (!strstr(message, expected)) fail_msg("the message is\n    %s\nand not\n    %s", message, expected);
}

static void test_bad_texts(void **state) {
    static const struct {
        const char *text, *message;
    } bad[] = {{"", "line 1: the text has no kernel"},
               {"int f(int x) { return x; }", "the text has no kernel"},
               {"\n\n@", "line 3: the byte 0x40 begins no token"},
               {"/* no end", "line 1: a comment has no end"},
               {"\"no end", "line 1: a string has no end"},
               {"#if 1\nint x;", "#if has no #endif"},
               {"#endif", "line 1: #endif without #if"},
               {"#if 1\n#else\n#else\n#endif", "line 3: #else after #else"},
               {"#if 1 +\n#endif", "line 1: a condition lacks an operand"},
               {"#if 1 / 0\n#endif", "line 1: a condition divides by zero"},
               {"#if (1\n#endif", "line 1: a condition lacks a bracket )"},
               {"#define 1", "line 1: #define needs a name"},
               {"#define f(a, 1) a", "line 1: macro f: its parameters must be"},
               {"#define f(a) a\nf(1, 2);", "line 2: macro f has 1 parameters, and is used with 2"},
               {"#define f(a) a\nf(1", "line 2: the arguments of macro f have no end"},
               {"#define f(a, b) a##b\nint x = f(+, -);", "line 2: ## gives +-, which is no token"},
               {"#include \"other.h\"", "line 1: directive #include is not supported"},
               {"#error stop", "line 1: #error"},
               {"int x = 1", "line 1: the text ends where ',' must be"},
               {"int f(int x) { return (x; }", "line 1: ';' is where ')' must be"},
               {"int f(int x) { switch (x) {} }", "line 1: switch is not supported"},
               {"int f(int x) { goto a; }", "line 1: goto is not supported"},
               {"struct s { int x; struct s y; };", "member y has no size"},
               {"struct s { struct s { int x; } y; };", "struct s is declared inside of itself"},
               {"struct s { struct s x[3]; };", "the elements of an array have no size"},
               {"typedef int none[0];", "an array has no elements"},
               {"int a[1000][1000];", "an array has more than 1048576 bytes"},
               {"int a[][262144] = {{1}, {2}};", "an array has more than 1048576 bytes"},
               {"struct s { int x[200000], y[200000]; };", "a struct has more than 1048576 bytes"},
               {"int a[1000000000];", "line 1: 1000000000 elements are not supported"},
               {"int a[4 / 0];", "line 1: a constant divides by 0"},
               {"int a[x];", "line 1: the size of an array must be a constant"},
               {"int x = 99999999999999999999;", "99999999999999999999 is too large"},
               {"float x = 1.5q;", "1.5q is no number"},
               {"unknown f(int x) {}", "line 1: 'unknown' is where a type must be"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuses(bad[i].text, bad[i].message);
}

static void test_bad_kernels(void **state) {
    static const struct {
        const char *body, *message;
    } bad[] = {
        {"p[0] = y;", "y is not declared"},
        {"p[0] = f(1);", "function f is not known"},
        {"p[0] = of.m;", "has no member m"},
        {"double d = p[0]; p[0] = d;", "numbers of type double are not supported"},
        {"union { int i; float f; } u; u.i = 1;", "WGSL has no type for union"},
        {"const W_GLOBAL float *r = p; r = q; p[0] = r[0];", "pointer r changes to other memory"},
        {"const W_GLOBAL float *r = of.n ? p : q; p[0] = r[0];",
         "? and : have pointers into different memory"},
        {"const W_GLOBAL float *r; p[0] = r[0];", "pointer r is used before it points to anything"},
        {"p[0] = 1.0f % 2.0f;", "operator % has operands that are no integers"},
        {"p[0] = p * 2;", "joins pointers into different memory"},
        {"p[0] = of.n / 0;", "a number is divided by 0"},
        {"p[0] = 1 << 40;", "a number of 32 bits is shifted by 40"},
        {"3 = of.n;", "this cannot be assigned"},
        {"of.n = 3;", "this cannot be assigned"},
        {"float x[2] = {1, 2, 3}; p[0] = x[0];", "an array has more values than elements"},
        {"p[0] = get_group_id(of.n);", "get_group_id needs a dimension, 0 to 2"},
        {"p[0] = fma(1.0f, 2.0f);", "fma is called with other arguments than it has"},
        {"float x = x;", "x is used in its own declaration"},
        {"float x[5000] = {0};", "a list of values is for more than 4096 elements"},
        {"W_LOCAL float x[200000], y[200000]; y[0] = x[1];", "more than 1048576 bytes of local memory"},
        {"struct s { float x, y; }; W_LOCAL struct s a[4]; p[0] = a[0].y;",
         "arrays of structs in local memory are not supported"},
        {"struct s { float x, y; }; W_LOCAL struct s a; struct s b = a; p[0] = b.x;",
         "a struct in local memory is only supported by its members"},
        {"p[0] = p & p;", "operator & joins pointers into different memory"},
        {"return 1;", "a function cannot return this"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1000];
        snprintf(text, sizeof text, KERNEL("bad", "W_GLOBAL float *p, const W_GLOBAL float *q", "%s"),
                 bad[i].body);
        refuses(whole(text, 0), bad[i].message);
    }
    refuses(whole("int f(int x) { return f(x); }\n" KERNEL("k", "W_GLOBAL int *p", "p[0] = f(1);"), 0),
            "function f calls itself");
    refuses(whole("W_NUMBERS(k) { int n[20000]; };\n"
                  "W_KERNEL W_ITEMS(1, 1, 1) void k(W_GLOBAL int *p, const W_NUMBERS(k) of) {}",
                  0),
            "the struct of numbers has more than");
    refuses(whole("W_KERNEL void k(W_GLOBAL int *p) {}", 0), "does not say how many work-items");
    refuses(whole("W_KERNEL W_ITEMS(1, 1, 1) void k(int n) {}", 0),
            "parameter n of a kernel is neither a pointer");
}

/* The depth of the recursion is bounded. */
static void test_deep_texts(void **state) {
    static const char *const opening[] = {"(", "{", "-", "[", "struct {", "if (1) ", "x ? "};
    (void)state;
    for (size_t i = 0; i < sizeof opening / sizeof *opening; i++) {
        static char text[TEXT];
        char message[MESSAGE];
        weft_wgsl_source *source;
        size_t length = (size_t)snprintf(text, sizeof text, "int f(int x) { return ");
        if (i == 1 || i > 3) length = (size_t)snprintf(text, sizeof text, "int f(int x) { ");
        for (int k = 0; k < 20000; k++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s", opening[i]);
        assert_int_equal(read_text(text, &source, message), WEFT_ERR_DEVICE);
        assert_true(strlen(message) > 0);
    }
}

/* Repeats a text, between two others. */
static void refuses_many(const char *before, const char *each, int times, const char *after,
                         const char *expected) {
    static char text[4 * TEXT];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", before);
    for (int i = 0; i < times; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s", each);
    length += (size_t)snprintf(text + length, sizeof text - length, "%s", after);
    assert_true(length < sizeof text);
    refuses(text, expected);
}

/* Lists are read in loops, but some are walked by a recursion. */
static void test_long_texts(void **state) {
    (void)state;
    refuses_many("int a[", "1+", 300000, "1];", "nested more than 200 deep");
    refuses_many("#if ", "1?1:", 200000, "1\n#endif", "nested more than 200 deep");
    refuses_many("int ", "*", 300000, "p;", "a type is nested more than 64 deep");
    refuses_many("__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k(__global int *p) { p[0] = 1",
                 ", p[0] = 1", 50000, "; }", "nested more than 200 deep");
}

/* Texts of some lines whose translation would never end: line i uses what line i - 1 declares twice. */
static void test_growing_texts(void **state) {
    static const struct {
        const char *first, *each;
        int lines;
        const char *last, *message;
    } kinds[] = {
        {"#define x0\n", "#define x%d x%d x%d\n", 50, "int x50;", "takes more than 256 MiB of memory"},
        {"#define x0 1\n", "#define x%d x%d + x%d\n", 50, "int x50;", "takes more than 256 MiB of memory"},
        {"struct x0 {};\n", "struct x%d { struct x%d a, b; struct x%d c; };\n", 50,
         "int y[sizeof(struct x50)];", "an array has no elements"},
        {"W_FN float x0(const float *p) { return *p; }\n",
         "W_FN float x%d(const float *p) { return x%d(p + 1) + x%d(p); }\n", 30,
         KERNEL("k", "W_GLOBAL float *p", "float a[40]; p[0] = x30(a);"), "more than 400 different places"}};
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        char text[10000];
        size_t length = (size_t)snprintf(text, sizeof text, "%s", kinds[kind].first);
        for (int i = 1; i <= kinds[kind].lines; i++)
            length +=
                (size_t)snprintf(text + length, sizeof text - length, kinds[kind].each, i, i - 1, i - 1);
        snprintf(text + length, sizeof text - length, "%s", kinds[kind].last);
        refuses(whole(text, 0), kinds[kind].message);
    }
}

/* ---- damaged texts ---- */

static const char attempt[] =
    "#define T ushort\n#if defined(T) && !defined(U)\n"
    "typedef struct pair { float x; int y[2]; } pair;\n"
    "W_FN pair made(float x, const W_GLOBAL T *p, w_i64 i) { pair r; r.x = x, r.y[0] = p[i]; return r; }\n"
    "W_SHARED(k) { float kept[64]; };\n"
    "W_NUMBERS(k) { w_i64 p_at; long big; int n[3]; };\n"
    "W_KERNEL W_ITEMS(64, 1, 1) void k(const W_GLOBAL T *p, W_GLOBAL T *q, W_GLOBAL w_faults *faults,\n"
    "    const W_NUMBERS(k) of W_ALSO(k)) {\n"
    "    W_MEMORY(k)\n    W_RETURN_IF_FAULTED(64, of.n[0])\n"
    "    const int lane = w_item(0);\n    float t = 0;\n"
    "    for (w_i64 i = of.p_at + lane, j; (j = i) < of.n[1]; i += 64) t += made(1.5f, p, j).x * "
    "(float)of.big;\n"
    "    W_HALVES(float, t, shared->kept, 64, x + y);\n"
    "    if (t != t) w_fault(faults, 1, W_FAULT_GATHER, of.big << 3, -1, lane);\n"
    "    do { q[lane]++; } while (lane < 0x10u && q[lane] > 3 ? t > 0 : 0);\n}\n#endif\n";

/* Every prefix of a text, and texts with one byte changed, skipped or doubled. */
static void test_damaged_texts(void **state) {
    static const char bytes[] = "(){}[];,*&#.\"=+-0x a\n";
    static char text[sizeof attempt + 2];
    static char before[TEXT];
    char message[MESSAGE];
    int good = 0;
    (void)state;
    weft_wgsl_source *source;
    snprintf(before, sizeof before, "%s", whole("", 0));
    const size_t length = sizeof attempt - 1, start = strlen(before);
    for (size_t i = 0; i < length; i++)
        for (int how = 0; how < 4; how++) {
            memcpy(text, attempt, sizeof attempt);
            if (how == 0) text[i] = 0;
            if (how == 1) text[i] = bytes[(i * 7 + 3) % (sizeof bytes - 1)];
            if (how == 2) memmove(text + i, text + i + 1, length - i);
            if (how == 3) memmove(text + i + 1, text + i, length - i + 1);
            snprintf(before + start, sizeof before - start, "%s", text);
            const weft_status status = read_text(before, &source, message);
            assert_true(status == WEFT_OK ? source != NULL
                                          : status == WEFT_ERR_DEVICE && message[0] && !source);
            good += status == WEFT_OK;
            weft__wgsl_free(source);
        }
    assert_true(good > 0);
    weft__wgsl_free(NULL);
}

/* ---- what is known of a kernel ---- */

static void test_facts(void **state) {
    char message[MESSAGE];
    weft_wgsl_source *source;
    (void)state;
    assert_int_equal(read_text(whole(attempt, 0), &source, message), WEFT_OK);
    const weft_wgsl_kernel *k = weft__wgsl_kernel(source, 0);
    assert_string_equal(k->name, "k");
    assert_int_equal(k->n_pointers, 3);
    assert_false(k->written[0]);
    assert_true(k->written[1] && k->written[2]);
    assert_int_equal(k->number_bytes, 32); /* 8 + 8 + 12, aligned to 8 */
    assert_int_equal(k->items[0], 64);
    assert_int_equal(k->local_bytes, 64 * 4 + 4); /* and the answer of w_uniform */
    weft__wgsl_free(source);
}

/* ---- lines that matter ---- */

/* Neighbours in a word are stored by atomics, and so are all words of their buffer. */
static void test_bytes(void **state) {
    const int together[WEFT_WGSL_POINTERS] = {0};
    const char *text = KERNEL("k", "W_GLOBAL uchar *p, const W_GLOBAL int *q", "p[of.n] = (uchar)q[of.at];");
    (void)state;
    char *apart = printed(text, 0, NULL), *joined = printed(text, 0, together);
    expect(apart, "var<storage, read_write> buffer0: array<atomic<u32>>;");
    expect(apart, "var<storage, read> buffer1: array<u32>;");
    expect(apart, "atomicXor(&buffer0[at], (before ^ (u32(v) << shift)) & (255u << shift));");
    expect(joined, "var<storage, read_write> buffer0: array<atomic<u32>>;");
    expect(joined, "atomicLoad(&buffer0[q + ");
    assert_null(strstr(joined, "buffer1"));
    weft__free(NULL, apart);
    weft__free(NULL, joined);
}

/* NaN and infinity are compared by their bits, and are no constants. */
static void test_special_numbers(void **state) {
    (void)state;
    char *wgsl = printed(
        KERNEL("k", "W_GLOBAL float *p", "float x = p[0]; p[1] = x != x || x == -INFINITY ? NAN : x;"), 0,
        NULL);
    expect(wgsl, "wf_is_nan(x) || bitcast<u32>(x) == 0xff800000u");
    expect(wgsl, "bitcast<f32>(0x7fc00000u | w_words[0].w)");
    weft__free(NULL, wgsl);
}

/* A function is printed once for each buffer that its pointer points to. */
static void test_clones(void **state) {
    (void)state;
    char *wgsl = printed("W_FN float twice(const W_GLOBAL float *p, w_i64 i) { return 2 * p[i]; }\n" KERNEL(
                             "k", "W_GLOBAL float *p, const W_GLOBAL float *q",
                             "p[0] = twice(q, of.n) + twice(q, 3) + twice(p, of.n);"),
                         0, NULL);
    expect(wgsl, "fn twice(p: i32, i: i32) -> f32 {");
    expect(wgsl, "fn twice_2(p: i32, i: i32) -> f32 {");
    assert_null(strstr(wgsl, "twice_3"));
    weft__free(NULL, wgsl);
}

/* The text of a kernel whose sum s has a loop with this head and body. */
static char *with_loop(const char *loop) {
    char text[1024];
    snprintf(text, sizeof text,
             KERNEL("k", "W_GLOBAL float *p", "float s[8]; float t = 0; %s p[0] = s[0] + t;"), loop);
    return printed(text, 0, NULL);
}

/* Loops with known turns are unrolled where the source asks for it, and no others. */
static void test_unrolled(void **state) {
    static const char *const kept[] = {
        "for (int i = 0; i < 2; i++) t += p[i];",                              /* not asked for */
        "\n#pragma unroll 2\nfor (int i = 0; i < 2; i++) t += p[i];",          /* in part */
        "_Pragma(\"unroll\") for (int i = 0; i < of.n; i++) t += p[i];",       /* turns are not known */
        "_Pragma(\"unroll\") for (int i = 0; i < 8; i++) { t += p[i]; i++; }", /* changes its counter */
        "_Pragma(\"unroll\") for (int i = 0; i < 8; i++) { if (t > 1) break; t += 1; }", /* leaves early */
        "_Pragma(\"unroll\") for (int i = 0; i < 33; i++) t += p[i];",                   /* too long */
        "int i; _Pragma(\"unroll\") for (i = 0; i < 2; i++) t += p[i];",                 /* i lives on */
        "_Pragma(\"unroll\") if (t > 0) for (int i = 0; i < 2; i++) t += p[i];", /* of another statement */
    };
    (void)state;
    char *wgsl = with_loop("\n#pragma unroll\nfor (int i = 6; i >= 0; i -= 3)\n"
                           "_Pragma(\"unroll\") for (int j = 1; j < 3; ++j) s[i + j - 1] = p[10 * i + j];");
    assert_null(strstr(wgsl, "for ("));
    expect(wgsl, "s[6] = bitcast<f32>(buffer0[p + 61]);");
    expect(wgsl, "s[7] = bitcast<f32>(buffer0[p + 62]);");
    expect(wgsl, "s[0] = bitcast<f32>(buffer0[p + 1]);");
    assert_null(strstr(wgsl, "buffer0[p + 63]"));
    weft__free(NULL, wgsl);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        wgsl = with_loop(kept[i]);
        if (!strstr(wgsl, "for (; ")) fail_msg("unrolled: %s\n%s", kept[i], wgsl);
        weft__free(NULL, wgsl);
    }
    /* 64 bodies at most: the innermost loop stays */
    wgsl = with_loop(
        "_Pragma(\"unroll\") for (int i = 0; i < 32; i++) _Pragma(\"unroll\") for (int j = 0; j < 2; j++)"
        "_Pragma(\"unroll\") for (int n = 0; n < 2; n++) t += p[n];");
    expect(wgsl, "for (; n < 2; n = n + 1) {");
    assert_null(strstr(wgsl, "for (; j"));
    weft__free(NULL, wgsl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_texts),       cmocka_unit_test(test_bad_kernels),
        cmocka_unit_test(test_deep_texts),      cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_growing_texts),   cmocka_unit_test(test_damaged_texts),
        cmocka_unit_test(test_facts),           cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_special_numbers), cmocka_unit_test(test_clones),
        cmocka_unit_test(test_unrolled)};
    return cmocka_run_group_tests_name("wgsl", tests, NULL, NULL);
}
