/* weft: finds the command and runs it. Sets up what every command needs from the process. Must not know: what
 * commands do. Read next: cli.h, then the file of a command. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "train/dataset/dataset.h"

static const weft__command commands[] = {
#define ROW(name, about) {#name, about, weft__command_##name, weft__help_##name},
    WEFT__COMMANDS(ROW)
#undef ROW
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *out) {
    weft__print(out, "weft %s trains neural networks\n\nusage: weft COMMAND [arguments]\n\n", weft_version());
    for (size_t i = 0; i < COMMANDS; i++)
        weft__print(out, "  %-10s %s\n", commands[i].name, commands[i].about);
    weft__print(out, "\n'weft COMMAND --help' tells more. To begin: ");
    weft__print_command(out, "demo", "gpt", NULL);
    weft__print(out, "\n");
}

/* Opens those of the descriptors 0, 1 and 2 that are closed. Otherwise the first opened file would become
 * standard output. Writing to a closed standard output stays an error, so that no result is lost unseen. */
static void hold_standard_files(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd)
            _exit(WEFT__EXIT_IO);
}

/* Returns the command that shares the most first letters with the name, or NULL. */
static const char *nearest(const char *name) {
    for (size_t size = strlen(name); size > 0; size--)
        for (size_t i = 0; i < COMMANDS; i++)
            if (strncmp(commands[i].name, name, size) == 0) return commands[i].name;
    return NULL;
}

static int cli_main_run(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return WEFT__EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return WEFT__EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        weft__print(stdout, "weft %s\n", weft_version());
        return WEFT__EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return commands[i].run(&commands[i], argc - 1, argv + 1);
    const char *near = nearest(name);
    weft__complain("unknown command %s%s%s%s: 'weft --help' lists them all", name,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return WEFT__EXIT_USAGE;
}

static void tell(const char *line) { weft__complain("%s", line); }

int main(int argc, char **argv) {
    static char line[BUFSIZ];
    hold_standard_files();
    setvbuf(stderr, line, _IOLBF, sizeof line); /* messages of several processes do not mix within a line */
    weft__dataset_tell = tell;
    weft__quiet_searches();
    if (argc > 0 && argv[0][0]) weft__program = argv[0];
    signal(SIGPIPE, SIG_IGN); /* write() reports the error instead */
    signal(SIGXFSZ, SIG_IGN);
    int code = cli_main_run(argc, argv);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == WEFT__EXIT_DONE) {
        if (errno != EPIPE) /* EPIPE: the reader has left */
            weft__complain("standard output: %s", errno ? strerror(errno) : "a part of the output is lost");
        code = WEFT__EXIT_IO;
    }
    /* Without memory, destructors of libraries in C++ would end the process with 127. */
    void *room = malloc(BUFSIZ);
    if (!room) _exit(code);
    free(room);
    return code;
}
