/* What the files of the interpreter share: a decoded module, and the state of a launch. Read next: parse.c,
 * run.c. */
#ifndef WEFT_TESTS_PTX_MODULE_H
#define WEFT_TESTS_PTX_MODULE_H

#include <stdio.h>

#include "ptx.h"

enum { LANES = 32, BARRIERS = 16, CALLS_MOST = 8, VECTOR_MOST = 8, SOURCES_MOST = 12, KNOWN_RANGES = 16 };

/* ---- types and spaces ---- */

typedef enum ptx_type {
    NO_TYPE,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F32,
    F64,
    BF16,
    F16X2,
    BF16X2,
    TF32,
    PREDICATE
} ptx_type;

static inline unsigned ptx_bytes(ptx_type t) {
    static const uint8_t bytes[] = {0, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 4, 4, 4, 1};
    return bytes[t];
}
static inline bool ptx_is_signed(ptx_type t) { return t >= S8 && t <= S64; }
static inline bool ptx_is_float(ptx_type t) { return t >= F16 && t <= BF16; }

typedef enum ptx_space { GENERIC, GLOBAL, SHARED, LOCAL, PARAMETER, CONSTANT, REGISTER } ptx_space;

/* Generic addresses of shared and local memory. Global memory has the addresses of the host. */
#define PTX_SHARED_WINDOW ((uint64_t)0x5a << 56)
#define PTX_LOCAL_WINDOW  ((uint64_t)0x1c << 56)
/* In the space .param: parameters of the kernel begin at 0, those of functions lie in local memory. */
#define PTX_FUNCTION_PARAMETERS ((uint64_t)1 << 32)

typedef enum ptx_rounding { NO_ROUNDING, RN, RZ, RM, RP, RNA, RNI, RZI, RMI, RPI } ptx_rounding;
typedef enum ptx_compare {
    EQ = 1,
    NE,
    LT,
    LE,
    GT,
    GE,
    EQU,
    NEU,
    LTU,
    LEU,
    GTU,
    GEU,
    NUM,
    UNORDERED /* .nan */
} ptx_compare;

/* Words of an opcode that change what it does. */
typedef enum ptx_flag {
    FTZ = 1 << 0,
    SAT = 1 << 1,
    APPROX = 1 << 2,
    FULL = 1 << 3,
    LOW = 1 << 4,  /* .lo */
    HIGH = 1 << 5, /* .hi */
    WIDE = 1 << 6,
    CARRY_OUT = 1 << 7, /* .cc */
    ALIGNED = 1 << 8,
    TO = 1 << 9, /* cvta.to */
    TRANSPOSED = 1 << 10,
    RELU = 1 << 11,
    NAN_WINS = 1 << 12, /* min.NaN */
    XORSIGN = 1 << 13,
    UNIFORM = 1 << 14
} ptx_flag;

/* ---- instructions ---- */

typedef struct ptx_instruction ptx_instruction;
typedef struct ptx_warp ptx_warp;
/* Executes an instruction for the lanes of a mask. */
typedef void (*ptx_action)(ptx_warp *w, const ptx_instruction *in, uint32_t mask);

/* What an instruction does to the control of a warp, after or instead of its action. */
typedef enum ptx_control {
    PLAIN,
    BRANCH,
    TABLE,
    CALL,
    RETURN,
    EXIT,
    BARRIER,  /* waits for the block */
    TOGETHER, /* needs the lanes of the mask that is its last operand */
    WHOLE     /* needs all lanes of the warp that have not returned */
} ptx_control;

/* Operands are slots: registers of the warp, or, below 0, constants of the module (slot ~n is constant n). */
struct ptx_instruction {
    ptx_action action;
    int line;       /* in the text of the module */
    int guard;      /* predicate; -1: none */
    bool guard_not; /* executed where the predicate is false */
    bool spreads;   /* may read registers that were never written: then its result counts as such, too */
    uint8_t control, type, from_type, rounding, compare, space, vector;
    uint8_t word; /* another word of the opcode: 1 for the first one of the row, 0 for none */
    uint8_t n_to, n_from;
    uint32_t flags;
    uint64_t keep;     /* bits of a destination register */
    int64_t offset[2]; /* of its addresses */
    int to[VECTOR_MOST], from[SOURCES_MOST];
    int target; /* of a branch: number of an instruction; of a call: of a function; or of a table */
    int call;   /* number of the call's list of parameters */
};

/* Slots of the registers that the hardware sets. */
enum {
    TID_X,
    TID_Y,
    TID_Z,
    NTID_X,
    NTID_Y,
    NTID_Z,
    CTAID_X,
    CTAID_Y,
    CTAID_Z,
    NCTAID_X,
    NCTAID_Y,
    NCTAID_Z,
    LANEID,
    WARPID,
    NWARPID,
    LANEMASK_EQ,
    LANEMASK_LE,
    LANEMASK_LT,
    LANEMASK_GE,
    LANEMASK_GT,
    CLOCK,
    SPECIAL_REGISTERS,
    SINK = SPECIAL_REGISTERS, /* the destination _ */
    FIRST_REGISTER
};

typedef struct ptx_parameter {
    uint64_t at; /* address in the space .param */
    unsigned bytes;
} ptx_parameter;

struct ptx_function {
    ptx_module *module;
    char *name;
    bool is_kernel, is_defined;
    int first; /* its first instruction */
    unsigned n_parameters, n_results;
    ptx_parameter *parameters, *results;
    unsigned *sizes;          /* of the parameters */
    unsigned parameter_bytes; /* of a kernel, all together */
    unsigned shared_bytes;    /* static */
    unsigned dynamic_at;      /* where dynamic shared memory begins */
    unsigned threads_most;    /* .maxntid; 0: not given */
};

/* A call: where the caller has the arguments, and wants the results. */
typedef struct ptx_call {
    unsigned n_arguments, n_results;
    uint64_t arguments[16], results[4];
} ptx_call;

/* A variable of the module in global or constant memory. */
typedef struct ptx_variable {
    char *memory;
    size_t bytes;
} ptx_variable;

typedef struct ptx_table {
    int count, *targets;
} ptx_table;

struct ptx_module {
    char *text;
    char **lines; /* pointers into the text, for messages */
    int n_lines;
    ptx_function **functions;
    int n_functions;
    ptx_instruction *code;
    int n_code;
    uint64_t (*constants)[LANES];
    int n_constants;
    ptx_call *calls;
    int n_calls;
    ptx_table *tables;
    int n_tables;
    ptx_variable *variables;
    int n_variables;
    int n_registers;      /* of all functions */
    unsigned local_bytes; /* of all functions, with the parameters of functions */
};

/* A row of the table of opcodes, in opcodes.c. */
typedef struct ptx_opcode {
    const char *name;
    ptx_action action;
    uint8_t control;
    bool spreads;
    uint8_t results;   /* operands that are written */
    uint8_t least;     /* operands that are read, at least */
    uint32_t flags;    /* flags that it may have */
    const char *words; /* other words that it may have, each with a space before it; one at most is kept */
} ptx_opcode;
extern const ptx_opcode ptx_opcodes[];

/* Sets the fields that follow from the words of an opcode. Returns false and the word that is unknown. */
bool ptx_decode(const char *opcode, ptx_instruction *in, const ptx_opcode **row, char *unknown, size_t bytes);

/* ---- a launch ---- */

typedef struct ptx_block ptx_block;
typedef struct ptx_machine ptx_machine;

/* A copy that cp.async started. */
typedef struct ptx_copy {
    int lane, group;
    uint32_t to;
    uint64_t from;
    unsigned bytes, read; /* the bytes behind the first `read` ones become 0 */
} ptx_copy;

struct ptx_warp {
    ptx_machine *machine;
    ptx_block *block;
    int number, n_lanes;
    uint64_t (*registers)[LANES];
    uint32_t *defined; /* for each register, the lanes that wrote it */
    uint32_t carry;
    char *local; /* local memory of each lane, one after the other */
    /* Where each lane is, and the lanes that can go on, wait for lanes of their warp, or for a barrier. */
    uint32_t at[LANES];
    uint8_t depth[LANES];
    uint32_t back[CALLS_MOST][LANES];
    uint32_t running, parked, waiting;
    uint8_t barrier[LANES];
    ptx_copy *copies;
    int n_copies, groups[LANES]; /* groups: so many are committed */
    uint32_t meets;              /* how often all lanes met at bar.warp.sync */
    uint32_t lost;               /* result of an action: lanes whose result is not defined */
    struct {
        uint64_t now, last; /* the next instruction is issued, and the last one was, at the earliest */
        uint64_t *ready;    /* when each register is there */
        unsigned wait;      /* of the access that comes next */
    } clock;
};

/* What happened to a byte of shared memory since the last barrier of the block. */
typedef struct ptx_shadow {
    uint32_t write_epoch, read_epoch; /* of the block; 0: never */
    uint32_t readers;                 /* lanes of the warp that read it */
    uint32_t write_meet, read_meet;   /* how often the warp had met then */
    uint16_t writer;                  /* thread */
    int16_t reader_warp;              /* or SEVERAL_WARPS */
    bool pending, atomic;             /* cp.async has not arrived; the writer was an atomic instruction */
} ptx_shadow;
enum { SEVERAL_WARPS = -1 };

/* What happened to a byte of global memory. */
typedef struct ptx_cell {
    uint32_t launch;                  /* of the process; of earlier ones nothing is of interest */
    uint32_t write_block, read_block; /* numbers of blocks; read_block may be SEVERAL_BLOCKS */
    bool written, read;
    ptx_shadow within; /* what the block did; its epochs are those of write_block and read_block */
} ptx_cell;
#define SEVERAL_BLOCKS UINT32_MAX

/* A multiprocessor (clock.c). */
enum { SCHEDULERS = 4, CACHE_LINES = 2048 };

struct ptx_block {
    ptx_machine *machine;
    bool used;
    unsigned index[3];
    uint32_t number; /* in the grid */
    ptx_warp warps[LANES];
    int n_warps, live; /* threads that have not returned */
    char *shared;
    ptx_shadow *shadow;
    unsigned shared_bytes;
    uint32_t epoch;
    struct {
        uint64_t begin;              /* the last barrier */
        uint64_t issued[SCHEDULERS]; /* instructions of each scheduler since then, */
        uint64_t busy[SCHEDULERS];   /* clocks of its unit for integers and special functions, */
        uint64_t memory;             /* and of the unit for memory */
        uint64_t lines[CACHE_LINES]; /* of global memory that are in the cache */
    } clock;
    struct {
        int arrived, line; /* threads that wait, and where the first one does */
        int trues;         /* predicates of bar.red that are true */
    } barriers[BARRIERS];
};

/* Of an instruction: groups of lanes that accessed shared memory at once, and how often one had to wait. */
typedef struct ptx_bank_count {
    uint64_t accesses, conflicts;
} ptx_bank_count;

struct ptx_machine {
    ptx_launch *launch;
    const ptx_module *module;
    const ptx_function *kernel;
    char *parameters;
    ptx_block *blocks;
    int n_blocks;
    uint64_t random;
    uint32_t number;       /* of the launch, in this process */
    ptx_bank_count *banks; /* for each instruction, or NULL: they are not counted */
    struct {
        uint64_t begin, end;
        ptx_cell *cells;   /* for each byte, or NULL: races are not looked for */
    } known[KNOWN_RANGES]; /* ranges of global memory that were looked up last */
    int next_known;
    bool failed;
    const ptx_instruction *now;
};

/* Reports a fault of a lane (-1: of the warp) at the current instruction and ends the launch. */
void ptx_fault(ptx_warp *w, int lane, const char *why, ...) __attribute__((format(printf, 3, 4)));

/* ---- memory.c ---- */

typedef enum ptx_access { READ, WRITE, ATOMIC } ptx_access;
/* The memory of the host behind so many bytes, which must be aligned to their number. value: what will be
 * written, or NULL. Returns NULL after a fault. */
char *ptx_at(ptx_warp *w, uint32_t lane, ptx_space space, uint64_t at, unsigned bytes, ptx_access how,
             const void *value);

/* ---- race.c ---- */

/* Each looks for a race of an access with what it knows about a byte, and notes the access. Returns false
 * after a fault. same: it writes the value that is there. */
bool ptx_check_shared(ptx_warp *w, uint32_t lane, uint64_t at, ptx_access how, bool same);
bool ptx_check_global(ptx_warp *w, uint32_t lane, ptx_cell *c, uint64_t at, ptx_access how);
/* A thread writes a byte of shared memory. */
void ptx_note_write(const ptx_warp *w, uint32_t lane, ptx_shadow *s, bool atomic);
/* The cells of a range of global memory. */
ptx_cell *ptx_cells_of(uint64_t begin, uint64_t end);

/* ---- banks.c ---- */

/* Lanes are about to access so many bytes each. Returns how often the banks serve them: 0 for other memory.
 */
unsigned ptx_count_banks(ptx_warp *w, const ptx_instruction *in, ptx_space space, uint32_t mask,
                         const uint64_t *addresses, unsigned bytes);
/* Writes a line: the kernel, its accesses and conflicts, those of the instruction with most, and this
 * instruction. */
void ptx_report_banks(const ptx_machine *m, FILE *to);

/* ---- clock.c: nothing happens unless the launch is timed ---- */

/* Lanes are about to load or store so many bytes each. times: how often banks of shared memory serve them. */
void ptx_clock_access(ptx_warp *w, const ptx_instruction *in, uint32_t mask, const uint64_t *addresses,
                      unsigned bytes, unsigned times);
/* The warp issues an instruction; executed: for at least one lane. */
void ptx_clock_issue(ptx_warp *w, const ptx_instruction *in, bool executed);
/* The warp comes to a branch, a call or a return. */
void ptx_clock_branch(ptx_warp *w, const ptx_instruction *in, bool taken);
/* All warps of a block have come to a barrier, or to the end. */
void ptx_clock_meet(ptx_block *b);

/* ---- lanes ---- */

/* Runs the statement that follows with each lane `l` of a mask. */
#define EACH_LANE(mask)                                                                                      \
    for (uint32_t left_ = (mask), l; left_ && ((l = (uint32_t)__builtin_ctz(left_)), true);                  \
         left_ &= left_ - 1)

static inline const uint64_t *ptx_from(const ptx_warp *w, const ptx_instruction *in, int k) {
    const int slot = in->from[k];
    return slot >= 0 ? w->registers[slot] : w->machine->module->constants[~slot];
}
/* The lanes for which an operand has a value. */
static inline uint32_t ptx_defined(const ptx_warp *w, const ptx_instruction *in, int k) {
    return in->from[k] >= 0 ? w->defined[in->from[k]] : ~0u;
}
static inline uint64_t *ptx_to(ptx_warp *w, const ptx_instruction *in, int k) {
    return w->registers[in->to[k]];
}

#endif
