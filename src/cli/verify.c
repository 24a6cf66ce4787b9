/* weft verify: compares a training step on two devices, or with fused and unfused kernels. Must not know: how
 * steps are compared. Read next: train/analysis/verify.c. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "train/analysis/verify.h"

/* Reads the two sides: "cpu,opencl" are two devices; "cpu" is one device with and without fusion. */
static bool read_sides(const char *devices, weft__verification *v) {
    const char *comma = strchr(devices, ',');
    const size_t length = comma ? (size_t)(comma - devices) : strlen(devices);
    const char *second = comma ? comma + 1 : devices;
    if (length == 0 || length >= sizeof v->side[0].device || !*second || strchr(second, ',') ||
        strlen(second) >= sizeof v->side[1].device)
        return false;
    snprintf(v->side[0].device, sizeof v->side[0].device, "%.*s", (int)length, devices);
    snprintf(v->side[1].device, sizeof v->side[1].device, "%s", second);
    v->side[1].no_fusion = !comma;
    return true;
}

static void cli_verify_show(const weft__verification *v) {
    const weft__verify_side *side = v->side;
    weft_context *ctx = side[0].model.ctx;
    weft__print(stdout, "%s against %s%s: %lld parameters, %zu nodes of a training step\n",
                weft_device_of(ctx), weft_device_of(side[1].model.ctx),
                side[1].no_fusion ? " without fusion" : "",
                (long long)weft_parameter_elements(side[0].model.module, false), v->nodes);
    if (v->differs) {
        weft__print(stdout, "differs: %s\n", v->difference);
        return;
    }
    weft__print(stdout, "every node agrees%s%s\n", v->worst > 0 ? "; furthest apart: " : " to the bit",
                v->worst > 0 ? v->worst_node : "");
    weft__print(stdout, "losses of %llu steps%s agree to %.2g; the last: %.7g and %.7g\n",
                (unsigned long long)v->steps, v->with_sgd ? " of sgd" : "", v->worst_loss, v->loss[0],
                v->loss[1]);
    if (v->with_sgd)
        weft__print(stdout,
                    "a gradient of %s is 0 but for rounding, of which the configured optimizer makes "
                    "whole steps: so these are steps of sgd\n",
                    v->cancels);
}

int weft__command_verify(const weft__command *command, int argc, char **argv) {
    weft__wanted wanted = {.config = getenv("WEFT_CONFIG")};
    const char *devices = NULL;
    int64_t steps = 5;
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&wanted),
        {"--devices D,D", WEFT__OPTION_TEXT, &devices,
         "compare two devices; or one device, with and without fusion"},
        {"--steps N", WEFT__OPTION_INT, &steps, "steps whose losses are compared; default: 5"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__verification v = {.steps = (uint64_t)steps};
    if (!weft__cli_has_config(command, &wanted)) return WEFT__EXIT_USAGE;
    const char *wrong = !devices                       ? "--devices is missing"
                        : steps < 1 || steps > 1000000 ? "--steps is 1 to 1000000"
                        : !read_sides(devices, &v)     ? "--devices needs two names, as in cpu,opencl, or one"
                                                       : NULL;
    if (wrong) {
        weft__complain("verify: %s: 'weft verify --help' tells more", wrong);
        return WEFT__EXIT_USAGE;
    }
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__cli_config(&config, &wanted);
    if (status == WEFT_OK) status = weft__verify(&v, &config);
    if (status == WEFT_OK) cli_verify_show(&v);
    code = status != WEFT_OK ? weft__give_up(NULL, status) : v.differs ? WEFT__EXIT_FAILED : WEFT__EXIT_DONE;
    weft__verification_free(&v);
    weft__config_free(&config);
    return code;
}
