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

static weft_status read_table(weft_context *ctx) {
    weft__dataset dataset;
    weft_status status = weft__dataset_read(ctx, &config, NULL, &dataset);
    if (status == WEFT_OK &&
        (dataset.features != 2 || !dataset.columns || !dataset.target ||
         strcmp(dataset.target, "kind") != 0 || !dataset.classes || strcmp(dataset.classes[1], "dog") != 0))
        status = WEFT_ERR_INTERNAL;
    weft__dataset_free(ctx, &dataset);
    return status;
}

/* The name of the target column, with which later files are read, must not be lost. */
static void test_a_table_is_read_whole_or_not_at_all(void **state) {
    (void)state;
    static const char text[] = "height,weight,kind\n1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n";
    char path[8192 + 16];
    FILE *f = fopen(in_scratch("pets.csv"), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    snprintf(path, sizeof path, "data.path=%s", in_scratch("pets.csv"));
    const char *const settings[] = {"task=classification",   "data.source=csv", path,
                                    "data.val_fraction=0.5", "model.type=mlp",  "train.steps=1"};
    weft__config_init(&config);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_int_equal(weft__config_set(&config, settings[i]), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_in_range(fail_each_allocation(read_table), 20, 100000);
    weft__config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_table_is_read_whole_or_not_at_all)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
