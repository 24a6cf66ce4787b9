/* The marks of folders that Weft makes. Must not know: what the folders hold. Read next: publish.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/io.h>

#include "base/text.h"
#include "io/mark.h"
#include "io/publish.h"

bool weft__marked(const char *folder, const char *kind) {
    char path[4096], begin[64], line[64] = "";
    const int size = snprintf(begin, sizeof begin, "weft %s ", kind);
    if (!weft__join(path, sizeof path, folder, WEFT__MARK_FILE)) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    const bool readable = read(fd, line, sizeof line - 1) > 0;
    (void)close(fd);
    return readable && strncmp(line, begin, (size_t)size) == 0;
}

weft_status weft__mark(weft_context *ctx, const char *folder, const char *kind) {
    char path[4096], line[64];
    if (weft__marked(folder, kind)) return WEFT_OK;
    if (!weft__join(path, sizeof path, folder, WEFT__MARK_FILE))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    const int size = snprintf(line, sizeof line, "weft %s %d\n", kind, WEFT__MARK_FORMAT);
    return weft_write_file(ctx, path, line, (size_t)size);
}

weft_status weft__find_foreign(weft_context *ctx, const char *folder, bool (*known)(const char *name),
                               char found[WEFT__ENTRY_NAME]) {
    int error = 0;
    found[0] = '\0';
    DIR *stream = weft__opendir(folder);
    if (!stream) return errno == ENOENT ? WEFT_OK : weft__fail_io(ctx, "list", folder, errno);
    for (const struct dirent *e; !found[0] && (e = weft__next_entry(stream, &error));) {
        const char *name = e->d_name;
        const bool own =
            strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, WEFT__MARK_FILE) == 0;
        if (!own && !weft__is_temp_name(name) && !(known && known(name)))
            snprintf(found, WEFT__ENTRY_NAME, "%s", name);
    }
    closedir(stream);
    return error ? weft__fail_io(ctx, "list", folder, error) : WEFT_OK;
}
