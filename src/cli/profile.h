/* Showing a profile on the terminal. Read next: profile.c. */
#ifndef WEFT_SRC_CLI_PROFILE_H
#define WEFT_SRC_CLI_PROFILE_H

#include <weft/profile.h>

#include "base/base.h"

/* Prints the table by kernel of so many steps. */
weft_status weft__print_profile(weft_profile *profile, uint64_t steps);

#endif
