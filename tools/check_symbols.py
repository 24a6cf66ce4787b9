#!/usr/bin/env python3
"""Checks the symbols of the libraries in a build folder. The shared library may export only weft_* (not weft__*). The
static library may define only weft_* and weft__*. No object may call a function that prints or that ends the process.
fprintf to a file is allowed; stdout and stderr are not."""

import pathlib
import re
import subprocess
import sys

import c_text

FORBIDDEN = {"abort", "exit", "_exit", "_Exit", "quick_exit", "atexit", "__assert_fail", "raise", "signal",
             "sigaction", "printf", "vprintf", "__printf_chk", "__vprintf_chk", "puts", "putchar", "perror",
             "stdout", "stderr", "setlocale", "setenv", "putenv", "system", "popen", "tmpnam", "mktemp",
             "strtod", "strtof", "atof", "rand", "srand", "drand48"}
ALLOWED = {("signals.c.o", "sigaction")}  # GPU devices restore signal handlers that drivers replace


def symbols(*arguments):
    """Yields (object, kind, name) for each symbol that nm lists."""
    output = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=True).stdout
    member = ""
    for line in output.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        words = line.split()
        if len(words) >= 2 and len(words[-2]) == 1:
            yield member, words[-2], words[-1].split("@")[0]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    problems, exported = [], 0
    for name in ("libweft.so", "libweft.a"):
        if not (build / name).exists():
            return c_text.report("symbols", [f"{build / name} has not been built"], "nothing")
    for _, _, name in symbols("-D", "--defined-only", str(build / "libweft.so")):
        exported += 1
        if not re.match(r"weft_[a-z0-9]", name):
            problems.append(f"libweft.so exports {name}")
    for member, kind, name in symbols("-g", str(build / "libweft.a")):
        if kind == "U" and name in FORBIDDEN and (member, name) not in ALLOWED:
            problems.append(f"{member}: uses {name}, which the library must not use")
        elif kind in "TDBRVWC" and not name.startswith("weft_"):
            problems.append(f"{member}: defines {name}, which does not begin with weft_")
    return c_text.report("symbols", problems, f"{exported} exported")


if __name__ == "__main__":
    sys.exit(main())
