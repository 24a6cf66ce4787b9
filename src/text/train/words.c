/* Counts the words of texts. A file is read in blocks. The text of all distinct words has a limit; beyond it,
 * the rarest words are dropped. So the memory has a bound, however large the files are. Must not know:
 * merges. Read next: merging.c. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "text/passages.h"
#include "text/train/train.h"

#define BLOCK    ((size_t)4 << 20)  /* bytes of text that are read at once */
#define TEXT_MAX ((size_t)64 << 20) /* bytes of all distinct words */

/* ---- the table ---- */

static uint64_t hash_word(const weft__words *w, const char *word, size_t bytes) {
    uint64_t hash = w->key + bytes, part;
    for (; bytes > 8; word += 8, bytes -= 8) {
        memcpy(&part, word, 8);
        hash = weft__mix64(hash ^ part) + bytes;
    }
    part = 0;
    if (bytes) memcpy(&part, word, bytes);
    return weft__mix64(hash ^ part);
}

static size_t word_slot(const weft__words *w, const char *word, size_t bytes) {
    size_t slot = (size_t)hash_word(w, word, bytes) & (w->slot_count - 1);
    for (;; slot = (slot + 1) & (w->slot_count - 1)) {
        if (w->slots[slot] == UINT32_MAX) return slot;
        const weft__word *other = &w->list[w->slots[slot]];
        if (other->bytes == bytes && memcmp(w->text.text + other->at, word, bytes) == 0) return slot;
    }
}

/* Makes a table of `count` slots, and puts all words into it. */
static weft_status make_slots(weft__words *w, size_t count) {
    uint32_t *slots = weft__array(w->ctx, count, sizeof *slots);
    if (!slots) return weft__fail_oom(w->ctx, count * sizeof *slots, "the words of a text");
    weft__free(w->ctx, w->slots);
    w->slots = slots;
    w->slot_count = count;
    memset(slots, 0xff, count * sizeof *slots); /* all UINT32_MAX */
    for (size_t i = 0; i < w->count; i++)
        slots[word_slot(w, w->text.text + w->list[i].at, w->list[i].bytes)] = (uint32_t)i;
    return WEFT_OK;
}

/* Drops the rarest words until half of the room is free. */
static weft_status drop_rare_words(weft__words *w) {
    while (w->text.bytes > TEXT_MAX / 2) {
        size_t kept = 0, used = 0;
        w->dropped++;
        for (size_t i = 0; i < w->count; i++) {
            weft__word word = w->list[i];
            if (word.count <= w->dropped) continue;
            memmove(w->text.text + used, w->text.text + word.at, word.bytes);
            word.at = used;
            used += word.bytes;
            w->list[kept++] = word;
        }
        w->count = kept;
        w->text.bytes = used;
    }
    return make_slots(w, w->slot_count);
}

weft_status weft__words_add(weft__words *w, const char *word, size_t bytes, uint64_t count) {
    if (!w->key) w->key = weft__mix64((uint64_t)(uintptr_t)w ^ (uint64_t)(uintptr_t)&count << 20) | 1;
    if (bytes > TEXT_MAX / 4) return WEFT_OK; /* no merge could use so rare a word */
    if (w->text.bytes + bytes > TEXT_MAX) WEFT_TRY(drop_rare_words(w));
    if (2 * (w->count + 1) > w->slot_count)
        WEFT_TRY(make_slots(w, w->slot_count ? 2 * w->slot_count : 1 << 16));
    size_t slot = word_slot(w, word, bytes);
    if (w->slots[slot] != UINT32_MAX) {
        w->list[w->slots[slot]].count += count;
        return WEFT_OK;
    }
    if (!weft__grow(w->ctx, &w->list, &w->capacity, w->count, sizeof *w->list))
        return weft__fail_oom(w->ctx, w->count * sizeof *w->list, "the words of a text");
    w->list[w->count] = (weft__word){w->text.bytes, (uint32_t)bytes, count};
    weft__buffer_put(&w->text, word, bytes);
    w->slots[slot] = (uint32_t)w->count++;
    return weft__buffer_check(&w->text);
}

void weft__words_free(weft__words *w) {
    weft__buffer_free(&w->text);
    weft__free(w->ctx, w->list);
    weft__free(w->ctx, w->slots);
}

/* ---- files ---- */

static weft_status count_words(weft__words *w, weft__regex *pattern, const weft__span *span,
                               weft__buffer *room) {
    WEFT_TRY(weft__replace_bad_bytes(span, room));
    weft__search m = weft__search_of(pattern, room->text, room->bytes);
    size_t done = 0;
    bool found = false;
    while (room->bytes) {
        WEFT_TRY(weft__search_next(&m, &found));
        size_t begin = found ? m.begin : room->bytes;
        if (begin > done) WEFT_TRY(weft__words_add(w, room->text + done, begin - done, 1));
        if (!found) break;
        if (m.end > begin) WEFT_TRY(weft__words_add(w, room->text + begin, m.end - begin, 1));
        done = m.end;
    }
    return WEFT_OK;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Returns where a block may end: before the last newline that follows a letter. Every pattern ends a word
 * there. Without such a newline, the end of the last whole character. */
static size_t block_end(const char *text, size_t bytes) {
    for (size_t end = bytes; end-- > 1;)
        if (text[end] == '\n' && is_letter(text[end - 1])) return end;
    size_t end = bytes;
    for (int i = 0; i < 4 && end > 1 && ((unsigned char)text[end - 1] & 0xc0) == 0x80; i++) end--;
    return end > 1 && (unsigned char)text[end - 1] >= 0xc0 ? end - 1 : bytes;
}

static weft_status read_blocks(weft__words *w, weft__regex *pattern, const char *path, gzFile file,
                               char *block, weft__buffer *room) {
    size_t kept = 0;
    for (;;) {
        if (w->ctx) WEFT_TRY(weft__go_on(w->ctx));
        int n = gzread(file, block + kept, (unsigned)(BLOCK - kept));
        if (n < 0) return weft__fail(w->ctx, WEFT_ERR_IO, "%s: cannot be read: %s", path, gzerror(file, &n));
        size_t bytes = kept + (size_t)n, end = n ? block_end(block, bytes) : bytes;
        const weft__span span = {path, block, end};
        if (end) WEFT_TRY(count_words(w, pattern, &span, room));
        kept = bytes - end;
        memmove(block, block + end, kept);
        if (!n) return WEFT_OK;
    }
}

/* Documents are read without a context: makes a failure of the calling thread one of the words' context. */
static weft_status documents_failure(const weft__words *w, weft_status status) {
    /* a file that changes meanwhile is no error of the program */
    const weft_status own = status == WEFT_ERR_STATE ? WEFT_ERR_FORMAT : status;
    return status == WEFT_OK ? WEFT_OK : weft__fail(w->ctx, own, "%s", weft_last_error(NULL));
}

/* Counts the words of files that hold several texts, text by text. */
static weft_status read_texts(weft__words *w, weft__regex *pattern, const weft__documents *documents,
                              weft__buffer *room) {
    const weft__place end = {documents->count, 0};
    weft__passages passages = {.documents = documents};
    weft__buffer text = {0};
    weft_status status = WEFT_OK;
    for (weft__place at = {0}; status == WEFT_OK && !weft__place_is(at, end);) {
        bool whole = false;
        if (w->ctx) status = weft__go_on(w->ctx);
        if (status == WEFT_OK)
            status = documents_failure(w, weft__passages_next(&passages, &at, end, &text, &whole));
        if (status != WEFT_OK || (!whole && text.bytes < BLOCK) || text.bytes == 0) continue;
        const size_t done = whole ? text.bytes : block_end(text.text, text.bytes);
        status = count_words(w, pattern, &(weft__span){"a text", text.text, done}, room);
        text.bytes -= done;
        memmove(text.text, text.text + done, text.bytes);
    }
    weft__passages_free(&passages);
    weft__buffer_free(&text);
    return status;
}

static weft_status read_documents(weft__words *w, weft__regex *pattern, const char *path,
                                  const weft__text_files *files) {
    weft__documents documents;
    weft__buffer room = {.ctx = w->ctx};
    weft_status status = documents_failure(w, weft__documents_list(NULL, path, files, true, &documents));
    if (status == WEFT_OK) status = read_texts(w, pattern, &documents, &room);
    weft__documents_free(&documents);
    weft__buffer_free(&room);
    return status;
}

/* Reads a file that holds one text. */
static weft_status read_plain(weft__words *w, weft__regex *pattern, const char *path) {
    gzFile file = gzopen(path, "rb");
    if (!file)
        return weft__fail(w->ctx, WEFT_ERR_IO, "%s: cannot be opened: %s", path,
                          errno ? strerror(errno) : "memory is short");
    char *block = weft__alloc(w->ctx, BLOCK);
    weft__buffer room = {.ctx = w->ctx};
    weft_status status = block ? read_blocks(w, pattern, path, file, block, &room)
                               : weft__fail_oom(w->ctx, BLOCK, "a block of text");
    weft__free(w->ctx, block);
    weft__buffer_free(&room);
    gzclose(file);
    return status;
}

weft_status weft__words_read(weft__words *w, weft__regex *pattern, const char *path) {
    weft__text_files files;
    weft_status status = weft__documents_files(w->ctx, path, &files);
    if (status == WEFT_OK)
        status = weft__documents_several(&files) ? read_documents(w, pattern, path, &files)
                                                 : read_plain(w, pattern, path);
    weft__text_files_free(w->ctx, &files);
    return status;
}
