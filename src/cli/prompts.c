/* Reads a file of prompts, see prompts.h. Must not know: models. Read next: generate_prompts.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/prompts.h"
#include "text/json_lines.h"

enum { CHUNK = 1 << 16 };

/* Reads standard input to its end. data[size] is 0. */
static weft_status read_standard(weft_bytes *out) {
    size_t room = 0;
    *out = (weft_bytes){NULL, 0};
    for (;;) {
        if (room - out->size < CHUNK + 1) {
            room = 2 * room + CHUNK + 1;
            uint8_t *grown = weft__realloc(NULL, out->data, room);
            if (!grown) return weft__fail_oom(NULL, room, "the prompts");
            out->data = grown;
        }
        const size_t n = fread(out->data + out->size, 1, CHUNK, stdin);
        out->size += n;
        out->data[out->size] = 0;
        if (n == 0 && ferror(stdin))
            return weft__fail(NULL, WEFT_ERR_IO, "standard input: %s", strerror(errno));
        if (n == 0) return WEFT_OK;
    }
}

/* Reads "prompt" or "messages" of a line of JSON. */
static weft_status read_object(weft__prompt *p, const char *line, size_t bytes) {
    weft__json json;
    json_t *root;
    weft__json_open(&json, NULL);
    weft_status status = weft__json_line_load(&json, p->name, line, bytes, &root);
    const json_t *prompt = status == WEFT_OK ? json_object_get(root, "prompt") : NULL;
    const json_t *messages = status == WEFT_OK ? json_object_get(root, "messages") : NULL;
    if (status == WEFT_OK && (json_is_string(prompt) ? messages != NULL : !json_is_array(messages) || prompt))
        status = weft__fail(NULL, WEFT_ERR_FORMAT,
                            "%s: the line must be an object with \"prompt\", a text, or \"messages\", a list",
                            p->name);
    if (status == WEFT_OK) {
        p->messages = messages != NULL;
        p->text = weft__strdup(NULL, messages ? line : json_string_value(prompt));
        if (!p->text) status = weft__fail_oom(NULL, bytes, "a prompt");
    }
    weft__json_close(&json);
    return status;
}

/* Adds line `number`, which ends with a NUL. */
static weft_status add_line(weft__prompts *prompts, const char *path, size_t number, bool objects,
                            const char *line, size_t bytes) {
    if (objects && line[strspn(line, " \t\r")] == '\0') return WEFT_OK;
    if (!weft__grow(NULL, &prompts->list, &prompts->capacity, prompts->count, sizeof *prompts->list))
        return weft__fail_oom(NULL, sizeof *prompts->list, "the prompts");
    weft__prompt *p = &prompts->list[prompts->count++];
    const size_t room = strlen(path) + 24;
    *p = (weft__prompt){.line = number, .name = weft__alloc(NULL, room)};
    if (!p->name) return weft__fail_oom(NULL, room, "the prompts");
    weft_text name = weft__text(p->name, room);
    weft__put(&name, "%s:%zu", path, number);
    if (strlen(line) != bytes)
        return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: the line has a NUL byte", p->name);
    if (objects) return read_object(p, line, bytes);
    p->text = weft__strdup(NULL, line);
    return p->text ? WEFT_OK : weft__fail_oom(NULL, bytes, "a prompt");
}

static weft_status read_lines(weft__prompts *prompts, const char *path, bool objects, weft_bytes *file) {
    char *text = (char *)file->data, *end = text + file->size;
    for (size_t number = 1; text < end; number++) {
        char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        char *next = newline ? newline + 1 : end;
        if (stop > text && stop[-1] == '\r') stop--;
        *stop = '\0'; /* the file ends with a NUL of its own */
        WEFT_TRY(add_line(prompts, path, number, objects, text, (size_t)(stop - text)));
        text = next;
    }
    if (prompts->count > 0) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: there are no prompts", path);
}

weft_status weft__prompts_read(const char *path, weft__prompts *out) {
    weft_bytes file = {NULL, 0};
    const bool standard = strcmp(path, "-") == 0;
    const bool objects = weft__matches("*.jsonl", path) || weft__matches("*.jsonl.gz", path);
    *out = (weft__prompts){0};
    weft_status status = standard ? read_standard(&file) : weft_read_file(NULL, path, 0, &file);
    if (status == WEFT_OK) status = read_lines(out, standard ? "standard input" : path, objects, &file);
    if (standard)
        weft__free(NULL, file.data);
    else
        weft_bytes_free(NULL, &file);
    return status;
}

void weft__prompts_free(weft__prompts *prompts) {
    for (size_t i = 0; i < prompts->count; i++) {
        weft__free(NULL, prompts->list[i].text);
        weft__free(NULL, prompts->list[i].name);
    }
    weft__free(NULL, prompts->list);
    *prompts = (weft__prompts){0};
}
