/* Bank conflicts. Shared memory has 32 banks of 4 bytes, and each serves one word at a time. A warp whose
 * lanes need several words of one bank waits for each of them. Accesses of 8 bytes are served for 16 lanes at
 * once, those of 16 bytes for 8 lanes, ldmatrix for the 8 rows of a matrix. Must not know what is accessed.
 * Read next: memory.c. */
#include <string.h>

#include "actions.h"

enum { BANKS = 32, WORD = 4 };

/* Is it an address of shared memory? Then *at becomes an offset. */
static bool is_shared(ptx_space space, uint64_t *at) {
    if (space == SHARED) return true;
    if (space != GENERIC || *at >> 56 << 56 != PTX_SHARED_WINDOW) return false;
    *at -= PTX_SHARED_WINDOW;
    return true;
}

/* The words of one group of lanes: how often the banks serve it. */
typedef struct bank_group {
    uint64_t words[BANKS][BANKS]; /* different words of each bank */
    int count[BANKS], times;
} bank_group;

static void add_word(bank_group *g, uint64_t word) {
    const uint64_t bank = word % BANKS;
    for (int i = 0; i < g->count[bank]; i++)
        if (g->words[bank][i] == word) return;
    g->words[bank][g->count[bank]++] = word;
    if (g->count[bank] > g->times) g->times = g->count[bank];
}

unsigned ptx_count_banks(ptx_warp *w, const ptx_instruction *in, ptx_space space, uint32_t mask,
                         const uint64_t *addresses, unsigned bytes) {
    ptx_bank_count *counts = w->machine->banks;
    const unsigned lanes = bytes <= WORD ? LANES : LANES * WORD / bytes;
    unsigned times = 0;
    if (!counts && !w->machine->launch->timed) return 0;
    for (unsigned first = 0; first < LANES; first += lanes) {
        bank_group g = {.times = 0};
        for (unsigned l = first; l < first + lanes; l++) {
            uint64_t at = addresses[l] + (uint64_t)in->offset[0];
            if (!(mask >> l & 1) || !is_shared(space, &at)) continue;
            for (unsigned k = 0; k < (bytes + WORD - 1) / WORD; k++) add_word(&g, at / WORD + k);
        }
        times += (unsigned)g.times;
        if (!counts) continue;
        ptx_bank_count *c = &counts[in - w->machine->module->code];
        c->accesses += g.times > 0;
        c->conflicts += g.times > 1 ? (unsigned)g.times - 1 : 0;
    }
    return times;
}

void ptx_report_banks(const ptx_machine *m, FILE *to) {
    ptx_bank_count all = {0};
    const ptx_instruction *worst = NULL;
    uint64_t most = 0;
    for (int i = 0; i < m->module->n_code; i++) {
        all.accesses += m->banks[i].accesses;
        all.conflicts += m->banks[i].conflicts;
        if (m->banks[i].conflicts <= most) continue;
        most = m->banks[i].conflicts;
        worst = &m->module->code[i];
    }
    if (!all.accesses) return;
    const char *text = worst ? m->module->lines[worst->line - 1] : "";
    text += strspn(text, " \t");
    fprintf(to, "%s\t%llu\t%llu\t%llu\t%.*s\n", m->kernel->name, (unsigned long long)all.accesses,
            (unsigned long long)all.conflicts, (unsigned long long)most, (int)strcspn(text, "\n"), text);
}
