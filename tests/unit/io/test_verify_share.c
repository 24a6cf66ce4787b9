/* How processes divide the arrays that they verify: each array belongs to exactly one process, and no process
 * has many more bytes than the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/manifest.h"

static void test_shares(void **state) {
    (void)state;
    uint64_t bytes[60], seed = 1;
    for (int trial = 0; trial < 200; trial++) {
        const size_t count = (size_t)(trial % 60) + 1;
        uint64_t total = 0, largest = 0;
        for (size_t i = 0; i < count; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[i] = (seed >> 33) % (trial % 3 == 0 ? 4 : i % 7 == 3 ? 1000000 : 3000);
            total += bytes[i];
            if (bytes[i] > largest) largest = bytes[i];
        }
        for (uint64_t size = 1; size <= 9; size++) {
            int owners[60] = {0};
            for (uint64_t rank = 0; rank < size; rank++) {
                /* the sizes of files, which have headers, too */
                weft__verify_share share = {
                    .rank = rank, .size = size, .total = total + (uint64_t)trial % 2 * 100};
                uint64_t own = 0;
                for (size_t i = 0; i < count; i++) {
                    const bool takes = weft__verify_takes(&share, bytes[i]);
                    owners[i] += takes;
                    own += takes ? bytes[i] : 0;
                }
                assert_true(own <= share.total / size + 1 + largest);
            }
            for (size_t i = 0; i < count; i++) assert_int_equal(owners[i], 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares)};
    return cmocka_run_group_tests_name("verify_share", tests, NULL, NULL);
}
