/* Names of a kernel source, for modules that hold several sources. A source may define functions, macros and
 * typedefs of structs. Each definition is at the start of a line.
 * Must not know: what the names mean. Read next: names.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_NAMES_H
#define WEFT_DEVICE_GPU_BACKEND_NAMES_H

#include "base/text.h"

/* Call it before the source is written. It gives functions and structs the name NAME_SUFFIX while the source
 * lasts. */
void weft__gpu_put_names(weft_text *out, const char *source, const char *suffix);
/* Call it after the source. It undefines these names, and the macros of the source. */
void weft__gpu_forget_names(weft_text *out, const char *source);

#endif
