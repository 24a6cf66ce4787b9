/* Finds whether a model has a head of its own although config.json ties it to the token table. As in
 * transformers, the head is tied unless the files have both and they differ. Must not know: modules.
 * Read next: load.c. */
#include <string.h>

#include "published/packed.h"

#define PIECE ((int64_t)1 << 18) /* numbers of a table that are compared at once, about */

/* Compares two tensors of the same shape, as f32. */
static weft_status compare_tables(weft_context *ctx, weft__tensors *tensors, const weft__tensor_at at[2],
                                  bool *same) {
    const int64_t rows = at[0].shape[0], width = at[0].shape[1],
                  piece = weft__smaller(rows, PIECE / (width + 1) + 1);
    const size_t most = at[0].row_bytes > at[1].row_bytes ? at[0].row_bytes : at[1].row_bytes;
    void *room = weft__array(ctx, (size_t)piece, most + 1);
    float *values = weft__array(ctx, (size_t)piece, 2 * (size_t)width * sizeof *values + 1);
    weft_status status =
        room && values ? WEFT_OK : weft__fail_oom(ctx, (size_t)piece * most, "rows of a head");
    *same = true;
    for (int64_t i = 0; status == WEFT_OK && *same && i < rows; i += piece) {
        const int64_t n = weft__smaller(piece, rows - i);
        for (int k = 0; status == WEFT_OK && k < 2; k++)
            status = weft__tensors_rows(tensors, &at[k], i, n, room, values + k * n * width);
        *same = memcmp(values, values + n * width, (size_t)(n * width) * sizeof *values) == 0;
    }
    weft__free(ctx, room);
    weft__free(ctx, values);
    return status;
}

static weft_status find_head(weft_context *ctx, weft__tensors *tensors, weft__published *p) {
    static const char *const names[2] = {"wte.weight", "lm_head.weight"};
    weft__placed placed[WEFT__PARTS];
    weft__tensor_at at[2];
    for (int k = 0; k < 2; k++)
        if (weft__published_names_of(p, names[k], p->gpt.vocab, placed) != 1 ||
            !weft__published_find(p, tensors, placed, &at[k]))
            return WEFT_OK;
    bool same = at[0].rank == 2 && at[1].rank == 2 && at[0].readable && at[1].readable &&
                memcmp(at[0].shape, at[1].shape, 2 * sizeof *at[0].shape) == 0;
    if (same) WEFT_TRY(compare_tables(ctx, tensors, at, &same));
    p->gpt.untied_head = !same;
    return WEFT_OK;
}

weft_status weft__published_untie(weft_context *ctx, const char *folder, weft__published *p) {
    weft__tensors *tensors;
    if (p->encodes || p->gpt.untied_head) return WEFT_OK;
    weft_status status = weft__tensors_open(ctx, folder, &tensors);
    if (status == WEFT_OK) status = find_head(ctx, tensors, p);
    weft__tensors_close(tensors);
    return status == WEFT_ERR_OOM ? status : WEFT_OK;
}
