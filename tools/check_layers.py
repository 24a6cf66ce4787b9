#!/usr/bin/env python3
"""Holds the order of the folders of src/: a file includes headers of its own folder, of lower folders
and of include/weft, and nothing else. Folders of one tier may include one another as long as no
circle arises. JSON is parsed and written by base/json.h alone."""

import re
import sys

import c_text

TIERS = [["base"], ["graph"], ["kernel"], ["heavy"], ["ops"], ["autodiff"], ["device"], ["compiler"],
         ["nn", "optim", "data", "text", "io"], ["train"], ["cli"]]
RANK = {folder: rank for rank, tier in enumerate(TIERS) for folder in tier}
# Lower folders that are out of sight all the same: kernels and devices know nothing of nodes.
UNSEEN = {"kernel": {"graph/graph.h", "graph/node.h"}, "heavy": {"graph/graph.h", "graph/node.h"}, "device": {"graph/graph.h", "graph/node.h"}}
# Rooms that may not see other rooms: passes are pure, and a GPU backend knows what all GPUs share, never the reverse.
UNSEEN_ROOMS = {"compiler/passes": ("compiler/runtime", "compiler/profile"),
                "device/cpu": ("device/gpu", "device/cuda", "device/opencl", "device/interp", "device/null"),
                "device/gpu": ("device/cpu", "device/cuda", "device/opencl", "device/interp", "device/null"),
                "device/cuda": ("device/cpu", "device/opencl", "device/interp", "device/null"),
                "device/opencl": ("device/cpu", "device/cuda", "device/interp", "device/null"),
                "device/interp": ("device/cpu", "device/gpu", "device/cuda", "device/opencl", "device/null")}
# From nn/ upwards, code calls tensor functions. Of the folders that make them work it sees these headers alone.
INNER = {"kernel", "heavy", "autodiff", "device", "compiler"}
DOORS = {"nn": {"compiler/runtime/derive.h", "device/cpu/tile/random_fill.h", "device/device.h"},
         "optim": {"autodiff/autodiff.h", "compiler/profile/profile.h", "compiler/runtime/derive.h"},
         "data": {"compiler/profile/profile.h", "compiler/runtime/derive.h", "device/device.h"},
         "train": {"compiler/profile/profile.h", "device/device.h", "device/null/null.h"},
         "cli": {"compiler/profile/price.h", "compiler/profile/profile.h", "device/cuda/components.h", "device/device.h",
                 "device/gpu/backend/cache.h", "device/opencl/devices.h"},
         "text": set(), "io": set()}
# Headers of other projects belong to the command alone; libweft stands on these few.
COMMAND_ONLY = re.compile(r"<(yaml\.h|curl/.*|protobuf-c/.*)>")
# What jansson does silently wrong where memory is short; base/json.h says how instead.
UNSAFE_JSON = re.compile(r"\b(json_load\w*|json_dump\w*|json_v?unpack\w*|json_decref|json_set_alloc_funcs\w*)\s*\(")
# The command prints names from files, so that it prints by train/print.h.
PRINTS = re.compile(r"(?<!\w)(printf|puts|vprintf) *\(|(?<!\w)(fprintf|vfprintf|fwrite|json_dumpf) *\([^;]*\bstd(out|err)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<][^">\n]+[">])', re.M)


def check_source(path, target, sideways):
    """What is wrong with one include of a file in src/, or None."""
    folder = path.parts[1]
    if target.startswith("<"):
        if RANK[folder] < RANK["train"] and COMMAND_ONLY.match(target):
            return f"{target} belongs to the command (train/, cli/)"
        return None
    name = target[1:-1]
    other = name.split("/")[0]
    if "/" not in name:
        return f'{target} must be written with its folder: "{folder}/{name}"'
    if other == "weft":
        return f"public headers are written <{name}>"
    if (c_text.ROOT / "src" / name).exists() and other in RANK:
        if RANK[other] > RANK[folder] and not name.endswith(".def"):  # a table is nobody's code
            return f"{folder}/ may not know {other}/, which stands above it"
        if name in UNSEEN.get(folder, ()):
            return f"{folder}/ may not know {name}"
        room = "/".join(path.parts[1:3])
        if name.startswith(tuple(hidden + "/" for hidden in UNSEEN_ROOMS.get(room, ()))):
            return f"{room}/ may not know {name}"
        if folder in DOORS and other in INNER and name not in DOORS[folder] and not name.endswith(".def"):
            return f"{folder}/ may not know {name}: see DOORS in tools/check_layers.py"
        if other != folder and RANK[other] == RANK[folder]:
            sideways.setdefault(folder, set()).add(other)
        return None
    return f"{target}: no such file in src/"


def check_public(target):
    if target.startswith('"'):
        return f"public headers include <weft/...> and the standard library, not {target}"
    return None


def circles(sideways):
    """Folders of one tier that reach themselves."""
    found = []
    for start in sorted(sideways):
        seen, open_ = set(), [start]
        while open_:
            for other in sideways.get(open_.pop(), ()):
                if other == start:
                    found.append(f"src/{start}: a circle through {', '.join(sorted(seen)) or other}")
                elif other not in seen:
                    seen.add(other)
                    open_.append(other)
    return sorted(set(found))


def main():
    problems, sideways, count = [], {}, 0
    sources = c_text.files("src/**/*.[ch]", "src/**/*.def", "src/**/*.inc")
    for path in sources + c_text.files("include/weft/*.h"):
        text = c_text.read(path)
        if path.parts[0] == "src" and (len(path.parts) < 3 or path.parts[1] not in RANK):
            problems.append(f"{path}: not in one of the folders {', '.join(RANK)}")
            continue
        if path.parts[:2] != ("src", "base"):
            for match in UNSAFE_JSON.finditer(text):
                problems.append(f"{path}:{c_text.line_of(text, match.start(1))}: {match[1]}: use base/json.h")
        if path.parts[1] in ("train", "cli"):
            problems += [f"{path}:{c_text.line_of(text, match.start())}: prints past train/print.h"
                         for match in PRINTS.finditer(text)]
        for match in INCLUDE.finditer(text):
            count += 1
            if path.parts[0] == "src":
                problem = check_source(path, match[1], sideways)
            else:
                problem = check_public(match[1])
            if problem:
                problems.append(f"{path}:{c_text.line_of(text, match.start(1))}: {problem}")
    return c_text.report("layers", problems + circles(sideways), f"{count} includes")


if __name__ == "__main__":
    sys.exit(main())
