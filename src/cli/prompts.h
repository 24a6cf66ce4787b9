/* A file of prompts for weft generate. Must not know: models. Read next: prompts.c, generate_prompts.c. */
#ifndef WEFT_SRC_CLI_PROMPTS_H
#define WEFT_SRC_CLI_PROMPTS_H

#include <weft/base.h>

typedef struct weft__prompt {
    char *text;    /* as the file has it; with `messages`, the line of JSON */
    bool messages; /* a conversation */
    size_t line;   /* from 1 */
    char *name;    /* FILE:LINE */
} weft__prompt;

typedef struct weft__prompts {
    weft__prompt *list; /* [count] */
    size_t count, capacity;
} weft__prompts;

/* Reads a file, or standard input if path is "-". If the name ends in .jsonl or .jsonl.gz, each line is an
 * object with "prompt", a text, or "messages", a list; blank lines are skipped. Otherwise each line is a
 * prompt. Free *out with weft__prompts_free, also after an error, which names file and line. */
weft_status weft__prompts_read(const char *path, weft__prompts *out);
void weft__prompts_free(weft__prompts *prompts);

#endif
