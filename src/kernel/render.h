/* What the parts of the renderer share; see render.c for the whole. Must not know: devices, their interfaces.
 *
 * A kernel runs as groups. A group takes `per` units one after the other: rows (blocks where rows are
 * folded), or strips of the lane dimension. The lane dimension is the one along which lanes lie side by side:
 * reduced, so that a row is shared by all lanes and its sums end with a tree over them, or parallel, so that
 * a lane is an element of its own. Values that differ between lanes `vary`: where target.vectors they are
 * vectors of 16. */
#ifndef WEFT_KERNEL_RENDER_H
#define WEFT_KERNEL_RENDER_H

#include "base/text.h"
#include "kernel/source.h"

/* What a dtype is computed in. */
typedef enum weft_render_type {
    WEFT_RENDER_F32,
    WEFT_RENDER_F64,
    WEFT_RENDER_I32,
    WEFT_RENDER_I64,
    WEFT_RENDER_U32,
    WEFT_RENDER_U64,
    WEFT_RENDER_TYPES
} weft_render_type;

#define WEFT_RENDER_NAME  32
#define WEFT_RENDER_BYTES 1000 /* of all arguments; OpenCL promises 1,024 */
/* A number that the text names and the launch gives. */
typedef struct weft_render_number {
    const char *name; /* interned */
    weft_argument argument;
} weft_render_number;

typedef struct weft_render {
    weft_launches *launches;
    const weft_target *target;
    const weft_kernel *kernel;
    bool sink;
    int product; /* of an epilogue: the argument that is no memory but what the product hands over; else -1 */
    /* choices: render_choose.c */
    int lane;     /* dimension that lanes run over; -1: there is none, one lane works */
    bool reduced; /* it is a reduction dimension */
    int span;     /* elements side by side that a lane takes at once; render_span.c */
    bool outside; /* the index of lanes is that of the first of them */
    int lanes;    /* as the target has them, or fewer where many short rows are each reduced */
    int along;    /* dimension in which neighbouring units differ, where lanes lie apart in memory but units
                   * side by side, so that what is fetched for a lane serves several; -1: strips come first */
    bool wide;    /* indices have 64 bits */
    bool literal; /* too many numbers for arguments: they stand in the text */
    int stages;   /* the last one */
    uint8_t *stage;
    bool *varies;
    bool *wanted; /* by the loop that is being written */
    /* loops over a row: render_loops.c */
    uint8_t *first; /* stage whose loop is the first to compute a value */
    bool *kept;     /* its row of values is kept for later loops */
    int dearest;    /* stage whose loop computes longest */
    bool dear;      /* that takes as long as an exponential, or longer */
    /* what is being written */
    weft_text text;
    int indent;
    bool faults;                       /* takes the fault record */
    bool local[WEFT_RENDER_TYPES];     /* lanes meet in local memory for sums of that type */
    int64_t *scratch;                  /* byte where the fold has its columns; of COLUMN folds */
    bool failed;                       /* out of memory */
    size_t n_numbers, number_capacity; /* in order of their first use */
    weft_render_number *numbers;
} weft_render;

static inline const weft_instr *weft__code_of(const weft_render *r, int v) { return &r->kernel->code[v]; }

/* ---- render.c ---- */
/* One line of the text, indented. */
void weft__put_line(weft_render *r, const char *fmt, ...) WEFT_PRINTF(2, 3);
void weft__put_open(weft_render *r, const char *fmt, ...) WEFT_PRINTF(2, 3); /* a line that ends with { */
void weft__put_close(weft_render *r);
const char *weft__index_type(const weft_render *r); /* of one index */
/* m: lanes of the vector at `index` that lie before `end`. */
void weft__put_live_lanes(weft_render *r, const char *end, const char *index);
/* How the text calls a number: by a name, which becomes an argument, or as it is. */
const char *weft__render_number(weft_render *r, weft_argument_kind kind, weft_argument value, const char *fmt,
                                ...) WEFT_PRINTF(4, 5);
const char *weft__render_size(weft_render *r, int64_t value, const char *fmt, ...) WEFT_PRINTF(3, 4);
const char *weft__render_extent(weft_render *r, int d); /* of a dimension of the kernel */

/* What a kernel gets: its pointers, as parameters of which each begins with `line`; the members of the struct
 * of its numbers, offsets first; the lines that make pointers and constants of both, that struct being `of`;
 * and the arguments that a launch gives for them: how many bytes, and where the list of them ends. */
void weft__put_pointers(weft_render *r, const char *line);
void weft__put_members(weft_render *r);
void weft__put_constants(weft_render *r);
size_t weft__render_argument_bytes(const weft_render *r);
weft_argument *weft__render_arguments(weft_render *r, weft_argument *list);
/* Takes the index of dimension d off the number `rest`. */
void weft__put_digit(weft_render *r, int d);
unsigned weft__render_prelude(const weft_render *r);
void weft__render_free(weft_render *r);

/* ---- render_move.c ---- */
/* Does a kernel only move elements, whatever they mean? Then: the same kernel of words of their size. */
bool weft__render_moves(const weft_kernel *kernel);
weft_status weft__render_as_words(weft_launches *launches, weft_kernel *kernel);

/* ---- render_choose.c ---- */
weft_status weft__render_choose(weft_render *r);
bool weft__render_vector(const weft_render *r, int v); /* is value v a vector? */
/* Are the lanes of v's access elements side by side, and none of them guarded? */
bool weft__in_line(const weft_render *r, int v);
bool weft__stage_is_full(const weft_render *r, int stage);
/* Does an access differ between the lanes of dimension d? */
bool weft__moves_along(const weft_map *m, int d);

/* ---- render_loops.c ---- */
void weft__choose_loops(weft_render *r);
/* wanted: the FULL values that the loop of a stage needs. */
void weft__find_wanted(weft_render *r, int stage);
bool weft__is_kept(const weft_render *r, int v, int stage); /* from a loop before */
void weft__put_kept(weft_render *r);                        /* where kept values are */
void weft__kept_name(const weft_render *r, int v, char *name, size_t size);
void weft__put_fetches(weft_render *r, int stage);

/* ---- render_span.c ---- */
void weft__choose_span(weft_render *r);
bool weft__in_span(const weft_render *r, int v); /* is v's access one of a span? */
/* Around what is computed of a place, along the lane dimension. */
void weft__put_span(weft_render *r);
void weft__put_span_end(weft_render *r);

/* ---- render_words.c ---- */
weft_render_type weft__render_type(weft_dtype dtype);
weft_render_type weft__type_of(const weft_render *r, int v); /* of value v */
const char *weft__type_name(weft_render_type type, bool vector);
const char *weft__type_suffix(weft_render_type type);
const char *weft__storage_name(weft_dtype dtype);
bool weft__stored_plainly(weft_dtype dtype); /* as it is computed */
/* The row's expression on a, b, c, which compute in `type`. */
void weft__put_row(weft_text *out, int op, weft_render_type type, bool vector, const char *a, const char *b,
                   const char *c);
/* What a reduction starts from. */
void weft__put_start(weft_text *out, int op, weft_dtype dtype);
void weft__put_float(weft_text *out, double value, weft_render_type type);
void weft__put_integer(weft_text *out, int64_t value, weft_render_type type);

/* ---- render_place.c ---- */
#define WEFT_RENDER_TERM 640
typedef enum weft_place_kind {
    WEFT_PLACE_ONE,  /* one element: `element`, valid where `guard` */
    WEFT_PLACE_LINE, /* a vector from `element` on, of which lanes from..to-1 are valid */
    WEFT_PLACE_STEP, /* the same in steps of `step` */
    WEFT_PLACE_EACH  /* vectors of elements, and of bools that tell the valid ones */
} weft_place_kind;
typedef struct weft_place {
    weft_place_kind kind;
    char element[WEFT_RENDER_TERM];
    char guard[WEFT_RENDER_TERM]; /* "" where always valid */
    char from[WEFT_RENDER_NAME * 2], to[WEFT_RENDER_TERM];
    const char *step;
} weft_place;
/* Where instruction v reads or writes; `each`: its lanes one by one where it varies. Writes the lines that it
 * takes. */
void weft__put_place(weft_render *r, int v, bool each, weft_place *out);
/* How the text calls the index of dimension d of the kernel. */
const char *weft__render_index(const weft_render *r, int d, char name[8]);

/* ---- render_value.c ---- */
/* The line of an instruction that yields a value, or of a store. */
void weft__put_value(weft_render *r, int v);
void weft__put_store(weft_render *r, int v, const char *value, bool vector);
/* A value as an operand of something that is a vector or not. */
void weft__put_operand(weft_render *r, weft_text *out, int v, bool vector);

/* ---- render_rows.c ---- */
/* The lines for one unit, whose indices are there. */
void weft__put_unit(weft_render *r);

#endif
