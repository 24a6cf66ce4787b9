/* Renames what a kernel source defines, by macros.
 * Must not know: what the names mean. Read next: names.h, compile.c, fused_launch.c. */
#include "device/gpu/backend/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool begins(const char *line, const char *word) { return strncmp(line, word, strlen(word)) == 0; }

/* Returns the name of the function that a line begins, up to *end, or NULL. It is the last name before
 * parameters; attributes have parentheses, too. */
static const char *function_of(const char *line, const char **end) {
    static const char *const words[] = {"W_FN ", "INLINE ", "W_KERNEL "};
    bool function = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) function = function || begins(line, words[i]);
    for (const char *name = line; function && *name;) {
        const char *open = strchr(name, '(');
        if (!open) return NULL;
        *end = open;
        for (name = open; name > line && is_letter(name[-1]);) name--;
        if (!begins(name, "W_ITEMS") && !begins(name, "__attribute__")) return name;
        int depth = 0;
        for (name = open; *name; name++)
            if ((depth += (*name == '(') - (*name == ')')) == 0) break;
    }
    return NULL;
}

/* Returns the name that a line defines, up to *end, or NULL if there is none. A struct of numbers may belong
 * to a kernel that the source does not define. */
static const char *defined(const char *line, bool macro, const char **end) {
    static const char *const words[] = {"#define ", "typedef struct ", "W_NUMBERS(", "W_SHARED("};
    for (size_t i = macro ? 0 : 1; i < (macro ? 1 : sizeof words / sizeof *words); i++) {
        if (!begins(line, words[i])) continue;
        const char *name = line + strlen(words[i]);
        for (*end = name; is_letter(**end); ++*end) continue;
        return name;
    }
    return macro ? NULL : function_of(line, end);
}

/* Defines the names of a source as macros, or undefines them if there is no suffix. */
static void put_names(weft_text *out, const char *source, bool macros, const char *suffix) {
    for (const char *line = source; line; line = strchr(line, '\n')) {
        const char *to;
        line += *line == '\n';
        const char *name = defined(line, macros, &to);
        if (!name) continue;
        const int n = (int)(to - name);
        if (suffix)
            weft__put(out, "#define %.*s %.*s_%s\n", n, name, n, name, suffix);
        else
            weft__put(out, "#undef %.*s\n", n, name);
    }
}

void weft__gpu_put_names(weft_text *out, const char *source, const char *suffix) {
    put_names(out, source, false, suffix);
}

void weft__gpu_forget_names(weft_text *out, const char *source) {
    put_names(out, source, false, NULL);
    put_names(out, source, true, NULL);
}
