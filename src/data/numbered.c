/* Finds gaps in the numbers of files: of 000.bin, 001.bin and 003.bin, the file 002.bin is missing. Must not
 * know: what the files hold. Read next: tokens.c. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "data/tokens.h"

enum { DIGITS_MOST = 18 };

/* The last number in the name of a file, folders not included. */
typedef struct number {
    size_t begin, digits;
    uint64_t value;
} number;

static bool numbered_read(const char *path, number *n) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t end = strlen(name);
    while (end > 0 && !isdigit((unsigned char)name[end - 1])) end--;
    size_t begin = end;
    while (begin > 0 && isdigit((unsigned char)name[begin - 1])) begin--;
    n->begin = begin + (size_t)(name - path);
    n->digits = end - begin;
    n->value = 0;
    if (n->digits == 0 || n->digits > DIGITS_MOST) return false;
    for (size_t i = begin; i < end; i++) n->value = 10 * n->value + (uint64_t)(name[i] - '0');
    return true;
}

/* Tells whether two paths differ in their numbers alone, which have the same digits. */
static bool alike(const char *a, const number *m, const char *b, const number *n) {
    return m->begin == n->begin && m->digits == n->digits && memcmp(a, b, m->begin) == 0 &&
           strcmp(a + m->begin + m->digits, b + n->begin + n->digits) == 0;
}

char *weft__numbered_gap(weft_context *ctx, char *const *paths, size_t count) {
    number last, next;
    char *missing = NULL;
    if (count < 2 || !numbered_read(paths[0], &last)) return NULL;
    for (size_t i = 1; i < count; i++, last = next) {
        if (!numbered_read(paths[i], &next) || !alike(paths[i - 1], &last, paths[i], &next)) {
            weft__free(ctx, missing);
            return NULL;
        }
        if (missing || next.value <= last.value + 1) continue;
        const size_t size = strlen(paths[i]) + 1;
        if (!(missing = weft__alloc(ctx, size))) return NULL;
        snprintf(missing, size, "%.*s%0*llu%s", (int)next.begin, paths[i], (int)next.digits,
                 (unsigned long long)last.value + 1, paths[i] + next.begin + next.digits);
    }
    return missing;
}
