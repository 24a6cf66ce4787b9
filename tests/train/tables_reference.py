#!/usr/bin/env python3
"""Prints the reference results for test_table_figures.sh and docs/results.md: scikit-learn's linear and logistic regression
on the same rows. Every fifth row of a table (rows 5, 10, ..., counted from 1) is test data, the others are training data.

    tables_reference.py FOLDER       FOLDER: has iris.csv, breast_cancer.csv, digits.csv, diabetes.csv"""
import sys

import numpy as np
import sklearn
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

print("scikit-learn", sklearn.__version__)
for name in ("iris", "breast_cancer", "digits", "diabetes"):
    table = np.loadtxt(f"{sys.argv[1]}/{name}.csv", delimiter=",", skiprows=1)
    test = np.arange(1, len(table) + 1) % 5 == 0
    x, y = table[:, :-1], table[:, -1]
    for ridge in (0, 1, 10):
        if name == "diabetes":
            model = Ridge(alpha=ridge) if ridge else LinearRegression()
        else:
            model = LogisticRegression(C=1 / ridge if ridge else np.inf, max_iter=100000, tol=1e-8)
        fit = make_pipeline(StandardScaler(), model).fit(x[~test], y[~test])
        said = fit.predict(x[test])
        line = f"{name:14} ridge {ridge:2}  score {fit.score(x[test], y[test]):.4f}"
        if name == "diabetes":
            line += f"  rmse {metrics.root_mean_squared_error(y[test], said):.3f}  mae {metrics.mean_absolute_error(y[test], said):.3f}"
        else:
            p = fit.predict_proba(x[test])
            auc = metrics.roc_auc_score(y[test], p[:, 1] if p.shape[1] == 2 else p, multi_class="ovr")
            line += f"  auc {auc:.4f}  f1 {metrics.f1_score(y[test], said, average='macro'):.4f}  log loss {metrics.log_loss(y[test], p):.4f}"
        print(line)
        if ridge == 1 and name == "diabetes":
            print("    coefficients", " ".join(f"{c:.4f}" for c in model.coef_), f"{model.intercept_:.4f}")
