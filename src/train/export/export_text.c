/* Pieces of C source: strings, comments, numbers, names. Names of columns and classes come from files and may
 * hold anything; nothing that they hold may change the source around them.
 * Must not know: models. Read next: export_c.c. */
#include <string.h>

#include "train/export/export.h"

static bool plain(unsigned char c) {
    return c >= ' ' && c < 127 && c != '"' && c != '\\' && c != '?'; /* "??/" is a backslash in C99 */
}

void weft__export_string(weft_text *out, const char *text, size_t bytes) {
    weft__put(out, "\"");
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (plain(c))
            weft__put(out, "%c", c);
        else if (c == '"' || c == '\\' || c == '?')
            weft__put(out, "\\%c", c);
        else
            weft__put(out, "\\%03o", c); /* three digits: a digit that follows is no part of it */
    }
    weft__put(out, "\"");
}

void weft__export_comment(weft_text *out, const char *text) {
    for (; *text; text++) weft__put(out, "%c", plain((unsigned char)*text) && *text != '*' ? *text : '_');
}

void weft__export_numbers(weft_text *out, weft_dtype dtype, const void *values, int64_t count) {
    enum { PER_LINE = 8 };
    weft__put(out, "{");
    for (int64_t i = 0; i < count; i++) {
        weft__put(out, i % PER_LINE ? ", " : i ? ",\n    " : "\n    ");
        if (dtype == WEFT_F32)
            weft__c99_f32(out, ((const float *)values)[i]);
        else
            weft__c99_integer(out, ((const int32_t *)values)[i]);
    }
    weft__put(out, "}");
}

void weft__export_capitals(weft_text *out, const char *name) {
    for (; *name; name++) weft__put(out, "%c", *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
}

bool weft__export_name_fits(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t size = strlen(name);
    return size > 0 && size <= 40 && strchr(letters, name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == size;
}
