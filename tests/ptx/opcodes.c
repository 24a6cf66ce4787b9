/* The table of opcodes, and what their words mean: add.rn.ftz.f32 is the row "add" with a rounding, a flag
 * and a type. A word that a row does not allow is an error, so nothing is ignored that could change a result.
 * Read next: actions.h, which lists the functions that execute them. */
#include <stdio.h>
#include <string.h>

#include "actions.h"
#include "parse.h"

const ptx_opcode ptx_opcodes[] = {
    /* name, action, control, spreads, results, operands, flags, words */
    {"add", ptx_add, PLAIN, true, 1, 2, FTZ | SAT | CARRY_OUT, ""},
    {"addc", ptx_add, PLAIN, true, 1, 2, CARRY_OUT, " with-carry"},
    {"sub", ptx_sub, PLAIN, true, 1, 2, FTZ | SAT | CARRY_OUT, ""},
    {"subc", ptx_sub, PLAIN, true, 1, 2, CARRY_OUT, " with-carry"},
    {"mul", ptx_mul, PLAIN, true, 1, 2, FTZ | SAT | LOW | HIGH | WIDE, ""},
    {"mad", ptx_mad, PLAIN, true, 1, 3, FTZ | SAT | LOW | HIGH | WIDE | CARRY_OUT, ""},
    {"madc", ptx_mad, PLAIN, true, 1, 3, LOW | HIGH | CARRY_OUT, " with-carry"},
    {"fma", ptx_fma, PLAIN, true, 1, 3, FTZ | SAT | RELU, ""},
    {"div", ptx_div, PLAIN, true, 1, 2, FTZ | APPROX | FULL, ""},
    {"rem", ptx_rem, PLAIN, true, 1, 2, 0, ""},
    {"min", ptx_min, PLAIN, true, 1, 2, FTZ | NAN_WINS, ""},
    {"max", ptx_max, PLAIN, true, 1, 2, FTZ | NAN_WINS, ""},
    {"abs", ptx_abs, PLAIN, true, 1, 1, FTZ, ""},
    {"neg", ptx_neg, PLAIN, true, 1, 1, FTZ, ""},
    {"copysign", ptx_copysign, PLAIN, true, 1, 2, 0, ""},
    {"sqrt", ptx_sqrt, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"rsqrt", ptx_rsqrt, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"rcp", ptx_rcp, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"ex2", ptx_ex2, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"lg2", ptx_lg2, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"sin", ptx_sin, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"cos", ptx_cos, PLAIN, true, 1, 1, FTZ | APPROX, ""},
    {"tanh", ptx_tanh, PLAIN, true, 1, 1, APPROX, ""},
    {"testp", ptx_testp, PLAIN, true, 1, 1, 0, " finite infinite number notanumber normal subnormal"},
    {"and", ptx_and, PLAIN, true, 1, 2, 0, ""},
    {"or", ptx_or, PLAIN, true, 1, 2, 0, ""},
    {"xor", ptx_xor, PLAIN, true, 1, 2, 0, ""},
    {"not", ptx_not, PLAIN, true, 1, 1, 0, ""},
    {"cnot", ptx_cnot, PLAIN, true, 1, 1, 0, ""},
    {"lop3", ptx_lop3, PLAIN, true, 1, 4, 0, ""},
    {"shl", ptx_shl, PLAIN, true, 1, 2, 0, ""},
    {"shr", ptx_shr, PLAIN, true, 1, 2, 0, ""},
    {"shf", ptx_shf, PLAIN, true, 1, 3, 0, " l.wrap l.clamp r.wrap r.clamp"},
    {"prmt", ptx_prmt, PLAIN, true, 1, 3, 0, ""},
    {"bfe", ptx_bfe, PLAIN, true, 1, 3, 0, ""},
    {"bfi", ptx_bfi, PLAIN, true, 1, 4, 0, ""},
    {"popc", ptx_popc, PLAIN, true, 1, 1, 0, ""},
    {"clz", ptx_clz, PLAIN, true, 1, 1, 0, ""},
    {"brev", ptx_brev, PLAIN, true, 1, 1, 0, ""},
    {"bfind", ptx_bfind, PLAIN, true, 1, 1, 0, " shiftamt"},
    {"setp", ptx_setp, PLAIN, true, 1, 2, FTZ, " and or xor"},
    {"selp", ptx_selp, PLAIN, true, 1, 3, 0, ""},
    {"mov", ptx_mov, PLAIN, true, 1, 1, 0, ""},
    {"cvt", ptx_cvt, PLAIN, true, 1, 1, FTZ | SAT | RELU, ""},
    {"cvta", ptx_cvta, PLAIN, true, 1, 1, TO, ""},
    {"ld", ptx_ld, PLAIN, false, 1, 1, 0, " nc"},
    {"ldu", ptx_ld, PLAIN, false, 1, 1, 0, ""},
    {"st", ptx_st, PLAIN, false, 0, 2, 0, ""},
    {"atom", ptx_atom, PLAIN, false, 1, 2, 0, " add exch cas min max and or xor inc dec"},
    {"red", ptx_atom, PLAIN, false, 0, 2, 0, " add exch cas min max and or xor inc dec"},
    {"cp.async.commit_group", ptx_commit, PLAIN, false, 0, 0, 0, ""},
    {"cp.async.wait_group", ptx_wait, PLAIN, false, 0, 1, 0, ""},
    {"cp.async.wait_all", ptx_wait, PLAIN, false, 0, 0, 0, ""},
    {"cp.async", ptx_copy_async, PLAIN, false, 0, 3, 0, " ca cg"},
    {"prefetch", ptx_nothing, PLAIN, false, 0, 1, 0, ""},
    {"membar", ptx_nothing, PLAIN, false, 0, 0, 0, " gl"},
    {"fence", ptx_nothing, PLAIN, false, 0, 0, 0, " sc acq_rel"},
    {"nanosleep", ptx_nothing, PLAIN, false, 0, 1, 0, ""},
    {"bra", NULL, BRANCH, false, 0, 0, UNIFORM, ""},
    {"brx.idx", NULL, TABLE, false, 0, 1, UNIFORM, ""},
    {"call", NULL, CALL, false, 0, 0, UNIFORM, ""},
    {"ret", NULL, RETURN, false, 0, 0, UNIFORM, ""},
    {"exit", NULL, EXIT, false, 0, 0, 0, ""},
    {"trap", ptx_trap, PLAIN, false, 0, 0, 0, ""},
    {"bar.sync", NULL, BARRIER, false, 0, 1, 0, ""},
    {"bar.cta.sync", NULL, BARRIER, false, 0, 1, 0, ""},
    {"barrier.sync.aligned", NULL, BARRIER, false, 0, 1, 0, ""},
    {"barrier.cta.sync.aligned", NULL, BARRIER, false, 0, 1, 0, ""},
    {"bar.red", NULL, BARRIER, false, 1, 2, 0, " popc and or"},
    {"bar.cta.red", NULL, BARRIER, false, 1, 2, 0, " popc and or"},
    {"bar.warp.sync", ptx_meet, TOGETHER, false, 0, 1, 0, ""},
    {"shfl.sync", ptx_shfl, TOGETHER, true, 1, 4, 0, " up down bfly idx"},
    {"vote.sync", ptx_vote, TOGETHER, false, 1, 2, 0, " all any uni ballot"},
    {"match.any.sync", ptx_match, TOGETHER, false, 1, 2, 0, ""},
    {"match.all.sync", ptx_match, TOGETHER, false, 1, 2, 0, ""},
    {"redux.sync", ptx_redux, TOGETHER, false, 1, 2, 0, " add min max and or xor"},
    {"activemask", ptx_activemask, PLAIN, false, 1, 0, 0, ""},
    {"ldmatrix.sync", ptx_ldmatrix, WHOLE, false, 1, 1, ALIGNED | TRANSPOSED, " m8n8"},
    {"mma.sync", ptx_mma, WHOLE, false, 1, 7, ALIGNED, " m16n8k16 m16n8k8"},
    {NULL, NULL, PLAIN, false, 0, 0, 0, ""}};

/* ---- words that many opcodes have ---- */

/* In the order of ptx_type. */
static const char *const types[] = {"",    "b8",   "b16",   "b32",    "b64",  "b128", "u8",  "u16",
                                    "u32", "u64",  "s8",    "s16",    "s32",  "s64",  "f16", "f32",
                                    "f64", "bf16", "f16x2", "bf16x2", "tf32", "pred"};

enum { TYPE_COUNT = sizeof types / sizeof *types };

ptx_type ptx_type_of(const char *word) {
    for (int i = 1; i < TYPE_COUNT; i++)
        if (strcmp(types[i], word) == 0) return (ptx_type)i;
    return NO_TYPE;
}

typedef struct ptx_meaning {
    const char *word;
    uint32_t value;
} ptx_meaning;
static const ptx_meaning flags[] = {
    {"ftz", FTZ},   {"sat", SAT},      {"approx", APPROX},   {"full", FULL},   {"lo", LOW},
    {"hi", HIGH},   {"wide", WIDE},    {"cc", CARRY_OUT},    {"to", TO},       {"trans", TRANSPOSED},
    {"relu", RELU}, {"NaN", NAN_WINS}, {"aligned", ALIGNED}, {"uni", UNIFORM}, {NULL, 0}};
static const ptx_meaning roundings[] = {{"rn", RN},   {"rz", RZ},   {"rm", RM},   {"rp", RP},   {"rna", RNA},
                                        {"rni", RNI}, {"rzi", RZI}, {"rmi", RMI}, {"rpi", RPI}, {NULL, 0}};
static const ptx_meaning compares[] = {{"eq", EQ},   {"ne", NE},         {"lt", LT},   {"le", LE},
                                       {"gt", GT},   {"ge", GE},         {"equ", EQU}, {"neu", NEU},
                                       {"ltu", LTU}, {"leu", LEU},       {"gtu", GTU}, {"geu", GEU},
                                       {"num", NUM}, {"nan", UNORDERED}, {NULL, 0}};
static const ptx_meaning spaces[] = {{"global", GLOBAL}, {"shared", SHARED},   {"shared::cta", SHARED},
                                     {"local", LOCAL},   {"param", PARAMETER}, {"const", CONSTANT},
                                     {NULL, 0}};
static const ptx_meaning vectors[] = {{"v2", 2}, {"v4", 4}, {"x1", 1}, {"x2", 2}, {"x4", 4}, {NULL, 0}};
/* Hints for caches; orders and scopes of memory, which has one order here; the only lay-out of mma. */
static const ptx_meaning ignored[] = {{"ca", 1},
                                      {"cg", 1},
                                      {"cs", 1},
                                      {"lu", 1},
                                      {"cv", 1},
                                      {"wb", 1},
                                      {"wt", 1},
                                      {"volatile", 1},
                                      {"weak", 1},
                                      {"relaxed", 1},
                                      {"acquire", 1},
                                      {"release", 1},
                                      {"acq_rel", 1},
                                      {"cta", 1},
                                      {"gpu", 1},
                                      {"sys", 1},
                                      {"row", 1},
                                      {"col", 1},
                                      {"L1::no_allocate", 1},
                                      {"L1::evict_first", 1},
                                      {"L1::evict_last", 1},
                                      {"L2::64B", 1},
                                      {"L2::128B", 1},
                                      {"L2::256B", 1},
                                      {NULL, 0}};

static uint32_t meaning(const ptx_meaning *list, const char *word) {
    for (; list->word; list++)
        if (strcmp(list->word, word) == 0) return list->value;
    return 0;
}

/* ---- decoding ---- */

static bool row_fits(const char *name, const char *opcode) {
    const size_t n = strlen(name);
    return strncmp(name, opcode, n) == 0 && (opcode[n] == 0 || opcode[n] == '.');
}

static const ptx_opcode *row_of(const char *opcode) {
    const ptx_opcode *best = NULL;
    for (const ptx_opcode *row = ptx_opcodes; row->name; row++)
        if (row_fits(row->name, opcode) && (!best || strlen(row->name) > strlen(best->name))) best = row;
    return best;
}

/* The number of a word in the row's list, from 1; 0: it is not there. */
static uint8_t word_of(const ptx_opcode *row, const char *word) {
    const size_t n = strlen(word);
    uint8_t number = 0;
    for (const char *at = row->words; *at; at += strcspn(at, " ")) {
        at++;
        number++;
        if (strncmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == 0)) return number;
    }
    return 0;
}

static bool decode_word(const ptx_opcode *row, const char *word, ptx_instruction *in) {
    const uint8_t own = word_of(row, word);
    const ptx_type type = ptx_type_of(word);
    uint32_t value;
    if (own)
        in->word = own;
    else if (type && !in->type)
        in->type = (uint8_t)type;
    else if (type && !in->from_type)
        in->from_type = (uint8_t)type;
    else if (type)
        return row->action == ptx_mma;
    else if ((value = meaning(flags, word) & row->flags))
        in->flags |= value;
    else if ((value = meaning(roundings, word)))
        in->rounding = (uint8_t)value;
    else if ((value = meaning(compares, word)) && row->action == ptx_setp)
        in->compare = (uint8_t)value;
    else if ((value = meaning(spaces, word)))
        in->space = (uint8_t)value;
    else if ((value = meaning(vectors, word)))
        in->vector = (uint8_t)value;
    else
        return meaning(ignored, word) != 0;
    return true;
}

bool ptx_decode(const char *opcode, ptx_instruction *in, const ptx_opcode **row, char *unknown,
                size_t bytes) {
    const ptx_opcode *r = *row = row_of(opcode);
    snprintf(unknown, bytes, "%s", opcode);
    if (!r) return false;
    in->action = r->action;
    in->control = r->control;
    in->spreads = r->spreads;
    in->vector = 1;
    if (strcmp(r->words, " with-carry") == 0) in->word = 1;
    if (r->action == ptx_shf && opcode[3] == '.') { /* two words that belong together: l.wrap */
        snprintf(unknown, bytes, "%.*s", (int)(strcspn(opcode + 6, ".") + 2), opcode + 4);
        in->word = word_of(r, unknown);
        in->type = B32;
        return in->word && strcmp(opcode + 4 + strlen(unknown), ".b32") == 0;
    }
    for (const char *at = opcode + strlen(r->name); *at; at += strcspn(at, ".")) {
        at++;
        snprintf(unknown, bytes, "%.*s", (int)strcspn(at, "."), at);
        if (!decode_word(r, unknown, in)) return false;
    }
    return true;
}
