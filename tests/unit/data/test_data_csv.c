/* src/data/csv.c: headers, columns, targets and classes; every kind of malformed file, with its position in
 * the message; the data sets of the tabular folder. */
#include <math.h>

#include "data/csv.h"
#include "data_util.h"

static weft_status parse(const char *text, const weft_csv_options *o, weft_table *out) {
    return weft__parse_csv(NULL, text, strlen(text), "f.csv", o, out);
}

static float feature(const weft_table *t, int64_t row, int64_t column) {
    return ((float *)t->features.data)[row * t->features.shape[1] + column];
}

static void test_plain(void **state) {
    (void)state;
    weft_table t;
    const weft_csv_options o = {.target = "y"};
    assert_int_equal(parse("a,b,y\n1,2,3\n-4.5,.5,1e3\r\n\n", &o, &t), WEFT_OK);
    assert_int_equal(t.features.dtype, WEFT_F32);
    assert_int_equal(t.features.rank, 2);
    assert_int_equal(t.features.shape[0], 2);
    assert_int_equal(t.features.shape[1], 2);
    assert_true(feature(&t, 1, 0) == -4.5f && feature(&t, 1, 1) == 0.5f);
    assert_int_equal(t.target.dtype, WEFT_F32);
    assert_true(((float *)t.target.data)[1] == 1000.0f);
    assert_int_equal(t.column_count, 2);
    assert_string_equal(t.columns[0], "a");
    assert_string_equal(t.columns[1], "b");
    assert_string_equal(t.target_name, "y");
    assert_int_equal(t.class_count, 0);
    assert_null(t.unused);
    weft_table_free(NULL, &t);
    assert_null(t.columns);
}

/* Seconds since 1970 differ in f64 only. */
static void test_wide_numbers(void **state) {
    (void)state;
    weft_table t;
    const weft_csv_options o = {.target = "y", .f64 = true};
    assert_int_equal(parse("t,y\n1751822820,9007199254740991\n1751822821,-.1\n", &o, &t), WEFT_OK);
    assert_true(t.features.dtype == WEFT_F64 && t.target.dtype == WEFT_F64);
    assert_true(((double *)t.features.data)[1] - ((double *)t.features.data)[0] == 1);
    assert_true(((double *)t.target.data)[0] == 9007199254740991. && ((double *)t.target.data)[1] == -.1);
    weft_table_free(NULL, &t);
    expect_message(parse("t,y\n1,2\n1e39,3\n", &o, &t), WEFT_ERR_FORMAT, "line 3 (row 2), column 1",
                   "too large for f32", NULL);
}

static void test_header(void **state) {
    (void)state;
    weft_table t;
    assert_int_equal(parse("1,2\n3,4\n", NULL, &t), WEFT_OK); /* numbers only: no header */
    assert_int_equal(t.features.shape[0], 2);
    assert_string_equal(t.columns[1], "2");
    assert_null(t.target.data);
    assert_null(t.target_name);
    weft_table_free(NULL, &t);
    weft_csv_options o = {.header = WEFT_CSV_HEADER_YES};
    assert_int_equal(parse("1,2\n3,4\n", &o, &t), WEFT_OK); /* a header of numbers, if the option says so */
    assert_int_equal(t.features.shape[0], 1);
    weft_table_free(NULL, &t);
    assert_int_equal(parse(",a\n0,4\n", NULL, &t), WEFT_OK); /* the first name may be missing: an index */
    assert_string_equal(t.columns[0], "");
    assert_int_equal(t.features.shape[0], 1);
    weft_table_free(NULL, &t);
    expect_message(parse("a,\n1,2\n", NULL, &t), WEFT_ERR_FORMAT, "line 1 (row 1), column 1", "header", NULL);
    o = (weft_csv_options){.target_column = -1};
    assert_int_equal(parse("5.1,3.5,setosa\n7.0,3.2,versicolor\n", &o, &t), WEFT_OK); /* numbers: no header */
    assert_int_equal(t.features.shape[0], 2);
    assert_int_equal(t.class_count, 2);
    weft_table_free(NULL, &t);
    o = (weft_csv_options){.header = WEFT_CSV_HEADER_NO};
    expect_message(parse("a,b\n3,4\n", &o, &t), WEFT_ERR_FORMAT, "line 1 (row 1), column 1", "header", NULL);
    assert_int_equal(parse("\xef\xbb\xbf\"a\"\n3", NULL, &t), WEFT_OK); /* byte order mark, no newline */
    assert_string_equal(t.columns[0], "a");
    weft_table_free(NULL, &t);
}

static void finds_header(const char *text, bool header, bool guessed) {
    weft_table t;
    const weft_csv_options o = {.text = true};
    assert_int_equal(parse(text, &o, &t), WEFT_OK);
    if (t.header != header || t.header_guessed != guessed) fail_msg("header %d: %s", t.header, text);
    weft_table_free(NULL, &t);
}

/* A first row with numbers is a header if it counts the columns, or is unlike the rows below it. */
static void test_numbers_as_names(void **state) {
    (void)state;
    finds_header("0,1,2\n3,5,1\n4,1,0\n", true, true); /* as pandas writes it */
    finds_header(",0,1\n0,5,1\n1,1,0\n", true, true);
    finds_header("0,1\na text,pos\nanother,neg\n", true, true);
    finds_header("1,2,3\n3,.5,7\n4,1,8\n", true, true);
    finds_header("2019,2020,2021\n3,5,1\n4,1,0\n", true, true);
    finds_header("id,2019,2020,y\n1,5,0,1\n2,1,0,0\n", true, true);
    finds_header("a,b\n1,2\n", true, false);
    finds_header("0,1,2\n", false, false);               /* nothing to compare it with */
    finds_header("0,1,2\n3,4,5\n6,7,8\n", false, false); /* a matrix that counts on */
    finds_header("0,1,2\n2,0,1\n0,1,2\n", false, false); /* a row that is there again */
    finds_header("0,1\n1,1\n1,0\n", false, false);       /* a truth table */
    finds_header("1,2,3\n0,5,1\n2,1,4\n", false, false);
    finds_header("0,1,2.5\n3,4,1\n", false, false);
    finds_header("100,200,300\n99,199,299\n98,198,298\n", false, false); /* sorted downwards */
    finds_header("n/a,3,5\n1,4,7\n2,2,4\n", false, false);               /* a word among numbers */
    finds_header("5,3,setosa\n7,2,virginica\n", false, false);
    finds_header("id,2019,\n1,5,0\n2,1,0\n", false, false);
}

static void test_columns(void **state) {
    (void)state;
    weft_table t;
    const char *const names[] = {"c", "a"};
    const char *text = "a,b,c,d\n1,text,3,\n4,,6,x\n"; /* unused columns may hold anything */
    weft_csv_options o = {.columns = names, .column_count = 2};
    assert_int_equal(parse(text, &o, &t), WEFT_OK);
    assert_true(feature(&t, 0, 0) == 3 && feature(&t, 0, 1) == 1 && feature(&t, 1, 0) == 6 &&
                feature(&t, 1, 1) == 4);
    assert_string_equal(t.columns[0], "c");
    assert_int_equal(t.unused_count, 2);
    assert_string_equal(t.unused[0], "b");
    assert_string_equal(t.unused[1], "d");
    weft_table_free(NULL, &t);
    assert_null(t.unused);
    o.target = "a";
    expect_message(parse(text, &o, &t), WEFT_ERR_ARGUMENT, "\"a\" is asked for twice (it is the target)",
                   NULL);
    o.target = "e";
    expect_message(parse(text, &o, &t), WEFT_ERR_FORMAT, "no column named \"e\"",
                   "\"a\", \"b\", \"c\", \"d\"", NULL);
    o.target = NULL;
    o.target_column = 5;
    expect_message(parse(text, &o, &t), WEFT_ERR_ARGUMENT, "target column 5", "4 columns", NULL);
    o.target_column = -5;
    expect_message(parse(text, &o, &t), WEFT_ERR_ARGUMENT, "target column -5", NULL);
    const char *const twice[] = {"b", "b"};
    o = (weft_csv_options){.columns = twice, .column_count = 2};
    expect_message(parse(text, &o, &t), WEFT_ERR_ARGUMENT, "asked for twice", NULL);
    o = (weft_csv_options){.target = "a"};
    expect_message(parse("a,b,a\n1,2,3\n", &o, &t), WEFT_ERR_FORMAT, "columns 1 and 3 are both named \"a\"",
                   NULL);
    expect_message(parse("a\n1\n", &o, &t), WEFT_ERR_ARGUMENT, "no feature columns", NULL);
    const char *const by_number[] = {"3"};
    o = (weft_csv_options){.columns = by_number, .column_count = 1, .target = "1"};
    assert_int_equal(parse("1,x,3\n4,x,6\n", &o, &t), WEFT_OK);
    assert_true(feature(&t, 1, 0) == 6 && ((float *)t.target.data)[1] == 4);
    weft_table_free(NULL, &t);
}

static void check_patterns(const char *first, const char *second, const char *wanted) {
    weft_table t;
    char names[64] = "";
    const char *const columns[] = {first, second};
    const weft_csv_options o = {
        .columns = columns, .column_count = second ? 2 : 1, .patterns = true, .target = "y"};
    assert_int_equal(parse("a1,a2,b,-b,y\n1,2,3,4,5\n", &o, &t), WEFT_OK);
    for (size_t i = 0; i < t.column_count; i++) {
        strcat(names, t.columns[i]);
        strcat(names, " ");
    }
    assert_string_equal(names, wanted);
    weft_table_free(NULL, &t);
}

static void test_patterns(void **state) {
    (void)state;
    check_patterns("a*", NULL, "a1 a2 ");
    check_patterns("b", "a?", "b a1 a2 ");
    check_patterns("*", "-a*", "b -b ");
    check_patterns("-a*", NULL, "b -b "); /* nothing is chosen: all others are */
    check_patterns("-b", NULL, "-b ");    /* the name of a column is not what to leave out */
    check_patterns("*2", "-?1", "a2 ");
    weft_table t;
    const char *names[] = {"c*"};
    weft_csv_options o = {.columns = names, .column_count = 1, .patterns = true};
    expect_message(parse("a,b\n1,2\n", &o, &t), WEFT_ERR_FORMAT, "no column named \"c*\"", "\"a\", \"b\"",
                   NULL);
    names[0] = "-c";
    expect_message(parse("a,b\n1,2\n", &o, &t), WEFT_ERR_FORMAT, "no column named \"c\"", NULL);
    names[0] = "-*";
    expect_message(parse("a,b\n1,2\n", &o, &t), WEFT_ERR_ARGUMENT, "no feature columns", NULL);
    names[0] = "a*";
    o.patterns = false;
    expect_message(parse("a,b\n1,2\n", &o, &t), WEFT_ERR_FORMAT, "no column named \"a*\"", NULL);
}

static void test_text(void **state) {
    (void)state;
    weft_table t;
    const weft_csv_options o = {.text = true, .target = "y"};
    assert_int_equal(parse(",y,b\n0,1,\"x, \"\"y\"\"\nz\"\n ,2,\n", &o, &t), WEFT_OK);
    assert_int_equal(t.rows, 2);
    assert_int_equal(t.column_count, 2);
    assert_string_equal(t.columns[0], "");
    const char *const cells[] = {"0", "x, \"y\"\nz", "", ""};
    for (int i = 0; i < 4; i++) assert_string_equal(t.cells[i], cells[i]);
    assert_int_equal(t.lines[0], 2);
    assert_int_equal(t.lines[1], 4);
    assert_null(t.features.data);
    assert_true(((float *)t.target.data)[1] == 2);
    weft_table_free(NULL, &t);
    expect_message(weft__parse_csv(NULL, "a,y\nb\0c,1\n", 10, "f.csv", &o, &t), WEFT_ERR_FORMAT,
                   "line 2 (row 1), column 1 (\"a\")", "NUL", NULL);
    expect_message(parse("a,y\nb,1\nc\n", &o, &t), WEFT_ERR_FORMAT, "1 cell, expected 2", NULL);
}

static void test_weights(void **state) {
    (void)state;
    weft_table t;
    weft_csv_options o = {.weight = "w", .target = "y"};
    for (int text = 0; text < 2; text++) {
        o.text = text;
        assert_int_equal(parse("a,w,y\n1,2,3\n4,0.5,6\n", &o, &t), WEFT_OK);
        assert_int_equal(t.column_count, 1);
        assert_int_equal(t.unused_count, 0);
        assert_true(((float *)t.weights.data)[0] == 2 && ((float *)t.weights.data)[1] == 0.5f);
        weft_table_free(NULL, &t);
        assert_null(t.weights.data);
        static const char *const bad[] = {"0", "-1", "", "x", "nan", "1e50"};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char table[64];
            snprintf(table, sizeof table, "a,w,y\n1,2,3\n4,%s,6\n", bad[i]);
            expect_message(parse(table, &o, &t), WEFT_ERR_FORMAT, "line 3 (row 2), column 2 (\"w\")", NULL);
        }
    }
    o.target = "w";
    expect_message(parse("a,w,y\n1,2,3\n", &o, &t), WEFT_ERR_ARGUMENT, "target cannot be", NULL);
    o.weight = "v";
    expect_message(parse("a,w,y\n1,2,3\n", &o, &t), WEFT_ERR_FORMAT, "no column named \"v\"", NULL);
    const char *const columns[] = {"a"};
    o = (weft_csv_options){.weight = "a", .columns = columns, .column_count = 1};
    expect_message(parse("a,w,y\n1,2,3\n", &o, &t), WEFT_ERR_ARGUMENT, "it holds the weights", NULL);
}

static void test_decimal_commas(void **state) {
    (void)state;
    weft_table t;
    weft_csv_options o = {.decimal = ',', .target = "y"};
    assert_int_equal(parse("a;y\n1,5;-2\n,25;1,5e3\n", &o, &t), WEFT_OK);
    assert_true(feature(&t, 0, 0) == 1.5f && feature(&t, 1, 0) == 0.25f);
    assert_true(((float *)t.target.data)[1] == 1500);
    weft_table_free(NULL, &t);
    expect_message(parse("a;y\n1.5;2\n", &o, &t), WEFT_ERR_FORMAT, "a decimal comma", "\"1.5\"", NULL);
    expect_message(parse("a;y\n1,5,0;2\n", &o, &t), WEFT_ERR_FORMAT, "expected a number, found \"1,5,0\"",
                   NULL);
    o = (weft_csv_options){.decimal = ','};
    assert_int_equal(parse("1,5;2,5\n2,5;3\n", &o, &t), WEFT_OK); /* numbers: no header */
    assert_int_equal(t.features.shape[0], 2);
    weft_table_free(NULL, &t);
    o.decimal = 0;
    expect_message(parse("a;b\n1,5;2\n", &o, &t), WEFT_ERR_FORMAT, "set decimal to comma", NULL);
    o.decimal = ';';
    expect_message(parse("a;b\n1,5;2\n", &o, &t), WEFT_ERR_ARGUMENT, "a point or a comma", NULL);
}

static void finds_delimiter(const char *text, char wanted) {
    assert_int_equal(weft__csv_delimiter(text, strlen(text)), wanted);
}

static void test_the_delimiter_is_found(void **state) {
    (void)state;
    finds_delimiter("a,b\n1,2\n", ',');
    finds_delimiter("a;b\n1,5;2,5\n", ';');
    finds_delimiter("size (m2, net);price\n1;2\n", ';');
    finds_delimiter("a\tb c\n1\t2\n", '\t');
    finds_delimiter("a|b\n1|2\n", '|');
    finds_delimiter("\"a;b;c\",d\n\"1;2;\n3\",4\n", ',');
    finds_delimiter("a\n1\n", ',');
    finds_delimiter("", ',');
    finds_delimiter("name;note\nx;one, two, three\ny;four, five, six\n\n", ';');
    weft_table t;
    assert_int_equal(parse("a;b\n1;2\n", NULL, &t), WEFT_OK);
    assert_int_equal(t.column_count, 2);
    weft_table_free(NULL, &t);
}

static void test_delimiter_and_quotes(void **state) {
    (void)state;
    weft_table t;
    weft_csv_options o = {.delimiter = ';', .target = "the \"y\"; it"};
    assert_int_equal(parse("a;\"the \"\"y\"\"; it\"\n\"1\"; two\n2;\"two\nlines\"\n", &o, &t), WEFT_OK);
    assert_int_equal(t.class_count, 2);
    assert_string_equal(t.classes[0], "two");
    assert_string_equal(t.classes[1], "two\nlines");
    weft_table_free(NULL, &t);
    o = (weft_csv_options){.delimiter = '\t'};
    assert_int_equal(parse("a\tb\n1\t2\n", &o, &t), WEFT_OK);
    assert_true(feature(&t, 0, 1) == 2);
    weft_table_free(NULL, &t);
    o.delimiter = '"';
    expect_message(parse("a\n1\n", &o, &t), WEFT_ERR_ARGUMENT, "delimiter", NULL);
}

static void test_classes(void **state) {
    (void)state;
    weft_table t;
    weft_csv_options o = {.target = "y"};
    const char *text = "x,y\n1,pear\n2,apple\n3,fig\n4,apple\n";
    assert_int_equal(parse(text, &o, &t), WEFT_OK);
    assert_int_equal(t.target.dtype, WEFT_I32);
    const int32_t want[] = {2, 0, 1, 0};
    assert_memory_equal(t.target.data, want, sizeof want);
    assert_int_equal(t.class_count, 3);
    assert_string_equal(t.classes[0], "apple");
    assert_string_equal(t.classes[2], "pear");
    weft_table_free(NULL, &t);
    const char *const given[] = {"pear", "fig", "apple", "plum"};
    o.classes = given;
    o.class_count = 4;
    assert_int_equal(parse(text, &o, &t), WEFT_OK);
    const int32_t by_given[] = {0, 2, 1, 2};
    assert_memory_equal(t.target.data, by_given, sizeof by_given);
    assert_int_equal(t.class_count, 4);
    assert_string_equal(t.classes[3], "plum");
    weft_table_free(NULL, &t);
    o.class_count = 2;
    expect_message(parse(text, &o, &t), WEFT_ERR_FORMAT, "line 3 (row 2), column 2 (\"y\")",
                   "not one of the given", "\"apple\"", NULL);
    const char *const repeated[] = {"pear", "pear"};
    o.classes = repeated;
    expect_message(parse(text, &o, &t), WEFT_ERR_ARGUMENT, "class 1", NULL);
    o = (weft_csv_options){.target = "y", .target_type = WEFT_CSV_TARGET_CLASS};
    assert_int_equal(parse("x,y\n1,2\n1,0\n1,7\n", &o, &t), WEFT_OK); /* integers are class ids */
    const int32_t ids[] = {2, 0, 7};
    assert_memory_equal(t.target.data, ids, sizeof ids);
    assert_int_equal(t.class_count, 8);
    assert_null(t.classes);
    weft_table_free(NULL, &t);
    assert_int_equal(parse("x,y\n1,1\n1,-1\n", &o, &t), WEFT_OK); /* -1 cannot be an id, so both are names */
    const int32_t signs[] = {1, 0};
    assert_memory_equal(t.target.data, signs, sizeof signs);
    assert_string_equal(t.classes[0], "-1");
    weft_table_free(NULL, &t);
    o.target_type = WEFT_CSV_TARGET_NUMBER;
    expect_message(parse(text, &o, &t), WEFT_ERR_FORMAT, "line 2 (row 1), column 2 (\"y\")", "\"pear\"",
                   NULL);
}

static bool is_na(const void *words, const char *cell) { return strcmp(words, cell) == 0; }

/* A word for a missing target is no class, unless it is a given one. */
static void test_missing_targets(void **state) {
    (void)state;
    weft_table t;
    const char *const given[] = {"NA", "yes"};
    weft_csv_options o = {.target = "y", .missing = is_na, .missing_words = "NA"};
    const char *text = "x,y\nNA,1\n1,yes\n2,NA\n";
    o.text = true;
    o.target_type = WEFT_CSV_TARGET_CLASS;
    expect_message(parse(text, &o, &t), WEFT_ERR_FORMAT, "line 4 (row 3), column 2 (\"y\")", "missing",
                   "\"NA\"", NULL);
    o.missing_words = "-999";
    assert_int_equal(parse(text, &o, &t), WEFT_OK);
    weft_table_free(NULL, &t);
    o.target_type = WEFT_CSV_TARGET_NUMBER;
    expect_message(parse("x,y\n1,2\n1,-999\n", &o, &t), WEFT_ERR_FORMAT, "line 3 (row 2), column 2 (\"y\")",
                   "missing", NULL);
    o = (weft_csv_options){
        .target = "y", .missing = is_na, .missing_words = "NA", .classes = given, .class_count = 2};
    assert_int_equal(parse("x,y\n1,yes\n2,NA\n", &o, &t), WEFT_OK);
    weft_table_free(NULL, &t);
}

static void test_too_many_classes(void **state) {
    (void)state;
    size_t size = 0, rows = WEFT__LABELS_MAX + 1;
    char *text = malloc(rows * 16 + 16);
    size += (size_t)sprintf(text, "x,y\n");
    for (size_t i = 0; i < rows; i++) size += (size_t)sprintf(text + size, "1,n%zu\n", i * 7919 % rows);
    weft_table t;
    const weft_csv_options o = {.target = "y"};
    expect_message(weft__parse_csv(NULL, text, size, "f.csv", &o, &t), WEFT_ERR_FORMAT, "line 65538",
                   "65,536 distinct", NULL);
    free(text);
}

static void refuse(const char *text, const char *place, const char *word) {
    weft_table t;
    expect_message(parse(text, NULL, &t), WEFT_ERR_FORMAT, "f.csv: ", place, word, NULL);
    assert_null(t.features.data);
}

static void test_malformed(void **state) {
    (void)state;
    refuse("a,b\n1,2\n3,\n", "line 3 (row 2), column 2 (\"b\")", "missing");
    refuse("a,b\n1,2\n\"\",4\n", "line 3 (row 2), column 1 (\"a\")", "missing");
    refuse("a,b\n1,x\n", "line 2 (row 1), column 2 (\"b\")", "expected a number, found \"x\"");
    refuse("a,b\n1,2\n1,0x10\n", "line 3 (row 2), column 2 (\"b\")", "found \"0x10\"");
    refuse("a,b\n1,nan\n", "column 2", "finite");
    refuse("a,b\n1,-inf\n", "column 2", "finite");
    refuse("a,b\n1,1e39\n", "column 2", "too large for f32");
    refuse("a,b\n1,2\n3\n", "line 3 (row 2)", "1 cell, expected 2");
    refuse("a,b\n1,2\n3\n", "first missing is column 2 (\"b\")", "");
    refuse("a,b\n1,2\n3,4,5\n", "line 3 (row 2)", "3 cells, expected 2");
    refuse("a,b\n1,2\n\n3,4\n", "line 3 is blank", "expected a row");
    refuse("a,b\n1,2\n3,\"4\n", "line 3", "never closed");
    refuse("a,b\n1,2\n3,4\"\n", "line 3, byte 4", "quote in the wrong place");
    refuse("a,b\n1,2\n3,\"4\"5\n", "line 3, byte 6", "quote in the wrong place");
    refuse("a,b\n", "line 1", "without a row");
    refuse("", "f.csv: the file is empty", "");
    refuse("\xff\xfe"
           "a\n",
           "byte 0", "UTF-16");
    refuse("a,b\n1,2\n3,\xc3\n", "line 3, byte 3 of the line: 0xc3", "iconv -f WINDOWS-1252");
    refuse("l\xe4nge,b\n1,2\n", "line 1, byte 2 of the line: 0xe4", "UTF-8");
    weft_table t;
    expect_message(weft__parse_csv(NULL, "a\0b\n1\n", 6, "f.csv", NULL, &t), WEFT_ERR_FORMAT, "line 1", "NUL",
                   NULL);
    expect_message(weft__parse_csv(NULL, "a\n1\0002\n", 6, "f.csv", NULL, &t), WEFT_ERR_FORMAT, "line 2",
                   "\"1\\u00002\"", NULL);
}

static void test_nonfinite(void **state) {
    (void)state;
    weft_table t;
    const weft_csv_options o = {.allow_nonfinite = true};
    assert_int_equal(parse("a,b\nnan,-inf\n", &o, &t), WEFT_OK);
    assert_true(isnan(feature(&t, 0, 0)) && feature(&t, 0, 1) == -INFINITY);
    weft_table_free(NULL, &t);
}

/* Reading stops after a megabyte if a quote is never closed. */
static void test_long_row(void **state) {
    (void)state;
    size_t size = 3 << 20;
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, "a\n1\n\"2", 6);
    for (size_t i = 100; i < size; i += 100) text[i] = '\n';
    weft_table t;
    expect_message(weft__parse_csv(NULL, text, size, "f.csv", NULL, &t), WEFT_ERR_FORMAT, "line 3", "1048576",
                   NULL);
    free(text);
}

static weft_status parse_classes(weft_context *ctx) {
    weft_table t;
    const weft_csv_options o = {.target_column = -1};
    const char *text = "a,b\n1,x\n2,y\n3,x\n4,x\n5,x\n6,x\n7,x\n8,x\n9,x\n";
    weft_status status = weft__parse_csv(ctx, text, strlen(text), "f.csv", &o, &t);
    weft_table_free(ctx, &t);
    return status;
}

static weft_status parse_text(weft_context *ctx) {
    weft_table t;
    const char *const columns[] = {"*", "-c"};
    const weft_csv_options o = {.text = true, .columns = columns, .column_count = 2, .patterns = true};
    const char *text = "a,b,c\n1,x,\n2,y,z\n3,x,\n4,x,\n5,x,\n6,x,\n7,x,\n8,x,\n9,x,\n";
    weft_status status = weft__parse_csv(ctx, text, strlen(text), "f.csv", &o, &t);
    weft_table_free(ctx, &t);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    torture(parse_classes);
    torture(parse_text);
}

static void check_table(const char *name, const weft_csv_options *o, int64_t rows, int64_t columns,
                        weft_table *t) {
    char path[512];
    assert_int_equal(weft_read_csv(NULL, real_file(path, name), o, t), WEFT_OK);
    assert_int_equal(t->features.shape[0], rows);
    assert_int_equal(t->features.shape[1], columns);
}

static void test_real_tables(void **state) {
    (void)state;
    weft_table t;
    weft_csv_options o = {.target = "species", .target_type = WEFT_CSV_TARGET_CLASS};
    check_table("tabular/iris.csv", &o, 150, 4, &t);
    assert_int_equal(t.class_count, 3);
    assert_true(feature(&t, 0, 0) == 5.1f);
    assert_int_equal(((int32_t *)t.target.data)[149], 2);
    weft_table_free(NULL, &t);
    o = (weft_csv_options){.target = "progression"};
    check_table("tabular/diabetes.csv", &o, 442, 10, &t);
    assert_true(((float *)t.target.data)[0] == 151.0f);
    weft_table_free(NULL, &t);
    o = (weft_csv_options){.target_column = -1, .target_type = WEFT_CSV_TARGET_CLASS};
    check_table("tabular/digits.csv", &o, 1797, 64, &t);
    assert_int_equal(t.class_count, 10);
    weft_table_free(NULL, &t);
    check_table("tabular/breast_cancer.csv", &o, 569, 30, &t);
    assert_int_equal(t.class_count, 2);
    weft_table_free(NULL, &t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                       cmocka_unit_test(test_wide_numbers),
                                       cmocka_unit_test(test_numbers_as_names),
                                       cmocka_unit_test(test_missing_targets),
                                       cmocka_unit_test(test_header),
                                       cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_delimiter_and_quotes),
                                       cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_decimal_commas),
                                       cmocka_unit_test(test_the_delimiter_is_found),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_too_many_classes),
                                       cmocka_unit_test(test_malformed),
                                       cmocka_unit_test(test_nonfinite),
                                       cmocka_unit_test(test_long_row),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_real_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
