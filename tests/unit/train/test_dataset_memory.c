/* Memory runs out while training data is read, at every allocation. Reading must fail, or read everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "train/dataset/dataset.h"

static weft__config config;

/* Reads the table of the configuration, which has so many inputs and a target "kind" of cats and dogs, or of
 * 7 and 9. */
static weft_status read_pets(weft_context *ctx, int64_t inputs) {
    weft__dataset dataset;
    weft_status status = weft__dataset_read(ctx, &config, NULL, &dataset);
    if (status == WEFT_OK &&
        (dataset.features != inputs || !dataset.table.inputs || !dataset.table.target ||
         strcmp(dataset.table.target, "kind") != 0 || !dataset.classes ||
         (strcmp(dataset.classes[1], "dog") != 0 && strcmp(dataset.classes[1], "9") != 0)))
        status = WEFT_ERR_INTERNAL;
    weft__dataset_free(ctx, &dataset);
    return status;
}

static weft_status read_numbers(weft_context *ctx) { return read_pets(ctx, 2); }
static weft_status read_mixed(weft_context *ctx) { return read_pets(ctx, 1 + 2 + 3 + 1 + 10); }

static void check_memory(const char *text, weft_status (*read)(weft_context *ctx)) {
    char path[8192 + 16];
    FILE *f = fopen(in_scratch("pets.csv"), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    snprintf(path, sizeof path, "data.path=%s", in_scratch("pets.csv"));
    const char *const settings[] = {"task=classification",
                                    "data.source=csv",
                                    path,
                                    "data.val_fraction=0.5",
                                    "model.type=mlp",
                                    "train.steps=1",
                                    "data.max_levels=2",
                                    "data.kinds=id=none,size=s<m"};
    weft__config_init(&config);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strncmp(settings[i], "data.kinds", 10) != 0 || strstr(text, "id,"))
            assert_int_equal(weft__config_set(&config, settings[i]), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_in_range(fail_each_allocation(read), 20, 100000);
    weft__config_free(&config);
}

/* The name of the target column, with which later files are read, must not be lost. */
static void test_a_table_is_read_whole_or_not_at_all(void **state) {
    (void)state;
    check_memory("height,weight,kind\n1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n", read_numbers);
}

/* The rows below a header of numbers are looked at, and numbers are the names of classes. */
static void test_numbers_that_are_names_too(void **state) {
    (void)state;
    check_memory("height,2019,kind\n1,2,9\n3,4,7\n5,6,9\n7,8,7\n", read_numbers);
}

/* So is a table with missing cells, a category with more values than levels, a boolean and dates: size,
 * height and whether it is missing, two levels and one for others, 0 or 1, the parts of a date. */
static void test_a_mixed_table_too(void **state) {
    (void)state;
    check_memory("id,size,height,colour,tame,born,kind\n"
                 "a,s,1,red,yes,2020-01-31,cat\nb,m,,green,no,2021-12-01,dog\nc,s,5,blue,no,2020-02-29,cat\n"
                 "d,m,,,yes,2019-07-01,dog\ne,s,3,red,yes,2020-01-31,cat\nf,m,,green,no,2021-12-01,dog\n"
                 "g,s,5,blue,no,2020-02-29,cat\nh,m,,,yes,2019-07-01,dog\n",
                 read_mixed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_table_is_read_whole_or_not_at_all),
                                       cmocka_unit_test(test_numbers_that_are_names_too),
                                       cmocka_unit_test(test_a_mixed_table_too)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
