/* How much static shared memory each kernel of an object file has. Static shared memory is .bss: the compiler
 * puts each variable and each function into a section of its own. A kernel needs the variables that its
 * function refers to, and the functions that it calls, by relocations. Read next: nvrtc.c. */
#include "rooms.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

typedef struct object {
    const char *image;
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    size_t n_sections, n_symbols;
    const char *names;
    bool *seen; /* for each section: does the kernel reach it? */
} object;

/* Adds up what a section and all sections that it refers to have in .bss. */
static size_t reach(object *o, size_t section) {
    if (section >= o->n_sections || o->seen[section]) return 0;
    o->seen[section] = true;
    size_t bytes = o->sections[section].sh_type == SHT_NOBITS ? o->sections[section].sh_size : 0;
    for (size_t i = 0; i < o->n_sections; i++) {
        const Elf64_Shdr *s = &o->sections[i];
        if (s->sh_type != SHT_RELA || s->sh_info != section) continue;
        const Elf64_Rela *list = (const Elf64_Rela *)(const void *)(o->image + s->sh_offset);
        for (size_t k = 0; k < s->sh_size / sizeof *list; k++)
            bytes += reach(o, o->symbols[ELF64_R_SYM(list[k].r_info)].st_shndx);
    }
    return bytes;
}

bool fake_put_rooms(const char *image, FILE *out, FILE *log) {
    static const char prefix[] = "fake_call_";
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    object o = {.image = image,
                .sections = (const Elf64_Shdr *)(const void *)(image + head->e_shoff),
                .n_sections = head->e_shnum};
    bool fits = true;
    for (size_t i = 0; i < o.n_sections; i++)
        if (o.sections[i].sh_type == SHT_SYMTAB) {
            o.symbols = (const Elf64_Sym *)(const void *)(image + o.sections[i].sh_offset);
            o.n_symbols = o.sections[i].sh_size / sizeof *o.symbols;
            o.names = image + o.sections[o.sections[i].sh_link].sh_offset;
        }
    o.seen = calloc(o.n_sections + 1, sizeof *o.seen);
    for (size_t i = 0; i < o.n_symbols; i++) {
        const char *name = o.names + o.symbols[i].st_name;
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        name += strlen(prefix);
        memset(o.seen, 0, o.n_sections * sizeof *o.seen);
        const size_t bytes = reach(&o, o.symbols[i].st_shndx);
        fprintf(out, "fake_rooms_%s = %zu;\n", name, bytes);
        if (bytes <= FAKE_SHARED_STATIC) continue;
        fits = false;
        fprintf(log,
                "ptxas error   : Entry function '%s' uses too much shared data (0x%zx bytes, 0x%x max)\n",
                name, bytes, FAKE_SHARED_STATIC);
    }
    free(o.seen);
    return fits;
}
