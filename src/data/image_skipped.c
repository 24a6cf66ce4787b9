/* Counts what lies among images and is not read. Must not know: where images are. Read next:
 * image_folder.c. */
#include "data/image_skipped.h"

#include <ctype.h>
#include <string.h>

#define KINDS (sizeof((weft__skipped *)0)->kinds / sizeof *((weft__skipped *)0)->kinds)

void weft__skipped_kind(weft__skipped *s, const char *name, int64_t files) {
    const char *dot = strrchr(name, '.');
    char ending[sizeof s->kinds[0].ending] = "";
    s->files += files;
    if (dot && strlen(dot) >= sizeof ending) return;
    for (size_t i = 0; dot && dot[i]; i++) ending[i] = (char)tolower((unsigned char)dot[i]);
    for (size_t i = 0; i < KINDS; i++) {
        if (s->kinds[i].files > 0 && strcmp(s->kinds[i].ending, ending) != 0) continue;
        memcpy(s->kinds[i].ending, ending, sizeof ending);
        s->kinds[i].files += files;
        return;
    }
}

void weft__skipped_count(weft__skipped *s, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (name[0] == '\0')
        s->empty++;
    else if (name[0] == '.')
        s->hidden++;
    else
        weft__skipped_kind(s, name, 1);
}

void weft__skipped_add(weft__skipped *s, const weft__skipped *other) {
    int64_t unlisted = other->files;
    s->hidden += other->hidden;
    s->empty += other->empty;
    s->bad += other->bad;
    for (size_t i = 0; i < KINDS && other->kinds[i].files > 0; i++) {
        unlisted -= other->kinds[i].files;
        weft__skipped_kind(s, other->kinds[i].ending, other->kinds[i].files);
    }
    s->files += unlisted;
}

int64_t weft__skipped_take(weft__skipped *s, const char **ending) {
    size_t best = 0;
    for (size_t i = 1; i < KINDS; i++)
        if (s->kinds[i].files > s->kinds[best].files) best = i;
    const int64_t files = s->kinds[best].files;
    *ending = s->kinds[best].ending[0] ? s->kinds[best].ending : "without ending";
    s->kinds[best].files = 0;
    s->files -= files;
    return files;
}
