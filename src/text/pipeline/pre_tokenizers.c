/* The pre-tokenizers: each cuts a piece of text into smaller ones, and passes them to the next part. So no
 * list of pieces is ever in memory. Must not know: ids. Read next: split.c, then model_bpe.c. */
#include <string.h>

#include "text/bpe.h"
#include "text/pipeline/pipeline.h"

#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static const char *const behaviours[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous", NULL};

weft_status weft__pre_tokenize(weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__pipeline *p = e->t->pipeline;
    if (!piece->bytes) return WEFT_OK;
    WEFT_TRY(weft__pipeline_work(e->t, piece->bytes));
    if (step == p->pre_tokenizers.count) {
        WEFT_TRY(weft__pipeline_grow(e->t, piece->bytes));
        return p->model->encode(e, piece->text, piece->bytes);
    }
    weft__part *part = &p->pre_tokenizers.list[step];
    return part->type->cut(part, e, step, piece);
}

static weft__splitter splitter_of(const weft__part *p, weft__encoding *e, size_t step,
                                  const weft__piece *piece) {
    return (weft__splitter){
        .e = e, .step = step + 1, .piece = piece, .behaviour = p->behaviour, .invert = p->invert};
}

/* Checks the work memory of a part, which stays while the next parts work. */
static weft_status check_room(weft__part *p, weft__encoding *e) {
    WEFT_TRY(weft__room_check(e->t, &p->room));
    return weft__pipeline_grow(e->t, p->room.bytes);
}

/* ---- ByteLevel ---- */

static weft_status read_byte_level(weft__reader *r, const json_t *json, weft__part *p) {
    p->add_space = p->use_regex = true;
    p->behaviour = WEFT__ISOLATED;
    WEFT_TRY(weft__read_bool(r, json, "add_prefix_space", &p->add_space));
    WEFT_TRY(weft__read_bool(r, json, "use_regex", &p->use_regex));
    return p->use_regex
               ? weft__regex_new(r->t->ctx, r->name, GPT2_PATTERN, strlen(GPT2_PATTERN), false, &p->regex)
               : WEFT_OK;
}

/* Writes the bytes of a piece as characters, before or after it is cut. */
static weft_status cut_byte_level(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__piece from = *piece;
    weft__room_begin(e->t, &p->room);
    if (p->add_space && from.text[0] != ' ') {
        weft__buffer_put(&p->room, " ", 1);
        weft__buffer_put(&p->room, from.text, from.bytes);
        WEFT_TRY(check_room(p, e));
        from.text = p->room.text;
        from.bytes = p->room.bytes;
    }
    weft__splitter s = splitter_of(p, e, step, &from);
    if (p->use_regex) return weft__split_regex(&s, p->regex);
    return weft__pre_tokenize(e, step + 1, &from);
}

/* The second half of ByteLevel is a part of its own, which follows it unless the model takes bytes. */
static weft_status cut_byte_characters(weft__part *p, weft__encoding *e, size_t step,
                                       const weft__piece *piece) {
    weft__room_begin(e->t, &p->room);
    for (size_t i = 0; i < piece->bytes; i++)
        weft__buffer_put_point(&p->room, weft__bpe_point((unsigned char)piece->text[i]));
    WEFT_TRY(check_room(p, e));
    const weft__piece written = {p->room.text, p->room.bytes, piece->first};
    return weft__pre_tokenize(e, step + 1, &written);
}

const weft__part_type weft__byte_characters = {.name = "ByteLevel", .cut = cut_byte_characters};

/* ---- patterns ---- */

static weft_status read_split(weft__reader *r, const json_t *json, weft__part *p) {
    int behaviour = WEFT__REMOVED;
    WEFT_TRY(weft__read_pattern(r, json, &p->regex));
    WEFT_TRY(weft__read_choice(r, json, "behavior", behaviours, &behaviour));
    p->behaviour = (weft__behaviour)behaviour;
    return weft__read_bool(r, json, "invert", &p->invert);
}

static weft_status cut_split(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    return weft__split_regex(&s, p->regex);
}

/* Words, and runs of other characters that are no white space. */
static weft_status cut_whitespace(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    enum { SPACE, WORD, OTHER } kind, last = SPACE;
    size_t begin = 0, next;
    uint32_t point;
    for (size_t at = 0; at < piece->bytes; at = next) {
        next = at + weft__read_point(piece->text, piece->bytes, at, &point);
        kind = weft__is_word(point) ? WORD : weft__is_space(point) ? SPACE : OTHER;
        if (kind != last && at > begin) WEFT_TRY(weft__splitter_put(&s, begin, at, last == SPACE));
        if (kind != last) begin = at;
        last = kind;
    }
    WEFT_TRY(weft__splitter_put(&s, begin, piece->bytes, last == SPACE));
    return weft__splitter_end(&s);
}

static weft_status cut_whitespace_split(weft__part *p, weft__encoding *e, size_t step,
                                        const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    return weft__split_points(&s, weft__is_space);
}

/* BertPreTokenizer is WhitespaceSplit and then Punctuation. */
static weft_status cut_bert(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    size_t begin = 0, next;
    uint32_t point;
    for (size_t at = 0; at <= piece->bytes; at = next) {
        next = at + 1;
        if (at < piece->bytes) {
            next = at + weft__read_point(piece->text, piece->bytes, at, &point);
            if (!weft__is_space(point)) continue;
        }
        const weft__piece word = {piece->text + begin, at - begin, piece->first && begin == 0};
        weft__splitter s = splitter_of(p, e, step, &word);
        s.behaviour = WEFT__ISOLATED;
        WEFT_TRY(weft__split_points(&s, weft__is_punctuation));
        begin = next;
    }
    return WEFT_OK;
}

static weft_status read_digits(weft__reader *r, const json_t *json, weft__part *p) {
    bool individual = false;
    WEFT_TRY(weft__read_bool(r, json, "individual_digits", &individual));
    p->behaviour = individual ? WEFT__ISOLATED : WEFT__CONTIGUOUS;
    return WEFT_OK;
}

static weft_status cut_digits(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    return weft__split_points(&s, weft__is_numeric);
}

static weft_status read_punctuation(weft__reader *r, const json_t *json, weft__part *p) {
    int behaviour = WEFT__ISOLATED;
    WEFT_TRY(weft__read_choice(r, json, "behavior", behaviours, &behaviour));
    p->behaviour = (weft__behaviour)behaviour;
    return WEFT_OK;
}

static weft_status cut_punctuation(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    return weft__split_points(&s, weft__is_punctuation);
}

static weft_status read_delimiter(weft__reader *r, const json_t *json, weft__part *p) {
    WEFT_TRY(weft__read_text(r, json, "delimiter", &p->text));
    return p->text.bytes ? WEFT_OK : weft__reader_fail(r, WEFT_ERR_FORMAT, "delimiter must be a character");
}

static weft_status cut_delimiter(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    weft__splitter s = splitter_of(p, e, step, piece);
    return weft__split_text(&s, p->text.text, p->text.bytes);
}

/* ---- Metaspace ---- */

static weft_status read_metaspace(weft__reader *r, const json_t *json, weft__part *p) {
    static const char *const schemes[] = {"always", "first", "never", NULL};
    int scheme = WEFT__PREPEND_ALWAYS;
    bool add_space = true;
    p->split = true;
    p->behaviour = WEFT__MERGED_WITH_NEXT;
    weft__buffer_set(&p->text, "\xe2\x96\x81", 3); /* U+2581 */
    WEFT_TRY(weft__read_text(r, json, "replacement", &p->text));
    if (!p->text.bytes) return weft__reader_fail(r, WEFT_ERR_FORMAT, "replacement must be a character");
    WEFT_TRY(weft__read_choice(r, json, "prepend_scheme", schemes, &scheme));
    WEFT_TRY(weft__read_bool(r, json, "add_prefix_space", &add_space));
    p->prepend = add_space ? (weft__prepend)scheme : WEFT__PREPEND_NEVER;
    return weft__read_bool(r, json, "split", &p->split);
}

static weft_status cut_metaspace(weft__part *p, weft__encoding *e, size_t step, const weft__piece *piece) {
    const char *text = piece->text;
    const size_t bytes = piece->bytes, size = p->text.bytes;
    bool marked = text[0] == ' ' || (bytes >= size && memcmp(text, p->text.text, size) == 0);
    bool prepends = p->prepend == WEFT__PREPEND_ALWAYS || (p->prepend == WEFT__PREPEND_FIRST && piece->first);
    weft__room_begin(e->t, &p->room);
    if (prepends && !marked) weft__buffer_put(&p->room, p->text.text, size);
    for (size_t at = 0; at < bytes;) {
        const char *space = memchr(text + at, ' ', bytes - at);
        size_t end = space ? (size_t)(space - text) : bytes;
        weft__buffer_put(&p->room, text + at, end - at);
        if (space) weft__buffer_put(&p->room, p->text.text, size);
        at = end + 1;
    }
    WEFT_TRY(check_room(p, e));
    const weft__piece written = {p->room.text, p->room.bytes, piece->first};
    if (!p->split) return weft__pre_tokenize(e, step + 1, &written);
    weft__splitter s = splitter_of(p, e, step, &written);
    return weft__split_text(&s, p->text.text, size);
}

const weft__part_type weft__pre_tokenizers[] = {
    {.name = "ByteLevel", .read = read_byte_level, .cut = cut_byte_level},
    {.name = "Split", .read = read_split, .cut = cut_split},
    {.name = "Metaspace", .read = read_metaspace, .cut = cut_metaspace},
    {.name = "Whitespace", .cut = cut_whitespace},
    {.name = "WhitespaceSplit", .cut = cut_whitespace_split},
    {.name = "BertPreTokenizer", .cut = cut_bert},
    {.name = "Digits", .read = read_digits, .cut = cut_digits},
    {.name = "Punctuation", .read = read_punctuation, .cut = cut_punctuation},
    {.name = "CharDelimiterSplit", .read = read_delimiter, .cut = cut_delimiter},
    {0},
};
