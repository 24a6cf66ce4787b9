/* Class labels: the distinct strings of a column. Labels are numbered by first appearance, and an index keeps
 * them sorted by their bytes. The index is a sorted list and not a hash table, so that no choice of labels
 * makes it slow. Must not know: csv. Read next: csv.c. */
#include "data/parse.h"

#include <string.h>

/* Returns whether the text is among the labels. *place is its place in the sorted list, or the place where it
 * belongs. */
static bool locate(const weft__labels *labels, const char *text, size_t size, size_t *place) {
    size_t low = 0, high = labels->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = weft__label(labels, labels->order[middle]);
        size_t other_size = strlen(other), common = size < other_size ? size : other_size;
        int order = common > 0 ? memcmp(other, text, common) : 0;
        if (order == 0) order = (other_size > size) - (other_size < size);
        if (order == 0) {
            *place = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return false;
}

bool weft__labels_find(const weft__labels *labels, const char *text, size_t size, uint32_t *number) {
    size_t place;
    if (!locate(labels, text, size, &place)) return false;
    *number = labels->order[place];
    return true;
}

static bool reserve_text(weft__labels *labels, size_t more) {
    size_t wanted = labels->text_size + more;
    if (wanted <= labels->text_capacity) return true;
    wanted = wanted < 1024 ? 1024 : wanted * 2;
    char *text = weft__realloc(labels->ctx, labels->text, wanted);
    if (text == NULL) return false;
    labels->text = text;
    labels->text_capacity = wanted;
    return true;
}

weft_status weft__labels_add(weft__labels *labels, const char *text, size_t size, uint32_t *number) {
    size_t place, count = labels->count;
    if (locate(labels, text, size, &place)) {
        *number = labels->order[place];
        return WEFT_OK;
    }
    if (count == WEFT__LABELS_MAX) return WEFT_ERR_FORMAT;
    if (!reserve_text(labels, size + 1) ||
        !weft__grow(labels->ctx, &labels->offset, &labels->offset_capacity, count, sizeof *labels->offset) ||
        !weft__grow(labels->ctx, &labels->order, &labels->order_capacity, count, sizeof *labels->order)) {
        return weft__fail_oom(labels->ctx, size + 1, "class labels");
    }
    labels->offset[count] = labels->text_size;
    if (size > 0) memcpy(labels->text + labels->text_size, text, size);
    labels->text[labels->text_size + size] = 0;
    labels->text_size += size + 1;
    memmove(labels->order + place + 1, labels->order + place, (count - place) * sizeof *labels->order);
    labels->order[place] = (uint32_t)count;
    labels->count++;
    *number = (uint32_t)count;
    return WEFT_OK;
}

void weft__labels_free(weft__labels *labels) {
    weft__free(labels->ctx, labels->text);
    weft__free(labels->ctx, labels->offset);
    weft__free(labels->ctx, labels->order);
    *labels = (weft__labels){.ctx = labels->ctx};
}

char **weft__strings_pack(weft_context *ctx, const char *const *strings, size_t count) {
    size_t bytes = count * sizeof(char *);
    for (size_t i = 0; i < count; i++) bytes += strlen(strings[i]) + 1;
    char **packed = weft__alloc(ctx, bytes > 0 ? bytes : 1);
    if (packed == NULL) return NULL;
    char *text = (char *)(packed + count);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(strings[i]) + 1;
        memcpy(text, strings[i], size);
        packed[i] = text;
        text += size;
    }
    return packed;
}
