#!/usr/bin/env python3
"""Checks the public headers. Each must compile alone as C17 and as C++17, must declare only names that begin with
weft_ or WEFT_, and must have a comment above every function. Functions without a blank line between them may
share a comment."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import c_text

COMPILERS = [("c", "c17", [os.environ.get("CC", "cc"), "clang"]), ("c++", "c++17", ["c++", "clang++"])]
FLAGS = ["-Wall", "-Wextra", "-Wundef", "-Werror", "-fsyntax-only"]
FUNCTION = re.compile(r"^(?:WEFT_API|WEFT_CHECKED)\b[^;{]*?\b(\w+)\s*\(", re.M)


def compile_alone(path, language, standard, compiler):
    """Compiles a file that contains only this include, twice. Returns the compiler's errors."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        name = path.relative_to("include")
        source.write(f"#include <{name}>\n#include <{name}>\n")
        source.flush()
        command = [compiler, "-x", language, f"-std={standard}", *FLAGS, "-I", str(c_text.ROOT / "include")]
        done = subprocess.run([*command, source.name], capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""


def undocumented(path, text):
    """Yields functions without a comment directly above them, or above the group of declarations they belong to."""
    lines = text.splitlines()
    for match in FUNCTION.finditer(text):
        first = c_text.line_of(text, match.start())
        at = first - 2  # the line above, counted from 0
        while at >= 0 and lines[at].strip() and not lines[at].rstrip().endswith("*/"):
            at -= 1
        if at < 0 or not lines[at].rstrip().endswith("*/"):
            yield f"{path}:{first}: {match[1]} has no comment"
        if not re.match(r"weft_[a-z0-9]", match[1]):
            yield f"{path}:{first}: {match[1]}: the name of a public function must begin with weft_"


def foreign_macros(path, text):
    for match in re.finditer(r"^#[ \t]*define[ \t]+(\w+)", text, re.M):
        if not re.match(r"(WEFT_|weft_)", match[1]):
            yield f"{path}:{c_text.line_of(text, match.start())}: {match[1]}: the name of a public macro must begin with WEFT_"


def main():
    problems, compiled = [], 0
    headers = c_text.files("include/weft/*.h")
    for path in headers:
        text = c_text.read(path)
        problems += undocumented(path, text)
        problems += foreign_macros(path, text)
        for language, standard, compilers in COMPILERS:
            for compiler in compilers:
                if shutil.which(compiler):
                    compiled += 1
                    output = compile_alone(path, language, standard, compiler)
                    if output:
                        problems.append(f"{path}: {compiler} -std={standard}:\n{output}")
    return c_text.report("headers", problems, f"{len(headers)} headers, {compiled} compilations")


if __name__ == "__main__":
    sys.exit(main())
