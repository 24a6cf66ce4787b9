/* Cutting a piece of text at matches. Must not know: what the pieces are for. Read next: pre_tokenizers.c. */
#include <string.h>

#include "text/pipeline/pipeline.h"

/* Passes the range that waits to the next part. Empty pieces are left out. */
static weft_status splitter_flush(weft__splitter *s) {
    bool empty = !s->holds || s->begin == s->end;
    s->holds = false;
    if (empty) return WEFT_OK;
    const weft__piece piece = {s->piece->text + s->begin, s->end - s->begin,
                               s->piece->first && s->begin == 0};
    return weft__pre_tokenize(s->e, s->step, &piece);
}

weft_status weft__splitter_put(weft__splitter *s, size_t begin, size_t end, bool match) {
    bool joins = false;
    match ^= s->invert;
    switch (s->behaviour) {
    case WEFT__REMOVED:
    case WEFT__ISOLATED: break;
    case WEFT__CONTIGUOUS: joins = match == s->before; break;
    case WEFT__MERGED_WITH_PREVIOUS: joins = match && !s->before; break;
    case WEFT__MERGED_WITH_NEXT: joins = !match && s->before; break;
    }
    s->before = match;
    if (joins && s->holds) {
        s->end = end;
        return WEFT_OK;
    }
    WEFT_TRY(splitter_flush(s));
    s->holds = !match || s->behaviour != WEFT__REMOVED;
    s->begin = begin;
    s->end = end;
    return WEFT_OK;
}

weft_status weft__splitter_end(weft__splitter *s) { return splitter_flush(s); }

weft_status weft__split_regex(weft__splitter *s, weft__regex *regex) {
    weft__search m = weft__search_of(regex, s->piece->text, s->piece->bytes);
    size_t done = 0;
    bool found = false;
    for (;;) {
        WEFT_TRY(weft__search_next(&m, &found));
        if (!found) break;
        size_t begin = m.begin, end = m.end;
        if (begin > done) WEFT_TRY(weft__splitter_put(s, done, begin, false));
        WEFT_TRY(weft__splitter_put(s, begin, end, true));
        done = end;
    }
    if (done < s->piece->bytes) WEFT_TRY(weft__splitter_put(s, done, s->piece->bytes, false));
    return weft__splitter_end(s);
}

weft_status weft__split_points(weft__splitter *s, bool (*is)(uint32_t point)) {
    size_t done = 0, next;
    uint32_t point;
    for (size_t at = 0; at < s->piece->bytes; at = next) {
        next = at + weft__read_point(s->piece->text, s->piece->bytes, at, &point);
        if (!is(point)) continue;
        if (at > done) WEFT_TRY(weft__splitter_put(s, done, at, false));
        WEFT_TRY(weft__splitter_put(s, at, next, true));
        done = next;
    }
    if (done < s->piece->bytes) WEFT_TRY(weft__splitter_put(s, done, s->piece->bytes, false));
    return weft__splitter_end(s);
}

weft_status weft__split_text(weft__splitter *s, const char *text, size_t bytes) {
    size_t done = 0;
    for (size_t at = 0; at + bytes <= s->piece->bytes;) {
        const char *first = memchr(s->piece->text + at, text[0], s->piece->bytes - bytes + 1 - at);
        if (!first) break;
        at = (size_t)(first - s->piece->text);
        if (memcmp(first, text, bytes) != 0) {
            at++;
            continue;
        }
        if (at > done) WEFT_TRY(weft__splitter_put(s, done, at, false));
        WEFT_TRY(weft__splitter_put(s, at, at + bytes, true));
        at = done = at + bytes;
    }
    if (done < s->piece->bytes) WEFT_TRY(weft__splitter_put(s, done, s->piece->bytes, false));
    return weft__splitter_end(s);
}
