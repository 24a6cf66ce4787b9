/* Grammars of JSON schemas, byte by byte: which texts they accept, which schemas are refused and how, and
 * random schemas whose texts an independent checker must find valid. */
#include <weft/grammar.h>

#include "text/grammar/automaton.h"
#include "unit/failing_alloc.h"
#include "unit/text/schemas.h"

static weft_grammar *grammar_of(const char *schema) {
    weft_grammar *g = NULL;
    if (weft_grammar_json_schema(NULL, schema, strlen(schema), "test", &g) != WEFT_OK)
        fail_msg("%s: %s", schema, weft_last_error(NULL));
    return g;
}

static size_t tidy_every = 2; /* bytes */

/* Follows a text. Returns how many bytes were accepted; *complete: whether they are a whole value. */
static size_t follow(const weft_grammar *g, const char *text, size_t bytes, bool *complete) {
    static weft__stacks stacks[2];
    weft__automaton a;
    size_t i = 0;
    weft__automaton_begin(&a, NULL, g, &stacks[0]);
    while (i < bytes &&
           weft__automaton_step(&a, &stacks[i % 2], (unsigned char)text[i], &stacks[(i + 1) % 2])) {
        i++;
        if (i % tidy_every == 0) weft__automaton_tidy(&a, &stacks[i % 2]);
    }
    *complete = i == bytes && weft__automaton_complete(&a, &stacks[i % 2]);
    assert_false(a.failed);
    weft__automaton_end(&a);
    return i;
}

/* ---- tables ---- */

/* Texts that a schema accepts (+), accepts as the begin of a value (~), and refuses at their last byte (-).
 */
static const struct {
    const char *schema, *texts[24];
} table[] = {
    {"{}", {"+1",   "+-1.5e-3", "+\"x\"", "+null",  "+[]",      "+{}",   "+[1, {\"a\": [true,null]}]",
            "~[1,", "~-",       "~[1, ",  "-[1,  ", "- ",       "-\n",   "-[ ",
            "-1 ",  "-01",      "-+",     "-nul1",  "-{\"a\" ", "-[1,]", "-{}{",
            "-[,"}},
    {"{\"type\": \"string\"}",
     {"+\"\"",
      "+\"\\u00e9\\n\\\"\\/\"",
      "+\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
      "+\"\\ud83d\\ude00\"",
      "~\"\\ud83d",
      "~\"\xf0\x9f",
      "-\"\n",
      "-\"\x1f",
      "-\"\\x",
      "-\"\\u00g",
      "-\"\\u0000",
      "-\"\\udc",
      "-\"\\ud83d\"",
      "-\"\\ud83d\\n",
      "-\"\\ud83d\\u0",
      "-\"\\ud83d\\ud8",
      "-\"\x80",
      "-\"\xc0",
      "-\"\xe0\x80",
      "-\"\xed\xa0",
      "-\"\xf4\x90",
      "-\"\xc3\"",
      "-1",
      "-\"\"\""}},
    {"{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
     {"+\"ab\"", "+\"\xc3\xa9\xf0\x9f\x98\x80\"", "+\"\\ud83d\\ude00\\n\"", "+\"abc\"", "-\"a\"", "-\"abcd",
      "-\"abc\\"}},
    {"{\"type\": \"integer\"}",
     {"+0", "+-5", "+123456789012345", "-1234567890123456", "-1.", "-1e", "-00", "-01", "-+", "--0", "~-"}},
    {"{\"type\": \"integer\", \"minimum\": -5, \"maximum\": 120}",
     {"+-5", "+-1", "+0", "+7", "+12", "+99", "+100", "+120", "~-", "-121", "-13 ", "-130", "--0", "--6",
      "--10", "-999", "-1200"}},
    {"{\"exclusiveMinimum\": 99, \"exclusiveMaximum\": 1001, \"type\": [\"integer\", \"null\"]}",
     {"+100", "+1000", "+999", "+null", "~99", "~1", "-0", "--", "-99 ", "-1001", "-1 "}},
    {"{\"type\": \"integer\", \"maximum\": -1}", {"+-1", "+-99", "-0", "-1"}},
    {"{\"type\": \"integer\", \"maximum\": 0}", {"+-1", "+0", "-1"}},
    {"{\"type\": \"integer\", \"minimum\": 999999999999999}", {"+999999999999999", "-8", "-98"}},
    {"{\"type\": \"number\"}",
     {"+0", "+-0.5", "+1.5e10", "+0e5", "+1E+07", "~1.", "~1e", "~-0", "-.", "-1.e", "-1e100", "--0e", "-1..",
      "-1e5.", "+1.123456789012345", "-1.1234567890123456"}},
    {"{\"type\": [\"integer\", \"null\", \"boolean\"]}",
     {"+7", "+null", "+true", "+false", "-\"", "-{", "-t1"}},
    {"{\"enum\": [\"a\", \"ab\", 1, 12, 0.1, {\"x\": [1, 2]}, \"a\"]}",
     {"+\"a\"", "+\"ab\"", "+1", "+12", "+0.1", "+{\"x\": [1, 2]}", "~\"a", "-\"b", "-123", "-\"ac",
      "+{\"x\":[1,2]}", "-{\"x\":[1, "}},
    {"{\"const\": 0.30000000000000004}", {"+0.30000000000000004", "~0.3"}},
    {"{\"type\": \"string\", \"enum\": [\"a\", 1, null]}", {"+\"a\"", "-1", "-n"}},
    {"{\"type\": \"array\", \"items\": {\"type\": \"boolean\"}, \"minItems\": 1, \"maxItems\": 2}",
     {"+[true]", "+[true,false]", "+[true, false]", "-[]", "-[true,false,", "-[1", "-[true,,"}},
    {"{\"type\": \"array\", \"maxItems\": 0}", {"+[]", "-[1"}},
    {"{\"items\": {\"const\": 1}}", {"+[1,1,1,1,1,1]", "+[]", "-{"}},
    {"{\"properties\": {\"a\": {\"type\": \"null\"}, \"ab\": {\"type\": \"null\"}, \"c\": {\"type\": "
     "\"null\"}}, \"required\": "
     "[\"ab\"]}",
     {"+{\"ab\": null}", "+{\"a\":null,\"ab\":null,\"c\":null}", "+{\"ab\":null, \"c\": null}", "-{}",
      "-{\"c", "-{\"a\":null}", "-{\"ab\":null,\"a", "-{\"ab\":null,\"c\":null,", "-{\"x", "-{\"ab\":null,}",
      "-{\"ab\": null, }"}},
    {"{\"type\": \"object\", \"additionalProperties\": {\"type\": \"integer\"}, \"properties\": {\"a\": "
     "{\"type\": \"null\"}}}",
     {"+{}", "+{\"a\":null,\"b\":1}", "+{\"b\":1,\"a\":null}", "+{\"aa\":1,\"\":2}", "+{\"\xc3\xa9\":1}",
      "-{\"a\":1", "-{\"b\":n", "-{\"b\":1,\"b\"", "-{\"\\", "-{\"a\":null,\"a\"", "-{\"\x80",
      "-{\"b\":12345,\"cc\":-1,\"b\"", "-{\"b\":1,\"a\":null,\"b\""}},
    {"{\"type\": \"object\", \"additionalProperties\": false}", {"+{}", "-{\""}},
    {"{\"type\": \"object\", \"required\": [\"q\\\"\", \"b\"]}",
     {"+{\"q\\\"\": 1, \"b\": []}", "-{\"q\\\"\": 1}", "-{\"b\"",
      "+{\"x\":1,\"q\\\"\": 1,\"y\":1, \"b\": []}"}},
    {"{\"anyOf\": [{\"type\": \"integer\"}, {\"properties\": {\"k\": {\"const\": 1}}, \"required\": "
     "[\"k\"]}, {\"properties\": "
     "{\"k\": {\"const\": 2}, \"m\": true}, \"required\": [\"k\"]}]}",
     {"+5", "+{\"k\": 1}", "+{\"k\":2,\"m\":[]}", "-{\"k\":1,", "-{\"k\":3", "-["}},
    {"{\"$ref\": \"#/$defs/tree\", \"$defs\": {\"tree\": {\"type\": \"array\", \"items\": {\"$ref\": "
     "\"#/$defs/tree\"}}}}",
     {"+[]", "+[[],[[]]]", "-[1", "-{"}},
    {"{\"properties\": {\"next\": {\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}}, \"required\": "
     "[\"next\"]}",
     {"+{\"next\": {\"next\": null}}", "-{}", "-{\"next\": {}"}},
    {"{\"properties\": {\"a/b\": {\"$ref\": \"#/properties/c~0d\"}, \"c~d\": {\"$ref\": "
     "\"#/definitions/e%20f/anyOf/1\"}}, "
     "\"definitions\": {\"e f\": {\"anyOf\": [true, {\"const\": \"yes\"}]}}}",
     {"+{\"a/b\":\"yes\",\"c~d\":\"yes\"}", "-{\"a/b\": 1"}},
    {"{\"anyOf\": [false, {\"allOf\": [{\"const\": 1, \"title\": \"t\"}]}]}", {"+1", "-2"}},
    {"{\"properties\": {\"no\": false, \"yes\": {\"const\": 1}}}", {"+{\"yes\":1}", "-{\"n"}},
};

static void check_text(const weft_grammar *g, const char *schema, const char *text) {
    const size_t bytes = strlen(text + 1);
    for (tidy_every = 1; tidy_every < 9; tidy_every++) {
        bool complete;
        const size_t taken = follow(g, text + 1, bytes, &complete);
        const bool good =
            text[0] == '-' ? taken + 1 == bytes : taken == bytes && complete == (text[0] == '+');
        if (!good) fail_msg("%s: '%s': %zu of %zu bytes, complete: %d", schema, text, taken, bytes, complete);
    }
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        weft_grammar *g = grammar_of(table[i].schema);
        for (size_t k = 0; k < COUNT(table[i].texts) && table[i].texts[k]; k++)
            check_text(g, table[i].schema, table[i].texts[k]);
        weft_grammar_free(g);
    }
    weft_grammar *all;
    assert_ok(weft_grammar_json(NULL, &all));
    check_text(all, "JSON", "+{\"a\": [1, \"x\", {}]}");
    check_text(all, "JSON", "+[]");
    check_text(all, "JSON", "-1");
    check_text(all, "JSON", "-\"");
    weft_grammar_free(all);
}

/* 64 levels of brackets are the most, also where the schema needs some of them for what it requires. */
static void test_depth(void **state) {
    (void)state;
    static const char needy[] =
        "{\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/x\"}, \"$defs\": {\"x\": {\"anyOf\": "
        "[{\"$ref\": \"#\"}, {\"type\": \"object\", \"properties\": {\"k\": {\"items\": {\"const\": 1}, "
        "\"minItems\": 1}}, \"required\": [\"k\"]}]}}}";
    char text[256];
    bool complete;
    weft_grammar *g = grammar_of("{}");
    memset(text, '[', 200);
    assert_int_equal(follow(g, text, 200, &complete), WEFT__GRAMMAR_DEPTH);
    weft_grammar_free(g);
    g = grammar_of(needy);
    assert_int_equal(follow(g, text, 200, &complete), WEFT__GRAMMAR_DEPTH);
    strcpy(text + 62, "{\"k\":[1]}");
    assert_int_equal(follow(g, text, strlen(text), &complete), strlen(text));
    g = (weft_grammar_free(g),
         grammar_of("{\"items\": {\"anyOf\": [{\"$ref\": \"#\"}, {\"const\": [[1], 2]}, {\"const\": 5}]}}"));
    memset(text, '[', 62);
    strcpy(text + 62, "[[1], 2]"); /* the constant needs two levels */
    assert_int_equal(follow(g, text, strlen(text), &complete), strlen(text));
    memset(text, '[', 63);
    strcpy(text + 63, "[[1]");
    assert_int_equal(follow(g, text, strlen(text), &complete), 64);
    strcpy(text + 63, "5]");
    assert_int_equal(follow(g, text, strlen(text), &complete), 65);
    weft_grammar_free(g);
    g = grammar_of(needy);
    memset(text, '[', 63);
    strcpy(text + 63, "{");
    assert_int_equal(follow(g, text, 64, &complete), 63); /* the object would need two levels */
    weft_grammar_free(g);
}

/* ---- what is refused ---- */

static const struct {
    const char *schema, *words[3]; /* of the message */
} refused[] = {
    {"{\"type\": \"string\", \"pattern\": \"a+\"}", {"#:", "'pattern'", "maxLength"}},
    {"{\"type\": \"string\", \"format\": \"date\"}", {"'format'"}},
    {"{\"properties\": {\"age\": {\"type\": \"integer\", \"multipleOf\": 2}}}",
     {"#/properties/age:", "'multipleOf'"}},
    {"{\"type\": \"number\", \"minimum\": 0}", {"'minimum'"}},
    {"{\"maximum\": 0}", {"'maximum'"}},
    {"{\"type\": \"integer\", \"exclusiveMinimum\": true}", {"'exclusiveMinimum'"}},
    {"{\"type\": \"integer\", \"minimum\": 0.5}", {"'minimum'"}},
    {"{\"type\": \"integer\", \"minimum\": 1000000000000000}", {"no value"}},
    {"{\"type\": \"integer\", \"minimum\": 3, \"exclusiveMaximum\": 3}", {"no value"}},
    {"{\"items\": {\"anyOf\": [true, {\"uniqueItems\": true}]}}", {"#/items/anyOf/1:", "'uniqueItems'"}},
    {"{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"not\": {}}}}", {"#/$defs/a:", "'not'"}},
    {"{\"patternProperties\": {}}", {"'patternProperties'"}},
    {"{\"allOf\": [{}, {}]}", {"'allOf'"}},
    {"{\"anyOf\": [{}], \"oneOf\": [{}]}", {"'oneOf'", "'anyOf'"}},
    {"{\"anyOf\": [{}], \"type\": \"object\"}", {"beside 'anyOf'"}},
    {"{\"anyOf\": []}", {"'anyOf'"}},
    {"{\"enum\": [1], \"maxLength\": 2}", {"beside 'enum'"}},
    {"{\"enum\": []}", {"'enum'"}},
    {"{\"enum\": [1], \"const\": 1}", {"'const'", "'enum'"}},
    {"{\"$ref\": \"#/$defs/a\"}", {"$ref", "#/$defs/a"}},
    {"{\"$ref\": \"other.json\"}", {"$ref"}},
    {"{\"$ref\": \"#\", \"minItems\": 2}", {"beside '$ref'"}},
    {"{\"type\": \"text\"}", {"'type'"}},
    {"{\"type\": []}", {"'type'"}},
    {"{\"minLength\": -1}", {"'minLength'"}},
    {"{\"maxItems\": 1.5}", {"'maxItems'"}},
    {"{\"maxItems\": 4294967295}", {"'maxItems'"}},
    {"{\"properties\": []}", {"'properties'"}},
    {"{\"required\": \"a\"}", {"'required'"}},
    {"{\"required\": [1]}", {"'required'"}},
    {"{\"items\": [{}]}", {"#/items:", "a schema must be"}},
    {"{\"additionalProperties\": 1}", {"#/additionalProperties:"}},
    {"{\"minLength\": 3, \"maxLength\": 2}", {"no value"}},
    {"{\"$ref\": \"#\"}", {"no value"}},
    {"{\"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}", {"no value"}},
    {"{\"properties\": {}, \"required\": [\"a\"], \"additionalProperties\": false}", {"no value"}},
    {"{\"type\": \"integer\", \"enum\": [\"a\"]}", {"no value"}},
    {"{\"type\": \"object\"", {"test:"}},
    {"[]", {"object"}},
    {"", {"test:"}},
    {"{\"type\": \"object\", \"type\": \"object\"}", {"duplicate"}},
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        weft_grammar *g = (weft_grammar *)&state;
        const char *schema = refused[i].schema;
        if (weft_grammar_json_schema(NULL, schema, strlen(schema), "test", &g) != WEFT_ERR_FORMAT)
            fail_msg("%s: not refused", schema);
        assert_null(g);
        const char *message = weft_last_error(NULL);
        if (strncmp(message, "test: ", 6) != 0) fail_msg("%s: %s", schema, message);
        for (size_t k = 0; k < 3 && refused[i].words[k]; k++)
            if (!strstr(message, refused[i].words[k]))
                fail_msg("%s: '%s' is not in: %s", schema, refused[i].words[k], message);
    }
}

/* Schemas as large as can be, and larger. */
static void test_large(void **state) {
    (void)state;
    for (int n = 10000; n <= 20000; n += 10000) {
        json_t *schema = json_object(), *list = json_array(), *properties = json_object();
        for (int i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "%d", i * 7919 % n);
            json_array_append_new(list, json_string(name));
            json_object_set_new(properties, name, json_true());
        }
        json_object_set_new(schema, "properties", properties);
        json_object_set_new(properties, "last", json_pack("{s:o}", "enum", list));
        char *text = json_dumps(schema, 0);
        weft_grammar *g = NULL;
        bool complete;
        const weft_status status = weft_grammar_json_schema(NULL, text, strlen(text), "test", &g);
        assert_int_equal(status, n == 10000 ? WEFT_OK : WEFT_ERR_FORMAT);
        static const char value[] = "{\"9999\": 1, \"last\": \"123\"}";
        if (g) assert_int_equal(follow(g, value, sizeof value - 1, &complete), sizeof value - 1);
        if (!g) assert_non_null(strstr(weft_last_error(NULL), "test: too large"));
        weft_grammar_free(g);
        free(text);
        json_decref(schema);
    }
}

/* ---- random schemas ---- */

/* Draws a text of the grammar byte by byte. Ends early where the value may end. Returns its length; 0: it got
 * too long.
 */
static size_t draw_text(const weft_grammar *g, char *text, size_t room) {
    static weft__stacks stacks[2], tried;
    weft__automaton a;
    size_t n = 0;
    weft__automaton_begin(&a, NULL, g, &stacks[0]);
    while (n < room) {
        unsigned char bytes[256];
        unsigned count = 0;
        const weft__stacks *at = &stacks[n % 2];
        for (int b = 0; b < 256; b++)
            if (weft__automaton_step(&a, at, (unsigned char)b, &tried)) bytes[count++] = (unsigned char)b;
        const bool complete = weft__automaton_complete(&a, at);
        if (count == 0 && !complete) fail_msg("a dead end after %.*s", (int)n, text);
        if (complete && (count == 0 || draw_one_in(2))) break;
        unsigned char byte = bytes[draw_below(count)];
        const bool ends = !draw_one_in(4); /* ends are more frequent */
        for (unsigned i = 0; i < count && ends; i++)
            if (strchr("\"]}", bytes[i])) byte = bytes[i];
        assert_true(weft__automaton_step(&a, at, byte, &stacks[(n + 1) % 2]));
        text[n++] = (char)byte;
        weft__automaton_tidy(&a, &stacks[n % 2]);
        assert_in_range(a.used, 0, 10000);
    }
    weft__automaton_end(&a);
    return n < room ? n : 0;
}

enum { ROOM = 4000, SCHEMAS = 400 };

/* What the automaton draws, the checker finds valid. */
static void test_drawn(void **state) {
    (void)state;
    static char text[ROOM];
    int drawn = 0, made = 0;
    for (uint64_t seed = 0; seed < SCHEMAS; seed++) {
        json_t *schema = random_root(seed);
        char *source = json_dumps(schema, 0);
        weft_grammar *g = NULL;
        if (weft_grammar_json_schema(NULL, source, strlen(source), "test", &g) != WEFT_OK) {
            if (!strstr(weft_last_error(NULL), "no value")) fail_msg("%s: %s", source, weft_last_error(NULL));
        } else {
            made++;
            const size_t bytes = draw_text(g, text, ROOM);
            json_error_t error;
            json_t *value =
                bytes ? json_loadb(text, bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error) : NULL;
            if (bytes && !value)
                fail_msg("seed %d: %s: '%.*s': %s", (int)seed, source, (int)bytes, text, error.text);
            if (bytes && !schema_allows(schema, schema, value))
                fail_msg("seed %d: %s does not allow '%.*s'", (int)seed, source, (int)bytes, text);
            drawn += bytes > 0;
            json_decref(value);
        }
        weft_grammar_free(g);
        free(source);
        json_decref(schema);
    }
    print_message("%d grammars of %d schemas, %d texts\n", made, SCHEMAS, drawn);
    assert_true(made > SCHEMAS / 2 && drawn > made * 3 / 4);
}

/* Each valid value is accepted, and so is each of its prefixes. */
static void test_valid(void **state) {
    (void)state;
    int checked = 0;
    for (uint64_t seed = 0; seed < SCHEMAS; seed++) {
        json_t *schema = random_root(seed);
        char *source = json_dumps(schema, 0);
        json_t *value = random_value(schema, schema, 4);
        weft_grammar *g = NULL;
        if (value && schema_allows(schema, schema, value)) {
            if (weft_grammar_json_schema(NULL, source, strlen(source), "test", &g) != WEFT_OK)
                fail_msg("%s: %s", source, weft_last_error(NULL));
            for (int compact = 0; compact < 2; compact++) {
                char *text = json_dumps(value, compact ? JSON_COMPACT : 0);
                bool complete;
                const size_t taken = follow(g, text, strlen(text), &complete);
                if (!complete)
                    fail_msg("seed %d: %s: refused after %zu bytes: %s", (int)seed, source, taken, text);
                free(text);
            }
            checked++;
        }
        weft_grammar_free(g);
        free(source);
        json_decref(value);
        json_decref(schema);
    }
    print_message("%d values\n", checked);
    assert_true(checked > SCHEMAS / 2);
}

/* ---- memory ---- */

static const char mixed[] =
    "{\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [1, \"x\", 0.1]}, \"b\": {\"$ref\": \"#\"}}, "
    "\"required\": [\"a\", \"c\"], \"additionalProperties\": {\"anyOf\": [{\"type\": \"array\"}, true]}}";

static weft_status make(weft_context *ctx) {
    weft_grammar *g;
    const weft_status status = weft_grammar_json_schema(ctx, mixed, sizeof mixed - 1, "test", &g);
    weft_grammar_free(g);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    assert_in_range(fail_each_allocation(make), 20, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),   cmocka_unit_test(test_depth),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_drawn),   cmocka_unit_test(test_valid),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
