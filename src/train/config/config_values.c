/* Takes the values of configuration keys from text. Must not know: YAML (config_yaml.c), which keys fit
 * together (config.c). Read next: config_yaml.c. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "data/parse.h"
#include "train/config/config.h"

/* Parses an integer of up to 64 bits exactly. "1e6" is an integer too. */
static bool parse_int(const char *text, int64_t *out) {
    const char *digit = text + (*text == '-' || *text == '+');
    uint64_t value = 0;
    bool plain = *digit != '\0';
    for (; *digit && plain; digit++) {
        plain = *digit >= '0' && *digit <= '9' && value <= (UINT64_MAX - 9) / 10;
        if (plain) value = value * 10 + (uint64_t)(*digit - '0');
    }
    if (plain && value <= INT64_MAX) {
        *out = *text == '-' ? -(int64_t)value : (int64_t)value;
        return true;
    }
    double number = 0;
    if (weft__parse_f64(text, strlen(text), &number) != WEFT__NUMBER_OK) return false;
    if (number < -9007199254740992.0 || number > 9007199254740992.0) return false;
    *out = (int64_t)number;
    return (double)*out == number;
}

bool weft__config_word(const char *words, const char *text, int *out) {
    size_t length = strlen(text);
    const char *at = words;
    for (int i = 0; at; i++) {
        const char *end = strchr(at, '|');
        size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size == length && memcmp(at, text, size) == 0) {
            *out = i;
            return true;
        }
        at = end ? end + 1 : NULL;
    }
    return false;
}

/* Returns how many bytes of a value a message shows. */
static int shown(const char *text) { return (int)weft__utf8_cut(text, strlen(text), 60); }

/* Says that the value must be `what` (may be "") or one of the words, given as "a|b|c" or NULL. Returns
 * false. */
static bool refuse(const char *what, const char *words, const char *text, char problem[256]) {
    weft_text said = weft__text(problem, 256);
    weft__put(&said, "give %s%s", what, what[0] && words ? ", " : "");
    for (const char *bar; words; words = bar ? bar + 1 : NULL) {
        bar = strchr(words, '|');
        weft__put(&said, "%.*s%s", (int)strcspn(words, "|"), words,
                  !bar                   ? ""
                  : strchr(bar + 1, '|') ? ", "
                                         : " or ");
    }
    weft__put(&said, ", not '%.*s'", shown(text), text);
    return false;
}

static bool take_int(const weft__config_row *row, const char *text, int64_t *out, char problem[256]) {
    int word;
    if (row->choices && weft__config_word(row->choices, text, &word)) {
        *out = -word;
        return true;
    }
    if (!parse_int(text, out)) return refuse("a whole number", row->choices, text, problem);
    if (*out >= row->low_int && *out <= row->high_int) return true;
    snprintf(problem, 256, "give a number from %lld to %lld, not %.*s", (long long)row->low_int,
             (long long)row->high_int, shown(text), text);
    return false;
}

static bool take_num(const weft__config_row *row, const char *text, double *out, char problem[256]) {
    if (weft__parse_f64(text, strlen(text), out) != WEFT__NUMBER_OK)
        return refuse("a number", NULL, text, problem);
    if (*out >= row->low && *out <= row->high) return true;
    snprintf(problem, 256, "give a number from %.9g to %.9g, not %.*s", row->low, row->high, shown(text),
             text);
    return false;
}

static bool take_bool(const char *text, bool *out, char problem[256]) {
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0 || refuse("", "true|false", text, problem);
}

static bool take_choice(const weft__config_row *row, const char *text, int *out, char problem[256]) {
    return weft__config_word(row->choices, text, out) || refuse("", row->choices, text, problem);
}

static bool take_texts(const weft__config_row *row, char *const *texts, size_t count, weft__texts *out,
                       char problem[256]) {
    if ((double)count > row->high) {
        snprintf(problem, 256, "give at most %g values, not %zu", row->high, count);
        return false;
    }
    weft__texts made = {0, weft__array(NULL, count + 1, sizeof(char *))};
    while (made.values && made.count < count) {
        made.values[made.count] = weft__strdup(NULL, texts[made.count]);
        if (!made.values[made.count]) break;
        made.count++;
    }
    if (made.values && made.count == count) {
        *out = made;
        return true;
    }
    while (made.count > 0) weft__free(NULL, made.values[--made.count]);
    weft__free(NULL, made.values);
    problem[0] = '\0';
    return false;
}

static bool take_list(const weft__config_row *row, char *const *texts, size_t count, void *field,
                      char problem[256]) {
    if (count < 1 || count > WEFT__LIST_MAX) {
        snprintf(problem, 256, "give 1 to %d values, not %zu", WEFT__LIST_MAX, count);
        return false;
    }
    weft__ints ints = {.count = count};
    weft__nums nums = {.count = count};
    for (size_t i = 0; i < count; i++) {
        bool taken = row->kind == WEFT__KIND_INTS ? take_int(row, texts[i], &ints.values[i], problem)
                                                  : take_num(row, texts[i], &nums.values[i], problem);
        if (!taken) return false;
    }
    if (row->kind == WEFT__KIND_INTS)
        *(weft__ints *)field = ints;
    else
        *(weft__nums *)field = nums;
    return true;
}

bool weft__config_take(weft__config *config, weft__config_key key, char *const *texts, size_t count,
                       bool list, char problem[256]) {
    const weft__config_row *row = &weft__config_rows[key];
    void *field = weft__config_field(config, key);
    bool wants_list =
        row->kind == WEFT__KIND_INTS || row->kind == WEFT__KIND_NUMS || row->kind == WEFT__KIND_TEXTS;
    if (!wants_list && (list || count != 1)) {
        snprintf(problem, 256, "give one value, not a list");
        return false;
    }
    switch (row->kind) {
    case WEFT__KIND_INT: return take_int(row, texts[0], field, problem);
    case WEFT__KIND_NUM: return take_num(row, texts[0], field, problem);
    case WEFT__KIND_BOOL: return take_bool(texts[0], field, problem);
    case WEFT__KIND_CHOICE: return take_choice(row, texts[0], field, problem);
    case WEFT__KIND_INTS:
    case WEFT__KIND_NUMS: return take_list(row, texts, count, field, problem);
    case WEFT__KIND_TEXTS: {
        weft__texts made;
        if (!take_texts(row, texts, count, &made, problem)) return false;
        weft__config_clear(config, key);
        *(weft__texts *)field = made;
        return true;
    }
    case WEFT__KIND_TEXT:
    case WEFT__KIND_PATH: break;
    }
    if (texts[0][0] == '\0') {
        snprintf(problem, 256, "give a text that is not empty");
        return false;
    }
    char *copy = weft__strdup(NULL, texts[0]);
    if (!copy) {
        problem[0] = '\0';
        return false;
    }
    weft__config_clear(config, key);
    *(char **)field = copy;
    return true;
}

/* Splits a list at commas and trims blanks. Changes `text`; `parts` point into it. Returns the number of
 * parts. */
static size_t cut_list(char *text, char **parts) {
    size_t count = 0;
    for (char *at = text; at;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        while (*at == ' ') at++;
        for (size_t end = strlen(at); end > 0 && at[end - 1] == ' '; end--) at[end - 1] = '\0';
        parts[count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return count;
}

bool weft__config_take_written(weft__config *config, weft__config_key key, const char *text,
                               char problem[256]) {
    weft__config_kind kind = weft__config_rows[key].kind;
    const bool list = kind == WEFT__KIND_INTS || kind == WEFT__KIND_NUMS || kind == WEFT__KIND_TEXTS;
    size_t length = strlen(text), count = 1;
    for (const char *c = text; list && *c; c++) count += *c == ',';
    char *copy = weft__strdup(NULL, text), **parts = weft__array(NULL, count, sizeof *parts), *at = copy;
    bool taken = false;
    if (copy && parts) {
        if (list && length >= 2 && copy[0] == '[' && copy[length - 1] == ']') {
            copy[length - 1] = '\0';
            at++;
        }
        if (list)
            count = cut_list(at, parts);
        else
            parts[0] = copy;
        taken = weft__config_take(config, key, parts, count, list, problem);
    } else {
        problem[0] = '\0';
    }
    weft__free(NULL, parts);
    weft__free(NULL, copy);
    return taken;
}

weft_status weft__config_put(weft__config *config, weft__config_key key, const char *text,
                             weft__origin_kind origin, const char *where) {
    char problem[256];
    if (!weft__config_take_written(config, key, text, problem))
        return problem[0] ? weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s: %s", where,
                                       weft__config_rows[key].key, problem)
                          : weft__fail_oom(NULL, strlen(text), "the configuration");
    config->origin[key] = origin;
    config->line[key] = 0;
    return WEFT_OK;
}

weft_status weft__config_assign(weft__config *config, const char *assignment, const char *where) {
    const char *equals = strchr(assignment, '=');
    char name[64];
    if (!equals || equals == assignment)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s %s: write KEY=VALUE, as in %s train.steps=100", where,
                          assignment, where);
    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment > 63 ? 63 : equals - assignment),
             assignment);
    weft__config_key key = weft__config_find(name);
    if (key == WEFT__KEY_COUNT) {
        const char *near = weft__config_nearest(name);
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s %s: unknown key %s%s%s%s", where, assignment, name,
                          near ? "; did you mean " : "; 'weft init MODEL' lists the keys of a model",
                          near ? near : "", near ? "?" : "");
    }
    return weft__config_put(config, key, equals + 1, WEFT__ORIGIN_SET, where);
}

weft_status weft__config_set(weft__config *config, const char *assignment) {
    return weft__config_assign(config, assignment, "--set");
}
