/* The tables of filters, tests, functions and methods, made of jinja.def, and calls of their entries.
 *
 * Must not know: what the functions do. Read next: filters_text.c. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/template/jinja.h"

#define ENTRY(group, name, function, parameters, required, object)                                           \
    {name, weft__jinja_##group##_##function, parameters, required, object},
#define NONE_ENTRY(name) {name, NULL, "", 0, JINJA_UNDEFINED},

const jinja_entry weft__jinja_filter_table[] = {
#define FILTER(name, function, parameters, required)                                                         \
    ENTRY(filter, name, function, parameters, required, JINJA_UNDEFINED)
#define TEST(name, function, parameters, required)
#define FUNCTION(name, function, parameters, required)
#define METHOD(object, name, function, parameters, required)
#define NO_FILTER(name) NONE_ENTRY(name)
#define NO_TEST(name)
#define NO_FUNCTION(name)
#define NO_TAG(name)
#include "text/template/jinja.def"
    {NULL, NULL, NULL, 0, JINJA_UNDEFINED}};

const jinja_entry weft__jinja_test_table[] = {
#define FILTER(name, function, parameters, required)
#define TEST(name, function, parameters, required)                                                           \
    ENTRY(test, name, function, parameters, required, JINJA_UNDEFINED)
#define FUNCTION(name, function, parameters, required)
#define METHOD(object, name, function, parameters, required)
#define NO_FILTER(name)
#define NO_TEST(name) NONE_ENTRY(name)
#define NO_FUNCTION(name)
#define NO_TAG(name)
#include "text/template/jinja.def"
    {NULL, NULL, NULL, 0, JINJA_UNDEFINED}};

const jinja_entry weft__jinja_function_table[] = {
#define FILTER(name, function, parameters, required)
#define TEST(name, function, parameters, required)
#define FUNCTION(name, function, parameters, required)                                                       \
    ENTRY(global, name, function, parameters, required, JINJA_UNDEFINED)
#define METHOD(object, name, function, parameters, required)
#define NO_FILTER(name)
#define NO_TEST(name)
#define NO_FUNCTION(name) NONE_ENTRY(name)
#define NO_TAG(name)
#include "text/template/jinja.def"
    {NULL, NULL, NULL, 0, JINJA_UNDEFINED}};

const jinja_entry weft__jinja_method_table[] = {
#define FILTER(name, function, parameters, required)
#define TEST(name, function, parameters, required)
#define FUNCTION(name, function, parameters, required)
#define METHOD(object, name, function, parameters, required)                                                 \
    ENTRY(method, name, function, parameters, required, JINJA_##object)
#define NO_FILTER(name)
#define NO_TEST(name)
#define NO_FUNCTION(name)
#define NO_TAG(name)
#include "text/template/jinja.def"
    {NULL, NULL, NULL, 0, JINJA_UNDEFINED}};

int weft__jinja_entry_of(const jinja_entry *table, jinja_string name) {
    for (int i = 0; table[i].name; i++)
        if (weft__jinja_same(name, table[i].name)) return i;
    return -1;
}

/* A tuple has the methods of a list. */
static jinja_kind methods_kind(jinja_kind kind) { return kind == JINJA_TUPLE ? JINJA_LIST : kind; }

int weft__jinja_method_of(jinja_kind object, jinja_string name) {
    const jinja_entry *table = weft__jinja_method_table;
    for (int i = 0; table[i].name; i++)
        if (table[i].object == methods_kind(object) && weft__jinja_same(name, table[i].name)) return i;
    return -1;
}

void weft__jinja_names(const jinja_entry *table, jinja_kind object, char *out, size_t bytes) {
    weft_text text = weft__text(out, bytes);
    for (int i = 0; table[i].name; i++)
        if (table[i].function &&
            (table != weft__jinja_method_table || table[i].object == methods_kind(object)))
            weft__put(&text, "%s%s", text.length ? ", " : "", table[i].name);
}

/* The index of a parameter in the list of an entry; -1: there is none. */
static int parameter_of(const char *parameters, jinja_string name) {
    int index = 0;
    for (const char *at = parameters; *at; index++) {
        const size_t n = strcspn(at, ",");
        if (n == name.bytes && memcmp(at, name.text, n) == 0) return index;
        at += n + (at[n] == ',');
    }
    return -1;
}

static size_t parameter_count(const char *parameters) {
    size_t count = *parameters != '\0';
    for (const char *at = parameters; *at; at++) count += *at == ',';
    return count;
}

static weft_status place_arguments(jinja_run *run, const jinja_entry *entry, const jinja_arguments *given,
                                   jinja_call *call) {
    const size_t most = parameter_count(entry->parameters);
    if (given->positional > most)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%s' takes at most %zu arguments, but got %zu",
                                entry->name, most, given->positional);
    for (size_t i = 0; i < given->positional; i++) call->args[i] = given->values[i];
    for (size_t i = 0; i < given->named; i++) {
        const jinja_string name = given->names[i];
        const int at = parameter_of(entry->parameters, name);
        if (at < 0 || (size_t)at < given->positional)
            return weft__jinja_fail(run, at < 0 ? WEFT_ERR_UNSUPPORTED : WEFT_ERR_FORMAT,
                                    "'%s' has no free argument '%.*s'. Its arguments are: %s", entry->name,
                                    (int)(name.bytes < 40 ? name.bytes : 40), name.text,
                                    most ? entry->parameters : "none");
        call->args[at] = given->values[given->positional + i];
    }
    if (given->positional + given->named < (size_t)entry->required)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%s' needs %d arguments (%s)", entry->name,
                                entry->required, entry->parameters);
    return WEFT_OK;
}

weft_status weft__jinja_call(jinja_run *run, const jinja_entry *entry, const jinja_value *object,
                             const jinja_arguments *arguments, jinja_value *out) {
    jinja_call call = {.given = arguments->positional, .all = arguments};
    if (object) call.object = *object;
    if (!entry->function)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "the function '%s' is not supported", entry->name);
    for (int i = 0; i < JINJA_ARGUMENTS; i++)
        call.args[i] = weft__jinja_undefined(weft__jinja_literal("an argument"));
    if (entry->parameters[0] != '*') {
        WEFT_TRY(place_arguments(run, entry, arguments, &call));
    } else {
        for (size_t i = 0; i < arguments->positional && i < JINJA_ARGUMENTS; i++)
            call.args[i] = arguments->values[i];
        if (arguments->positional < (size_t)entry->required)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%s' needs an argument", entry->name);
    }
    return entry->function(run, &call, out);
}
