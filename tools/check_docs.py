#!/usr/bin/env python3
"""Compiles and runs the code blocks of README.md and docs/*.md.

    check_docs.py --build FOLDER [--cc CC] [FILE.md ...]

A block marked
    ```c            is a whole program if it contains `int main` (weft/weft.h is included for it). Else it is
                    the body of a function with the parameter `ctx`. It runs and must succeed.
    ```c no-run     is compiled, but does not run
    ```c skip       is an extract from the sources, which is not checked
    ```sh test      runs under `bash -e` in a temporary folder that looks like the root of the source
                    tree; files that it writes stay in this folder
Other blocks are ignored. The exit status is 1 if any block failed."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(c|sh)\b([^\n]*)\n(.*?)^```\s*$", re.M | re.S)
TIME_LIMIT = 300  # seconds for a block

FRAGMENT = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>
weft_status snippet(weft_context *ctx);
weft_status snippet(weft_context *ctx) {{
    (void)ctx;
#line {line} "{name}"
{text}
    return WEFT_OK;
}}
int main(void) {{
    weft_context *ctx;
    weft_status status = weft_open(NULL, &ctx);
    if (status == WEFT_OK) status = snippet(ctx);
    if (status != WEFT_OK) fprintf(stderr, "%s: %s\\n", weft_status_name(status), weft_last_error(NULL));
    weft_close(ctx);
    return status != WEFT_OK;
}}
"""
WHOLE = '#include <weft/weft.h>\n#line {line} "{name}"\n{text}\n'


def run(command, **options):
    """Runs the command; returns its exit status and its output."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=TIME_LIMIT, check=False, **options)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return 124, f"did not end within {TIME_LIMIT} seconds\n"


def compile_block(args, work, name, line, text, runs):
    """Compiles a block of C: a program, or the body of a function. Returns the exit status and the output."""
    flags = ["-std=c17", "-Wall", "-Wextra", "-Wno-unused", "-I", str(ROOT / "include")]
    flags += ["-D_POSIX_C_SOURCE=200809L"]
    source = work / "snippet.c"
    frame = WHOLE if "int main" in text else FRAGMENT
    source.write_text(frame.format(line=line, name=name, text=text))
    link = ["-L", str(args.build), "-lweft", "-Wl,-rpath," + str(args.build), "-lm"]
    target = ["-o", str(work / "snippet"), *link] if runs else ["-fsyntax-only"]
    return run([args.cc, *flags, str(source), *target])


def mirror(args, work):
    """Fills a temporary folder with links to all entries of the source tree, and to the build folder as `build`."""
    for entry in ROOT.iterdir():
        if entry.name not in (".git", "runs") and not entry.name.startswith("build"):
            (work / entry.name).symlink_to(entry)
    (work / "build").symlink_to(args.build)


def check(args, name, line, language, marks, text):
    """Checks one block. Returns None, or what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        environment = dict(os.environ, NO_COLOR="1")
        if language == "sh":
            mirror(args, work)
            status, output = run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=work, env=environment)
            return None if status == 0 else f"exit status {status}\n{output}"
        runs = "no-run" not in marks
        status, output = compile_block(args, work, name, line, text, runs)
        if status != 0:
            return "does not compile\n" + output
        if runs:
            mirror(args, work)
            status, output = run([str(work / "snippet")], cwd=work, env=environment)
            return None if status == 0 else f"ran, exit status {status}\n{output}"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), required=True)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    files = args.files or [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
    checked = failed = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            language, marks = block[1], block[2].split()
            if "skip" in marks or (language == "sh" and "test" not in marks):
                continue
            line = text.count("\n", 0, block.start()) + 2
            problem = check(args, str(path), line, language, marks, block[3])
            checked += 1
            if problem:
                failed += 1
                print(f"{path}:{line}: {language} block: {problem}")
    print(f"docs: {checked} blocks checked, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
