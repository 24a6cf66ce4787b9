"""What the checks of this folder share: the files of the project, and C with its comments, strings and
preprocessor lines blanked out so that only code is left, every line in its place."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.S | re.M)


def files(*patterns):
    """Paths of the project's own files, relative to its root, in order."""
    found = {path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def is_generated(text):
    return re.search(r"(Generated|Written) by tools/", text[:400]) is not None


def blank(text, pattern=_NOT_CODE):
    """The text with every match replaced by spaces, line breaks kept."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def report(name, problems, checked):
    """Prints the problems and a verdict; the exit status."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked}, " + (f"{len(problems)} problems" if problems else "ok"))
    return 1 if problems else 0
