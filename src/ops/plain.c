/* The functions behind the macros of ops.h, without the caller's location. Bindings and function pointers use
 * them.
 * Must not know: what ops do. Read next: ops.def. */
#include <weft/ops.h>

#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                                                   \
    weft_tensor *(weft_##name)(weft_tensor * x) { return weft_##name##_at(NULL, x); }
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)                                         \
    weft_tensor *(weft_##name)(weft_tensor * a, weft_tensor * b) { return weft_##name##_at(NULL, a, b); }
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    weft_tensor *(weft_##name)(weft_tensor * condition, weft_tensor * a, weft_tensor * b) {                  \
        return weft_##name##_at(NULL, condition, a, b);                                                      \
    }
#define PLAIN_STRIP(...) __VA_ARGS__
#define W_FUNC(name, params, args, doc)                                                                      \
    weft_tensor *(weft_##name)params { return weft_##name##_at(NULL, PLAIN_STRIP args); }
#include "ops/ops.def"
