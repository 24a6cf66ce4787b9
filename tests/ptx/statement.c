/* Reads the statements of a function: labels, and instructions with their operands. Read next: opcodes.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

ptx_instruction *ptx_add_instruction(ptx_parser *p) {
    ptx_module *m = p->module;
    m->code = ptx_more(m->code, m->n_code, sizeof *m->code);
    ptx_instruction *in = &m->code[m->n_code++];
    memset(in, 0, sizeof *in);
    in->guard = -1;
    in->line = p->line;
    in->target = in->call = -1;
    return in;
}

/* ---- labels ---- */

static void want_label(ptx_parser *p, ptx_jump jump) {
    p->jumps = ptx_more(p->jumps, p->n_jumps, sizeof *p->jumps);
    jump.line = p->line;
    snprintf(jump.name, sizeof jump.name, "%s", p->word);
    p->jumps[p->n_jumps++] = jump;
    ptx_next(p);
}

void ptx_link_labels(ptx_parser *p) {
    for (int i = 0; i < p->n_jumps; i++) {
        const ptx_jump *j = &p->jumps[i];
        int to = -1;
        for (int k = 0; k < p->n_labels; k++)
            if (strcmp(p->labels[k].name, j->name) == 0) {
                if (to >= 0) ptx_wrong(p, "the label '%s' stands twice", j->name);
                to = p->labels[k].at;
            }
        if (to < 0) {
            p->line = j->line;
            ptx_wrong(p, "there is no label '%s'", j->name);
        } else if (j->instruction >= 0) {
            p->module->code[j->instruction].target = to;
        } else {
            p->module->tables[j->table].targets[j->index] = to;
        }
    }
    p->n_jumps = p->n_labels = 0;
}

/* name: .branchtargets A, B; */
static void parse_table(ptx_parser *p) {
    ptx_module *m = p->module;
    m->tables = ptx_more(m->tables, m->n_tables, sizeof *m->tables);
    ptx_table *t = &m->tables[m->n_tables];
    *t = (ptx_table){0};
    do {
        t->targets = ptx_more(t->targets, t->count, sizeof *t->targets);
        want_label(p, (ptx_jump){.instruction = -1, .table = m->n_tables, .index = t->count++});
    } while (ptx_take(p, ","));
    ptx_want(p, ";");
    p->labels[p->n_labels - 1].at = m->n_tables++; /* the label that was just read names the table */
}

static void add_label(ptx_parser *p, const char *name) {
    p->labels = ptx_more(p->labels, p->n_labels, sizeof *p->labels);
    ptx_label *l = &p->labels[p->n_labels++];
    snprintf(l->name, sizeof l->name, "%s", name);
    l->at = p->module->n_code;
}

/* ---- operands ---- */

static void add_to(ptx_parser *p, ptx_instruction *in, int slot) {
    if (slot < FIRST_REGISTER && slot != SINK)
        ptx_wrong(p, "'%s' cannot be written", p->word);
    else if (in->n_to == VECTOR_MOST)
        ptx_wrong(p, "too many results");
    else
        in->to[in->n_to++] = slot;
}

static void add_from(ptx_parser *p, ptx_instruction *in, int slot) {
    if (in->n_from == SOURCES_MOST)
        ptx_wrong(p, "too many operands");
    else
        in->from[in->n_from++] = slot;
}

/* A register, number, or variable whose address is meant. */
static int parse_value(ptx_parser *p, const ptx_instruction *in) {
    if (ptx_is(p, "-") || ptx_is_number(p->word)) {
        const ptx_type type = in->from_type ? in->from_type : in->type;
        return ptx_constant(p->module, ptx_number(p, type));
    }
    int slot = ptx_is(p, "WARP_SZ") ? ptx_constant(p->module, LANES) : ptx_register(p, p->word);
    ptx_symbol *s = slot == -1 ? ptx_find(p, p->word) : NULL;
    if (s) slot = ptx_address(p, s);
    if (slot == -1) ptx_wrong(p, "'%s' is not known", p->word);
    ptx_next(p);
    return slot;
}

/* [%rd1+8], [name], [name+-8] */
static void parse_address(ptx_parser *p, ptx_instruction *in, int number) {
    add_from(p, in, parse_value(p, in));
    if (ptx_take(p, "+"))
        in->offset[number] = (int64_t)ptx_number(p, NO_TYPE);
    else if (ptx_is(p, "-"))
        in->offset[number] = (int64_t)ptx_number(p, NO_TYPE);
    ptx_want(p, "]");
}

static void parse_one(ptx_parser *p, ptx_instruction *in, bool result) {
    if (!result) {
        add_from(p, in, parse_value(p, in));
        return;
    }
    const int slot = ptx_register(p, p->word);
    if (slot == -1) ptx_wrong(p, "'%s' is no register", p->word);
    if (in->n_to == 0 && slot >= 0) in->keep = p->widths[slot] == 64 ? ~0ull : (1ull << p->widths[slot]) - 1;
    add_to(p, in, slot);
    ptx_next(p);
}

static void parse_operands(ptx_parser *p, ptx_instruction *in, int results) {
    int addresses = 0;
    for (int k = 0; !p->failed && !ptx_is(p, ";"); k++) {
        const bool result = k < results;
        if (ptx_take(p, "[")) {
            if (addresses == 2)
                ptx_wrong(p, "three addresses");
            else
                parse_address(p, in, addresses++);
        } else if (ptx_take(p, "{")) {
            do parse_one(p, in, result);
            while (ptx_take(p, ","));
            ptx_want(p, "}");
        } else {
            parse_one(p, in, result);
            if (result && ptx_take(p, "|")) parse_one(p, in, true);
        }
        if (!ptx_is(p, ";")) ptx_want(p, ",");
    }
}

/* ---- calls and branches ---- */

/* (a, b) */
static unsigned parse_places(ptx_parser *p, uint64_t *places, unsigned most) {
    unsigned n = 0;
    ptx_want(p, "(");
    while (!p->failed && !ptx_is(p, ")")) {
        const ptx_symbol *s = ptx_find(p, p->word);
        if (!s || s->space != PARAMETER || n == most)
            ptx_wrong(p, "'%s' cannot be an argument", p->word);
        else
            places[n++] = s->at;
        ptx_next(p);
        ptx_take(p, ",");
    }
    ptx_want(p, ")");
    return n;
}

/* call (results), function, (arguments); */
static void parse_call(ptx_parser *p, ptx_instruction *in) {
    ptx_module *m = p->module;
    ptx_call call = {0};
    if (ptx_is(p, "(")) {
        call.n_results = parse_places(p, call.results, 4);
        ptx_want(p, ",");
    }
    for (int i = 0; i < m->n_functions; i++)
        if (strcmp(m->functions[i]->name, p->word) == 0) in->target = i;
    if (in->target < 0) ptx_wrong(p, "the function '%s' is not known", p->word);
    ptx_next(p);
    if (ptx_take(p, ",")) call.n_arguments = parse_places(p, call.arguments, 16);
    const ptx_function *f = in->target >= 0 ? m->functions[in->target] : NULL;
    if (f && (f->n_parameters != call.n_arguments || f->n_results != call.n_results))
        ptx_wrong(p, "the call of %s has another number of arguments", f->name);
    m->calls = ptx_more(m->calls, m->n_calls, sizeof *m->calls);
    in->call = m->n_calls;
    m->calls[m->n_calls++] = call;
}

static void parse_branch(ptx_parser *p, ptx_instruction *in) {
    if (in->control == TABLE) {
        add_from(p, in, parse_value(p, in));
        ptx_want(p, ",");
    }
    want_label(p, (ptx_jump){.instruction = (int)(in - p->module->code)});
}

/* ---- statements ---- */

static void parse_instruction(ptx_parser *p) {
    ptx_instruction *in = ptx_add_instruction(p);
    char unknown[PTX_NAME];
    const ptx_opcode *row = NULL;
    if (ptx_take(p, "@")) {
        in->guard_not = ptx_take(p, "!");
        in->guard = ptx_register(p, p->word);
        if (in->guard < FIRST_REGISTER) ptx_wrong(p, "'%s' is no predicate", p->word);
        ptx_next(p);
    }
    in->line = p->line;
    if (!ptx_decode(p->word, in, &row, unknown, sizeof unknown)) {
        ptx_wrong(p, "the opcode '%s' is not known to the interpreter ('%s')", p->word, unknown);
        return;
    }
    ptx_next(p);
    if (in->control == CALL)
        parse_call(p, in);
    else if (in->control == BRANCH || in->control == TABLE)
        parse_branch(p, in);
    else
        parse_operands(p, in, row->results);
    if (in->n_from < row->least) ptx_wrong(p, "%s has too few operands", row->name);
    ptx_want(p, ";");
}

static void parse_label_or_instruction(ptx_parser *p) {
    char name[PTX_NAME];
    const char *at = p->at + strspn(p->at, " \t");
    if (*at != ':' || ptx_is(p, "@")) {
        parse_instruction(p);
        return;
    }
    snprintf(name, sizeof name, "%s", p->word);
    ptx_next(p);
    ptx_want(p, ":");
    add_label(p, name);
    if (ptx_take(p, ".branchtargets")) parse_table(p);
}

void ptx_statements(ptx_parser *p) {
    int open = 1, before[64] = {p->n_symbols};
    while (!p->failed && open) {
        if (ptx_take(p, "{")) {
            if (open == 64)
                ptx_wrong(p, "too many braces");
            else
                before[open++] = p->n_symbols;
            p->scope++;
        } else if (ptx_take(p, "}")) {
            p->n_symbols = before[--open];
            p->scope -= open > 0;
        } else if (ptx_take(p, ".pragma") || ptx_take(p, ".loc") || ptx_take(p, ".file")) {
            while (!p->failed && p->word[0] && !ptx_is(p, ";")) ptx_next(p);
            ptx_want(p, ";");
        } else if (p->word[0] == 0) {
            ptx_wrong(p, "the text ends in a function");
        } else if (!ptx_declaration(p, false)) {
            parse_label_or_instruction(p);
        }
    }
}
