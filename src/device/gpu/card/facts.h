/* The facts of launches that templates make.
 * Must not know: prices. Read next: facts.c, kernel/source.h. */
#ifndef WEFT_DEVICE_GPU_CARD_FACTS_H
#define WEFT_DEVICE_GPU_CARD_FACTS_H

#include "device/device.h"
#include "device/gpu/card/card.h"

/* Fills in the facts of all launches from number `from` on, which do the work of `count` commands. Those of
 * rendered kernels are there already. */
void weft__gpu_facts(const weft_command *commands, int count, weft_launches *launches, int from);

#endif
