/* Prints a kernel as a module: bindings, structs, workgroup memory, functions, the entry point.
 * Read next: wgsl.c. */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

enum { NUMBER_BYTES_MOST = 65536 - 4 * WEFT_WGSL_NUMBERS_AT }; /* of a binding of uniforms */

static int shift_of(const weft_wgsl_type *target) {
    const weft_wgsl_type *flat = weft__wgsl_flat(target);
    const int bytes = flat->kind >= WEFT_WGSL_FOUR ? 4 : weft__wgsl_size(flat);
    return bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
}

static const char *word_of(weft_wgsl_emitter *e, int word) {
    return weft__wgsl_text(e->run, "w_words[%d].%c", word / 4, "xyzw"[word % 4]);
}

/* Makes parameter `index` of the kernel known. Returns whether it is a pointer. */
static bool bind_parameter(weft_wgsl_emitter *e, const weft_wgsl_function *f, int index) {
    const weft_wgsl_symbol *s = f->parameters[index];
    weft_wgsl_meaning *m = weft__wgsl_meaning_of(e, s);
    m->bound = true;
    m->pointer = (weft_wgsl_value){.type = s->type, .line = f->line};
    if (s->type->kind == WEFT_WGSL_STRUCT && index == f->n_parameters - 1) {
        m->pointer.place = true;
        m->pointer.base = (weft_wgsl_base){.kind = WEFT_WGSL_IN_NUMBERS};
        e->number_bytes = weft__wgsl_size(s->type);
        if (e->number_bytes > NUMBER_BYTES_MOST)
            weft__wgsl_fail(e->run, f->line, "the struct of numbers has more than %d bytes",
                            NUMBER_BYTES_MOST);
        return false;
    }
    if (s->type->kind != WEFT_WGSL_POINTER || s->type->space != WEFT_WGSL_GLOBAL)
        weft__wgsl_fail(
            e->run, f->line,
            "parameter %s of a kernel is neither a pointer to a buffer nor the struct of numbers at the end",
            s->name->text);
    if (index >= WEFT_WGSL_POINTERS)
        weft__wgsl_fail(e->run, f->line, "a kernel has more than %d pointers", WEFT_WGSL_POINTERS);
    const int shift = shift_of(s->type->of);
    const char *word = word_of(e, WEFT_WGSL_GROUP_WORDS + index);
    if (shift) word = weft__wgsl_text(e->run, "%s >> %du", word, shift);
    weft__wgsl_line(e, "%s %s = i32(%s);", s->changed ? "var" : "let", m->name, word);
    m->pointer.base = (weft_wgsl_base){.kind = WEFT_WGSL_IN_BUFFER, .pointer = index};
    m->pointer.offset = (weft_wgsl_offset){.text = m->name, .level = WEFT_WGSL_L_PRIMARY};
    return true;
}

/* Prints the body of the kernel, and all that it needs. Returns the number of its pointers. */
static int walk(weft_wgsl_emitter *e, const weft_wgsl_function *kernel, weft_wgsl_buffer *body) {
    int n = 0;
    e->out = body;
    e->indent = 1;
    e->result = kernel->type;
    if (kernel->type->kind != WEFT_WGSL_VOID)
        weft__wgsl_fail(e->run, kernel->line, "a kernel returns a value");
    for (int i = 0; i < kernel->n_parameters; i++) n += bind_parameter(e, kernel, i);
    for (const weft_wgsl_node *s = kernel->body->list; s; s = s->next) weft__wgsl_statement(e, s);
    return n;
}

static void put_bindings(weft_wgsl_emitter *e, weft_wgsl_buffer *to, int n_pointers) {
    bool used[WEFT_WGSL_POINTERS] = {false}, written[WEFT_WGSL_POINTERS] = {false};
    for (int i = 0; i < n_pointers; i++) {
        const int b = e->binding ? e->binding[i] : i;
        used[b] = true;
        written[b] = written[b] || e->written[i];
    }
    for (int b = 0; b < WEFT_WGSL_POINTERS; b++)
        if (used[b])
            weft__wgsl_put(e, to, "@group(0) @binding(%d) var<storage, %s> buffer%d: array<%s>;\n", b,
                           written[b] ? "read_write" : "read", b, e->atomic[b] ? "atomic<u32>" : "u32");
    weft__wgsl_put(e, to, "@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, %d>;\n",
                   (WEFT_WGSL_NUMBERS_AT * 4 + e->number_bytes + 15) / 16);
}

/* Work-groups are numbered linearly, since the launch may have folded them. */
static void put_entry(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const weft_wgsl_function *kernel) {
    weft__wgsl_put(
        e, to,
        "@compute @workgroup_size(%d, %d, %d)\n"
        "fn main(@builtin(workgroup_id) w_id: vec3<u32>, @builtin(num_workgroups) w_all: vec3<u32>,\n"
        "        @builtin(local_invocation_id) w_local: vec3<u32>) {\n"
        "    let w_number = w_id.x + w_all.x * (w_id.y + w_all.y * w_id.z);\n"
        "    let w_wide = w_words[0].x;\n"
        "    let w_high = w_words[0].y;\n"
        "    if (w_number >= w_wide * w_high * w_words[0].z) {\n"
        "        return;\n"
        "    }\n",
        kernel->items[0], kernel->items[1], kernel->items[2]);
    if (e->needs.group)
        weft__wgsl_put(
            e, to,
            "    let w_group = vec3<i32>(vec3<u32>(w_number %% w_wide, w_number / w_wide %% w_high,\n"
            "                                     w_number / (w_wide * w_high)));\n");
    if (e->needs.item) weft__wgsl_put(e, to, "    let w_item = vec3<i32>(w_local);\n");
}

static void module_put_text(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const weft_wgsl_buffer *from) {
    if (from->length) weft__wgsl_put(e, to, "%s", from->text);
}

const char *weft__wgsl_module(weft_wgsl_run *run, const weft_wgsl_tree *tree,
                              const weft_wgsl_function *kernel, const int *binding, weft_wgsl_kernel *facts) {
    weft_wgsl_emitter first = {.run = run, .tree = tree, .binding = binding, .copies = 1}, second = first;
    weft_wgsl_buffer body = {0}, to = {0};
    for (int d = 0; d < 3; d++)
        if (kernel->items[d] < 1 || kernel->items[d] > 1024)
            weft__wgsl_fail(run, kernel->line, "kernel %s does not say how many work-items a work-group has",
                            kernel->name->text);
    walk(&first, kernel, &body); /* finds which buffers and variables are atomic */
    memcpy(second.atomic, first.atomic, sizeof second.atomic);
    second.atomic_variables = first.atomic_variables;
    body = (weft_wgsl_buffer){0};
    const int n_pointers = walk(&second, kernel, &body);
    *facts = (weft_wgsl_kernel){.name = kernel->name->text,
                                .n_pointers = n_pointers,
                                .number_bytes = second.number_bytes,
                                .local_bytes = second.local_bytes};
    memcpy(facts->written, second.written, sizeof facts->written);
    memcpy(facts->items, kernel->items, sizeof facts->items);
    put_bindings(&second, &to, n_pointers);
    module_put_text(&second, &to, &second.variables);
    module_put_text(&second, &to, &second.structs);
    module_put_text(&second, &to, &second.functions);
    put_entry(&second, &to, kernel);
    module_put_text(&second, &to, &body);
    weft__wgsl_put(&second, &to, "}\n");
    return to.text;
}
