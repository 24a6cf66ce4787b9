/* The table of cards, and descriptions of cards in files. A file is one JSON object with the columns of
 * cards.def as keys. "like" names a card of the table whose values hold for the keys that are missing. Must
 * not know: prices. Read next: card.h, price.c. */
#include "device/gpu/card/card.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"

/* The same for all cards. The launch costs are published for H100: about 1.2 us for a small kernel as a node
 * of a graph, 2.5 us for one that the host submits. Other cards are assumed to need as long. L2_BYTES: bytes
 * that a multiprocessor gets from L2 in a clock; an estimate, between what microbenchmarks find on A100, H100
 * and Ada. */
#define NODE_SECONDS  1.2e-6
#define ALONE_SECONDS 2.5e-6
#define L2_BYTES      20
#define ISSUED        128 /* instructions of work-items that a multiprocessor starts in a clock */

enum { FILE_MOST = 1 << 16, GROUPS_MOST = 65535, STATIC_BYTES = 48 << 10, ITEMS = 256 };

/* A card as the table and files have it. */
typedef struct row {
    const char *key, *name;
    double capability, units, clock, memory, bandwidth, l2, f32, f64, tensor, tf32, shared, threads, blocks;
} row;

static const row rows[] = {
#define CARD(...) {__VA_ARGS__},
#include "device/gpu/card/cards.def"
#undef CARD
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The keys of a file. */
static const struct field {
    const char *key;
    size_t offset;
} fields[] = {
#define FIELD(name)                                                                                          \
    { #name, offsetof(row, name) }
    FIELD(capability), FIELD(units),   FIELD(clock),  FIELD(memory), FIELD(bandwidth),
    FIELD(l2),         FIELD(f32),     FIELD(f64),    FIELD(tensor), FIELD(tf32),
    FIELD(shared),     FIELD(threads), FIELD(blocks),
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

static double *at(row *r, int field) { return (double *)((char *)r + fields[field].offset); }

static weft_card card_of(const row *r) {
    weft_card to = {.capability = (int)r->capability,
                    .units = (int)r->units,
                    .threads = (int)r->threads,
                    .blocks = (int)r->blocks,
                    .clock = 1e6 * r->clock,
                    .memory = 1e9 * r->memory,
                    .bandwidth = 1e9 * r->bandwidth,
                    .l2 = 1e6 * r->l2,
                    .l2_bandwidth = L2_BYTES * r->units * 1e6 * r->clock,
                    .shared = 1024 * r->shared,
                    .node = NODE_SECONDS,
                    .alone = ALONE_SECONDS,
                    .libraries = true};
    to.rate[WEFT_UNIT_ISSUE] = ISSUED * r->units * 1e6 * r->clock;
    to.rate[WEFT_UNIT_F32] = 1e12 * r->f32;
    to.rate[WEFT_UNIT_F64] = 1e12 * r->f64;
    to.rate[WEFT_UNIT_TF32] = 1e12 * r->tf32;
    to.rate[WEFT_UNIT_TENSOR] = 1e12 * r->tensor;
    snprintf(to.key, sizeof to.key, "%s", r->key);
    snprintf(to.name, sizeof to.name, "%s", r->name);
    return to;
}

bool weft__card_at(int i, weft_card *card) {
    if (i < 0 || i >= ROWS) return false;
    *card = card_of(&rows[i]);
    return true;
}

weft_target weft__card_target(const weft_card *card) {
    return (weft_target){.dialect = WEFT_DIALECT_CUDA,
                         .lanes = ITEMS,
                         .units = card->units,
                         .local_bytes = STATIC_BYTES,
                         .most_local_bytes = (int64_t)card->shared,
                         .groups_most = GROUPS_MOST,
                         .capability = card->capability,
                         .f64 = true};
}

/* ---- files ---- */

static const row *row_named(const char *key) {
    for (int i = 0; i < ROWS; i++)
        if (strcasecmp(rows[i].key, key) == 0) return &rows[i];
    return NULL;
}

/* Writes "h200, h100, ..." */
static const char *all_keys(char *to, size_t size) {
    weft_text text = weft__text(to, size);
    for (int i = 0; i < ROWS; i++) weft__put(&text, "%s%s", i ? ", " : "", rows[i].key);
    return to;
}

static weft_status fail_file(weft_context *ctx, const char *path, const char *problem, const char *key) {
    return weft__fail(ctx, WEFT_ERR_FORMAT, "card %s: %s%s", path, problem, key);
}

/* Reads one key of the file. */
static weft_status read_key(weft_context *ctx, const char *path, const char *key, const json_t *value, row *r,
                            bool *seen, weft_card *card) {
    if (strcmp(key, "like") == 0) return WEFT_OK;
    if (strcmp(key, "name") == 0) {
        if (!json_is_string(value)) return fail_file(ctx, path, "give a text for ", key);
        snprintf(card->name, sizeof card->name, "%s", json_string_value(value));
        return WEFT_OK;
    }
    if (strcmp(key, "libraries") == 0) {
        if (!json_is_boolean(value)) return fail_file(ctx, path, "give true or false for ", key);
        card->libraries = json_is_true(value);
        return WEFT_OK;
    }
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(fields[i].key, key) != 0) continue;
        const double number = json_is_number(value) ? json_number_value(value) : 0;
        if (!(number > 0 && number < 1e9)) return fail_file(ctx, path, "give a positive number for ", key);
        *at(r, i) = number;
        seen[i] = true;
        return WEFT_OK;
    }
    return fail_file(ctx, path, "there is no key ", key);
}

static weft_status read_object(weft_context *ctx, const char *path, json_t *object, weft_card *card) {
    const json_t *like = json_object_get(object, "like");
    const row *base = json_is_string(like) ? row_named(json_string_value(like)) : NULL;
    bool seen[FIELDS] = {false};
    char keys[200];
    weft_card given = {.libraries = true};
    row r = {.key = "file", .name = ""};
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return fail_file(ctx, path, "it is not a JSON object", "");
    if (like && !base) return fail_file(ctx, path, "\"like\" needs one of ", all_keys(keys, sizeof keys));
    if (base) r = *base;
    json_object_foreach(object, key, value) WEFT_TRY(read_key(ctx, path, key, value, &r, seen, &given));
    for (int i = 0; i < FIELDS && !base; i++)
        if (!seen[i]) return fail_file(ctx, path, "give \"like\", or the key ", fields[i].key);
    *card = card_of(&r);
    card->libraries = given.libraries;
    snprintf(card->key, sizeof card->key, "file");
    if (given.name[0]) snprintf(card->name, sizeof card->name, "%.63s", given.name);
    return WEFT_OK;
}

static weft_status read_text(weft_context *ctx, const char *path, const char *text, size_t bytes,
                             weft_card *card) {
    weft__json json;
    json_error_t error;
    json_t *root;
    weft__json_open(&json, ctx);
    weft_status status = weft__json_load(&json, text, bytes, JSON_REJECT_DUPLICATES, &error, &root);
    if (status == WEFT_ERR_FORMAT)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "card %s, line %d: %s", path, error.line, error.text);
    else if (status == WEFT_OK)
        status = read_object(ctx, path, root, card);
    weft__json_close(&json);
    return status;
}

weft_status weft__card_find(weft_context *ctx, const char *name, weft_card *card) {
    const row *r = row_named(name);
    char keys[200];
    if (r) {
        *card = card_of(r);
        return WEFT_OK;
    }
    FILE *file = fopen(name, "rb");
    if (!file)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "card \"%s\": it is neither one of %s, nor a file (%s)",
                          name, all_keys(keys, sizeof keys), strerror(errno));
    char *text = weft__alloc(ctx, FILE_MOST + 1);
    const size_t bytes = text ? fread(text, 1, FILE_MOST + 1, file) : 0;
    const bool failed = ferror(file) != 0;
    fclose(file);
    weft_status status;
    if (!text)
        status = weft__fail_oom(ctx, FILE_MOST, "the description of a card");
    else if (failed)
        status = weft__fail(ctx, WEFT_ERR_IO, "card %s cannot be read", name);
    else if (bytes > FILE_MOST)
        status = fail_file(ctx, name, "the file is too long for the description of a card", "");
    else
        status = read_text(ctx, name, text, bytes, card);
    weft__free(ctx, text);
    return status;
}
