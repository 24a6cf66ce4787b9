"""Finds the functions, long macros and structs of C text, also in kernel sources, for checks of their size."""

import re

import c_text

_COMMENT_OR_STRING = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
_TOKEN = re.compile(r"[{};]|^[ \t]*\#[ \t]*(?P<directive>if|el|endif|define)(?:\\\n|[^\n])*", re.M)
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__", "defined", "_Static_assert",
             "W_ITEMS"}
_STRUCT = re.compile(r"\b(?:struct|union)\b\s*(\w*)\s*(?=\{)")


class _Scan:
    """Where a walk over the tokens of a text is: the depth of its braces, and the function that is open."""

    def __init__(self, text):
        self.tokens = c_text.blank(text, _COMMENT_OR_STRING)
        code = c_text.blank(text)
        self.code = re.sub(r"extern\s+\{", lambda m: " " * len(m[0]), code)  # extern "C" {
        self.depth, self.start, self.opened = 0, 0, None
        self.branches = []

    def open_brace(self, at):
        if self.depth == 0:
            head = self.code[self.start:at]
            names = [n for n in _NAME.findall(head) if n not in _NO_NAMES]
            is_function = head.rstrip().endswith(")") and "=" not in head and names
            first = self.start + len(head) - len(head.lstrip())
            self.opened = (names[0], c_text.line_of(self.code, first)) if is_function else None
        self.depth += 1

    def close_brace(self, at):
        """Returns the function that ends here, or None."""
        self.depth -= 1
        if self.depth > 0:
            return None
        self.depth, ended = 0, self.opened
        self.start, self.opened = at + 1, None
        return (*ended, c_text.line_of(self.code, at) - ended[1] + 1) if ended else None

    def directive(self, word, at, end):
        """All branches of an #if begin in the same place. After the #endif the walk is where the first one ended,
        and the other ones are blank."""
        if word == "if":
            self.branches.append(((self.depth, self.start, self.opened), []))
        elif word == "el" and self.branches:
            before, first = self.branches[-1]
            if not first:
                first.extend([at, (self.depth, self.start, self.opened)])
            self.depth, self.start, self.opened = before
            if self.depth == 0:
                self.start = end
        elif word == "endif" and self.branches:
            _, first = self.branches.pop()
            if first:
                self.depth, self.start, self.opened = first[1]
                self.code = self.code[:first[0]] + c_text.blank(self.code[first[0]:at], re.compile(r"[^\n]+")) + \
                    self.code[at:]


def functions(text):
    """(name, first line, lines) of each function, found by its braces at the outermost level, and of each macro that
    contains statements. Raises ValueError if braces do not match."""
    scan = _Scan(text)
    for token in _TOKEN.finditer(scan.tokens):
        at, word = token.start(), token["directive"]
        if word == "define":
            lines = token[0].count("\n") + 1
            if ";" in token[0] and lines > 1:
                name = re.match(r"\s*#\s*define\s+(\w+)", token[0])
                yield name[1], c_text.line_of(scan.tokens, at), lines
        elif word:
            scan.directive(word, at, token.end())
        elif scan.code[at] == "{":
            scan.open_brace(at)
        elif scan.code[at] == "}":
            ended = scan.close_brace(at)
            if ended:
                yield ended
        elif scan.code[at] == ";" and scan.depth == 0:
            scan.start = at + 1
    if scan.depth:
        raise ValueError("its braces do not match, so that its functions cannot be seen")


def _end_of(code, at):
    """The place of the brace that closes the one at `at`."""
    depth = 0
    for match in re.finditer(r"[{}]", code[at:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return at + match.start()
    return len(code)


def _without_brackets(text):
    while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text


def _fields(body, name, found):
    """The number of fields of a struct. Those of structs within it are a field for each of their names; without a
    name they count as its own. Adds (name, fields) to `found`, of the inner structs first."""
    fields = at = 0
    while match := _STRUCT.search(body, at):
        end = _end_of(body, match.end())
        inner = _fields(body[match.end() + 1:end], f"{name}.{match[1]}" if match[1] else name, found)
        before, semicolon = body[at:match.start()], body.find(";", end)
        fields += sum(1 + _without_brackets(part).count(",") for part in before.split(";") if part.strip())
        names = body[end + 1:semicolon].strip()
        fields += 1 + _without_brackets(names).count(",") if names else inner
        at = semicolon + 1
    fields += sum(1 + _without_brackets(part).count(",") for part in body[at:].split(";") if part.strip())
    found.append((name, fields))
    return fields


def structs(text):
    """(name, first line, fields) of each struct and union with a body."""
    code, at = c_text.blank(text), 0
    while match := _STRUCT.search(code, at):
        end, found = _end_of(code, match.end()), []
        name = match[1] or re.match(r"\s*(\w*)", code[end + 1:])[1]
        _fields(code[match.end() + 1:end], name, found)
        for inner, fields in found:
            yield inner, c_text.line_of(code, match.start()), fields
        at = end
