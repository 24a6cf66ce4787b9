/* src/graph/view: random sequences of movements compared with a naive index map, composition, and sequences
 * that must become one map. The naive side is an array that holds the element number for every index, or -1
 * where a guard fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "unit/view_at.h"

#define MAX_RANK  5
#define MAX_COUNT 4096

typedef struct naive {
    int rank;
    int64_t shape[MAX_RANK];
    int32_t at[MAX_COUNT];
} naive;

static uint64_t seed_state;
static int64_t pick(int64_t n) { /* 0..n-1 */
    seed_state += UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(weft__mix64(seed_state) % (uint64_t)n);
}

static int64_t count_of(int rank, const int64_t *shape) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= shape[d];
    return n;
}

static void unravel(int64_t linear, int rank, const int64_t *shape, int64_t *index) {
    for (int d = rank - 1; d >= 0; d--) {
        index[d] = linear % shape[d];
        linear /= shape[d];
    }
}

static int64_t ravel(int rank, const int64_t *shape, const int64_t *index) {
    int64_t linear = 0;
    for (int d = 0; d < rank; d++) linear = linear * shape[d] + index[d];
    return linear;
}

static void naive_identity(naive *n, int rank, const int64_t *shape) {
    n->rank = rank;
    memcpy(n->shape, shape, (size_t)rank * sizeof *shape);
    for (int64_t i = 0; i < count_of(rank, shape); i++) n->at[i] = (int32_t)i;
}

/* ---- the movements, on the view and on the array. Each returns false if the view declines. ---- */

/* Fills n->at for a new shape from the old array. `from` maps a new index to an old one. */
typedef struct movement {
    enum { RESHAPE, PERMUTE, EXPAND, SLICE, PAD } kind;
    int rank;
    int order[MAX_RANK];
    int64_t shape[MAX_RANK], start[MAX_RANK], step[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
} movement;

static void naive_move(naive *n, const movement *m) {
    static naive old;
    int64_t index[MAX_RANK], from[MAX_RANK];
    old = *n;
    n->rank = m->rank;
    memcpy(n->shape, m->shape, sizeof n->shape);
    for (int64_t i = 0; i < count_of(n->rank, n->shape); i++) {
        bool valid = true;
        if (m->kind == RESHAPE) continue;
        unravel(i, n->rank, n->shape, index);
        for (int d = 0; d < n->rank; d++) {
            switch (m->kind) {
            case PERMUTE: from[m->order[d]] = index[d]; break;
            case EXPAND: from[d] = old.shape[d] == n->shape[d] ? index[d] : 0; break;
            case SLICE: from[d] = m->start[d] + index[d] * m->step[d]; break;
            default:
                from[d] = index[d] - m->lo[d];
                if (from[d] < 0 || from[d] >= old.shape[d]) valid = false;
            }
        }
        n->at[i] = valid ? old.at[ravel(old.rank, old.shape, from)] : -1;
    }
}

static bool view_move(weft_view *v, const movement *m) {
    switch (m->kind) {
    case RESHAPE: return weft__view_reshape(v, m->rank, m->shape);
    case PERMUTE: return weft__view_permute(v, m->order);
    case EXPAND: return weft__view_expand(v, m->shape);
    case SLICE: return weft__view_slice(v, m->start, m->shape, m->step);
    default: return weft__view_pad(v, m->lo, m->hi);
    }
}

/* A random shape with n elements. */
static int random_shape(int64_t n, int64_t *shape) {
    int rank = (int)pick(MAX_RANK + 1);
    if (n != 1 && rank == 0) rank = 1;
    for (int d = 0; d < rank; d++) {
        shape[d] = n;
        if (d < rank - 1) {
            if (n == 0) {
                shape[d] = pick(3) ? 1 + pick(3) : 0;
                if (shape[d] == 0 && pick(2)) n = 1;
            } else {
                int64_t divisors[64];
                int count = 0;
                for (int64_t f = 1; f <= n && count < 64; f++)
                    if (n % f == 0) divisors[count++] = f;
                shape[d] = divisors[pick(count)];
                n /= shape[d];
            }
        }
    }
    return rank;
}

static void random_movement(const naive *n, movement *m) {
    memset(m, 0, sizeof *m);
    m->rank = n->rank;
    memcpy(m->shape, n->shape, sizeof m->shape);
    m->kind = (unsigned)pick(5);
    if (m->kind == RESHAPE) {
        m->rank = random_shape(count_of(n->rank, n->shape), m->shape);
    } else if (m->kind == PERMUTE) {
        for (int d = 0; d < m->rank; d++) {
            int other = (int)pick(d + 1);
            m->order[d] = m->order[other];
            m->order[other] = d;
        }
        for (int d = 0; d < m->rank; d++) m->shape[d] = n->shape[m->order[d]];
    } else if (m->kind == EXPAND) {
        for (int d = 0; d < m->rank; d++)
            if (n->shape[d] == 1 && pick(2)) m->shape[d] = pick(9) ? 1 + pick(4) : 0;
    } else if (m->kind == SLICE) {
        for (int d = 0; d < m->rank; d++) {
            int64_t e = n->shape[d], magnitude = 1 + pick(3);
            m->step[d] = pick(3) ? magnitude : -magnitude;
            if (e == 0) continue;
            m->start[d] = pick(3) ? (m->step[d] > 0 ? 0 : e - 1) : pick(e);
            int64_t room = m->step[d] > 0 ? e - 1 - m->start[d] : m->start[d];
            int64_t most = room / magnitude + 1;
            m->shape[d] = pick(4) ? most : pick(24) ? 1 + pick(most) : 0;
            if (m->shape[d] == 0) m->start[d] = pick(2) ? e : 0;
        }
    } else {
        for (int d = 0; d < m->rank; d++)
            if (pick(3) == 0) m->lo[d] = pick(3), m->hi[d] = pick(3), m->shape[d] += m->lo[d] + m->hi[d];
    }
}

/* ---- comparisons ---- */

static void assert_same(const weft_view *v, const naive *n) {
    int64_t index[WEFT_VIEW_RANK];
    assert_int_equal(v->map[0].rank, n->rank);
    for (int d = 0; d < n->rank; d++) assert_int_equal(v->map[0].extent[d], n->shape[d]);
    bool guarded = false;
    for (int64_t i = 0; i < count_of(n->rank, n->shape); i++) {
        unravel(i, n->rank, n->shape, index);
        assert_int_equal(view_at(v, index), n->at[i]);
        if (n->at[i] < 0) guarded = true;
    }
    if (guarded) assert_true(weft__view_guarded(v));
}

/* Whether one affine guarded map suffices: the valid indices form a box, with constant steps along each
 * axis. */
static bool one_map_suffices(const naive *n) {
    int64_t lo[MAX_RANK], hi[MAX_RANK], index[MAX_RANK], step[MAX_RANK], total = count_of(n->rank, n->shape),
                                                                         valid = 0, box = 1, corner = 0;
    for (int d = 0; d < n->rank; d++) lo[d] = INT64_MAX, hi[d] = 0;
    for (int64_t i = 0; i < total; i++) {
        if (n->at[i] < 0) continue;
        unravel(i, n->rank, n->shape, index);
        valid++;
        for (int d = 0; d < n->rank; d++) {
            if (index[d] < lo[d]) lo[d] = index[d];
            if (index[d] + 1 > hi[d]) hi[d] = index[d] + 1;
        }
    }
    if (valid == 0) return n->rank > 0;
    for (int d = 0; d < n->rank; d++) box *= hi[d] - lo[d];
    if (box != valid) return false;
    corner = n->at[ravel(n->rank, n->shape, lo)];
    for (int d = 0; d < n->rank; d++) {
        memcpy(index, lo, sizeof index);
        index[d] = hi[d] - lo[d] > 1 ? lo[d] + 1 : lo[d];
        step[d] = n->at[ravel(n->rank, n->shape, index)] - corner;
    }
    for (int64_t i = 0; i < total; i++) {
        if (n->at[i] < 0) continue;
        unravel(i, n->rank, n->shape, index);
        int64_t element = corner;
        for (int d = 0; d < n->rank; d++) element += (index[d] - lo[d]) * step[d];
        if (element != n->at[i]) return false;
    }
    return true;
}

/* Applies random movements to a random shape. Returns how many of them the view declined. */
static int random_chain(naive *n, weft_view *v, int length) {
    int declined = 0;
    for (int i = 0; i < length; i++) {
        movement m;
        random_movement(n, &m);
        if (count_of(m.rank, m.shape) > MAX_COUNT) continue;
        weft_view before = *v;
        if (view_move(v, &m)) {
            naive_move(n, &m);
        } else {
            declined++;
            assert_true(weft__view_equal(v, &before));
        }
    }
    return declined;
}

static void random_start(naive *n, weft_view *v) {
    int64_t shape[MAX_RANK] = {0};
    int rank = (int)pick(MAX_RANK + 1);
    for (int d = 0; d < rank; d++) shape[d] = pick(40) ? 1 + pick(5) : 0;
    naive_identity(n, rank, shape);
    weft__view_identity(v, rank, shape);
}

/* ---- the tests ---- */

enum { CHAINS = 40000, PAIRS = 20000 };

static void test_chains(void **state) {
    (void)state;
    static naive n;
    weft_view v;
    long declined = 0, lists = 0, singles = 0, missed = 0;
    for (int c = 0; c < CHAINS; c++) {
        seed_state = (uint64_t)c;
        random_start(&n, &v);
        declined += random_chain(&n, &v, 1 + (int)pick(8));
        assert_same(&v, &n);
        if (v.count > 1) lists++;
        if (one_map_suffices(&n)) {
            singles++;
            if (v.count > 1) missed++;
        }
    }
    printf("chains=%d lists=%ld declined=%ld; one map suffices: %ld, not found: %ld\n", CHAINS, lists,
           declined, singles, missed);
    assert_true(missed * 200 < singles); /* exceptions: anti-diagonals and coincidences of tiny shapes */
    assert_true(declined * 500 < CHAINS * 4);
}

static void test_compose(void **state) {
    (void)state;
    static naive inner, outer;
    weft_view vi, vo, joined;
    long composed = 0;
    for (int c = 0; c < PAIRS; c++) {
        seed_state = UINT64_C(1) << 40 | (uint64_t)c;
        random_start(&inner, &vi);
        random_chain(&inner, &vi, (int)pick(4));
        int64_t shape[MAX_RANK] = {0};
        int rank = random_shape(count_of(inner.rank, inner.shape), shape);
        naive_identity(&outer, rank, shape);
        weft__view_identity(&vo, rank, shape);
        random_chain(&outer, &vo, (int)pick(4));
        if (!weft__view_compose(&vo, &vi, &joined)) continue;
        for (int64_t i = 0; i < count_of(outer.rank, outer.shape); i++)
            if (outer.at[i] >= 0) outer.at[i] = inner.at[outer.at[i]];
        assert_same(&joined, &outer);
        composed++;
    }
    printf("composed %ld of %d\n", composed, PAIRS);
    assert_true(composed > PAIRS * 95 / 100);
}

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})
#define ORDER(...) ((const int[]){__VA_ARGS__})

/* Splitting and merging the heads of attention: (b, t, 3, h, d) is read in place from the packed
 * projection. */
static void test_packed_heads_are_one_map(void **state) {
    (void)state;
    weft_view v;
    weft__view_identity(&v, 2, SHAPE(2 * 16, 3 * 64));
    assert_true(weft__view_reshape(&v, 3, SHAPE(2, 16, 192)));
    assert_true(weft__view_slice(&v, SHAPE(0, 0, 64), SHAPE(2, 16, 64), SHAPE(1, 1, 1)));
    assert_true(weft__view_reshape(&v, 4, SHAPE(2, 16, 4, 16)));
    assert_true(weft__view_permute(&v, ORDER(0, 2, 1, 3)));
    assert_int_equal(v.count, 1);
    assert_false(v.map[0].guarded);
    assert_int_equal(v.map[0].offset, 64);
    const int64_t strides[] = {16 * 192, 16, 192, 1};
    assert_memory_equal(v.map[0].stride, strides, sizeof strides);
    assert_true(weft__view_reshape(&v, 3, SHAPE(2, 4, 256))); /* a list: (t, d) has no single stride */
    assert_int_equal(v.count, 2);
    assert_true(weft__view_reshape(&v, 4, SHAPE(2, 4, 16, 16))); /* and one map again */
    assert_int_equal(v.count, 1);
    assert_memory_equal(v.map[0].stride, strides, sizeof strides);
}

static void test_there_and_back_is_identity(void **state) {
    (void)state;
    weft_view v, w;
    weft__view_identity(&v, 3, SHAPE(4, 6, 5));
    assert_true(weft__view_is_identity(&v));
    assert_true(weft__view_permute(&v, ORDER(2, 0, 1)));
    assert_false(weft__view_is_identity(&v));
    assert_true(weft__view_reshape(&v, 1, SHAPE(120)));
    assert_true(weft__view_reshape(&v, 3, SHAPE(5, 4, 6)));
    assert_true(weft__view_permute(&v, ORDER(1, 2, 0)));
    assert_true(weft__view_is_identity(&v));
    weft__view_identity(&w, 3, SHAPE(4, 6, 5));
    assert_true(weft__view_equal(&v, &w));
    weft_hash hv, hw;
    weft__hash_init(&hv);
    weft__hash_init(&hw);
    weft__view_hash(&hv, &v);
    weft__view_hash(&hw, &w);
    assert_true(weft__hash_equal(hv, hw));
    /* flip twice; pad and crop; expand and take one */
    assert_true(weft__view_slice(&v, SHAPE(3, 0, 4), SHAPE(4, 6, 5), SHAPE(-1, 1, -1)));
    assert_int_equal(v.map[0].offset, 3 * 30 + 4);
    assert_int_equal(v.map[0].stride[0], -30);
    assert_true(weft__view_slice(&v, SHAPE(3, 0, 4), SHAPE(4, 6, 5), SHAPE(-1, 1, -1)));
    assert_true(weft__view_equal(&v, &w));
    assert_true(weft__view_pad(&v, SHAPE(1, 0, 2), SHAPE(0, 3, 0)));
    assert_true(weft__view_guarded(&v));
    assert_true(weft__view_slice(&v, SHAPE(1, 0, 2), SHAPE(4, 6, 5), SHAPE(1, 1, 1)));
    assert_true(weft__view_equal(&v, &w));
}

static void test_padded_reshapes(void **state) {
    (void)state;
    weft_view v;
    weft__view_identity(&v, 2, SHAPE(3, 4));
    assert_true(weft__view_pad(&v, SHAPE(1, 0), SHAPE(2, 0)));
    assert_true(weft__view_reshape(&v, 1, SHAPE(24))); /* the inner guard always holds, so the maps merge */
    assert_int_equal(v.count, 1);
    assert_int_equal(v.map[0].lo[0], 4);
    assert_int_equal(v.map[0].hi[0], 16);
    assert_true(weft__view_reshape(&v, 3, SHAPE(3, 2, 4))); /* rows 1..3 of 6 form no box in (3, 2) */
    assert_int_equal(v.count, 2);
    assert_true(weft__view_reshape(&v, 3, SHAPE(6, 2, 2)));
    assert_int_equal(v.count, 1);
    assert_int_equal(v.map[0].lo[0], 1);
    assert_int_equal(v.map[0].hi[0], 4);
}

static void test_limits(void **state) {
    (void)state;
    weft_view v, before;
    const int64_t ones[WEFT_VIEW_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    weft__view_identity(&v, 0, ones);
    assert_true(weft__view_is_identity(&v));
    assert_int_equal(view_at(&v, ones), 0);
    assert_true(weft__view_reshape(&v, WEFT_VIEW_RANK, ones));
    assert_false(weft__view_reshape(&v, WEFT_VIEW_RANK + 1, ones));
    weft__view_identity(&v, 2, SHAPE(6, 6));
    for (int i = 0; i < 3; i++) {
        assert_true(weft__view_permute(&v, ORDER(1, 0)));
        assert_true(weft__view_reshape(&v, 2, i % 2 ? SHAPE(6, 6) : SHAPE(4, 9)));
    }
    assert_int_equal(v.count, WEFT_VIEW_MAPS);
    before = v;
    assert_true(weft__view_permute(&v, ORDER(1, 0)));
    before = v;
    assert_false(weft__view_reshape(&v, 1, SHAPE(36)));
    assert_true(weft__view_equal(&v, &before));
    /* extents beyond 32 bits, which need no memory */
    weft__view_identity(&v, 2, SHAPE(INT64_C(1) << 33, 64));
    assert_true(weft__view_reshape(&v, 3, SHAPE(1 << 20, 1 << 13, 64)));
    assert_true(
        weft__view_slice(&v, SHAPE(0, (1 << 13) - 1, 0), SHAPE(1 << 20, 1 << 13, 64), SHAPE(1, -1, 1)));
    assert_int_equal(v.count, 1);
    assert_int_equal(view_at(&v, SHAPE((1 << 20) - 1, 0, 63)), (INT64_C(1) << 39) - 1);
    assert_false(weft__view_pad(&v, SHAPE(INT64_MAX, 0, 0), SHAPE(0, 0, 0)));
}

static void test_empty_and_never_valid(void **state) {
    (void)state;
    weft_view v;
    weft__view_identity(&v, 2, SHAPE(0, 3));
    assert_true(weft__view_permute(&v, ORDER(1, 0)));
    assert_true(weft__view_reshape(&v, 3, SHAPE(7, 0, 2)));
    assert_true(weft__view_is_identity(&v));
    assert_true(weft__view_pad(&v, SHAPE(0, 1, 0), SHAPE(0, 0, 0)));
    assert_int_equal(view_at(&v, SHAPE(3, 0, 1)), -1);
    assert_true(weft__view_reshape(&v, 1, SHAPE(14)));
    assert_int_equal(v.count, 1);
    assert_true(weft__view_slice(&v, SHAPE(5), SHAPE(1), SHAPE(1)));
    assert_true(weft__view_reshape(&v, 0, NULL)); /* one map of rank 0 cannot express "never", a list can */
    assert_int_equal(view_at(&v, NULL), -1);
    assert_true(weft__view_guarded(&v));
    assert_true(weft__view_reshape(&v, 1, SHAPE(1)));
    assert_int_equal(v.count, 1);
    assert_int_equal(view_at(&v, SHAPE(0)), -1);
}

/* Columns [from, to) of a (rows, columns) buffer, padded to all columns. */
static weft_view padded_part(int64_t rows, int64_t columns, int64_t from, int64_t to) {
    weft_view view;
    weft__view_identity(&view, 2, (int64_t[]){rows, columns});
    assert_true(
        weft__view_slice(&view, (int64_t[]){0, from}, (int64_t[]){rows, to - from}, (int64_t[]){1, 1}));
    assert_true(weft__view_pad(&view, (int64_t[]){0, from}, (int64_t[]){0, columns - to}));
    return view;
}

/* A joined view equals one of the two views at every index. Views that do not fit are not joined. */
static void test_join(void **state) {
    (void)state;
    for (int i = 0; i < 3000; i++) {
        int64_t rows = 1 + pick(4), columns = 2 + pick(8), cut[4];
        for (int k = 0; k < 4; k++) cut[k] = pick(columns + 1);
        weft_view x =
            padded_part(rows, columns, cut[0] < cut[1] ? cut[0] : cut[1], cut[0] < cut[1] ? cut[1] : cut[0]);
        weft_view y =
            padded_part(rows, columns, cut[2] < cut[3] ? cut[2] : cut[3], cut[2] < cut[3] ? cut[3] : cut[2]);
        if (pick(4) == 0) y.map[0].offset += pick(2), y.map[0].stride[1] += pick(2);
        weft_view joined = x;
        const weft_map *a = &x.map[0], *b = &y.map[0];
        bool full = a->lo[1] < a->hi[1] && b->lo[1] < b->hi[1];
        bool beside = full && (a->hi[1] == b->lo[1] || b->hi[1] == a->lo[1]);
        bool same = a->offset == b->offset && a->stride[1] == b->stride[1];
        bool done = weft__view_join(&x, &y, &joined);
        if (!beside) assert_false(done);
        if (beside && same) assert_true(done);
        for (int64_t at = 0; done && at < rows * columns; at++) {
            int64_t index[2] = {at / columns, at % columns};
            int64_t one = view_at(&x, index), two = view_at(&y, index);
            assert_true(one < 0 || two < 0);
            assert_int_equal(view_at(&joined, index), one < 0 ? two : one);
        }
    }
    weft_view thirds[3], all;
    for (int i = 0; i < 3; i++) thirds[i] = padded_part(4, 6, 2 * i, 2 * i + 2);
    assert_false(weft__view_join(&thirds[0], &thirds[2], &all));
    assert_true(weft__view_join(&thirds[2], &thirds[1], &all));
    assert_true(weft__view_join(&thirds[0], &all, &all));
    assert_true(weft__view_is_identity(&all));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_compose),
        cmocka_unit_test(test_packed_heads_are_one_map),
        cmocka_unit_test(test_there_and_back_is_identity),
        cmocka_unit_test(test_padded_reshapes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_empty_and_never_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
