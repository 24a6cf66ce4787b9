/* Reads the options and arguments of a command from a table. The table is also the help text. Must not know:
 * any command. Read next: main.c. */
#include <string.h>

#include "base/option.h"
#include "cli/cli.h"
#include "data/parse.h"

/* Returns the bytes of the option's name, without the value after it. */
static size_t name_size(const weft__option *option) { return strcspn(option->name, " "); }

static bool is_argument(const weft__option *option) {
    return option->kind == WEFT__OPTION_ARG || option->kind == WEFT__OPTION_ARGS;
}

static bool optional(const weft__option *option) { return option->name[0] == '['; }

/* Tells whether the arguments so far gave a list of further ones a member. */
static bool given(const weft__option *option) {
    return option->kind == WEFT__OPTION_ARGS && ((const weft__repeated *)option->value)->count > 0;
}

static void print_help(const weft__command *command, const weft__option *options, size_t count) {
    weft__print(stdout, "weft %s: %s\n\nusage: weft %s", command->name, command->about, command->name);
    for (size_t i = 0; i < count; i++)
        if (is_argument(&options[i])) weft__print(stdout, " %s", options[i].name);
    weft__print(stdout, " [options]\n\n");
    for (size_t i = 0; i < count; i++) weft__print(stdout, "  %-24s %s\n", options[i].name, options[i].doc);
    weft__print(stdout, "  %-24s %s\n", "--help", "this text");
    weft__print(stdout, "\n%s", command->help);
}

static bool wrong(const weft__command *command, int *code, const char *what, const char *text) {
    weft__complain("%s: %s%s%s: 'weft %s --help' shows how to call it", command->name, what,
                   text[0] ? " " : "", text, command->name);
    *code = WEFT__EXIT_USAGE;
    return false;
}

/* Reads a number of digits only, below 2^63. */
static bool take_int(const char *text, int64_t *out) {
    int64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || !weft__mul(value, 10, &value) ||
            !weft__add(value, *text - '0', &value))
            return false;
    }
    *out = value;
    return true;
}

static bool cli_arguments_take(const weft__option *option, const char *text) {
    if (option->kind == WEFT__OPTION_INT) return take_int(text, option->value);
    if (option->kind == WEFT__OPTION_NUM) {
        double number = -1;
        if (weft__parse_f64(text, strlen(text), &number) != WEFT__NUMBER_OK || number < 0) return false;
        *(double *)option->value = weft__given(number);
        return true;
    }
    if (option->kind == WEFT__OPTION_TEXTS || option->kind == WEFT__OPTION_ARGS) {
        weft__repeated *texts = option->value;
        if (texts->count == WEFT__REPEATED_MAX) return false;
        texts->values[texts->count++] = text;
        return true;
    }
    *(const char **)option->value = text;
    return true;
}

/* Takes one "--name value" or "--name=value". *i moves to the last argument that was used. */
static bool take_option(const weft__command *command, int argc, char **argv, int *i,
                        const weft__option *options, size_t count, int *code) {
    const char *text = argv[*i];
    size_t size = strcspn(text, "=");
    for (size_t o = 0; o < count; o++) {
        const weft__option *option = &options[o];
        if (is_argument(option) || name_size(option) != size || memcmp(option->name, text, size) != 0)
            continue;
        if (option->kind == WEFT__OPTION_FLAG) {
            if (text[size] == '=') {
                char what[64];
                snprintf(what, sizeof what, "%.30s takes no value", option->name);
                return wrong(command, code, what, "");
            }
            *(bool *)option->value = true;
            return true;
        }
        const char *value = text[size] == '=' ? text + size + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        if (!value) return wrong(command, code, "a value is missing after", text);
        if (!cli_arguments_take(option, value)) {
            char what[64];
            snprintf(what, sizeof what, "%.*s cannot take the value", (int)size, option->name);
            return wrong(command, code, what, value);
        }
        return true;
    }
    return wrong(command, code, "unknown option", text);
}

bool weft__arguments(const weft__command *command, int argc, char **argv, const weft__option *options,
                     size_t count, int *code) {
    size_t next = 0; /* index of the next ARG in the table */
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (!only_arguments && (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)) {
            print_help(command, options, count);
            *code = WEFT__EXIT_DONE;
            return false;
        }
        if (!only_arguments && strcmp(text, "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && text[0] == '-' && text[1]) {
            if (!take_option(command, argc, argv, &i, options, count, code)) return false;
        } else {
            while (next < count && !is_argument(&options[next])) next++;
            if (next == count || !cli_arguments_take(&options[next], text))
                return wrong(command, code, "there is one argument too many:", text);
            next += options[next].kind == WEFT__OPTION_ARG;
        }
    }
    for (; next < count; next++)
        if (is_argument(&options[next]) && !optional(&options[next]) && !given(&options[next]))
            return wrong(command, code, "missing:", options[next].name);
    return true;
}
