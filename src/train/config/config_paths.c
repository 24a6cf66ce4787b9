/* The paths of a configuration, and which of them the user has named. A run folder may come from somebody
 * else, and then its config.yaml could name any file of the user. So Weft follows a path of a run only if it
 * leads to a file in the run folder, if the user gives it now, or if the user has given it before. Paths that
 * were given are kept in $XDG_STATE_HOME/weft/paths, otherwise ~/.local/state/weft/paths, one a line, as ssh
 * keeps known hosts. Must not know: what is in the files. Read next: config.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/text.h"
#include "io/publish.h"
#include "train/config/config.h"

enum { PATH_BYTES = 4096, KNOWN_MOST = 1 << 20 /* bytes of the file; then the older half is forgotten */ };

/* ---- paths of a configuration ---- */

typedef struct named_path {
    weft__config_key key;
    char **text;
} named_path;

/* Returns the i-th path of a configuration; `text` NULL: there are no more. */
static named_path path_at(const weft__config *of, size_t i) {
    weft__config *config = (weft__config *)(uintptr_t)of; /* who may change it, changes a path */
    const named_path fixed[] = {{WEFT__KEY_data_path, &config->data_path},
                                {WEFT__KEY_data_val_path, &config->data_val_path},
                                {WEFT__KEY_data_test_path, &config->data_test_path},
                                {WEFT__KEY_data_tokenizer_path, &config->data_tokenizer_path},
                                {WEFT__KEY_model_init, &config->model_init}};
    const size_t count = sizeof fixed / sizeof *fixed;
    if (i < count) return fixed[i];
    return (named_path){WEFT__KEY_data_labels, i - count < config->data_labels.count
                                                   ? &config->data_labels.values[i - count]
                                                   : NULL};
}

/* Returns the absolute path of a file, or of a pattern of file names in a folder. NULL if there is no such
 * file. The caller frees it with free(). */
static char *absolute(const char *path) {
    char folder[PATH_BYTES], both[2 * PATH_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *whole = realpath(path, NULL);
    if (whole || !strpbrk(name, "*?[{")) return whole;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (!(whole = realpath(folder, NULL))) return NULL;
    int n = snprintf(both, sizeof both, "%s/%s", whole, name);
    free(whole);
    return n > 0 && (size_t)n < sizeof both ? strdup(both) : NULL;
}

weft_status weft__config_absolute(weft__config *config) {
    named_path path;
    for (size_t i = 0; (path = path_at(config, i)).text; i++) {
        errno = 0;
        char *whole = *path.text ? absolute(*path.text) : NULL;
        if (!whole && errno == ENOMEM) return weft__fail_oom(NULL, strlen(*path.text), "a path");
        if (!whole) continue; /* reading the file will report what is wrong */
        char *copy = weft__strdup(NULL, whole);
        free(whole);
        if (!copy) return weft__fail_oom(NULL, strlen(*path.text), "a path");
        weft__free(NULL, *path.text);
        *path.text = copy;
    }
    return WEFT_OK;
}

/* ---- the paths that the user has given ---- */

/* Makes the folders of a path below its first `above` bytes. */
static bool make_folders(const char *path, size_t above) {
    char made[PATH_BYTES];
    for (size_t end = above; path[end]; end += strcspn(path + end, "/")) {
        snprintf(made, sizeof made, "%.*s", (int)end, path);
        if (mkdir(made, 0700) != 0 && errno != EEXIST) return false;
        end++;
    }
    return true;
}

/* Opens the file of known paths. Nobody else may write to it. Returns -1 if there is none. */
static int known_open(int flags) {
    const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
    const bool chosen = state && *state == '/';
    const char *base = chosen ? state : home;
    char path[PATH_BYTES];
    struct stat s;
    if (!base || *base != '/' ||
        !weft__join(path, sizeof path, base, chosen ? "weft/paths" : ".local/state/weft/paths"))
        return -1;
    if ((flags & O_CREAT) && !make_folders(path, strlen(base))) return -1;
    const int file = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0) return -1;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 022) == 0)
        return file;
    close(file);
    return -1;
}

/* Reads the file of known paths. The caller frees it with weft__free. NULL: there is none. */
static char *known_read(int file, size_t *bytes) {
    struct stat s;
    char *text = file >= 0 && fstat(file, &s) == 0 && s.st_size <= 2 * KNOWN_MOST
                     ? weft__alloc(NULL, (size_t)s.st_size + 1)
                     : NULL;
    ssize_t n = 0;
    *bytes = 0;
    while (text && *bytes < (size_t)s.st_size &&
           (n = pread(file, text + *bytes, (size_t)s.st_size - *bytes, (off_t)*bytes)) > 0)
        *bytes += (size_t)n;
    if (text) text[*bytes] = '\0';
    return text;
}

static bool known_has(const char *text, const char *path) {
    const size_t size = strlen(path);
    for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, path, size) == 0 && line[size] == '\n') return true;
    return false;
}

static bool known(const char *path) {
    size_t bytes;
    const int file = known_open(O_RDONLY);
    char *text = known_read(file, &bytes);
    const bool has = known_has(text, path);
    weft__free(NULL, text);
    if (file >= 0) close(file);
    return has;
}

/* Appends a path. If the file is full, the older half of its lines goes. */
static bool known_add(int file, const char *text, size_t bytes, const char *path) {
    char line[PATH_BYTES + 1];
    const int n = snprintf(line, sizeof line, "%s\n", path);
    if (n < 0 || (size_t)n >= sizeof line || strchr(path, '\n')) return false;
    if (bytes + (size_t)n > KNOWN_MOST) {
        const char *kept = strchr(text + bytes / 2, '\n');
        if (weft__truncate(file, 0) != 0) return false;
        if (kept && weft__write_all(NULL, file, "paths", kept + 1, strlen(kept + 1)) != WEFT_OK) return false;
    }
    return weft__write_all(NULL, file, "paths", line, (size_t)n) == WEFT_OK;
}

bool weft__config_remember(const weft__config *config) {
    named_path path;
    size_t bytes;
    bool kept = true;
    for (size_t i = 0; (path = path_at(config, i)).text; i++) {
        if (!*path.text || (*path.text)[0] != '/') continue;
        if (config->run && !config->trusted && config->origin[path.key] == WEFT__ORIGIN_FILE) continue;
        if (known(*path.text)) continue;
        const int file = known_open(O_RDWR | O_APPEND | O_CREAT);
        char *text = known_read(file, &bytes);
        kept = text && known_add(file, text, bytes, *path.text) && kept;
        weft__free(NULL, text);
        if (file >= 0) close(file);
    }
    return kept;
}

/* Tells whether a path leads to a file in the run folder, also through links. */
static bool inside(const char *path, const char *run) {
    char *file = realpath(path, NULL), *folder = realpath(run, NULL);
    struct stat s;
    const size_t size = folder ? strlen(folder) : 0;
    const bool is = file && folder && strncmp(file, folder, size) == 0 && file[size] == '/' &&
                    stat(file, &s) == 0 && S_ISREG(s.st_mode);
    free(file);
    free(folder);
    return is;
}

/* Returns a path of the key that is not followed, or NULL. */
static const char *foreign_path(const weft__config *config, weft__config_key key) {
    named_path path;
    if (!config->run || config->trusted || config->origin[key] != WEFT__ORIGIN_FILE) return NULL;
    for (size_t i = 0; (path = path_at(config, i)).text; i++) {
        if (path.key != key || !*path.text || inside(*path.text, config->run)) continue;
        char *whole = absolute(*path.text);
        const bool own = whole ? known(whole) : !strpbrk(*path.text, "*?[{"); /* there is no such file */
        free(whole);
        if (!own) return *path.text;
    }
    return NULL;
}

bool weft__config_follows(const weft__config *config, weft__config_key key) {
    return !foreign_path(config, key);
}

weft_status weft__config_check_path(const weft__config *config, weft__config_key key) {
    const char *path = foreign_path(config, key);
    if (!path) return WEFT_OK;
    return weft__fail(
        NULL, WEFT_ERR_ARGUMENT,
        "%s: config.yaml names a path outside the run folder that you have never given: %s: %s; if "
        "the run is yours, or you trust who made it, add --trust",
        config->run, weft__config_key_name(key), path);
}

weft_status weft__config_check_data(const weft__config *config) {
    static const weft__config_key keys[] = {WEFT__KEY_data_path, WEFT__KEY_data_val_path,
                                            WEFT__KEY_data_test_path, WEFT__KEY_data_labels,
                                            WEFT__KEY_data_tokenizer_path};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        WEFT_TRY(weft__config_check_path(config, keys[i]));
    return WEFT_OK;
}
