#!/usr/bin/env python3
"""Writes the table of limits in SECURITY.md from src/base/limits.h. With --check it only compares, and fails if the
page is out of date. Text outside the two marks is written by hand and is kept."""

import re
import sys

import c_text

PAGE = "SECURITY.md"
BEGIN = "<!-- limits: begin; written by tools/gen_limits.py -->\n"
END = "<!-- limits: end -->\n"
LINE = re.compile(r"/\* ---- (.*?) ---- \*/|#define \w+\s+(?:\\\s*)?(?:\(\(\w+\)(.*?)\)|(\d+))\s*/\* (.*?) \*/", re.S)


def shown(value):
    """Writes a number; a large power of two as one."""
    return f"2^{value.bit_length() - 1}" if value > 65536 and value & (value - 1) == 0 else f"{value:,}"


def table():
    out, reader = ["| what is read | limit | of what |\n| --- | --- | --- |\n"], ""
    for section, cast, number, words in LINE.findall(c_text.read("src/base/limits.h")):
        if section:
            reader = section
            continue
        value = number or cast
        left, _, shift = value.partition("<<")
        words = " ".join(word for word in words.split() if word != "\\")  # a line of a macro ends with a backslash
        out.append(f"| {reader} | {shown(int(left) << int(shift or 0))} | {words} |\n")
    return "".join(out)


def main():
    page = c_text.read(PAGE)
    head, rest = page.split(BEGIN)
    wanted = head + BEGIN + table() + END + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        return 0 if page == wanted else 1
    (c_text.ROOT / PAGE).write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
