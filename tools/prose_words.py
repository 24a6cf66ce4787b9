"""Words of prose, for check_prose.py: finds words that stand in no dictionary, "a" before a vowel ("an" before a
consonant), words that stand twice, and adjectives without a noun. So a rename that went through prose is seen.

Known words: the Debian packages wamerican and wbritish, parts of names with an underscore that the sources have, and
tools/words.txt. Words with capitals are names, and are not checked."""

import pathlib
import re

import c_text

DICTIONARIES = [pathlib.Path("/usr/share/dict", name) for name in ("american-english", "british-english")]
LIST = "tools/words.txt"
NAME = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+")
WORD = re.compile(r"(?<![\w./'<$%\\-])[a-z]{3,}(?:'[a-z]+)?(?![\w/(<>=\[*\\_-]|\.\w)")
NO_PROSE = re.compile(r"`[^`]*`|%[-+.*0-9a-zA-Z]*")
FOLLOWS = re.compile(r"\b(?P<a>[Aa]) (?P<vowel>[aeio][a-z]+)|\b(?P<an>[Aa]n) (?P<consonant>[b-df-gj-np-tv-z][a-z]+)"
                     r"|\b(?P<twice>[a-z]{2,}) (?P=twice)\b|\b(?P<bare>outer|inner|concurrent|horizontal|expensive) (?:the|an?)\b")
SPOKEN = re.compile(r"one|once|eu|of|or|is|as|and|in|at|if|are|also|again|over|op|code|had|that|long|steps|"
                    r"sep|lstm|mlp|npy|mpi|rnn|ssh")  # the matrix "a" and acronyms, too


def known():
    """The set of known words; None if a dictionary is not installed."""
    if not all(path.exists() for path in DICTIONARIES):
        return None
    words = {word.lower() for path in DICTIONARIES for word in path.read_text(encoding="utf-8").split()}
    words |= set(c_text.read(LIST).split())
    for path in c_text.files("src/**/*.[ch]", "src/**/*.def", "include/weft/*.h", "src/**/*.cl"):
        for name in set(NAME.findall(c_text.read(path))):
            words.update(name.lower().split("_"))
    return words


def faults(block, words):
    """What is wrong in a paragraph, a list of (line, text): (line, message). words: known words, or None."""
    for line, text in block if words else []:
        for word in WORD.findall(NO_PROSE.sub(" ", text)):
            if word not in words and re.sub(r"'s$", "", word) not in words:
                yield line, f"unknown word \"{word}\": correct it, or add it to {LIST}"
    line, text = block[0][0], re.sub(r"`[^`]*`", "code", " ".join(text.strip() for _, text in block))
    for found in FOLLOWS.finditer(text):
        word = found["vowel"] or found["consonant"] or found["twice"] or ""
        if not SPOKEN.match(word):
            yield line, f"\"{found[0]}\" is not English"
