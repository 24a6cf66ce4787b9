#!/usr/bin/env python3
"""Writes docs/op-matrix.md from what the tests of the ops ran: which op computes which dtype on which device, and
what is known of its gradients.
    gen_op_matrix.py [--check] FOLDER
FOLDER holds the records (ops-DEVICE.tsv, grad-DEVICE.tsv) that test_ops and test_grad write in a build; ctest runs
this with --check, which fails when the file is stale, when a cell failed, or when the matrix has a hole; a page made
with other devices than these records is not compared."""
import csv
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/op-matrix.md"
DTYPES = "f32 f64 f16 bf16 i32 i64 u8 bool i8 i16 u16 u32".split()
EVERYWHERE = DTYPES[:8]  # what every device has; the others are refused where a device lacks them
HEAD = """# Ops, dtypes, devices

Written by `tools/gen_op_matrix.py` from the records of `test_ops` and `test_grad`: do not edit. `ctest` fails when
this page is not what the tests ran.

Devices: {devices}.

- `yes`: compared with a reference written from the definition, on contiguous, transposed, permuted, sliced, stepped,
  flipped, broadcast, padded and reshaped operands, ranks 0 to 8, sizes around the edges of vectors and tiles, and
  special values, within the bounds of `tests/ops/tolerance.h`. A device's name alone: only there.
- `-`: refused with `WEFT_ERR_DTYPE`. Empty: the op has no operand of that dtype.
- gradient: `yes` where it agrees with finite differences of fourth order in f64 (and its value in f32, f16 and bf16
  with that in f64), `0` where it is 0 everywhere, `none` where asking for it is an error.
- second: the gradient of the gradient agrees with differences of the gradient.

"""


def public_ops():
    """The functions that a program calls, in the order of the table."""
    with open(os.path.join(ROOT, "src/ops/ops.def"), encoding="utf-8") as table:
        text = table.read()
    names = re.findall(r"^W_(?:ELEM[123]\(\w+,\s*|FUNC\()(\w+),", text, re.M)
    return names, re.findall(r"^W_NODE\(\w+,\s*(\w+),", text, re.M)


def records(folder, kind):
    """{device: rows} of the records of one program."""
    found = {}
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(kind + r"-(\w+)\.tsv", name)
        if match and os.path.getsize(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                found[match[1]] = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return found


def failures(found):
    """Cells whose worst error is beyond its bound."""
    return [f"{row[0]} {row[1]} {device} {row[4]}" for device, rows in found.items() for row in rows
            if not float(row[7]) <= 1]


def dtype_cell(ops, name, dtype):
    kinds = {device: {row[3] for row in rows if row[0] == name and row[1] == dtype} for device, rows in ops.items()}
    computed = [device for device in kinds if "value" in kinds[device]]
    if computed:
        return "yes" if len(computed) == len(kinds) else ", ".join(computed)
    return "-" if any(kinds.values()) else ""


def gradient_cells(grads, name):
    words = {row[4].split()[0] for rows in grads.values() for row in rows if row[0] == name}
    first = "yes" if "first" in words else "0" if "zero" in words else "none" if "none" in words else ""
    return first, "yes" if "second" in words else ""


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
    columns = ["op"] + DTYPES + ["gradient", "second"]
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for name in functions + [n for n in nodes if n not in functions and n in by_op]:
        cells = {device: by_op.get(name, {}).get(device, []) for device in ops}
        row = [dtype_cell(cells, name, dtype) for dtype in DTYPES]
        if name in functions:
            holes += [f"{name} {dtype}" for dtype, cell in zip(DTYPES, row) if not cell and dtype in EVERYWHERE]
            holes += [f"{name} gradient"] * (not gradient_cells(grads_by_op.get(name, {}), name)[0])
        lines.append("| " + " | ".join([f"`{name}`"] + row + list(gradient_cells(grads_by_op.get(name, {}), name))) + " |")
    return HEAD.format(devices=", ".join(sorted(ops))) + "\n".join(lines) + "\n", holes


def main(arguments):
    check = "--check" in arguments
    folders = [a for a in arguments if a != "--check"]
    if len(folders) != 1:
        sys.exit(__doc__)
    ops, grads = records(folders[0], "ops"), records(folders[0], "grad")
    if not ops or not grads:
        sys.exit(f"{folders[0]} has no records: run test_ops and test_grad first (ctest -R 'ops_|grad_')")
    bad = failures(ops) + failures(grads)
    text, holes = page(ops, grads)
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
