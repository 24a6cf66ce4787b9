/* Tensor cores: ldmatrix and mma, with the fragments that the ISA assigns to lanes ("Matrix fragments for
 * mma.m16n8k16",
 * ".m16n8k8", "ldmatrix"). Read next: run.c. */
#include "actions.h"
#include "number.h"

/* All 32 lanes take part. */
static bool is_whole_warp(ptx_warp *w, uint32_t mask) {
    if (mask == ~0u) return true;
    ptx_fault(w, -1, "lanes of the warp are missing: %#x", ~mask);
    return false;
}

/* Lane 8 m + r has the address of row r of matrix m. Lane l gets the elements 2 (l % 4) and 2 (l % 4) + 1 of
 * row l / 4, or of the transposed matrix. */
void ptx_ldmatrix(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0);
    uint16_t rows[4 * 8][8];
    if (!is_whole_warp(w, mask)) return;
    if (in->n_to != in->vector || in->type != B16 || !in->word || in->space != SHARED) {
        ptx_unknown(w, in);
        return;
    }
    ptx_count_banks(w, in, SHARED, in->vector == 4 ? ~0u : (1u << 8 * in->vector) - 1, a, sizeof rows[0]);
    for (uint32_t r = 0; r < 8u * in->vector; r++) {
        const char *row = ptx_at(w, r, SHARED, a[r] + (uint64_t)in->offset[0], sizeof rows[r], READ, NULL);
        if (!row) return;
        memcpy(rows[r], row, sizeof rows[r]);
    }
    for (int m = 0; m < in->vector; m++) {
        uint64_t *to = ptx_to(w, in, m);
        for (int l = 0; l < LANES; l++) {
            const int major = l / 4, minor = 2 * (l % 4);
            const bool turn = in->flags & TRANSPOSED;
            const uint32_t low = turn ? rows[8 * m + minor][major] : rows[8 * m + major][minor];
            const uint32_t high = turn ? rows[8 * m + minor + 1][major] : rows[8 * m + major][minor + 1];
            to[l] = high << 16 | low;
        }
    }
}

/* ---- mma ---- */

enum { M = 16, N = 8, K_MOST = 16 };
typedef struct ptx_matrices {
    double a[M][K_MOST], b[K_MOST][N];
} ptx_matrices;

/* Element i of a register. TF32 ignores the last 13 bits. */
static double element(ptx_type type, uint64_t word, unsigned i) {
    if (type == TF32) return ptx_float(word & ~0x1fffull);
    return type == F16 ? ptx_half(word >> 16 * i & 0xffff) : ptx_bfloat(word >> 16 * i & 0xffff);
}

/* Register r of a holds rows 8 (r % 2) + l / 4 and columns of half r / 2 of k; register r of b rows of half
 * r. In a half, lane l % 4 has `each` neighbours. */
static void read_fragments(const ptx_warp *w, const ptx_instruction *in, int k, ptx_matrices *m) {
    const ptx_type type = in->from_type;
    const int each = type == TF32 ? 1 : 2, halves = k / (4 * each);
    for (int l = 0; l < LANES; l++)
        for (int half = 0; half < halves; half++)
            for (int i = 0; i < each; i++) {
                const int at = half * 4 * each + l % 4 * each + i;
                for (int r = 0; r < 2; r++)
                    m->a[8 * r + l / 4][at] = element(type, ptx_from(w, in, 2 * half + r)[l], (unsigned)i);
                m->b[at][l / 4] = element(type, ptx_from(w, in, 2 * halves + half)[l], (unsigned)i);
            }
}

/* d = a b + c, rounded once. Registers 0 and 1 of d hold the columns 2 (l % 4) and the next of row l / 4, 2
 * and 3 of row 8 + l / 4. */
void ptx_mma(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { K16 = 1, K8 };
    const int k = in->word == K16 ? 16 : 8, words = in->from_type == TF32 || k == 16 ? 6 : 3;
    const bool known = in->from_type == F16 || in->from_type == BF16 || (in->from_type == TF32 && k == 8);
    ptx_matrices m;
    if (!is_whole_warp(w, mask)) return;
    if (!in->word || !known || in->type != F32 || in->n_to != 4 || in->n_from != words + 4) {
        ptx_unknown(w, in);
        return;
    }
    read_fragments(w, in, k, &m);
    float d[4][LANES];
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++) {
            const int row = l / 4 + 8 * (i / 2), column = 2 * (l % 4) + i % 2;
            double sum = ptx_float(ptx_from(w, in, words + i)[l]);
            for (int p = 0; p < k; p++) sum += m.a[row][p] * m.b[p][column];
            d[i][l] = (float)sum;
        }
    for (int i = 0; i < 4; i++)
        for (int l = 0; l < LANES; l++) ptx_to(w, in, i)[l] = ptx_float_bits(d[i][l]);
}
