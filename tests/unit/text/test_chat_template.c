/* Chat templates. chat_cases.json has the texts that the Python package transformers makes of templates and
 * variables (tests/text/chat_cases.py writes it); Weft must make the same. Then: errors with line and column,
 * folders of models, the ranges of answers, limits, short memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <time.h>

#include <weft/chat.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static weft_chat_template *parse(const char *source) {
    weft_chat_template *t = NULL;
    if (weft_chat_template_new(NULL, source, strlen(source), "t", &t) != WEFT_OK)
        fail_msg("%s: %s", source, weft_last_error(NULL));
    return t;
}

/* ---- the texts of transformers ---- */

/* Runs a template with and without a generation prompt. A text of null is an error. */
static void check_run(const weft_chat_template *t, const json_t *run, int64_t now) {
    char *variables = json_dumps(json_object_get(run, "variables"), 0);
    const char *name = json_string_value(json_object_get(run, "name"));
    assert_non_null(variables);
    for (size_t prompt = 0; prompt < 2; prompt++) {
        const weft_chat_options options = {.add_generation_prompt = prompt == 1, .time = now};
        const json_t *expected = json_array_get(json_object_get(run, "texts"), prompt);
        weft_chat_text text;
        const weft_status status =
            weft_chat_template_render(t, variables, strlen(variables), &options, &text);
        if (json_is_null(expected)) {
            if (status == WEFT_OK) fail_msg("%s: no error, but '%s'", name, text.text);
            if (!strstr(weft_last_error(NULL), "line ")) fail_msg("%s: %s", name, weft_last_error(NULL));
            continue;
        }
        if (status != WEFT_OK) fail_msg("%s: %s", name, weft_last_error(NULL));
        if (text.bytes != json_string_length(expected) ||
            memcmp(text.text, json_string_value(expected), text.bytes) != 0)
            fail_msg("%s:\n'%s'\nexpected:\n'%s'", name, text.text, json_string_value(expected));
        weft_chat_text_free(&text);
    }
    free(variables);
}

static void test_cases(void **state) {
    (void)state;
    char path[4096];
    json_error_t error;
    assert_int_equal(setenv("TZ", "JST-9", 1), 0); /* enters no text */
    tzset();
    snprintf(path, sizeof path, "%s/tests/unit/text/chat_cases.json", getenv("WEFT_SOURCE_DIR"));
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    const json_t *templates = json_object_get(root, "templates");
    const int64_t now = json_integer_value(json_object_get(root, "time"));
    assert_true(json_array_size(templates) >= 60);
    for (size_t i = 0; i < json_array_size(templates); i++) {
        const json_t *entry = json_array_get(templates, i), *runs = json_object_get(entry, "runs");
        const json_t *source = json_object_get(entry, "template");
        weft_chat_template *t = NULL;
        const weft_status status =
            weft_chat_template_new(NULL, json_string_value(source), json_string_length(source), "t", &t);
        for (size_t j = 0; status == WEFT_OK && j < json_array_size(runs); j++)
            check_run(t, json_array_get(runs, j), now);
        if (status != WEFT_OK &&
            !json_is_null(json_array_get(json_object_get(json_array_get(runs, 0), "texts"), 0)))
            fail_msg("%s: %s", json_string_value(source), weft_last_error(NULL));
        weft_chat_template_free(t);
    }
    json_decref(root);
}

/* ---- errors ---- */

static const struct {
    const char *source;
    weft_status status;
    const char *message;
} bad[] = {
    {"a\n  {% include 'x' %}", WEFT_ERR_UNSUPPORTED,
     "line 2, column 6: the tag 'include' is not supported. Supported are: if, for"},
    {"{% foo %}", WEFT_ERR_UNSUPPORTED, "line 1, column 4: the tag 'foo' is not known"},
    {"{{ x | groupby('a') }}", WEFT_ERR_UNSUPPORTED,
     "column 8: the filter 'groupby' is not supported. Supported are: capitalize"},
    {"{{ x | foo }}", WEFT_ERR_UNSUPPORTED, "the filter 'foo' is not known"},
    {"{{ x is foo }}", WEFT_ERR_UNSUPPORTED, "the test 'foo' is not known. Supported are: !="},
    {"{{ f(*a) }}", WEFT_ERR_UNSUPPORTED, "column 6: arguments with * and **"},
    {"{% for x in y recursive %}{% endfor %}", WEFT_ERR_UNSUPPORTED, "recursive loops"},
    {"{{ '\\N{DASH}' }}", WEFT_ERR_UNSUPPORTED, "the escape \\N"},
    {"{{ 99999999999999999999 }}", WEFT_ERR_UNSUPPORTED, "more than 64 bits"},
    {"é{{ 1 + }}", WEFT_ERR_FORMAT, "line 1, column 9: expected an expression, found }}"},
    {"{{ a b }}", WEFT_ERR_FORMAT, "expected '}}', found 'b'"},
    {"{{ a", WEFT_ERR_FORMAT, "line 1, column 1: the tag has no end '}}'"},
    {"{{ 'a", WEFT_ERR_FORMAT, "column 4: a string that does not end"},
    {"{{ ) }}", WEFT_ERR_FORMAT, "')' closes nothing"},
    {"{{ a ? b }}", WEFT_ERR_FORMAT, "'?' is no operator"},
    {"x {# y", WEFT_ERR_FORMAT, "column 3: the comment has no end"},
    {"{% if a %}\nb", WEFT_ERR_FORMAT, "line 1, column 4: expected '{% endif %}'"},
    {"{% if a %}{% endfor %}", WEFT_ERR_FORMAT, "the tag 'endfor' has no tag before it that it ends"},
    {"{% break %}", WEFT_ERR_FORMAT, "break and continue belong into a loop"},
    {"{% set 1 = 2 %}", WEFT_ERR_FORMAT, "expected the name of a variable, found a number"},
    {"{{ '\\ud83d' }}", WEFT_ERR_FORMAT, "no character"},
    {"{{ [1, 2 }}", WEFT_ERR_FORMAT, "expected ']', found '}'"},
    {"\xff", WEFT_ERR_FORMAT, "line 1, column 1: the template is not UTF-8"},
};

static void test_bad_templates(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        weft_chat_template *t = NULL;
        const weft_status status =
            weft_chat_template_new(NULL, bad[i].source, strlen(bad[i].source), "t", &t);
        if (status != bad[i].status || !strstr(weft_last_error(NULL), bad[i].message) || t)
            fail_msg("%s: %s, '%s'", bad[i].source, weft_status_name(status), weft_last_error(NULL));
    }
}

static const struct {
    const char *source, *conversation;
    weft_status status;
    const char *message;
} bad_runs[] = {
    {"x\n{{ a.b }}", "[]", WEFT_ERR_FORMAT, "line 2, column 6: 'a' is undefined"},
    {"{{ raise_exception('no ' ~ 1) }}", "[]", WEFT_ERR_ARGUMENT, "refuses the conversation: no 1"},
    {"{{ messages.append(1) }}", "[]", WEFT_ERR_FORMAT, "the method 'append' would change a value"},
    {"{{ 'a'.encode() }}", "[]", WEFT_ERR_UNSUPPORTED,
     "the method 'encode' of a string is not supported. Supported are: capitalize"},
    {"{{ [1].strip() }}", "[]", WEFT_ERR_FORMAT, "a list has no method 'strip'"},
    {"{{ lipsum() }}", "[]", WEFT_ERR_UNSUPPORTED, "the function 'lipsum' is not supported"},
    {"{{ foo(1) }}", "[]", WEFT_ERR_FORMAT, "'foo' is undefined"},
    {"{{ 'a' % 1 }}", "[]", WEFT_ERR_UNSUPPORTED, "formatting a string by %"},
    {"{{ strftime_now('%Q') }}", "[]", WEFT_ERR_UNSUPPORTED, "strftime_now supports %Y"},
    {"{{ 9223372036854775807 + 1 }}", "[]", WEFT_ERR_UNSUPPORTED, "more than 64 bits"},
    {"{{ [1] | map('foo') }}", "[]", WEFT_ERR_UNSUPPORTED, "'foo' is not supported here"},
    {"{{ 'a' | trim(x=1) }}", "[]", WEFT_ERR_UNSUPPORTED, "no free argument 'x'. Its arguments are: chars"},
    {"{{ range(1000000) }}", "[]", WEFT_ERR_UNSUPPORTED, "a range of more than 100000"},
    {"{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}", "[]",
     WEFT_ERR_UNSUPPORTED, "the template takes more than"},
    {"{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "[]",
     WEFT_ERR_UNSUPPORTED, "memory"},
    {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "[]", WEFT_ERR_UNSUPPORTED, "levels"},
    {"{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
     "[]", WEFT_ERR_UNSUPPORTED, "levels"},
    {"", "[", WEFT_ERR_FORMAT, "conversation: line 1"},
    {"", "{\"a\": 1}", WEFT_ERR_FORMAT, "an object with a list 'messages'"},
    {"", "[1]", WEFT_ERR_FORMAT, "message 0 must be an object"},
};

static void test_bad_runs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad_runs); i++) {
        weft_chat_template *t = parse(bad_runs[i].source);
        weft_chat_text text;
        const weft_status status = weft_chat_template_render(t, bad_runs[i].conversation,
                                                             strlen(bad_runs[i].conversation), NULL, &text);
        if (status != bad_runs[i].status || !strstr(weft_last_error(NULL), bad_runs[i].message) || text.text)
            fail_msg("%s: %s, '%s'", bad_runs[i].source, weft_status_name(status), weft_last_error(NULL));
        weft_chat_template_free(t);
    }
}

/* ---- answers ---- */

#define CHATML                                                                                               \
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"                                   \
    "{% if add_generation_prompt %}<assistant>{% endif %}"
#define TALK                                                                                                 \
    "[{\"role\": \"user\", \"content\": \"u\"}, {\"role\": \"assistant\", \"content\": \"\\u00e9\"}, "       \
    "{\"role\": \"user\", \"content\": \"v\"}, {\"role\": \"assistant\", \"content\": \"b\"}]"

static void assert_answers(const char *source, const char *first, const char *second) {
    weft_chat_template *t = parse(source);
    weft_chat_text text;
    if (weft_chat_template_answers(t, TALK, strlen(TALK), NULL, &text) != WEFT_OK)
        fail_msg("%s: %s", source, weft_last_error(NULL));
    const char *const expected[] = {first, second};
    assert_int_equal(text.answer_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(text.answers[i].end - text.answers[i].begin, strlen(expected[i]));
        assert_memory_equal(text.text + text.answers[i].begin, expected[i], strlen(expected[i]));
    }
    weft_chat_text_free(&text);
    weft_chat_template_free(t);
}

static void test_answers(void **state) {
    (void)state;
    assert_answers(CHATML, "\xc3\xa9</s>", "b</s>");
    assert_answers(
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}[{% generation %}"
        "{{ m.content }}{% endgeneration %}]{% endif %}{% endfor %}",
        "\xc3\xa9", "b");
    static const char *const refused[] = {
        /* earlier answers change; the prompt is no begin of an answer; a macro holds the block */
        "{% for m in messages %}{{ m.content if loop.last else '' }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ '?' if add_generation_prompt }}",
        "{% macro f(x) %}{% generation %}{{ x }}{% endgeneration %}{% endmacro %}{{ f(1) }}",
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        weft_chat_template *t = parse(refused[i]);
        weft_chat_text text;
        assert_int_equal(weft_chat_template_answers(t, TALK, strlen(TALK), NULL, &text),
                         WEFT_ERR_UNSUPPORTED);
        assert_null(text.answers);
        weft_chat_template_free(t);
    }
}

/* ---- folders ---- */

static void save_text(const char *name, const char *text) {
    assert_true(spill(in_scratch(name), text, strlen(text)));
}

static void assert_loaded(const char *expected) {
    weft_chat_template *t = NULL;
    weft_chat_text text;
    if (weft_chat_template_load(NULL, scratch, &t) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    assert_int_equal(weft_chat_template_render(t, "[]", 2, NULL, &text), WEFT_OK);
    assert_string_equal(text.text, expected);
    weft_chat_text_free(&text);
    weft_chat_template_free(t);
}

static void assert_refused(weft_status status, const char *message) {
    weft_chat_template *t = NULL;
    assert_int_equal(weft_chat_template_load(NULL, scratch, &t), status);
    if (!strstr(weft_last_error(NULL), message)) fail_msg("'%s'", weft_last_error(NULL));
    assert_null(t);
}

static void test_folders(void **state) {
    (void)state;
    assert_refused(WEFT_ERR_IO, "no chat template");
    save_text("tokenizer_config.json", "{\"bos_token\": \"<s>\"}");
    assert_refused(WEFT_ERR_IO, "no chat template");
    save_text("tokenizer_config.json",
              "{\"model_max_length\": 1000000000000000019884624838656, \"bos_token\": \"<s>\", "
              "\"eos_token\": {\"content\": \"</s>\"}, "
              "\"pad_token\": null, \"add_bos_token\": true, "
              "\"chat_template\": \"{{ bos_token ~ eos_token ~ unk_token ~ pad_token }}\"}");
    save_text("special_tokens_map.json",
              "{\"bos_token\": \"other\", \"unk_token\": {\"content\": \"<unk>\"}}");
    assert_loaded("<s></s><unk>");
    save_text("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"no\"}, "
                                       "{\"name\": \"default\", \"template\": \"yes {{ bos_token }}\"}]}");
    assert_loaded("yes other");
    save_text("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"no\"}]}");
    assert_refused(WEFT_ERR_FORMAT, "the name 'default'");
    save_text("tokenizer_config.json", "{\"chat_template\": \"a\\n{% foo %}\"}");
    assert_refused(WEFT_ERR_UNSUPPORTED, "tokenizer_config.json: chat_template: line 2, column 4");
    save_text("chat_template.jinja", "file {{ bos_token }}\n");
    assert_loaded("file other");
    save_text("tokenizer_config.json", "{");
    assert_refused(WEFT_ERR_FORMAT, "tokenizer_config.json: line 1");
    static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "chat_template.jinja"};
    for (size_t i = 0; i < COUNT(names); i++) (void)unlink(in_scratch(names[i]));
}

static void test_set(void **state) {
    (void)state;
    weft_chat_template *t = parse("{{ eos_token }}{{ messages | length }}\r\n");
    weft_chat_text text;
    size_t bytes = 0;
    assert_int_equal(weft_chat_template_set(t, "eos_token", "<a>"), WEFT_OK);
    assert_int_equal(weft_chat_template_set(t, "eos_token", "<b>"), WEFT_OK);
    assert_int_equal(weft_chat_template_render(t, "[]", 2, NULL, &text), WEFT_OK);
    assert_string_equal(text.text, "<b>0");
    assert_string_equal(weft_chat_template_source(t, &bytes), "{{ eos_token }}{{ messages | length }}");
    assert_int_equal(bytes, 38);
    weft_chat_text_free(&text);
    weft_chat_template_free(t);
}

/* ---- short memory ---- */

static weft_status use(weft_context *ctx) {
    static const char source[] = "{% set ns = namespace(a=[]) %}{% macro f(x, y='z') %}{{ x ~ y }}{% "
                                 "endmacro %}{% for m in messages %}"
                                 "{% set ns.a = ns.a + [m.content | upper] %}{{ f(m.role) }}{% endfor %}{{ "
                                 "ns.a | sort | tojson }}" CHATML;
    weft_chat_template *t = NULL;
    weft_chat_text text;
    WEFT_TRY(weft_chat_template_new(ctx, source, sizeof source - 1, "t", &t));
    weft_status status = weft_chat_template_set(t, "bos_token", "<s>");
    if (status == WEFT_OK) status = weft_chat_template_render(t, TALK, strlen(TALK), NULL, &text);
    if (status == WEFT_OK) weft_chat_text_free(&text);
    weft_chat_template_free(t);
    if (status != WEFT_OK) return status;
    WEFT_TRY(weft_chat_template_new(ctx, CHATML, sizeof CHATML - 1, "t", &t));
    status = weft_chat_template_answers(t, TALK, strlen(TALK), NULL, &text);
    if (status == WEFT_OK) weft_chat_text_free(&text);
    weft_chat_template_free(t);
    return status;
}

static void test_short_memory(void **state) {
    (void)state;
    const int calls = fail_each_allocation(use);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_bad_templates),
        cmocka_unit_test(test_bad_runs),     cmocka_unit_test(test_answers),
        cmocka_unit_test(test_folders),      cmocka_unit_test(test_set),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
