"""Shared by the checks in this folder: lists of the project's files, and C text in which comments, strings and
preprocessor lines are replaced by spaces, so that only code is left and line numbers stay the same."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.S | re.M)


def files(*patterns):
    """Sorted paths of the files that match the patterns, relative to the root of the project."""
    found = {path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def is_generated(text):
    return re.search(r"(Generated|Written) by tools/", text[:400]) is not None


def blank(text, pattern=_NOT_CODE):
    """Replaces every match by spaces and keeps line breaks."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


_TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|.', re.S)


def macro_calls(text, names):
    """(name, arguments) of each call at the start of a line of a macro whose name matches the expression `names`, as in a
    .def file. Arguments are source text; a call may span lines."""
    for match in re.finditer(rf"^({names})\(", text, re.M):
        arguments, depth = [""], 1
        for token in _TOKEN.finditer(text, match.end()):
            symbol = token[0]
            depth += (symbol in "([{") - (symbol in ")]}")
            if depth == 0:
                break
            if symbol == "," and depth == 1:
                arguments.append("")
            elif not symbol.startswith("/*"):
                arguments[-1] += symbol if symbol.startswith('"') else re.sub(r"\s", " ", symbol)
        yield match[1], [argument.strip() for argument in arguments]


def c_string(argument):
    """What string literals that stand side by side say."""
    return "".join(ast.literal_eval(literal) for literal in re.findall(r'"(?:\\.|[^"\\])*"', argument))


def report(name, problems, checked):
    """Prints the problems and a summary; returns the exit status."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked}, " + (f"{len(problems)} problems" if problems else "ok"))
    return 1 if problems else 0
