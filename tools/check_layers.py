#!/usr/bin/env python3
"""Checks the order of the folders of src/. A file may include headers of its own folder, of lower folders and of
include/weft, and nothing else. Folders of one tier may include one another, but not in a cycle. Only base/json.h
may parse and write JSON."""

import re
import sys

import c_text

TIERS = [["base"], ["graph"], ["kernel"], ["heavy"], ["ops"], ["autodiff"], ["device"], ["process"], ["compiler"],
         ["nn", "optim", "data", "text", "io"], ["published"], ["train"], ["cli"]]
RANK = {folder: rank for rank, tier in enumerate(TIERS) for folder in tier}
# Headers of lower folders that are hidden all the same: kernels and devices must not know nodes.
UNSEEN = {"kernel": {"graph/graph.h", "graph/node.h"}, "heavy": {"graph/graph.h", "graph/node.h"}, "device": {"graph/graph.h", "graph/node.h"}}
# Subfolders and the subfolders hidden from them. Passes are pure functions. A GPU backend may use device/gpu, but
# device/gpu may not use a backend.
COMMAND_ROOMS = ("train/run/", "train/report/", "train/analysis/", "train/export/", "train/print.h") # of train, what only the command has
UNSEEN_ROOMS = {"compiler/passes": ("compiler/runtime/", "compiler/profile/"),
                # of train/source, the configuration sees only the table (source.h)
                "train/config": COMMAND_ROOMS + ("train/dataset/", "train/model/"),
                "train/source": COMMAND_ROOMS + ("train/model/",),
                "train/dataset": COMMAND_ROOMS + ("train/model/",),
                "train/model": COMMAND_ROOMS,
                "device/cpu": ("device/gpu/", "device/cuda/", "device/hip/", "device/opencl/", "device/interp/", "device/null/"),
                "device/gpu": ("device/cpu/", "device/cuda/", "device/hip/", "device/opencl/", "device/interp/", "device/null/"),
                "device/cuda": ("device/cpu/", "device/hip/", "device/opencl/", "device/webgpu/", "device/interp/", "device/null/"),
                "device/hip": ("device/cpu/", "device/cuda/", "device/opencl/", "device/webgpu/", "device/interp/", "device/null/"),
                "device/opencl": ("device/cpu/", "device/cuda/", "device/hip/", "device/interp/", "device/null/"),
                "device/webgpu": ("device/cpu/", "device/cuda/", "device/hip/", "device/opencl/", "device/interp/", "device/null/"),
                "device/c99": ("device/cpu/", "device/gpu/", "device/cuda/", "device/hip/", "device/opencl/", "device/interp/", "device/null/"),
                "device/interp": ("device/cpu/", "device/gpu/", "device/cuda/", "device/hip/", "device/opencl/", "device/null/")}
# From nn/ upwards, code calls tensor functions. Of the folders that implement them it may include only these headers.
INNER = {"kernel", "heavy", "autodiff", "device", "compiler"}
DOORS = {"nn": {"compiler/runtime/derive.h", "device/cpu/tile/random_fill.h", "device/device.h"},
         "optim": {"autodiff/autodiff.h", "compiler/profile/profile.h", "compiler/runtime/derive.h"},
         "data": {"compiler/profile/profile.h", "compiler/runtime/derive.h", "device/cpu/cpu.h", "device/device.h", "device/shared_library.h"},
         # device/c99/c99.h: `weft export --to c` writes source from the program that ran last on the device c99
         "train": {"compiler/profile/profile.h", "device/c99/c99.h", "device/device.h", "device/gpu/card/card.h", "device/module.h", "device/null/null.h"},
         "cli": {"compiler/profile/price.h", "compiler/profile/profile.h", "device/device.h",
                 "device/gpu/backend/cache.h", "device/module.h", "device/quiet.h"},
         "text": set(), "io": set(), "published": set()}
# Libraries that only the command may use; libweft has fewer dependencies.
COMMAND_ONLY = re.compile(r"<(yaml\.h|curl/.*|protobuf-c/.*)>")
# jansson's functions that give wrong results silently when memory is short; base/json.h has replacements.
UNSAFE_JSON = re.compile(r"\b(json_load\w*|json_dump\w*|json_v?unpack\w*|json_decref|json_set_alloc_funcs\w*)\s*\(")
# Names from files may contain control characters, so the command must print with train/print.h.
PRINTS = re.compile(r"(?<!\w)(printf|puts|vprintf) *\(|(?<!\w)(fprintf|vfprintf|fwrite|json_dumpf) *\([^;]*\bstd(out|err)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<][^">\n]+[">])', re.M)


def check_source(path, target, sideways):
    """Checks one include of a file in src/. Returns the problem, or None."""
    folder = path.parts[1]
    if target.startswith("<"):
        if RANK[folder] < RANK["train"] and COMMAND_ONLY.match(target):
            return f"{target} may only be included by the command (train/, cli/)"
        return None
    name = target[1:-1]
    other = name.split("/")[0]
    if "/" not in name:
        return f'{target} must be written with its folder: "{folder}/{name}"'
    if other == "weft":
        return f"public headers must be included as <{name}>"
    if (c_text.ROOT / "src" / name).exists() and other in RANK:
        if RANK[other] > RANK[folder] and not name.endswith(".def"):  # tables may be included from any folder
            return f"{folder}/ may not include headers of the higher folder {other}/"
        if name in UNSEEN.get(folder, ()):
            return f"{folder}/ may not include {name}"
        room = "/".join(path.parts[1:3])
        if name.startswith(UNSEEN_ROOMS.get(room, ())) and not name.endswith(".def"):
            return f"{room}/ may not include {name}"
        if folder in DOORS and other in INNER and name not in DOORS[folder] and not name.endswith(".def"):
            return f"{folder}/ may not include {name}: see DOORS in tools/check_layers.py"
        if other != folder and RANK[other] == RANK[folder]:
            sideways.setdefault(folder, set()).add(other)
        return None
    return f"{target}: no such file in src/"


def check_public(target):
    if target.startswith('"'):
        return f"public headers may include only <weft/...> and the standard library, not {target}"
    return None


def circles(sideways):
    """Returns cycles of includes between folders of one tier."""
    found = []
    for start in sorted(sideways):
        seen, open_ = set(), [start]
        while open_:
            for other in sideways.get(open_.pop(), ()):
                if other == start:
                    found.append(f"src/{start}: a cycle of includes through {', '.join(sorted(seen)) or other}")
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
            problems += [f"{path}:{c_text.line_of(text, match.start())}: must print with train/print.h"
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
