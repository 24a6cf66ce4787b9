#!/usr/bin/env python3
"""Checks which folder of src/ uses which, by the list "Which folder uses which" of ARCHITECTURE.md. A folder uses
another if one of its objects calls a function or reads a variable that an object of the other defines (the symbols come
from `nm`), or if one of its files includes a header of the other. Tables (*.def) may be included from any folder. It
needs a build folder. --matrix prints the number of symbols that each folder uses of each other one.

Also checks how headers are included, that only base/json.h is used for JSON, and that the command prints with
train/print.h."""

import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

import c_text

# Uses that the list does not allow: how the path of the file begins, the folders or the headers that it uses, and the reason.
EXCEPTIONS = [
    ("device/registry.c", "device/*", "the table of all devices (devices.def) points to the module of each"),
    ("compiler/passes/", "compiler/program.h", "the last passes fill in the fields of a program, and all see what WEFT_DEBUG asks for"),
    ("train/config/", "train/source/source", "a configuration asks the table of data sources, which reads the configuration"),
    ("train/source/source.c", "train/source", "the table of all data sources (sources.def) points to each"),
    ("train/dataset/dataset", "train/source", "text sources make the tokenizer, and images a part of the summary, by functions instead of fields of the table"),
    ("train/export/", "device/c99", "`weft export --to c` writes what the device c99 made of a program"),
    ("train/analysis/", "device/null device/gpu", "plans and prices come from the device null and from cards that are only described"),
]
# Libraries that only the command may use; libweft has fewer dependencies.
COMMAND = ("train", "cli")
COMMAND_ONLY = re.compile(r"<(yaml\.h|curl/.*|protobuf-c/.*)>")
# jansson's functions that give wrong results silently when memory is short; base/json.h has replacements.
UNSAFE_JSON = re.compile(r"\b(json_load\w*|json_dump\w*|json_v?unpack\w*|json_decref|json_set_alloc_funcs\w*)\s*\(")
# Names from files may contain control characters, so the command must print with train/print.h.
PRINTS = re.compile(r"(?<!\w)(printf|puts|vprintf) *\(|(?<!\w)(fprintf|vfprintf|fwrite|json_dumpf) *\([^;]*\bstd(out|err)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<][^">\n]+[">])', re.M)
PAGE, HEADING = "ARCHITECTURE.md", "## Which folder uses which\n"


def allowed_uses():
    """The list of the page: {folder: the folders that it may use}, from the lowest to the highest."""
    text = c_text.read(PAGE)
    start = text.index(HEADING) + len(HEADING)
    part = text[start:text.find("\n## ", start)]
    return {words[0]: set(words[1:]) for words in (line.split() for line in re.findall(r"^    (\S.*)$", part, re.M))}


def room_of(path, rooms):
    """The longest name of `rooms` that the path, relative to src/, begins with; None: there is none."""
    fitting = [room for room in rooms if path.startswith((room + "/", room + "."))]
    return max(fitting, key=len, default=None)


def objects(build):
    """{path of the object: the file of src/ that it was compiled from}"""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if c_text.ROOT / "src" in path.parents:
            output = pathlib.Path(entry["directory"], re.search(r" -o (\S+)", entry["command"])[1])
            found[str(output)] = path.relative_to(c_text.ROOT / "src").as_posix()
    return found


def symbol_uses(build, problems):
    """Yields (file, symbol, file that defines it)."""
    compiled = objects(build)
    built = {output: path for output, path in compiled.items() if pathlib.Path(output).exists()}
    problems += [f"src/{path}: not compiled in {build}: build it first" for path in sorted(set(compiled.values()) - set(built.values()))]
    listing = subprocess.run(["nm", "-A", "-g", "-P", *built], capture_output=True, text=True, check=True).stdout if built else ""
    defined, wanted = {}, []
    for line in listing.splitlines():
        output, symbol = line.split(": ", 1)
        name, kind = symbol.split()[:2]
        if kind == "U":
            wanted.append((built[output], name))
        else:
            defined[name] = built[output]
    for path, name in sorted(set(wanted)):
        if name in defined:
            yield path, name, defined[name]


def included(path, text, problems):
    """Yields the headers of src/ that a file includes, relative to src/."""
    for match in INCLUDE.finditer(text):
        target, name, problem = match[1], match[1][1:-1], None
        if target.startswith("<"):
            if path.parts[1] not in COMMAND and COMMAND_ONLY.match(target):
                problem = f"{target} may only be included by the command (train/, cli/)"
        elif path.parts[0] != "src":
            problem = f"public headers may include only <weft/...> and the standard library, not {target}"
        elif "/" not in name:
            problem = f'{target} must be written with its folder: "{path.parts[1]}/{name}"'
        elif name.startswith("weft/"):
            problem = f"public headers must be included as <{name}>"
        elif not (c_text.ROOT / "src" / name).exists():
            problem = f"{target}: no such file in src/"
        else:
            yield name
        if problem:
            problems.append(f"{path}:{c_text.line_of(text, match.start(1))}: {problem}")


def text_problems(path, text):
    if path.parts[:2] != ("src", "base"):
        for match in UNSAFE_JSON.finditer(text):
            yield f"{path}:{c_text.line_of(text, match.start(1))}: {match[1]}: use base/json.h"
    if path.parts[1] in COMMAND:
        for match in PRINTS.finditer(text):
            yield f"{path}:{c_text.line_of(text, match.start())}: must print with train/print.h"


def not_allowed(uses, rooms):
    """uses: {(file, folder): what it uses of it, symbols and headers}. Yields a problem for each use that nothing allows, and for each entry
    that nothing needs."""
    order, needed, excepted = list(rooms), set(), set()
    for i, (room, others) in enumerate(rooms.items()):
        for other in sorted(others - set(order[:i])):
            yield f"{PAGE}: {room} may use only folders above it in the list, not {other}"
    for (path, other), names in sorted(uses.items()):
        room = room_of(path, rooms)
        needed.add((room, other))
        if other == "base" or other in rooms[room]:
            continue
        left = set(names)
        for start, patterns, _ in EXCEPTIONS:
            for pattern in patterns.split() if path.startswith(start) else ():
                fitting = names if fnmatch.fnmatchcase(other, pattern) else names & {f'"{pattern}"'}
                excepted |= {(start, pattern)} if fitting else set()
                left -= fitting
        if left:
            some = ", ".join(sorted(left)[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
            yield f"src/{path}: {room} may not use {other} ({some}): move the code, or see {PAGE}"
    for room, others in rooms.items():
        for other in sorted(others):
            if (room, other) not in needed:
                yield f"{PAGE}: {room} uses nothing of {other}: take it from the line"
    for start, patterns, _ in EXCEPTIONS:
        for pattern in patterns.split():
            if (start, pattern) not in excepted:
                yield f"tools/check_layers.py: the exception of {start} for {pattern} is not needed"


def print_matrix(symbols, rooms):
    """rows use, columns define"""
    counts = collections.defaultdict(set)
    for path, name, definer in symbols:
        counts[room_of(path, rooms), room_of(definer, rooms)].add(name)
    width = max(map(len, rooms))
    columns = [room for room in rooms if any(a != b == room for a, b in counts)]
    for i, room in enumerate(columns):
        print(" " * (width + 1) + "    |" * i + f"    {room}")
    for room in rooms:
        print(f"{room:{width}} " + "".join(f"{len(counts[room, other]) if room != other and (room, other) in counts else '.':>5}"
                                           for other in columns))


def main():
    arguments = [word for word in sys.argv[1:] if word != "--matrix"]
    build = pathlib.Path(arguments[0] if arguments else "build")
    rooms, problems, uses = allowed_uses(), [], collections.defaultdict(set)
    symbols = list(symbol_uses(build, problems))
    if "--matrix" in sys.argv:
        print_matrix(symbols, rooms)
    pairs = [(path, definer, name) for path, name, definer in symbols]
    for path in c_text.files("src/**/*.[ch]", "src/**/*.def", "src/**/*.inc", "include/weft/*.h"):
        text = c_text.read(path)
        headers = list(included(path, text, problems))
        if path.parts[0] == "src":
            inside = path.relative_to("src").as_posix()
            problems += text_problems(path, text)
            pairs += [(inside, name, f'"{name}"') for name in headers if not name.endswith(".def")]
            if not room_of(inside, rooms):
                problems.append(f"{path}: its folder is not in the list of {PAGE}")
    for path, other, name in pairs:
        room, used = room_of(path, rooms), room_of(other, rooms)
        if room and used and room != used:
            uses[path, used].add(name)
    problems += not_allowed(uses, rooms)
    return c_text.report("layers", problems, f"{len(rooms)} folders, {len(symbols)} uses of symbols")


if __name__ == "__main__":
    sys.exit(main())
