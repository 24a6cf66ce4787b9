/* Prints text for people: formats it, then escapes it. Must not know: what is printed. Read next:
 * base/text.c. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "train/print.h"

const char *weft__clear_line = "";

static void print_put(FILE *out, const char *text, size_t bytes) {
    size_t taken;
    for (; bytes > 0; text += taken, bytes -= taken) {
        char piece[WEFT__ESCAPE];
        fwrite(piece, 1, weft__printable_next(text, bytes, "\n\t", piece, &taken), out);
    }
}

void weft__vprint(FILE *out, const char *fmt, va_list args) {
    char some[1024], *all = NULL;
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(some, sizeof some, fmt, args);
    if (n >= (int)sizeof some && (all = weft__alloc(NULL, (size_t)n + 1)))
        vsnprintf(all, (size_t)n + 1, fmt, again);
    va_end(again);
    print_put(out, all ? all : some, all ? (size_t)n : strlen(some));
    weft__free(NULL, all);
}

void weft__print(FILE *out, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    weft__vprint(out, fmt, args);
    va_end(args);
}

/* Asks the system once for standard output, since tables print many small texts. */
static bool is_terminal(FILE *out) {
    static int known = -1;
    if (out != stdout) return fileno(out) >= 0 && isatty(fileno(out)) == 1;
    if (known < 0) known = isatty(STDOUT_FILENO) == 1;
    return known;
}

bool weft__print_text(FILE *out, const char *text, size_t bytes) {
    if (is_terminal(out))
        print_put(out, text, bytes);
    else
        fwrite(text, 1, bytes, out);
    return !ferror(out);
}

const char *weft__short_number(double value, char out[24]) {
    double size = fabs(value);
    if (!isfinite(value))
        snprintf(out, 24, "-");
    else if (size >= 999.5e6) /* three digits of less would round to 1e+03M */
        snprintf(out, 24, "%.3gG", value / 1e9);
    else if (size >= 999.5e3)
        snprintf(out, 24, "%.3gM", value / 1e6);
    else if (size >= 9999.5) /* "%.4g" of less would round to 1e+04 */
        snprintf(out, 24, "%.3gk", value / 1e3);
    else
        snprintf(out, 24, "%.4g", value);
    return out;
}

const char *weft__shown_number(weft__notation notation, int digits, double value,
                               char out[WEFT__SHOWN_BYTES]) {
    char text[24];
    out[0] = '\0';
    switch (notation) {
    case WEFT__NOTATION_NONE: break;
    case WEFT__NOTATION_FIXED: snprintf(out, WEFT__SHOWN_BYTES, "%.*f", digits, value); break;
    case WEFT__NOTATION_POWER: snprintf(out, WEFT__SHOWN_BYTES, "%.*e", digits, value); break;
    case WEFT__NOTATION_GENERAL: snprintf(out, WEFT__SHOWN_BYTES, "%.*g", digits, value); break;
    case WEFT__NOTATION_PERCENT: snprintf(out, WEFT__SHOWN_BYTES, "%.*f %%", digits, value * 100); break;
    case WEFT__NOTATION_SHORT: snprintf(out, WEFT__SHOWN_BYTES, "%s", weft__short_number(value, text)); break;
    }
    return out;
}
