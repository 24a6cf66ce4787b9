#!/usr/bin/env python3
"""Runs the tests that a change can reach, the nearest first, as many as fit in a time: `make check-changed`.

    check_changed.py BUILD [COMMIT] [SECONDS]

The change is what differs from COMMIT (default: HEAD), new files included. The nearest tests are those that changed
themselves, or that include a changed file (the dependency files of the build tell). Next come the unit tests of the folder
of a changed source, then tests that include a header of that folder, and scripts that run a changed command. All tests link
the whole library, so `make test` may still find more."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import c_text


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=c_text.ROOT).stdout


def changed_files(commit):
    names = output("git", "diff", "--name-only", commit) + output("git", "ls-files", "--others", "--exclude-standard")
    return sorted(set(names.split()))


def dependencies(build):
    """{file of the project: the test programs whose objects include it}"""
    found, program = collections.defaultdict(set), None
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if not line.startswith(" "):
            match = re.match(r"CMakeFiles/(test_\w+)\.dir/", line)
            program = match[1] if match else None
        elif program and line.strip():
            path = pathlib.Path(os.path.normpath(build / line.strip()))
            if c_text.ROOT in path.parents:
                found[path.relative_to(c_text.ROOT).as_posix()].add(program)
    return found


def registered(build):
    """{test: the program or the script that it runs}, without labels of slow tests"""
    tests = json.loads(output("ctest", "--test-dir", str(build), "--show-only=json-v1"))["tests"]
    found = {}
    for test in tests:
        labels = {label for p in test["properties"] if p["name"] == "LABELS" for label in p["value"]}
        if "command" in test and not labels & {"slow", "repeated", "long"}:
            files = [word for word in test["command"] if re.search(r"(/test_\w+|\.sh|\.py)$", word)]
            found[test["name"]] = files[0] if files else test["command"][0]
    return found


def seconds_of(build):
    """{test: seconds of its last runs}"""
    path = build / "Testing/Temporary/CTestCostData.txt"
    lines = path.read_text().split("---")[0].splitlines() if path.exists() else []
    return {name: float(seconds) for name, _, seconds in map(str.split, lines)}


def near(path, rank, tests, includes):
    """Ranks the tests that a change of the file can reach."""
    def take(distance, names):
        for name in names:
            rank[name] = min(rank.get(name, distance), distance)
    programs = {name: pathlib.Path(command).name for name, command in tests.items()}
    take(0, [name for name, command in tests.items() if command.endswith("/" + path)])
    take(0, [name for name, program in programs.items() if program in includes[path]])
    if path.endswith(".md"):
        take(0, [name for name in tests if name == "docs"])
    if not path.startswith("src/"):
        return
    folder = str(pathlib.PurePath(path).parent)
    units = {source.stem for source in (c_text.ROOT / folder.replace("src", "tests/unit", 1)).glob("test_*.c")}
    take(1, [name for name, program in programs.items() if program in units])
    beside = set().union(*(users for header, users in includes.items() if str(pathlib.PurePath(header).parent) == folder))
    take(2, [name for name, program in programs.items() if program in beside])
    if folder == "src/cli":
        word = re.compile(r"\b%s\b" % pathlib.PurePath(path).stem.split("_")[0])
        scripts = {name: c_text.ROOT / command for name, command in tests.items() if command.endswith(".sh")}
        take(2, [name for name, script in scripts.items() if script.exists() and word.search(script.read_text())])


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    commit, most = (sys.argv[2:] + ["HEAD"])[0], float((sys.argv[3:] + ["90"])[0])
    changed, tests, cost, rank = changed_files(commit), registered(build), seconds_of(build), {}
    includes = dependencies(build)
    for path in changed:
        near(path, rank, tests, includes)
    chosen, time = [], 0.0
    for name in sorted(rank, key=lambda name: (rank[name], cost.get(name, 1.0))):
        if rank[name] == 0 or time + cost.get(name, 1.0) <= 2 * most:
            chosen.append(name)
            time += cost.get(name, 1.0)
    print(f"{len(changed)} changed files reach {len(rank)} tests; {len(chosen)} of them fit in {most:g} seconds")
    if not chosen:
        return 0
    programs = sorted({pathlib.Path(tests[name]).name for name in chosen if pathlib.Path(tests[name]).name.startswith("test_")
                       and not tests[name].endswith((".sh", ".py"))})
    if subprocess.run(["cmake", "--build", str(build), "--target", "product", *programs], check=False).returncode:
        return 1
    pattern = "^(" + "|".join(map(re.escape, chosen)) + ")$"
    return subprocess.run(["ctest", "--test-dir", str(build), "-j", "2", "--output-on-failure", "-R", pattern], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
