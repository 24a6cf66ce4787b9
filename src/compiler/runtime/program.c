/* Compiles a program from a graph, binds its slots and runs it. Must not know: who asks for it. Read next:
 * passes/ir.h, passes/plan.c. */
#include <stdio.h>
#include <string.h>
#include "compiler/profile/profile.h"

/* ---- making ---- */

static void free_ir(weft_ir *ir) {
    weft__free(ir->ctx, ir->nodes);
    weft__free(ir->ctx, ir->views);
    weft__index_free(ir->ctx, &ir->view_index);
    weft__free(ir->ctx, ir->map.entries);
    weft__free(ir->ctx, ir->cse.table);
    weft__free(ir->ctx, ir->reads.list);
    weft__arena_free(&ir->arena);
}

static void log_text(weft_context *ctx, const weft_program *program, int what) {
    size_t size = weft__program_print(program, what, NULL, 0) + 1;
    char *text = weft__alloc(ctx, size);
    if (!text) return;
    weft__program_print(program, what, text, size);
    weft__log_lines(ctx, WEFT_LOG_DEBUG, text);
    weft__free(ctx, text);
}

static weft_status compile(weft_program *program, weft_tensor *const *outputs, size_t n_outputs,
                           const ir_sink *sinks, size_t n_sinks, const weft_walk *walk) {
    weft_context *ctx = program->ctx;
    weft_compiler *compiler = ctx->compiler;
    weft_ir ir = {.ctx = ctx, .device = ctx->device, .fuse = compiler->fuse};
    weft__arena_init(&ir.arena, ctx);
    program->sinks = weft__arena_alloc(&program->keep, (n_sinks + 1) * sizeof *sinks);
    if (!program->sinks) return weft__fail_oom(ctx, n_sinks * sizeof *sinks, "a program");
    if (n_sinks) memcpy(program->sinks, sinks, n_sinks * sizeof *sinks);
    program->n_sinks = n_sinks;
    weft_scope *scope = weft_scope_open(ctx); /* for the nodes of expansions */
    weft_status status =
        scope ? weft__ir_build(&ir, outputs, n_outputs, program->sinks, n_sinks) : WEFT_ERR_OOM;
    if (status == WEFT_OK) status = weft__ir_fuse(&ir);
    if (status == WEFT_OK) status = weft__plan(&ir, program, walk);
    for (size_t n = 0; n < ir.n_nodes; n++) program->n_nodes += ir.nodes[n].live;
    weft_scope_close(scope);
    free_ir(&ir);
    return status;
}

static weft_status check_epilogue(const weft_program *program, const weft_heavy_matmul *mm) {
    int64_t elements = mm->m * mm->n;
    for (int i = 0; i < mm->batch_rank; i++) elements *= mm->batch[i];
    if (!weft__kernel_is_epilogue(mm->epilogue, mm->product) || weft__kernel_rows(mm->epilogue) != elements ||
        mm->epilogue->args[mm->product].dtype != mm->out_dtype)
        return weft__fail(program->ctx, WEFT_ERR_INTERNAL, "%s is not an epilogue of its matmul",
                          mm->epilogue->name);
    return WEFT_OK;
}

/* Checks a command. Devices rely on these checks and do not repeat them. */
static weft_status program_check(const weft_program *program, const weft_command *command) {
    for (int k = 0; k < command->n_operands; k++)
        if (command->operands[k].slot < 0 || command->operands[k].slot >= program->commands.n_slots)
            return weft__fail(program->ctx, WEFT_ERR_INTERNAL, "%s: operand %d has no slot",
                              command->kernel ? command->kernel->name : "a command", k);
    const weft_kernel *kernel = weft__command_kernel(command);
    if (kernel && !command->kernel) WEFT_TRY(check_epilogue(program, &command->heavy.as.matmul));
    return kernel ? weft__kernel_verify(program->ctx, kernel) : WEFT_OK;
}

static weft_status prepare(weft_program *program) {
    weft_context *ctx = program->ctx;
    const weft_device_ops *ops = ctx->device->ops;
    for (int i = 0; i < program->commands.count; i++) {
        WEFT_TRY(program_check(program, &program->commands.list[i]));
        program->n_exchanges += program->commands.list[i].kind == WEFT_COMMAND_WAIT;
    }
    program->slots =
        weft__arena_alloc(&program->keep, (size_t)(program->commands.n_slots + 1) * sizeof *program->slots);
    if (!program->slots) return weft__fail_oom(ctx, sizeof *program->slots, "a program");
    weft_status status = weft__scalars_new(program);
    if (status == WEFT_OK) status = ops->build(ctx->device, &program->commands, &program->executable);
    return status == WEFT_ERR_OOM ? weft__memory_gone(ctx, program) : status;
}

weft_status weft__program_new(weft_context *ctx, weft_tensor *const *outputs, size_t n_outputs,
                              const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                              weft_program **out) {
    weft_program *program = weft__zalloc(ctx, sizeof *program);
    if (!program) return weft__fail_oom(ctx, sizeof *program, "a program");
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_COMPILE);
    program->ctx = ctx;
    weft__arena_init(&program->keep, ctx);
    weft_status status = compile(program, outputs, n_outputs, sinks, n_sinks, walk);
    if (status == WEFT_OK && (ctx->compiler->debug & DEBUG_PROGRAMS))
        log_text(ctx, program, ctx->compiler->debug);
    if (status == WEFT_OK) status = prepare(program);
    weft__cache_note_compile(ctx, walk);
    weft__profile_leave(ctx, span);
    if (status != WEFT_OK) {
        weft__program_free(program);
        return status;
    }
    *out = program;
    return WEFT_OK;
}

void weft__program_free(weft_program *program) {
    if (!program) return;
    weft_context *ctx = program->ctx;
    const weft_device_ops *ops = ctx->device->ops;
    if (program->executable) ops->executable_free(ctx->device, program->executable);
    weft__scalars_free(program);
    weft__arena_free(&program->keep);
    weft__free(ctx, program);
}

/* ---- running ---- */

/* Puts the buffers of leaves and outputs into their slots, and the scalars of this run into their row. */
static weft_status bind(weft_program *program, const weft_walk *walk, weft_storage *const *outputs) {
    weft_context *ctx = program->ctx;
    for (int i = 0; i < program->leaves.count; i++) {
        const program_leaf *leaf = &program->leaves.list[i];
        const weft_tensor *t = weft__program_leaf(program, walk, i);
        if (t->leaf == WEFT_LEAF_STORAGE) {
            if (!t->storage->buffer) WEFT_TRY(weft__memory_for(ctx, weft__storage_place(ctx, t->storage), t));
            program->slots[leaf->slot] = t->storage->buffer;
        } else {
            weft__scalar_write(ctx, t, ctx->random.step, program->scalars.now + leaf->offset);
        }
    }
    for (size_t i = 0; i < program->outputs.count; i++)
        program->slots[program->outputs.slots[i]] = outputs[i]->buffer;
    return WEFT_OK;
}

weft_status weft__report_fault(weft_context *ctx) {
    static const char *const texts[WEFT_FAULT_KINDS] = {
        [WEFT_FAULT_NONE] = "a bad value",
        [WEFT_FAULT_GATHER] = "gather: index out of range",
        [WEFT_FAULT_DIVIDE] = "div or mod: integer division by zero",
        [WEFT_FAULT_SCATTER] = "scatter_add: index out of range",
        [WEFT_FAULT_UPDATE] = "update: offset out of range",
        [WEFT_FAULT_EXCHANGE] = "",
    };
    weft_fault fault = {0};
    WEFT_TRY(ctx->device->ops->take_fault(ctx->device, &fault));
    if (!fault.set) return WEFT_OK;
    const weft_device *device = ctx->device;
    if (fault.kind == WEFT_FAULT_EXCHANGE)
        return device->linked ? device->linked->failed(device->linked)
                              : device->exchanger->failed(device->exchanger);
    const char *path = fault.path ? fault.path : "", *colon = *path ? ": " : "", *text = texts[fault.kind];
    const long long value = fault.value, last = fault.bound - 1;
    char element[48] = ""; /* stays empty for a value that a kernel computed */
    if (fault.element >= 0) snprintf(element, sizeof element, " (element %lld)", (long long)fault.element);
    if (fault.kind == WEFT_FAULT_DIVIDE)
        return weft__fail(
            ctx, WEFT_ERR_NUMERIC,
            "%s%s%s%s; nothing was updated; keep zeros out of the divisor, for example with weft_where", path,
            colon, text, element);
    if (last < 0) /* an index into an empty dimension */
        return weft__fail(ctx, WEFT_ERR_INDEX, "%s%s%s%s; nothing was updated", path, colon, text, element);
    return weft__fail(ctx, WEFT_ERR_INDEX, "%s%s%s: %lld is not in 0..%lld%s; nothing was updated", path,
                      colon, text, value, last, element);
}

/* Runs the program: in one submission, or run by run if each run is profiled or logged. */
static weft_status program_run(weft_program *program, weft_rows rows, int times) {
    weft_device *device = program->ctx->device;
    weft_compiler *compiler = program->ctx->compiler;
    if (rows.bytes)
        return device->ops->extras->run_rows(device, program->executable, program->slots, rows, times);
    if (!compiler->profile && !(compiler->debug & DEBUG_LAUNCH))
        return device->ops->run(device, program->executable, program->slots, times);
    for (int i = 0; i < times; i++)
        WEFT_TRY(compiler->profile ? weft__profile_run(compiler->profile, program)
                                   : weft__program_run_aloud(program));
    return WEFT_OK;
}

/* Waits for the exchanges of a linked device. submitted: whether the program was submitted. If the link was
 * given up, it also takes the fault by which the device has skipped updates. */
static weft_status finish_exchanges(const weft_program *program, weft_status submitted) {
    weft_linked *linked = program->ctx->device->linked;
    if (!program->n_exchanges || !linked) return submitted;
    const weft_status status = submitted == WEFT_OK ? linked->ended(linked, program->n_exchanges) : submitted;
    if (status != WEFT_OK && !linked->link) WEFT_TRY(weft__report_fault(program->ctx));
    return status;
}

weft_status weft__program_run(weft_program *program, const weft_walk *walk, weft_storage *const *outputs,
                              const weft__ahead *ahead, int times) {
    weft_context *ctx = program->ctx;
    weft_rows rows = {0};
    WEFT_TRY(weft__device_usable(ctx->device));
    WEFT_TRY(bind(program, walk, outputs));
    WEFT_TRY(weft__arena_reserve(program));
    program->slots[SLOT_ARENA] = ctx->compiler->arena;
    program->slots[SLOT_SCALARS] = program->scalars.buffer;
    if (program->scalars.bytes) WEFT_TRY(weft__scalars_send(program, walk, ahead, times, &rows));
    ctx->compiler->runs += (uint64_t)times;
    ctx->device->submissions++;
    const bool zones = ctx->compiler->debug & DEBUG_MEMORY;
    if (zones) WEFT_TRY(weft__zones_fill(program));
    const weft_status status = finish_exchanges(program, program_run(program, rows, times));
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? weft__memory_gone(ctx, program) : status;
    if (zones) WEFT_TRY(weft__zones_check(program));
    return ctx->device->asynchronous ? WEFT_OK : weft__report_fault(ctx);
}
