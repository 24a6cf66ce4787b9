/* Makes a page in memory, then writes the file. Must not know: what the page shows. Read next: report.c,
 * overlay.c. */
#include <string.h>

#include <weft/io.h>

#include "train/report/chart.h"
#include "train/report/page.h"
#include "train/report/report_assets.h"

void weft__page_head(FILE *out, const char *title) {
    fprintf(out, "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    weft__html_text(out, title, strlen(title));
    fprintf(out, "</title>\n<style>\n%s</style></head>\n", weft__report_css);
}

void weft__page_end(FILE *out) { fprintf(out, "<script>\n%s</script>\n</body></html>\n", weft__report_js); }

/* Makes the page in memory of a fixed size, because fmemopen reports when this memory is full. A stream that
 * grows by itself drops text when memory is short. *fits tells whether the whole page is there. */
static weft_status put_in(char *text, size_t size, weft__page_put *put, void *user, bool *fits) {
    FILE *out = fmemopen(text, size, "w");
    if (!out) return weft__fail_oom(NULL, size, "a page");
    const weft_status status = put(out, user);
    *fits = fflush(out) == 0 && !ferror(out) && ftell(out) + 1 < (long)size;
    if (fclose(out) != 0) *fits = false;
    return status;
}

weft_status weft__page_write(const char *path, weft__page_put *put, void *user) {
    weft_status status = WEFT_OK;
    char *text = NULL;
    bool fits = false;
    for (size_t size = 1u << 17; status == WEFT_OK && !fits; size *= 2) {
        weft__free(NULL, text);
        text = weft__alloc(NULL, size);
        status = text ? put_in(text, size, put, user, &fits) : weft__fail_oom(NULL, size, "a page");
    }
    if (status == WEFT_OK) status = weft_write_file(NULL, path, text, strlen(text));
    weft__free(NULL, text);
    return status;
}
