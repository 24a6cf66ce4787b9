/* Fields of config.json. Must not know: names of tensors. Read next: config.c. */
#ifndef WEFT_SRC_PUBLISHED_FIELDS_H
#define WEFT_SRC_PUBLISHED_FIELDS_H

#include <jansson.h>

#include "published/published.h"

typedef struct weft__fields {
    weft_context *ctx;
    char path[4096];
    const json_t *root;
    double share;       /* share of a head's channels that is rotated */
    weft_status status; /* of the first problem */
} weft__fields;

/* Notes a problem of a field, unless there was one before. */
void weft__field_fail(weft__fields *f, weft_status status, const char *name, const char *why);

/* Return a field, or `otherwise` if it is missing or null. numbers.def has the range of each number. If
 * `otherwise` of a whole number is negative, the field must be there. */
int64_t weft__field_int(weft__fields *f, const char *name, int64_t otherwise);
double weft__field_number(weft__fields *f, const char *name, double otherwise);
bool weft__field_bool(weft__fields *f, const char *name, bool otherwise);
const char *weft__field_text(weft__fields *f, const char *name, const char *otherwise);
weft_activation_kind weft__field_activation(weft__fields *f, const char *name, const char *otherwise);

/* Reads how the channels of heads are rotated, with `base` as the default of rope_theta. */
void weft__field_rotation(weft__fields *f, double base, int64_t head_width, weft__published *p);

/* Whether rope_type names LongRoPE, and reads its lists. */
bool weft__is_longrope(const char *type);
void weft__field_longrope(weft__fields *f, const json_t *scaling, weft__published *p);

/* The readers that architectures.def names. */
void weft__read_gpt2(weft__fields *f, weft__published *p);
void weft__read_neox(weft__fields *f, weft__published *p);
void weft__read_llama(weft__fields *f, weft__published *p);
void weft__read_bert(weft__fields *f, weft__published *p);
void weft__read_distilbert(weft__fields *f, weft__published *p);

#endif
