#!/usr/bin/env python3
"""Writes include/weft/ops.h from src/ops/ops.def. With --check it writes nothing and fails if the file is stale."""
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """/* Tensor functions. Written by tools/gen_ops.py from src/ops/ops.def: do not edit.
 *
 * Each function takes and returns tensors of one context. A failure gives a poisoned tensor. The macro of
 * the same name passes the caller's file and line on. The plain function is for bindings and function
 * pointers.
 *
 * Brackets after a description name the dtypes that an op takes:
 * - [float]: all floats
 * - [number]: floats and integers
 * - [integer]: integers and bool
 * - [any]: every dtype that is not complex
 * - An arrow names the dtype of the result.
 *
 * Complex numbers are taken by the ops that are defined for them: by exp, mul and eq, not by lt.
 *
 * [broadcasts]: operands of unequal shapes are repeated as in NumPy. Shapes are aligned at their last
 * dimensions. Two extents must be equal, or one of them 1, which is repeated. Dimensions that an operand
 * lacks count as 1. Other shapes are WEFT_ERR_SHAPE.
 *
 * Dtypes are never converted. Operands of unequal dtypes are WEFT_ERR_DTYPE, also if one is a bool or a
 * scalar tensor. Convert one with weft_cast. A C number (weft_add_scalar) takes the dtype of x. A number
 * that this dtype does not have, such as 0.5 for i32, is WEFT_ERR_ARGUMENT. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include <limits.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the axis of a reduction: reduces all dimensions. */
#define WEFT_ALL_AXES INT_MIN

/* What a loss returns: the mean or the sum of the losses of its elements (cross_entropy: of its rows), or
 * all losses. */
typedef enum weft_reduction { WEFT_MEAN, WEFT_SUM, WEFT_NONE } weft_reduction;

typedef enum weft_pad_mode { WEFT_PAD_REFLECT, WEFT_PAD_REPLICATE, WEFT_PAD_CIRCULAR } weft_pad_mode;

typedef struct weft_attention_options {
    bool causal;    /* query i sees keys up to i + (S - T) */
    double scale;   /* factor of the scores; 0: 1 / sqrt(D) */
    double dropout; /* probability that a weight is dropped */
    /* A bool mask is true where a query sees a key. A float mask is added to the scores; -inf hides a key.
     * The mask broadcasts to (B, H, T, S) without copies in memory. NULL: no mask. */
    weft_tensor *mask;
} weft_attention_options;

typedef struct weft_rotary_options {
    double base;      /* 0: 10000 */
    /* true: channels 2 i and 2 i + 1 are a pair, as in Su et al. and GPT-J. false: channels i and D / 2 +
     * i are a pair, as in the published weights of Llama and GPT-NeoX. */
    bool interleaved;
} weft_rotary_options;

typedef struct weft_cross_entropy_options {
    weft_reduction reduction;
    /* Positions with the target `ignore` do not count, neither in the loss nor in the mean. If all
     * positions are ignored, the mean is 0 (PyTorch: NaN). */
    bool use_ignore;
    int32_t ignore;
    /* Label smoothing: this share of the weight is spread over all classes except those whose logit is
     * -inf (PyTorch's loss is inf if there is one). */
    double smoothing;
    weft_tensor *weights; /* f32 (C): weight of a target of each class, also in the mean; NULL: 1 */
} weft_cross_entropy_options;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_conv_options {
    int64_t stride[2];   /* 0: 1 */
    int64_t padding[2];  /* zeros around x; a transposed convolution cuts this many off each end */
    int64_t dilation[2]; /* 0: 1 */
    int64_t groups;      /* 0: 1 */
    int64_t output_padding[2]; /* transposed: elements added at the end, fewer than stride or dilation */
} weft_conv_options;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_pool_options {
    int64_t size[2];        /* must be set */
    int64_t stride[2];      /* 0: size */
    int64_t padding[2];     /* at most half of size; its value is -inf for a maximum, 0 for a mean */
    int64_t dilation[2];    /* 0: 1 */
    bool exclude_padding;   /* a mean counts only elements that are not padding */
} weft_pool_options;

typedef enum weft_interpolation { WEFT_NEAREST, WEFT_LINEAR } weft_interpolation;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_interpolate_options {
    int64_t size[2]; /* extents of the result; 0: given by scale */
    /* The extent of the result is the extent of x times scale, rounded down. If it equals the extent of x,
     * or with WEFT_NEAREST twice the extent, the ratio of the extents replaces scale, as in PyTorch. */
    double scale[2];
    weft_interpolation mode;
} weft_interpolate_options;

typedef struct weft_batch_norm_options {
    weft_tensor *mean, *variance; /* (C), the running ones in evaluation; NULL: those of the batch */
    double eps;                   /* 0: 1e-5 */
} weft_batch_norm_options;

typedef enum weft_recurrent_kind { WEFT_RNN_TANH, WEFT_RNN_RELU, WEFT_LSTM, WEFT_GRU } weft_recurrent_kind;

typedef struct weft_recurrent_options {
    weft_recurrent_kind kind;
    bool reverse;                   /* walks from the last time step to the first */
    weft_tensor *bias_ih, *bias_hh; /* (G), added to x and to the recurrent matmul; NULL: 0 */
    weft_tensor *h, *c;             /* first states (B, H), c only for an LSTM; NULL: 0 */
    weft_tensor *lengths;           /* (B) integers: the number of steps of each sequence; NULL: T */
} weft_recurrent_options;
"""
TAIL = """
#ifdef __cplusplus
}
#endif
#endif
"""


def strings(text):
    return re.findall(r'"((?:[^"\\]|\\.)*)"', text)


def rows(text):
    """Yields (name, parameters, arguments, doc) of each public function, in the order of the table."""
    for line in text.splitlines():
        m = re.match(r"W_ELEM([123])\(\w+,\s*(\w+),\s*(\w+),\s*(\w+),", line)
        if m:
            names = {"1": ["x"], "2": ["a", "b"], "3": ["condition", "a", "b"]}[m.group(1)]
            doc = strings(line)[-1]
            broadcasts = "" if m.group(1) == "1" else "; broadcasts"
            doc += f". [{m.group(3).lower()}{' -> bool' if m.group(4) == 'BOOL' else ''}{broadcasts}]"
            yield m.group(2), ", ".join("weft_tensor *" + n for n in names), ", ".join(names), doc
        m = re.match(r'W_FUNC\((\w+), \((.*?)\), \((.*?)\), "(.*)"\)', line)
        if m:
            yield m.groups()


def comment(doc):
    lines = textwrap.wrap(doc, 104)
    return "/* " + "\n * ".join(lines) + " */\n"


def header():
    with open(ROOT + "/src/ops/ops.def") as f:
        text = f.read()
    out = [HEAD]
    for name, params, args, doc in rows(text):
        out.append("\n" + comment(doc))
        out.append(f"WEFT_API weft_tensor *weft_{name}({params});\n")
        out.append(f"WEFT_API weft_tensor *weft_{name}_at(const char *where, {params});\n")
        out.append(f"#define weft_{name}(...) weft_{name}_at(WEFT_HERE, __VA_ARGS__)\n")
    out.append(TAIL)
    return "".join(out)


def main():
    path = ROOT + "/include/weft/ops.h"
    text = header()
    if "--check" in sys.argv:
        with open(path) as f:
            if f.read() != text:
                sys.exit("include/weft/ops.h is stale: run tools/gen_ops.py")
        return
    with open(path, "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
