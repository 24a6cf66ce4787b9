/* Lists the components that devices need, and whether each is present. Must not know: how components are
 * opened. Read next: doctor.c. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/components.h"

static void print_kind(const weft_device_module *kind) {
    for (const weft_device_component *c = kind->components; c && c->name; c++) {
        char text[WEFT_COMPONENT_TEXT] = "";
        const char *why = c->find(text);
        weft__print(stdout, "  %-7s %-9s %s%s%s%s\n", kind->ops->name, c->name,
                    why ? "missing, so that " : "", why ? c->without : text, why ? ": " : "", why ? why : "");
        if (why && c == kind->components) return; /* the others are useless without the first */
    }
}

void weft__components_print(const weft_device_module *kind) {
    for (int i = 0; i < weft__device_kinds(); i++)
        if (!kind || kind == weft__device_kind(i)) print_kind(weft__device_kind(i));
}

static void print_device(const weft_device_module *kind) {
    if (!kind->serves) return;
    weft__print(stdout, "| `%s` | %s | `--device %s`", kind->ops->name, kind->serves, kind->ops->name);
    if (kind->chosen) weft__print(stdout, ", %s", kind->chosen);
    for (const weft_device_alias *a = kind->aliases; a && a->name; a++)
        weft__print(stdout, ", `%s`", a->name);
    weft__print(stdout, " |\n");
}

void weft__components_table(void) {
    weft__print(stdout, "| device | for | choose it with |\n| --- | --- | --- |\n");
    for (int i = 0; i < weft__device_kinds(); i++) print_device(weft__device_kind(i));
    weft__print(stdout,
                "\n| device | component | oldest | from | without it |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < weft__device_kinds(); i++) {
        const weft_device_module *kind = weft__device_kind(i);
        for (const weft_device_component *c = kind->components; c && c->name; c++)
            weft__print(stdout, "| `%s` | %s | %s | %s | %s |\n", kind->ops->name, c->name, c->oldest,
                        c->from, c->without);
    }
}
