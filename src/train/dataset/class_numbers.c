/* Classes that are whole numbers, but not those from 0 on, such as zip codes. The classes are the numbers
 * that occur, and the numbers are their names. Must not know: files. Read next: dataset_csv.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/dataset/dataset.h"

static int by_label(const void *x, const void *y) {
    const int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* Finds the numbers that occur, sorted. *count becomes 0 if they are 0, 1, 2, ..., or if there is a negative
 * number, which an error will name later. */
static weft_status find_numbers(weft_context *ctx, const weft_array *y, int32_t **numbers, size_t *count) {
    const size_t labels = weft__array_length(y);
    *numbers = weft__array(ctx, labels, sizeof **numbers);
    *count = 0;
    if (!*numbers) return weft__fail_oom(ctx, labels * sizeof **numbers, "the classes");
    memcpy(*numbers, y->data, labels * sizeof **numbers);
    qsort(*numbers, labels, sizeof **numbers, by_label);
    for (size_t i = 0; i < labels; i++)
        if (i == 0 || (*numbers)[i] != (*numbers)[i - 1]) (*numbers)[(*count)++] = (*numbers)[i];
    if (*count && ((*numbers)[0] < 0 || (*numbers)[*count - 1] == (int32_t)*count - 1)) *count = 0;
    return WEFT_OK;
}

static weft_status take_names(weft_context *ctx, const char *path, const int32_t *numbers, size_t count,
                              weft__dataset *d) {
    enum { DIGITS = 12 };
    char **names = weft__array(ctx, count, sizeof *names + DIGITS);
    if (!names) return weft__fail_oom(ctx, count * (sizeof *names + DIGITS), path);
    for (size_t i = 0; i < count; i++) {
        names[i] = (char *)(names + count) + i * DIGITS;
        snprintf(names[i], DIGITS, "%d", numbers[i]);
    }
    const weft_status status = weft__dataset_take_classes(ctx, path, names, count, d);
    weft__free(ctx, names);
    return status;
}

/* Puts the place of each label among the names in its place. */
static weft_status place_labels(weft_context *ctx, const char *path, const weft__dataset *d, weft_array *y) {
    const size_t count = (size_t)d->outputs, labels = weft__array_length(y);
    int32_t *numbers = weft__array(ctx, count, sizeof *numbers), *label = y->data;
    weft_status status = numbers ? WEFT_OK : weft__fail_oom(ctx, count * sizeof *numbers, path);
    for (size_t i = 0; numbers && i < count; i++) numbers[i] = (int32_t)strtol(d->classes[i], NULL, 10);
    for (size_t i = 0; status == WEFT_OK && i < labels; i++) {
        const int32_t *found = bsearch(&label[i], numbers, count, sizeof *numbers, by_label);
        if (found)
            label[i] = (int32_t)(found - numbers);
        else
            status = weft__fail(ctx, WEFT_ERR_INDEX,
                                "%s: sample %zu has the class %d, which the training data does not have",
                                path, i, label[i]);
    }
    weft__free(ctx, numbers);
    return status;
}

weft_status weft__dataset_name_numbers(weft_context *ctx, const char *path, weft__split split,
                                       weft__dataset *d, weft_array *y) {
    int32_t *numbers = NULL;
    size_t count = 0;
    if (d->task != WEFT__TASK_CLASSIFICATION || y->dtype != WEFT_I32) return WEFT_OK;
    if (!d->classes && (split != WEFT__TRAIN || d->outputs > 0)) return WEFT_OK; /* 0, 1, 2, ... */
    weft_status status = d->classes ? WEFT_OK : find_numbers(ctx, y, &numbers, &count);
    if (status == WEFT_OK && count) status = take_names(ctx, path, numbers, count, d);
    weft__free(ctx, numbers);
    return status == WEFT_OK && d->classes ? place_labels(ctx, path, d, y) : status;
}
