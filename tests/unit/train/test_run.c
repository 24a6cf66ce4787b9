/* Trained models in C programs: weft_run_* gives what the command gives. The command trains small models and
 * predicts; the functions must give the same answers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/weft.h>

static char folder[64];
static weft_context *ctx;

static void shell(const char *format, const char *more) {
    char command[1024];
    const int n = snprintf(command, sizeof command, "cd %s && W=\"$WEFT_COMMAND\" && ", folder);
    snprintf(command + n, sizeof command - (size_t)n, format, more);
    if (system(command) != 0) fail_msg("failed: %s", command);
}

static const char *in(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int set_up(void **state) {
    (void)state;
    if (!getenv("WEFT_COMMAND")) return 0;
    strcpy(folder, "/tmp/weft-run-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    return weft_open(NULL, &ctx) != WEFT_OK;
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    weft_close(ctx);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return folder[0] ? system(command) : 0;
}

#define NEED_COMMAND()                                                                                       \
    do {                                                                                                     \
        if (!folder[0]) {                                                                                    \
            printf("skipped: WEFT_COMMAND is not set\n");                                                    \
            skip();                                                                                          \
        }                                                                                                    \
    } while (0)

/* Reads the numbers of a file that `weft predict --no-header` wrote. */
static int numbers(const char *name, double *out, int most) {
    FILE *file = fopen(in(name), "r");
    int n = 0;
    assert_non_null(file);
    while (n < most && fscanf(file, "%lf", &out[n]) == 1) n++;
    fclose(file);
    return n;
}

static void assert_near(const double *got, const double *wanted, int n, double tolerance) {
    for (int i = 0; i < n; i++)
        if (!(got[i] - wanted[i] <= tolerance && wanted[i] - got[i] <= tolerance))
            fail_msg("number %d: %.9g, wanted %.9g", i, got[i], wanted[i]);
}

struct text {
    char bytes[4096];
    size_t count;
};

static weft_status collect(void *user, const char *bytes, size_t count) {
    struct text *t = user;
    if (t->count + count >= sizeof t->bytes) return WEFT_ERR_BUSY;
    memcpy(t->bytes + t->count, bytes, count);
    t->count += count;
    t->bytes[t->count] = '\0';
    return WEFT_OK;
}

static void write_table(const char *name, const char *target) {
    FILE *file = fopen(in(name), "w");
    assert_non_null(file);
    fprintf(file, "a,b,%s\n", target);
    for (int i = 0; i < 60; i++) {
        if (strcmp(target, "kind") == 0)
            fprintf(file, "%d.5,%d,%s\n", i % 7, i % 5, i % 2 ? "odd" : i % 3 ? "even" : "third");
        else
            fprintf(file, "%d.5,%d,%d\n", i % 7, i % 5, 1000 + 30 * (i % 7) - 20 * (i % 5));
    }
    fclose(file);
}

static void test_classes(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    weft_predictions said;
    double wanted[9], answers[9];
    static const double rows[6] = {1.5, 2, 3.5, 4, 0.5, 1};
    write_table("table.csv", "kind");
    shell("$W train mlp --data table.csv --run classes --set train.epochs=3 --quiet >/dev/null 2>&1%s", "");
    shell("printf 'b,a\\n2,1.5\\n4,3.5\\n1,.5\\n' >new.csv; $W predict classes new.csv --no-header "
          "--probabilities "
          "| cut -f3- >said 2>/dev/null%s",
          "");
    assert_int_equal(numbers("said", wanted, 9), 9);
    assert_int_equal(weft_run_open(ctx, in("classes"), &run), WEFT_OK);
    assert_int_equal(weft_run_task_of(run), WEFT_RUN_CLASSES);
    assert_int_equal(weft_run_inputs(run), 2);
    assert_int_equal(weft_run_outputs(run), 3);
    assert_int_equal(weft_run_columns(run), 2);
    assert_string_equal(weft_run_column_name(run, 1), "b");
    assert_null(weft_run_column_name(run, 2));
    assert_null(weft_run_column_name(run, -1));
    assert_string_equal(weft_run_class_name(run, 0), "even"); /* classes are sorted by name */
    assert_null(weft_run_class_name(run, 3));
    assert_null(weft_run_tokenizer(run));
    assert_false(weft_module_is_training(weft_run_module(run)));
    assert_int_equal(weft_run_predict(run, rows, 3, answers), WEFT_OK);
    assert_near(answers, wanted, 9, 2e-6);
    /* a single row, as a program would ask */
    assert_int_equal(weft_run_predict(run, rows + 2, 1, answers), WEFT_OK);
    assert_near(answers, wanted + 3, 3, 2e-6);
    assert_int_equal(weft_run_predict(run, rows, 0, answers), WEFT_OK);
    static const char *const cells[] = {"1.5", "2", "3.5", "4"};
    assert_int_equal(weft_run_predict_cells(run, cells, 2, answers), WEFT_OK);
    assert_near(answers, wanted, 6, 2e-6);
    assert_int_equal(weft_run_predict_file(run, in("new.csv"), &said), WEFT_OK);
    assert_int_equal(said.count, 3);
    assert_int_equal(said.outputs, 3);
    assert_null(said.files);
    assert_near(said.values, wanted, 9, 2e-6);
    weft_predictions_free(&said);
    assert_null(said.values);
    /* what cannot be predicted */
    assert_int_equal(weft_run_predict(run, (double[]){NAN, 0}, 1, answers), WEFT_ERR_FORMAT);
    assert_int_equal(weft_run_predict_pixels(run, (uint8_t[]){1, 2}, 1, answers), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "weft_run_predict"));
    assert_int_equal(weft_run_predict_file(run, in("none.csv"), &said), WEFT_ERR_IO);
    assert_null(said.values);
    assert_int_equal(weft_run_predict(run, NULL, 1, answers), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_predict(run, rows, -1, answers), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_generate(run, NULL, collect, NULL), WEFT_ERR_ARGUMENT);
    weft_run_close(run);
}

/* Columns of words, dates and missing cells: only cells can be predicted from. */
static void test_mixed(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    weft_predictions said;
    double answers[6];
    FILE *file = fopen(in("mixed.csv"), "w");
    assert_non_null(file);
    fprintf(file, "Sex,Age,Since,Survived\n");
    for (int i = 0; i < 80; i++)
        fprintf(file, "%s,%s%d,20%02d-01-0%d,%s\n", i % 2 ? "male" : "female", i % 7 ? "" : "NA#",
                20 + i % 50, i % 30, 1 + i % 9, i % 2 ? "no" : "yes");
    fclose(file);
    shell("sed -i 's/NA#[0-9]*//' mixed.csv; $W train mlp --data mixed.csv --run mixed --set train.epochs=2 "
          "--quiet "
          ">/dev/null 2>&1%s",
          "");
    static const char *const cells[] = {"male",       "33",  "2011-01-05", "female",    "",
                                        "2012-02-03", "dog", "5",          "2001-01-01"};
    shell("printf 'Since,Age,Sex\n2011-01-05,33,male\n2012-02-03,,female\n2001-01-01,5,dog\n' >people.csv%s",
          "");
    assert_int_equal(weft_run_open(ctx, in("mixed"), &run), WEFT_OK);
    assert_int_equal(weft_run_columns(run), 3);
    assert_true(weft_run_inputs(run) > 3);
    assert_string_equal(weft_run_column_name(run, 2), "Since");
    assert_int_equal(weft_run_predict_cells(run, cells, 3, answers), WEFT_OK);
    assert_int_equal(weft_run_predict_file(run, in("people.csv"), &said), WEFT_OK);
    assert_int_equal(said.count, 3);
    assert_memory_equal(said.values, answers, sizeof answers);
    weft_predictions_free(&said);
    assert_int_equal(weft_run_predict(run, answers, 1, answers), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "weft_run_predict_cells"));
    assert_int_equal(weft_run_predict_cells(run, (const char *[]){"male", "old", "2011-01-05"}, 1, answers),
                     WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "Age"));
    assert_int_equal(weft_run_predict_cells(run, (const char *[]){"male", NULL, "2011-01-05"}, 1, answers),
                     WEFT_ERR_ARGUMENT);
    weft_run_close(run);
}

static void test_numbers(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    double wanted[2], answers[2];
    static const double rows[4] = {1.5, 2, 3.5, 4};
    write_table("line.csv", "price");
    shell("$W train linear --data line.csv --run numbers --set train.epochs=200 --quiet >/dev/null 2>&1%s",
          "");
    shell("printf 'a,b\\n1.5,2\\n3.5,4\\n' >two.csv; $W predict numbers two.csv --no-header >said%s", "");
    assert_int_equal(numbers("said", wanted, 2), 2);
    assert_int_equal(weft_run_open_checkpoint(ctx, in("numbers"), "last", &run), WEFT_OK);
    assert_int_equal(weft_run_task_of(run), WEFT_RUN_NUMBERS);
    assert_int_equal(weft_run_outputs(run), 1);
    assert_true(weft_run_step(run) > 0);
    assert_int_equal(weft_run_predict(run, rows, 2, answers), WEFT_OK);
    assert_near(answers, wanted, 2, 2e-3);
    assert_near(answers, (double[]){990, 1010}, 2, 40); /* in the units of the target */
    weft_run_close(run);
    assert_int_equal(weft_run_open_checkpoint(ctx, in("numbers"), "7x", &run), WEFT_ERR_ARGUMENT);
    assert_null(run);
    assert_int_equal(weft_run_open_checkpoint(ctx, in("numbers"), "123456", &run), WEFT_ERR_IO);
}

/* Rows and answers are doubles: floats cannot hold seconds since 1970. */
static void test_seconds(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    double answers[2];
    FILE *file = fopen(in("time.csv"), "w");
    assert_non_null(file);
    fprintf(file, "t,end\n");
    for (int i = 0; i < 100; i++) fprintf(file, "%d,%d\n", 1751822820 + i, 1751822820 + 3 * i);
    fclose(file);
    shell("$W train linear --data time.csv --run seconds --quiet >/dev/null 2>&1%s", "");
    assert_int_equal(weft_run_open(ctx, in("seconds"), &run), WEFT_OK);
    assert_int_equal(weft_run_predict(run, (double[]){1751822821, 1751822870}, 2, answers), WEFT_OK);
    assert_near(answers, (double[]){1751822823, 1751822970}, 2, 1e-2);
    weft_run_close(run);
}

/* An idx file of bytes: 12 images of 8 x 8 whose class is where they are bright. */
static void write_images(uint8_t *pixels) {
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 8},
                               labels[] = {0, 0, 8, 1, 0, 0, 0, 12};
    FILE *x = fopen(in("small-images-idx3-ubyte"), "wb"), *y = fopen(in("small-labels-idx1-ubyte"), "wb");
    assert_true(x && y);
    for (int i = 0; i < 12 * 64; i++)
        pixels[i] = (uint8_t)(i / 64 % 2 == (i % 64 >= 32) ? 200 + i % 50 : i % 37);
    fwrite(images, 1, sizeof images, x);
    fwrite(pixels, 1, 12 * 64, x);
    fwrite(labels, 1, sizeof labels, y);
    for (int i = 0; i < 12; i++) fputc(i % 2, y);
    fclose(x);
    fclose(y);
}

static void test_pixels(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    weft_predictions said;
    uint8_t pixels[12 * 64];
    double answers[24];
    write_images(pixels);
    shell("$W train cnn --data small-images-idx3-ubyte --run images --set train.steps=10 --set train.batch=4 "
          "--quiet >/dev/null 2>&1%s",
          "");
    assert_int_equal(weft_run_open(ctx, in("images"), &run), WEFT_OK);
    assert_int_equal(weft_run_inputs(run), 64);
    assert_int_equal(weft_run_predict_pixels(run, pixels, 12, answers), WEFT_OK);
    assert_int_equal(weft_run_predict_file(run, in("small-images-idx3-ubyte"), &said), WEFT_OK);
    assert_int_equal(said.count, 12);
    assert_memory_equal(answers, said.values, sizeof answers);
    weft_predictions_free(&said);
    for (int i = 0; i < 12; i++)
        assert_near((double[]){answers[2 * i] + answers[2 * i + 1]}, (double[]){1}, 1, 1e-5);
    assert_int_equal(weft_run_predict(run, answers, 1, answers), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "weft_run_predict_pixels"));
    weft_run_close(run);
}

static void test_text(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    struct text said = {0}, wanted = {0};
    char left_out[8];
    weft_generate_options options = {.prompt = "over \xc3\xa9 and",
                                     .tokens = 30,
                                     .temperature = 0.8,
                                     .seed = 3,
                                     .left_out = left_out,
                                     .left_out_bytes = sizeof left_out};
    shell("for i in $(seq 120); do echo \"the weft goes over and under, line $((i * 7919 %% 1000))\"; done "
          ">text.txt%s",
          "");
    shell("$W train lstm --data text.txt --run text --set train.steps=4 --set model.width=16 --quiet "
          ">/dev/null 2>&1%s",
          "");
    shell("$W generate text --prompt 'over \xc3\xa9 and' --tokens 30 --seed 3 >said 2>/dev/null%s", "");
    FILE *file = fopen(in("said"), "rb");
    assert_non_null(file);
    wanted.count = fread(wanted.bytes, 1, sizeof wanted.bytes - 1, file);
    fclose(file);
    assert_int_equal(weft_run_open(ctx, in("text"), &run), WEFT_OK);
    assert_int_equal(weft_run_task_of(run), WEFT_RUN_TEXT);
    assert_non_null(weft_run_tokenizer(run));
    assert_int_equal(weft_run_outputs(run), 0);
    assert_int_equal(weft_run_generate(run, &options, collect, &said), WEFT_OK);
    assert_string_equal(left_out, "\xc3\xa9");
    assert_int_equal(said.count + 1, wanted.count); /* the command ends its output with a new line */
    assert_memory_equal(said.bytes, wanted.bytes, said.count);
    /* a callback ends the generation with its own status */
    said.count = sizeof said.bytes - 3;
    assert_int_equal(weft_run_generate(run, &options, collect, &said), WEFT_ERR_BUSY);
    options.prompt = "\xc3\xa9";
    said.count = 0;
    assert_int_equal(weft_run_generate(run, &options, collect, &said), WEFT_ERR_INDEX);
    options.prompt = NULL;
    options.tokens = -1;
    assert_int_equal(weft_run_generate(run, &options, collect, &said), WEFT_ERR_ARGUMENT);
    options.tokens = 3;
    options.temperature = -1;
    assert_int_equal(weft_run_generate(run, &options, collect, &said), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_predict(run, (double[]){1}, 1, (double[]){0}), WEFT_ERR_ARGUMENT);
    weft_run_close(run);
}

static void test_no_run(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    shell("mkdir -p empty%s", "");
    assert_int_equal(weft_run_open(ctx, in("empty"), &run), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "not a run folder"));
    assert_null(run);
    assert_int_equal(weft_run_open(ctx, NULL, &run), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_open(ctx, "x", NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_open(NULL, "x", &run), WEFT_ERR_ARGUMENT);
    /* a damaged data.json */
    write_table("table.csv", "kind");
    shell("$W train mlp --data table.csv --run damaged --set train.epochs=1 --quiet >/dev/null 2>&1%s", "");
    shell("sed -i 's/even/evem/' damaged/data.json%s", "");
    assert_int_equal(weft_run_open(ctx, in("damaged"), &run), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "data.json"));
    /* the questions accept NULL */
    assert_int_equal(weft_run_inputs(NULL) + weft_run_outputs(NULL) + (int64_t)weft_run_step(NULL), 0);
    assert_null(weft_run_class_name(NULL, 0));
    assert_null(weft_run_module(NULL));
    weft_run_close(NULL);
    weft_predictions_free(NULL);
}

/* Pairs of texts: cells are texts, and numbers are refused. */
static void test_pairs(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run;
    weft_predictions said;
    double wanted[4], answers[4];
    static const char *const cells[4] = {"the weft", "the warp", "a loom goes under", "the loom"};
    if (system("python3 -c '' 2>/dev/null") != 0) skip();
    shell("python3 \"${WEFT_SOURCE_DIR:-$OLDPWD}/tests/train/make_published.py\" bert --encoder%s", "");
    shell("printf 'premise,hypothesis,label\\nthe weft,the warp,yes\\na loom goes under,the loom,no\\n' "
          ">pairs.csv%s",
          "");
    shell("$W train --data pairs.csv --set model.init=bert --set data.val_fraction=0 --set train.steps=3 "
          "--run pairs "
          "--quiet >/dev/null 2>&1%s",
          "");
    shell("$W predict pairs pairs.csv --no-header --probabilities 2>/dev/null | cut -f3- >said%s", "");
    assert_int_equal(numbers("said", wanted, 4), 4);
    assert_int_equal(weft_run_open(ctx, in("pairs"), &run), WEFT_OK);
    assert_int_equal(weft_run_task_of(run), WEFT_RUN_CLASSES);
    assert_int_equal(weft_run_columns(run), 2);
    assert_string_equal(weft_run_column_name(run, 1), "hypothesis");
    assert_null(weft_run_column_name(run, 2));
    assert_string_equal(weft_run_class_name(run, 0), "no");
    assert_int_equal(weft_run_predict_cells(run, cells, 2, answers), WEFT_OK);
    assert_near(answers, wanted, 4, 1e-5);
    assert_int_equal(weft_run_predict_file(run, in("pairs.csv"), &said), WEFT_OK);
    assert_int_equal(said.count, 2);
    assert_near(said.values, wanted, 4, 1e-5);
    weft_predictions_free(&said);
    assert_int_equal(weft_run_predict(run, wanted, 1, answers), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "the model learned from texts"));
    assert_int_equal(weft_run_predict_cells(run, (const char *const[]){"the weft", " "}, 1, answers),
                     WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "line 1, column \"hypothesis\": the text is empty"));
    weft_run_close(run);
}

/* A run with adapters names the model that they were trained for. The path is followed if it is known, or if
 * the program trusts the run. */
static void test_trust(void **state) {
    (void)state;
    NEED_COMMAND();
    weft_run *run = NULL;
    setenv("XDG_STATE_HOME", in("state"), 1);
    shell("python3 \"$WEFT_SOURCE_DIR/tests/train/make_published.py\" base && seq 400 >text.txt%s", "");
    shell("$W train gpt --data text.txt --set model.init=base --set lora.rank=2 --set train.steps=1 "
          "--set schedule.warmup=0 --run adapters --quiet%s",
          "");
    assert_int_equal(weft_run_open(ctx, in("adapters"), &run), WEFT_OK);
    weft_run_close(run);
    assert_int_equal(unlink(in("state/weft/paths")), 0);
    assert_int_equal(weft_run_open(ctx, in("adapters"), &run), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "a path outside the run folder that you have never given"));
    assert_null(run);
    assert_int_equal(weft_run_open_trusted(ctx, in("adapters"), NULL, &run), WEFT_OK);
    weft_run_close(run);
    assert_int_equal(weft_run_open(ctx, in("adapters"), &run), WEFT_OK);
    weft_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_mixed),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_seconds), cmocka_unit_test(test_pixels), cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_run),  cmocka_unit_test(test_pairs),  cmocka_unit_test(test_trust),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
