/* weft generate: prints text from a trained language model while it is generated. Must not know: how tokens
 * are sampled. Read next: generate_prompts.c, nn/generate.c. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <weft/generate.h>

#include "cli/cli.h"
#include "cli/draft.h"
#include "cli/generate_prompts.h"

/* Prints a piece of text. `user` is a bool that becomes true if the reader closed the pipe. That needs no
 * error message. */
static weft_status cli_generate_show(void *user, const char *text, size_t bytes) {
    if (weft__print_text(stdout, text, bytes) && fflush(stdout) == 0) return WEFT_OK;
    *(bool *)user = errno == EPIPE;
    return weft__fail(NULL, WEFT_ERR_IO, "standard output: %s", strerror(errno));
}

/* Options besides those of weft_generate. */
typedef struct generate_wanted {
    const char *file;    /* of prompts; NULL: there is one prompt */
    int64_t batch;       /* prompts that are computed at once; -1: not given */
    const char *draft;   /* a model; NULL: none */
    const char *devices; /* names with commas between them; NULL: one device */
    bool layers;         /* of several prompts: the devices divide the layers of the model, not the prompts */
} generate_wanted;

/* Says what is wrong with the arguments. */
static bool generate_wrong(const weft_generate_options *wanted, const generate_wanted *prompts) {
    const bool several = prompts->file != NULL;
    if (wanted->tokens > 100000000)
        weft__complain("generate: --tokens %lld: give at most 100000000", (long long)wanted->tokens);
    else if (several && wanted->prompt)
        weft__complain("generate: give --prompt or --prompts, not both");
    else if (!several && prompts->batch != -1)
        weft__complain("generate: --batch is for a file of prompts: give --prompts FILE");
    else if (!several && prompts->layers)
        weft__complain("generate: --layers is for a file of prompts: with one prompt --devices always divide "
                       "the layers");
    else if (several && prompts->draft)
        weft__complain("generate: --draft is for one prompt: with --prompts, a batch is faster");
    else if (several && (prompts->batch == 0 || prompts->batch > 64))
        weft__complain("generate: --batch %lld: give 1 to 64", (long long)prompts->batch);
    else
        return false;
    return true;
}

static weft_status generate(weft__copies *copies, weft_generate_options *wanted,
                            const generate_wanted *prompts, bool *reader_left) {
    weft__opened_model *opened = &copies->opened[0];
    if (opened->config.task != WEFT__TASK_LANGUAGE_MODEL)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "generate: the run's model is not a language model: use 'weft predict'");
    if (prompts->file)
        return weft__generate_prompts(copies, wanted, prompts->file,
                                      prompts->batch == -1 ? 0 : prompts->batch, prompts->layers,
                                      reader_left);
    weft_decode_state *cache = weft__copies_cache(copies);
    if (!cache) return weft_last_status(NULL);
    char left_out[64] = "";
    wanted->vocabulary = opened->model.tokens;
    wanted->left_out = left_out;
    wanted->left_out_bytes = sizeof left_out;
    weft__draft draft;
    weft_status status = weft__draft_open(opened, prompts->draft, wanted, &draft);
    if (status == WEFT_OK)
        status = weft_generate(cache, weft__dataset_tokenizer(&opened->dataset), wanted, cli_generate_show,
                               reader_left);
    weft__draft_close(&draft);
    if (status == WEFT_OK) putchar('\n');
    if (status == WEFT_OK && prompts->draft && isatty(STDOUT_FILENO))
        weft__print(stderr, "(the model accepted %lld of %lld tokens of the draft)\n",
                    (long long)draft.counts.accepted, (long long)draft.counts.proposed);
    if (status == WEFT_OK && *left_out)
        weft__complain(
            "generate: the model has never seen these characters, so they are left out of the prompt: %s",
            left_out);
    return status;
}

int weft__command_generate(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *device = NULL, *checkpoint = NULL, *precision = NULL, *schema = NULL;
    weft_generate_options wanted = {.tokens = 200, .temperature = 0.8, .top_k = 0, .seed = 1};
    int64_t seed = INT64_MIN; /* not given */
    generate_wanted prompts = {.batch = -1};
    bool reader_left = false, json = false, incomplete = false;
    weft_grammar *grammar = NULL;
    weft__repeated stops = {0};
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of a run, or a published model"},
        {"--prompt TEXT", WEFT__OPTION_TEXT, &wanted.prompt, "what to continue; default: a new line"},
        {"--prompts FILE", WEFT__OPTION_TEXT, &prompts.file,
         "continue each line of FILE, or each \"prompt\" or \"messages\" of FILE.jsonl; prints JSON lines"},
        {"--batch N", WEFT__OPTION_INT, &prompts.batch, "prompts that are computed at once; default: 8"},
        {"--tokens N", WEFT__OPTION_INT, &wanted.tokens, "at most N new tokens; default: 200"},
        WEFT__SAMPLING_OPTIONS(&wanted, &stops, "0.8"),
        WEFT__JSON_OPTIONS(&json, &schema),
        WEFT__DRAFT_OPTIONS(&prompts.draft, &wanted),
        {"--seed S", WEFT__OPTION_INT, &seed, "the same seed gives the same text; default: 1"},
        WEFT__PRECISION_OPTION(&precision),
        WEFT__CHECKPOINT_OPTION(&checkpoint),
        WEFT__DEVICE_OPTIONS(&device, &prompts.devices, "prompts of a file, or the layers,"),
        {"--layers", WEFT__OPTION_FLAG, &prompts.layers,
         "with --devices and --prompts: divide the layers, not the prompts"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    wanted.stops = stops.values;
    wanted.stop_count = stops.count;
    const bool seeded = seed != INT64_MIN;
    if (seeded) wanted.seed = (uint64_t)seed;
    if (generate_wrong(&wanted, &prompts)) return WEFT__EXIT_USAGE;
    weft__copies copies = {0};
    const weft__opened_model_options how = {.device = device,
                                            .precision = precision ? precision : WEFT__AS_COMPUTED,
                                            .checkpoint = checkpoint,
                                            .packed = true};
    weft_status status = weft__json_grammar(json, schema, &grammar);
    wanted.grammar = grammar;
    wanted.incomplete = &incomplete;
    wanted.only_new = grammar != NULL; /* so that the output is JSON */
    if (status == WEFT_OK)
        status = (prompts.file && !prompts.layers ? weft__copies_open : weft__copies_open_layers)(
            dir, prompts.devices, &how, &copies);
    if (status == WEFT_OK) status = generate(&copies, &wanted, &prompts, &reader_left);
    if (status == WEFT_OK)
        code = WEFT__EXIT_DONE;
    else
        code = reader_left ? WEFT__EXIT_IO : weft__give_up(NULL, status);
    if (code == WEFT__EXIT_DONE && !seeded && wanted.temperature > 0 && isatty(STDOUT_FILENO))
        weft__print(stderr,
                    "(seed 1: without --seed the text is always the same; for another text, use --seed 2)\n");
    if (code == WEFT__EXIT_DONE && incomplete) {
        weft__json_incomplete("generate", wanted.tokens);
        code = WEFT__EXIT_INCOMPLETE;
    }
    weft__copies_close(&copies);
    weft_grammar_free(grammar);
    return code;
}
