#!/usr/bin/env python3
"""Runs a folder of cases: situations in which Weft once did something wrong, each with a script `cmd` or a C program. Prints
one line a case:

    NAME: ok
    NAME: WRONG: what is wrong
    NAME: open: what is wrong, of a case that is known to be wrong still (OPEN)
    NAME: skipped: what is missing

The exit status is 1 if a case is WRONG. Build everything first: cases also use the library.

    check_cases.py [FOLDER] [--weft build/weft] [--python PYTHON] [--only NAME,...] [--show]

FOLDER: `cases` beside the folder that WEFT_TEST_DATA names, or ../shared/cases. PYTHON has the packages that cases need;
default: WEFT_PEER_PYTHON. --show also prints what the cases print. Variables that scripts name and that are not made here, such
as TRL_TEMPLATES, come from the environment."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 600  # for a case, which takes a minute at most on a quiet machine
NUMBER = r"([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))"
PACKAGES = "PIL gguf numpy peft pyarrow sentence_transformers sklearn tokenizers torch transformers"


# Checks: functions of the output, which return what is wrong, or None.
def numbers(pattern, right, what):
    """A check of the numbers that stand at # in the pattern. There must be one."""
    def check(out):
        found = [float(x) for x in re.findall(pattern.replace("#", NUMBER), out, re.M)]
        return None if found and right(found) else f"{pattern}: {found[:8]}, {what}"
    return check


def near(within, pattern):
    return numbers(pattern, lambda x: len(x) > 1 and max(x) - min(x) <= within, "which should be the same")


def most(limit, pattern):
    return numbers(pattern, lambda x: max(x) <= limit, f"at most {limit} is right")


def least(limit, pattern):
    return numbers(pattern, lambda x: min(x) >= limit, f"at least {limit} is right")


def pairs(within, pattern):
    """Both groups of the pattern hold the same numbers."""
    def check(out):
        for one, other in re.findall(pattern, out):
            a, b = ([float(x) for x in re.findall(NUMBER, text)] for text in (one, other))
            if len(a) != len(b) or not all(abs(x - y) <= within for x, y in zip(a, b)):
                return f"{one.strip()} instead of {other.strip()}"
        return None if re.search(pattern, out) else f"no {pattern}"
    return check


def bombs(out):  # without times: other work makes them longer
    for line in out.splitlines():
        found = re.search(r"rc (\S+) .* rss (\d+) MB", line)
        if found and (not 0 <= int(found[1].replace("HANG", "-")) <= 10 or int(found[2]) > 600):
            return line[:150]
    return None if "rss" in out else out[-150:]


def few_left(out):
    left = re.findall(r"\.(\S+?)\.\d+\.\w+\.tmp", out)
    return f"temporary files of {left}" if len(left) > len(set(left)) else None


# What is right: a list for each case. A text is a regular expression that the output must have, after ! one that it must not have, after ? a
# file that must be there, after $ the command instead of `bash cmd`. Else it is a check.
CASES = {
    "accumulate": [near(2e-7, r"(?:x|\(bias\)|numpy) #")],
    "auc-ties": ["^0 of 2028", "auc 0.5 want 0.5"],
    "beta-zero": ["$ sed -i 's/k==0?0:/k==0?WEFT_ZERO:/' b0.c; cc b0.c $LINK -o b0 && ./b0", near(1e-5, "beta1=(?:0|1e-300): #")],
    "billion-laughs": ["$ bash cmd; bash cmd2", "rc [1-9].*weft: ", most(600, "peak # MB"), "!killed"],
    "bombs": ["$ for k in rep dec layers index adapter gguf st tok; do python bm.py $k; done", bombs],
    "bos": [near(2e-4, r"(?:True .* loss|^step 1/1 .* loss) #")],
    "chat-save": ["cannot access 'PWNED'", r"^export PATH=\.\.\.$", r"!\$\(touch"],
    "chats-accumulate": [most(1e-6, "answer tokens #")],
    "class-numbers": ["!126701 classes", "!80332 classes", "target: zip"],
    "classes": [most(600000, r"user \S+ #KB"), "!rc [1-9]"],
    "config-defaults": [most(1e-4, "off by #")],
    "eos": ["^prompt ", "!^prompt .*(fox.*){2}", "!Error"],
    "eval-path": ["^rc 2", "!root:", "^0$"],
    "exif-gamma": [pairs(3, r"weft (\[.*?\]) Pillow (\[.*?\])")],
    "f32-before-scaling": [least(0.999, "R2 #"), "^(100|99[.]9|100[.]0)"],
    "gguf-pre": ["?pre-gpt-4o.gguf", "!weft: "],
    "gguf-to-hf": ["$ cp w/m.gguf tiny.gguf; bash cmd", r"^hf missing 0 unexpected 0", r"hf2 \['model", r"!blk[.]"],
    "gpt2-export": ["!Error|MISMATCH|weft: "],
    "header-of-numbers": [least(0.999, "R2 #"), "!without names", "!expected a number"],
    "iota": ["!ERR_INTERNAL", "!i8 of 300: OK"],
    "jpeg-scans": [most(30, "user #"), "!rc 124"],
    "json-schema": ["$ cp -r model MODEL; bash cmd", "!weft: "],
    "json-warning": ["$ cp -r model MODEL; cp pr.jsonl 16lines.jsonl; bash cmd", "!weft_scalar", "!weft: "],
    "jsonl-message": ["!weft: .*no object", "!(ndjson|arr.json): data: 1"],
    "kept-leak": [most(64, r"(?:free both|instead of eval): rss #")],
    "latin1-header": ["byte 2 of the line: 0xe4 is not UTF-8.*iconv"],
    "long-rows": ["!closing quote"],
    "missing-class": ["!NA [(]4[)]", "!NaN [(]4[)]"],
    "opencl-abort": ["!Aborted|rc 134"],
    "overwrite": ["$ sed -i 's/--type q8_0/--to q8_0/' cmd; bash cmd; bash cmd2", "in place: rc 2 kept", "!CHANGED|FAILED|cannot stat"],
    "overwrite-folder": ["^rc 2", "^my thesis", "^my log", '^{"mine":1}', "my tokenizer"],
    "overwrite-min": ["!FAILED", "(?s)(^rc 2.*){5}", "my notes"],
    "own-llama3-gguf": ["$ rm -r model; python3 $SRC/tests/train/make_published.py model --like "
                        "$SRC/tests/unit/published/models/llama-llama3.json; bash cmd", "wrote x.gguf", "!weft: "],
    "parquet-bomb": ["$ python mk.py; bash cmd", most(800, "peak memory # MB"), "!still busy"],
    "parquet-timezone": [pairs(0, r"UTC: y(.*)\n.*Tokyo: y(.*)")],
    "read-then-gradient": ["= 2.718[0-9]* 7.389[0-9]* .want"],
    "saliency": [pairs(1e-6, r"not read: .*OK:(.*)\n.*first: .*OK:(.*)"), "item.loss.: OK"],
    "sft-templates": ["!weft: "],
    "sigint-temp": ["(?s)(rc 130.*){2}(rc 143.*){2}(rc 129.*){2}again rc 0", "![.]tmp"],
    "sigkill": [few_left],
    "small-messages": ["!did not find expected", "!cannot access d/a/notes", "!x.npy: element", "!set header to yes"],
    "srun-one-task": ["$ sed -i 's/--run r;/--run r$RANDOM;/' cmd; bash cmd", "(?s)(rc 0.*){2}"],
    "st-dense": ["?model/model.safetensors"], "st-lower": ["?texts"], "st-new": ["?mean/model.safetensors"], "st-prompt": ["?texts"],
    "stop-signals": [r"USR2 rc \d+ saved: \S", r"XCPU rc \d+ saved: \S"],
    "suffix": ["!not UTF-8", "!wrong place", "!ndjson: data: 3030"],
    "thousands-advice": ["!decimal=comma", "!R2 0[.][0-8]"],
    "tied-head": [most(1e-4, "off by #")],
    "unseen-categories": [pairs(0.1, r"^y\n(.*)\n(.*)\n"), "!grün, .*grün"],
    "untrusted-run": ["!VICTIM CHANGED", "!root:", "export default out is link: rc 2"],
    "val-overflow": ["!has (Infinity|NaN)", "!R2 0.0000"],
    "weights-small-batch": [near(0.05, r"(?:batch \w+|sklearn weighted) #")],
    "words-in-numbers": [least(0.8, r"^(?:na|dash|inf|us): .*R2 #")],
}
# Known to be wrong still: of the issue "Seams".
OPEN = """auc-ties config-defaults eos exif-gamma gguf-pre iota json-schema json-warning jsonl-message long-rows opencl-abort
sft-templates small-messages st-dense st-lower st-new st-prompt stop-signals suffix thousands-advice
unseen-categories val-overflow words-in-numbers""".split()

# Modules that scripts import and that are not among the cases: random models, and their logits.
MODULES = {"lib/t_train.py": '''
import json, os, subprocess, torch, transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
WEFT, R = os.environ["W"], ""
def folder(name, kind, options, template=None, bos=False):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(["the quick brown fox"], trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"],
                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if bos:
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    torch.manual_seed(0)
    options = dict({} if kind == "gpt2" else {"tie_word_embeddings": False}, vocab_size=t.get_vocab_size(), **options)
    transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **options)).save_pretrained(name)
    transformers.PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>",
                                         chat_template=template).save_pretrained(name)
    return name, t
''', "t_config.py": '''
import sys; sys.path.insert(0, "../lib")
import torch, transformers, W
from safetensors.torch import save_file
for name in sys.argv[1:]:
    folder = "C-" + name
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(1)
    tensors = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).state_dict()
    tensors = {key: torch.randn_like(value) * 0.3 for key, value in tensors.items()}
    if config.tie_word_embeddings and "extra-head" not in name:
        del tensors["lm_head.weight"]
    save_file(tensors, folder + "/model.safetensors", metadata={"format": "pt"})
    ids = [(7 * i * i + 3 * i) % config.vocab_size for i in range(24)]
    right = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)(torch.tensor([ids])).logits[0]
    print(name, "off by %.3g" % float((torch.tensor(W.Model(folder, config.vocab_size).logits(ids)) - right).abs().max()))
'''}


class Room:
    """A temporary folder with the copies of the cases, and what they need."""

    def __init__(self, cases, root, weft, python):
        self.cases, self.root = cases, root
        shutil.copytree(cases / "lib", root / "lib")
        for name, text in MODULES.items():
            (root / name).exists() or (root / name).write_text(text)
        build, common = weft.parent, root / "common"
        for folder in (root / "bin", common / "w"):
            folder.mkdir(parents=True)
        for name, program in (("weft", weft), ("python", python)):
            (root / "bin" / name).write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
            (root / "bin" / name).chmod(0o755)
        data = pathlib.Path(os.environ.get("WEFT_TEST_DATA") or cases.parent / "data")
        libpython = pathlib.Path(*(str(sysconfig.get_config_var(name)) for name in ("LIBDIR", "INSTSONAME")))
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
        self.env |= {"W": str(weft), "PY": python, "I": str(TREE / "include"), "B": str(build), "SRC": str(TREE),
                     "WEFT_LIB": str(build / "libweft.so"), "PATH": f"{root}/bin:{os.environ['PATH']}", "MODEL": f"{common}/w/hf",
                     "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "LINK": f"-I{TREE}/include -L{build} -Wl,-rpath,{build} -lweft -lm"}
        for name, path in (("DATA", data), ("SITE", build / "duckdb"), ("LIBPYTHON", libpython)):
            self.env |= {name: str(path)} if path.exists() else {}
        self.packages = self.run("import importlib.util as u; print(*(n for n in '%s'.split() if u.find_spec(n)))" % PACKAGES,
                                 root, [python, "-c"]).split()
        for name, count in (("t.txt", 300), ("small.txt", 60)):
            lines = [f"the weft goes over and under the warp, line {i * 7919 % 1000}\n" for i in range(count)]
            (common / "w" / name).write_text("".join(lines))
        (common / "w/iris.csv").write_text("a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(60)))
        made = self.run(f"""python3 {TREE}/tests/train/make_published.py w/hf && cp -r w/hf model
            weft quantize w/hf --to f32 --out w/m.gguf && mkdir h-rel && ln -s ../w h-rel/w
            weft train mlp --data w/iris.csv --set train.steps=20 --run base --quiet
            weft train gpt --data w/t.txt --set model.init=w/hf --set lora.rank=2 --set train.steps=2 --set schedule.warmup=0 \
                --set model.context=32 --run w/b-lora --quiet""", common)
        if not (common / "w/b-lora").is_dir():
            sys.exit(f"check_cases: {weft} does not work: {made}")
        file = common / "w/m.gguf"  # as if another program had written it
        file.write_bytes(file.read_bytes().replace(b"quantize", b"somebody"))

    def run(self, command, folder, shell=("bash", "-c")):
        env = dict(self.env, XDG_STATE_HOME=f"{folder}/state")
        process = subprocess.Popen([*shell, command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out = process.communicate()[0] + b"\nkilled: the time limit"
        return out.decode(errors="replace")

    def missing(self, folder, checks):
        scripts = [path for path in folder.iterdir() if path.is_file() and path.suffix in ("", ".py")]
        text = "\n".join(path.read_text(errors="replace") for path in scripts)
        gone = [name for name in re.findall(r"(?:\$\{|environ\[\")(\w+)(?::\?|\"\])", text) if name not in self.env]
        gone += [f"the Python package {name}" for name in re.findall(r"\b(?:import|from) (\w+)", text)
                if name in PACKAGES.split() and name not in self.packages]
        gone += ["strace"] if "strace" in text and not shutil.which("strace") else []
        gone += [path for path in re.findall(r"\.\./(\w+\.py)", text) if not (self.root / path).exists()]
        gone += [check[1:] for check in checks if isinstance(check, str) and check[0] == "?" and not (folder / check[1:]).exists()]
        return gone[0] if gone else None

    def prepare(self, folder):
        """Adds the common files, and puts values in place of the variables that a script cannot expand, in quotes or after cd."""
        for entry in (self.root / "common").iterdir():
            if entry.name != "state" and not (folder / entry.name).exists():
                shutil.copytree(entry, folder / entry.name, symlinks=True)
        for path in folder.iterdir():
            if path.is_file() and (path.name.startswith("cmd") or path.suffix == ".py"):
                text = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda m: self.env.get(m[1], m[0]), path.read_text())
                path.write_text(re.sub(r"(?<![\w.])\./(h-rel/)?w/", f"{folder}/w/", re.sub(r"\./h-rel/w\b", f"{folder}/w", text)))

    def check(self, name):
        folder, checks = self.root / name, CASES.get(name)
        if checks is None:
            return "skipped: what is right is missing in tools/check_cases.py", ""
        shutil.copytree(self.cases / name, folder, symlinks=True)
        gone = self.missing(folder, checks)
        if gone:
            return f"skipped: {gone} is missing", ""
        self.prepare(folder)
        default = "bash cmd" if (folder / "cmd").exists() else "cc *.c $LINK -o program && ./program"
        command = [check[1:] for check in checks if isinstance(check, str) and check[0] == "$"]
        out, wrong = self.run(*command or [default], folder), None
        for check in checks:
            if not isinstance(check, str):
                wrong = wrong or check(out)
            elif check[0] == "!":
                found = re.search(check[1:], out, re.M)
                wrong = wrong or found and f"'{found[0][:150]}'"
            elif check[0] not in "?$" and not re.search(check, out, re.M):
                wrong = wrong or f"no '{check}'"
        wrong = f"it did not end in {SECONDS} s" if "killed: the time limit" in out else wrong
        if not wrong:
            return "ok" + (" (take it off the list OPEN)" if name in OPEN else ""), out
        return ("open: " if name in OPEN else "WRONG: ") + " ".join(wrong.split()), out


def main():
    parser, data = argparse.ArgumentParser(), os.environ.get("WEFT_TEST_DATA")
    parser.add_argument("folder", nargs="?", default=(pathlib.Path(data).parent if data else TREE.parent / "shared") / "cases")
    parser.add_argument("--weft", default=TREE / "build/weft")
    parser.add_argument("--python", default=os.environ.get("WEFT_PEER_PYTHON", sys.executable))
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options, failed = parser.parse_args(), 0
    cases = pathlib.Path(options.folder).resolve()
    if not cases.is_dir():
        sys.exit(f"check_cases: there is no folder {cases}: name the folder of cases")
    names = options.only.split(",") if options.only else sorted({path.parent.name for path in cases.glob("*/*")} - {"lib"})
    with tempfile.TemporaryDirectory(prefix="weft-cases-", ignore_cleanup_errors=True) as root:
        room = Room(cases, pathlib.Path(root), pathlib.Path(options.weft).resolve(), options.python)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, (verdict, out) in zip(names, pool.map(room.check, names)):
                print(f"{name}: {verdict}", flush=True)
                if options.show:
                    print(re.sub("^", "    ", out, flags=re.M))
                failed += verdict.startswith("WRONG")
    sys.exit(failed > 0)


main()
