"""Runs whole commands while one allocation, or one system call, fails, and checks their exit codes and the files they leave.

usage: faults.py alloc|calls COMMAND PRELOAD PROGRAM

COMMAND is weft, PRELOAD is the library built from preload.c, PROGRAM is the program built from program.c. With `alloc`,
allocation N fails: only this one ("once"), or all from N on ("ever"). With `calls`, strace makes call N of one kind fail with
an error. CASES lists the commands, ERRORS lists the errors of system calls, and judge() checks the result of each fault.

    WEFT_FAULT_POINTS    how many faults are drawn (default 240). "stacks": for each call stack that allocates, its first and
                         its last allocation. "all": every allocation and every call, which takes an hour or more
    WEFT_FAULT_ONLY      names of cases, separated by commas. Default: all
    WEFT_FAULT_THREADS   threads of each command (default 1)
    WEFT_MATMUL          as for weft, but the default is "own": other libraries may abort when memory runs out
    WEFT_SEED            seed of the draw (default 1). It is printed
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading

KIND, COMMAND, PRELOAD, PROGRAM = sys.argv[1], *map(os.path.abspath, sys.argv[2:5])
POINTS = os.environ.get("WEFT_FAULT_POINTS", "240")
ONLY = [name for name in os.environ.get("WEFT_FAULT_ONLY", "").split(",") if name]
SEED = int(os.environ.get("WEFT_SEED", "1"))
WORKERS = 2
SECONDS = 60  # a command that takes longer hangs: without faults each takes less than one second

# ---- the commands ----

TEXT = "schedule: {warmup: 0}\ndata: {path: text.txt, val_fraction: 0.2}\noptimizer: {lr: 0.01}\ndevice: cpu\ntask: language-model\n"
TRAIN = "train: {steps: 4, batch: 2, eval_every: 2, save_every: 2, log_every: 2, keep: %d%s}\n"
CONFIGS = {
    "gpt": TEXT + "model: {type: gpt, layers: 2, heads: 1, width: 4, context: 8, dropout: 0.1}\n" +
           TRAIN % (2, ", accumulate: 2, recompute: block"),
    "lstm": TEXT + "model: {type: lstm, layers: 1, width: 4, context: 8}\n" + TRAIN % (1, ""),
    "tokens": TEXT.replace("text.txt", "tokens.bin") + TRAIN % (1, "") +
              "model: {type: gpt, layers: 1, heads: 1, width: 4, context: 8}\n",
    "rows": "task: classification\noptimizer: {lr: 0.05}\ndevice: cpu\n"
            "data: {path: rows.csv, source: csv, val_fraction: 0.3, test_path: rows.csv}\n"
            "model: {type: mlp, hidden: [4], dropout: 0.2}\n" + TRAIN % (1, ", patience: 9"),
    "images": "task: classification\noptimizer: {lr: 0.01}\ndevice: cpu\n"
              "data: {path: images.npy, labels: labels.npy, source: npy, val_fraction: 0.3}\n"
              "model: {type: cnn, filters: [2], hidden: 4}\n" + TRAIN % (1, ""),
    "photos": "task: classification\noptimizer: {lr: 0.01}\ndevice: cpu\n"
              "data: {path: photos, source: images, val_fraction: 0.3, in_files: true}\n"
              "model: {type: cnn, filters: [2], hidden: 4}\n" + TRAIN % (1, ""),
    "texts": "optimizer: {lr: 0.01}\ndevice: cpu\n"
             "data: {path: pairs.jsonl, val_fraction: 0.3}\n"
             "model: {type: encoder, init: bert}\n" + TRAIN % (1, ""),
}
with open(COMMAND, "rb") as command:
    if b"archive_read_new" in command.read():  # libarchive is optional
        CONFIGS["tars"] = CONFIGS["photos"].replace("path: photos", "path: photos.tar")
RUNS = ("gpt", "rows", "tokens", "texts")  # trained without faults, as input of the commands that read runs

# name: (arguments, the run folder that the command writes or None, the files that it writes)
Case = collections.namedtuple("Case", "words run files", defaults=(None, ()))
CASES = {
    "train-%s" % name: Case(["weft", "train", name + ".yaml", "--run", "run"], "run") for name in CONFIGS
}
CASES.update({
    "resume-gpt": Case(["weft", "resume", "run", "--set", "train.steps=4"], "run"),
    "resume-rows": Case(["weft", "resume", "run", "--set", "train.steps=4"], "run"),
    "plan": Case(["weft", "plan", "gpt.yaml"]),
    "predict": Case(["weft", "predict", "rows", "rows.csv"]),
    "eval-rows": Case(["weft", "eval", "rows", "--json"]),
    "eval-gpt": Case(["weft", "eval", "gpt"]),
    "generate": Case(["weft", "generate", "gpt", "--tokens", "5"]),
    "classify": Case(["weft", "classify", "texts", "pairs.txt"]),
    "predict-texts": Case(["weft", "predict", "texts", "pairs.jsonl"]),
    "generate-prompts": Case(["weft", "generate", "gpt", "--prompts", "prompts.jsonl", "--batch", "2", "--tokens", "5"]),
    "eval-devices": Case(["weft", "eval", "rows", "--json", "--devices", "cpu,cpu"]),
    "predict-devices": Case(["weft", "predict", "rows", "rows.csv", "--devices", "cpu,cpu"]),
    "generate-devices": Case(["weft", "generate", "gpt", "--prompts", "prompts.jsonl", "--batch", "2", "--tokens", "5", "--devices", "cpu,cpu"]),
    "generate-layers": Case(["weft", "generate", "gpt", "--tokens", "12", "--devices", "cpu,cpu"]),
    "check": Case(["weft", "info", "rows", "--check"]),
    "check-gpt": Case(["weft", "info", "gpt", "--check"]),
    "show": Case(["weft", "show", "rows"]),
    "export": Case(["weft", "export", "gpt", "--to", "gpt2", "--out", "export.safetensors"], None, ("export.safetensors", "config.json")),
    "export-c": Case(["weft", "export", "gpt", "--to", "c", "--out", "."], None, ("model.h", "model.c")),
    "export-rows": Case(["weft", "export", "rows", "--to", "safetensors", "--out", "rows.safetensors"], None, ("rows.safetensors",)),
    "tokenize": Case(["weft", "tokenize", "text.txt", "--tokenizer", "gpt/tokenizer.json", "--out", "out.bin"], None, ("out.bin",)),
    "init": Case(["weft", "init", "mlp", "--data", "rows.csv"]),
    "program": Case(["program", "net.safetensors"], None, ("net.safetensors",)),
})

# The errors with which system calls fail.
ERRORS = {
    "openat": ("EIO", "ENOSPC", "EINTR", "ENOMEM", "EMFILE", "EACCES"),
    "read": ("EIO", "EINTR"), "pread64": ("EIO", "EINTR"),
    "write": ("EIO", "ENOSPC", "EINTR"), "pwrite64": ("EIO", "ENOSPC", "EINTR"), "writev": ("EIO", "ENOSPC", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EINTR"), "fdatasync": ("EIO", "ENOSPC"),
    "close": ("EIO", "EINTR", "ENOSPC"),
    "rename": ("EIO", "ENOSPC", "ENOMEM", "EACCES"), "renameat": ("EIO", "ENOSPC", "EACCES"),
    "renameat2": ("EIO", "ENOSPC", "ENOMEM", "EACCES"),
    "mkdir": ("EIO", "ENOSPC", "ENOMEM", "EACCES"), "mkdirat": ("EIO", "ENOSPC", "ENOMEM", "EACCES"),
    "unlink": ("EIO", "ENOMEM", "EACCES"), "unlinkat": ("EIO", "ENOMEM", "EACCES"),
    "symlinkat": ("EIO", "ENOSPC", "EACCES"),
    "mmap": ("ENOMEM", "EACCES"), "ftruncate": ("EIO", "EINTR"),
    "fstat": ("EIO", "ENOMEM"), "newfstatat": ("EIO", "ENOMEM", "EACCES"), "getdents64": ("EIO", "ENOMEM"),
    "flock": ("EIO", "EINTR"), "fcntl": ("EIO",), "lseek": ("EIO",),
}

# ---- running ----

ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("WEFT_", "LD_", "FAULT_"))}
ENVIRONMENT.update(OMP_NUM_THREADS=os.environ.get("WEFT_FAULT_THREADS", "1"), WEFT_KERNEL_CACHE="off", LC_ALL="C",
                   WEFT_MATMUL=os.environ.get("WEFT_MATMUL", "own"))
Result = collections.namedtuple("Result", "code out err")


def run(folder, words, settings=None, before=()):
    """Runs a command in a folder. The code is None if it hangs, and negative if a signal killed it."""
    programs = {"weft": COMMAND, "program": PROGRAM}
    process = subprocess.Popen([*before, programs[words[0]], *words[1:]], cwd=folder, env={**ENVIRONMENT, **(settings or {})},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=SECONDS)
        return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Result(None, out.decode(errors="replace"), err.decode(errors="replace"))


def files(folder):
    """Returns every file and link below a folder, with its contents."""
    found = {}
    for where, folders, names in os.walk(folder):
        for name in names + [name for name in folders if os.path.islink(os.path.join(where, name))]:
            path = os.path.join(where, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found


UNEQUAL = ("tokens_per_second", "samples_per_second", "epoch_seconds", "memory_peak", "phases", "parts", "seconds", "checksum")


def lines_of_json(data):
    return [{k: v for k, v in json.loads(line).items() if k not in UNEQUAL} for line in data.splitlines()]


def records(data):
    """Returns the number of events in a TensorBoard file, and the number of bytes after the last event."""
    at, count = 0, 0
    while len(data) - at >= 16 and struct.unpack_from("<Q", data, at)[0] <= len(data) - at - 16:
        at, count = at + 16 + struct.unpack_from("<Q", data, at)[0], count + 1
    return count, len(data) - at


LACKS = "it says what could not be read"

# What is compared of a file in a run: everything except times, rates, memory use, and the origins of values.
COMPARED = {
    "log.txt": bool, "lock": lambda data: "its holder is gone",
    "env.json": lambda data: sorted(json.loads(data)),
    "config.yaml": lambda data: [re.sub("worker-[0-9]+", "", line.split("  # ")[0]) for line in data.decode().splitlines()],
    "metrics.csv": lambda data: [line.split(b",")[0] for line in data.splitlines()],
    "metrics.jsonl": lines_of_json,
    "summary.json": lambda data: lines_of_json(data.replace(b"\n", b" ")),
    "report.html": lambda data: LACKS if b'<p class="missing">' in data else (sorted(set(re.findall(rb"[A-Za-z_]{3,}", re.sub(rb"  # .*", b"", data)))), data[-8:]),
    "events.out.tfevents.0000000000.weft": records,
}


def outcome(folder):
    """Returns the contents that must be equal in two runs of a configuration."""
    found = files(folder)
    for name in COMPARED.keys() & found.keys():
        try:
            found[name] = COMPARED[name](found[name])
        except ValueError as problem:
            found[name] = problem
    return found


def spoken(text):
    """Returns the output of a command without times and memory use."""
    return re.sub(r"[0-9.]+( s\b|k? [a-z]+/s\b| [KMG]B\b)", "#", text)


def difference(got, wanted):
    names = sorted(n for n in set(got) | set(wanted) if got.get(n) != wanted.get(n))
    return "; ".join("%s is %s" % (n, "missing" if n not in got else "new" if n not in wanted else "another") for n in names[:4])


# ---- the folders ----


def numpy_file(path, descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def bitmap(path, chance):
    """Writes a BMP file of 6 x 6 pixels, whose rows of 18 bytes are padded to 20."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"BM" + struct.pack("<IIIIiiHHIIiiII", 174, 0, 54, 40, 6, 6, 1, 24, 0, 120, 0, 0, 0, 0))
        file.write(bytes(chance.randrange(256) for _ in range(120)))


def write_inputs(folder):
    chance = random.Random(7)
    words = ["the", "loom", "weft", "and", "a", "\n"]
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        file.write(" ".join(chance.choice(words) for _ in range(80)))
    with open(os.path.join(folder, "rows.csv"), "w", encoding="utf-8") as file:
        file.write("a,b,side\n")
        for i in range(24):
            file.write("%g,%g,%s\n" % (chance.random(), chance.random(), "left" if i % 2 else "right"))
    pairs = [("the weft", "the warp"), ("a loom", "under the loom"), ("the warp goes over", "a weft"), ("looms", "the loom")]
    with open(os.path.join(folder, "pairs.jsonl"), "w", encoding="utf-8") as file:
        for i, (a, b) in enumerate(3 * pairs):
            file.write(json.dumps({"premise": a, "hypothesis": b, "label": "yes" if i % 2 else "no"}) + "\n")
    with open(os.path.join(folder, "pairs.txt"), "w", encoding="utf-8") as file:
        file.write("".join("%s\t%s\n" % pair for pair in pairs))
    make = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "train", "make_published.py")
    subprocess.run([sys.executable, make, os.path.join(folder, "bert"), "--encoder"], check=True)
    with open(os.path.join(folder, "prompts.jsonl"), "w", encoding="utf-8") as file:
        for prompt in ("the loom", "", "a weft and"):
            file.write(json.dumps({"prompt": prompt}) + "\n")
    with open(os.path.join(folder, "tokens.bin"), "wb") as file:
        file.write(struct.pack("<256H", *(chance.randrange(12) for _ in range(256))))
    numpy_file(os.path.join(folder, "images.npy"), "|u1", (12, 1, 6, 6), bytes(chance.randrange(256) for _ in range(12 * 36)))
    numpy_file(os.path.join(folder, "labels.npy"), "|u1", (12,), bytes(i % 3 for i in range(12)))
    for i in range(12):
        bitmap(os.path.join(folder, "photos", "ab"[i % 2], "%d.bmp" % i), chance)
    with tarfile.open(os.path.join(folder, "photos.tar"), "w") as tar:
        tar.add(os.path.join(folder, "photos"), "photos")
    for name, text in CONFIGS.items():
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)


def need(result):
    assert result.code == 0, result
    return result


class Folders:
    """The inputs, the runs without faults, and the result of each case without faults. Each worker has a copy."""

    def __init__(self, root):
        self.root, self.local, self.number = root, threading.local(), 0
        self.first = os.path.join(root, "first")
        os.mkdir(self.first)
        write_inputs(self.first)
        for name in RUNS:
            need(run(self.first, ["weft", "train", name + ".yaml", "--run", name, "--quiet"]))
        for name in ("gpt", "rows"):
            need(run(self.first, ["weft", "train", name + ".yaml", "--run", "half-" + name, "--set", "train.steps=2", "--quiet"]))
        self.inputs = files(self.first)
        self.lock = threading.Lock()
        self.wanted = {name: self.expect(name) for name in CASES if not ONLY or name in ONLY}

    def mine(self):
        if not hasattr(self.local, "folder"):
            with self.lock:
                self.number += 1
                self.local.folder = os.path.join(self.root, "worker-%d" % self.number)
            shutil.copytree(self.first, self.local.folder, symlinks=True)
        return self.local.folder

    def prepare(self, name):
        """Returns a folder of this worker in which the case has not run yet."""
        folder, case = self.mine(), CASES[name]
        for left in set(os.listdir(folder)) - set(os.listdir(self.first)):
            path = os.path.join(folder, left)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        if name.startswith("resume-"):
            shutil.copytree(os.path.join(self.first, "half-" + name[7:]), os.path.join(folder, case.run), symlinks=True)
        return folder

    def result(self, name, folder, out):
        """Returns the result of a case: its run, or its output and its files."""
        case = CASES[name]
        if case.run:
            return outcome(os.path.join(folder, case.run))
        whole = {name: data for name, data in files(folder).items() if name in case.files}
        whole["what it prints"] = spoken(out)
        return whole

    def expect(self, name):
        results = []
        for _ in range(2):
            folder = self.prepare(name)
            results.append(self.result(name, folder, need(run(folder, CASES[name].words)).out))
        assert results[0] == results[1], "%s: two runs without faults differ: %s" % (name, difference(*results))
        return results[0]


# ---- checks after a fault ----

DAMAGE = re.compile(r"damage|corrupt|malformed|incomplete|checksum|torn|cut short|not a safetensors|unsealed", re.I)
MEMORY = ("alloc", "ENOMEM")


def codes(fault, call):
    """Returns the allowed exit codes after a fault. stdio does not repeat a write that a signal interrupted."""
    if fault.what == "alloc":
        return (0, 5)
    interrupted = (0, 8) if re.search(r"writev?\([12],", call) else (0,)
    return {"ENOMEM": (0, 5), "EINTR": interrupted}.get(fault.error, (0, 8))


def said(result):
    """Returns the line that says why a command failed."""
    lines = [line for line in result.err.splitlines() if line.startswith("weft: ")] or result.err.splitlines() or ["nothing"]
    return lines[-1]


def judge(folders, name, fault, call, folder, result):
    """Returns a list of problems after a fault. For system calls, `call` is the trace of the failed call."""
    case, wrong = CASES[name], []
    if result.code is None:
        return ["hangs"]
    if result.code < 0:
        return ["killed by signal %d" % -result.code]
    if result.code not in codes(fault, call):
        wrong.append("exit code %d: %s" % (result.code, said(result)))
    if result.code != 0 and not any(line.startswith("weft: ") for line in result.err.splitlines()):
        wrong.append("exit code %d without a message" % result.code)
    if (fault.what in MEMORY or fault.error in MEMORY) and DAMAGE.search(result.err + result.out):
        wrong.append("reports damage: %s" % DAMAGE.search(result.err + result.out).group())
    if result.code == 0:
        got = folders.result(name, folder, result.out)
        if "an old checkpoint takes up space" in result.err + result.out:  # only a warning: the checkpoint stays until the next start
            got = {path: got[path] for path in got if path in folders.wanted[name] or not path.startswith("checkpoints")}
        if fault.error not in MEMORY and got.get("report.html") == LACKS:  # the report says what is missing
            got["report.html"] = folders.wanted[name]["report.html"]
        if got != folders.wanted[name]:
            wrong.append("exit code 0, but " + difference(got, folders.wanted[name]))
    if case.run:
        wrong += judge_run(folders, name, folder, case.run)
    else:
        wrong += judge_rest(folders, name, folder)
    return wrong


def judge_run(folders, name, folder, where):
    """Checks that the run is complete, and that resuming gives the same result as without the fault."""
    wrong, path = [], os.path.join(folder, where)
    if os.path.exists(os.path.join(path, "config.yaml")):
        check = run(folder, ["weft", "info", where, "--check"])
        if check.code != 0:
            wrong.append("then info --check ends with %s: %s" % (check.code, said(check)))
        after = run(folder, CASES[name].words if name.startswith("resume-") else ["weft", "resume", where])
    else:
        after = run(folder, ["weft", "train", CASES[name].words[2], "--run", where])
    if after.code not in (0, 7):
        return wrong + ["then %s ends with %s: %s" % ("resume" if os.path.exists(path) else "train", after.code, said(after))]
    if DAMAGE.search(after.err + after.out):
        wrong.append("then resume says: " + DAMAGE.search(after.err + after.out).group())
    got, wanted = outcome(path), folders.wanted[name]
    if got != wanted:
        wrong.append("then resume gives another result: " + difference(got, wanted))
    return wrong


def judge_rest(folders, name, folder):
    """Checks that a command that reads runs changed nothing, except complete files that it wrote."""
    wrong, found = [], files(folder)
    for file in CASES[name].files:
        written = found.pop(file, None)
        if written is not None and written != folders.wanted[name][file] and name != "program":  # it writes the file twice
            wrong.append("writes other contents to " + file)
    if found != folders.inputs:
        wrong.append("changes files: " + difference(found, folders.inputs))
    return wrong


# ---- faults ----

Fault = collections.namedtuple("Fault", "what number error", defaults=("",))


def strike(folders, name, fault):
    """Runs a case with a fault. Returns the problems, and the stack of the allocation that failed."""
    folder = folders.prepare(name)
    log = folder + ".log"
    if os.path.exists(log):
        os.remove(log)
    if fault.what == "alloc":
        settings = {"LD_PRELOAD": PRELOAD, "FAULT_AT": str(fault.number), "FAULT_LOG": log}
        if fault.error == "ever":
            settings["FAULT_EVER"] = "1"
        result = run(folder, CASES[name].words, settings)
    else:
        inject = "inject=%s:error=%s:when=%d" % (fault.what, fault.error, fault.number)
        result = run(folder, CASES[name].words, before=["strace", "-f", "-qq", "-o", log, "-e", "trace=" + fault.what, "-e", inject,
                                                        "-E", "LD_PRELOAD=" + PRELOAD])
    text = ""
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
    if fault.what != "alloc":
        text = "\n".join(line for line in text.splitlines() if "(INJECTED)" in line)
    return judge(folders, name, fault, text, folder, result), text


def count_allocations(folders, name):
    """Returns the call stack of each allocation of a case, as a number."""
    folder = folders.prepare(name)
    log = folder + ".log"
    if os.path.exists(log):
        os.remove(log)
    need(run(folder, CASES[name].words, {"LD_PRELOAD": PRELOAD, "FAULT_LOG": log}))
    with open(log, "rb") as file:
        data = file.read()
    return struct.unpack("<%dQ" % (len(data) // 8), data)


def allocation_faults(folders, name):
    stacks = count_allocations(folders, name)
    if POINTS == "all":
        numbers = range(1, len(stacks) + 1)
    else:
        first, last = {}, {}
        for number, stack in enumerate(stacks, 1):
            first.setdefault(stack, number)
            last[stack] = number
        numbers = sorted(set(first.values()) | set(last.values()))
    print("%s: %d allocations from %d call stacks" % (name, len(stacks), len(set(stacks))), flush=True)
    return [Fault("alloc", number, how) for number in numbers for how in ("once", "ever")]


def call_faults(folders, name):
    folder = folders.prepare(name)
    log = folder + ".log"
    need(run(folder, CASES[name].words, before=["strace", "-f", "-qq", "-o", log, "-E", "LD_PRELOAD=" + PRELOAD]))
    before, after, begun = collections.Counter(), collections.Counter(), False
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            call = re.match(r"(?:[0-9]+ +)?([a-z0-9_]+)\(", line)
            if call:
                (after if begun else before)[call.group(1)] += 1
            begun = begun or '"/main-begins"' in line
    print("%s: %d calls of %d kinds" % (name, sum(after.values()), len(after)), flush=True)
    return [Fault(call, before[call] + number, error) for call in sorted(after) for error in ERRORS.get(call, ())
            for number in range(1, after[call] + 1)]


def place(stack):
    """Returns where in Weft an allocation failed, as function names from the innermost out. Unknown stacks stay as they are."""
    names = []
    for line in stack.splitlines():
        frame = re.match(r"(.*)\((.*)\+(0x[0-9a-f]+)\)", line)
        if not frame or "preload" in frame.group(1):
            continue
        if os.path.abspath(frame.group(1)) in (COMMAND, PROGRAM):
            found = subprocess.run(["addr2line", "-f", "-i", "-s", "-e", frame.group(1), hex(int(frame.group(3), 16) - 1)],
                                   capture_output=True, text=True, check=False).stdout.split()
            names += ["%s:%s" % (f, at.split(":")[-1]) for f, at in zip(found[::2], found[1::2])]
        elif not names or not names[-1].startswith("["):
            names.append("[%s]" % (frame.group(2) or os.path.basename(frame.group(1))))
    return " < ".join(names[:9]) or stack.strip()[:300]


def main(root):
    folders = Folders(root)
    draw = random.Random(SEED)
    points = []
    for name in folders.wanted:
        points += [(name, fault) for fault in (allocation_faults if KIND == "alloc" else call_faults)(folders, name)]
    if POINTS not in ("all", "stacks"):
        by_case = collections.defaultdict(list)
        for point in points:
            by_case[point[0]].append(point)
        share = max(1, int(POINTS) // len(by_case))
        points = [point for name in sorted(by_case) for point in draw.sample(by_case[name], min(share, len(by_case[name])))]
    tried, failed, kinds = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for (name, fault), (wrong, stack) in zip(points, pool.map(lambda point: strike(folders, *point), points)):
            tried[name] += 1
            failed[name] += bool(wrong)
            if wrong:
                where = place(stack)
                kinds[(wrong[0], where)].append((name, fault, wrong))
                print("FAIL %s %s: %s\n     %s" % (name, " ".join(map(str, fault)), " | ".join(wrong), where), flush=True)
    for name, count in tried.items():
        print("%-14s %6d faults %6d failures" % (name, count, failed[name]))
    print("faults %s: seed=%d points=%d fail=%d" % (KIND, SEED, len(points), sum(failed.values())))
    return 1 if sum(failed.values()) else 0


if KIND == "calls" and (not shutil.which("strace") or
                        subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode):
    print("faults calls: skipped, strace is not installed or has no permission to trace")
    sys.exit(77)
memory_disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # flushing a file takes no time there
with tempfile.TemporaryDirectory(prefix="weft-faults-", dir=memory_disk) as temporary:
    status = main(temporary)
sys.exit(status)
