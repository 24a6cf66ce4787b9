/* Reads the YAML of a configuration with the events of libyaml. A configuration has sections of keys with
 * single values or lists. All other YAML is refused: anchors, tags, second documents, deeper nesting. Must
 * not know: what the keys mean. Read next: config_write.c. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/text.h"
#include "data/parse.h"
#include "io/publish.h"
#include "train/config/config.h"

#define FILE_MAX_BYTES (1u << 20)
#define TEXTS_MAX      4096 /* most members of a list */

typedef struct reader {
    weft__config *config;
    const char *name; /* name of the file, for messages */
    yaml_parser_t yaml;
    yaml_event_t event; /* the current event */
    bool has_event;
} reader;

static weft_status fail_at(const reader *r, const char *what) {
    yaml_mark_t mark = r->event.start_mark;
    return weft__fail(NULL, WEFT_ERR_FORMAT, "%s:%zu:%zu: %s", r->name, mark.line + 1, mark.column + 1, what);
}

static weft_status next(reader *r) {
    if (r->has_event) yaml_event_delete(&r->event);
    r->has_event = false;
    if (yaml_parser_parse(&r->yaml, &r->event)) {
        r->has_event = true;
        return WEFT_OK;
    }
    if (r->yaml.error == YAML_MEMORY_ERROR)
        return weft__fail(NULL, WEFT_ERR_OOM, "%s: there is not enough memory to read the file", r->name);
    const char *problem = r->yaml.problem ? r->yaml.problem : "not YAML";
    if (r->yaml.error == YAML_READER_ERROR)
        return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: byte %zu: %s", r->name, r->yaml.problem_offset,
                          problem);
    return weft__fail(NULL, WEFT_ERR_FORMAT, "%s:%zu:%zu: %s%s%s", r->name, r->yaml.problem_mark.line + 1,
                      r->yaml.problem_mark.column + 1, r->yaml.context ? r->yaml.context : "",
                      r->yaml.context ? ": " : "", problem);
}

/* Returns a scalar as a C string. Refuses scalars that a C string cannot hold. */
static weft_status scalar_text(const reader *r, const char **text) {
    if (r->event.type != YAML_SCALAR_EVENT) return fail_at(r, "give a single value here");
    if (r->event.data.scalar.anchor) return fail_at(r, "anchors (&name) are not used in a configuration");
    if (r->event.data.scalar.tag) return fail_at(r, "tags (!name) are not used in a configuration");
    *text = (const char *)r->event.data.scalar.value;
    if (strlen(*text) != r->event.data.scalar.length) return fail_at(r, "a text contains a NUL character");
    return WEFT_OK;
}

static bool is_null(const reader *r) {
    const yaml_event_t *event = &r->event;
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    const char *text = (const char *)event->data.scalar.value;
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static weft_status unknown_key(const reader *r, const char *name) {
    char what[200];
    const char *near = weft__config_nearest(name);
    snprintf(what, sizeof what, "unknown key %.63s%s%s%s", name,
             near ? "; did you mean " : "; 'weft init gpt' lists all keys", near ? near : "",
             near ? "?" : "");
    return fail_at(r, what);
}

/* Reads the members of a list up to its end. */
static weft_status read_members(reader *r, char **texts, size_t *count) {
    for (;;) {
        WEFT_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) return WEFT_OK;
        const char *text = NULL;
        WEFT_TRY(scalar_text(r, &text));
        if (*count == TEXTS_MAX) return fail_at(r, "the list is too long");
        texts[*count] = weft__strdup(NULL, text);
        if (!texts[*count]) return weft__fail_oom(NULL, strlen(text), "the configuration");
        (*count)++;
    }
}

static weft_status read_list(reader *r, weft__config_key key, char problem[256], bool *taken) {
    if (r->event.data.sequence_start.anchor)
        return fail_at(r, "anchors (&name) are not used in a configuration");
    if (r->event.data.sequence_start.tag) return fail_at(r, "tags (!name) are not used in a configuration");
    size_t count = 0;
    char **texts = weft__array(NULL, TEXTS_MAX, sizeof *texts);
    if (!texts) return weft__fail_oom(NULL, TEXTS_MAX * sizeof *texts, "the configuration");
    weft_status status = read_members(r, texts, &count);
    if (status == WEFT_OK) *taken = weft__config_take(r->config, key, texts, count, true, problem);
    for (size_t i = 0; i < count; i++) weft__free(NULL, texts[i]);
    weft__free(NULL, texts);
    return status;
}

/* Reads the value of one key. The current event is the beginning of the value. `seen` marks the keys that
 * this file already had. */
static weft_status read_value(reader *r, weft__config_key key, bool *seen) {
    size_t line = r->event.start_mark.line + 1, column = r->event.start_mark.column + 1;
    char problem[256];
    bool taken = false;
    if (seen[key]) return fail_at(r, "the key appears a second time");
    seen[key] = true;
    if (is_null(r)) return WEFT_OK;
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        WEFT_TRY(read_list(r, key, problem, &taken));
    } else {
        const char *text = NULL;
        WEFT_TRY(scalar_text(r, &text));
        char *one = weft__strdup(NULL, text);
        if (!one) return weft__fail_oom(NULL, strlen(text), "the configuration");
        taken = weft__config_take(r->config, key, &one, 1, false, problem);
        weft__free(NULL, one);
    }
    if (!taken && !problem[0]) return weft__fail_oom(NULL, 0, "the configuration");
    if (!taken)
        return weft__fail(NULL, WEFT_ERR_FORMAT, "%s:%zu:%zu: %s: %s", r->name, line, column,
                          weft__config_key_name(key), problem);
    r->config->origin[key] = WEFT__ORIGIN_FILE;
    r->config->line[key] = (int)line;
    return WEFT_OK;
}

static bool is_section(const char *name) {
    size_t size = strlen(name);
    for (int key = 0; key < WEFT__KEY_COUNT; key++) {
        const char *full = weft__config_rows[key].key;
        if (strncmp(full, name, size) == 0 && full[size] == '.') return true;
    }
    return false;
}

/* Reads the keys of a mapping. The current event is its start. section "" is the top level. */
static weft_status read_mapping(reader *r, const char *section, bool *seen) {
    if (r->event.data.mapping_start.anchor)
        return fail_at(r, "anchors (&name) are not used in a configuration");
    if (r->event.data.mapping_start.tag) return fail_at(r, "tags (!name) are not used in a configuration");
    for (;;) {
        char name[128];
        const char *text = NULL;
        WEFT_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return WEFT_OK;
        WEFT_TRY(scalar_text(r, &text));
        snprintf(name, sizeof name, "%s%s%.63s", section, section[0] ? "." : "", text);
        weft__config_key key = weft__config_find(name);
        bool opens = section[0] == '\0' && is_section(name);
        if (key == WEFT__KEY_COUNT && !opens) return unknown_key(r, name);
        WEFT_TRY(next(r));
        if (!opens) {
            if (r->event.type == YAML_MAPPING_START_EVENT) return fail_at(r, "give a value here, not keys");
            WEFT_TRY(read_value(r, key, seen));
        } else if (r->event.type == YAML_MAPPING_START_EVENT) {
            WEFT_TRY(read_mapping(r, name, seen));
        } else if (!is_null(r)) {
            return fail_at(r, "write keys under a section, as in 'train:' and, indented, 'steps: 100'");
        }
    }
}

static weft_status read_stream(reader *r) {
    bool seen[WEFT__KEY_COUNT] = {false};
    WEFT_TRY(next(r)); /* the start of the stream */
    WEFT_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return weft__fail(NULL, WEFT_ERR_FORMAT,
                          "%s: the file is empty; 'weft init gpt' writes one to start from", r->name);
    WEFT_TRY(next(r)); /* the event after the start of the document */
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail_at(r, "write 'key: value' lines here; 'weft init gpt' shows them");
    WEFT_TRY(read_mapping(r, "", seen));
    WEFT_TRY(next(r)); /* the end of the document */
    WEFT_TRY(next(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fail_at(
            r, "a configuration is a single YAML document: remove the line '---' and what follows it");
    return WEFT_OK;
}

weft_status weft__config_parse(weft__config *config, const char *text, size_t bytes, const char *name) {
    reader r = {.config = config, .name = name};
    char *file = weft__strdup(NULL, name);
    if (!file || !yaml_parser_initialize(&r.yaml)) {
        weft__free(NULL, file);
        return weft__fail_oom(NULL, 0, "the configuration");
    }
    weft__free(NULL, config->file);
    config->file = file;
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, bytes);
    weft_status status = read_stream(&r);
    if (r.has_event) yaml_event_delete(&r.event);
    yaml_parser_delete(&r.yaml);
    return status;
}

weft_status weft__config_read(weft__config *config, const char *path) {
    weft_bytes bytes = {0};
    WEFT_TRY(weft_read_file(NULL, path, FILE_MAX_BYTES, &bytes));
    weft_status status = weft__config_parse(config, (const char *)bytes.data, bytes.size, path);
    weft_bytes_free(NULL, &bytes);
    return status;
}

/* ---- the configuration of a run folder ---- */

weft_status weft__run_find(const char *dir, bool *found) {
    char path[4096];
    struct stat info;
    *found = false;
    if (!weft__join(path, sizeof path, dir, "config.yaml")) return WEFT_OK;
    if (stat(path, &info) == 0)
        *found = S_ISREG(info.st_mode);
    else if (errno != ENOENT && errno != ENOTDIR)
        return weft__fail_io(NULL, "access", path, errno);
    return WEFT_OK;
}

bool weft__is_run(const char *dir) {
    bool found;
    return weft__run_find(dir, &found) != WEFT_OK ||
           found; /* after an error, reading the run says what is wrong */
}
