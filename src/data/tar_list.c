/* Lists the members of a tar file with libarchive, which reads the headers and seeks over the rest: ustar,
 * GNU's long names and the headers of pax. libarchive tells where the headers of a member begin
 * (archive_read_header_position). The bytes of a member end, padded to a block, where the headers of the next
 * one begin. Must not know: images. Read next: shard_files.c. */
#define _POSIX_C_SOURCE 200809L
#include "data/tar_list.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "data/parse.h"
#include "io/publish.h"

weft_status weft__read_at(weft_context *ctx, int fd, const char *path, uint64_t at, void *to, size_t size) {
    for (size_t done = 0; done < size;) {
        const size_t left = size - done, wanted = left < 1 << 30 ? left : 1 << 30;
        const ssize_t got = pread(fd, (char *)to + done, wanted, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return weft__fail_io(ctx, "read", path, errno);
        if (got == 0)
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file ends at byte %llu, but more was expected",
                              path, (unsigned long long)(at + done));
        done += (size_t)got;
    }
    return WEFT_OK;
}

#ifdef WEFT_HAS_ARCHIVE
#include <archive.h>
#include <archive_entry.h>

#include "device/shared_library.h"

/* ---- libarchive, opened when a tar file is read: it loads a dozen other libraries ---- */

#define ARCHIVE_FUNCTIONS(X)                                                                                 \
    X(archive_entry_filetype)                                                                                \
    X(archive_entry_hardlink)                                                                                \
    X(archive_entry_pathname)                                                                                \
    X(archive_entry_pathname_utf8)                                                                           \
    X(archive_entry_size)                                                                                    \
    X(archive_entry_sparse_count)                                                                            \
    X(archive_entry_symlink)                                                                                 \
    X(archive_errno)                                                                                         \
    X(archive_error_string)                                                                                  \
    X(archive_read_free)                                                                                     \
    X(archive_read_header_position)                                                                          \
    X(archive_read_new)                                                                                      \
    X(archive_read_next_header)                                                                              \
    X(archive_read_open1)                                                                                    \
    X(archive_read_set_callback_data)                                                                        \
    X(archive_read_set_read_callback)                                                                        \
    X(archive_read_set_skip_callback)                                                                        \
    X(archive_read_support_format_tar)

typedef struct archive_functions {
#define MEMBER(name) __typeof__(name) *name;
    ARCHIVE_FUNCTIONS(MEMBER)
#undef MEMBER
} archive_functions;
static archive_functions la;

static weft_status open_library(weft_context *ctx, const char *path) {
    static const char *const files[] = {"libarchive.so.13", "libarchive.so", "libarchive.13.dylib"};
    static const weft_shared_symbol wanted[] = {
#define SYMBOL(name) {#name, offsetof(archive_functions, name)},
        ARCHIVE_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    static weft_shared_library library = {.files = files,
                                          .n_files = sizeof files / sizeof *files,
                                          .wanted = wanted,
                                          .n_wanted = sizeof wanted / sizeof *wanted,
                                          .table = &la,
                                          .absent = "install libarchive (Debian: libarchive13)",
                                          .old = "install a newer libarchive"};
    const char *problem = weft__shared_library_open(&library, NULL, NULL);
    return problem ? weft__fail(ctx, WEFT_ERR_UNSUPPORTED,
                                "%s: to read a tar file, %s; or unpack the tar file", path, problem)
                   : WEFT_OK;
}

enum { BLOCK = 512, PIECE = 4096 /* bytes read at once: the headers of a member, and small files */ };

/* ---- what libarchive reads from ---- */

typedef struct source {
    const weft__tar_file *tar;
    uint64_t at;
    int error; /* of a read; 0: none */
    uint8_t piece[PIECE];
} source;

static la_ssize_t read_piece(struct archive *archive, void *user, const void **bytes) {
    source *s = user;
    const uint64_t left = s->tar->size - s->at;
    ssize_t got;
    (void)archive;
    *bytes = s->piece;
    do got = pread(s->tar->fd, s->piece, left < PIECE ? (size_t)left : PIECE, (off_t)s->at);
    while (got < 0 && errno == EINTR);
    if (got < 0) s->error = errno;
    if (got > 0) s->at += (uint64_t)got;
    return got < 0 ? ARCHIVE_FATAL : got;
}

static la_int64_t skip(struct archive *archive, void *user, la_int64_t wanted) {
    source *s = user;
    const uint64_t left = s->tar->size - s->at, most = (uint64_t)wanted < left ? (uint64_t)wanted : left;
    (void)archive;
    s->at += most;
    return (la_int64_t)most;
}

static weft_status start(weft_context *ctx, source *s, struct archive **archive) {
    struct archive *a = *archive = la.archive_read_new();
    if (a && la.archive_read_support_format_tar(a) == ARCHIVE_OK &&
        la.archive_read_set_callback_data(a, s) == ARCHIVE_OK &&
        la.archive_read_set_read_callback(a, read_piece) == ARCHIVE_OK &&
        la.archive_read_set_skip_callback(a, skip) == ARCHIVE_OK && la.archive_read_open1(a) == ARCHIVE_OK)
        return WEFT_OK;
    if (s->error) return weft__fail_io(ctx, "read", s->tar->path, s->error);
    if (a && la.archive_errno(a) != ENOMEM && la.archive_error_string(a))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this is not a tar file: %s", s->tar->path,
                          la.archive_error_string(a));
    return weft__fail_oom(ctx, 0, s->tar->path);
}

/* `at`: the headers that were read last. */
static weft_status damaged(weft_context *ctx, const source *s, struct archive *a, uint64_t at) {
    const char *why = la.archive_error_string(a);
    if (s->error) return weft__fail_io(ctx, "read", s->tar->path, s->error);
    if (la.archive_errno(a) == ENOMEM) return weft__fail_oom(ctx, 0, s->tar->path);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the tar file is damaged after byte %llu: %s: copy it again",
                      s->tar->path, (unsigned long long)at, why ? why : "unknown error");
}

/* ---- packed files ---- */

static weft_status refuse_packed(weft_context *ctx, const weft__tar_file *tar) {
    static const struct {
        const char *begin;
        size_t size;
        const char *program;
    } kinds[] = {{"\x1f\x8b", 2, "gzip"},
                 {"BZh", 3, "bzip2"},
                 {"\xfd"
                  "7zXZ",
                  5, "xz"},
                 {"\x28\xb5\x2f\xfd", 4, "zstd"},
                 {"\x04\x22\x4d\x18", 4, "lz4"}};
    uint8_t head[BLOCK] = {0};
    const size_t size = tar->size < sizeof head ? (size_t)tar->size : sizeof head;
    WEFT_TRY(weft__read_at(ctx, tar->fd, tar->path, 0, head, size));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (memcmp(head, kinds[i].begin, kinds[i].size) == 0)
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: the tar file is packed with %s, so files cannot be read from its middle: "
                              "unpack it with %s -d, and give the .tar",
                              tar->path, kinds[i].program, kinds[i].program);
    if (size == sizeof head) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu bytes are too few for a tar file", tar->path, size);
}

/* ---- members ---- */

/* The member before the one that was read last. Its bytes end where the next headers begin. */
typedef struct walk {
    weft_context *ctx;
    source *source;
    weft__tar_visit *visit;
    void *user;
    bool waiting; /* there is such a member */
    weft__tar_member member;
    char *name;
    size_t capacity;
} walk;

static const char *plain(const char *name) {
    while (*name == '/' || (name[0] == '.' && name[1] == '/')) name += *name == '/' ? 1 : 2;
    return name;
}

/* Returns the bytes of the name, as the file has them where the locale allows it. */
static const char *entry_name(struct archive_entry *entry) {
    const char *name = la.archive_entry_pathname(entry);
    if (!name) name = la.archive_entry_pathname_utf8(entry);
    return name ? plain(name) : "";
}

static weft_status cut_off(const walk *w) {
    return weft__fail(w->ctx, WEFT_ERR_FORMAT,
                      "%s/%s: the tar file is cut off in or after this member, at byte %llu: copy it again",
                      w->source->tar->path, w->member.name, (unsigned long long)w->source->tar->size);
}

/* Visits the member that waits, of which the next headers begin at `end`. */
static weft_status pass_on(walk *w, uint64_t end) {
    weft__tar_member *m = &w->member;
    if (!w->waiting) return WEFT_OK;
    w->waiting = false;
    if (end > w->source->tar->size) return cut_off(w);
    if (!m->no_bytes) {
        const uint64_t padded = (m->size + BLOCK - 1) / BLOCK * BLOCK;
        if (padded < m->size || end < m->header + BLOCK || end - m->header - BLOCK < padded ||
            (end - m->header) % BLOCK != 0)
            return weft__fail(
                w->ctx, WEFT_ERR_FORMAT,
                "%s/%s: the size of this member, at byte %llu, is damaged: copy the tar file again",
                w->source->tar->path, m->name, (unsigned long long)m->header);
        m->data = end - padded;
    }
    return w->visit(w->user, m);
}

/* Keeps a member until the next one is read. */
static weft_status hold_member(walk *w, struct archive *a, struct archive_entry *entry) {
    const char *name = entry_name(entry);
    const size_t size = strlen(name) + 1;
    if (size > w->capacity) {
        char *room = weft__realloc(w->ctx, w->name, 2 * size);
        if (!room) return weft__fail_oom(w->ctx, 2 * size, "a name");
        w->name = room;
        w->capacity = 2 * size;
    }
    memcpy(w->name, name, size);
    const bool link = la.archive_entry_hardlink(entry) || la.archive_entry_symlink(entry),
               file = la.archive_entry_filetype(entry) == AE_IFREG,
               sparse = la.archive_entry_sparse_count(entry) > 0;
    w->member = (weft__tar_member){.name = w->name,
                                   .header = (uint64_t)la.archive_read_header_position(a),
                                   .size = (uint64_t)la.archive_entry_size(entry),
                                   .no_bytes = link     ? "a link"
                                               : !file  ? "no file"
                                               : sparse ? "a sparse file"
                                                        : NULL};
    w->waiting = la.archive_entry_filetype(entry) != AE_IFDIR;
    return WEFT_OK;
}

/* A tar ends with two blocks of zeros, of which one will do. Only zeros may follow, up to a round size. */
static weft_status check_end(const walk *w, uint64_t end) {
    const weft__tar_file *tar = w->source->tar;
    uint8_t *piece = w->source->piece;
    if (end + BLOCK > tar->size)
        return weft__fail(
            w->ctx, WEFT_ERR_FORMAT,
            "%s: the tar file has no end mark (blocks of zeros) at byte %llu: it is cut off, or "
            "still being written",
            tar->path, (unsigned long long)end);
    for (uint64_t at = end, size; at < tar->size; at += size) {
        size = tar->size - at < PIECE ? tar->size - at : PIECE;
        WEFT_TRY(weft__read_at(w->ctx, tar->fd, tar->path, at, piece, (size_t)size));
        for (size_t i = 0; i < size; i++)
            if (piece[i])
                return weft__fail(
                    w->ctx, WEFT_ERR_FORMAT,
                    "%s: more follows the end of the tar file, at byte %llu: if this is a second "
                    "tar file, give it as a file of its own",
                    tar->path, (unsigned long long)(at + i));
    }
    return WEFT_OK;
}

static weft_status list_members(walk *w, struct archive *a) {
    struct archive_entry *entry;
    for (;;) {
        const int code = la.archive_read_next_header(a, &entry);
        if (code == ARCHIVE_EOF) break;
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) { /* a warning is about a name or a time */
            const char *why = la.archive_error_string(a); /* nothing else tells "cut off" from "damaged" */
            const bool cut = !w->source->error && w->waiting && why && strstr(why, "runcated");
            return cut ? cut_off(w) : damaged(w->ctx, w->source, a, w->member.header);
        }
        WEFT_TRY(pass_on(w, (uint64_t)la.archive_read_header_position(a)));
        WEFT_TRY(hold_member(w, a, entry));
    }
    const uint64_t end = (uint64_t)la.archive_read_header_position(a);
    WEFT_TRY(pass_on(w, end));
    return check_end(w, end);
}

weft_status weft__tar_list(weft_context *ctx, const weft__tar_file *tar, weft__tar_visit *visit, void *user) {
    source s = {.tar = tar};
    walk w = {.ctx = ctx, .source = &s, .visit = visit, .user = user};
    struct archive *a = NULL;
    WEFT_TRY(refuse_packed(ctx, tar));
    WEFT_TRY(open_library(ctx, tar->path));
    weft_status status = start(ctx, &s, &a);
    if (status == WEFT_OK) status = list_members(&w, a);
    la.archive_read_free(a);
    weft__free(ctx, w.name);
    return status;
}

weft_status weft__tar_name(weft_context *ctx, const weft__tar_file *tar, uint64_t header, weft_bytes *name) {
    source s = {.tar = tar, .at = header};
    struct archive *a = NULL;
    struct archive_entry *entry;
    WEFT_TRY(open_library(ctx, tar->path));
    weft_status status = start(ctx, &s, &a);
    if (status == WEFT_OK) {
        const int code = la.archive_read_next_header(a, &entry);
        status = code == ARCHIVE_OK || code == ARCHIVE_WARN ? WEFT_OK : damaged(ctx, &s, a, header);
    }
    if (status == WEFT_OK) {
        const char *text = entry_name(entry);
        status = weft__bytes_new(ctx, strlen(text), "a name", name);
        if (status == WEFT_OK) memcpy(name->data, text, name->size);
    }
    la.archive_read_free(a);
    return status;
}

#else

static weft_status absent(weft_context *ctx, const weft__tar_file *tar) {
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this is a tar file, and this Weft was built without libarchive: install "
                      "libarchive-dev and build Weft again, or unpack the tar file",
                      tar->path);
}

weft_status weft__tar_list(weft_context *ctx, const weft__tar_file *tar, weft__tar_visit *visit, void *user) {
    (void)visit, (void)user;
    return absent(ctx, tar);
}

weft_status weft__tar_name(weft_context *ctx, const weft__tar_file *tar, uint64_t header, weft_bytes *name) {
    (void)header, (void)name;
    return absent(ctx, tar);
}

#endif
