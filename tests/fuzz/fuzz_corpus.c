/* Texts in a tar file, whatever their bytes: left in the file or read into memory, they give the same tokens,
 * or both are refused. The first byte of an input chooses the tokenizer, the format and the parts; each of
 * the rest up to a byte of 0 is a member. */
#include <unistd.h>

#include <weft/data.h>
#include <weft/text.h>

#include "bounded.h"

enum { MEMBERS_MOST = 8, BLOCK = 512, NAME = 100, MODE = 100, BYTES = 124, SUM = 148, MAGIC = 257 };

/* Writes a member in the format of POSIX.1-1988 (ustar). */
static void put_member(FILE *to, const char *name, const uint8_t *data, size_t size) {
    static const char padding[BLOCK];
    char header[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(header, NAME, "%s", name);
    snprintf(header + MODE, 8, "%07o", 0644u);
    snprintf(header + BYTES, 12, "%011zo", size);
    memcpy(header + MAGIC, "ustar\00000", 8);
    memset(header + SUM, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += (uint8_t)header[i];
    snprintf(header + SUM, 8, "%06o", sum);
    fwrite(header, 1, BLOCK, to);
    fwrite(data, 1, size, to);
    fwrite(padding, 1, (BLOCK - size % BLOCK) % BLOCK, to);
}

static void write_tar(const char *path, const char *suffix, const uint8_t *data, size_t size) {
    FILE *to = fopen(path, "wb");
    if (!to) abort();
    for (int i = 0; i < MEMBERS_MOST; i++) {
        const uint8_t *end = size ? memchr(data, 0, size) : NULL;
        const size_t n = end && i < MEMBERS_MOST - 1 ? (size_t)(end - data) : size;
        char name[16];
        snprintf(name, sizeof name, "%d%s", i, suffix);
        put_member(to, name, data, n);
        if (n == size) break;
        data += n + 1, size -= n + 1;
    }
    const char end[2 * BLOCK] = {0}; /* marks the end of a tar file */
    fwrite(end, 1, sizeof end, to);
    if (fclose(to)) abort();
}

/* Reads a part that stays in its file, in pieces of uneven length. */
static void check_part(const weft_corpus *held, const weft_corpus *filed, weft_corpus_part part) {
    size_t n, m, at = 0;
    int64_t first = 0;
    int32_t piece[37];
    const int32_t *ids = weft_corpus_ids(held, part, &n);
    const weft_tokens *tokens = weft_corpus_tokens(filed, part, &first);
    weft_corpus_ids(filed, part, &m);
    if (n != m || (n && !tokens)) abort();
    while (at < n) {
        const size_t wanted = n - at < 37 ? n - at : 37;
        if (weft_tokens_read(tokens, first + (int64_t)at, wanted, piece) != wanted) abort();
        if (memcmp(piece, ids + at, wanted * sizeof *ids) != 0) abort();
        at += wanted;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const suffixes[] = {".txt", ".md", ".jsonl", ".jsonl"};
    static char path[64];
    bounded b, c;
    if (size == 0) return 0;
    weft_context ctx = bounded_context(&b, ((size_t)64 << 20) + 1000 * size),
                 other = bounded_context(&c, ((size_t)64 << 20) + 1000 * size);
    weft_corpus_options options = {
        .kind = data[0] & 1 ? WEFT_TOKENIZER_BYTE : WEFT_TOKENIZER_CHARACTER,
        .validation_fraction = data[0] & 2 ? 0.3 : 0,
    };
    weft_corpus *held = NULL, *filed = NULL;
    if (!path[0]) snprintf(path, sizeof path, "/tmp/weft-fuzz-input-%d.tar", (int)getpid());
    write_tar(path, suffixes[data[0] >> 2 & 3], data + 1, size - 1);
    const weft_status whole = weft_corpus_open(&ctx, path, &options, &held);
    options.in_files = true;
    const weft_status left = weft_corpus_open(&other, path, &options, &filed);
    if ((whole == WEFT_OK) != (left == WEFT_OK)) {
        fprintf(stderr, "in memory: %s\nin its file: %s\n",
                whole == WEFT_OK ? "accepted" : weft_last_error(&ctx),
                left == WEFT_OK ? "accepted" : weft_last_error(&other));
        abort();
    }
    for (int part = 0; whole == WEFT_OK && part < WEFT_CORPUS_PART_COUNT; part++)
        check_part(held, filed, (weft_corpus_part)part);
    weft_corpus_free(held);
    weft_corpus_free(filed);
    unlink(path);
    bounded_check(&b, &ctx, whole);
    bounded_check(&c, &other, left);
    return 0;
}
