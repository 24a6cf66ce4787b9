/* The formats of packed matrices, and what the compiler and the profile know of their operations. Must not
 * know: devices. Read next: packed.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static const weft_packed_info infos[] = {
#define PACKED_INFO(name, text, elements, bytes, span) [WEFT_##name] = {text, elements, bytes, span},
    WEFT_PACKED_LIST(PACKED_INFO)
#undef PACKED_INFO
};

const weft_packed_info *weft__packed_info(int format) {
    const bool known = format > 0 && (size_t)format < sizeof infos / sizeof *infos && infos[format].name;
    return known ? &infos[format] : NULL;
}

const char *weft_packed_name(weft_packed_format format) {
    const weft_packed_info *info = weft__packed_info((int)format);
    return info ? info->name : "?";
}

int64_t weft_packed_bytes(weft_packed_format format, int64_t k) {
    const weft_packed_info *info = weft__packed_info((int)format);
    return info && k > 0 && k % info->elements == 0 ? weft__packed_row(info, k) : 0;
}

static int packed_operands(const weft_heavy *heavy) {
    return heavy->as.packed.multiply ? WEFT_PACKED_OPERANDS : WEFT_PACKED_OPERANDS - 1;
}

static void packed_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_packed *p = &heavy->as.packed;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    *flops = p->multiply ? 2 * m * n * k : n * k;
    *bytes = n * (double)weft__packed_row(weft__packed_info(p->format), p->k) +
             4 * (p->multiply ? m * (n + k) : n * k);
}

static void packed_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_packed *p = &heavy->as.packed;
    const char *format = weft__packed_info(p->format)->name;
    if (p->multiply)
        snprintf(text, size, "matmul packed %s %lldx%lldx%lld", format, (long long)p->m, (long long)p->n,
                 (long long)p->k);
    else
        snprintf(text, size, "unpack %s %lldx%lld", format, (long long)p->n, (long long)p->k);
}

static const char *packed_check(const weft_heavy *heavy) {
    const weft_heavy_packed *p = &heavy->as.packed;
    const weft_packed_info *info = weft__packed_info(p->format);
    if (!info) return "an unknown format";
    if (!weft__heavy_extents(3, (int64_t[]){p->m, p->n, p->k})) return "a negative extent";
    return p->k % info->elements ? "a row that is not whole blocks" : NULL;
}

const weft_heavy_class weft__heavy_packed = {.name = "packed matrix",
                                             .work = WEFT_WORK_MATMUL,
                                             .operands = packed_operands,
                                             .cost = packed_cost,
                                             .describe = packed_describe,
                                             .check = packed_check};
