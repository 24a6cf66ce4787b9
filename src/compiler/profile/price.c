/* Prices the work of a profile on devices and chooses the cheapest device
 * (docs/design/031-choosing-a-device.md). Must not know: how rates are measured. Read next: rates.c. */
#include <stdio.h>
#include <string.h>

#include "compiler/profile/price.h"
#include "device/device.h"

/* ---- the price ---- */

/* The time of a command by its size. A command without work takes one launch. Between samples the time is
 * interpolated linearly. Beyond the last sample it grows in proportion to the size. */
static double along(const weft__point *points, double launch_ns, double size) {
    weft__point from = {0, launch_ns};
    int last = -1;
    for (int i = 0; i < WEFT__POINTS && points[i].size > 0; i++) {
        if (size <= points[i].size)
            return from.ns + (points[i].ns - from.ns) * (size - from.size) / (points[i].size - from.size);
        from = points[last = i];
    }
    return last < 0 ? launch_ns : from.ns * size / from.size;
}

static double command_ns(const weft_profile_entry *command, const weft__rates *r) {
    const double moving = along(r->moves, r->launch_ns, command->bytes);
    if (command->work == WEFT_WORK_OTHER) return moving + r->calculation_ns * command->flops;
    const double computing = along(r->products, r->launch_ns, command->flops);
    return computing > moving ? computing : moving;
}

double weft__price(const weft_profile *p, const weft__rates *r) {
    const weft__traffic t = weft__profile_traffic(p);
    double ns = r->submit_ns * (double)t.submissions + r->wait_ns * (double)t.downloads +
                r->upload_ns * (double)t.uploads + r->upload_ns_a_byte * (double)t.bytes_up +
                r->download_ns_a_byte * (double)t.bytes_down;
    for (size_t i = 0; i < p->n_programs; i++) {
        const profile_program *program = &p->programs[i];
        double once = 0;
        for (int k = 0; k < program->count; k++)
            once += command_ns(&p->commands[program->first + (size_t)k], r);
        ns += once * (double)program->runs;
    }
    return 1e-9 * ns;
}

/* ---- the choice ---- */

weft_status (*weft__price_rates)(const char *, int, char[64], weft__rates *) = weft__rates_of;

/* Prices one device, and chooses it if it is the cheapest so far. */
static weft_status consider(const weft_profile *p, const char *spec, weft_device_choice *choice) {
    weft__rates rates;
    char name[64], text[100];
    WEFT_TRY(weft__price_rates(spec, 0, name, &rates));
    const double seconds = weft__price(p, &rates);
    snprintf(text, sizeof text, "%s%s %.3g ms", choice->prices[0] ? ", " : "", name, 1e3 * seconds);
    const size_t used = strlen(choice->prices);
    snprintf(choice->prices + used, sizeof choice->prices - used, "%s", text);
    if (choice->device[0] && seconds >= choice->seconds) return WEFT_OK;
    snprintf(choice->device, sizeof choice->device, "%s", name);
    choice->seconds = seconds;
    return WEFT_OK;
}

static void consider_cards(const weft_profile *p, weft_device_choice *choice) {
    weft_device_description d;
    if (!weft__device_cards()) return;
    for (int i = 0; weft_device_info(i, &d); i++) {
        if (d.card && !d.present)
            weft__log(p->ctx, WEFT_LOG_WARNING, "device auto: %s: %s", d.name, d.reason);
        if (!d.present || !d.card) continue;
        if (consider(p, d.name, choice) != WEFT_OK) /* the others remain */
            weft__log(p->ctx, WEFT_LOG_WARNING, "device auto: %s", weft_last_error(NULL));
    }
}

weft_status weft_profile_choose(const weft_profile *profile, const char *devices,
                                weft_device_choice *choice) {
    char spec[100];
    WEFT_NEED(NULL, profile);
    WEFT_NEED(profile->ctx, choice);
    *choice = (weft_device_choice){.seconds = 0};
    if (!devices || !*devices) devices = "auto";
    for (const char *list = devices; weft__device_next(&list, spec, sizeof spec);) {
        const bool automatic = strcmp(spec, "auto") == 0;
        WEFT_TRY(consider(profile, automatic ? "cpu" : spec, choice));
        if (automatic) consider_cards(profile, choice);
    }
    return WEFT_OK;
}
