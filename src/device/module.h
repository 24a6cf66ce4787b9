/* What Weft knows about a kind of device before one is open. To add a device, make a folder that exports one
 * weft_device_module, and add one row to devices.def.
 * Must not know: graphs, layers, any device. Read next: devices.def, registry.c, null/null.c. */
#ifndef WEFT_DEVICE_MODULE_H
#define WEFT_DEVICE_MODULE_H

#include "base/text.h"
#include "device/device.h"

enum { WEFT_COMPONENT_TEXT = 800 };

/* A library or a driver that users install for a device. `weft doctor` looks for it, and docs/devices.md has
 * a row for it. */
typedef struct weft_device_component {
    const char *name;
    const char *oldest;  /* the oldest version that works */
    const char *from;    /* where to get it */
    const char *without; /* what is lost without it */
    /* Returns NULL, and the version in `text`; or why the component is missing, and what helps. `text` is ""
     * before. */
    const char *(*find)(char text[WEFT_COMPONENT_TEXT]);
} weft_device_component;

/* Another name of a device, and the selector that it stands for. */
typedef struct weft_device_alias {
    const char *name, *selector;
} weft_device_alias;

/* All that Weft knows about one kind of device. The folder of the device exports it as weft__device_FOLDER,
 * and devices.def lists it. A field that is 0 or NULL has the default that its comment names. A selector is
 * the part of a specification after "opencl:", or "" if there is none. */
typedef struct weft_device_module weft_device_module;
struct weft_device_module {
    const weft_device_ops *ops;
    const char *serves;    /* for docs/devices.md: what the device is for. NULL: it has no row there */
    const char *chosen;    /* the same: specifications besides the kind's name and its aliases. NULL: none */
    bool hidden;           /* no list of devices shows it */
    bool computes_nothing; /* so nobody tries whether it computes right */
    /* The specification by which `gpu` and `auto` try it, in the order of devices.def. NULL: they do not. */
    const char *card;
    /* Returns whether `gpu` and `auto` try it: there is a driver for cards of this kind alone. Then a warning
     * says what else is missing. NULL: they always try it, and expect nothing. */
    bool (*driver)(void);
    const weft_device_alias *aliases;        /* up to a name that is NULL. NULL: none */
    const weft_device_component *components; /* the same; the others are useless without the first */
    /* Writes what `weft doctor` says besides, at most one line. Returns how many things are broken. NULL:
     * nothing. */
    int (*remark)(weft_text *line);
    const void *backend; /* for the functions below */
    /* Returns the number of devices of this kind. It is 1 if there is none, and describe then says why. NULL:
     * there is one. */
    int (*count)(const weft_device_module *module);
    /* Fills in what device i is, or why it is absent. Never fails. */
    void (*describe)(const weft_device_module *module, int i, weft_device_description *description);
    weft_status (*open)(const weft_device_module *module, weft_context *ctx, const char *selector,
                        const weft_open_options *options, weft_device **device);
    /* Describes a device for plans without opening anything. NULL: this kind has no outline. */
    weft_status (*outline)(const weft_device_module *module, weft_context *ctx, const char *selector,
                           weft_device_outline *outline);
    /* Outlines a card that is described, and need not exist. NULL: this kind has no such cards. */
    void (*outline_card)(const struct weft_card *card, weft_device_outline *outline);
};

#define WEFT_DEVICE(name) extern const weft_device_module weft__device_##name;
#include "device/devices.def"
#undef WEFT_DEVICE

/* ---- registry.c ---- */

int weft__device_kinds(void);
const weft_device_module *weft__device_kind(int i);
/* Returns the number of devices of the kind that lists show. */
int weft__device_count(const weft_device_module *kind);
/* Returns the kind of a specification, such as "cuda:1" or "rocm". NULL: it is a list, or unknown. */
const weft_device_module *weft__device_kind_of(const char *spec);
extern bool weft__device_cards_hook; /* for tests: processors count as cards, and the machine has one */

#endif
