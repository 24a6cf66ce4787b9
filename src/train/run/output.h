/* The rule of all files that the command writes where the user says (docs/export.md, "Existing files"):
 *
 * - an output that is an input, or belongs to one, is refused;
 * - an output that exists, and that the same command did not write, is refused without --force;
 * - a pipe or a device is written in place.
 *
 * Must not know: commands, formats. Read next: output.c. */
#ifndef WEFT_SRC_TRAIN_RUN_OUTPUT_H
#define WEFT_SRC_TRAIN_RUN_OUTPUT_H

#include "base/base.h"

enum { WEFT__INPUTS_MOST = 136 };

typedef struct weft__output {
    const char *command;             /* such as "export" */
    bool force;                      /* --force was given */
    bool kept;                       /* there is no --force */
    bool (*wrote)(const char *path); /* the command wrote this file; NULL: files of this format do not tell */
    const char *inputs[WEFT__INPUTS_MOST]; /* files and folders; NULL and "" count as none */
    size_t count;
} weft__output;

/* Adds an input. */
void weft__output_reads(weft__output *output, const char *path);

/* Checks that a file may be written. Returns WEFT_ERR_ARGUMENT, with a message, if not. */
weft_status weft__output_check(const weft__output *output, const char *path);

/* From now on a stop (SIGINT, SIGTERM, SIGHUP) removes temporary files and ends the process with 128 + the
 * signal. */
void weft__output_catch_stops(void);

/* Checks a file, catches stops, and removes what stopped processes left of the file. */
weft_status weft__output_file(const weft__output *output, const char *path);

/* Refuses a symbolic link without --force. For outputs that the user did not name: a run folder that comes
 * from somebody else may hold any link. */
weft_status weft__output_no_link(const weft__output *output, const char *path);

/* The same as weft__output_file for a folder whose files the command writes. It must be new, empty or marked
 * as an export. Makes and marks the folder. */
weft_status weft__output_folder(const weft__output *output, const char *path);

/* Returns whether a file begins with a text. */
bool weft__file_begins(const char *path, const char *text);

#endif
