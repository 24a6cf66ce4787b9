/* Any bytes as a safetensors file. It must be refused, or every entry must be readable within the file. */
#include <stdlib.h>

#include <weft/io.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_safetensors *f;
    char byte;
    size_t count, found;
    static const uint8_t nothing[1];
    if (weft_safetensors_open_memory(NULL, "fuzz", size ? data : nothing, size, &f) != WEFT_OK) return 0;
    for (size_t i = 0; i < weft_safetensors_count(f); i++) {
        weft_entry_info info;
        if (!weft_safetensors_entry(f, i, &info) || !weft_safetensors_find(f, info.name, &found) ||
            found != i)
            abort();
        if (info.bytes && weft_safetensors_read(f, i, info.bytes - 1, &byte, 1) != WEFT_OK) abort();
        if (weft_safetensors_read(f, i, info.bytes, &byte, 1) != WEFT_ERR_INDEX) abort();
    }
    (void)weft_safetensors_metadata(f, &count);
    weft_safetensors_close(f);
    return 0;
}
