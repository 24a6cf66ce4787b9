/* Heavy operations: ops that the fuser generates no code for, such as matmul, convolution and attention. A
 * device implements a heavy operation by a template or a library, or declines it. The compiler expands a
 * declined composite. A heavy operation is a descriptor (shapes, strides, flags) and operands in memory, in
 * an order that the descriptor's header names. Must not know: devices, the graph. Read next: heavy.def, then
 * matmul.h. */
#ifndef WEFT_HEAVY_HEAVY_H
#define WEFT_HEAVY_HEAVY_H

#include <weft/profile.h>
#include "heavy/argsort.h"
#include "heavy/attention.h"
#include "heavy/conv.h"
#include "heavy/exchange.h"
#include "heavy/matmul.h"
#include "heavy/packed.h"
#include "heavy/recurrent.h"
#include "heavy/scan.h"
#include "heavy/scatter.h"
#include "heavy/source.h"
#include "heavy/update.h"

enum { WEFT_HEAVY_NO_OP = -1 };

typedef enum weft_heavy_kind {
    WEFT_HEAVY_NONE = -1,
#define W_HEAVY(KIND, member, OP) WEFT_HEAVY_##KIND,
#include "heavy/heavy.def"
#undef W_HEAVY
    WEFT_HEAVY_KINDS
} weft_heavy_kind;

typedef struct weft_heavy {
    weft_heavy_kind kind;
    const char *path; /* path of the layer */
    union {
#define W_HEAVY(KIND, member, OP) weft_heavy_##member member;
#include "heavy/heavy.def"
#undef W_HEAVY
    } as;
} weft_heavy;

/* What the compiler, the profile and messages need to know of a kind. A function that is NULL has the default
 * value that its comment names. */
typedef struct weft_heavy_class {
    const char *name; /* in messages: "matmul" */
    weft_work work;   /* its row in a profile */
    /* The operation may find a bad index while it writes its result. Then variables change only after it has
     * run. */
    bool faults;
    /* Returns the number of operands, results included. */
    int (*operands)(const weft_heavy *heavy);
    /* Returns the number of results, without the row sums of a matmul. NULL: 1. */
    int (*results)(const weft_heavy *heavy);
    /* Returns the base: the operand of which the result is a changed copy, or -1. NULL: -1. The result may
     * take over the memory of its base in two cases. If `assigns` is set, the base may be a variable to which
     * the result is assigned. If `base_in_arena` is set, the base may lie in the arena, when nothing reads it
     * later.
     */
    int (*base)(const weft_heavy *heavy);
    bool assigns, base_in_arena;
    /* Notes that the result has taken over the memory of its base. */
    void (*take_base)(weft_heavy *heavy);
    /* Returns the epilogue that the operation computes as well, or NULL. NULL: none. */
    const weft_kernel *(*epilogue)(const weft_heavy *heavy);
    /* Returns the dtype whose rate bounds the time of the operation. NULL: f32. */
    weft_dtype (*dtype)(const weft_heavy *heavy);
    /* Adds the least number of operations and bytes. Both are 0 before. */
    void (*cost)(const weft_heavy *heavy, double *flops, double *bytes);
    /* Writes one line for plans and profiles, such as "matmul f32 1x 12x128x64 nn". */
    void (*describe)(const weft_heavy *heavy, char *text, size_t size);
    /* Returns what is wrong with a descriptor, or NULL. */
    const char *(*check)(const weft_heavy *heavy);
} weft_heavy_class;

#define W_HEAVY(KIND, member, OP) extern const weft_heavy_class weft__heavy_##member;
#include "heavy/heavy.def"
#undef W_HEAVY

const weft_heavy_class *weft__heavy_class(const weft_heavy *heavy);

/* The kind that nodes of an op become, or WEFT_HEAVY_NONE. */
weft_heavy_kind weft__heavy_of_op(int op);

int weft__heavy_results(const weft_heavy *heavy);
int weft__heavy_base(const weft_heavy *heavy);
const weft_kernel *weft__heavy_epilogue(const weft_heavy *heavy);
weft_dtype weft__heavy_dtype(const weft_heavy *heavy);

/* ---- for the files of classes ---- */

static inline double weft__heavy_size(uint8_t dtype) { return (double)weft_dtype_size((weft_dtype)dtype); }

/* Are all extents 0 or larger? */
bool weft__heavy_extents(int count, const int64_t *extents);

#endif
