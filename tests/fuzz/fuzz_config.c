/* The parser of configurations on any bytes. It must return. What it accepts it must be able to write and
 * read back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft__config config;
    weft__config_init(&config);
    if (weft__config_parse(&config, (const char *)data, size, "fuzz") == WEFT_OK &&
        weft__config_resolve(&config) == WEFT_OK) {
        char *text = weft__config_text(&config);
        weft__config again;
        weft__config_init(&again);
        if (text && weft__config_parse(&again, text, strlen(text), "again") != WEFT_OK) abort();
        weft__config_free(&again);
        free(text);
    }
    weft__config_free(&config);
    return 0;
}
