#!/usr/bin/env python3
"""Writes docs/op-matrix.md from what the tests of the ops ran: which op computes which dtype on which device, and
what is known of its gradients.
    gen_op_matrix.py [--check] FOLDER
FOLDER holds the records (ops-DEVICE.tsv, or ops-DEVICE.1.tsv and so on for parts, and grad-DEVICE.tsv) that test_ops
and test_grad write in a build; ctest runs this with --check, which fails when the file is stale, when a cell failed, or
when the matrix of any device has a hole (that of cuda, of which there is a record where the tests' driver is, too); a page made
with other devices than these records is not compared."""
import csv
import os
import re
import sys

import c_text

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/op-matrix.md"
DTYPES = "f32 f64 f16 bf16 i32 i64 u8 bool i8 i16 u16 u32 u64".split()
FLOATS = DTYPES[:4]
APART = ["cuda"] # on a driver of the tests, where there is a compiler for it
COMPLEX = ["c64", "c128"] # where there is no cell they are refused
HEAD = """# Ops, dtypes, devices

Written by `tools/gen_op_matrix.py` from the records of `test_ops` and `test_grad`: do not edit. `ctest` fails when
this page is not what the tests ran.

Devices: {devices}.

- `yes`: compared with a reference written from the definition, on contiguous, transposed, permuted, sliced, stepped,
  flipped, broadcast, padded and reshaped operands, ranks 0 to 8, sizes around the edges of vectors and tiles, and
  special values, within the bounds of `tests/ops/tolerance.h`, on every device. On opencl, where a kernel takes a
  tenth of a second to compile, each op on each dtype, in f32 each of its ways (modes of padding and interpolation, kinds of
  recurrent layers), and a sample of the other cells, together with all cells whose kernels are then known.
- `-`: refused with `WEFT_ERR_DTYPE`. Empty: the op has no operand of that dtype, or it refuses complex numbers as
  many others do.
- gradient: the dtypes in which it agrees with finite differences of fourth order: f64 with the differences, the others
  with its value in f64 (16 bits where the op is smooth, or where rounding keeps operands away from its kinks).
  `0`: it is 0 everywhere; `none`: asking for it is an error.
- second: the gradient of the gradient agrees with differences of the gradient (on opencl for a sample of the ops).

"""


def public_ops():
    """The functions that a program calls, in the order of the table."""
    text = c_text.read("src/ops/ops.def")
    names = [arguments[0] if macro == "W_FUNC" else arguments[1]
             for macro, arguments in c_text.macro_calls(text, "W_ELEM[123]|W_FUNC")]
    return names, [arguments[1] for _, arguments in c_text.macro_calls(text, "W_NODE")]


def records(folder, kind):
    """{device: rows} of the records of one program."""
    found = {}
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(kind + r"-(\w+)(\.\d+)?\.tsv", name)
        if match and os.path.getsize(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                found.setdefault(match[1], []).extend(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return found


def failures(found):
    """Cells whose worst error is beyond its bound."""
    return [f"{row[0]} {row[1]} {device} {row[4]}" for device, rows in found.items() for row in rows
            if not float(row[7]) <= 1]


def dtype_cell(ops, name, dtype):
    kinds = {device: {row[3] for row in rows if row[0] == name and row[1] == dtype} for device, rows in ops.items()}
    computed = [device for device in kinds if "value" in kinds[device]]
    return "yes" if len(computed) == len(kinds) else "" if computed else "-" if any(kinds.values()) else ""


def on_devices(text, having, devices):
    """A cell's text, with the devices that it is true of where they are not all."""
    return text if len(having) == len(devices) else f"{text} ({', '.join(having)})" if having else ""


def gradient_cells(grads, name, devices):
    """What is known of the gradient on each device, as one text where they agree, and of the second one."""
    known, second = {}, False
    for device in devices:
        rows = [(row[4].split()[0], row[1]) for row in grads.get(device, []) if row[0] == name]
        words = {word for word, _ in rows}
        found = {dtype for word, dtype in rows if word in ("first", "narrow")}
        text = " ".join(dtype for dtype in FLOATS if dtype in found)
        text = text or ("0" if "zero" in words else "none" if "none" in words else "")
        known.setdefault(text, []).append(device)
        second = second or "second" in words
    first = "; ".join(on_devices(text, having, devices) for text, having in known.items() if text)
    return first, "yes" if second else "", known


def index(found):
    """Rows by op, so that each is looked at once."""
    by_op = {}
    for device, rows in found.items():
        for row in rows:
            by_op.setdefault(row[0], {}).setdefault(device, []).append(row)
    return by_op


def page(ops, grads):
    functions, nodes = public_ops()
    by_op, grads_by_op, holes = index(ops), index(grads), []
    devices = sorted(grads)
    columns = ["op"] + DTYPES + COMPLEX + ["gradient", "second"]
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for name in functions + [n for n in nodes if n not in functions and n in by_op]:
        cells = {device: by_op.get(name, {}).get(device, []) for device in ops}
        row = [dtype_cell(cells, name, dtype) for dtype in DTYPES + COMPLEX]
        first, second, known = gradient_cells(grads_by_op.get(name, {}), name, devices)
        if name in functions:
            holes += [f"{name} {dtype}" for dtype, cell in zip(DTYPES, row) if not cell]
            holes += [f"{name} {dtype} {device}" for dtype in DTYPES for device in cells
                      if not any(r[1] == dtype for r in cells[device])]
            some = {r[1] for device in cells for r in cells[device]} # complex numbers are no column of every op
            holes += [f"{name} {dtype}" for dtype, cell in zip(COMPLEX, row[len(DTYPES):]) if dtype in some and not cell]
            holes += [f"{name} gradient: {text or 'nothing'} {having}" for text, having in known.items()
                      if not text or len(known) > 1]
        lines.append("| " + " | ".join([f"`{name}`"] + row + [first, second]) + " |")
    return HEAD.format(devices=", ".join(sorted(ops))) + "\n".join(lines) + "\n", holes


def holes_of(name, rows, others):
    """Cells that the devices `others` compute and that one, which is no part of the page, has not."""
    functions, _ = public_ops()
    cells = {device: {(row[0], row[1]) for row in found if row[3] == "value"} for device, found in others.items()}
    has = {(row[0], row[1]) for row in rows if row[3] == "value"}
    return [f"{op} {dtype} {name}" for op, dtype in sorted(set.intersection(*cells.values()) - has) if op in functions]


def main(arguments):
    check = "--check" in arguments
    folders = [a for a in arguments if a != "--check"]
    if len(folders) != 1:
        sys.exit(__doc__)
    ops, grads = records(folders[0], "ops"), records(folders[0], "grad")
    if not ops or not grads:
        sys.exit(f"{folders[0]} has no records: run test_ops and test_grad first (ctest -R 'ops_|grad_')")
    bad = failures(ops) + failures(grads)
    apart = {name: ops.pop(name) for name in APART if name in ops}
    text, holes = page(ops, grads)
    for name, rows in apart.items():
        holes += holes_of(name, rows, ops)
    if bad or holes:
        sys.exit("\n".join([f"failed: {b}" for b in bad[:20]] + [f"hole: {h}" for h in holes]))
    path = os.path.join(ROOT, PAGE)
    if not check:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return
    with open(path, encoding="utf-8") as committed:
        page_text = committed.read()
        devices = re.search(r"^Devices: .*$", text, re.M)[0]
        if devices not in page_text:
            print(f"{PAGE} is of other devices: all cells hold, no hole")
        elif page_text != text:
            sys.exit(f"{PAGE} is stale: run tools/gen_op_matrix.py {folders[0]}")
        else:
            print(f"{PAGE} is what the tests ran")


main(sys.argv[1:])
