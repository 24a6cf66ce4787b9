/* weft tokenize: converts texts to files of tokens, or prints the ids of the tokens; trains a tokenizer.
 * Texts are encoded block by block, so memory holds the tokens of one file. Only a text that is packed, or
 * that its tokenizer encodes as a whole, is in memory. Must not know: how texts are encoded. Read next:
 * data/tokens.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weft/data.h>
#include <weft/text.h>

#include "cli/cli.h"
#include "data/parse.h"
#include "data/tokens.h"
#include "text/text_stream.h"
#include "train/run/output.h"
#include "train/run/progress.h"

#define BLOCK ((size_t)4 << 20) /* about this many bytes of text */

typedef struct job {
    const weft_tokenizer *tokenizer;
    const char *out; /* NULL: prints the ids */
    weft__output output;
    int64_t shard; /* most tokens of a file */
    int32_t *ids;  /* [capacity] tokens that are encoded but not yet written */
    size_t count, capacity;
    int64_t written; /* number of tokens */
    int files;
    double seconds; /* time of encoding */
} job;

/* Returns the end of the block that begins at `at`. A block ends before a newline that follows a character
 * other than white space. Weft's own tokenizers end a token there. A pipeline need not, so its block is the
 * whole text. */
static size_t block_end(const weft_tokenizer *t, const char *text, size_t at, size_t size) {
    if (weft_tokenizer_kind_of(t) == WEFT_TOKENIZER_PIPELINE) return size;
    for (size_t end = at + BLOCK; end < size; end++)
        if (text[end] == '\n' && text[end - 1] > ' ' && text[end - 1] < 0x7f) return end;
    return size;
}

/* Makes the name of the next file: "OUT", or "OUT-000003.bin" if there are several. OUT may end in .bin. */
static weft_status name_file(const job *j, bool several, char path[4096]) {
    size_t stem = strlen(j->out);
    if (stem > 4 && strcmp(j->out + stem - 4, ".bin") == 0) stem -= 4;
    int n = several ? snprintf(path, 4096, "%.*s-%06d.bin", (int)stem, j->out, j->files)
                    : snprintf(path, 4096, "%s", j->out);
    return n > 0 && n < 4096 ? WEFT_OK
                             : weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", j->out);
}

/* Writes all full files. If no more text `follows`, writes the rest too. */
static weft_status flush(job *j, bool follows) {
    size_t done = 0;
    while (j->count - done > (size_t)j->shard || (!follows && done < j->count)) {
        char path[4096];
        size_t count = j->count - done < (size_t)j->shard ? j->count - done : (size_t)j->shard;
        WEFT_TRY(name_file(j, j->files > 0 || j->count - done > count, path));
        WEFT_TRY(weft__output_file(&j->output, path));
        /* all files of a tokenizer have the same width */
        const bool wide = weft_tokenizer_vocabulary(j->tokenizer) > (size_t)UINT16_MAX + 1;
        WEFT_TRY(weft__tokens_write(NULL, path, j->ids + done, count, wide));
        done += count;
        j->written += (int64_t)count;
        j->files++;
    }
    memmove(j->ids, j->ids + done, (j->count - done) * sizeof *j->ids);
    j->count -= done;
    return WEFT_OK;
}

/* Makes room for more ids. */
static weft_status make_room(job *j, size_t count) {
    if (j->capacity - j->count >= count) return WEFT_OK;
    size_t wanted = j->count + count + j->capacity / 2;
    int32_t *ids = weft__realloc(NULL, j->ids, wanted * sizeof *ids);
    if (!ids) return weft__fail_oom(NULL, wanted * sizeof *ids, "tokens");
    j->ids = ids;
    j->capacity = wanted;
    return WEFT_OK;
}

static weft_status encode_block(job *j, const char *text, size_t bytes) {
    size_t count = bytes;
    weft_status status;
    const double began = weft__now();
    do { /* once more, if there are more tokens than bytes */
        WEFT_TRY(make_room(j, count));
        status = weft_tokenizer_encode_special(j->tokenizer, text, bytes, j->ids + j->count,
                                               j->capacity - j->count, &count);
    } while (status == WEFT_ERR_ARGUMENT && count > j->capacity - j->count);
    WEFT_TRY(status);
    j->seconds += weft__now() - began;
    j->count += count;
    return WEFT_OK;
}

/* Prints the ids, or writes the full files. */
static weft_status put_ids(job *j, bool follows) {
    if (j->out) return flush(j, follows);
    for (size_t i = 0; i < j->count; i++)
        weft__print(stdout, "%s%d", j->written + (int64_t)i ? " " : "", (int)j->ids[i]);
    j->written += (int64_t)j->count;
    j->count = 0;
    if (!follows) weft__print(stdout, "\n");
    return WEFT_OK;
}

static weft_status take_ids(void *user, const int32_t *ids, size_t count) {
    job *j = user;
    WEFT_TRY(make_room(j, count));
    if (count) memcpy(j->ids + j->count, ids, count * sizeof *ids);
    j->count += count;
    return put_ids(j, true);
}

/* Encodes texts that stay in their files. */
static weft_status tokenize_stream(job *j, const char *path, const weft__text_files *files, uint64_t *bytes) {
    weft__text_stream *stream;
    WEFT_TRY(weft__text_stream_open(NULL, path, files, true, &stream));
    *bytes = stream->documents.bytes;
    const double began = weft__now();
    weft_status status = weft__text_stream_encode(stream, j->tokenizer, take_ids, j);
    j->seconds = weft__now() - began;
    if (status == WEFT_OK) status = put_ids(j, false);
    weft__text_stream_free(stream);
    return status;
}

/* Tells whether the path is a file that must be read as a whole. */
static bool is_whole(const job *j, const char *path, const weft__text_files *files) {
    uint8_t head[2] = {0};
    FILE *file =
        weft__documents_several(files) ? NULL : fopen(path, "rb"); /* a pattern or a folder has no bytes */
    const bool read = file && fread(head, 1, sizeof head, file) == sizeof head;
    if (file) fclose(file);
    return read && (weft__is_gzip(head, sizeof head) ||
                    weft_tokenizer_kind_of(j->tokenizer) == WEFT_TOKENIZER_PIPELINE);
}

static weft_status tokenize_whole(job *j, const char *path, uint64_t *bytes) {
    weft_bytes file = {0};
    WEFT_TRY(weft_read_file(NULL, path, 0, &file));
    const char *text = (const char *)file.data;
    weft_status status =
        file.size ? WEFT_OK : weft__fail(NULL, WEFT_ERR_FORMAT, "%s: the file is empty", path);
    for (size_t at = 0, end; status == WEFT_OK && at < file.size; at = end) {
        end = block_end(j->tokenizer, text, at, file.size);
        status = encode_block(j, text + at, end - at);
        if (status == WEFT_OK) status = put_ids(j, end < file.size);
    }
    *bytes = file.size;
    weft_bytes_free(NULL, &file);
    return status;
}

static weft_status tokenize(job *j, const char *path, uint64_t *bytes) {
    weft__text_files files;
    weft_status status = weft__documents_files(NULL, path, &files);
    if (status == WEFT_OK)
        status = is_whole(j, path, &files) ? tokenize_whole(j, path, bytes)
                                           : tokenize_stream(j, path, &files, bytes);
    weft__text_files_free(NULL, &files);
    return status;
}

static weft_status run_job(job *j, const char *path, const char *text) {
    weft_tokenizer *t = NULL;
    uint64_t bytes = 0;
    weft_status status = weft_tokenizer_load(NULL, path, &t);
    j->tokenizer = t;
    weft__output_reads(&j->output, text);
    weft__output_reads(&j->output, path);
    if (status == WEFT_OK && j->out) status = weft__output_file(&j->output, j->out);
    if (status == WEFT_OK) status = tokenize(j, text, &bytes);
    if (status == WEFT_OK && j->written == 0)
        status = weft__fail(NULL, WEFT_ERR_FORMAT, "%s: the text has no tokens", text);
    if (status == WEFT_OK && j->out)
        weft__print(stdout,
                    "%" PRId64 " tokens of %" PRIu64
                    " bytes of text, %.2f bytes a token, in %d file%s, %.1f MB a second\n",
                    j->written, bytes, (double)bytes / (double)j->written, j->files, j->files == 1 ? "" : "s",
                    1e-6 * (double)bytes / (j->seconds > 0 ? j->seconds : 1e-9));
    weft__free(NULL, j->ids);
    weft_tokenizer_free(t);
    return status;
}

/* Trains a tokenizer, and writes it to FOLDER/tokenizer.json. The context shows its warnings. */
static weft_status train_tokenizer(weft_context *ctx, const weft__repeated *texts,
                                   const weft_tokenizer_train_options *options, const char *folder,
                                   weft__output *output) {
    char path[4096];
    weft_tokenizer *t = NULL;
    const double began = weft__now();
    if (!weft__join(path, sizeof path, folder, "tokenizer.json"))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    for (size_t i = 0; i < texts->count; i++) weft__output_reads(output, texts->values[i]);
    weft_status status = weft__output_file(output, path);
    if (status != WEFT_OK) return weft__fail(ctx, status, "%s", weft_last_error(NULL));
    status = weft_tokenizer_train(ctx, texts->values, texts->count, options, &t);
    if (status == WEFT_OK) status = weft_make_folder(ctx, folder);
    if (status == WEFT_OK) status = weft_tokenizer_save(t, path);
    if (status == WEFT_OK)
        weft__print(stdout, "%s: %zu tokens, trained in %.1f s\n", path, weft_tokenizer_vocabulary(t),
                    weft__now() - began);
    weft_tokenizer_free(t);
    return status;
}

static int run_training(const weft__repeated *texts, const weft_tokenizer_train_options *options,
                        const char *folder, weft__output *output) {
    weft_context *ctx = NULL;
    weft_status status = weft_open(&(weft_open_options){.device = "null", .log = weft__show_log}, &ctx);
    if (status == WEFT_OK) status = train_tokenizer(ctx, texts, options, folder, output);
    const int code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(ctx, status);
    weft_close(ctx);
    return code;
}

/* Returns what is wrong with the options; NULL: nothing. */
static const char *check_options(const job *j, const weft__repeated *texts, const char *tokenizer,
                                 bool trains, int64_t vocabulary) {
    if (trains && tokenizer) return "--train makes a tokenizer, so leave --tokenizer out";
    if (trains && vocabulary > INT32_MAX / 2) return "--train must be at most 1073741823";
    if (!trains && !tokenizer) return "--tokenizer is missing";
    if (!trains && texts->count > 1) return "give one text; only --train takes several";
    if (j->out && !j->out[0]) return "--out is empty";
    return j->shard < 1 || j->shard > INT32_MAX ? "--shard must be 1 to 2147483647" : NULL;
}

int weft__command_tokenize(const weft__command *command, int argc, char **argv) {
    const char *tokenizer = NULL, *pattern = "cl100k";
    weft_tokenizer_train_options train = {0};
    weft__repeated texts = {0};
    job j = {.shard = 100000000, .output.command = "tokenize"};
    int64_t vocabulary = -1, min_count = 0;
    int code = 0;
    const weft__option options[] = {
        {"TEXT ...", WEFT__OPTION_ARGS, &texts,
         "the text, plain or packed with gzip, a pattern, or .tar files of texts; --train takes several "
         "texts"},
        {"--tokenizer TOKENIZER", WEFT__OPTION_TEXT, &tokenizer,
         "a tokenizer.json, a .model file, or the folder of a published model"},
        {"--out OUT", WEFT__OPTION_TEXT, &j.out,
         "the file to write: name it .bin; without it the ids are printed"},
        WEFT__FORCE_OPTION(&j.output.force),
        {"--shard N", WEFT__OPTION_INT, &j.shard, "most tokens of one file; default: 100000000"},
        {"--train N", WEFT__OPTION_INT, &vocabulary,
         "train a tokenizer of N tokens, and write tokenizer.json to the folder --out; default: this folder"},
        {"--pattern NAME", WEFT__OPTION_TEXT, &pattern, "with --train: cl100k (default) or gpt2 cuts words"},
        {"--min-count N", WEFT__OPTION_INT, &min_count,
         "with --train: merge two tokens only if they occur side by side N times; default: 1"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    const bool trains = vocabulary >= 0;
    const char *wrong = check_options(&j, &texts, tokenizer, trains, vocabulary);
    if (!wrong && !weft_tokenizer_pattern_parse(pattern, &train.pattern))
        wrong = "--pattern must be cl100k or gpt2";
    if (wrong) {
        weft__complain("tokenize: %s: 'weft tokenize --help' shows how to call it", wrong);
        return WEFT__EXIT_USAGE;
    }
    train.vocabulary = vocabulary > 0 ? (size_t)vocabulary : 1; /* 0 is too few, not the default */
    train.min_count = (uint64_t)min_count;
    if (trains) return run_training(&texts, &train, j.out ? j.out : ".", &j.output);
    weft_status status = run_job(&j, tokenizer, texts.values[0]);
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}
