/* The manifest of a checkpoint: first the bytes as they are, then with a correct checksum, so that they
 * reach the parser. */
#include <stdlib.h>

#include "io/manifest.h"
#include "io/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft__manifest m;
    char *text;
    size_t bytes;
    if (weft__manifest_parse(NULL, "fuzz", (const char *)data, size, &m) == WEFT_OK) weft__manifest_free(&m);
    if (weft__seal(NULL, (const char *)data, size, &text, &bytes) != WEFT_OK) abort();
    if (weft__manifest_parse(NULL, "fuzz", text, bytes, &m) == WEFT_OK) {
        if (!m.state.extra || !m.state.config_hash || !m.state.data_hash || m.state.ranks == 0) abort();
        for (size_t k = 0; k < m.count; k++)
            for (size_t i = 0; i < m.files[k].count; i++) {
                const weft__manifest_entry *e = &m.files[k].entries[i];
                if (!e->name || !e->sum || e->from < 0 || e->of_rank > WEFT_ENTRY_RANK_MAX) abort();
            }
        weft__manifest_free(&m);
    }
    weft__free(NULL, text);
    return 0;
}
