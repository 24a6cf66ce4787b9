/* Places in memory: buffers of words, workgroup memory, variables, the struct of numbers. Reads and writes
 * them.
 *
 * Elements of 8 and 16 bits share a word with others, which other work-items may write at the same time. So
 * they are written by an atomic exclusive or, which changes only the bits of the element. All words of such a
 * buffer are atomic. Read next: emit_expression.c. */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

/* ---- units ---- */

/* Returns how many units of an offset an element takes. */
int weft__wgsl_stride(weft_wgsl_base_kind kind, const weft_wgsl_type *type) {
    if (kind == WEFT_WGSL_IN_NUMBERS) return weft__wgsl_size(type);
    if (kind != WEFT_WGSL_IN_BUFFER) return weft__wgsl_flat_count(type);
    switch (type->kind) {
    case WEFT_WGSL_ARRAY: return type->count * weft__wgsl_stride(kind, type->of);
    case WEFT_WGSL_FOUR: return 4;
    case WEFT_WGSL_STRUCT:
    case WEFT_WGSL_UNION: return weft__wgsl_size(type) / 4;
    default: return 1;
    }
}

/* Returns the bytes of a unit of an offset. */
int weft__wgsl_unit(weft_wgsl_base_kind kind, const weft_wgsl_type *type) {
    const weft_wgsl_type *flat = weft__wgsl_flat(type);
    const bool members = flat->kind == WEFT_WGSL_STRUCT || flat->kind == WEFT_WGSL_UNION;
    if (kind == WEFT_WGSL_IN_NUMBERS) return 1;
    return members && kind == WEFT_WGSL_IN_BUFFER ? 4 : weft__wgsl_size(flat);
}

bool weft__wgsl_same_base(const weft_wgsl_base *a, const weft_wgsl_base *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == WEFT_WGSL_IN_BUFFER) return a->pointer == b->pointer;
    return a->kind == WEFT_WGSL_IN_NUMBERS || (a->root && b->root && !strcmp(a->root, b->root));
}

/* ---- buffers ---- */

static int binding_of(const weft_wgsl_emitter *e, const weft_wgsl_value *place) {
    return e->binding ? e->binding[place->base.pointer] : place->base.pointer;
}

static const char *word_text(weft_wgsl_emitter *e, int binding, const char *index) {
    return weft__wgsl_text(e->run, e->atomic[binding] ? "atomicLoad(&buffer%d[%s])" : "buffer%d[%s]", binding,
                           index);
}

static const char *short_name(const weft_wgsl_type *type) {
    switch (type->kind) {
    case WEFT_WGSL_I8: return "i8";
    case WEFT_WGSL_I16: return "i16";
    case WEFT_WGSL_U16: return "u16";
    case WEFT_WGSL_F16: return "f16";
    case WEFT_WGSL_I64:
    case WEFT_WGSL_U64: return "u64";
    default: return "u8";
    }
}

/* Writes the function that reads element i of a type of 8 or 16 bits, or of 64 bits. */
static const char *reader_of(weft_wgsl_emitter *e, const weft_wgsl_type *type, int binding) {
    const char *name = weft__wgsl_text(e->run, "get_%s_buffer%d", short_name(type), binding);
    if (!weft__wgsl_once(e, &e->helpers, name)) return name;
    if (weft__wgsl_is_64(type)) {
        weft__wgsl_put(e, &e->functions, "fn %s(i: i32) -> vec2<u32> {\n    return vec2<u32>(%s, %s);\n}\n",
                       name, word_text(e, binding, "2*i"), word_text(e, binding, "2*i + 1"));
        return name;
    }
    const bool byte = weft__wgsl_size(type) == 1,
               keeps = type->kind == WEFT_WGSL_I8 || type->kind == WEFT_WGSL_I16;
    const char *bits =
        weft__wgsl_text(e->run, "%s >> (u32(i & %d) << %du)",
                        word_text(e, binding, byte ? "i >> 2u" : "i >> 1u"), byte ? 3 : 1, byte ? 3 : 4);
    const int shift = byte ? 24 : 16;
    if (keeps)
        weft__wgsl_put(e, &e->functions, "fn %s(i: i32) -> i32 {\n    return (i32(%s) << %du) >> %du;\n}\n",
                       name, bits, shift, shift);
    else if (type->kind == WEFT_WGSL_F16)
        weft__wgsl_put(e, &e->functions, "fn %s(i: i32) -> f32 {\n    return %s((%s) & 65535u);\n}\n", name,
                       weft__wgsl_help(e, "wf_f32_of_f16"), bits);
    else
        weft__wgsl_put(e, &e->functions, "fn %s(i: i32) -> i32 {\n    return i32((%s) & %du);\n}\n", name,
                       bits, byte ? 255 : 65535);
    return name;
}

/* Writes the function that stores an element of 8 or 16 bits. Nobody else writes its bits, so they are known.
 */
static const char *writer_of(weft_wgsl_emitter *e, const weft_wgsl_type *type, int binding) {
    const bool byte = weft__wgsl_size(type) == 1, half = type->kind == WEFT_WGSL_F16;
    const char *name = weft__wgsl_text(e->run, "put_%s_buffer%d",
                                       half   ? "f16"
                                       : byte ? "u8"
                                              : "u16",
                                       binding);
    e->atomic[binding] = true;
    if (!weft__wgsl_once(e, &e->helpers, name)) return name;
    const char *bits =
        half ? weft__wgsl_text(e->run, "%s(v)", weft__wgsl_help(e, "wf_f16_of_f32")) : "u32(v)";
    weft__wgsl_put(e, &e->functions,
                   "fn %s(i: i32, v: %s) {\n"
                   "    let at = i >> %du;\n"
                   "    let shift = u32(i & %d) << %du;\n"
                   "    let before = atomicLoad(&buffer%d[at]);\n"
                   "    atomicXor(&buffer%d[at], (before ^ (%s << shift)) & (%du << shift));\n"
                   "}\n",
                   name, half ? "f32" : "i32", byte ? 2 : 1, byte ? 3 : 1, byte ? 3 : 4, binding, binding,
                   bits, byte ? 255 : 65535);
    return name;
}

/* The value of a word with the bits of a type of 32 bits. */
static weft_wgsl_value from_word(weft_wgsl_emitter *e, const weft_wgsl_type *type, const char *word,
                                 int line) {
    switch (type->kind) {
    case WEFT_WGSL_U32: break;
    case WEFT_WGSL_I32:
    case WEFT_WGSL_INDEX: word = weft__wgsl_text(e->run, "i32(%s)", word); break;
    case WEFT_WGSL_F32: word = weft__wgsl_text(e->run, "bitcast<f32>(%s)", word); break;
    default:
        weft__wgsl_fail(e->run, line, "%s cannot be read from a buffer", weft__wgsl_c_name(e->run, type));
    }
    return weft__wgsl_value(type, word, WEFT_WGSL_L_PRIMARY, line);
}

static weft_wgsl_value load_buffer(weft_wgsl_emitter *e, const weft_wgsl_value *place) {
    const weft_wgsl_type *type = place->type;
    const int binding = binding_of(e, place);
    const char *at = weft__wgsl_offset_text(e, place->offset);
    weft_wgsl_value v;
    if (type->kind == WEFT_WGSL_INDEX)
        weft__wgsl_fail(e->run, place->line, "a buffer of w_index is not supported");
    if (weft__wgsl_size(type) == 4 && type->kind < WEFT_WGSL_FOUR) {
        v = from_word(e, type, word_text(e, binding, at), place->line);
    } else if (weft__wgsl_is_number(type) && type->kind != WEFT_WGSL_F64) {
        const weft_wgsl_type *as = type->kind == WEFT_WGSL_F16 ? weft__wgsl_type(WEFT_WGSL_F32) : type;
        v = weft__wgsl_value(as, weft__wgsl_text(e->run, "%s(%s)", reader_of(e, type, binding), at),
                             WEFT_WGSL_L_PRIMARY, place->line);
        if (type->kind == WEFT_WGSL_BOOL) v = weft__wgsl_convert(e, v, type);
    } else {
        weft__wgsl_fail(e->run, place->line, "%s cannot be read from a buffer",
                        weft__wgsl_c_name(e->run, type));
    }
    v.heavy = true;
    return v;
}

static const char *place_bits_of(weft_wgsl_emitter *e, const weft_wgsl_value *v) {
    switch (v->type->kind) {
    case WEFT_WGSL_U32: return v->text;
    case WEFT_WGSL_F32: return weft__wgsl_text(e->run, "bitcast<u32>(%s)", v->text);
    default: return weft__wgsl_text(e->run, "u32(%s)", v->text);
    }
}

static void store_word(weft_wgsl_emitter *e, int binding, const char *at, const char *bits) {
    weft__wgsl_line(e, e->atomic[binding] ? "atomicStore(&buffer%d[%s], %s);" : "buffer%d[%s] = %s;", binding,
                    at, bits);
}

static void store_buffer(weft_wgsl_emitter *e, const weft_wgsl_value *place, weft_wgsl_value v) {
    const weft_wgsl_type *type = place->type;
    const int binding = binding_of(e, place);
    e->written[place->base.pointer] = true;
    if (weft__wgsl_is_64(type)) {
        const char *at = weft__wgsl_offset_text(e, weft__wgsl_offset_times(e, place->offset, 2));
        v = weft__wgsl_keep(e, v);
        store_word(e, binding, at, weft__wgsl_text(e->run, "%s.x", v.text));
        weft_wgsl_offset high = weft__wgsl_offset_times(e, place->offset, 2);
        high.constant++;
        store_word(e, binding, weft__wgsl_offset_text(e, high), weft__wgsl_text(e->run, "%s.y", v.text));
    } else if (weft__wgsl_size(type) == 4 && type->kind < WEFT_WGSL_FOUR && type->kind != WEFT_WGSL_INDEX) {
        store_word(e, binding, weft__wgsl_offset_text(e, place->offset), place_bits_of(e, &v));
    } else if (weft__wgsl_size(type) < 4 && weft__wgsl_is_number(type)) {
        const char *name = writer_of(e, type, binding);
        if (type->kind == WEFT_WGSL_BOOL) v = weft__wgsl_convert(e, v, weft__wgsl_type(WEFT_WGSL_I32));
        weft__wgsl_line(e, "%s(%s, %s);", name, weft__wgsl_offset_text(e, place->offset), v.text);
    } else {
        weft__wgsl_fail(e->run, place->line, "%s cannot be stored in a buffer",
                        weft__wgsl_c_name(e->run, type));
    }
}

/* ---- the struct of numbers ---- */

static const char *number_word(weft_wgsl_emitter *e, weft_wgsl_offset at, int more) {
    at.constant += more;
    if (!at.text) {
        const int word = WEFT_WGSL_NUMBERS_AT + (int)(at.constant / 4);
        return weft__wgsl_text(e->run, "w_words[%d].%c", word / 4, "xyzw"[word % 4]);
    }
    at.constant += 4 * WEFT_WGSL_NUMBERS_AT;
    return weft__wgsl_text(e->run, "%s(%s)", weft__wgsl_help(e, "wf_word"), weft__wgsl_offset_text(e, at));
}

static weft_wgsl_value load_numbers(weft_wgsl_emitter *e, const weft_wgsl_value *place);

static void put_numbers(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const weft_wgsl_value *place);

/* Prints the part of a struct or an array that is `at` bytes behind its beginning. */
static void put_part(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const weft_wgsl_value *place,
                     const weft_wgsl_type *type, int at) {
    weft_wgsl_value part = *place;
    part.type = type;
    part.offset.constant += at;
    if (place->type->kind == WEFT_WGSL_ARRAY && type->kind == WEFT_WGSL_ARRAY) /* these are flat */
        put_numbers(e, to, &part);
    else
        weft__wgsl_put(e, to, "%s", load_numbers(e, &part).text);
}

/* Prints the elements of an array or the members of a struct, as arguments of its constructor. */
static void put_numbers(weft_wgsl_emitter *e, weft_wgsl_buffer *to, const weft_wgsl_value *place) {
    const weft_wgsl_type *type = place->type;
    for (int i = 0; type->kind == WEFT_WGSL_ARRAY && i < type->count; i++) {
        if (i) weft__wgsl_put(e, to, ", ");
        put_part(e, to, place, type->of, i * weft__wgsl_size(type->of));
    }
    for (const weft_wgsl_field *f = type->kind == WEFT_WGSL_STRUCT ? type->fields : NULL; f; f = f->next) {
        if (f != type->fields) weft__wgsl_put(e, to, ", ");
        put_part(e, to, place, f->type, f->offset);
    }
}

static weft_wgsl_value load_numbers(weft_wgsl_emitter *e, const weft_wgsl_value *place) {
    const weft_wgsl_type *type = place->type;
    if (type->kind == WEFT_WGSL_STRUCT || type->kind == WEFT_WGSL_ARRAY) {
        weft_wgsl_buffer text = {0};
        weft__wgsl_put(e, &text, "%s(", weft__wgsl_type_text(e, type, place->line));
        put_numbers(e, &text, place);
        weft__wgsl_put(e, &text, ")");
        return weft__wgsl_value(type, text.text, WEFT_WGSL_L_PRIMARY, place->line);
    }
    if (weft__wgsl_is_64(type))
        return weft__wgsl_value(type,
                                weft__wgsl_text(e->run, "vec2<u32>(%s, %s)", number_word(e, place->offset, 0),
                                                number_word(e, place->offset, 4)),
                                WEFT_WGSL_L_PRIMARY, place->line);
    return from_word(e, type, number_word(e, place->offset, 0), place->line);
}

/* ---- variables ---- */

/* The text of a scalar of a variable. */
static const char *variable_text(weft_wgsl_emitter *e, const weft_wgsl_value *place, int more) {
    const weft_wgsl_type *leaf = place->base.leaf;
    weft_wgsl_offset at = place->offset;
    at.constant += more;
    if (leaf->kind == WEFT_WGSL_ARRAY)
        return weft__wgsl_text(e->run, "%s[%s]", place->base.root, weft__wgsl_offset_text(e, at));
    if (leaf->kind == WEFT_WGSL_FOUR && place->type->kind != WEFT_WGSL_FOUR) {
        if (!at.text && at.constant >= 0 && at.constant < 4 && !weft__wgsl_is_64(leaf->of))
            return weft__wgsl_text(e->run, "%s.%c", place->base.root, "xyzw"[at.constant]);
        return weft__wgsl_text(e->run, "%s[%s]", place->base.root, weft__wgsl_offset_text(e, at));
    }
    if (at.text || at.constant)
        weft__wgsl_fail(e->run, place->line, "a pointer leaves the variable %s", place->base.root);
    return place->base.root;
}

/* Can the scalars of a variable be those of the type? Structs in local memory are one variable for each
 * member. */
static void check_variable(weft_wgsl_emitter *e, const weft_wgsl_value *place) {
    const weft_wgsl_type *flat = weft__wgsl_flat(place->base.leaf), *wanted = weft__wgsl_flat(place->type);
    if (place->base.kind == WEFT_WGSL_IN_LOCAL && flat->kind == WEFT_WGSL_STRUCT)
        weft__wgsl_fail(e->run, place->line, "a struct in local memory is only supported by its members");
    if (flat->kind != wanted->kind || (flat->kind == WEFT_WGSL_STRUCT && flat != wanted))
        weft__wgsl_fail(e->run, place->line, "%s is accessed as %s", weft__wgsl_c_name(e->run, flat),
                        weft__wgsl_c_name(e->run, wanted));
}

/* Whether atomic functions are used on the words of a variable. */
static bool is_atomic(const weft_wgsl_emitter *e, const weft_wgsl_base *base) {
    return base->kind == WEFT_WGSL_IN_LOCAL && weft__wgsl_has(&e->atomic_variables, base->root);
}

static weft_wgsl_value load_variable(weft_wgsl_emitter *e, const weft_wgsl_value *place) {
    const weft_wgsl_type *type = place->type;
    check_variable(e, place);
    weft_wgsl_value v = weft__wgsl_value(type, NULL, WEFT_WGSL_L_PRIMARY, place->line);
    if (type->kind == WEFT_WGSL_FOUR && place->base.leaf->kind != WEFT_WGSL_FOUR) {
        weft_wgsl_value scalar = *place;
        scalar.type = type->of;
        v.text = weft__wgsl_text(e->run, "%s(%s, %s, %s, %s)", weft__wgsl_type_text(e, type, place->line),
                                 variable_text(e, &scalar, 0), variable_text(e, &scalar, 1),
                                 variable_text(e, &scalar, 2), variable_text(e, &scalar, 3));
    } else {
        v.text = weft__wgsl_text(e->run, is_atomic(e, &place->base) ? "atomicLoad(&%s)" : "%s",
                                 variable_text(e, place, 0));
    }
    v.heavy = place->base.kind == WEFT_WGSL_IN_LOCAL || place->offset.text;
    return v;
}

static void store_variable(weft_wgsl_emitter *e, const weft_wgsl_value *place, weft_wgsl_value v) {
    check_variable(e, place);
    if (place->type->kind != WEFT_WGSL_FOUR || place->base.leaf->kind == WEFT_WGSL_FOUR) {
        weft__wgsl_line(e, is_atomic(e, &place->base) ? "atomicStore(&%s, %s);" : "%s = %s;",
                        variable_text(e, place, 0), v.text);
        return;
    }
    weft_wgsl_value scalar = *place;
    scalar.type = place->type->of;
    v = weft__wgsl_keep(e, v);
    for (int i = 0; i < 4; i++) weft__wgsl_line(e, "%s = %s[%d];", variable_text(e, &scalar, i), v.text, i);
}

void weft__wgsl_local_variable(weft_wgsl_emitter *e, const char *name, const weft_wgsl_type *type, int line) {
    if (!weft__wgsl_once(e, &e->known_variables, name)) return;
    const int each = weft__wgsl_is_64(weft__wgsl_flat(type)) ? 8 : 4;
    e->local_bytes += each * weft__wgsl_flat_count(type);
    if (e->local_bytes > WEFT_WGSL_TYPE_BYTES)
        weft__wgsl_fail(e->run, line, "a kernel has more than %d bytes of local memory",
                        WEFT_WGSL_TYPE_BYTES);
    if (weft__wgsl_has(&e->atomic_variables, name))
        weft__wgsl_put(e, &e->variables, "var<workgroup> %s: array<atomic<%s>, %d>;\n", name,
                       weft__wgsl_type_text(e, weft__wgsl_flat(type), line), weft__wgsl_flat_count(type));
    else
        weft__wgsl_put(e, &e->variables, "var<workgroup> %s: %s;\n", name,
                       weft__wgsl_type_text(e, type, line));
}

const char *weft__wgsl_atomic_word(weft_wgsl_emitter *e, weft_wgsl_value pointer) {
    const weft_wgsl_type *of = pointer.type->kind == WEFT_WGSL_POINTER ? pointer.type->of : pointer.type;
    const bool word = of->kind == WEFT_WGSL_I32 || of->kind == WEFT_WGSL_U32;
    if (word && pointer.base.kind == WEFT_WGSL_IN_BUFFER) {
        const int binding = binding_of(e, &pointer);
        e->atomic[binding] = e->written[pointer.base.pointer] = true;
        return weft__wgsl_text(e->run, "&buffer%d[%s]", binding, weft__wgsl_offset_text(e, pointer.offset));
    }
    if (!word || pointer.base.kind != WEFT_WGSL_IN_LOCAL || pointer.base.leaf->kind != WEFT_WGSL_ARRAY)
        weft__wgsl_fail(
            e->run, pointer.line,
            "atomic functions are only supported for words of buffers and of arrays in local memory");
    weft__wgsl_once(e, &e->atomic_variables, pointer.base.root);
    pointer.type = of;
    return weft__wgsl_text(e->run, "&%s", variable_text(e, &pointer, 0));
}

/* ---- any place ---- */

weft_wgsl_value weft__wgsl_load(weft_wgsl_emitter *e, weft_wgsl_value place) {
    if (!place.place) return place;
    if (place.type->kind == WEFT_WGSL_ARRAY &&
        place.base.kind != WEFT_WGSL_IN_NOTHING) { /* becomes a pointer */
        const weft_wgsl_space space = place.base.kind == WEFT_WGSL_IN_BUFFER  ? WEFT_WGSL_GLOBAL
                                      : place.base.kind == WEFT_WGSL_IN_LOCAL ? WEFT_WGSL_LOCAL
                                                                              : WEFT_WGSL_PRIVATE;
        weft_wgsl_value pointer = place;
        pointer.type = weft__wgsl_pointer(e->run, place.type->of, space);
        pointer.place = false;
        return pointer;
    }
    switch (place.base.kind) {
    case WEFT_WGSL_IN_BUFFER: return load_buffer(e, &place);
    case WEFT_WGSL_IN_NUMBERS: return load_numbers(e, &place);
    case WEFT_WGSL_IN_LOCAL:
    case WEFT_WGSL_IN_PRIVATE: return load_variable(e, &place);
    default: weft__wgsl_fail(e->run, place.line, "a pointer is used before it points to anything");
    }
}

void weft__wgsl_store(weft_wgsl_emitter *e, weft_wgsl_value place, weft_wgsl_value v) {
    const weft_wgsl_type *type =
        place.type->kind == WEFT_WGSL_F16 ? weft__wgsl_type(WEFT_WGSL_F32) : place.type;
    v = weft__wgsl_convert(e, v, type);
    switch (place.base.kind) {
    case WEFT_WGSL_IN_BUFFER: store_buffer(e, &place, v); return;
    case WEFT_WGSL_IN_LOCAL:
    case WEFT_WGSL_IN_PRIVATE: store_variable(e, &place, v); return;
    default: weft__wgsl_fail(e->run, place.line, "this cannot be assigned");
    }
}

weft_wgsl_value weft__wgsl_member(weft_wgsl_emitter *e, weft_wgsl_value of, const weft_wgsl_word *name,
                                  int line) {
    weft_wgsl_value v = of;
    v.line = line;
    if (of.type->kind == WEFT_WGSL_FOUR) {
        const char *four = "xyzw", *at = name->length == 1 ? strchr(four, name->text[0]) : NULL;
        if (!at) weft__wgsl_fail(e->run, line, "a vector of four has no member %s", name->text);
        v.type = of.type->of;
        if (of.place)
            v.offset.constant += at - four;
        else
            v.text = weft__wgsl_text(e->run, "%s[%d]", weft__wgsl_at_level(e, &of, WEFT_WGSL_L_PRIMARY),
                                     (int)(at - four)),
            v.level = WEFT_WGSL_L_PRIMARY;
        return v;
    }
    const weft_wgsl_field *f = weft__wgsl_field_of(of.type, name);
    if (!f)
        weft__wgsl_fail(e->run, line, "%s has no member %s", weft__wgsl_c_name(e->run, of.type), name->text);
    v.type = f->type;
    const char *member = weft__wgsl_safe_name(e, name->text);
    if (!of.place) {
        v.text = weft__wgsl_text(e->run, "%s.%s", weft__wgsl_at_level(e, &of, WEFT_WGSL_L_PRIMARY), member);
        v.level = WEFT_WGSL_L_PRIMARY;
        return v;
    }
    switch (of.base.kind) {
    case WEFT_WGSL_IN_BUFFER:
        if (weft__wgsl_unit(of.base.kind, f->type) < 4)
            weft__wgsl_fail(e->run, line, "member %s of a struct in a buffer has less than 32 bits",
                            name->text);
        /* from words to elements */
        v.offset.constant += f->offset / 4;
        if (weft__wgsl_unit(of.base.kind, f->type) == 8) {
            if (v.offset.text)
                v.offset.text = weft__wgsl_text(e->run, "(%s) / 2", v.offset.text),
                v.offset.level = WEFT_WGSL_L_MULTIPLY;
            v.offset.constant /= 2;
        }
        return v;
    case WEFT_WGSL_IN_NUMBERS: v.offset.constant += f->offset; return v;
    case WEFT_WGSL_IN_LOCAL:
        if (of.base.leaf->kind != WEFT_WGSL_STRUCT)
            weft__wgsl_fail(e->run, line, "arrays of structs in local memory are not supported");
        v.base.root = weft__wgsl_text(e->run, "%s_%s", of.base.root, member);
        v.base.leaf = f->type;
        if (f->type->kind != WEFT_WGSL_STRUCT) weft__wgsl_local_variable(e, v.base.root, f->type, line);
        return v;
    case WEFT_WGSL_IN_PRIVATE:
        v.base.root = weft__wgsl_text(e->run, "%s.%s", variable_text(e, &of, 0), member);
        v.base.path = weft__wgsl_text(e->run, "%s.%s", of.base.path ? of.base.path : "", member);
        if (of.base.leaf->kind == WEFT_WGSL_ARRAY)
            v.base.variable = NULL; /* no pointer to it can be passed */
        v.base.leaf = f->type;
        v.offset = (weft_wgsl_offset){0};
        return v;
    default: weft__wgsl_fail(e->run, line, "member %s of nothing", name->text);
    }
}

static weft_wgsl_offset offset_of(weft_wgsl_emitter *e, weft_wgsl_value index) {
    if (!weft__wgsl_is_integer(index.type)) weft__wgsl_fail(e->run, index.line, "an index is no integer");
    index = weft__wgsl_convert(e, index, weft__wgsl_type(WEFT_WGSL_I32));
    if (index.known) return (weft_wgsl_offset){.constant = index.integer};
    return (weft_wgsl_offset){.text = index.text, .level = index.level};
}

weft_wgsl_value weft__wgsl_moved(weft_wgsl_emitter *e, weft_wgsl_value pointer, weft_wgsl_value by,
                                 bool back) {
    weft_wgsl_offset n =
        weft__wgsl_offset_times(e, offset_of(e, by), weft__wgsl_stride(pointer.base.kind, pointer.type->of));
    if (back) {
        n.constant = -n.constant;
        if (n.text) {
            const weft_wgsl_value x = {.text = n.text, .level = n.level};
            n.text = weft__wgsl_text(e->run, "-%s", weft__wgsl_at_level(e, &x, WEFT_WGSL_L_PRIMARY));
            n.level = WEFT_WGSL_L_UNARY;
        }
    }
    pointer.offset = weft__wgsl_offset_plus(e, pointer.offset, n);
    pointer.heavy = pointer.heavy || by.heavy;
    return pointer;
}

weft_wgsl_value weft__wgsl_element(weft_wgsl_emitter *e, weft_wgsl_value pointer, weft_wgsl_value index) {
    if (pointer.type->kind != WEFT_WGSL_POINTER)
        weft__wgsl_fail(e->run, index.line, "%s has no elements", weft__wgsl_c_name(e->run, pointer.type));
    weft_wgsl_value at = weft__wgsl_moved(e, pointer, index, false);
    at.type = pointer.type->of;
    at.place = true;
    at.line = index.line;
    return at;
}

weft_wgsl_value weft__wgsl_address(weft_wgsl_emitter *e, weft_wgsl_value place) {
    if (!place.place || place.base.kind == WEFT_WGSL_IN_NOTHING)
        weft__wgsl_fail(e->run, place.line, "this has no address");
    place.type = weft__wgsl_pointer(e->run, place.type,
                                    place.base.kind == WEFT_WGSL_IN_BUFFER  ? WEFT_WGSL_GLOBAL
                                    : place.base.kind == WEFT_WGSL_IN_LOCAL ? WEFT_WGSL_LOCAL
                                                                            : WEFT_WGSL_PRIVATE);
    place.place = false;
    return place;
}

weft_wgsl_value weft__wgsl_pointer_cast(weft_wgsl_emitter *e, weft_wgsl_value pointer,
                                        const weft_wgsl_type *to) {
    if (pointer.base.kind == WEFT_WGSL_IN_BUFFER) {
        const int from = weft__wgsl_unit(WEFT_WGSL_IN_BUFFER, pointer.type->of),
                  want = weft__wgsl_unit(WEFT_WGSL_IN_BUFFER, to->of);
        if (from > want) pointer.offset = weft__wgsl_offset_times(e, pointer.offset, from / want);
        if (from < want) {
            const weft_wgsl_value x = {.text = pointer.offset.text, .level = pointer.offset.level};
            if (pointer.offset.constant % (want / from))
                weft__wgsl_fail(e->run, pointer.line,
                                "a pointer is cast to a type that it is not aligned for");
            pointer.offset.constant /= want / from;
            if (x.text) {
                pointer.offset.text = weft__wgsl_text(
                    e->run, "%s / %d", weft__wgsl_at_level(e, &x, WEFT_WGSL_L_MULTIPLY), want / from);
                pointer.offset.level = WEFT_WGSL_L_MULTIPLY;
            }
        }
    }
    pointer.type = to;
    return pointer;
}
