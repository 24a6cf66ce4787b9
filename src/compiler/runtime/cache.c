/* The program cache. It holds 256 programs, found by a 128-bit key, and drops the least recently used one.
 * Must not know: what is in a program. Read next: program.h. */
#include <string.h>
#include "compiler/program.h"

enum { CACHE_LIMIT = 256, TABLE_SIZE = 1024 };

static weft_program **bucket(weft_compiler *compiler, weft_hash key) {
    return &compiler->table[key.a & (TABLE_SIZE - 1)];
}

static void unlink_program(weft_compiler *compiler, weft_program *program) {
    *(program->links.prev ? &program->links.prev->links.next : &compiler->newest) = program->links.next;
    *(program->links.next ? &program->links.next->links.prev : &compiler->oldest) = program->links.prev;
}

static void link_first(weft_compiler *compiler, weft_program *program) {
    program->links.prev = NULL;
    program->links.next = compiler->newest;
    *(compiler->newest ? &compiler->newest->links.prev : &compiler->oldest) = program;
    compiler->newest = program;
}

weft_program *weft__cache_find(weft_compiler *compiler, weft_hash key) {
    weft_program *program = compiler->newest; /* a loop asks for the same program again */
    if (!program || !weft__hash_equal(program->key, key)) {
        if (!compiler->table) return NULL;
        program = *bucket(compiler, key);
        while (program && !weft__hash_equal(program->key, key)) program = program->links.chain;
        if (!program) return NULL;
        unlink_program(compiler, program);
        link_first(compiler, program);
    }
    compiler->hits++;
    return program;
}

static void cache_drop(weft_compiler *compiler, weft_program *program) {
    weft_program **at = bucket(compiler, program->key);
    while (*at != program) at = &(*at)->links.chain;
    *at = program->links.chain;
    unlink_program(compiler, program);
    compiler->count--;
    weft__program_free(program);
}

bool weft__cache_add(weft_compiler *compiler, weft_program *program) {
    if (!compiler->table &&
        !(compiler->table = weft__array(program->ctx, TABLE_SIZE, sizeof *compiler->table)))
        return false;
    if (compiler->count == CACHE_LIMIT) cache_drop(compiler, compiler->oldest);
    weft_program **at = bucket(compiler, program->key);
    program->links.chain = *at;
    *at = program;
    link_first(compiler, program);
    compiler->count++;
    return true;
}

void weft__cache_free(weft_context *ctx, weft_compiler *compiler) {
    while (compiler->newest) cache_drop(compiler, compiler->newest);
    weft__free(ctx, compiler->table);
    compiler->table = NULL;
}

void weft__cache_note_compile(weft_context *ctx, const weft_walk *walk) {
    weft_compiler *compiler = ctx->compiler;
    compiler->compiles++;
    if (!walk || !walk->constant) return;
    size_t at = walk->loose.a % (sizeof compiler->constants / sizeof *compiler->constants);
    if (compiler->constants[at].loose != walk->loose.a) {
        compiler->constants[at].loose = walk->loose.a;
        compiler->constants[at].compiles = 0;
    }
    if (++compiler->constants[at].compiles == 8)
        weft__log(ctx, WEFT_LOG_WARNING,
                  "eight programs were compiled that differ only in constants (one is recorded at %s): a "
                  "number that changes "
                  "from step to step should be a weft_scalar",
                  walk->constant);
}
