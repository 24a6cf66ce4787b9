#!/usr/bin/env python3
"""Compares the optimizer's state in two checkpoints, which one or many processes wrote. Joins the parts of an array by their
places in state.json. Must not know: models.

Use: same_states.py CHECKPOINT CHECKPOINT"""

import json
import math
import pathlib
import struct
import sys


def parts_of(folder):
    """Yields name, first element, shape of the whole array and bytes of each part in the files of the optimizer."""
    for file in json.loads((folder / "state.json").read_text())["files"][1:]:
        data = (folder / file["name"]).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        for tensor in file["tensors"]:
            begin, end = header[tensor["name"]]["data_offsets"]
            yield tensor["name"], tensor.get("from", 0), tensor.get("of", tensor["shape"]), data[8 + length + begin:8 + length + end]


def arrays_of(folder):
    parts, arrays = {}, {}
    for name, first, shape, data in parts_of(folder):
        parts.setdefault((name, tuple(shape)), []).append((first, data))
    for (name, shape), pieces in parts.items():
        arrays[name] = shape, b"".join(data for _, data in sorted(pieces))
        size = len(arrays[name][1]) / math.prod(shape)
        place = 0
        for first, data in sorted(pieces):
            if first * size != place:
                sys.exit(f"{folder}: {name}: a part begins at byte {first * size:g} instead of {place}")
            place += len(data)
    return arrays


one, two = (arrays_of(pathlib.Path(path)) for path in sys.argv[1:3])
if not one or one.keys() != two.keys():
    sys.exit(f"the arrays differ: {sorted(one.keys() ^ two.keys()) or 'there are none'}")
for name, array in one.items():
    if array != two[name]:
        sys.exit(f"{name} differs")
