/* Continues the prompts of a file, several at once, and prints lines of JSON in the order of the prompts.
 * Several devices divide the prompts: device i of n continues the prompts i, i + n, i + 2 n, ... Or they
 * divide the layers of the model, and each prompt goes through all devices. Must not know: how tokens are
 * sampled. Read next: prompts.c, nn/generate_many.c. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <weft/published.h>

#include "base/json.h"
#include "cli/chat_turns.h"
#include "cli/cli.h"
#include "cli/generate_prompts.h"
#include "cli/prompts.h"
#include "nn/generation.h"

enum { LEFT_OUT = 64 };

/* A prompt, and its line of output until it is its turn. */
typedef struct prompted {
    weft_chat_text text; /* of a conversation */
    char left_out[LEFT_OUT];
    bool incomplete;
    char *line;
    size_t bytes;
} prompted;

typedef struct prompting {
    const weft__copies *copies;
    const weft__opened_model *opened; /* the first copy */
    weft__prompts prompts;
    weft_generate_options *options; /* [prompts.count] */
    prompted *of;                   /* [prompts.count] */
    int64_t rows;                   /* prompts that a device computes at once */
    size_t sharers;                 /* devices that divide the prompts; 1: they divide the layers */
    size_t printed;                 /* lines that are printed */
    weft_chat_template *chat;       /* NULL until a line has messages */
    int32_t ends[WEFT__CHAT_ENDS];
    size_t end_count;
    bool *reader_left;
    weft__each devices;
    pthread_mutex_t lock; /* of the output while devices compute: of `of`, `printed` and `broken` */
    bool broken;          /* a line could not be printed */
} prompting;

/* The prompts of one device. */
typedef struct prompting_on {
    prompting *all;
    size_t device;
} prompting_on;

/* ---- output ---- */

/* Prints the lines whose turn it is. */
static weft_status print_ready(prompting *p) {
    for (; p->printed < p->prompts.count && p->of[p->printed].line; p->printed++) {
        prompted *one = &p->of[p->printed];
        const bool fine = weft__print_text(stdout, one->line, one->bytes) &&
                          weft__print_text(stdout, "\n", 1) && fflush(stdout) == 0;
        *p->reader_left = !fine && errno == EPIPE;
        if (!fine) return weft__fail(NULL, WEFT_ERR_IO, "standard output: %s", strerror(errno));
        weft__free(NULL, one->line);
        one->line = NULL;
    }
    return WEFT_OK;
}

/* Makes the line of a text. */
static weft_status prompts_line(prompting *p, size_t i, const weft_generated *done) {
    prompted *one = &p->of[i];
    const weft_generate_options *how = &p->options[i];
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *text = json_stringn(done->text, done->bytes);
    json_t *object = json_pack("{s:I, s:o, s:I, s:b, s:I}", "line", (json_int_t)p->prompts.list[i].line,
                               "text", text ? text : json_null(), "tokens", (json_int_t)done->tokens, "ended",
                               (int)done->ended, "seed", (json_int_t)how->seed);
    if (how->grammar) json_object_set_new(object, "complete", json_boolean(!one->incomplete));
    return weft__json_text(&json, object, JSON_COMPACT, "a text", &one->line, &one->bytes);
}

/* Receives a text of a device. */
static weft_status prompts_show(void *user, const weft_generated *done) {
    const prompting_on *on = user;
    prompting *p = on->all;
    if (p->devices.failed) return weft__fail(NULL, WEFT_ERR_STOPPED, "another device failed");
    pthread_mutex_lock(&p->lock);
    weft_status status = WEFT_OK;
    if (!p->broken) status = prompts_line(p, on->device + done->index * p->sharers, done);
    if (!p->broken && status == WEFT_OK) status = print_ready(p);
    p->broken = p->broken || status != WEFT_OK; /* the device that met this failure tells it */
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- input ---- */

/* Loads the chat template of the model, and the tokens that end an answer. */
static weft_status need_template(prompting *p, const weft__prompt *prompt) {
    const char *published = p->opened->config.published;
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(&p->opened->dataset);
    if (p->chat) return WEFT_OK;
    if (!published || !tokenizer)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: messages need a published model with a chat template: give a \"prompt\"",
                          prompt->name);
    WEFT_TRY(weft_published_chat(NULL, published, &p->chat));
    p->end_count = weft__turns_ends(published, tokenizer, p->chat, p->ends);
    return WEFT_OK;
}

/* Writes a conversation as the model reads it, up to the begin of an answer. */
static weft_status prompts_render(prompting *p, size_t i) {
    const weft__prompt *prompt = &p->prompts.list[i];
    WEFT_TRY(need_template(p, prompt));
    const weft_status status =
        weft_chat_template_render(p->chat, prompt->text, strlen(prompt->text),
                                  &(weft_chat_options){.add_generation_prompt = true}, &p->of[i].text);
    if (status != WEFT_OK) return weft__fail(NULL, status, "%s: %s", prompt->name, weft_last_error(NULL));
    p->options[i].prompt = p->of[i].text.text;
    p->options[i].no_frame = true;
    p->options[i].ends = p->ends;
    p->options[i].end_count = p->end_count;
    return WEFT_OK;
}

static weft_status prompts_open(prompting *p, const weft_generate_options *how, const char *path) {
    WEFT_TRY(weft__prompts_read(path, &p->prompts));
    const size_t count = p->prompts.count;
    p->options = weft__array(NULL, count, sizeof *p->options);
    p->of = weft__array(NULL, count, sizeof *p->of);
    if (!p->options || !p->of) return weft__fail_oom(NULL, count * sizeof *p->of, "the prompts");
    for (size_t i = 0; i < count; i++) {
        weft_generate_options *o = &p->options[i];
        *o = *how;
        o->prompt = p->prompts.list[i].text;
        o->name = p->prompts.list[i].name;
        o->seed = how->seed + i;
        o->vocabulary = p->opened->model.tokens;
        o->only_new = true;
        o->left_out = p->of[i].left_out;
        o->left_out_bytes = LEFT_OUT;
        o->incomplete = &p->of[i].incomplete;
        if (p->prompts.list[i].messages) WEFT_TRY(prompts_render(p, i));
    }
    return WEFT_OK;
}

static void prompts_close(prompting *p) {
    for (size_t i = 0; p->of && i < p->prompts.count; i++) {
        weft_chat_text_free(&p->of[i].text);
        weft__free(NULL, p->of[i].line);
    }
    weft_chat_template_free(p->chat);
    weft__free(NULL, p->options);
    weft__free(NULL, p->of);
    weft__prompts_free(&p->prompts);
}

/* ---- devices ---- */

/* Continues the prompts of a device. */
static weft_status prompts_on(void *user, size_t device) {
    prompting *p = user;
    const size_t devices = p->sharers, all = p->prompts.count;
    const size_t count = all > device ? (all - device - 1) / devices + 1 : 0;
    weft_module *parts[WEFT__EACH_MOST];
    const size_t n_parts = p->copies->count / devices;
    prompting_on on = {p, device};
    weft_generate_options *options = weft__array(NULL, count + 1, sizeof *options);
    if (!options) return weft__fail_oom(NULL, count * sizeof *options, "the prompts");
    for (size_t i = 0; i < count; i++) options[i] = p->options[device + i * devices];
    for (size_t i = 0; i < n_parts; i++) parts[i] = p->copies->opened[device + i].model.module;
    const weft_status status =
        weft__generate_many(parts, n_parts, weft__dataset_tokenizer(&p->copies->opened[device].dataset),
                            options, count, p->rows, prompts_show, &on);
    weft__free(NULL, options);
    return status;
}

static weft_status prompts_run(prompting *p) {
    if (pthread_mutex_init(&p->lock, NULL) != 0)
        return weft__fail(NULL, WEFT_ERR_INTERNAL, "generate: the system made no lock");
    const weft_status status =
        p->sharers == 1 ? prompts_on(p, 0) : weft__copies_run(p->copies, prompts_on, p, &p->devices);
    pthread_mutex_destroy(&p->lock);
    return status;
}

weft_status weft__generate_prompts(const weft__copies *copies, const weft_generate_options *how,
                                   const char *path, int64_t rows, bool layers, bool *reader_left) {
    prompting p = {.copies = copies,
                   .opened = &copies->opened[0],
                   .rows = rows,
                   .sharers = layers ? 1 : copies->count,
                   .reader_left = reader_left};
    weft_status status = prompts_open(&p, how, path);
    if (status == WEFT_OK) status = prompts_run(&p);
    *how->incomplete = false;
    for (size_t i = 0; status == WEFT_OK && i < p.prompts.count; i++) {
        *how->incomplete = *how->incomplete || p.of[i].incomplete;
        if (p.of[i].left_out[0])
            weft__complain("generate: %s: the model has never seen these characters, so they are left out of "
                           "the prompt: %s",
                           p.prompts.list[i].name, p.of[i].left_out);
    }
    prompts_close(&p);
    return status;
}
