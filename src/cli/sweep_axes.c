/* Reads lists and ranges of values, and makes their combinations. Must not know: training. Read next:
 * sweep.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/sweep_axes.h"
#include "data/parse.h"

/* Random streams of the points. */
#define STREAM_POINTS UINT64_C(0x73776565702e7031)
#define STREAM_VALUES UINT64_C(0x73776565702e7631)

const char *weft__axis_value(const char *change) { return strchr(change, '=') + 1; }

bool weft__axis_number(const char *change, double *number) {
    const char *value = weft__axis_value(change);
    return weft__parse_f64(value, strlen(value), number) == WEFT__NUMBER_OK;
}

/* ---- reading ---- */

static const char *key_name(const weft__axis *axis) { return weft__config_key_name(axis->key); }

/* Returns the bytes of the first value of a list. Commas in [...] belong to a value. */
static size_t value_size(const char *text) {
    size_t size = 0;
    int depth = 0;
    for (; text[size] && (depth > 0 || text[size] != ','); size++)
        depth += (text[size] == '[') - (text[size] == ']');
    return size;
}

static weft_status read_values(const char *text, weft__axis *axis) {
    for (;;) {
        const size_t size = value_size(text);
        if (axis->count == WEFT__AXIS_VALUES)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT, "sweep: %s: more than %d values", key_name(axis),
                              WEFT__AXIS_VALUES);
        char *value = weft__alloc(NULL, size + 1);
        if (!value) return weft__fail_oom(NULL, size + 1, "a value");
        memcpy(value, text, size);
        value[size] = '\0';
        axis->values[axis->count++] = value;
        if (!text[size]) return WEFT_OK;
        text += size + 1;
    }
}

/* Reads "LOW..HIGH" of a key whose values are numbers. */
static weft_status read_range(const char *text, weft__axis *axis) {
    const weft__config_kind kind = weft__config_rows[axis->key].kind;
    const char *dots = strstr(text, "..");
    axis->ranged = dots && (kind == WEFT__KIND_INT || kind == WEFT__KIND_NUM);
    axis->whole = kind == WEFT__KIND_INT;
    if (!axis->ranged) return WEFT_OK;
    if (weft__parse_f64(text, (size_t)(dots - text), &axis->low) != WEFT__NUMBER_OK ||
        weft__parse_f64(dots + 2, strlen(dots + 2), &axis->high) != WEFT__NUMBER_OK ||
        !(axis->low < axis->high))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "sweep: %s=%.80s: write a range as LOW..HIGH, as in 0.0001..0.1", key_name(axis),
                          text);
    return WEFT_OK;
}

/* Checks that the key exists and takes the values. */
static weft_status check_values(const weft__axis *axis, const char *text) {
    char assignment[WEFT__AXIS_TEXT];
    weft__config config;
    weft_status status = WEFT_OK;
    weft__config_init(&config);
    for (size_t i = 0; i < axis->count && status == WEFT_OK; i++) {
        const int size = snprintf(assignment, sizeof assignment, "%s=%s", key_name(axis), axis->values[i]);
        status = size < (int)sizeof assignment
                     ? weft__config_assign(&config, assignment, "sweep")
                     : weft__fail(NULL, WEFT_ERR_ARGUMENT, "sweep: the value %.80s... is too long", text);
    }
    weft__config_free(&config);
    return status;
}

static weft_status read_axis(const char *text, weft__axes *axes) {
    char name[64];
    const size_t size = strcspn(text, "=");
    weft__config config;
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 63, text);
    weft__axis *axis = &axes->items[axes->count];
    *axis = (weft__axis){.key = weft__config_find(name)};
    if (text[size] != '=' || axis->key == WEFT__KEY_COUNT) { /* for the message of a wrong assignment */
        weft__config_init(&config);
        const weft_status status = weft__config_assign(&config, text, "sweep");
        weft__config_free(&config);
        return status;
    }
    for (size_t i = 0; i < axes->count; i++)
        if (axes->items[i].key == axis->key)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "sweep: %s is given twice: give its values in one list", name);
    axes->count++;
    WEFT_TRY(read_range(text + size + 1, axis));
    if (!axis->ranged) WEFT_TRY(read_values(text + size + 1, axis));
    return check_values(axis, text);
}

static const char *last_part(const char *key) {
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

weft_status weft__axes_read(const weft__repeated *texts, weft__axes *axes) {
    memset(axes, 0, sizeof *axes);
    if (texts->count > WEFT__AXES_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "sweep: at most %d keys can be searched", WEFT__AXES_MOST);
    for (size_t i = 0; i < texts->count; i++) WEFT_TRY(read_axis(texts->values[i], axes));
    for (size_t i = 0; i < axes->count; i++) {
        axes->items[i].label = last_part(key_name(&axes->items[i]));
        for (size_t j = 0; j < axes->count; j++)
            if (i != j &&
                strcmp(last_part(key_name(&axes->items[i])), last_part(key_name(&axes->items[j]))) == 0)
                axes->items[i].label = key_name(&axes->items[i]);
    }
    return WEFT_OK;
}

void weft__axes_free(weft__axes *axes) {
    for (size_t a = 0; a < axes->count; a++)
        for (size_t i = 0; i < axes->items[a].count; i++) weft__free(NULL, axes->items[a].values[i]);
    axes->count = 0;
}

/* ---- points ---- */

/* Returns the number of combinations of the lists. 0: there is a range; -1: too many to count. */
static int64_t combinations(const weft__axes *axes) {
    int64_t count = 1;
    for (size_t a = 0; a < axes->count; a++) {
        if (axes->items[a].ranged) return 0;
        if (!weft__mul(count, (int64_t)axes->items[a].count, &count)) return -1;
    }
    return count;
}

weft_status weft__axes_points(const weft__axes *axes, int64_t random, int64_t *count) {
    const int64_t all = combinations(axes);
    if (random == 0 && all == 0)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "sweep: a range needs --random N; without it, list the values: KEY=a,b,c");
    *count = random == 0 ? all : all > 0 && all < random ? all : random;
    if (all < 0 || *count > WEFT__POINTS_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "sweep: more than %d combinations: give fewer values, or "
                          "--random N for N of them",
                          WEFT__POINTS_MOST);
    return WEFT_OK;
}

static void put_drawn(const weft__axis *axis, double u, char out[WEFT__AXIS_TEXT]) {
    const bool logarithmic = axis->low > 0 && axis->high >= 10 * axis->low;
    const double ends = axis->whole ? 0.5 : 0; /* both ends are as likely as other whole numbers */
    const double low = axis->low - ends, high = axis->high + ends;
    double value = logarithmic ? low * pow(high / low, u) : low + u * (high - low);
    if (axis->whole) value = fmin(fmax(round(value), ceil(axis->low)), floor(axis->high));
    snprintf(out, WEFT__AXIS_TEXT, axis->whole ? "%s=%.0f" : "%s=%.4g", key_name(axis), value);
}

void weft__axes_point(const weft__axes *axes, bool random, uint64_t seed, int64_t i, weft__point *point) {
    const int64_t all = combinations(axes);
    uint64_t rest =
        random && all > 0 ? weft__permute(seed, STREAM_POINTS, (uint64_t)all, (uint64_t)i) : (uint64_t)i;
    for (size_t a = axes->count; a-- > 0;) { /* the values of the last key change first */
        const weft__axis *axis = &axes->items[a];
        const double u = ((double)weft__random_u32(seed, STREAM_VALUES, (uint64_t)i, a) + 0.5) * 0x1p-32;
        if (axis->ranged) {
            put_drawn(axis, u, point->changes[a]);
            continue;
        }
        const uint64_t chosen = all > 0 ? rest % axis->count : (uint64_t)(u * (double)axis->count);
        if (all > 0) rest /= axis->count;
        snprintf(point->changes[a], WEFT__AXIS_TEXT, "%s=%s", key_name(axis), axis->values[chosen]);
    }
}

void weft__axes_name(const weft__axes *axes, const weft__point *point, char out[256]) {
    enum { NAME_MOST = 200 };
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    char name[WEFT__AXES_MOST * (WEFT__AXIS_TEXT + 1)];
    size_t used = 0;
    weft_hash hash;
    weft__hash_init(&hash);
    for (size_t a = 0; a < axes->count; a++) {
        weft__hash_str(&hash, point->changes[a]);
        used +=
            (size_t)snprintf(name + used, sizeof name - used, "%s%s=", a ? "," : "", axes->items[a].label);
        for (const char *c = weft__axis_value(point->changes[a]); *c; c++)
            if (*c != '[' && *c != ']') name[used++] = strchr(kept, *c) ? *c : '-';
    }
    name[used] = '\0';
    if (used <= NAME_MOST)
        snprintf(out, 256, "%.*s", NAME_MOST, name);
    else /* the names of folders have an end */
        snprintf(out, 256, "%.*s-%016llx", NAME_MOST - 17, name, (unsigned long long)hash.a);
}
