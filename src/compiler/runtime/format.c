/* Formats the values of a tensor as readable text. Must not know: how values are computed. Read next:
 * eval.c. */
#include <math.h>
#include <string.h>
#include <weft/ops.h>
#include "base/text.h"
#include "graph/graph.h"

enum { EDGE = 3, LONG = 8 }; /* extents above LONG show EDGE elements at each end */

typedef struct printer {
    weft_text text;
    const weft_tensor *t;
    const char *data;
} printer;

static void say_element(printer *p, int64_t i) {
    const void *at = p->data + (size_t)i * weft_dtype_size((weft_dtype)p->t->dtype);
    switch ((weft_dtype)p->t->dtype) {
    case WEFT_F32: weft__put(&p->text, "%.6g", (double)*(const float *)at); break;
    case WEFT_F64: weft__put(&p->text, "%.10g", *(const double *)at); break;
    case WEFT_F16: weft__put(&p->text, "%.4g", (double)weft_f16_to_f32(*(const uint16_t *)at)); break;
    case WEFT_BF16: weft__put(&p->text, "%.3g", (double)weft_bf16_to_f32(*(const uint16_t *)at)); break;
    case WEFT_I8: weft__put(&p->text, "%d", *(const int8_t *)at); break;
    case WEFT_I16: weft__put(&p->text, "%d", *(const int16_t *)at); break;
    case WEFT_I32: weft__put(&p->text, "%d", *(const int32_t *)at); break;
    case WEFT_I64: weft__put(&p->text, "%lld", (long long)*(const int64_t *)at); break;
    case WEFT_U8: weft__put(&p->text, "%u", *(const uint8_t *)at); break;
    case WEFT_U16: weft__put(&p->text, "%u", *(const uint16_t *)at); break;
    case WEFT_U32: weft__put(&p->text, "%u", *(const uint32_t *)at); break;
    case WEFT_U64: weft__put(&p->text, "%llu", (unsigned long long)*(const uint64_t *)at); break;
    case WEFT_BOOL: weft__put(&p->text, "%s", *(const uint8_t *)at ? "true" : "false"); break;
    case WEFT_C64:
        weft__put(&p->text, "%.6g%+.6gi", (double)((const float *)at)[0], (double)((const float *)at)[1]);
        break;
    case WEFT_C128:
        weft__put(&p->text, "%.10g%+.10gi", ((const double *)at)[0], ((const double *)at)[1]);
        break;
    default: weft__put(&p->text, "?"); break;
    }
}

/* Writes dimension d and those below it, from element `first` on, nested in brackets. */
static void say_dimension(printer *p, int d, int64_t first) {
    const weft_tensor *t = p->t;
    if (d == t->rank) {
        say_element(p, first);
        return;
    }
    int64_t step = 1;
    for (int i = d + 1; i < t->rank; i++) step *= t->shape[i];
    weft__put(&p->text, "[");
    for (int64_t i = 0; i < t->shape[d]; i++) {
        if (i) weft__put(&p->text, d + 1 < t->rank ? ",\n%*s" : ", ", d + 1, "");
        if (t->shape[d] > LONG && i == EDGE) {
            weft__put(&p->text, d + 1 < t->rank ? "...\n%*s" : "..., ", d + 1, "");
            i = t->shape[d] - EDGE;
        }
        say_dimension(p, d + 1, first + i * step);
    }
    weft__put(&p->text, "]");
}

int64_t weft_format(weft_tensor *t, char *buffer, size_t size) {
    if (!t || weft_tensor_status(t) != WEFT_OK) return -1;
    size_t bytes = (size_t)t->numel * weft_dtype_size((weft_dtype)t->dtype);
    char *data = weft__alloc(t->ctx, bytes + 1);
    if (!data) {
        weft__fail_oom(t->ctx, bytes, "printing a tensor");
        return -1;
    }
    weft_text whole = weft__text(buffer, size);
    int64_t used = -1;
    if (weft_read(t, data, bytes) == WEFT_OK) {
        char text[WEFT_SHAPE_TEXT];
        printer p = {whole, t, data};
        weft__put(&p.text, "%s ", weft__tensor_text(t, text));
        say_dimension(&p, 0, 0);
        used = (int64_t)p.text.length;
    }
    weft__free(t->ctx, data);
    return used;
}
