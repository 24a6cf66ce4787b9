/* A JSON schema. If it is accepted, a text is drawn along its grammar: there is always a byte that goes on,
 * or the text is complete. A complete text is JSON. */
#include <jansson.h>
#include <weft/grammar.h>

#include "bounded.h"
#include "text/grammar/automaton.h"

enum { BYTES = 120 };

static void draw(weft_context *ctx, const weft_grammar *grammar, uint64_t seed) {
    static weft__stacks stacks[2];
    weft__automaton a;
    char text[BYTES];
    int n = 0;
    weft__automaton_begin(&a, ctx, grammar, &stacks[0]);
    for (; n < BYTES; n++) {
        const weft__stacks *at = &stacks[n % 2];
        weft__stacks *to = &stacks[(n + 1) % 2];
        const bool complete = weft__automaton_complete(&a, at);
        const uint32_t bits = weft__random_u32(seed, 0, 0, (uint64_t)n);
        int tries = 0;
        if (complete) {
            json_error_t error;
            json_t *value = json_loadb(text, (size_t)n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
            if (!value) abort();
            json_decref(value);
        }
        unsigned char byte =
            (unsigned char)(bits % 3 ? "\"]}"[bits / 3 % 3] : bits >> 8); /* ends are frequent */
        for (; tries < 256 && !weft__automaton_step(&a, at, byte, to); tries++) byte++;
        if (tries == 256 && !complete) abort();
        if (tries == 256 || a.failed) break;
        text[n] = (char)byte;
        if (bits % 5 == 0) weft__automaton_tidy(&a, to);
    }
    weft__automaton_end(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bounded b;
    weft_context ctx = bounded_context(&b, ((size_t)16 << 20) + 1000 * size);
    weft_grammar *grammar;
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_bytes(&hash, data, size);
    const weft_status status = weft_grammar_json_schema(&ctx, (const char *)data, size, "input", &grammar);
    if (status == WEFT_OK)
        for (uint64_t i = 0; i < 3; i++) draw(&ctx, grammar, hash.a + i);
    weft_grammar_free(grammar);
    bounded_time(&b, size);
    bounded_check(&b, &ctx, status);
    return 0;
}
