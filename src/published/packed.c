/* Weights of published models that stay packed: which layers, and how the blocks of a GGUF file become their
 * buffers. A layer may join tensors of several formats; rows of one format that follow one another are a
 * part. Must not know: formats. Read next: nn/packing.c. */
#include <stdio.h>
#include <string.h>

#include "published/packed.h"

bool weft__published_find(const weft__published *p, const weft__tensors *tensors, const weft__placed *placed,
                          weft__tensor_at *at) {
    char longer[WEFT_ENTRY_NAME_MAX];
    const int n = snprintf(longer, sizeof longer, "%s%s", p->prefix, placed->name);
    if (!placed->bare && n > 0 && (size_t)n < sizeof longer && weft__tensors_find(tensors, longer, at))
        return true;
    return weft__tensors_find(tensors, placed->name, at);
}

/* ---- which layers ---- */

/* Sorts the tensors of a weight by their rows. */
static void sort_placed(weft__placed *placed, int count) {
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && placed[j].first < placed[j - 1].first; j--) {
            const weft__placed other = placed[j];
            placed[j] = placed[j - 1];
            placed[j - 1] = other;
        }
}

/* Writes the parts of a weight, and returns their number; 0: it cannot be packed. */
static int parts_of(const weft__published *p, const weft__tensors *tensors, const char *name, int64_t rows,
                    int64_t width, weft_packed_rows parts[WEFT_PACKED_PARTS]) {
    weft__placed placed[WEFT__PARTS];
    weft__tensor_at at;
    int64_t sum = 0;
    int n = 0;
    const int count = weft__published_names_of(p, name, rows, placed);
    sort_placed(placed, count);
    for (int i = 0; i < count; i++) {
        const bool fits = weft__published_find(p, tensors, &placed[i], &at) && at.format != WEFT_UNPACKED &&
                          at.rank == 2 && at.shape[1] == width && at.shape[0] == placed[i].rows &&
                          placed[i].first == sum;
        if (!fits) return 0;
        sum += placed[i].rows;
        if (n > 0 && parts[n - 1].format == at.format)
            parts[n - 1].rows += placed[i].rows;
        else
            parts[n++] = (weft_packed_rows){placed[i].rows, at.format};
    }
    return sum == rows ? n : 0;
}

/* Packs the layers of a tree whose modules are named after `prefix`. The table of positions is read as a
 * whole, so it is not packed. */
static weft_status pack_tree(const weft__published *p, const weft__tensors *tensors, const char *prefix,
                             weft_module *m) {
    char name[256];
    int64_t rows, width;
    weft_packed_rows parts[WEFT_PACKED_PARTS];
    if (weft__packing_of(m, &rows, &width) && strcmp(prefix, "wpe") != 0) {
        snprintf(name, sizeof name, "%s.weight", prefix);
        const int count = parts_of(p, tensors, name, rows, width, parts);
        if (count) WEFT_TRY(weft_module_pack(m, parts, count));
    }
    for (size_t i = 0; i < m->n_children; i++) {
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] ? "." : "", m->children[i]->name);
        WEFT_TRY(pack_tree(p, tensors, name, m->children[i]));
    }
    return WEFT_OK;
}

weft_status weft__published_pack(const weft__published *p, const char *path, weft_module *gpt) {
    weft__tensors *tensors;
    WEFT_TRY(weft__tensors_open(gpt->ctx, path, &tensors));
    const weft_status status = pack_tree(p, tensors, "", gpt);
    weft__tensors_close(tensors);
    return status;
}

/* ---- loading ---- */

const weft__packed_part *weft__packed_part_at(const weft__packing *packing, int64_t row, int64_t *first) {
    const weft__packed_part *part = packing->part;
    for (*first = 0; part < packing->part + packing->count - 1 && row >= *first + part->rows; part++)
        *first += part->rows;
    return part;
}

/* Copies the rows of a tensor to their places in a part whose first row is `first`. */
static void copy_rows(const weft__published *p, const weft__placed *placed, const weft__tensor_at *at,
                      int64_t first, uint8_t *to) {
    for (int64_t r = 0; r < placed->rows; r++)
        memcpy(to + (size_t)(weft__published_row(p, placed, r) - first) * at->row_bytes,
               at->blocks + (size_t)r * at->row_bytes, at->row_bytes);
}

static bool keeps_order(const weft__placed *placed) {
    return placed->part != WEFT__PART_BY_HEAD && placed->part != WEFT__PART_TURNED_QUERIES &&
           placed->part != WEFT__PART_TURNED_KEYS;
}

/* Fills a part. A tensor that is the whole part in its order is written as it is in the file. */
static weft_status load_part_of(const weft__published *p, const weft__tensors *tensors, const weft_module *m,
                                const weft__packed_part *part, int64_t first, const weft__placed *placed,
                                int count) {
    weft_tensor *buffer = m->parameters[part->parameter].variable;
    const size_t bytes = (size_t)buffer->numel;
    weft__tensor_at at;
    uint8_t *rows = NULL;
    for (int i = 0; i < count; i++) {
        const bool inside = placed[i].first >= first && placed[i].first < first + part->rows;
        if (!inside || !weft__published_find(p, tensors, &placed[i], &at)) continue;
        if (placed[i].rows == part->rows && keeps_order(&placed[i]))
            return weft_write(buffer, at.blocks, bytes);
        if (!rows && !(rows = weft__alloc(m->ctx, bytes)))
            return weft__fail_oom(m->ctx, bytes, "rows of a packed weight");
        copy_rows(p, &placed[i], &at, first, rows);
    }
    const weft_status status = rows ? weft_write(buffer, rows, bytes) : WEFT_OK;
    weft__free(m->ctx, rows);
    return status;
}

weft_status weft__packed_load(const weft__published *p, const weft__tensors *tensors, const weft_module *m,
                              const weft__placed *placed, int count) {
    int64_t rows, width, first = 0;
    const weft__packing *packing = weft__packing_of(m, &rows, &width);
    for (int i = 0; i < packing->count; i++) {
        const weft__packed_part *part = &packing->part[i];
        WEFT_TRY(load_part_of(p, tensors, m, part, first, placed, count));
        first += part->rows;
    }
    return WEFT_OK;
}
