#!/usr/bin/env python3
"""Holds the length of files (800 lines), functions and macros with statements (60 lines), of kernels too, and the number
of fields of a struct of src and include (24). Where clang-format does not see to it (.cl, .cu, .def), also the length
of lines (120 columns), without tabs and spaces at their end. What must be longer is named, with its reason, in
tools/size_allow.txt:
    src/x/y.c                500 why the file is long
    src/x/y.c:function       90 why the function is long
    src/x/y.h:struct.name    30 why the struct has so many fields
The number is the length it may have. A larger number than needed is an error, and so is an entry without need.

A function of src that has no prefix must not have the same name in five files or more: profiles and backtraces could
not tell them apart."""

import ast
import sys

import c_parts
import c_text

FILE_LINES, FUNCTION_LINES, FIELDS, COLUMNS, SAME_NAME = 800, 60, 24, 120, 5
UNFORMATTED = {".cl", ".cu", ".def"}
ALLOW = "tools/size_allow.txt"


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


class Sizes:
    """What was measured, and what is wrong with it."""

    def __init__(self):
        self.allowed, self.used, self.problems = read_allowances(), {}, []
        self.functions, self.homes = 0, {}

    def hold(self, key, where, what, limit):
        """what: a name, a number and a unit."""
        name, size, unit = what
        if size <= limit:
            return
        self.used[key] = max(size, self.used.get(key, 0))
        if size > self.allowed.get(key, limit):
            self.problems.append(f"{where}: {name} has {size} {unit}, more than {self.allowed.get(key, limit)}")

    def measure(self, path, text):
        self.hold(str(path), str(path), ("the file", len(text.splitlines()), "lines"), FILE_LINES)
        if path.suffix in UNFORMATTED:
            self.problems += line_faults(path, text)
        try:
            parts = list(python_functions(text) if path.suffix == ".py" else c_parts.functions(text))
        except ValueError as error:
            self.problems.append(f"{path}: {error}")
            return
        for name, line, lines in parts:
            self.functions += 1
            if path.parts[0] == "src" and path.suffix == ".c":
                self.homes.setdefault(name, set()).add(str(path))
            self.hold(f"{path}:{name}", f"{path}:{line}", (name, lines, "lines"), FUNCTION_LINES)
        for name, line, fields in c_parts.structs(text) if path.parts[0] in ("src", "include") else ():
            self.hold(f"{path}:struct.{name}", f"{path}:{line}", (f"struct {name}", fields, "fields"), FIELDS)

    def finish(self):
        for name, files in sorted(self.homes.items()):
            if len(files) >= SAME_NAME and name.islower():
                self.problems.append(f"{name} is a function of {len(files)} files: begin its name with its module's "
                                     f"({', '.join(sorted(files)[:3])}, ...)")
        for key, size in sorted(self.allowed.items()):
            if key not in self.used:
                self.problems.append(f"{ALLOW}: {key} needs no entry")
            elif self.used[key] < size:
                self.problems.append(f"{ALLOW}: {key} needs only {self.used[key]}")


def main():
    sizes = Sizes()
    paths = c_text.files("src/**/*.[ch]", "src/**/*.inc", "src/**/*.def", "src/**/*.cl", "src/**/*.cu",
                         "include/**/*.h", "tests/**/*.[ch]", "bench/**/*.[ch]",
                         "examples/**/*.[ch]", "**/tools/*.py", "tests/**/*.py", "bench/**/*.py")
    paths = [p for p in paths if not p.parts[0].startswith("build")]
    for path in paths:
        text = c_text.read(path)
        if not c_text.is_generated(text):
            sizes.measure(path, text)
    sizes.finish()
    return c_text.report("sizes", sizes.problems, f"{len(paths)} files, {sizes.functions} functions")


if __name__ == "__main__":
    sys.exit(main())
