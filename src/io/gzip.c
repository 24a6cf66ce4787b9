/* Unpacks gzip in memory (RFC 1952): every member of the stream, in one pass. Truncated streams and bytes
 * after the last member are refused.
 *
 * The output is limited, so that a decompression bomb ends early. The limit is the caller's, or a ratio to
 * the packed bytes read so far.
 *
 * Must not know: what is packed. A format tells the size from its header by weft__declared_fn. Read next:
 * file.c. */
#include "io/file.h"

#include <string.h>
#include <zlib.h>

#include "base/limits.h"

#define DEFLATE_RATIO_MAX 1032 /* the highest ratio of deflate, from zlib's page "technical details" */
#define CHUNK_MAX         ((size_t)1 << 30) /* zlib counts in unsigned int */
#define CHUNK_PACED       ((size_t)1 << 20) /* bytes unpacked between two checks of the ratio */

typedef struct gunzip {
    weft_context *ctx;
    const char *name;
    const uint8_t *in;
    size_t in_size, in_done;
    uint8_t *out; /* `capacity` bytes, of which the first out_done are filled */
    size_t capacity, out_done;
    size_t limit;        /* more bytes than this are refused */
    bool declared;       /* the limit comes from the header of the format */
    bool paced;          /* the ratio to the packed bytes is limited too */
    bool stop_when_full; /* only the head is wanted, so a full buffer is success */
} gunzip;

bool weft__is_gzip(const void *bytes, size_t size) {
    const uint8_t *p = bytes;
    return size >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

const char *weft__packed_with(const void *bytes, size_t size) {
    static const struct {
        size_t at, bytes;
        const char *magic, *with;
    } known[] = {{0, 4, "\x28\xb5\x2f\xfd", "zstd: unpack it with zstd -d"},
                 {0, 6,
                  "\xfd"
                  "7zXZ\0",
                  "xz: unpack it with xz -d"},
                 {4, 6, "1AY&SY", "bzip2: unpack it with bzip2 -d"}, /* behind BZh and a digit */
                 {0, 4, "\x04\x22\x4d\x18", "lz4: unpack it with lz4 -d"},
                 {0, 4, "PK\x03\x04", "zip: unpack it with unzip"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].at + known[i].bytes &&
            memcmp((const char *)bytes + known[i].at, known[i].magic, known[i].bytes) == 0 &&
            (known[i].at == 0 || memcmp(bytes, "BZh", 3) == 0))
            return known[i].with;
    return NULL;
}

weft_status weft__refuse_packed(weft_context *ctx, const char *path, const void *bytes, size_t size) {
    const char *with = weft__packed_with(bytes, size);
    return with ? weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file is packed with %s", path, with) : WEFT_OK;
}

static voidpf zlib_alloc(voidpf ctx, uInt items, uInt size) {
    int64_t bytes;
    if (!weft__mul((int64_t)items, (int64_t)size, &bytes)) return NULL;
    return weft__alloc(ctx, (size_t)bytes);
}

static void zlib_free(voidpf ctx, voidpf p) { weft__free(ctx, p); }

/* Returns how many bytes `packed` bytes may become if the caller set no limit. */
static uint64_t allowance(size_t packed) { return WEFT__UNPACK_FREE + (uint64_t)packed * WEFT__UNPACK_RATIO; }

static bool too_large(const gunzip *g) {
    return g->out_done > g->limit || (g->paced && g->out_done > allowance(g->in_done));
}

static weft_status fail_ratio(const gunzip *g) {
    return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                      "%s: byte %zu: the file unpacks to more than 64 MiB and %d times its packed bytes; if "
                      "that is right, unpack it first",
                      g->name, g->in_done, WEFT__UNPACK_RATIO);
}

static weft_status fail_too_large(const gunzip *g) {
    if (g->paced && (!g->declared || g->out_done <= g->limit)) return fail_ratio(g);
    if (g->declared) {
        return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                          "%s: the file unpacks to more than the %zu bytes that its header declares", g->name,
                          g->limit);
    }
    return weft__fail(
        g->ctx, WEFT_ERR_FORMAT,
        "%s: %zu packed bytes unpack to more than %zu; if that is right, raise the limit or unpack "
        "the file",
        g->name, g->in_size, g->limit);
}

/* Doubles the buffer, up to one byte past the limit. That byte shows that the limit was exceeded. */
static weft_status grow(gunzip *g) {
    size_t wanted = g->capacity > g->limit / 2 ? g->limit + 1 : g->capacity * 2;
    uint8_t *out = weft__alloc_aligned(g->ctx, wanted + 1);
    if (out == NULL) return weft__fail_oom(g->ctx, wanted, g->name);
    memcpy(out, g->out, g->out_done);
    weft__free_aligned(g->ctx, g->out);
    g->out = out;
    g->capacity = wanted;
    return WEFT_OK;
}

static weft_status fail_inflate(const gunzip *g, int code, const char *message) {
    if (code == Z_MEM_ERROR) return weft__fail_oom(g->ctx, 0, "unpacking gzip");
    if (code == Z_BUF_ERROR) {
        return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                          "%s: byte %zu: the gzip stream is cut off; the file is incomplete", g->name,
                          g->in_size);
    }
    return weft__fail(g->ctx, WEFT_ERR_FORMAT, "%s: byte %zu: not a valid gzip stream: %s", g->name,
                      g->in_done, message != NULL ? message : "it needs a dictionary");
}

/* Calls inflate once, with as many bytes as it takes. Advances in_done and out_done. */
static int step(gunzip *g, z_stream *z) {
    size_t in = g->in_size - g->in_done, out = g->capacity - g->out_done;
    if (in > CHUNK_MAX) in = CHUNK_MAX;
    if (out > CHUNK_MAX) out = CHUNK_MAX;
    if (g->paced && out > CHUNK_PACED) out = CHUNK_PACED;
    z->next_in = (z_const Bytef *)(uintptr_t)(g->in + g->in_done); /* zlib does not write to its input */
    z->avail_in = (uInt)in;
    z->next_out = g->out + g->out_done;
    z->avail_out = (uInt)out;
    int code = inflate(z, Z_NO_FLUSH);
    g->in_done += in - z->avail_in;
    g->out_done += out - z->avail_out;
    return code;
}

/* Unpacks member after member, until the input ends at the end of a member. */
static weft_status unpack(gunzip *g, z_stream *z) {
    for (;;) {
        if (g->out_done == g->capacity) {
            if (g->stop_when_full) return WEFT_OK;
            WEFT_TRY(grow(g));
        }
        int code = step(g, z);
        if (!g->stop_when_full && too_large(g)) return fail_too_large(g);
        if (code == Z_STREAM_END) {
            if (g->in_done == g->in_size) return WEFT_OK;
            if (!weft__is_gzip(g->in + g->in_done, g->in_size - g->in_done)) {
                return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                                  "%s: byte %zu: %zu bytes after the end of the gzip stream", g->name,
                                  g->in_done, g->in_size - g->in_done);
            }
            inflateReset(z);
        } else if (code != Z_OK && !(code == Z_BUF_ERROR && g->in_done < g->in_size)) {
            return fail_inflate(g, code, z->msg);
        }
    }
}

static weft_status gzip_run(gunzip *g) {
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = g->ctx};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return weft__fail_oom(g->ctx, 0, "unpacking gzip");
    weft_status status = unpack(g, &z);
    inflateEnd(&z);
    return status;
}

/* Unpacks only the head, and lets the format compute the size of the whole file. */
static weft_status declared_size(const gunzip *g, weft__declared_fn declared, uint64_t *total) {
    gunzip head = *g;
    head.stop_when_full = true;
    head.capacity = WEFT__HEAD_SIZE;
    head.out = weft__alloc(g->ctx, WEFT__HEAD_SIZE);
    if (head.out == NULL) return weft__fail_oom(g->ctx, WEFT__HEAD_SIZE, g->name);
    weft_status status = gzip_run(&head);
    if (status == WEFT_OK) status = declared(g->ctx, head.out, head.out_done, g->name, total);
    weft__free(g->ctx, head.out);
    return status;
}

/* Sets the limit and the initial capacity. The last four bytes of the stream give the size of the last member
 * modulo 2^32. This size is only a hint. Usually it is right, and then the buffer never grows. */
static weft_status choose_sizes(gunzip *g, weft__declared_fn declared, size_t max_bytes) {
    uint64_t possible = (uint64_t)g->in_size * DEFLATE_RATIO_MAX;
    uint64_t limit = max_bytes != 0 ? max_bytes : allowance(g->in_size);
    g->paced = max_bytes == 0;
    if (declared != NULL) {
        WEFT_TRY(declared_size(g, declared, &limit));
        if (limit > possible) {
            return weft__fail(
                g->ctx, WEFT_ERR_FORMAT,
                "%s: its header declares %llu bytes, but %zu packed bytes cannot hold more than %llu",
                g->name, (unsigned long long)limit, g->in_size, (unsigned long long)possible);
        }
        if (g->paced && limit > allowance(g->in_size)) return fail_ratio(g);
        g->declared = true;
    }
    if (limit > PTRDIFF_MAX / 2) limit = PTRDIFF_MAX / 2;
    const uint8_t *end = g->in + g->in_size;
    uint64_t hint = 0;
    for (size_t i = 1; i <= 4 && i <= g->in_size; i++) hint = hint << 8 | end[-(ptrdiff_t)i];
    if (hint > possible) hint = possible;
    if (g->declared || hint > limit) hint = limit;
    g->limit = (size_t)limit;
    g->capacity = (size_t)hint + 1;
    return WEFT_OK;
}

weft_status weft__gunzip(weft_context *ctx, const void *bytes, size_t size, const char *name,
                         weft__declared_fn declared, size_t max_bytes, weft_bytes *out) {
    *out = (weft_bytes){0};
    if (size > PTRDIFF_MAX / DEFLATE_RATIO_MAX) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu packed bytes are too many", name, size);
    }
    gunzip g = {.ctx = ctx, .name = name, .in = bytes, .in_size = size};
    WEFT_TRY(choose_sizes(&g, declared, max_bytes));
    g.out = weft__alloc_aligned(ctx, g.capacity + 1);
    if (g.out == NULL) return weft__fail_oom(ctx, g.capacity, name);
    weft_status status = gzip_run(&g);
    if (status != WEFT_OK) {
        weft__free_aligned(ctx, g.out);
        return status;
    }
    g.out[g.out_done] = 0;
    *out = (weft_bytes){.data = g.out, .size = g.out_done};
    return WEFT_OK;
}
