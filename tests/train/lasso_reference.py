#!/usr/bin/env python3
"""Compares coefficients with the minimum of the penalised loss, and with scikit-learn if it is installed.

    lasso_reference.py TABLE.csv COEFFICIENTS.json linear|logistic LASSO RIDGE

TABLE.csv: the training data, with a header; the target is the last column (logistic: 0 or 1). COEFFICIENTS.json: what
`weft show --json` printed. The minimum is found here by proximal gradient steps, in plain Python. Zeros must be the same.
The last line says whether scikit-learn took part."""
import csv
import json
import math
import sys

TOLERANCE = 2e-3


def standardise(column):
    mean = sum(column) / len(column)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in column) / len(column))
    return [(v - mean) / deviation for v in column]


def shrink(value, by):
    return math.copysign(max(abs(value) - by, 0.0), value)


def minimum(x, y, kind, lasso, ridge):
    """Minimises mean loss + l1 |w| + l2 w^2 / 2 by FISTA with a step of 1 / L. The loss is half the squared error, or the
    cross entropy."""
    n, features = len(x), len(x[0])
    l1, l2 = (lasso, ridge / n) if kind == "linear" else (lasso / n, ridge / n)
    step = 1 / (features + 1 + l2)
    w, bias, ahead, bias_ahead, t = [0.0] * features, 0.0, [0.0] * features, 0.0, 1.0
    for _ in range(1500):
        gradient, bias_gradient = [l2 * a for a in ahead], 0.0
        for row, target in zip(x, y):
            out = bias_ahead + sum(a * v for a, v in zip(ahead, row))
            error = (out if kind == "linear" else 1 / (1 + math.exp(-out))) - target
            bias_gradient += error / n
            for j, v in enumerate(row):
                gradient[j] += error * v / n
        new = [shrink(a - step * g, step * l1) for a, g in zip(ahead, gradient)]
        new_bias, new_t = bias_ahead - step * bias_gradient, (1 + math.sqrt(1 + 4 * t * t)) / 2
        momentum = (t - 1) / new_t
        ahead = [a + momentum * (a - b) for a, b in zip(new, w)]
        bias_ahead = new_bias + momentum * (new_bias - bias)
        w, bias, t = new, new_bias, new_t
    return w


def of_sklearn(x, y, kind, lasso, ridge):
    from sklearn.linear_model import ElasticNet, LogisticRegression
    n = len(x)
    if kind == "linear":
        alpha = lasso + ridge / n
        return list(ElasticNet(alpha=alpha, l1_ratio=lasso / alpha, tol=1e-12, max_iter=100000).fit(x, y).coef_)
    total = lasso + ridge
    return list(LogisticRegression(penalty="elasticnet", solver="saga", C=1 / total, l1_ratio=lasso / total, tol=1e-10,
                                   max_iter=100000).fit(x, y).coef_[0])


def same(name, got, wanted):
    for j, (a, b) in enumerate(zip(got, wanted)):
        assert abs(a - b) < TOLERANCE, f"{name}: weight {j} is {a}, wanted {b}"
        assert (a == 0) == (abs(b) < 1e-9), f"{name}: weight {j} is {a}, wanted {b}"


def main():
    table, coefficients, kind, lasso, ridge = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
    with open(table, encoding="utf-8") as file:
        rows = [[float(v) for v in row] for row in list(csv.reader(file))[1:]]
    columns = [standardise(c) for c in list(zip(*rows))[:-1]]
    x, y = [list(row) for row in zip(*columns)], [row[-1] for row in rows]
    if kind == "linear":
        y = standardise(y)
    with open(coefficients, encoding="utf-8") as file:
        got = [c["standardised"] for c in json.load(file)["outputs"][0]["coefficients"]]
    wanted = minimum(x, y, kind, lasso, ridge)
    assert any(v == 0 for v in wanted) and any(v != 0 for v in wanted), wanted
    same("minimum", got, wanted)
    try:
        same("scikit-learn", got, of_sklearn(x, y, kind, lasso, ridge))
        print("compared with scikit-learn")
    except ImportError:
        print("not compared: no scikit-learn")


if __name__ == "__main__":
    main()
