/* What the files of the renderer share. Must not know: devices, their interfaces. Read next: render.c.
 *
 * A kernel runs as groups. A group takes `per` units in sequence. A unit is a row (a block, if rows are
 * folded), or a tile of the lane dimension. Lanes lie next to each other along the lane dimension:
 *
 * - If this dimension is reduced, all lanes share a row, and a tree over the lanes ends its sums.
 * - If it is parallel, each lane computes an element of its own.
 *
 * Values that differ between lanes `vary`. On CUDA a group can have several teams of lanes (render_team.c).
 *
 *     lane dimension reduced            lane dimension parallel
 *
 *     lane    0  1  2  3                lane    0  1  2  3
 *     row 0   x0 x1 x2 x3               unit 0  y0 y1 y2 y3      each lane loops over
 *             x4 x5 x6 x7               unit 1  y4 y5 y6 y7      its own reduced indices
 *             \  tree  /
 *              sum of row 0 */
#ifndef WEFT_KERNEL_RENDER_H
#define WEFT_KERNEL_RENDER_H

#include "base/text.h"
#include "kernel/source.h"

/* The type in which a dtype is computed. */
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
#define WEFT_RENDER_BYTES 1000 /* limit of all arguments; OpenCL promises 1,024 */
/* A number that has a name in the source and whose value the launch passes. */
typedef struct weft_render_number {
    const char *name; /* interned */
    weft_argument argument;
} weft_render_number;

typedef struct weft_render {
    weft_launches *launches;
    const weft_target *target;
    const weft_kernel *kernel;
    bool sink;
    int product;      /* of an epilogue: the argument that the matmul passes as a value; else -1 */
    struct {          /* who computes what: render_choose.c */
        int dim;      /* the lane dimension; -1: none, one lane works */
        bool reduced; /* the lane dimension is a reduction dimension */
        int span;     /* adjacent elements that a lane takes at once; see render_span.c */
        bool outside; /* write the index of the span's first element */
        int count;    /* as many as the target has, or fewer if many short rows are reduced */
        int teams;    /* of a group, each of `count` lanes; 1, unless the dialect is CUDA */
        bool split; /* the teams share each sum over a reduced dimension; else they take rows of their own */
        int turns;  /* spans of a lane in a row, whose loops are unrolled; 0: loops are loops */
    } lanes;
    bool wide;     /* indices have 64 bits */
    bool literal;  /* too many numbers for arguments, so they are literals in the source */
    int stages;    /* the last stage */
    int last_loop; /* the stage whose loop stores elements */
    uint8_t *stage;
    bool *varies;
    bool *rounded;           /* by value: it was computed from a float that was rounded to 16 bits */
    bool *wanted;            /* needed by the loop that is being written */
    struct {                 /* loops over a row: render_loops.c */
        uint8_t *first;      /* by value: the first stage whose loop computes it */
        bool *kept;          /* by value: later loops reuse it */
        int64_t *stash;      /* by kept value: its first byte in the stash */
        int64_t stash_bytes; /* local memory that the launch asks for; 0: there is no stash */
        int ahead;      /* the value whose next row is copied into the stash; -1: none; see render_ahead.c */
        int ahead_last; /* the stage of the last loop that reads it */
        int together;   /* groups with such a stash that a multiprocessor holds */
    } row;
    /* what is being written */
    weft_text text;
    int indent;
    bool faults;                       /* the kernel gets the fault record */
    int local[WEFT_RENDER_TYPES];      /* by type: elements of local memory through which items exchange
                                        * sums of it */
    int64_t *scratch;                  /* by COLUMN fold: byte offset of its columns in the scratch memory */
    bool failed;                       /* out of memory */
    size_t n_numbers, number_capacity; /* the numbers, in order of first use */
    weft_render_number *numbers;
} weft_render;

static inline const weft_instr *weft__code_of(const weft_render *r, int v) { return &r->kernel->code[v]; }

/* ---- render.c ---- */
/* Writes one line of the source, indented. */
void weft__put_line(weft_render *r, const char *fmt, ...) WEFT_PRINTF(2, 3);
void weft__put_open(weft_render *r, const char *fmt, ...) WEFT_PRINTF(2, 3); /* a line that ends with { */
void weft__put_close(weft_render *r);
const char *weft__index_type(const weft_render *r); /* type of an index */
/* Returns a number as it is written in the source: a name, which becomes an argument, or a literal. */
const char *weft__render_number(weft_render *r, weft_argument_kind kind, weft_argument value, const char *fmt,
                                ...) WEFT_PRINTF(4, 5);
const char *weft__render_size(weft_render *r, int64_t value, const char *fmt, ...) WEFT_PRINTF(3, 4);
const char *weft__render_extent(weft_render *r, int d); /* extent of a dimension of the kernel */

/* The parameters and arguments of a kernel:
 *
 * - _pointers writes its pointers as parameters; `line` stands before each.
 * - _members writes the members of the struct of its numbers, offsets first.
 * - _constants writes the lines that make pointers and constants of both; the struct is called `of`.
 * - _argument_bytes returns the bytes of all arguments.
 * - _arguments writes the arguments of a launch, and returns the end of the list. */
void weft__put_pointers(weft_render *r, const char *line);
void weft__put_members(weft_render *r);
void weft__put_constants(weft_render *r);
size_t weft__render_argument_bytes(const weft_render *r);
weft_argument *weft__render_arguments(weft_render *r, weft_argument *list);
/* Writes the lines that split the index of dimension d from the number `rest`. */
void weft__put_digit(weft_render *r, int d);
unsigned weft__render_prelude(const weft_render *r);
void weft__render_free(weft_render *r);

/* ---- render_move.c ---- */
/* Does a kernel only move elements? Then weft__render_as_words turns it into the same kernel of words of
 * their size. */
bool weft__render_moves(const weft_kernel *kernel);
weft_status weft__render_as_words(weft_launches *launches, weft_kernel *kernel);

/* ---- render_choose.c ---- */
weft_status weft__render_choose(weft_render *r);
bool weft__stores_elements(const weft_instr *in); /* one for each reduced index */
bool weft__ends_loop(const weft_instr *in); /* needs a loop over the reduced indices, in its own stage */
bool weft__stage_is_full(const weft_render *r, int stage);
/* Does an access differ between indices of dimension d? */
bool weft__moves_along(const weft_map *m, int d);

/* ---- render_loops.c ---- */
void weft__choose_loops(weft_render *r);
/* Fills in `wanted`: the FULL values that the loop of a stage needs. */
void weft__find_wanted(weft_render *r, int stage);
bool weft__is_kept(const weft_render *r, int v, int stage); /* does an earlier loop keep v for this stage? */
void weft__put_kept(weft_render *r);                        /* declares the arrays of kept values */
void weft__kept_name(const weft_render *r, int v, char *name, size_t size);

/* ---- render_team.c ---- */
bool weft__has_teams(const weft_render *r); /* is the kernel for work-items of CUDA? */
/* May teams of few lanes each take a row, if lanes run along d? */
bool weft__takes_short_rows(const weft_render *r, int d);
/* Returns the lanes of a team that computes a row of so many spans. */
int weft__team_of(const weft_render *r, int64_t spans);
/* Can the lanes of several teams add up a column together? All results are row values then, and each team
 * takes every teams-th reduced index. */
bool weft__may_split(const weft_render *r);
bool weft__is_column_fold(const weft_render *r, int v);
int weft__team_lanes(const weft_render *r, int d); /* number of lanes if they run along d */
void weft__choose_teams(weft_render *r);
/* Returns the only dimension of the loops over a row. -1: there are several, or none. */
int weft__only_loop(const weft_render *r);
/* May lanes hold values of a row? Do those fit that are `kept`, if so many groups share the local memory? */
bool weft__may_hold(const weft_render *r);
bool weft__holding_fits(weft_render *r, int at_once);
/* Returns how many groups of so many items a multiprocessor should hold, if lanes hold rows in registers.
 * Else 0, and the compiler decides. */
int weft__groups_beside(const weft_render *r, int items);
int weft__last_loop_of(weft_render *r, int v); /* the stage of the last loop that needs a kept value; changes
                                                * `wanted` */
int weft__stash_word(const weft_render *r, int v); /* bytes of a word of a kept value in the stash */

/* ---- render_ahead.c ---- */
/* Chooses the value to copy ahead, if the stash lets a multiprocessor hold so many groups together. */
void weft__choose_ahead(weft_render *r, int together);
/* Written before the loop over rows, before the loop of a stage, and in that loop after the value is read. */
void weft__put_first_copies(weft_render *r);
void weft__put_copies_awaited(weft_render *r, int stage);
void weft__put_next_copy(weft_render *r, int stage);

/* ---- render_span.c ---- */
void weft__choose_span(weft_render *r);
bool weft__in_span(const weft_render *r, int v); /* is v accessed as a span? */
/* Does v access n adjacent elements of a lane that could be one access? */
bool weft__could_span(const weft_render *r, int v, int n);
/* Written before and after the lines that compute one element of a span, in the loop of a stage. */
void weft__put_span(weft_render *r, int stage);
void weft__put_span_end(weft_render *r, int stage);
/* Declares what lanes hold of LOAD v, or of another value, in `turns` turns (0: in this one). */
void weft__put_held(weft_render *r, int v, int turns);
bool weft__is_aligned(const weft_render *r, int v); /* is the address of a span a multiple of its word? */
void weft__put_stash_copy(weft_render *r, int v);   /* starts to copy a span of LOAD v to its slot */
/* Do lanes read v before the loop of a stage, and hold it in registers for this loop or later ones? */
bool weft__is_held_from(const weft_render *r, int v, int stage);
/* Writes the loop that reads what a stage holds in registers. */
void weft__put_holds(weft_render *r, int stage);
int weft__open_turns(weft_render *r); /* opens the loop over turns; returns the number of braces to close */

/* ---- render_expression.c ---- */
weft_render_type weft__render_type(weft_dtype dtype);
weft_render_type weft__type_of(const weft_render *r, int v); /* type of value v */
const char *weft__type_name(weft_render_type type);
const char *weft__type_suffix(weft_render_type type);
const char *weft__storage_name(weft_dtype dtype);
bool weft__stored_plainly(weft_dtype dtype); /* stored in the type in which it is computed */
/* Writes the row's expression on a, b, c, computed in `type`. */
void weft__put_row(weft_text *out, int op, weft_render_type type, const char *a, const char *b,
                   const char *c);
/* Is a CALC a function that may be only near (prelude_f32.h)? Its operand was rounded to 16 bits, the device
 * has exponentials of its own, and the kernel makes sums: others wait for memory, not for functions. */
bool weft__is_near(const weft_render *r, const weft_instr *in);
/* Writes the start value of a reduction. */
void weft__put_start(weft_text *out, int op, weft_dtype dtype);
void weft__put_float(weft_text *out, double value, weft_render_type type);
void weft__put_integer(weft_text *out, int64_t value, weft_render_type type);

/* ---- render_place.c ---- */
#define WEFT_RENDER_TERM 640
typedef struct weft_place {
    char element[WEFT_RENDER_TERM];
    char guard[WEFT_RENDER_TERM]; /* "" if always valid */
} weft_place;
/* Finds the place that instruction v reads or writes, and writes the lines that the place needs. */
void weft__put_place(weft_render *r, int v, weft_place *out);
/* Returns the name of the index of dimension d of the kernel. */
const char *weft__render_index(const weft_render *r, int d, char name[8]);

/* ---- render_value.c ---- */
/* Writes the line of an instruction that yields a value, or of a store. */
void weft__put_value(weft_render *r, int v);
void weft__put_store(weft_render *r, int v, const char *value);
void weft__put_operand(weft_render *r, weft_text *out, int v);

/* ---- render_facts.c ---- */
/* What the launch moves and computes, with `per` units for each group. Call it after the choices; it changes
 * `wanted`. */
weft_launch_facts weft__render_facts(weft_render *r, int64_t per);

/* ---- render_rows.c ---- */
/* Writes the lines of one unit. Its indices are defined already. */
void weft__put_unit(weft_render *r);

#endif
