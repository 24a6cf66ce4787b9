/* Finds the format of data by the name of a file, and by the keys of JSON lines or the columns of Parquet.
 * Must not know: other keys. Read next: config.c. */
#include <string.h>
#include <sys/stat.h>

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

/* Returns what language models learn from JSON lines or Parquet files; NULL: the path has none. */
static const char *objects_source(bool published, const char *path) {
    bool parquet;
    switch (weft__json_lines_use_of(path, &parquet)) {
    case WEFT__USE_NONE: break;
    case WEFT__USE_EMPTY: /* the reader will say so */
    case WEFT__USE_TEXTS:
        return source_rows[published && !parquet ? WEFT__SOURCE_CHATS : WEFT__SOURCE_TEXT].word;
    case WEFT__USE_CHATS: return source_rows[WEFT__SOURCE_CHATS].word;
    case WEFT__USE_PREFERENCES: return source_rows[WEFT__SOURCE_PREFERENCES].word;
    case WEFT__USE_OTHER: /* the reader will say what is wrong */
        return source_rows[parquet ? WEFT__SOURCE_TEXT : WEFT__SOURCE_CHATS].word;
    }
    return NULL;
}

const char *weft__config_source(weft__model_type model, bool published, const char *path) {
    struct stat what;
    const bool language = weft__config_language(model),
               folder = !language && stat(path, &what) == 0 && S_ISDIR(what.st_mode);
    size_t size = strlen(path);
    const char *objects = language ? objects_source(published, path) : NULL;
    if (objects) return objects;
    if (model == WEFT__MODEL_ENCODER) return source_rows[WEFT__SOURCE_TEXTS].word; /* csv files, too */
    if (!language && ends_with(path, size, ".gz")) size -= 3; /* token files are not packed */
    if (!language && (folder ? weft__parquet_folder(path) : ends_with(path, size, ".parquet")))
        return source_rows[WEFT__SOURCE_CSV].word;
    for (size_t i = 0; i < sizeof source_rows / sizeof *source_rows; i++) {
        const weft__form form = source_rows[i].form;
        const char *suffix = source_rows[i].suffix;
        const bool fits = folder ? form == WEFT__FORM_FOLDER : suffix && ends_with(path, size, suffix);
        if (fits && (form == WEFT__FORM_CORPUS) == language) return source_rows[i].word;
    }
    return NULL;
}
