/* Numbers of files. Finds gaps: of 000.bin, 001.bin and 003.bin, the file 002.bin is missing. Writes out
 * ranges: {000..003}.bin is four files. Must not know: what the files hold. Read next: tokens.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/tokens.h"

enum { DIGITS_MOST = 18, RANGE_MOST = 65536 /* files */ };

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

/* ---- ranges ---- */

/* A range in a path, as {000..012}. */
typedef struct range {
    const char *begin, *end; /* from the brace on, and behind the other one */
    uint64_t first, last;
    int digits; /* with zeros in front */
} range;

static bool find_range(const char *path, range *r) {
    for (const char *brace = strchr(path, '{'); brace; brace = strchr(brace + 1, '{')) {
        const char *low = brace + 1, *digits = "0123456789";
        const size_t width = strspn(low, digits);
        if (width == 0 || width > DIGITS_MOST || strncmp(low + width, "..", 2) != 0) continue;
        const char *high = low + width + 2;
        const size_t other = strspn(high, digits);
        if (other == 0 || other > DIGITS_MOST || high[other] != '}') continue;
        *r = (range){.begin = brace,
                     .end = high + other + 1,
                     .first = strtoull(low, NULL, 10),
                     .last = strtoull(high, NULL, 10),
                     .digits = low[0] == '0' || width == other ? (int)width : 1};
        return true;
    }
    return false;
}

weft_status weft__numbered_range(weft_context *ctx, const char *path, weft__names *paths, bool *is_range) {
    range r;
    *is_range = access(path, F_OK) != 0 && find_range(path, &r);
    if (!*is_range) return WEFT_OK;
    if (r.last < r.first || r.last - r.first >= RANGE_MOST)
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "%s: a range goes from the smaller number to the larger one, and has at most %d files", path,
            RANGE_MOST);
    const size_t size = strlen(path) + DIGITS_MOST + 1;
    for (uint64_t n = r.first; n <= r.last; n++) {
        char *name = weft__alloc(ctx, size);
        if (name)
            snprintf(name, size, "%.*s%0*llu%s", (int)(r.begin - path), path, r.digits, (unsigned long long)n,
                     r.end);
        WEFT_TRY(weft__names_add(ctx, paths, name));
        if (access(name, F_OK) == 0) continue;
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: this file of %s cannot be found (%s): restore it, or change the range", name,
                          path, strerror(errno));
    }
    return WEFT_OK;
}
