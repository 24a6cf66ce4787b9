/* Statuses, the last error of a context and of a thread, log lines, the version. Nothing here allocates: an
 * error must be reportable when memory is short. The arguments of a message may point into the message that
 * it replaces.
 * Must not know: anything but base.h. Read next: memory.c. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

#undef weft__fail /* base.h wraps these two for the analyzer; here they are defined */
#undef weft__fail_oom

/* The error that weft_last_error(NULL) returns. */
static _Thread_local weft_error thread_error;

const char *weft_status_name(weft_status status) {
    switch (status) {
#define NAME(name, text)                                                                                     \
    case WEFT_##name: return #name;
        WEFT_STATUS_LIST(NAME)
#undef NAME
    }
    return "unknown status";
}

/* The sentence for a status, used when a failure has no message of its own. */
static const char *status_text(weft_status status) {
    switch (status) {
#define TEXT(name, text)                                                                                     \
    case WEFT_##name: return text;
        WEFT_STATUS_LIST(TEXT)
#undef TEXT
    }
    return "unknown status";
}

const char *weft_last_error(const weft_context *ctx) { return ctx ? ctx->error.text : thread_error.text; }

weft_status weft_last_status(const weft_context *ctx) {
    return ctx ? ctx->error.status : thread_error.status;
}

const char *weft_version(void) {
    return WEFT_STRINGIFY(WEFT_VERSION_MAJOR) "." WEFT_STRINGIFY(WEFT_VERSION_MINOR) "." WEFT_STRINGIFY(
        WEFT_VERSION_PATCH);
}

/* Stores an error. `text` must be a buffer of the caller, not one of the two stored errors. */
static weft_status record(weft_context *ctx, weft_status status, const char *text) {
    size_t bytes = strlen(text) + 1;
    thread_error.status = status;
    memcpy(thread_error.text, text, bytes);
    if (ctx) {
        ctx->error.status = status;
        memcpy(ctx->error.text, text, bytes);
    }
    return status;
}

/* Formats a message. Every message is formatted here, so that no name from a file can send control characters
 * to a terminal. A text that does not fit ends in "..." after its last whole character. */
static void format(char *out, size_t size, const char *kept, const char *fmt, va_list args) {
    static const char dots[] = "...";
    char raw[WEFT_ERROR_SIZE];
    const int wanted = vsnprintf(raw, sizeof raw, fmt, args);
    size_t bytes = wanted < 0 ? 0 : (size_t)wanted;
    bool cut = bytes >= sizeof raw;
    if (cut) {
        bytes = sizeof raw - sizeof dots;
        while (bytes > 0 && ((unsigned char)raw[bytes] & 0xC0u) == 0x80u) bytes--;
    }
    cut = weft__printable(out, size, raw, bytes, kept) >= size || cut;
    if (!cut) return;
    weft__printable(out, size - strlen(dots), raw, bytes, kept);
    memcpy(out + strlen(out), dots, sizeof dots);
}

#define REPORT "; this is a fault of Weft, please report it" /* at the end of each internal error */

weft_status weft__failv(weft_context *ctx, weft_status status, const char *fmt, va_list args) {
    char text[WEFT_ERROR_SIZE]; /* a copy, since the arguments may point into the error that is replaced */
    format(text, sizeof text, "", fmt, args);
    if (status == WEFT_ERR_INTERNAL && !strstr(text, REPORT) && strlen(text) + sizeof REPORT <= sizeof text)
        memcpy(text + strlen(text), REPORT, sizeof REPORT);
    return record(ctx, status, text[0] ? text : status_text(status));
}

weft_status weft__fail(weft_context *ctx, weft_status status, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    weft__failv(ctx, status, fmt, args);
    va_end(args);
    return status;
}

weft_error *weft__orphan_error(void) {
    static _Thread_local weft_error orphan;
    orphan = thread_error;
    return &orphan;
}

weft_status weft__fail_null(weft_context *ctx, const char *function, const char *argument) {
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: %s is NULL, but it must be given", function, argument);
}

weft_status weft__fail_count(weft_context *ctx, const char *function, const char *argument, size_t count) {
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: %s is %zu, more than memory can hold", function, argument,
                      count);
}

/* Appends as much of `s` as fits at *used. */
static void status_append(char *text, size_t size, size_t *used, const char *s) {
    weft__printable(text + *used, size - *used, s, strlen(s), "");
    *used += strlen(text + *used);
}

/* Formats by hand, since printf may allocate. */
weft_status weft__fail_oom(weft_context *ctx, size_t bytes, const char *what) {
    char text[WEFT_ERROR_SIZE];
    char digits[24];
    size_t used = 0, at = sizeof digits;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + bytes % 10);
        bytes /= 10;
    } while (bytes);
    status_append(text, sizeof text, &used, "out of memory: ");
    status_append(text, sizeof text, &used, what ? what : "allocation");
    status_append(text, sizeof text, &used, " (");
    status_append(text, sizeof text, &used, digits + at);
    status_append(text, sizeof text, &used, " bytes)");
    return record(ctx, WEFT_ERR_OOM, text);
}

bool weft__interrupted(const weft_context *ctx) {
    return ctx->caller.interrupted && !ctx->caller.completes &&
           ctx->caller.interrupted(ctx->caller.interrupted_user);
}

weft_status weft__go_on(weft_context *ctx) {
    return weft__interrupted(ctx) ? weft__fail(ctx, WEFT_ERR_STOPPED, "stopped, as the program asked")
                                  : WEFT_OK;
}

void weft__log(weft_context *ctx, weft_log_level level, const char *fmt, ...) {
    if (!ctx || !ctx->caller.log) return;
    char text[WEFT_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    format(text, sizeof text, "\n\t", fmt, args);
    va_end(args);
    ctx->caller.log(ctx->caller.log_user, level, text);
}

/* Replaces each byte that would be escaped by '?'. Works in place, since lines may be long. */
static void mask(char *line) {
    size_t bytes = strlen(line), taken;
    for (; bytes > 0; line += taken, bytes -= taken) {
        char piece[WEFT__ESCAPE];
        const size_t n = weft__printable_next(line, bytes, "\t", piece, &taken);
        if (n != taken || memcmp(line, piece, n) != 0) memset(line, '?', taken);
    }
}

void weft__log_lines(weft_context *ctx, weft_log_level level, char *text) {
    if (!ctx || !ctx->caller.log) return;
    for (char *line = text, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        mask(line);
        ctx->caller.log(ctx->caller.log_user, level, line);
    }
}
