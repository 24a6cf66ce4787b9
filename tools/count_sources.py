#!/usr/bin/env python3
"""Counts the distinct kernel sources that tests compile. Each test records its sources in FOLDER (tests/kernel_sources.c).

    count_sources.py FOLDER EACH MATRIX TEST...

The exit status is 1 if there are more than EACH sources for each op on the page MATRIX. It is 77 (skipped) if a test did
not run or there is no device."""
import pathlib
import sys


def main():
    folder, each, tests = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]
    ops = sum(line.startswith("| `") for line in pathlib.Path(sys.argv[3]).read_text().splitlines())
    most = each * ops
    sources = {}
    for test in tests:
        if not (folder / test).exists():
            print(f"skipped: {test} has not run")
            return 77
        sources[test] = set((folder / test).read_text().split())
    total = set().union(*sources.values())
    if not total:
        print("skipped: no test compiled a kernel")
        return 77
    for test, own in sorted(sources.items(), key=lambda item: -len(item[1])):
        others = set().union(*(t for name, t in sources.items() if name != test))
        print(f"{len(own):5} sources, {len(own - others):5} of them in no other test: {test}")
    print(f"{len(total)} distinct sources in {len(tests)} tests; {most} are allowed, {each} for each of {ops} ops")
    return int(len(total) > most)


sys.exit(main())
