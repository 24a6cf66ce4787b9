/* Sealed files of a run folder, see sealed.h. Must not know: what the files hold. Read next:
 * train/dataset/dataset.c. */
#include <errno.h>
#include <unistd.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/text.h"
#include "io/seal.h"
#include "io/sealed.h"

enum { PATH_BYTES = 4096, FILE_MAX = 1 << 26 };

weft_status weft__sealed_write(const char *dir, const char *name, weft__json *json, const json_t *root,
                               size_t flags) {
    char path[PATH_BYTES], *body, *text;
    size_t bytes = 0;
    WEFT_TRY(weft__json_text(json, root, flags, name, &body, &bytes));
    weft_status status = weft__seal(NULL, body, bytes, &text, &bytes);
    weft__free(NULL, body);
    WEFT_TRY(status);
    if (!weft__join(path, sizeof path, dir, name))
        status = weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", dir);
    if (status == WEFT_OK) status = weft_write_file(NULL, path, text, bytes);
    weft__free(NULL, text);
    return status;
}

static weft_status parse(weft_context *ctx, const char *path, const weft_bytes *bytes, weft__json *json,
                         json_t **root) {
    json_error_t error;
    const char *text = (const char *)bytes->data;
    WEFT_TRY(weft__seal_check(ctx, path, text, bytes->size));
    const weft_status status = weft__json_load(json, text, bytes->size, JSON_REJECT_DUPLICATES, &error, root);
    if (status == WEFT_ERR_OOM || json_is_object(*root)) return status;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: line %d: %s", path, error.line, error.text);
}

weft_status weft__sealed_read(weft_context *ctx, const char *dir, const char *name, weft__json *json,
                              json_t **root) {
    char path[PATH_BYTES];
    weft_bytes bytes;
    weft__json_open(json, ctx);
    *root = NULL;
    if (!weft__join(path, sizeof path, dir, name))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", dir);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return weft__fail(ctx, WEFT_ERR_STATE, "%s: there is no such file", path);
    WEFT_TRY(weft_read_file(ctx, path, FILE_MAX, &bytes));
    const weft_status status = parse(ctx, path, &bytes, json, root);
    weft_bytes_free(ctx, &bytes);
    return status;
}

weft_status weft__sealed_check(const char *dir, const char *name) {
    weft__json json;
    json_t *root;
    const weft_status status = weft__sealed_read(NULL, dir, name, &json, &root);
    weft__json_close(&json);
    return status;
}
