/* The scalars of a program: numbers that change from run to run, such as the learning rate and the keys of
 * random numbers. They lie in rows, and a run reads one row.
 *
 * Usually that is row 0, which is sent before the run if it has changed. Where a run is one launch, that
 * would double its submissions. Such programs can read any row (docs/design/020-fused-launches.md), and get
 * the rows of WEFT_ROWS runs at once. These are foretold. Each run compares its scalars with its row, and if
 * they differ, all rows are foretold and sent again. Must not know: who foretells. Read next: program.c,
 * optim/step.c. */
#include <string.h>
#include "compiler/profile/profile.h"

enum { UNUSED_MOST = 4 };

weft_status weft__scalars_new(weft_program *program) {
    weft_context *ctx = program->ctx;
    program_scalars *s = &program->scalars;
    const size_t row = s->bytes ? s->bytes : 16,
                 bytes = row * (weft__device_has_rows(ctx->device) ? WEFT_ROWS : 1);
    s->now = weft__arena_alloc(&program->keep, row);
    s->rows = weft__arena_alloc(&program->keep, bytes);
    if (!s->now || !s->rows) return weft__fail_oom(ctx, bytes, "a program");
    return ctx->device->ops->buffer_new(ctx->device, bytes, &s->buffer);
}

void weft__scalars_free(weft_program *program) {
    if (program->scalars.buffer)
        program->ctx->device->ops->buffer_free(program->ctx->device, program->scalars.buffer);
}

void weft__random_write(const weft_context *ctx, const weft_tensor *t, uint64_t step, char *to) {
    uint32_t words[8] = {0};
    weft__philox_key(ctx->random.seed, t->value.random.stream, words);
    words[2] = (uint32_t)step;
    words[3] = (uint32_t)(step >> 32);
    words[4] = (uint32_t)t->value.random.first;
    words[5] = (uint32_t)(t->value.random.first >> 32);
    memcpy(to, words, sizeof words);
}

/* ---- sending ---- */

static bool is_sent(const program_scalars *s, int row) {
    return row < s->sent && memcmp(s->rows + (size_t)row * s->bytes, s->now, s->bytes) == 0;
}

static weft_status send(weft_program *program, int rows) {
    program_scalars *s = &program->scalars;
    s->sent = 0;
    WEFT_TRY(program->ctx->hooks.upload(program->ctx, s->buffer, 0, s->rows, (size_t)rows * s->bytes));
    s->sent = rows;
    return WEFT_OK;
}

static weft_status send_first(weft_program *program) {
    program_scalars *s = &program->scalars;
    if (is_sent(s, 0)) return WEFT_OK;
    memcpy(s->rows, s->now, s->bytes);
    return send(program, 1);
}

/* Writes the row of the run that is `runs` runs after the next one. */
static void write_row(const weft_program *program, const weft_walk *walk, int runs, char *to) {
    const weft_context *ctx = program->ctx;
    for (int i = 0; i < program->leaves.count; i++) {
        const weft_tensor *t = weft__program_leaf(program, walk, i);
        if (t->leaf != WEFT_LEAF_STORAGE)
            weft__scalar_write(ctx, t, ctx->random.step + (uint64_t)runs,
                               to + program->leaves.list[i].offset);
    }
}

static weft_status foretell(weft_program *program, const weft_walk *walk, const weft__ahead *ahead,
                            int rows) {
    program_scalars *s = &program->scalars;
    weft_status status = WEFT_OK;
    s->sent = 0;
    for (int i = 0; i < rows && status == WEFT_OK; i++) {
        status = ahead->set(ahead->user, i);
        write_row(program, walk, i, s->rows + (size_t)i * s->bytes);
    }
    const weft_status restored = ahead->set(ahead->user, 0);
    WEFT_TRY(status);
    WEFT_TRY(restored);
    return send(program, rows);
}

/* Returns whether the device can read any row in the next run. Runs that are timed or logged read row 0. */
static bool reads_rows(const weft_program *program) {
    const weft_context *ctx = program->ctx;
    return !ctx->compiler->profile && !(ctx->compiler->debug & DEBUG_LAUNCH) &&
           weft__device_reads_rows(ctx->device, program->executable);
}

int weft__run_ahead(const weft_program *program) { return reads_rows(program) ? WEFT_ROWS : 1; }

weft_status weft__scalars_send(weft_program *program, const weft_walk *walk, const weft__ahead *ahead,
                               int times, weft_rows *rows) {
    program_scalars *s = &program->scalars;
    if (s->buffer->host) {
        memcpy(s->buffer->host, s->now, s->bytes);
        return WEFT_OK;
    }
    if (!ahead || !reads_rows(program)) return send_first(program);
    const bool one = times == 1, right = one && is_sent(s, s->next);
    if (one && !right && is_sent(s, 0)) return WEFT_OK;
    if (one && !right) {
        s->unused = s->sent > 1 && s->next == 1 ? s->unused + 1 : 0;
        if (s->unused >= UNUSED_MOST) return send_first(program);
    }
    if (!right) {
        WEFT_TRY(foretell(program, walk, ahead, one ? WEFT_ROWS : times));
        s->next = 0;
    }
    *rows = (weft_rows){s->next, s->bytes};
    s->next += times;
    return WEFT_OK;
}
