/* Reads the text of a PTX module: declarations, functions, and statements of a function. Names are looked up
 * and operands become slots here; opcodes.c decodes opcodes. Must not know what instructions do. Read next:
 * opcodes.c. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* ---- errors and memory ---- */

void ptx_wrong(ptx_parser *p, const char *why, ...) {
    va_list args;
    if (p->failed) return;
    p->failed = true;
    const int n = snprintf(p->why, p->why_bytes, "PTX line %d: ", p->line);
    va_start(args, why);
    if (n > 0 && (size_t)n < p->why_bytes) vsnprintf(p->why + n, p->why_bytes - (size_t)n, why, args);
    va_end(args);
}

/* Makes room for one more element of a list, whose room is always a power of two. */
void *ptx_more(void *list, int count, size_t bytes) {
    if (count & (count - 1)) return list;
    void *more = realloc(list, (count ? 2 * (size_t)count : 1) * bytes);
    if (!more) abort();
    return more;
}

/* ---- words of the text ---- */

static bool is_word(const char *at) {
    return isalnum((unsigned char)*at) || strchr("_$%.", *at) || (at[0] == ':' && at[1] == ':') ||
           (at[0] == ':' && at[-1] == ':');
}

static void skip_space(ptx_parser *p) {
    for (;; p->at++) {
        if (p->at[0] == '/' && p->at[1] == '/') p->at += strcspn(p->at, "\n");
        if (p->at[0] == '/' && p->at[1] == '*') {
            const char *end = strstr(p->at + 2, "*/");
            for (const char *c = p->at; end && c < end; c++) p->line += *c == '\n';
            p->at = end ? end + 1 : p->at + strlen(p->at);
            if (end) continue;
        }
        if (!*p->at || !isspace((unsigned char)*p->at)) return;
        p->line += *p->at == '\n';
    }
}

/* Reads the next word, string or sign into p->word. It is empty at the end of the text, and after an error.
 */
void ptx_next(ptx_parser *p) {
    size_t n = 0;
    p->word[0] = 0;
    if (p->failed) return;
    skip_space(p);
    const char *from = p->at;
    if (!*from) return;
    if (*from == '"')
        n = 2 + strcspn(from + 1, "\"");
    else
        while (from[n] && is_word(from + n) && !(from[n] == ':' && n == 0)) n++;
    if (n == 0) n = 1;
    p->at += n;
    if (n >= sizeof p->word) {
        ptx_wrong(p, "a word of %zu letters", n);
        return;
    }
    memcpy(p->word, from, n);
    p->word[n] = 0;
}

bool ptx_is(const ptx_parser *p, const char *word) { return strcmp(p->word, word) == 0; }

/* Skips the word if it is the next one. */
bool ptx_take(ptx_parser *p, const char *word) {
    if (!ptx_is(p, word)) return false;
    ptx_next(p);
    return true;
}

void ptx_want(ptx_parser *p, const char *word) {
    if (!ptx_take(p, word)) ptx_wrong(p, "'%s' is missing before '%s'", word, p->word);
}

bool ptx_is_number(const char *word) { return isdigit((unsigned char)word[0]) != 0; }

/* A number with its sign. Floating-point numbers are given by their bits; 0d becomes a float for type F32. */
uint64_t ptx_number(ptx_parser *p, ptx_type type) {
    const bool minus = ptx_take(p, "-");
    char *end;
    uint64_t value;
    if (!ptx_is_number(p->word)) {
        ptx_wrong(p, "'%s' is not a number", p->word);
        return 0;
    }
    const bool bits = p->word[0] == '0' && p->word[1] && strchr("fFdD", p->word[1]);
    value = strtoull(p->word + 2 * bits, &end, bits ? 16 : 0);
    if (*end && strcmp(end, "U") != 0) ptx_wrong(p, "the number '%s' is not known here", p->word);
    if (bits && type == F32 && (p->word[1] | 32) == 'd') {
        double wide;
        memcpy(&wide, &value, sizeof wide);
        const float narrow = (float)wide;
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
        value = narrow_bits;
    }
    ptx_next(p);
    return minus ? 0 - value : value;
}

/* ---- names ---- */

static ptx_symbol *add_symbol(ptx_parser *p, const char *name, ptx_symbol symbol) {
    p->symbols = ptx_more(p->symbols, p->n_symbols, sizeof *p->symbols);
    ptx_symbol *s = &p->symbols[p->n_symbols++];
    *s = symbol;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->scope = p->scope;
    return s;
}

ptx_symbol *ptx_find(ptx_parser *p, const char *name) {
    for (int i = p->n_symbols - 1; i >= 0; i--)
        if (!p->symbols[i].count && strcmp(p->symbols[i].name, name) == 0) return &p->symbols[i];
    return NULL;
}

/* The slot of a register: its own name, or a number of a range such as %r<40>. -1: no register. */
int ptx_register(ptx_parser *p, const char *name) {
    static const char *const special[] = {
        "%tid.x",       "%tid.y",       "%tid.z",   "%ntid.x",      "%ntid.y",      "%ntid.z",
        "%ctaid.x",     "%ctaid.y",     "%ctaid.z", "%nctaid.x",    "%nctaid.y",    "%nctaid.z",
        "%laneid",      "%warpid",      "%nwarpid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
        "%lanemask_ge", "%lanemask_gt", "%clock"};
    const ptx_symbol *s = ptx_find(p, name);
    if (s) return s->space == REGISTER ? s->slot : -1;
    size_t n = strlen(name);
    while (n && isdigit((unsigned char)name[n - 1])) n--;
    const int number = atoi(name + n);
    for (int i = p->n_symbols - 1; i >= 0 && name[n]; i--) {
        s = &p->symbols[i];
        if (s->count > number && strlen(s->name) == n && strncmp(s->name, name, n) == 0)
            return s->slot + number;
    }
    for (int i = 0; i < SPECIAL_REGISTERS; i++)
        if (strcmp(special[i], name) == 0) return i;
    return strcmp(name, "_") == 0 ? SINK : -1;
}

int ptx_constant(ptx_module *m, uint64_t value) {
    m->constants = ptx_more(m->constants, m->n_constants, sizeof *m->constants);
    for (int l = 0; l < LANES; l++) m->constants[m->n_constants][l] = value;
    return ~m->n_constants++;
}

/* ---- declarations ---- */

static uint64_t round_up(uint64_t at, uint64_t multiple) { return (at + multiple - 1) / multiple * multiple; }

/* .reg .b32 %r<10>, %x; */
static void parse_registers(ptx_parser *p) {
    const ptx_type type = ptx_type_of(p->word + 1);
    if (!type) ptx_wrong(p, "registers of type '%s'", p->word);
    ptx_next(p);
    do {
        char name[sizeof p->word];
        int count = 0;
        snprintf(name, sizeof name, "%s", p->word);
        ptx_next(p);
        if (ptx_take(p, "<")) {
            count = (int)ptx_number(p, NO_TYPE);
            ptx_want(p, ">");
        }
        add_symbol(
            p, name,
            (ptx_symbol){.space = REGISTER, .slot = p->module->n_registers, .count = count, .type = type});
        for (int i = 0; i < (count ? count : 1); i++) {
            p->widths = ptx_more(p->widths, p->module->n_registers, sizeof *p->widths);
            p->widths[p->module->n_registers++] = (uint8_t)(type == PREDICATE ? 1 : 8 * ptx_bytes(type));
        }
    } while (ptx_take(p, ","));
}

/* [.align 8] .b8 name[88] */
static ptx_declared parse_declared(ptx_parser *p) {
    ptx_declared d = {.multiple = 1, .count = 1};
    if (ptx_take(p, ".align")) d.multiple = ptx_number(p, NO_TYPE);
    d.type = ptx_type_of(p->word + 1);
    d.one = ptx_bytes(d.type);
    if (!d.one) ptx_wrong(p, "a variable of type '%s'", p->word);
    if (d.one > d.multiple) d.multiple = d.one;
    ptx_next(p);
    while (strcmp(p->word, ".ptr") == 0 || strcmp(p->word, ".global") == 0) ptx_next(p);
    if (ptx_take(p, ".align")) (void)ptx_number(p, NO_TYPE); /* of what a pointer points at */
    snprintf(d.name, sizeof d.name, "%s", p->word);
    ptx_next(p);
    while (ptx_take(p, "[")) {
        d.count *= ptx_is(p, "]") ? 0 : ptx_number(p, NO_TYPE);
        ptx_want(p, "]");
    }
    d.bytes = d.count * d.one;
    return d;
}

/* = {1, 2, 3}, or = 1 */
static void parse_values(ptx_parser *p, const ptx_declared *d, char *memory) {
    const bool list = ptx_take(p, "{");
    uint64_t n = 0;
    do {
        const uint64_t value = ptx_number(p, d->type);
        if (n < d->count) memcpy(memory + n++ * d->one, &value, d->one);
    } while (list && ptx_take(p, ","));
    if (list) ptx_want(p, "}");
}

static void parse_global(ptx_parser *p, ptx_space space) {
    ptx_module *m = p->module;
    const ptx_declared d = parse_declared(p);
    m->variables = ptx_more(m->variables, m->n_variables, sizeof *m->variables);
    ptx_variable *v = &m->variables[m->n_variables++];
    v->bytes = d.bytes;
    v->memory = aligned_alloc(256, round_up(d.bytes + 1, 256));
    if (!v->memory) abort();
    memset(v->memory, 0, d.bytes);
    add_symbol(p, d.name, (ptx_symbol){.space = space, .at = (uint64_t)(uintptr_t)v->memory});
    if (ptx_take(p, "=")) parse_values(p, &d, v->memory);
}

/* A variable in shared, local or parameter memory. Shared variables of the module get a place in each
 * function that names them. */
static void parse_variable(ptx_parser *p, ptx_space space, bool is_extern) {
    const ptx_declared d = parse_declared(p);
    ptx_symbol *s = add_symbol(
        p, d.name,
        (ptx_symbol){.space = space, .bytes = d.bytes, .multiple = d.multiple, .is_extern = is_extern});
    if (space == SHARED) {
        s->placed_in = -1;
    } else {
        s->at = p->module->local_bytes = (unsigned)round_up(p->module->local_bytes, d.multiple);
        p->module->local_bytes += (unsigned)d.bytes;
        if (space == PARAMETER) s->at += PTX_FUNCTION_PARAMETERS;
    }
}

/* The address of a variable, as a constant slot. */
int ptx_address(ptx_parser *p, ptx_symbol *s) {
    ptx_function *f = p->function;
    if (s->space == SHARED &&
        s->is_extern) { /* behind the static variables, known at the end of the function */
        const int slot = ptx_constant(p->module, 0);
        p->fixes = ptx_more(p->fixes, p->n_fixes, sizeof *p->fixes);
        p->fixes[p->n_fixes++] = slot;
        if (s->multiple > p->dynamic_multiple) p->dynamic_multiple = (unsigned)s->multiple;
        return slot;
    }
    if (s->space == SHARED && s->placed_in != p->module->n_functions) {
        if (!f->is_kernel) ptx_wrong(p, "shared memory in a function that is not a kernel");
        s->placed_in = p->module->n_functions;
        s->at = round_up(f->shared_bytes, s->multiple);
        f->shared_bytes = (unsigned)(s->at + s->bytes);
    }
    return ptx_constant(p->module, s->at);
}

/* A declaration after its first word; the word is a space. */
bool ptx_declaration(ptx_parser *p, bool is_extern) {
    if (ptx_take(p, ".reg"))
        parse_registers(p);
    else if (ptx_take(p, ".shared"))
        parse_variable(p, SHARED, is_extern);
    else if (ptx_take(p, ".local"))
        parse_variable(p, LOCAL, false);
    else if (ptx_take(p, ".param"))
        parse_variable(p, PARAMETER, false);
    else if (ptx_take(p, ".global"))
        parse_global(p, GLOBAL);
    else if (ptx_take(p, ".const"))
        parse_global(p, CONSTANT);
    else
        return false;
    ptx_want(p, ";");
    return true;
}

/* ---- functions ---- */

/* (.param .b64 a, .param .b64 b). Parameters of a kernel have addresses of their own. */
static ptx_parameter *parse_parameters(ptx_parser *p, ptx_function *f, unsigned *count) {
    ptx_parameter *list = NULL;
    *count = 0;
    ptx_want(p, "(");
    while (!p->failed && !ptx_is(p, ")")) {
        ptx_want(p, ".param");
        const ptx_declared d = parse_declared(p);
        unsigned *end = f->is_kernel ? &f->parameter_bytes : &p->module->local_bytes;
        uint64_t at = *end = (unsigned)round_up(*end, d.multiple);
        *end += (unsigned)d.bytes;
        if (!f->is_kernel) at += PTX_FUNCTION_PARAMETERS;
        add_symbol(p, d.name, (ptx_symbol){.space = PARAMETER, .at = at});
        list = ptx_more(list, (int)*count, sizeof *list);
        list[(*count)++] = (ptx_parameter){at, (unsigned)d.bytes};
        ptx_take(p, ",");
    }
    ptx_want(p, ")");
    return list;
}

static void parse_directives(ptx_parser *p, ptx_function *f) {
    while (!p->failed && p->word[0] == '.') {
        const bool threads = ptx_is(p, ".maxntid") || ptx_is(p, ".reqntid");
        uint64_t product = 1;
        ptx_next(p);
        if (ptx_is_number(p->word)) do {
                product *= ptx_number(p, NO_TYPE);
            } while (ptx_take(p, ","));
        if (threads) f->threads_most = (unsigned)product;
    }
}

static void finish_function(ptx_parser *p, ptx_function *f) {
    const unsigned multiple = p->dynamic_multiple ? p->dynamic_multiple : 1;
    ptx_instruction *last = ptx_add_instruction(p);
    last->control = RETURN;
    ptx_link_labels(p);
    if (f->shared_bytes > PTX_STATIC_SHARED_MOST)
        ptx_wrong(p, "Entry function '%s' uses too much shared data (0x%x bytes, 0x%x max)", f->name,
                  f->shared_bytes, PTX_STATIC_SHARED_MOST);
    f->dynamic_at = (unsigned)round_up(f->shared_bytes, multiple);
    for (int i = 0; i < p->n_fixes; i++)
        for (int l = 0; l < LANES; l++) p->module->constants[~p->fixes[i]][l] = f->dynamic_at;
    p->n_fixes = 0;
    p->dynamic_multiple = 0;
}

static ptx_function *function_named(ptx_parser *p, const char *name) {
    ptx_module *m = p->module;
    for (int i = 0; i < m->n_functions; i++)
        if (strcmp(m->functions[i]->name, name) == 0) return m->functions[i];
    m->functions = ptx_more(m->functions, m->n_functions, sizeof *m->functions);
    ptx_function *f = calloc(1, sizeof *f);
    if (!f) abort();
    f->module = m;
    f->name = strdup(name);
    return m->functions[m->n_functions++] = f;
}

/* A prototype may stand before the definition: its parameters have other places, which nobody uses. */
static void parse_function(ptx_parser *p, bool is_kernel) {
    ptx_function head = {.is_kernel = is_kernel};
    const int n_symbols = p->n_symbols;
    p->scope++;
    if (ptx_is(p, "(")) head.results = parse_parameters(p, &head, &head.n_results);
    ptx_function *f = function_named(p, p->word);
    ptx_next(p);
    if (ptx_is(p, "(")) head.parameters = parse_parameters(p, &head, &head.n_parameters);
    parse_directives(p, &head);
    if (f->is_defined) ptx_wrong(p, "%s is defined twice", f->name);
    free(f->results);
    free(f->parameters);
    free(f->sizes);
    head.module = f->module;
    head.name = f->name;
    *f = head;
    if (!ptx_take(p, ";")) {
        p->function = f;
        f->is_defined = true;
        f->first = p->module->n_code;
        ptx_want(p, "{");
        ptx_statements(p);
        finish_function(p, f);
    }
    f->sizes = calloc(f->n_parameters + 1, sizeof *f->sizes);
    for (unsigned i = 0; i < f->n_parameters && f->sizes; i++) f->sizes[i] = f->parameters[i].bytes;
    p->n_symbols = n_symbols;
    p->scope--;
}

static void parse_module(ptx_parser *p) {
    bool is_extern = false;
    ptx_next(p);
    while (!p->failed && p->word[0]) {
        if (ptx_take(p, ".visible") || ptx_take(p, ".weak") || ptx_take(p, ".common")) continue;
        if (ptx_take(p, ".extern"))
            is_extern = true;
        else if (ptx_take(p, ".entry"))
            parse_function(p, true);
        else if (ptx_take(p, ".func"))
            parse_function(p, false);
        else if (ptx_take(p, ".version") || ptx_take(p, ".target") || ptx_take(p, ".address_size"))
            do ptx_next(p);
            while (ptx_take(p, ","));
        else if (ptx_declaration(p, is_extern))
            is_extern = false;
        else
            ptx_wrong(p, "'%s' is not known here", p->word);
    }
}

/* ---- modules ---- */

static void list_lines(ptx_module *m) {
    m->lines = ptx_more(m->lines, m->n_lines, sizeof *m->lines);
    m->lines[m->n_lines++] = m->text;
    for (char *at = m->text; (at = strchr(at, '\n'));) {
        m->lines = ptx_more(m->lines, m->n_lines, sizeof *m->lines);
        m->lines[m->n_lines++] = ++at;
    }
}

ptx_module *ptx_load(const char *text, char *why, size_t why_bytes) {
    ptx_parser p = {.line = 1, .why = why, .why_bytes = why_bytes};
    ptx_module *m = p.module = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->text = strdup(text);
    m->n_registers = FIRST_REGISTER;
    for (int i = 0; i < FIRST_REGISTER; i++) {
        p.widths = ptx_more(p.widths, i, sizeof *p.widths);
        p.widths[i] = 64;
    }
    (void)ptx_constant(m, 0); /* its slot, -1, means that there is none */
    list_lines(m);
    p.at = m->text;
    parse_module(&p);
    for (int i = 0; i < m->n_code && !p.failed; i++)
        if (m->code[i].control == CALL && !m->functions[m->code[i].target]->is_defined)
            ptx_wrong(&p, "%s has no body", m->functions[m->code[i].target]->name);
    free(p.symbols);
    free(p.labels);
    free(p.jumps);
    free(p.fixes);
    free(p.widths);
    if (!p.failed) return m;
    ptx_free(m);
    return NULL;
}

void ptx_free(ptx_module *m) {
    if (!m) return;
    for (int i = 0; i < m->n_functions; i++) {
        free(m->functions[i]->name);
        free(m->functions[i]->parameters);
        free(m->functions[i]->results);
        free(m->functions[i]->sizes);
        free(m->functions[i]);
    }
    for (int i = 0; i < m->n_tables; i++) free(m->tables[i].targets);
    for (int i = 0; i < m->n_variables; i++) free(m->variables[i].memory);
    free(m->functions);
    free(m->tables);
    free(m->variables);
    free(m->calls);
    free(m->constants);
    free(m->code);
    free(m->lines);
    free(m->text);
    free(m);
}

const ptx_function *ptx_kernel(const ptx_module *m, const char *name) {
    for (int i = 0; i < m->n_functions; i++)
        if (m->functions[i]->is_kernel && strcmp(m->functions[i]->name, name) == 0) return m->functions[i];
    return NULL;
}

const unsigned *ptx_parameter_sizes(const ptx_function *kernel, unsigned *count) {
    *count = kernel->n_parameters;
    return kernel->sizes;
}

const char *ptx_name(const ptx_function *kernel) { return kernel->name; }

unsigned ptx_static_shared(const ptx_function *kernel) { return kernel->shared_bytes; }
