/* Reads the weights of a linear model and converts them to the units of the data. The layer was trained on
 * normalized columns (x - mean) / deviation and normalized targets (y - mean) / deviation. Must not know: how
 * coefficients are shown. Read next: cli/show.c. */
#include <stdio.h>
#include <string.h>

#include "train/report/coefficients.h"

static const char *coefficients_number(int64_t value, char buffer[24]) {
    snprintf(buffer, 24, "%lld", (long long)value);
    return buffer;
}

const char *weft__column_name(const weft__dataset *dataset, int64_t column, char buffer[24]) {
    return dataset->table.inputs ? dataset->table.inputs[column] : coefficients_number(column + 1, buffer);
}

const char *weft__output_name(const weft__dataset *dataset, int64_t output, char buffer[24]) {
    if (dataset->task == WEFT__TASK_CLASSIFICATION) {
        if (dataset->outputs == 2) output = 1; /* two classes have one logit, that of class 1 */
        return dataset->classes ? dataset->classes[output] : coefficients_number(output, buffer);
    }
    return dataset->table.target && dataset->outputs == 1 ? dataset->table.target
                                                          : coefficients_number(output + 1, buffer);
}

/* Reads a parameter as f32. Without a parameter of that name, the result is zeros. */
static weft_status read_parameter(const weft__model *model, const char *name, float *out, int64_t count) {
    weft_parameter_info info;
    memset(out, 0, (size_t)count * sizeof *out);
    if (!weft_parameter_find(model->module, name, &info)) return WEFT_OK;
    return weft_read(info.tensor, out, (size_t)count * sizeof *out);
}

/* Converts normalized weights. With targets y = m_y + s_y y' and columns x' = (x - m) / s,
 *
 *     y = m_y + s_y (b + sum_j w_j (x_j - m_j) / s_j)
 *
 * so that the coefficient of column j is s_y w_j / s_j, and the bias is m_y + s_y (b - sum_j w_j m_j /
 * s_j). */
static void convert(const weft__dataset *d, const float *weights, const float *biases,
                    weft__coefficients *c) {
    for (int64_t j = 0; j < c->columns; j++) {
        c->mean[j] = d->scaling.mean ? d->scaling.mean[j] : 0;
        c->deviation[j] = d->scaling.deviation    ? d->scaling.deviation[j]
                          : d->scaling.factor > 0 ? 1 / d->scaling.factor
                                                  : 1;
    }
    for (int64_t i = 0; i < c->outputs; i++) {
        const double middle = d->scaling.target_mean ? d->scaling.target_mean[i] : 0,
                     spread = d->scaling.target_deviation ? d->scaling.target_deviation[i] : 1;
        double shift = 0;
        c->bias_standardised[i] = (double)biases[i];
        for (int64_t j = 0; j < c->columns; j++) {
            const double w = (double)weights[i * c->columns + j];
            c->standardised[i * c->columns + j] = w;
            c->original[i * c->columns + j] = spread * w / c->deviation[j];
            shift += w * c->mean[j] / c->deviation[j];
        }
        c->bias[i] = middle + spread * ((double)biases[i] - shift);
    }
}

weft_status weft__coefficients_take(const weft__model *model, const weft__config *config,
                                    const weft__dataset *dataset, weft__coefficients *c) {
    *c = (weft__coefficients){0};
    if (!weft__config_is(config, WEFT__TRAIT_COEFFICIENTS))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "the model has no coefficients: only linear and logistic models have them");
    c->columns = dataset->features;
    c->outputs = model->loss == WEFT_LOSS_BCE ? 1 : dataset->outputs;
    const int64_t all = c->outputs * c->columns;
    double **lists[] = {&c->original,          &c->standardised, &c->bias,
                        &c->bias_standardised, &c->mean,         &c->deviation};
    const int64_t counts[] = {all, all, c->outputs, c->outputs, c->columns, c->columns};
    bool made = true;
    for (int i = 0; i < 6; i++)
        made = (*lists[i] = weft__array(NULL, (size_t)counts[i], sizeof **lists[i])) != NULL && made;
    float *weights = weft__array(NULL, (size_t)(all + c->outputs), sizeof *weights);
    weft_status status = made && weights ? WEFT_OK : weft__fail_oom(NULL, (size_t)all * 8, "coefficients");
    if (status == WEFT_OK) status = read_parameter(model, "weight", weights, all);
    if (status == WEFT_OK) status = read_parameter(model, "bias", weights + all, c->outputs);
    if (status == WEFT_OK) convert(dataset, weights, weights + all, c);
    weft__free(NULL, weights);
    return status;
}

void weft__coefficients_free(weft__coefficients *c) {
    double *lists[] = {c->original, c->standardised, c->bias, c->bias_standardised, c->mean, c->deviation};
    for (int i = 0; i < 6; i++) weft__free(NULL, lists[i]);
    *c = (weft__coefficients){0};
}
