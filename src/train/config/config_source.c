/* Finds the format of data by the name of a file, and by the keys of JSON lines or the columns of Parquet.
 * Must not know: other keys. Read next: config.c. */
#include <string.h>
#include <sys/stat.h>

#include <weft/preferences.h>

#include "data/parquet.h"
#include "text/json_lines.h"
#include "train/config/config.h"

static const struct {
    const char *word;
    weft__form form;
    const char *suffix;
} source_rows[] = {
#define SOURCE(id, word, form, suffix) {word, WEFT__FORM_##form, suffix},
#include "train/config/choices.def"
};

weft__form weft__config_form(const weft__config *config) { return source_rows[config->data_source].form; }

static bool ends_with(const char *text, size_t size, const char *suffix) {
    const size_t end = strlen(suffix);
    return size > end && strncmp(text + size - end, suffix, end) == 0;
}

/* Returns what language models learn from Parquet files, by their columns. */
static weft__source parquet_source(const char *path) {
    static const char *const keys[] = {"\"messages\"", "\"conversations\"", "\"completion\""};
    weft__buffer row = {0};
    bool chats = false;
    weft__json_lines_first(path, &row); /* once: it starts DuckDB */
    const bool pairs = weft__json_line_has(&row, "\"chosen\"") && weft__json_line_has(&row, "\"rejected\"");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        chats = chats || weft__json_line_has(&row, keys[i]);
    weft__buffer_free(&row);
    return pairs ? WEFT__SOURCE_PREFERENCES : chats ? WEFT__SOURCE_CHATS : WEFT__SOURCE_TEXT;
}

const char *weft__config_source(weft__model_type model, const char *path) {
    struct stat what;
    const bool language = weft__config_language(model),
               folder = !language && stat(path, &what) == 0 && S_ISDIR(what.st_mode);
    size_t size = strlen(path);
    if (language && weft__json_lines_parquet(path)) return source_rows[parquet_source(path)].word;
    if (model == WEFT__MODEL_ENCODER) return source_rows[WEFT__SOURCE_TEXTS].word; /* csv files, too */
    if (!language && ends_with(path, size, ".gz")) size -= 3; /* token files are not packed */
    if (!language && (folder ? weft__parquet_folder(path) : ends_with(path, size, ".parquet")))
        return source_rows[WEFT__SOURCE_CSV].word;
    for (size_t i = 0; i < sizeof source_rows / sizeof *source_rows; i++) {
        const weft__form form = source_rows[i].form;
        const char *suffix = source_rows[i].suffix;
        const bool fits = folder ? form == WEFT__FORM_FOLDER : suffix && ends_with(path, size, suffix);
        if (!fits || (form == WEFT__FORM_CORPUS) != language) continue;
        const bool pairs = i == WEFT__SOURCE_CHATS && weft_preferences_is(path);
        return source_rows[pairs ? (size_t)WEFT__SOURCE_PREFERENCES : i].word;
    }
    return NULL;
}
