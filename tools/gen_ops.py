#!/usr/bin/env python3
"""Writes include/weft/ops.h from src/ops/ops.def. With --check it writes nothing and fails if the file is stale."""
import os
import sys
import textwrap

import c_text

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

#include <weft/op_options.h>

#ifdef __cplusplus
extern "C" {
#endif
"""
TAIL = """
#ifdef __cplusplus
}
#endif
#endif
"""


OPERANDS = {"W_ELEM1": ["x"], "W_ELEM2": ["a", "b"], "W_ELEM3": ["condition", "a", "b"]}


def rows(text):
    """Yields (name, parameters, arguments, doc) of each public function, in the order of the table."""
    for macro, arguments in c_text.macro_calls(text, "W_ELEM[123]|W_FUNC"):
        doc = c_text.c_string(arguments[-1])
        if macro == "W_FUNC":
            name, parameters, passed, _ = arguments
            yield name, parameters[1:-1], passed[1:-1], doc
        else:
            _, name, dtypes, result = arguments[:4]
            operands = OPERANDS[macro]
            broadcasts = "" if len(operands) == 1 else "; broadcasts"
            doc += f". [{dtypes.lower()}{' -> bool' if result == 'BOOL' else ''}{broadcasts}]"
            yield name, ", ".join("weft_tensor *" + n for n in operands), ", ".join(operands), doc


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
