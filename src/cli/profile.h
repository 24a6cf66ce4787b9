/* Prints a profile on the terminal. Must not know: how a profile is collected. Read next: profile.c. */
#ifndef WEFT_SRC_CLI_PROFILE_H
#define WEFT_SRC_CLI_PROFILE_H

#include <weft/profile.h>

#include "base/base.h"

/* Prints the table of kernels, with the times of `steps` steps divided by their number. */
weft_status weft__print_profile(weft_profile *profile, uint64_t steps);

#endif
