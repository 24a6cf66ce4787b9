#!/usr/bin/env python3
"""Writes the tables of keys in docs/configuration.md from src/train/config (config_keys.def, choices.def),
src/train/source/sources.def and src/train/model/models.def.
With --check it only compares, and fails if the page is out of date. Text outside the two marks is written by hand
and is kept."""

import re
import sys

import c_text

PAGE = "docs/configuration.md"
BEGIN = "<!-- keys: begin; written by tools/gen_configuration.py -->\n"
END = "<!-- keys: end -->\n"
SECTIONS = {"task": "The task", "data": "Data", "model": "Model", "lora": "Low-rank adapters", "dpo": "Preferences", "optimizer": "Optimizer",
            "schedule": "Learning-rate schedule", "train": "Training", "device": "Devices"}
FIELDS = ("field", "key", "kind", "low", "high", "choices", "models", "language", "vectors", "doc")


def calls(text, name):
    """Yields the arguments of each call of a macro as strings. C strings are unquoted, and NULL becomes None."""
    for _, arguments in c_text.macro_calls(text, name):
        yield [c_text.c_string(a) if a.startswith('"') else None if a == "NULL" else a for a in arguments]


def read():
    """Returns the keys as dictionaries, the models of each kind, and by field the defaults that only some
    models have."""
    models, defaults, words = {"LANGUAGE": [], "VECTORS": [], "TEXTS": []}, {}, {}
    table = "".join(c_text.read(f"src/train/{name}.def") for name in ("model/models", "config/choices", "source/sources"))
    table = re.sub(r"/\*.*?\*/", "", table, flags=re.S)
    for _, name, kind, _ in calls(table, "MODEL"):
        models[kind].append(name)
    for model, field, value in calls(table, "DEFAULT"):
        defaults.setdefault(field, {})[model.lower()] = value
    keys = [dict(zip(FIELDS, row)) for row in calls(c_text.read("src/train/config/config_keys.def"), "KEY")]
    for macro in ("MODEL", "TASK", "SOURCE", "OPTIMIZER", "PRECISION"):
        words[macro + "S"] = "|".join(row[1] for row in calls(table, macro))
    for key in keys:
        key["choices"] = words.get(key["choices"], key["choices"])
    return keys, models, defaults


def taken_by(key, models):
    """Returns the models that use a key."""
    everything = models["LANGUAGE"] + models["VECTORS"] + models["TEXTS"]
    names = [n for word in key["models"].split("|")
             for n in {"ALL": everything, **models}.get(word.strip(), [word.strip().lower()])]
    return [n for n in everything if n in names]


def values(key):
    """Describes the valid values of a key."""
    kind, low, high, choices = key["kind"], key["low"], key["high"], key["choices"]
    words = ", ".join(f"`{c}`" for c in choices.split("|")) if choices else ""
    span = f"{low} to {high}" if float(high) <= 1e6 else f"at least {low}"
    return {"CHOICE": words, "BOOL": "`true`, `false`", "TEXT": "text", "PATH": "path", "TEXTS": "list of texts",
            "INT": f"integer, {span}" + (f", or {words}" if words else ""), "INTS": f"list of integers, {span}",
            "NUM": f"number, {span}", "NUMS": f"list of numbers, {span}"}[kind]


def default(key, models, own):
    """Describes the default, for each model if models differ."""
    taken = taken_by(key, models)
    usual = {n: own.get(n, key["language"] if n in models["LANGUAGE"] else key["vectors"]) for n in taken}
    by_value = {}
    for name, value in usual.items():
        by_value.setdefault(f"`{value}`" if value is not None else "not set", []).append(name)
    if len(taken) > 4:  # the most common default comes first, without names
        most = max(by_value, key=lambda value: len(by_value[value]))
        others = [f"{', '.join(names)}: {value}" for value, names in by_value.items() if value != most]
        return "; ".join([most, *others])
    if len(by_value) == 1:
        return next(iter(by_value))
    return "; ".join(f"{', '.join(names)}: {value}" for value, names in by_value.items())


def tables():
    keys, models, defaults = read()
    everything = models["LANGUAGE"] + models["VECTORS"] + models["TEXTS"]
    names = {key["key"] for key in keys}
    out, open_section = [], None
    for key in keys:
        section = key["key"].split(".")[0].replace("devices", "device")
        if section != open_section:
            out.append(f"\n### {SECTIONS[section]}\n| key | values | default | models | meaning |\n")
            out.append("| --- | --- | --- | --- | --- |\n")
            open_section = section
        taken = taken_by(key, models)
        who = "all" if taken == everything else "tables and images" \
            if taken == models["VECTORS"] else "tables, images and texts" \
            if taken == models["VECTORS"] + models["TEXTS"] else ", ".join(taken)
        shown = f"`{key['language']}`; with another `task`: `{key['vectors']}`" if key["key"] == "model.type" \
            else default(key, models, defaults.get(key["field"], {}))
        doc = re.sub(r"\w+\.\w+", lambda m: f"`{m[0]}`" if m[0] in names else m[0], key["doc"])
        out.append(f"| `{key['key']}` | {values(key)} | {shown} | {who} | {doc} |\n")
    return "".join(out).lstrip("\n")


def main():
    page = c_text.read(PAGE)
    head, rest = page.split(BEGIN)
    wanted = head + BEGIN + tables() + END + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        return 0 if page == wanted else 1
    (c_text.ROOT / PAGE).write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
