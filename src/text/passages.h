/* Reads the texts of documents passage by passage, as one text: each document follows the one before. A text
 * can be cut into blocks that a tokenizer encodes one by one, with the ids of the whole text. Must not know:
 * how texts are encoded. Read next: passages.c, text_stream.h. */
#ifndef WEFT_SRC_TEXT_PASSAGES_H
#define WEFT_SRC_TEXT_PASSAGES_H

#include "text/documents.h"

/* A place in the text: before byte `at` of a document, or before row `at` of a Parquet file. */
typedef struct weft__place {
    uint64_t document, at;
} weft__place;

/* Where a text may be cut. */
typedef enum weft__cutting {
    WEFT__CUT_BYTES,      /* anywhere */
    WEFT__CUT_CHARACTERS, /* between characters */
    WEFT__CUT_WORDS,      /* where the BPE of GPT-2 ends a word, whatever follows */
    WEFT__CUT_TEXTS       /* between texts: documents, lines of .jsonl, or rows */
} weft__cutting;

typedef struct weft__passages {
    const weft__documents *documents;
    weft__cutting cutting;
    bool utf8;    /* the text must be UTF-8 */
    char *window; /* bytes of a document: [held] from window_at on */
    uint64_t window_at, window_document;
    size_t held, capacity;
} weft__passages;

void weft__passages_free(weft__passages *passages);

static inline bool weft__place_is(weft__place a, weft__place b) {
    return a.document == b.document && a.at == b.at;
}

/* What `at` of a place counts, for messages. */
static inline const char *weft__place_unit(const weft__documents *documents, weft__place place) {
    return documents->list[place.document].form == WEFT__TEXT_ROWS ? "row" : "byte";
}

/* Appends a passage from *place on to the text, not beyond `end`, and moves *place behind it: some KiB of one
 * document, a line or a row. *whole: a text ends with it. Failures are those of the calling thread.
 * WEFT_ERR_FORMAT names the document and the byte, or the row. */
weft_status weft__passages_next(weft__passages *passages, weft__place *place, weft__place end,
                                weft__buffer *text, bool *whole);

/* Finds where the block that begins at `begin` ends: where the next one begins, or at the end of the text,
 * `end`. `room` is for work. */
weft_status weft__passages_cut(weft__passages *passages, weft__place begin, weft__place end,
                               weft__buffer *room, weft__place *next);

#endif
