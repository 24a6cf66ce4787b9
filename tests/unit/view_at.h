/* The element that a view reads at an index: the definition, which views and kernels are compared with. */
#ifndef WEFT_TESTS_VIEW_AT_H
#define WEFT_TESTS_VIEW_AT_H

#include "graph/view.h"

/* The element at `index`; -1 if a guard fails. */
static inline int64_t view_at(const weft_view *view, const int64_t *index) {
    int64_t element = 0, digits[WEFT_VIEW_RANK];
    for (int i = 0; i < view->count; i++) {
        const weft_map *m = &view->map[i];
        for (int d = m->rank - 1; i > 0 && d >= 0; d--) {
            if (m->extent[d] == 0) return -1;
            digits[d] = element % m->extent[d];
            element /= m->extent[d];
        }
        if (i > 0) index = digits;
        element = m->offset;
        for (int d = 0; d < m->rank; d++) {
            if (index[d] < m->lo[d] || index[d] >= m->hi[d]) return -1;
            element += index[d] * m->stride[d];
        }
    }
    return element;
}

#endif
