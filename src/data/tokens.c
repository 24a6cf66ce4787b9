/* Files of tokens, mapped into memory. Pages that are not used are not read, so files may be larger than
 * memory. There are three formats, all little-endian:
 *
 *     nanoGPT:  ids (u16 each)
 *     llm.c:    header of 256 i32: 20240520, 1, number of ids, zeros | ids (u16 each)
 *               header of 256 i32: 20240801, 7, number of ids, zeros | ids (u32 each)
 *
 * Tokens may also come from a source that makes them when they are read (tokens.h). Must not know: batches.
 * Read next: loader.c. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/parse.h"
#include "data/tokens.h"
#include "io/publish.h"
#include <weft/data.h>
#include <weft/io.h>

#define HEADER_BYTES  ((size_t)1024)
#define HEADER_COUNTS ((size_t)INT32_MAX) /* most ids of one file */
#define ID_MOST       (1 << 24)           /* as for npy files */

/* The formats with a header. */
static const struct form {
    int32_t magic, version;
    size_t width; /* bytes of an id */
} forms[] = {{20240520, 1, 2}, {20240801, 7, 4}};
static const struct form *const narrow = &forms[0], *const wide = &forms[1];

/* Other formats of llm.c begin with numbers in this range. Read as tokens, these numbers would be (x, 308)
 * with x above 54,000. */
#define MAGIC_LOW  INT32_C(20240000)
#define MAGIC_HIGH INT32_C(20249999)

typedef struct shard {
    void *map;
    size_t map_bytes;
    const uint8_t *ids;
    size_t width;  /* bytes of an id: 2 or 4 */
    bool header;   /* the file says so itself */
    int64_t first; /* number of ids in the files before */
    int64_t count;
} shard;

struct weft_tokens {
    weft_context *ctx;
    shard *shards;
    size_t shard_count;
    int64_t count;
    int32_t largest;
    uint64_t hash;
    char *largest_file;          /* the first file that has `largest` */
    char *missing;               /* of files that are numbered; NULL: none */
    weft__tokens_source *source; /* NULL: the files have the tokens */
    void *user;
};

static int32_t read_i32(const uint8_t *p) {
    uint32_t v = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return (int32_t)v;
}

static int32_t id_at(const shard *s, int64_t i) {
    const uint8_t *p = s->ids + (size_t)i * s->width;
    return s->width == 4 ? read_i32(p) : p[0] | p[1] << 8;
}

/* ---- opening ---- */

static weft_status check_header(weft_context *ctx, const char *path, const uint8_t *bytes, size_t size,
                                const struct form *form) {
    if (size < HEADER_BYTES)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu bytes, but its header alone has %zu: it was cut off",
                          path, size, HEADER_BYTES);
    const int32_t version = read_i32(bytes + 4), count = read_i32(bytes + 8);
    const size_t rest = size - HEADER_BYTES;
    if (version != form->version)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "%s: version %d of the format, but this Weft reads %d",
                          path, version, form->version);
    if (count < 0 || rest % form->width || rest / form->width != (size_t)count)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: its header promises %d tokens, but %zu bytes follow it: %s", path, count, rest,
                          count > 0 && rest < form->width * (size_t)count ? "it was cut off"
                          : form->width == 2                              ? "expected two for each token"
                                                                          : "expected four for each token");
    return WEFT_OK;
}

weft_status weft__parse_tokens(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               size_t *begin, size_t *width) {
    const int32_t magic = size >= 4 ? read_i32(bytes) : 0;
    *begin = 0;
    *width = narrow->width;
    if (magic >= MAGIC_LOW && magic <= MAGIC_HIGH) {
        const struct form *form = magic == wide->magic ? wide : narrow;
        if (magic != form->magic)
            return weft__fail(
                ctx, WEFT_ERR_FORMAT,
                "%s: begins with the number %d: files of tokens with a header begin with %d (16 "
                "bits a token) or %d (32 bits)",
                name, magic, narrow->magic, wide->magic);
        WEFT_TRY(check_header(ctx, name, bytes, size, form));
        *begin = HEADER_BYTES;
        *width = form->width;
    }
    if (size == 0) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file is empty", name);
    if (size % 2 == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: it has %zu bytes; a file of 16-bit tokens has an even number", name, size);
}

static weft_status map_file(weft_context *ctx, const char *path, int fd, shard *s) {
    struct stat st;
    size_t begin = 0;
    if (fstat(fd, &st) != 0) return weft__fail_io(ctx, "read the size of", path, errno);
    if (!S_ISREG(st.st_mode))
        return weft__fail(ctx, WEFT_ERR_IO, "%s: this is not a file%s", path,
                          S_ISDIR(st.st_mode) ? ": for the files in a folder give a pattern, FOLDER/*.bin"
                                              : "");
    /* an empty file cannot be mapped */
    if (st.st_size == 0) return weft__parse_tokens(ctx, "", 0, path, &begin, &s->width);
    if ((uintmax_t)st.st_size > PTRDIFF_MAX) return weft__fail_io(ctx, "map", path, EFBIG);
    s->map_bytes = (size_t)st.st_size;
    s->map = mmap(NULL, s->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return weft__fail_io(ctx, "map", path, errno);
    }
    WEFT_TRY(weft__parse_tokens(ctx, s->map, s->map_bytes, path, &begin, &s->width));
    s->ids = (const uint8_t *)s->map + begin;
    s->header = begin > 0;
    s->count = (int64_t)((s->map_bytes - begin) / s->width);
    if (s->count > 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: its header promises no tokens: remove the file, or write it again", path);
}

#define LANES 8 /* lanes of the hash; they are independent, so hashing is as fast as memory */
#define BLOCK (LANES * sizeof(uint64_t))

/* The largest ids so far, of each place of a block. Both kinds are kept apart, so that loops have vectors. */
typedef struct largest_ids {
    uint16_t narrow[BLOCK / 2];
    uint32_t wide[BLOCK / 4];
} largest_ids;

/* Processes the ids in BLOCK bytes. */
static void survey_block(const uint8_t *ids, size_t width, uint64_t *restrict lanes,
                         largest_ids *restrict most) {
    uint64_t words[LANES];
    uint16_t narrow_ids[BLOCK / 2];
    uint32_t wide_ids[BLOCK / 4];
    memcpy(words, ids, sizeof words);
    weft__to_host_order(WEFT_U64, words, sizeof words, false);
    for (int k = 0; k < LANES; k++) {
        lanes[k] = (lanes[k] ^ words[k]) * UINT64_C(0x9e3779b97f4a7c15);
        lanes[k] = lanes[k] << 32 | lanes[k] >> 32;
    }
    if (width == 4) {
        memcpy(wide_ids, ids, sizeof wide_ids);
        weft__to_host_order(WEFT_U32, wide_ids, sizeof wide_ids, false);
        for (size_t k = 0; k < BLOCK / 4; k++)
            most->wide[k] = wide_ids[k] > most->wide[k] ? wide_ids[k] : most->wide[k];
        return;
    }
    memcpy(narrow_ids, ids, sizeof narrow_ids);
    weft__to_host_order(WEFT_U16, narrow_ids, sizeof narrow_ids, false);
    for (size_t k = 0; k < BLOCK / 2; k++)
        most->narrow[k] = narrow_ids[k] > most->narrow[k] ? narrow_ids[k] : most->narrow[k];
}

/* Tells whether a file without a header seems to hold ids of 32 bits: the upper half of each is below 256. */
static bool seems_wide(const shard *s, const largest_ids *most) {
    enum { ENOUGH = 1024, HIGH = ID_MOST >> 16 };
    uint16_t even = 0, odd = 0;
    for (size_t k = 0; k < BLOCK / 2; k += 2) {
        if (most->narrow[k] > even) even = most->narrow[k];
        if (most->narrow[k + 1] > odd) odd = most->narrow[k + 1];
    }
    return !s->header && s->count >= ENOUGH && s->count % 2 == 0 && odd < HIGH && even > HIGH;
}

/* Hashes all ids of a file, and returns the largest. *seems: see seems_wide. */
static uint32_t survey_shard(const shard *s, uint64_t *lanes, bool *seems) {
    largest_ids most = {{0}, {0}};
    uint32_t largest = 0;
    const size_t bytes = s->width * (size_t)s->count, whole = bytes / BLOCK * BLOCK;
    uint8_t rest[BLOCK] = {0};
    (void)posix_madvise(s->map, s->map_bytes, POSIX_MADV_SEQUENTIAL);
    for (size_t at = 0; at < whole; at += BLOCK) survey_block(s->ids + at, s->width, lanes, &most);
    memcpy(rest, s->ids + whole, bytes - whole);
    survey_block(rest, s->width, lanes, &most);
    /* windows are small and anywhere in the file */
    (void)posix_madvise(s->map, s->map_bytes, POSIX_MADV_RANDOM);
    *seems = seems_wide(s, &most);
    for (size_t k = 0; k < BLOCK / 2; k++)
        if (most.narrow[k] > largest) largest = most.narrow[k];
    for (size_t k = 0; k < BLOCK / 4; k++)
        if (most.wide[k] > largest) largest = most.wide[k];
    return largest;
}

/* Computes the largest id and a hash in one pass over all ids. */
static weft_status survey(weft_tokens *t, char *const *paths) {
    uint64_t lanes[LANES] = {0};
    weft_hash hash;
    weft__hash_init(&hash);
    for (size_t k = 0; k < t->shard_count; k++) {
        const shard *s = &t->shards[k];
        bool seems;
        const uint32_t largest = survey_shard(s, lanes, &seems);
        if (seems)
            return weft__fail(
                t->ctx, WEFT_ERR_FORMAT,
                "%s: every second number is below 256, so its tokens seem to have 32 bits, but a "
                "file without a header has 16: write it with 16 bits, or with the header %d",
                paths[k], forms[1].magic);
        if (largest > ID_MOST)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT,
                              "%s: its largest token is %" PRIu32 "; expected at most %d", paths[k], largest,
                              ID_MOST);
        if (k == 0 || (int32_t)largest > t->largest) {
            t->largest = (int32_t)largest;
            weft__free(t->ctx, t->largest_file);
            if (!(t->largest_file = weft__strdup(t->ctx, paths[k])))
                return weft__fail_oom(t->ctx, 0, "files of tokens");
        }
        weft__hash_u64(&hash, s->width * (size_t)s->count);
    }
    weft__hash_bytes(&hash, lanes, sizeof lanes);
    t->hash = hash.a ^ weft__mix64(hash.b);
    return WEFT_OK;
}

static weft_status open_shards(weft_tokens *t, char *const *paths, size_t count) {
    t->shards = weft__array(t->ctx, count, sizeof *t->shards);
    if (!t->shards) return weft__fail_oom(t->ctx, count * sizeof *t->shards, "files of tokens");
    for (size_t i = 0; i < count; i++) {
        shard *s = &t->shards[t->shard_count++];
        int fd;
        do fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        while (fd < 0 && errno == EINTR);
        if (fd < 0) return weft__fail_io(t->ctx, "open", paths[i], errno);
        weft_status status = map_file(t->ctx, paths[i], fd, s);
        close(fd); /* the mapping stays */
        WEFT_TRY(status);
        s->first = t->count;
        t->count += s->count;
    }
    return survey(t, paths);
}

/* Opens the files that match a pattern, sorted by name. A path that exists is a single file, even if it looks
 * like a pattern. */
static weft_status tokens_expand(weft_tokens *t, const char *path) {
    char *one = (char *)path; /* open_shards does not write to it */
    glob_t found;
    weft__names names = {0};
    bool range;
    weft_status status = weft__numbered_range(t->ctx, path, &names, &range);
    if (status == WEFT_OK && range) status = open_shards(t, names.at, names.count);
    weft__names_free(t->ctx, &names);
    if (status != WEFT_OK || range) return status;
    if (access(path, F_OK) == 0 || !strpbrk(path, "*?[")) return open_shards(t, &one, 1);
    int code = glob(path, 0, NULL, &found);
    if (code == GLOB_NOSPACE) return weft__fail_oom(t->ctx, 0, "a list of files");
    if (code == GLOB_NOMATCH) return weft__fail(t->ctx, WEFT_ERR_IO, "%s: there is no such file", path);
    if (code != 0) return weft__fail(t->ctx, WEFT_ERR_IO, "%s: its folder cannot be read", path);
    status = open_shards(t, found.gl_pathv, found.gl_pathc);
    if (!strchr(path, '[')) t->missing = weft__numbered_gap(t->ctx, found.gl_pathv, found.gl_pathc);
    globfree(&found);
    return status;
}

weft_status weft_tokens_open(weft_context *ctx, const char *path, weft_tokens **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    weft_tokens *t = weft__zalloc(ctx, sizeof *t);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "files of tokens");
    t->ctx = ctx;
    weft_status status = tokens_expand(t, path);
    if (status == WEFT_OK)
        *out = t;
    else
        weft_tokens_free(t);
    return status;
}

void weft_tokens_free(weft_tokens *t) {
    if (!t) return;
    for (size_t i = 0; i < t->shard_count; i++)
        if (t->shards[i].map) munmap(t->shards[i].map, t->shards[i].map_bytes);
    weft__free(t->ctx, t->shards);
    weft__free(t->ctx, t->largest_file);
    weft__free(t->ctx, t->missing);
    weft__free(t->ctx, t);
}

weft_status weft__tokens_from(weft_context *ctx, const weft__tokens_facts *facts, weft__tokens_source *source,
                              void *user, weft_tokens **out) {
    weft_tokens *t = *out = weft__zalloc(ctx, sizeof *t);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "tokens");
    *t = (weft_tokens){.ctx = ctx,
                       .count = facts->count,
                       .largest = facts->largest,
                       .hash = facts->hash,
                       .source = source,
                       .user = user};
    return WEFT_OK;
}

/* ---- reading ---- */

int64_t weft_tokens_count(const weft_tokens *tokens) { return tokens ? tokens->count : 0; }

int32_t weft_tokens_largest(const weft_tokens *tokens) { return tokens ? tokens->largest : 0; }

uint64_t weft_tokens_hash(const weft_tokens *tokens) { return tokens ? tokens->hash : 0; }

const char *weft__tokens_largest_file(const weft_tokens *t) { return t->largest_file; }

const char *weft__tokens_missing(const weft_tokens *t) { return t ? t->missing : NULL; }

size_t weft_tokens_read(const weft_tokens *t, int64_t first, size_t count, int32_t *ids) {
    if (!t || !ids || first < 0 || first >= t->count) return 0;
    const uint64_t left = (uint64_t)(t->count - first);
    if (count > left) count = (size_t)left;
    return weft__tokens_get(t, first, count, ids) == WEFT_OK ? count : 0;
}

weft_status weft__tokens_get(const weft_tokens *t, int64_t first, size_t count, int32_t *ids) {
    size_t done = 0, low = 0, high = t->shard_count;
    if (t->source) return t->source(t->user, first, count, ids);
    while (high - low > 1) { /* binary search for the last file that does not begin after `first` */
        size_t middle = (low + high) / 2;
        if (t->shards[middle].first <= first)
            low = middle;
        else
            high = middle;
    }
    for (; low < t->shard_count && done < count; low++) {
        const shard *s = &t->shards[low];
        for (int64_t i = first + (int64_t)done - s->first; i < s->count && done < count; i++)
            ids[done++] = id_at(s, i);
    }
    return WEFT_OK;
}

/* ---- writing ---- */

/* Writes the low `width` bytes of a number. */
static void put_u32(uint8_t *to, uint32_t value, size_t width) {
    for (size_t k = 0; k < width; k++) to[k] = (uint8_t)(value >> 8 * k);
}

weft_status weft_tokens_write(weft_context *ctx, const char *path, const int32_t *ids, size_t count) {
    WEFT_NEED(ctx, path);
    WEFT_NEED_ARRAY(ctx, ids, count);
    return weft__tokens_write(ctx, path, ids, count, false);
}

weft_status weft__tokens_write(weft_context *ctx, const char *path, const int32_t *ids, size_t count,
                               bool wide_ids) {
    if (count > HEADER_COUNTS)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokens_write: %zu tokens: a file has at most %zu",
                          count, HEADER_COUNTS);
    int32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] > ID_MOST)
            return weft__fail(ctx, WEFT_ERR_INDEX, "%s: token %zu is %" PRId32 ", outside 0 to %d", path, i,
                              ids[i], ID_MOST);
        if (ids[i] > largest) largest = ids[i];
    }
    const struct form *form = wide_ids || largest > UINT16_MAX ? wide : narrow;
    const size_t size = HEADER_BYTES + form->width * count;
    uint8_t *bytes = weft__zalloc(ctx, size);
    if (!bytes) return weft__fail_oom(ctx, size, "a file of tokens");
    put_u32(bytes, (uint32_t)form->magic, 4);
    put_u32(bytes + 4, (uint32_t)form->version, 4);
    put_u32(bytes + 8, (uint32_t)count, 4);
    for (size_t i = 0; i < count; i++)
        put_u32(bytes + HEADER_BYTES + form->width * i, (uint32_t)ids[i], form->width);
    const weft_status status = weft_write_file(ctx, path, bytes, size);
    weft__free(ctx, bytes);
    return status;
}
