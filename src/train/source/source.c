/* The table of data sources, and what is asked of all of them. Must not know: formats. Read next: arrays.c.
 */
#include <string.h>
#include <sys/stat.h>

#include "train/source/source.h"

static const struct {
    const char *word;
    const weft__source_kind *kind;
} sources[] = {
#define SOURCE(id, name) {#name, &weft__data_##name},
#include "train/source/sources.def"
};
enum { SOURCES = sizeof sources / sizeof *sources };

const weft__source_kind *weft__source_of(const weft__config *config) {
    return sources[config->data_source].kind;
}

bool weft__path_ends(const weft__path_facts *f, const char *suffix) {
    const size_t end = strlen(suffix);
    return !f->folder && f->size > end && strncmp(f->path + f->size - end, suffix, end) == 0;
}

static bool form_fits(weft__form form, weft__model_type model) {
    return (form == WEFT__FORM_CORPUS) == weft__config_language(model) &&
           (form == WEFT__FORM_TEXTS) == (model == WEFT__MODEL_ENCODER);
}

const char *weft__source_guess(weft__model_type model, bool published, const char *path) {
    struct stat what;
    const bool language = weft__config_language(model);
    weft__path_facts facts = {.path = path,
                              .size = strlen(path),
                              .folder = !language && stat(path, &what) == 0 && S_ISDIR(what.st_mode),
                              .published = published};
    if (language)
        facts.use = weft__json_lines_use_of(path, &facts.parquet);
    else if (weft__path_ends(&facts, ".gz")) /* token files are not packed */
        facts.size -= 3;
    for (int i = 0; i < SOURCES; i++) {
        const weft__source_kind *kind = sources[i].kind;
        if (form_fits(kind->form, model) && kind->guess && kind->guess(&facts)) return sources[i].word;
    }
    return NULL;
}

static bool uses(const weft__source_kind *kind, weft__config_key key) {
    for (size_t i = 0; i < sizeof kind->keys / sizeof *kind->keys && kind->keys[i]; i++)
        if (kind->keys[i] == key) return true;
    return false;
}

bool weft__source_ignores(const weft__config *config, weft__config_key key) {
    bool used = false;
    for (int i = 0; i < SOURCES; i++) used = used || uses(sources[i].kind, key);
    return used && !uses(weft__source_of(config), key);
}

bool weft__source_has_tokenizer(const weft__config *config) {
    return weft__source_of(config)->tokens_of != WEFT__TOKENS_OF_FILES || config->data_tokenizer_path;
}
