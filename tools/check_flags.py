#!/usr/bin/env python3
"""Checks the compiler flags. Every source of src/ must be compiled as strict C17, with all warnings, without
contraction of a * b + c, and without flags that let the compiler reorder floating-point arithmetic."""

import json
import pathlib
import sys

import c_text

WANTED = {"-std=c17", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-fvisibility=hidden",
          "-ffp-contract=off"}
FORBIDDEN = {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math",
             "-freciprocal-math", "-ffinite-math-only"}
# The command is not a library, so its symbols need not be hidden.
COMMAND = ("train", "cli")


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    problems, count = [], 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if c_text.ROOT / "src" not in path.parents:
            continue
        count += 1
        name, flags = path.relative_to(c_text.ROOT), set(entry["command"].split())
        wanted = WANTED - {"-fvisibility=hidden"} if name.parts[1] in COMMAND else WANTED
        problems += [f"{name}: compiled without {flag}" for flag in sorted(wanted - flags)]
        problems += [f"{name}: compiled with {flag}" for flag in sorted(FORBIDDEN & flags)]
    return c_text.report("flags", problems, f"{count} compilations")


if __name__ == "__main__":
    sys.exit(main())
