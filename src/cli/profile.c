/* weft profile: where the time of training steps goes.
 * Must not know: how it is collected. Read next: train/profile.c. */
#include <stdio.h>

#include "cli/profile.h"

weft_status weft__print_profile(weft_profile *profile, uint64_t steps) {
    int64_t length = weft_profile_text(profile, steps, NULL, 0);
    char *text = length >= 0 ? weft__alloc(NULL, (size_t)length + 1) : NULL;
    if (!text) return weft__fail_oom(NULL, 0, "the text of a profile");
    weft_profile_text(profile, steps, text, (size_t)length + 1);
    fputs(text, stdout);
    weft__free(NULL, text);
    return WEFT_OK;
}
