/* The interface of the command: its list of commands, how a command reads its arguments, and how it fails.
 * Must not know: networks. Read next: main.c, then one command; init.c is the shortest. */
#ifndef WEFT_SRC_CLI_CLI_H
#define WEFT_SRC_CLI_CLI_H

#include <stdio.h>

#include "base/base.h"
#include "train/print.h"

/* The exit codes that the documentation promises. 128 + N: stopped by signal N, after saving. */
typedef enum weft__exit {
    WEFT__EXIT_DONE,
    WEFT__EXIT_FAILED,
    WEFT__EXIT_USAGE,
    WEFT__EXIT_DATA,
    WEFT__EXIT_DEVICE,
    WEFT__EXIT_MEMORY,
    WEFT__EXIT_DIVERGED,
    WEFT__EXIT_NOTHING,
    WEFT__EXIT_IO,
    WEFT__EXIT_BUSY,
    WEFT__EXIT_INCOMPLETE,
    WEFT__EXIT_TIMEOUT
} weft__exit;

/* The name by which the command was called, such as "build/weft". Used in suggested commands. */
extern const char *weft__program;
/* Hides what libraries print while they look for devices, unless WEFT_DEBUG is set. */
void weft__quiet_searches(void);
/* Prints a blank and a text as an argument for a shell, in quotes if it needs them. */
void weft__print_argument(FILE *out, const char *text);
/* Prints a command for a shell: weft__program and the given words, which end with NULL. */
void weft__print_command(FILE *out, ...);

int weft__exit_code(weft_status status);

/* Prints "weft: " and the message to stderr. */
void weft__complain(const char *fmt, ...) WEFT_PRINTF(1, 2);
/* Prints the last error (of ctx, or of the thread if ctx is NULL). Returns the exit code of the status. */
int weft__give_up(weft_context *ctx, weft_status status);

/* ---- arguments ---- */

typedef enum weft__option_kind {
    WEFT__OPTION_FLAG,  /* bool */
    WEFT__OPTION_TEXT,  /* const char * */
    WEFT__OPTION_INT,   /* int64_t, not negative */
    WEFT__OPTION_NUM,   /* double, not negative */
    WEFT__OPTION_TEXTS, /* weft__repeated: the option may be given several times */
    /* const char *: the next argument without a dash; its name is in capitals, [NAME] is optional */
    WEFT__OPTION_ARG,
    WEFT__OPTION_ARGS /* weft__repeated: all further arguments; at least one, unless its name is [NAME ...] */
} weft__option_kind;

#define WEFT__REPEATED_MAX 128
typedef struct weft__repeated {
    size_t count;
    const char *values[WEFT__REPEATED_MAX];
} weft__repeated;

typedef struct weft__option {
    const char *name; /* such as "--seed S"; the part after the name is for the help text */
    weft__option_kind kind;
    void *value;
    const char *doc;
} weft__option;

/* Of all commands that open a run folder. */
#define WEFT__TRUST_OPTION                                                                                   \
    {                                                                                                        \
        "--trust", WEFT__OPTION_FLAG, &weft__opened_model_trusts,                                            \
            "follow the paths that the run names outside its folder, now and later"                          \
    }

/* The option of commands that write a file which the user names (train/run/output.h). */
#define WEFT__FORCE_OPTION(value)                                                                            \
    { "--force", WEFT__OPTION_FLAG, value, "replace an output that this command did not write" }

/* The options of all commands that use a trained model. */
#define WEFT__CHECKPOINT_OPTION(value)                                                                       \
    {"--checkpoint C", WEFT__OPTION_TEXT, value,                                                             \
     "best, last, or the number of a step; default: the best if the run keeps one, else the last"},          \
        WEFT__TRUST_OPTION

/* The option of commands that use one device, and have neither a configuration nor a run. */
#define WEFT__ANY_DEVICE_OPTION(value)                                                                       \
    { "--device D", WEFT__OPTION_TEXT, value, "such as cpu, cuda:1 or auto; default: $WEFT_DEVICE, cpu" }

/* The options that say where a trained model computes. divides: what several devices divide, as text. */
#define WEFT__DEVICE_OPTIONS(device, devices, divides)                                                       \
    {"--device D", WEFT__OPTION_TEXT, device, "another device than the run's"}, {                            \
        "--devices D,D,...", WEFT__OPTION_TEXT, devices,                                                     \
            "divide " divides " between devices of one kind, such as cuda:0,cuda:1"                          \
    }

/* The options that tell how tokens are drawn. how: weft_generate_options *; stops: weft__repeated *; warmth:
 * the default temperature, as text. */
#define WEFT__SAMPLING_OPTIONS(how, stops, warmth)                                                           \
    {"--temperature T", WEFT__OPTION_NUM, &(how)->temperature, "0: always the likeliest; default: " warmth}, \
        {"--top-k K", WEFT__OPTION_INT, &(how)->top_k, "choose among the K likeliest; default: all"},        \
        {"--top-p P", WEFT__OPTION_NUM, &(how)->top_p,                                                       \
         "choose among the fewest that have the share P of the probability; default: all"},                  \
        {"--min-p P", WEFT__OPTION_NUM, &(how)->min_p,                                                       \
         "leave out tokens whose probability is below P times the largest; default: 0"},                     \
        {"--repetition-penalty R", WEFT__OPTION_NUM, &(how)->repetition_penalty,                             \
         "make tokens of the text less likely by R, such as 1.1; default: 1"},                               \
    {                                                                                                        \
        "--stop TEXT", WEFT__OPTION_TEXTS, stops, "end before this text; can be given several times"         \
    }

/* The options of output in JSON. json: bool *; schema: const char **. */
#define WEFT__JSON_OPTIONS(json, schema)                                                                     \
    {"--json", WEFT__OPTION_FLAG, json, "print one JSON object or array: the model writes nothing else"}, {  \
        "--json-schema FILE", WEFT__OPTION_TEXT, schema, "print one JSON value that this schema allows"      \
    }

/* The dtype in which a model is used. */
#define WEFT__PRECISION_OPTION(value)                                                                        \
    {                                                                                                        \
        "--precision P", WEFT__OPTION_TEXT, value,                                                           \
            "dtype of the weights: f32, or bf16 or f16 in half the memory; default: that of the run's "      \
            "layers"                                                                                         \
    }

struct weft_grammar;
/* Makes the grammar that the options of WEFT__JSON_OPTIONS ask for; NULL if they do not. Free it with
 * weft_grammar_free. */
weft_status weft__json_grammar(bool json, const char *schema, struct weft_grammar **out);
/* Says that a JSON value was not complete when the tokens were used up, or a stop ended it. */
void weft__json_incomplete(const char *command, int64_t tokens);

typedef struct weft__command {
    const char *name, *about;
    int (*run)(const struct weft__command *command, int argc, char **argv);
    const char *help; /* text after the options, with examples */
} weft__command;

/* Reads argv[1..argc) by the table of options. Returns true if the command should go on. Returns false and
 * sets *code after --help or a wrong argument. */
bool weft__arguments(const weft__command *command, int argc, char **argv, const weft__option *options,
                     size_t count, int *code);

/* X(name, "what it does") for every command, in the order of the help. */
#define WEFT__COMMANDS(X)                                                                                    \
    X(train, "trains a model as the configuration says")                                                     \
    X(launch, "trains with several processes of this machine, by mpirun")                                    \
    X(resume, "continues a run that was stopped or killed")                                                  \
    X(cv, "cross-validation: trains and measures a model on each part of the data")                          \
    X(sweep, "trains a run for each of many values of the configuration, and sorts them")                    \
    X(generate, "continues a text with a trained language model")                                            \
    X(chat, "talks with a published language model")                                                         \
    X(embed, "turns lines of text into vectors, with a published encoder")                                   \
    X(classify, "tells the class of lines of text, with a published encoder")                                \
    X(predict, "applies a trained model to the rows of files, or to images")                                 \
    X(eval, "measures a trained model on its validation and test data")                                      \
    X(show, "shows the coefficients of a linear or logistic model, or the layers of another")                \
    X(runs, "lists the runs of this folder")                                                                 \
    X(compare, "shows how runs differ, and their results side by side")                                      \
    X(info, "shows what a run folder holds, and verifies it with --check")                                   \
    X(export, "writes a trained model as C source or as a file of weights")                                  \
    X(quantize, "writes a published model with smaller weights, as a GGUF file")                             \
    X(tokenize, "turns a text into files of tokens to train on")                                             \
    X(init, "writes a commented configuration to start from")                                                \
    X(demo, "trains something small, to show that Weft works")                                               \
    X(devices, "lists the devices of this machine, and tests each")                                          \
    X(doctor, "explains which device a run takes, and what the others lack")                                 \
    X(plan, "shows how much memory of a device a training step needs")                                       \
    X(profile, "shows where the time of training steps goes")                                                \
    X(verify, "compares a training step on two devices")                                                     \
    X(bench, "measures a workload")

/* The function of each command, and its help text after the options: help/NAME.txt. */
#define WEFT__DECLARE(name, about)                                                                           \
    int weft__command_##name(const weft__command *command, int argc, char **argv);                           \
    extern const char weft__help_##name[];
WEFT__COMMANDS(WEFT__DECLARE)
#undef WEFT__DECLARE

#endif
