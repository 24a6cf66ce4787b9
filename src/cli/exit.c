/* How the command fails: one line on stderr, and the exit code of a status. How it writes the arguments of a
 * command that it suggests. Must not know: any command. Read next: arguments.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"

const char *weft__program = "weft";

int weft__exit_code(weft_status status) {
    switch (status) {
    case WEFT_OK: return WEFT__EXIT_DONE;
    case WEFT_ERR_ARGUMENT: return WEFT__EXIT_USAGE;
    case WEFT_ERR_FORMAT:
    case WEFT_ERR_INDEX: return WEFT__EXIT_DATA;
    case WEFT_ERR_DEVICE: return WEFT__EXIT_DEVICE;
    case WEFT_ERR_OOM: return WEFT__EXIT_MEMORY;
    case WEFT_ERR_NUMERIC: return WEFT__EXIT_DIVERGED;
    case WEFT_ERR_IO: return WEFT__EXIT_IO;
    case WEFT_ERR_BUSY: return WEFT__EXIT_BUSY;
    case WEFT_ERR_TIMEOUT: return WEFT__EXIT_TIMEOUT;
    case WEFT_ERR_SHAPE:
    case WEFT_ERR_DTYPE:
    case WEFT_ERR_STALE:
    case WEFT_ERR_UNSUPPORTED:
    case WEFT_ERR_STATE:
    case WEFT_ERR_STOPPED:
    case WEFT_ERR_INTERNAL: break;
    }
    return WEFT__EXIT_FAILED;
}

void weft__complain(const char *fmt, ...) {
    va_list args;
    fflush(stdout);
    fputs(weft__clear_line, stderr);
    fputs("weft: ", stderr);
    va_start(args, fmt);
    weft__vprint(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

int weft__give_up(weft_context *ctx, weft_status status) {
    const char *text = weft_last_error(ctx);
    weft__complain("%s", text[0] ? text : weft_status_name(status));
    return weft__exit_code(status);
}

static void print_word(FILE *out, const char *text) {
    const size_t size = WEFT__SHELL_WORD(strlen(text));
    char *word = weft__alloc(NULL, size);
    weft__print(out, "%s", word ? weft__shell_word(text, word, size) : text);
    weft__free(NULL, word);
}

void weft__print_argument(FILE *out, const char *text) {
    fputc(' ', out);
    print_word(out, text);
}

void weft__print_command(FILE *out, ...) {
    va_list words;
    print_word(out, weft__program);
    va_start(words, out);
    for (const char *word; (word = va_arg(words, const char *));) weft__print_argument(out, word);
    va_end(words);
}
