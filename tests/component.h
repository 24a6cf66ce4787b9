/* Looks for a component of a device, as `weft doctor` does. */
#ifndef WEFT_TESTS_COMPONENT_H
#define WEFT_TESTS_COMPONENT_H

#include "device/module.h"

/* Returns whether the component is there. text receives its version, or why it is missing. */
static inline bool test_has_component(const weft_device_module *kind, const char *name,
                                      char text[WEFT_COMPONENT_TEXT]) {
    text[0] = 0;
    for (const weft_device_component *c = kind->components; c->name; c++) {
        if (strcmp(c->name, name) != 0) continue;
        const char *why = c->find(text);
        if (why) snprintf(text, WEFT_COMPONENT_TEXT, "%s", why);
        return !why;
    }
    fail_msg("%s has no component %s", kind->ops->name, name);
    return false;
}

#endif
