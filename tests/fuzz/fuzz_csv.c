/* A byte of options, then any bytes as a csv file. */
#include "bounded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const columns[] = {"b", "a"}, *const classes[] = {"x", "y"};
    static const char delimiters[] = {0, ';', '\t', ' '};
    if (size == 0) return 0;
    weft_csv_options o = {.header = (weft_csv_header)(data[0] & 1), /* auto or yes */
                          .delimiter = delimiters[data[0] >> 1 & 3],
                          .target_column =
                              (int)(data[0] >> 3 & 3) - 2, /* none, the last two, and one that is wrong */
                          .target_type = (weft_csv_target)((data[0] >> 5 & 3) % 3)};
    if ((data[0] & 0x18) == 0x18) {
        o = (weft_csv_options){
            .columns = columns, .column_count = 2, .target = "y", .classes = classes, .class_count = 2};
    }
    o.allow_nonfinite = data[0] >> 7;
    o.text = (data[0] >> 5 & 3) == 3;
    o.patterns = o.text;
    o.decimal = o.text && size > 1 && data[1] & 1 ? ',' : 0;
    bounded b;
    weft_context ctx = bounded_context(&b, 64 * size + 65536);
    weft_table t;
    weft_status status = weft__parse_csv(&ctx, data + 1, size - 1, "input", &o, &t);
    if (status == WEFT_OK) {
        if (!o.text) bounded_walk(&t.features);
        if (t.target.data) bounded_walk(&t.target);
        if (!o.text && (size_t)t.features.shape[1] != t.column_count) abort();
        for (size_t i = 0; o.text && i < t.rows * t.column_count; i++) (void)strlen(t.cells[i]);
        for (size_t i = 0; i < t.column_count; i++) (void)strlen(t.columns[i]);
        for (int64_t i = 0; t.class_count > 0 && i < t.target.shape[0]; i++) {
            int32_t id = ((int32_t *)t.target.data)[i];
            if (id < 0 || (size_t)id >= t.class_count) abort();
        }
    }
    weft_table_free(&ctx, &t);
    bounded_check(&b, &ctx, status);
    return 0;
}
