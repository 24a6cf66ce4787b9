/* Reads texts passage by passage, and finds where they may be cut. A cut is at least BLOCK bytes behind the
 * one before. Must not know: how texts are encoded. Read next: text_stream.c. */
#include "text/passages.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "data/parse.h"
#include "text/pipeline/pipeline.h"
#include "text/tokenizer.h"

enum { BLOCK = 16 << 10, PASSAGE = 8 << 10, WINDOW = 64 << 10, NAME = 4500 };
#define MOST ((size_t)64 << 20) /* bytes of a block, and of a line of .jsonl */

void weft__passages_free(weft__passages *p) {
    weft__free(NULL, p->window);
    p->window = NULL;
    p->held = p->capacity = 0;
}

/* ---- failures ---- */

static weft_status passages_fail(const weft__passages *p, weft__place at, const char *what) {
    char name[NAME];
    weft__documents_name(p->documents, (size_t)at.document, name, sizeof name);
    return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: %s %" PRIu64 ": %s", name,
                      weft__place_unit(p->documents, at), at.at, what);
}

/* ---- bytes ---- */

/* Gives `size` bytes of a document, valid until the next call. They are read with those that follow. */
static weft_status bytes_at(weft__passages *p, weft__place at, size_t size, const char **bytes) {
    const uint64_t left = p->documents->list[at.document].size - at.at;
    const bool inside = p->held && p->window_document == at.document && at.at >= p->window_at &&
                        at.at - p->window_at <= p->held && size <= p->held - (at.at - p->window_at);
    if (!inside) {
        size_t wanted = size > WINDOW ? size : WINDOW;
        if (wanted > left) wanted = (size_t)left;
        if (wanted > p->capacity) {
            weft__passages_free(p);
            if (!(p->window = weft__alloc(NULL, wanted))) return weft__fail_oom(NULL, wanted, "a text");
            p->capacity = wanted;
        }
        p->held = 0;
        WEFT_TRY(weft__documents_read(p->documents, (size_t)at.document, at.at, p->window, wanted));
        p->held = wanted;
        p->window_at = at.at;
        p->window_document = at.document;
    }
    *bytes = p->window + (at.at - p->window_at);
    return WEFT_OK;
}

/* ---- plain text ---- */

/* Returns the bytes of `text` without a character that the next passage completes. */
static size_t whole_characters(const char *text, size_t size) {
    size_t end = size;
    while (end > 0 && size - end < 3 && ((unsigned char)text[end - 1] & 0xc0) == 0x80) end--;
    if (end == 0 || (unsigned char)text[end - 1] < 0xc0) return size;
    const unsigned char lead = (unsigned char)text[end - 1];
    const size_t needed = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return size - end + 1 < needed && end > 1 ? end - 1 : size;
}

/* Says so if the text is a packed file. */
static weft_status refuse_packed(const weft__passages *p, weft__place at) {
    const weft__document *d = &p->documents->list[at.document];
    char head[WEFT__PACKED_HEAD], name[NAME];
    if (d->form == WEFT__TEXT_ROWS || d->size < sizeof head) return WEFT_OK;
    WEFT_TRY(weft__documents_read(p->documents, (size_t)at.document, 0, head, sizeof head));
    weft__documents_name(p->documents, (size_t)at.document, name, sizeof name);
    return weft__refuse_packed(NULL, name, head, sizeof head);
}

static weft_status check_text(weft__passages *p, weft__place at, const char *text, size_t size) {
    uint32_t point;
    const bool rows = p->documents->list[at.document].form == WEFT__TEXT_ROWS;
    if ((p->documents->tars || rows) && p->utf8 && size) {
        const char *zero = memchr(text, '\0', size);
        if (zero) {
            if (!rows) at.at += (uint64_t)(zero - text);
            return passages_fail(
                p, at, "this is no text: it holds a byte 0: remove the file, or use data.source: bytes");
        }
    }
    for (size_t i = 0; p->utf8 && i < size;) {
        const unsigned char byte = (unsigned char)text[i];
        const int n = byte < 0x80 ? 1 : weft__utf8_read(text + i, size - i, &point);
        if (n <= 0) {
            char what[96];
            WEFT_TRY(refuse_packed(p, at));
            if (!rows) at.at += i;
            snprintf(what, sizeof what, "(0x%02x) is not UTF-8: convert the text, or use data.source: bytes",
                     byte);
            return passages_fail(p, at, what);
        }
        i += (size_t)n;
    }
    return WEFT_OK;
}

static weft_status put_plain(weft__passages *p, weft__place *place, uint64_t end, weft__buffer *text,
                             bool *whole) {
    const uint64_t size = p->documents->list[place->document].size;
    size_t wanted = end - place->at < PASSAGE ? (size_t)(end - place->at) : PASSAGE;
    const char *bytes;
    WEFT_TRY(bytes_at(p, *place, wanted, &bytes));
    if (p->utf8 && place->at + wanted < end) wanted = whole_characters(bytes, wanted);
    WEFT_TRY(check_text(p, *place, bytes, wanted));
    const bool marked = place->at == 0 && wanted >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
    const size_t skipped = marked ? 3 : 0;
    weft__buffer_put(text, bytes + skipped, wanted - skipped);
    *whole = place->at + wanted == size;
    const bool newline = *whole && p->documents->closed && wanted > skipped && bytes[wanted - 1] != '\n';
    if (newline) weft__buffer_put(text, "\n", 1);
    place->at += wanted;
    return weft__buffer_check(text);
}

/* ---- lines ---- */

/* Gives the line at a place, without its end. *bytes: with its end. */
static weft_status line_at(weft__passages *p, weft__place place, const char **line, size_t *size,
                           size_t *bytes) {
    const uint64_t left = p->documents->list[place.document].size - place.at;
    for (size_t wanted = PASSAGE;; wanted *= 2) {
        if (wanted > left) wanted = (size_t)left;
        WEFT_TRY(bytes_at(p, place, wanted, line));
        const char *end = memchr(*line, '\n', wanted);
        if (!end && wanted < left && wanted < MOST) continue;
        if (!end && wanted < left)
            return passages_fail(p, place, "a line of .jsonl has more than 64 MiB: divide its text");
        *size = end ? (size_t)(end - *line) : wanted;
        *bytes = *size + (end != NULL);
        return WEFT_OK;
    }
}

static weft_status put_line(weft__passages *p, weft__place *place, weft__buffer *text, bool *whole) {
    const char *line;
    size_t size = 0, bytes = 0;
    weft__json json;
    json_error_t error;
    json_t *root;
    WEFT_TRY(line_at(p, *place, &line, &size, &bytes));
    const weft__place begin = *place;
    place->at += bytes;
    *whole = true;
    size_t blank = 0;
    while (blank < size && strchr(" \t\r", line[blank])) blank++;
    if (blank == size) return WEFT_OK;
    weft__json_open(&json, NULL);
    weft_status status = weft__json_load(&json, line, size, JSON_REJECT_DUPLICATES, &error, &root);
    const json_t *value = status == WEFT_OK && json_is_object(root) ? json_object_get(root, "text") : NULL;
    if (status == WEFT_ERR_FORMAT || (status == WEFT_OK && !json_is_string(value)))
        status = passages_fail(
            p, begin, "this line is no object with a \"text\": write {\"text\": \"...\"} on each line");
    if (status == WEFT_OK) {
        const char *string = json_string_value(value);
        const size_t length = json_string_length(value);
        weft__buffer_put(text, string, length);
        if (length && string[length - 1] != '\n') weft__buffer_put(text, "\n", 1);
        status = weft__buffer_check(text);
    }
    weft__json_close(&json);
    return status;
}

/* ---- rows ---- */

static weft_status passages_row(weft__passages *p, weft__place *place, uint64_t end, weft__buffer *text,
                                bool *whole) {
    const char *row;
    size_t size;
    WEFT_TRY(weft__documents_row(p->documents, (size_t)place->document, place->at, end, &row, &size));
    WEFT_TRY(check_text(p, *place, row, size));
    weft__buffer_put(text, row, size);
    if (size && row[size - 1] != '\n') weft__buffer_put(text, "\n", 1);
    place->at++;
    *whole = true;
    return weft__buffer_check(text);
}

/* ---- all ---- */

weft_status weft__passages_next(weft__passages *p, weft__place *place, weft__place end, weft__buffer *text,
                                bool *whole) {
    const weft__document *d = &p->documents->list[place->document];
    const uint64_t limit = place->document == end.document ? end.at : d->size;
    weft_status status = WEFT_OK;
    *whole = d->size == 0;
    if (d->size && d->form == WEFT__TEXT_PLAIN) status = put_plain(p, place, limit, text, whole);
    if (d->size && d->form == WEFT__TEXT_LINES) status = put_line(p, place, text, whole);
    if (d->size && d->form == WEFT__TEXT_ROWS) status = passages_row(p, place, limit, text, whole);
    if (place->at == d->size) *place = (weft__place){place->document + 1, 0};
    return status;
}

/* ---- cuts ---- */

static bool printable(char c) { return c > ' ' && c < 0x7f; }

/* Tells whether a character that is no white space ends at `at` > 0. */
static bool ends_word(const char *text, size_t at) {
    uint32_t point;
    size_t n = 1;
    if ((unsigned char)text[at - 1] < 0x80) return printable(text[at - 1]);
    while (n < 4 && n < at && ((unsigned char)text[at - n] & 0xc0) == 0x80) n++;
    return weft__utf8_read(text + at - n, n, &point) == (int)n && !weft__is_space(point);
}

/* Tells whether GPT-2's BPE ends a word at `at`, 2 <= at < bytes, whatever stands elsewhere. This is so
 * - before the end of a line, behind a character that is no white space,
 * - before one space between two such characters,
 * - before a line, if only the end of a line is between two such characters. */
static bool cuts_words(const char *text, size_t at, size_t bytes) {
    const char before = text[at - 1], here = text[at];
    if (here == '\n' || here == '\r') return ends_word(text, at);
    if (here == ' ') return at + 1 < bytes && printable(text[at + 1]) && ends_word(text, at);
    return before == '\n' && ends_word(text, at - 1) && printable(here);
}

/* Returns the first place from `from` on where the text may be cut; SIZE_MAX: there is none before `end`. */
static size_t find_cut(weft__cutting cutting, const weft__buffer *room, size_t from, size_t end) {
    const char *text = room->text;
    for (size_t at = from; at < end; at++) {
        if (cutting == WEFT__CUT_BYTES) return at;
        if (cutting == WEFT__CUT_CHARACTERS && ((unsigned char)text[at] & 0xc0) != 0x80) return at;
        if (cutting == WEFT__CUT_WORDS && cuts_words(text, at, room->bytes)) return at;
    }
    return SIZE_MAX;
}

/* The passage that was appended to a text last. */
typedef struct passage {
    size_t begin; /* in the text */
    uint64_t raw; /* its bytes in the file */
    bool line;    /* or row: its bytes are no longer those of the file, so only its begin is a place */
    bool starts;  /* a text begins with it */
    bool marked;  /* it begins with a byte order mark, which is not in the text */
} passage;

/* Returns where the text may be cut in its last passage, but behind its first BLOCK bytes; SIZE_MAX: nowhere.
 */
static size_t cut_in(const weft__passages *p, const weft__buffer *room, const passage *last) {
    const bool far = last->begin >= BLOCK;
    if (last->marked) return SIZE_MAX;
    if (p->cutting == WEFT__CUT_TEXTS) return last->starts && far ? last->begin : SIZE_MAX;
    if (last->line && !far) return SIZE_MAX;
    const size_t from = far ? last->begin : BLOCK;
    size_t to = room->bytes;
    if (to > last->begin + last->raw) to = last->begin + last->raw; /* not before a newline that was added */
    if (last->line) to = last->begin + 1;
    return find_cut(p->cutting, room, from, to);
}

weft_status weft__passages_cut(weft__passages *p, weft__place begin, weft__place end, weft__buffer *room,
                               weft__place *next) {
    weft__place place = begin;
    weft__buffer_set(room, "", 0);
    while (!weft__place_is(place, end)) {
        const weft__place from = place;
        const weft__document *d = &p->documents->list[from.document];
        const bool line = d->form != WEFT__TEXT_PLAIN;
        passage last = {.begin = room->bytes, .line = line, .starts = from.at == 0 || line};
        bool whole;
        WEFT_TRY(weft__passages_next(p, &place, end, room, &whole));
        if (room->bytes == last.begin || room->bytes <= BLOCK) continue;
        last.raw = (place.document == from.document ? place.at : d->size) - from.at;
        last.marked = !line && from.at == 0 && room->bytes - last.begin < last.raw;
        const size_t cut = cut_in(p, room, &last);
        if (cut != SIZE_MAX) {
            *next = (weft__place){from.document, from.at + (cut - last.begin)};
            return WEFT_OK;
        }
        if (room->bytes > MOST)
            return passages_fail(
                p, begin, "64 MiB from here on cannot be cut: divide the text into lines or into files");
    }
    *next = end;
    return WEFT_OK;
}
