/* Lists of names. Must not know: folders. Read next: image_folder.c. */
#include "data/image_found.h"

#include <stdlib.h>
#include <string.h>

#include "data/shard_files.h"

void weft__names_free(weft_context *ctx, weft__names *n) {
    for (size_t i = 0; i < n->count; i++) weft__free(ctx, n->at[i]);
    weft__free(ctx, n->at);
    *n = (weft__names){0};
}

weft_status weft__names_add(weft_context *ctx, weft__names *n, char *name) {
    if (name && weft__grow(ctx, &n->at, &n->capacity, n->count, sizeof *n->at)) {
        n->at[n->count++] = name;
        return WEFT_OK;
    }
    weft__free(ctx, name);
    return weft__fail_oom(ctx, 0, "names of images");
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void weft__names_sort(weft__names *n, size_t from) {
    if (n->count > from) qsort(n->at + from, n->count - from, sizeof *n->at, by_bytes);
}

char *weft__path_join(weft_context *ctx, const char *folder, const char *name) {
    const size_t size = strlen(folder), more = strlen(name);
    char *path = weft__alloc(ctx, size + more + 2);
    if (!path) return NULL;
    memcpy(path, folder, size);
    path[size] = '/';
    memcpy(path + size + 1, name, more + 1);
    return path;
}

void weft__image_found_free(weft_context *ctx, weft__image_found *f) {
    weft__names_free(ctx, &f->files);
    weft__names_free(ctx, &f->skipped);
    weft__names_free(ctx, &f->classes);
    weft__free(ctx, f->labels);
    weft__free(ctx, f->members);
    weft__shards_free(ctx, f->shards);
    *f = (weft__image_found){0};
}
