/* weft info: shows what a run folder holds. With --check, it verifies every byte of the checkpoints, and of
 * the other files that have a checksum. Must not know: how files are verified. Read next: io/verify.c. */
#include <string.h>
#include <unistd.h>

#include <weft/io.h>
#include <weft/published.h>

#include "cli/cli.h"
#include "io/checkpoint.h"
#include "io/sealed.h"
#include "published/published.h"
#include "train/dataset/dataset.h"
#include "train/run/history.h"

#define PATH_BYTES      4096
#define CHECKPOINTS_MAX 4096

static const char *found(weft_status status) {
    return status == WEFT_OK ? "  intact" : status == WEFT_ERR_FORMAT ? "  DAMAGED" : "  not verified";
}

static weft_status check_one(const char *dir, uint64_t step, bool is_best, bool check) {
    char path[PATH_BYTES], name[64];
    snprintf(name, sizeof name, "checkpoints/step-%llu", (unsigned long long)step);
    if (!weft__join(path, sizeof path, dir, name)) return WEFT_ERR_ARGUMENT;
    weft_status status = check ? weft_checkpoint_verify(NULL, path) : WEFT_OK;
    if (status != WEFT_OK && access(path, F_OK) != 0) { /* the run goes on, and needs this one no more */
        weft__print(stdout, "  %s  removed by the run meanwhile\n", name);
        return WEFT_OK;
    }
    weft__print(stdout, "  %s%s%s\n", name, check ? found(status) : "", is_best ? "  best" : "");
    if (status != WEFT_OK) weft__complain("%s", weft_last_error(NULL));
    return status;
}

/* Verifies the files that have a checksum, besides the checkpoints. */
static weft_status check_files(const char *dir) {
    static const char *const names[] = {"data.json", "summary.json", "scores.json", "pictures.json",
                                        "reference.json"};
    weft_status worst = WEFT_OK;
    char tokenizer[PATH_BYTES];
    const bool has_tokenizer =
        weft__join(tokenizer, sizeof tokenizer, dir, "tokenizer.json") && access(tokenizer, F_OK) == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const weft_status status = i ? weft__sealed_check(dir, names[i]) : weft__dataset_check(NULL, dir);
        if (i && status == WEFT_ERR_STATE) continue; /* the file does not exist yet */
        weft__print(stdout, "  %s%s%s\n", names[i], i == 0 && has_tokenizer ? ", tokenizer.json" : "",
                    found(status));
        if (status == WEFT_OK) continue;
        weft__complain("%s", weft_last_error(NULL));
        worst = status;
    }
    return worst;
}

/* Tells whether the folder is a single checkpoint, with model.safetensors and the other files. */
static bool is_checkpoint(const char *dir) {
    const char *slash = strrchr(dir, '/');
    return strncmp(slash ? slash + 1 : dir, "step-", 5) == 0;
}

/* Describes a published model by its configuration. */
static weft_status tell_published(const char *path) {
    weft__published p;
    WEFT_TRY(weft__published_read(NULL, path, &p));
    weft__print(stdout, "%s: a published model, %s\n", path, p.architecture->type);
    weft__print(stdout, "layers %lld, heads %lld (KV heads %lld), width %lld, MLP %lld\n",
                (long long)p.gpt.layers, (long long)p.gpt.heads,
                (long long)(p.gpt.kv_heads ? p.gpt.kv_heads : p.gpt.heads), (long long)p.gpt.width,
                (long long)p.gpt.hidden);
    weft__print(stdout, "vocabulary %lld tokens, context %lld tokens\n", (long long)p.gpt.vocab,
                (long long)p.context);
    return WEFT_OK;
}

int weft__command_info(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL;
    bool check = false;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of a run, or of one checkpoint"},
        {"--check", WEFT__OPTION_FLAG, &check,
         "verify every byte of the checkpoints, and of other files with a checksum"},
    };
    if (!weft__arguments(command, argc, argv, options, 2, &code)) return code;
    if (is_checkpoint(dir) && !weft__is_run(dir)) {
        weft_status status = weft_checkpoint_verify(NULL, dir);
        if (status != WEFT_OK) return weft__give_up(NULL, status);
        weft__print(stdout, "%s: intact\n", dir);
        return WEFT__EXIT_DONE;
    }
    if (!weft__is_run(dir) && weft_published_is(dir)) {
        const weft_status status = tell_published(dir);
        return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    }
    if (!weft__is_run(dir)) {
        weft__complain("%s is not a run folder (it has no config.yaml); 'weft runs' lists the runs", dir);
        return WEFT__EXIT_USAGE;
    }
    weft__summary summary;
    char number[24];
    const weft_status read = weft__summary_read(dir, &summary);
    if (read != WEFT_OK && read != WEFT_ERR_STATE && read != WEFT_ERR_FORMAT) /* --check reports the damage */
        return weft__give_up(NULL, read);
    if (read == WEFT_OK) {
        weft__print(stdout, "%s on %s, %s parameters, %s\n", summary.model, summary.device,
                    weft__short_number((double)summary.parameters, number), summary.status);
        weft__print(stdout, "step %llu of %llu, %.1f s\n", (unsigned long long)summary.step,
                    (unsigned long long)summary.steps, summary.seconds);
    }
    uint64_t steps[CHECKPOINTS_MAX];
    size_t count = 0;
    uint64_t best = 0;
    bool marked = false;
    weft_status worst = weft_checkpoint_list(NULL, dir, steps, CHECKPOINTS_MAX, &count);
    if (worst == WEFT_OK) worst = weft__checkpoint_best(NULL, dir, &marked, &best);
    if (worst != WEFT_OK) return weft__give_up(NULL, worst);
    weft__print(stdout, "checkpoints: %zu\n", count);
    for (size_t i = 0; i < count && i < CHECKPOINTS_MAX; i++) {
        weft_status status = check_one(dir, steps[i], marked && best == steps[i], check);
        if (status != WEFT_OK) worst = status;
    }
    const weft_status files = check ? check_files(dir) : WEFT_OK;
    return weft__exit_code(files != WEFT_OK ? files : worst);
}
