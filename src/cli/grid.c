/* Aligns cells of text. Must not know: what the cells mean. Read next: runs.c, compare.c. */
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/grid.h"
#include "train/print.h"

enum { GAP = 2, CELL_BYTES = 1024 };

void weft__grid_put(weft__grid *grid, const char *fmt, ...) {
    char raw[CELL_BYTES], text[CELL_BYTES];
    va_list args;
    if (grid->status != WEFT_OK) return;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    weft__printable(text, sizeof text, raw, strlen(raw), "");
    char *cell = weft__strdup(NULL, text);
    if (!cell || !weft__grow(NULL, &grid->cells, &grid->capacity, grid->count, sizeof *grid->cells)) {
        weft__free(NULL, cell);
        grid->status = weft__fail_oom(NULL, strlen(text) + 1, "a table");
        return;
    }
    grid->cells[grid->count++] = cell;
}

size_t weft__grid_room(FILE *out) {
    struct winsize size;
    if (isatty(fileno(out)) != 1) return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Returns the characters of a cell: its bytes without those that continue a character of UTF-8. */
static size_t cell_width(const char *cell) {
    size_t width = 0;
    for (; *cell; cell++) width += ((unsigned char)*cell & 0xc0) != 0x80;
    return width;
}

static size_t column_width(const weft__grid *grid, size_t column) {
    size_t widest = 0;
    for (size_t i = column; i < grid->count; i += grid->columns) {
        const size_t width = cell_width(grid->cells[i]);
        if (width > widest) widest = width;
    }
    return widest;
}

size_t weft__grid_width(const weft__grid *grid) {
    size_t width = 0;
    for (size_t c = 0; c < grid->columns; c++)
        if (!grid->hidden[c]) width += (width ? GAP : 0) + column_width(grid, c);
    return width;
}

/* Appends a cell to the line. Spaces come before the cell that follows them, so that no line ends with some.
 */
static void put_cell(FILE *out, const weft__grid *grid, size_t row, size_t column, size_t width,
                     size_t *owed) {
    const char *cell = grid->cells[row * grid->columns + column];
    const size_t own = cell_width(cell), pad = width - own;
    const size_t before = *owed + (grid->right[column] ? pad : 0);
    if (own > 0) weft__print(out, "%*s%s", (int)before, "", cell);
    *owed = GAP + (grid->right[column] ? 0 : pad) + (own > 0 ? 0 : before);
}

/* Prints the first column and those from `first` to before `end`. */
static void print_part(FILE *out, const weft__grid *grid, const size_t *widths, size_t first, size_t end) {
    for (size_t row = 0; row < grid->count / grid->columns; row++) {
        size_t owed = 0;
        for (size_t c = 0; c < end; c++)
            if ((c == 0 || c >= first) && !grid->hidden[c]) put_cell(out, grid, row, c, widths[c], &owed);
        weft__print(out, "\n");
    }
}

void weft__grid_print(FILE *out, const weft__grid *grid, size_t room) {
    size_t widths[WEFT__GRID_COLUMNS];
    for (size_t c = 0; c < grid->columns; c++) widths[c] = column_width(grid, c);
    for (size_t first = 1, end; first < grid->columns; first = end) {
        size_t width = widths[0];
        for (end = first; end < grid->columns; end++) {
            const size_t wider = width + (grid->hidden[end] ? 0 : GAP + widths[end]);
            if (room > 0 && wider > room && end > first) break;
            width = wider;
        }
        if (first > 1) weft__print(out, "\n");
        print_part(out, grid, widths, first, end);
    }
}

void weft__grid_free(weft__grid *grid) {
    for (size_t i = 0; i < grid->count; i++) weft__free(NULL, grid->cells[i]);
    weft__free(NULL, grid->cells);
    *grid = (weft__grid){0};
}
