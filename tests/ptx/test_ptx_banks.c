/* The counts of bank conflicts (banks.c): a warp accesses shared memory once, and the test knows how long it
 * waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "ptx/ptx.h"

/* An access at a + %at, of a warp. */
typedef struct access {
    const char *place, *instruction;
    int accesses, conflicts;
} access_case;

static const access_case cases[] = {
    {"shl.b32 %at, %tid, 2;", "st.shared.u32 [%at], %tid;", 1, 0},  /* neighbours */
    {"shl.b32 %at, %tid, 3;", "st.shared.u32 [%at], %tid;", 1, 1},  /* every other word */
    {"shl.b32 %at, %tid, 7;", "st.shared.u32 [%at], %tid;", 1, 31}, /* one bank */
    {"mov.u32 %at, 0;", "st.shared.u32 [%at], 7;", 1, 0},           /* one word */
    {"shl.b32 %at, %tid, 3;", "st.shared.v2.u32 [%at], {%tid, %tid};", 2, 0},
    {"shl.b32 %at, %tid, 4;", "st.shared.v4.u32 [%at], {%tid, %tid, %tid, %tid};", 4, 0},
    {"shl.b32 %at, %tid, 5;", "st.shared.v4.u32 [%at], {%tid, %tid, %tid, %tid};", 4, 4},
    {"shl.b32 %at, %tid, 2;", "@%few st.shared.u32 [%at], %tid;", 1, 0},
    {"shl.b32 %at, %tid, 2;", "", 0, 0},
};

static void run(const access_case *c, const char *file) {
    char text[2000], why[500];
    snprintf(text, sizeof text,
             ".version 9.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry k()\n{\n.shared .align 16 .b8 a[4096];\n"
             ".reg .pred %%few; .reg .b32 %%tid, %%at, %%a;\nmov.u32 %%tid, %%tid.x;\nsetp.lt.u32 %%few, "
             "%%tid, 7;\n"
             "%s\nmov.u32 %%a, a;\nadd.s32 %%at, %%at, %%a;\n%s\nret;\n}\n",
             c->place, c->instruction);
    ptx_module *m = ptx_load(text, why, sizeof why);
    if (!m) fail_msg("%s", why);
    ptx_launch l = {.kernel = ptx_kernel(m, "k"), .blocks = {1, 1, 1}, .threads = {32, 1, 1}, .banks = file};
    if (!ptx_run(&l)) fail_msg("%s", l.why);
    ptx_free(m);
}

static void test_banks(void **state) {
    char file[] = "/tmp/weft-banks-XXXXXX";
    (void)state;
    const int made = mkstemp(file);
    assert_true(made >= 0);
    close(made);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int accesses = 0, conflicts = 0;
        run(&cases[i], file);
        FILE *from = fopen(file, "r");
        assert_non_null(from);
        const int read = fscanf(from, "k %d %d", &accesses, &conflicts);
        fclose(from);
        assert_int_equal(read == 2, cases[i].accesses > 0);
        assert_int_equal(accesses, cases[i].accesses);
        assert_int_equal(conflicts, cases[i].conflicts);
        assert_int_equal(truncate(file, 0), 0);
    }
    unlink(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_banks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
