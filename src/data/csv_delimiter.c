/* Finds the delimiter of a csv file in its first lines. Must not know: cells. Read next: csv.c. */
#include "data/csv.h"

#include <string.h>

#define ROWS_MOST 20 /* rows that are looked at */

static const char candidates[] = {',', ';', '\t', '|'};
enum { CANDIDATES = sizeof candidates };

/* Counts the candidates in one row, outside quotes. Returns the row's end. */
static const char *count_row(const char *text, const char *end, size_t counts[CANDIDATES]) {
    bool quoted = false;
    memset(counts, 0, CANDIDATES * sizeof *counts);
    for (; text < end && (quoted || *text != '\n'); text++) {
        if (*text == '"') quoted = !quoted;
        for (int i = 0; i < CANDIDATES && !quoted; i++) counts[i] += *text == candidates[i];
    }
    return text < end ? text + 1 : end;
}

/* A delimiter is as often in the first row as in all other rows. If several candidates are, or none, the most
 * frequent one in the first row wins; of equally frequent ones the first. */
char weft__csv_delimiter(const char *text, size_t size) {
    size_t first[CANDIDATES], counts[CANDIDATES];
    bool even[CANDIDATES];
    const char *end = text + size;
    text = count_row(text, end, first);
    for (int i = 0; i < CANDIDATES; i++) even[i] = first[i] > 0;
    for (int row = 1; row < ROWS_MOST && text < end; row++) {
        const char *next = count_row(text, end, counts);
        for (int i = 0; i < CANDIDATES && next - text > 2; i++) /* blank lines may end a file */
            even[i] = even[i] && counts[i] == first[i];
        text = next;
    }
    int best = 0;
    for (int i = 1; i < CANDIDATES; i++)
        if (even[i] > even[best] || (even[i] == even[best] && first[i] > first[best])) best = i;
    return candidates[best];
}
