/* Races in global memory (race.c): kernels with a planted fault, which must be reported, and without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ptx/ptx.h"

static uint32_t memory[4096];

static bool range(void *user, uint64_t at, uint64_t *begin, uint64_t *end) {
    (void)user;
    *begin = (uint64_t)(uintptr_t)memory;
    *end = *begin + sizeof memory;
    return at >= *begin && at < *end;
}

/* Two blocks of 64 threads. %base: the memory; %mine: a word of each thread; %next: the word of thread + 32
 * of the same block, modulo 64. */
typedef struct planted {
    const char *sound, *faulty;
} planted;

static const planted list[] = {
    {"st.global.u32 [%mine], 1;", "st.global.u32 [%base], 1;"},
    {"ld.global.u32 %r, [%base];", "ld.global.u32 %r, [%base]; st.global.u32 [%base+4], 1;"},
    {"st.global.u32 [%mine], 1; bar.sync 0; ld.global.u32 %r, [%next];",
     "st.global.u32 [%mine], 1; ld.global.u32 %r, [%next];"},
    {"ld.global.u32 %r, [%next]; bar.sync 0; st.global.u32 [%mine], 1;",
     "ld.global.u32 %r, [%next]; st.global.u32 [%mine], 1;"},
    {"atom.global.add.u32 %r, [%base], 1; ld.global.u32 %r, [%base];",
     "atom.global.add.u32 %r, [%base], 1; st.global.u32 [%base], 1;"},
    {"ld.global.u32 %r, [%mine]; st.global.u32 [%mine], 1;",
     "ld.global.u32 %r, [%base]; st.global.u32 [%mine], 1;"},
};

static bool runs(const char *body, uint64_t seed, char *why, size_t why_bytes) {
    static char text[3000];
    uint64_t base = (uint64_t)(uintptr_t)memory;
    void *values[] = {&base};
    snprintf(text, sizeof text,
             ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0)\n{\n"
             ".reg .b32 %%r, %%block, %%tid, %%at; .reg .b64 %%base, %%mine, %%next;\n"
             "ld.param.u64 %%base, [k_0];\nmov.u32 %%block, %%ctaid.x;\nmov.u32 %%tid, %%tid.x;\n"
             "shl.b32 %%block, %%block, 6;\nadd.u32 %%at, %%block, %%tid;\nmul.wide.u32 %%mine, %%at, 4;\n"
             "add.s64 %%mine, %%mine, %%base;\nxor.b32 %%tid, %%tid, 32;\nadd.u32 %%at, %%block, %%tid;\n"
             "mul.wide.u32 %%next, %%at, 4;\nadd.s64 %%next, %%next, %%base;\n%s\nret;\n}\n",
             body);
    ptx_module *m = ptx_load(text, why, why_bytes);
    if (!m) fail_msg("%s", why);
    ptx_launch l = {.kernel = ptx_kernel(m, "k"),
                    .blocks = {2, 1, 1},
                    .threads = {64, 1, 1},
                    .values = values,
                    .seed = seed,
                    .races = true,
                    .memory = range};
    const bool good = ptx_run(&l);
    snprintf(why, why_bytes, "%s", l.why);
    ptx_free(m);
    return good;
}

static void test_races(void **state) {
    char why[1000];
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            if (!runs(list[i].sound, seed, why, sizeof why)) fail_msg("%s: %s", list[i].sound, why);
            assert_false(runs(list[i].faulty, seed, why, sizeof why));
            if (!strstr(why, "race: the byte at")) fail_msg("%s: %s", list[i].faulty, why);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_races)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
