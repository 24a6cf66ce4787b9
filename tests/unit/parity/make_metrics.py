#!/usr/bin/env python3
"""Prints scikit-learn's metrics, which test_metrics.c compares with. The data come from the same formula in both."""
import numpy as np
from sklearn import metrics as m

N = 97


def logits(width):
    i, c = np.arange(N)[:, None], np.arange(width)[None, :]
    return np.round(np.sin(i * 0.7 + c * 1.3) * 8) / 4  # rounded, so that some are equal


def show(classes, width, of):
    y, x = (np.arange(N) ** 2 + 3 * np.arange(N)) % 7 % of, logits(width)
    if width == 1:
        said, p = (x[:, 0] > 0).astype(int), x[:, 0]
    else:
        said, p = x.argmax(1), np.exp(x) / np.exp(x).sum(1, keepdims=True)
    each = m.precision_recall_fscore_support(y, said, labels=range(classes), zero_division=0)
    there = sorted(set(y) | set(said))
    macro = m.precision_recall_fscore_support(y, said, labels=there, average="macro", zero_division=0)
    if classes == 2:
        auc = m.roc_auc_score(y, p if width == 1 else x[:, 1] - x[:, 0])
    else:
        auc = np.mean([m.roc_auc_score(y == c, np.round(p[:, c], 12)) for c in sorted(set(y))])
    print(f"width {width}, classes {classes}, occurring {of}")
    print(f"    {{{m.accuracy_score(y, said):.15g}, {auc:.15g}, {macro[0]:.15g}, {macro[1]:.15g}, {macro[2]:.15g}}}")
    print(f"    precision {list(each[0])} recall {list(each[1])} f1 {list(each[2])}")
    print("    confusion", m.confusion_matrix(y, said, labels=range(classes)).ravel().tolist())


show(4, 4, 4)
show(4, 4, 3)  # a class that no sample has
show(2, 2, 2)
show(2, 1, 2)
p, a = logits(3), logits(3) * 0.75 + 0.125 * (np.arange(N)[:, None] % 5)
a[:, 2] = 1.5  # never changes
print(f"numbers {m.r2_score(a, p):.15g} {m.root_mean_squared_error(a, p):.15g} {m.mean_absolute_error(a, p):.15g}")
