#!/usr/bin/env python3
"""Holds the length of sentences, and the words: in the pages of MARKDOWN, in the comments of include/ and src/, and in what
the command prints (strings and help of src/cli). In each file nine of ten sentences have at most 25 words (README.md: 22),
and none has more than 40. prose_words.py says which words are wrong.

Not measured: code, tables, headings, comments of HTML, and what is generated, whole files or parts between markers. A
piece of inline code is one word. A file that is not yet written so is named in tools/prose_allow.txt:
    docs/x.md       why it is not done
An entry that is no longer needed is an error. With names of files the check prints what is wrong in these files, whatever
the list says:
    check_prose.py [FILE ...]"""

import math
import re
import sys

import c_text
import prose_words

USUAL, README, LONGEST = 25, 22, 40
ALLOW = "tools/prose_allow.txt"
MARKDOWN = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md", "docs/**/*.md"]
COMMENTED = ["include/weft/*.h", "src/**/*.[ch]", "src/**/*.inc", "src/**/*.cl", "src/**/*.cu", "src/**/*.def"]
STRINGS = ["src/cli/*.c", "src/cli/help/*.txt"]

GENERATED_PART = re.compile(r"<!--[^>]*?begin\b.*?-->.*?<!--[^>]*?end\b.*?-->", re.S)
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)]) +")
SENTENCE_END = re.compile(r"(?<![.])[.!?][)\"'*_]*(?=\s)")
SHORT_FORM = re.compile(r"\b(?:e\.g|i\.e|al|etc|vs|cf|approx)[.]$")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(/\*.*?\*/)', re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')


def sentences(blocks):
    """(line, words) of each sentence. A block is a list of (line, text): a paragraph or an item of a list."""
    for block in blocks:
        words = []
        for number, text in block:
            text = re.sub(r"`[^`]*`", "code", text) + " "
            at = 0
            for end in SENTENCE_END.finditer(text):
                if SHORT_FORM.search(text[:end.start() + 1]):
                    continue
                words += [(number, word) for word in text[at:end.end()].split() if re.search(r"\w", word)]
                if words:
                    yield words[0][0], [word for _, word in words]
                words, at = [], end.end()
            words += [(number, word) for word in text[at:].split() if re.search(r"\w", word)]
        if words:
            yield words[0][0], [word for _, word in words]


def join_code(text):
    """Inline code that is wrapped stays one word: its spaces and line breaks go where no sentence looks."""
    def joined(match):
        return "`code`" + "\n" * match[0].count("\n")
    return re.sub(r"`[^`\n]*(?:\n[^`\n]+)?`", joined, text)


def markdown_blocks(text):
    """Paragraphs and items of a page, without what is no prose."""
    text = c_text.blank(text, GENERATED_PART)
    text = c_text.blank(text, re.compile(r"<!--.*?-->", re.S))
    text = c_text.blank(text, re.compile(r"^```.*?^```[^\n]*$", re.S | re.M))
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", lambda m: m[1], text)
    block = []
    for number, line in enumerate(join_code(text).split("\n"), 1):
        starts = ITEM.match(line)
        code = bool(re.match(r" {4}", line)) and not starts and not block
        if not line.strip() or code or re.match(r"\s*(\||#+ |---|===)", line):
            if block:
                yield block
            block = []
            continue
        if starts and block:
            yield block
            block = []
        block.append((number, line[starts.end():] if starts else line))
    if block:
        yield block


def comment_blocks(text):
    """Paragraphs of a C file's comments."""
    for comment in STRING_OR_COMMENT.finditer(text):
        if not comment[1]:
            continue
        block, first = [], c_text.line_of(text, comment.start())
        for i, line in enumerate(join_code(comment[0][2:-2]).split("\n")):
            line = re.sub(r"^\s*\* ?", "", line) if i else line
            starts = ITEM.match(line)
            if block and (not line.strip() or starts):
                yield block
                block = []
            is_code = i and re.match(r" {4}", line) and re.match(r"\s*\*", comment[0][2:].split("\n")[i])
            if line.strip() and not is_code and not re.match(r"\s*-{4}", line):
                block.append((first + i, line[starts.end():] if starts else line))
        if block:
            yield block


def string_blocks(text):
    """Paragraphs of what a C file's strings say; indented lines of them are tables."""
    for literal in LITERAL.finditer(c_text.blank(text, COMMENT)):
        first = c_text.line_of(text, literal.start())
        said = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', literal[0]))
        said = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], said)
        yield from said_blocks(first, said)


def said_blocks(first, said):
    for paragraph in re.split(r"\n\s*\n|\n(?=  )", said):
        if " " in paragraph.strip() and not paragraph.startswith("  "):
            yield [(first, " ".join(paragraph.split()))]


def help_blocks(text):
    """Paragraphs of a help text."""
    return said_blocks(1, text)


def blocks_of(path):
    """Lists of the paragraphs of a file: what it says, and the strings of src/cli as another list."""
    text = c_text.read(path)
    if c_text.is_generated(text.replace("`", "")):
        return []
    kinds = [{".md": markdown_blocks, ".txt": help_blocks}.get(path.suffix, comment_blocks)]
    if path.suffix == ".c" and path.match("src/cli/*"):
        kinds.append(string_blocks)
    return [list(blocks(text)) for blocks in kinds]


def too_long(path, found):
    """What is too long in a file: its nine of ten, and each sentence that makes them so."""
    usual = README if str(path) == "README.md" else USUAL
    lengths = sorted(len(words) for _, words in found)
    reached = lengths[math.ceil(0.9 * len(lengths)) - 1] if lengths else 0
    limit = usual if reached > usual else LONGEST
    if reached > usual:
        yield f"{path}: nine of ten sentences have up to {reached} words, more than {usual}"
    for line, words in found:
        if len(words) > limit:
            yield f"{path}:{line}: {len(words)} words: {' '.join(words[:8])} ..."


def allowances():
    lines = [line.split(None, 1) for line in c_text.read(ALLOW).splitlines() if not line.startswith("#")]
    return {words[0] for words in lines if words}


def main():
    paths = c_text.files(*MARKDOWN, *COMMENTED, *STRINGS)
    chosen, allowed = set(sys.argv[1:]), set() if sys.argv[1:] else allowances()
    paths = [path for path in paths if not chosen or str(path) in chosen]
    problems, used, count, words = [], set(), 0, prose_words.known()
    for path in paths:
        wrong = []
        for blocks in blocks_of(path):
            found = list(sentences(blocks))
            count += len(found)
            wrong += too_long(path, found)
            wrong += [f"{path}:{line}: {what}" for block in blocks for line, what in prose_words.faults(block, words)]
        if wrong and str(path) in allowed:
            used.add(str(path))
        else:
            problems += wrong
    problems += [f"{ALLOW}: {path} needs no entry" for path in sorted(allowed - used)]
    rest = f", {len(used)} of them not yet done" if used else ""
    if words is None:
        rest += ", spelling skipped: install wamerican and wbritish"
    return c_text.report("prose", problems, f"{len(paths)} files{rest}, {count} sentences")


if __name__ == "__main__":
    sys.exit(main())
