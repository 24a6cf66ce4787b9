/* Joins the files of a divided optimizer, so that readers see whole arrays. The places in the manifest say
 * which elements of which array a file has. All parts of an array together must be the whole array, without
 * gap and without overlap. Must not know: what the arrays mean. Read next: safetensors_read.c. */
#include <stdlib.h>
#include <string.h>

#include "io/manifest.h"

/* A part of an array in a file. Whole arrays count as parts, too. */
typedef struct part {
    const weft__manifest_entry *entry;
    const weft__manifest_file *described;
    weft_safetensors *file;
    int64_t end; /* the element after its last one */
} part;

typedef struct joining {
    weft_context *ctx;
    const char *path;
    part *parts;              /* sorted by array and place */
    weft_entry_info *entries; /* arrays */
    weft__file_piece *pieces;
    size_t part_count, entry_count, piece_count;
    uint64_t bytes; /* of the arrays so far */
} joining;

static int by_place(const void *x, const void *y) {
    const part *a = x, *b = y;
    const int name = strcmp(a->entry->name, b->entry->name);
    if (name) return name;
    if (a->entry->from != b->entry->from) return a->entry->from < b->entry->from ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static weft_status list_parts(joining *j, const weft__manifest_file *described,
                              weft_safetensors *const *files, size_t count) {
    for (size_t k = 0; k < count; k++) j->part_count += described[k].count;
    j->parts = weft__array(j->ctx, j->part_count, sizeof *j->parts);
    j->entries = weft__array(j->ctx, j->part_count, sizeof *j->entries);
    j->pieces = weft__array(j->ctx, j->part_count, sizeof *j->pieces);
    if (!j->parts || !j->entries || !j->pieces)
        return weft__fail_oom(j->ctx, j->part_count * sizeof *j->parts, "the parts of a checkpoint");
    size_t n = 0;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < described[k].count; i++) {
            const weft__manifest_entry *e = &described[k].entries[i];
            int64_t elements;
            if (!weft__numel(e->rank, e->shape, &elements)) return WEFT_ERR_INTERNAL; /* the file has them */
            j->parts[n++] = (part){e, &described[k], files[k], e->from + elements};
        }
    if (n) qsort(j->parts, n, sizeof *j->parts, by_place);
    return WEFT_OK;
}

static weft_status same_array(const joining *j, const part *a, const part *b) {
    if (a->entry->dtype == b->entry->dtype && a->entry->of_rank == b->entry->of_rank &&
        memcmp(a->entry->of, b->entry->of, sizeof a->entry->of) == 0)
        return WEFT_OK;
    return weft__fail(j->ctx, WEFT_ERR_FORMAT,
                      "%s: tensor '%.200s': %s and %s have parts of arrays of different shapes or dtypes: "
                      "damaged, use an earlier checkpoint",
                      j->path, a->entry->name, a->described->name, b->described->name);
}

/* Checks that the part continues the one before it (NULL: that it is the first) at element `end`. */
static weft_status follows(const joining *j, const part *before, const part *next, int64_t end) {
    if (before) WEFT_TRY(same_array(j, before, next));
    if (next->entry->from == end) return WEFT_OK;
    if (before && next->entry->from < end)
        return weft__fail(
            j->ctx, WEFT_ERR_FORMAT,
            "%s: tensor '%.200s': %s and %s both have its element %lld: damaged, use an earlier "
            "checkpoint",
            j->path, next->entry->name, before->described->name, next->described->name,
            (long long)next->entry->from);
    return weft__fail(j->ctx, WEFT_ERR_FORMAT,
                      "%s: tensor '%.200s': no file has its elements %lld to %lld: damaged, use an earlier "
                      "checkpoint",
                      j->path, next->entry->name, (long long)end, (long long)next->entry->from - 1);
}

/* Joins the parts of one array, of which the first is at `i`. Returns the place after the last one in *end.
 */
static weft_status join_array(joining *j, size_t i, size_t *end) {
    const part *first = &j->parts[i];
    const weft__manifest_entry *whole = first->entry;
    const int64_t size = (int64_t)weft_dtype_size(whole->dtype);
    int64_t elements, bytes, at = 0;
    if (!weft__numel(whole->of_rank, whole->of, &elements) || !weft__mul(elements, size, &bytes))
        return weft__fail(j->ctx, WEFT_ERR_FORMAT, "%s: tensor '%.200s': of: more elements than memory has",
                          j->path, whole->name);
    for (; i < j->part_count && strcmp(j->parts[i].entry->name, whole->name) == 0; i++) {
        const part *p = &j->parts[i];
        WEFT_TRY(follows(j, p == first ? NULL : p - 1, p, at));
        if (p->end > at)
            j->pieces[j->piece_count++] =
                (weft__file_piece){j->bytes + (uint64_t)(at * size), p->entry->offset, p->file};
        at = p->end;
    }
    if (at != elements)
        return weft__fail(
            j->ctx, WEFT_ERR_FORMAT,
            "%s: tensor '%.200s': no file has its elements %lld to %lld: damaged, use an earlier "
            "checkpoint",
            j->path, whole->name, (long long)at, (long long)elements - 1);
    j->entries[j->entry_count++] =
        (weft_entry_info){whole->name, whole->dtype, whole->of_rank, whole->of, (size_t)bytes};
    j->bytes += (uint64_t)bytes;
    *end = i;
    return WEFT_OK;
}

weft_status weft__join_files(weft_context *ctx, const char *path, const weft__manifest_file *described,
                             weft_safetensors *const *files, size_t count, weft_safetensors **out) {
    joining j = {.ctx = ctx, .path = path};
    *out = NULL;
    weft_status status = list_parts(&j, described, files, count);
    for (size_t i = 0; status == WEFT_OK && i < j.part_count;) status = join_array(&j, i, &i);
    if (status == WEFT_OK)
        status = weft__safetensors_join(ctx, path, j.entries, j.entry_count, j.pieces, j.piece_count, out);
    weft__free(ctx, j.parts);
    weft__free(ctx, j.entries);
    weft__free(ctx, j.pieces);
    return status;
}
