/* weft chat: a conversation with a published model. Must not know: templates (weft/chat.h), how tokens are
 * sampled. Read next: generate.c, chat_turns.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/generate.h>
#include <weft/published.h>

#include "cli/chat_turns.h"
#include "cli/cli.h"
#include "cli/draft.h"
#include "train/model/published.h"
#include "train/run/copies.h"

typedef struct chatting {
    weft__copies copies;              /* the devices, of which each has a part of the layers */
    const weft__opened_model *opened; /* the first of them */
    weft_decode_state *cache;         /* the copies own it */
    weft__draft draft;
    weft_chat_template *chat;
    weft__turns turns;
    weft_generate_options how;
    weft_grammar *grammar; /* of answers; NULL: any text */
    bool incomplete;       /* the last answer is no whole value of it */
    bool cut;              /* so was an answer that nobody interrupted */
    int32_t ends[WEFT__CHAT_ENDS];
    char *answer; /* grows */
    size_t answer_bytes, answer_room;
    bool terminal;
    bool commands; /* lines that begin with a slash are commands */
} chatting;

/* ---- Ctrl-C ends an answer, not the program ---- */

static volatile sig_atomic_t interrupted;

static void chat_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

/* Receives a piece of the answer. */
static weft_status chat_show(void *user, const char *text, size_t bytes) {
    chatting *c = user;
    if (interrupted) return WEFT_ERR_STOPPED;
    if (c->answer_bytes + bytes + 1 > c->answer_room) {
        const size_t wanted = 2 * (c->answer_bytes + bytes) + 256;
        char *answer = weft__realloc(NULL, c->answer, wanted);
        if (!answer) return weft__fail_oom(NULL, wanted, "the answer");
        c->answer = answer;
        c->answer_room = wanted;
    }
    memcpy(c->answer + c->answer_bytes, text, bytes);
    c->answer_bytes += bytes;
    if (weft__print_text(stdout, text, bytes) && fflush(stdout) == 0) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_IO, "standard output: %s", strerror(errno));
}

/* ---- a turn ---- */

/* Writes the conversation as the model reads it. The oldest turns are left out if they do not fit. */
static weft_status chat_prompt(chatting *c, weft_chat_text *text) {
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(&c->opened->dataset);
    const int64_t room = weft_decode_state_capacity(c->cache) - c->how.tokens;
    for (bool shortened = false;; shortened = true) {
        size_t count = 0;
        WEFT_TRY(weft__turns_render(&c->turns, c->chat, text));
        WEFT_TRY(weft_tokenizer_encode(tokenizer, text->text, text->bytes, NULL, 0, &count));
        if ((int64_t)count <= room || !weft__turns_forget(&c->turns)) return WEFT_OK;
        weft_chat_text_free(text);
        if (!shortened && c->terminal)
            weft__print(stderr, "(the conversation is longer than the context: its begin is left out)\n");
    }
}

static weft_status chat_answer(chatting *c) {
    weft_chat_text text = {0};
    weft_status status = chat_prompt(c, &text);
    c->answer_bytes = 0;
    interrupted = 0;
    if (status == WEFT_OK) {
        c->how.prompt = text.text;
        status = weft_generate(c->cache, weft__dataset_tokenizer(&c->opened->dataset), &c->how, chat_show, c);
        c->how.seed++; /* the next answer draws other numbers */
    }
    weft_chat_text_free(&text);
    if (status == WEFT_ERR_STOPPED && interrupted) status = WEFT_OK; /* what is there counts as the answer */
    if (status == WEFT_OK) weft__print(stdout, "\n");
    if (status == WEFT_OK && c->grammar && c->incomplete && !interrupted) {
        weft__json_incomplete("chat", c->how.tokens);
        c->cut = true;
    }
    return status == WEFT_OK ? weft__turns_add(&c->turns, "assistant", c->answer, c->answer_bytes) : status;
}

/* ---- commands ---- */

static void chat_help(void) {
    weft__print(stderr, "/system TEXT   says how the model should answer, and starts again\n"
                        "/clear         starts again\n"
                        "/save FILE     writes the conversation as a line of JSON\n"
                        "/exit          ends, as Ctrl-D does; Ctrl-C stops an answer\n");
}

/* Returns what follows a command in the line; NULL if the line is another command. */
static const char *after(const char *line, const char *command) {
    const size_t n = strlen(command);
    if (strncmp(line, command, n) != 0 || (line[n] && line[n] != ' ')) return NULL;
    return line + n + strspn(line + n, " ");
}

/* Performs a line that begins with a slash. */
static weft_status chat_command(chatting *c, const char *line, bool *done) {
    const char *rest;
    if (after(line, "/exit")) {
        *done = true;
    } else if (after(line, "/clear")) {
        weft__turns_clear(&c->turns);
    } else if ((rest = after(line, "/system"))) {
        weft__turns_clear(&c->turns);
        return weft__turns_system(&c->turns, rest);
    } else if ((rest = after(line, "/save")) && rest[0]) {
        const weft_status status = weft__turns_save(&c->turns, c->opened->config.published, rest);
        if (status != WEFT_OK)
            weft__complain("%s", weft_last_error(NULL));
        else
            weft__print(stderr, "wrote %s\n", rest);
    } else {
        chat_help();
    }
    return WEFT_OK;
}

/* Reads a line without its newline. Returns false at the end of the input. */
static bool chat_line(const chatting *c, char **line, size_t *room) {
    for (;;) {
        if (c->terminal) {
            weft__print(stdout, "> ");
            fflush(stdout);
        }
        errno = 0;
        ssize_t n = getline(line, room, stdin);
        if (n >= 0) {
            while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r')) (*line)[--n] = '\0';
            return true;
        }
        if (errno != EINTR) return false;
        clearerr(stdin);
        if (c->terminal) weft__print(stdout, "\n(Ctrl-D ends the conversation)\n");
    }
}

static weft_status chat_talk(chatting *c) {
    char *line = NULL;
    size_t room = 0;
    bool done = false;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !done && chat_line(c, &line, &room)) {
        if (line[0] == '\0') continue;
        if (c->commands && line[0] == '/') {
            status = chat_command(c, line, &done);
            continue;
        }
        status = weft__turns_add(&c->turns, "user", line, strlen(line));
        if (status == WEFT_OK) status = chat_answer(c);
    }
    if (c->terminal && !done) weft__print(stdout, "\n");
    free(line);
    return status;
}

/* ---- opening ---- */

/* What the arguments name, besides the options of a model. */
typedef struct chat_wanted {
    const char *dir, *devices, *system, *draft; /* all but dir may be NULL */
} chat_wanted;

static weft_status chat_open(chatting *c, const weft__opened_model_options *options,
                             const chat_wanted *wanted) {
    WEFT_TRY(weft__copies_open_layers(wanted->dir, wanted->devices, options, &c->copies));
    c->opened = &c->copies.opened[0];
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(&c->opened->dataset);
    if (!c->opened->config.published || !tokenizer)
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "chat: the run did not begin with a published model, so it has no chat template: use "
            "'weft generate'");
    WEFT_TRY(weft_published_chat(NULL, c->opened->config.published, &c->chat));
    c->how.end_count = weft__turns_ends(c->opened->config.published, tokenizer, c->chat, c->ends);
    c->how.ends = c->ends;
    c->how.vocabulary = c->opened->model.tokens;
    c->how.only_new = c->how.no_frame = c->how.keep_cache = true;
    c->cache = weft__copies_cache(&c->copies);
    if (!c->cache) return weft_last_status(NULL);
    WEFT_TRY(weft__draft_open(c->opened, wanted->draft, &c->how, &c->draft));
    c->how.tokens = weft__smaller(c->how.tokens, weft_decode_state_capacity(c->cache) / 2);
    c->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    c->commands = c->commands || isatty(STDIN_FILENO);
    if (c->terminal) weft__print(stderr, "Write a message, or /help. Ctrl-D ends.\n");
    return wanted->system ? weft__turns_system(&c->turns, wanted->system) : WEFT_OK;
}

static void chat_close(chatting *c) {
    weft__draft_close(&c->draft);
    weft_chat_template_free(c->chat);
    weft_grammar_free(c->grammar);
    weft__turns_free(&c->turns);
    weft__free(NULL, c->answer);
    weft__copies_close(&c->copies);
}

int weft__command_chat(const weft__command *command, int argc, char **argv) {
    const char *schema = NULL;
    chat_wanted wanted = {NULL, NULL, NULL, NULL};
    bool json = false;
    weft__opened_model_options how = {.precision = WEFT__AS_COMPUTED, .packed = true};
    chatting c = {.how = {.tokens = 512, .temperature = 0.7, .seed = 1}};
    weft__repeated stops = {0};
    int64_t seed = 1;
    int code = 0;
    const weft__option options[] = {
        {"MODEL", WEFT__OPTION_ARG, &wanted.dir,
         "a folder of Hugging Face, a GGUF file, or a run that began with one"},
        {"--system TEXT", WEFT__OPTION_TEXT, &wanted.system, "how the model should answer"},
        {"--tokens N", WEFT__OPTION_INT, &c.how.tokens, "at most N new tokens for an answer; default: 512"},
        {"--commands", WEFT__OPTION_FLAG, &c.commands,
         "obey lines such as /save FILE also if they come from a pipe or a file"},
        WEFT__SAMPLING_OPTIONS(&c.how, &stops, "0.7"),
        WEFT__JSON_OPTIONS(&json, &schema),
        WEFT__DRAFT_OPTIONS(&wanted.draft, &c.how),
        {"--seed S", WEFT__OPTION_INT, &seed, "the same seed gives the same text; default: 1"},
        WEFT__PRECISION_OPTION(&how.precision),
        WEFT__CHECKPOINT_OPTION(&how.checkpoint),
        WEFT__DEVICE_OPTIONS(&how.device, &wanted.devices, "the layers"),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    c.how.seed = (uint64_t)seed;
    c.how.stops = stops.values;
    c.how.stop_count = stops.count;
    struct sigaction stop = {.sa_handler =
                                 chat_interrupt}; /* without SA_RESTART: it ends a wait for a line */
    weft_status status = weft__json_grammar(json, schema, &c.grammar);
    c.how.grammar = c.grammar;
    c.how.incomplete = &c.incomplete;
    if (status == WEFT_OK) status = chat_open(&c, &how, &wanted);
    if (status == WEFT_OK) sigaction(SIGINT, &stop, NULL);
    if (status == WEFT_OK) status = chat_talk(&c);
    code = status != WEFT_OK ? weft__give_up(NULL, status) : c.cut ? WEFT__EXIT_INCOMPLETE : WEFT__EXIT_DONE;
    chat_close(&c);
    return code;
}
