#!/usr/bin/env python3
"""Holds the length of files (800 lines) and functions (60 lines), of kernels too. Where clang-format does not see to it
(.cl, .cu, .def), also the length of lines (120 columns), without tabs and spaces at their end. What must be longer is
named, with its reason, in tools/size_allow.txt:
    src/x/y.c                500 why the file is long
    src/x/y.c:function       90 why the function is long
The number is the length it may have; an entry that is no longer needed is an error.

A function of src that has no prefix must not have the same name in five files or more: profiles and backtraces could
not tell them apart."""

import ast
import re
import sys

import c_text

FILE_LINES, FUNCTION_LINES, COLUMNS, SAME_NAME = 800, 60, 120, 5
UNFORMATTED = {".cl", ".cu", ".def"}
ALLOW = "tools/size_allow.txt"
NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__", "defined", "_Static_assert",
            "W_ITEMS"}


def c_functions(text):
    """(name, first line, lines) of each function of a C file, found by its braces at the outermost level."""
    code = c_text.blank(text)
    code = re.sub(r"extern\s+\{", lambda m: " " * len(m[0]), code)  # extern "C" {
    depth, start, opened = 0, 0, None
    for match in re.finditer(r"[{};]", code):
        symbol, at = match[0], match.start()
        if symbol == "{":
            if depth == 0:
                head = code[start:at]
                names = [n for n in NAME.findall(head) if n not in KEYWORDS]
                is_function = head.rstrip().endswith(")") and "=" not in head and names
                opened = (names[0], c_text.line_of(code, start + len(head) - len(head.lstrip()))) \
                    if is_function else None
            depth += 1
        elif symbol == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if opened:
                    yield opened[0], opened[1], c_text.line_of(code, at) - opened[1] + 1
                start, opened = at + 1, None
        elif depth == 0:
            start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def line_faults(path, text):
    """What is wrong with lines of a file that no formatter writes."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: the line has {len(line)} columns, more than {COLUMNS}"
        if "\t" in line or line != line.rstrip():
            yield f"{path}:{number}: the line has a tab, or spaces at its end"


def read_allowances():
    allowed = {}
    for line in c_text.read(ALLOW).splitlines():
        words = line.split(None, 2)
        if words and not line.startswith("#"):
            allowed[words[0]] = int(words[1])
    return allowed


def main():
    allowed, used, problems, functions, homes = read_allowances(), set(), [], 0, {}

    def hold(key, where, what, lines, limit):
        if lines > limit:
            used.add(key)
            limit = allowed.get(key, limit)
        if lines > limit:
            problems.append(f"{where}: {what} has {lines} lines, more than {limit}")

    paths = c_text.files("src/**/*.[ch]", "src/**/*.inc", "src/**/*.def", "src/**/*.cl", "src/**/*.cu",
                         "include/**/*.h", "tests/**/*.[ch]", "bench/**/*.[ch]",
                         "examples/**/*.[ch]", "**/tools/*.py", "tests/**/*.py", "bench/**/*.py")
    paths = [p for p in paths if not p.parts[0].startswith("build")]
    for path in paths:
        text = c_text.read(path)
        if c_text.is_generated(text):
            continue
        hold(str(path), str(path), "the file", len(text.splitlines()), FILE_LINES)
        if path.suffix in UNFORMATTED:
            problems += line_faults(path, text)
        parts = python_functions(text) if path.suffix == ".py" else c_functions(text)
        for name, line, lines in parts:
            functions += 1
            if path.parts[0] == "src" and path.suffix == ".c":
                homes.setdefault(name, set()).add(str(path))
            hold(f"{path}:{name}", f"{path}:{line}", name, lines, FUNCTION_LINES)
    for name, files in sorted(homes.items()):
        if len(files) >= SAME_NAME and name.islower():
            problems.append(f"{name} is a function of {len(files)} files: begin its name with its module's "
                            f"({', '.join(sorted(files)[:3])}, ...)")
    for key in sorted(set(allowed) - used):
        problems.append(f"{ALLOW}: {key} needs no entry")
    return c_text.report("sizes", problems, f"{len(paths)} files, {functions} functions")


if __name__ == "__main__":
    sys.exit(main())
