"""Attacks small runs and resumes them until they are done. The attacks are kills (SIGKILL, some inside a save), signals that
stop, save or pause, and several commands in one folder at once. After every attack the same must hold:
- Weights, best checkpoint, scores and metrics equal those of an uninterrupted run byte for byte, except rates, times and
  memory.
- Every checkpoint is complete, and no temporary file is left.
- No checkpoints are kept beyond train.keep and the best.

usage: kill_resume.py COMMAND [--full] [--device DEVICE] [ATTACK...]

ATTACK is kills, signals or races, or one of them in one scenario: kills:llama. Without --full a sample runs, in less than a
minute on two cores. --full makes 100 kills, each signal at 20 moments, and 50 races. $WEFT_SEED is the seed (default 1). It
is printed. The scenario "device", on opencl or DEVICE, runs in the sample only if it is named.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("command", type=os.path.abspath)
parser.add_argument("--full", action="store_true")
parser.add_argument("--device", default="opencl")
parser.add_argument("attacks", nargs="*")
ARGUMENTS = parser.parse_intermixed_args()
COMMAND, FULL = ARGUMENTS.command, ARGUMENTS.full
SEED = int(os.environ.get("WEFT_SEED", "1"))
LATE = 20.0  # seconds allowed from a signal to the end of the process, on a busy machine
UNEQUAL = {"tokens_per_second", "samples_per_second", "epoch_seconds", "memory_peak"}

LANGUAGE = "task: language-model\ndata: {path: text.txt, val_fraction: 0.1}\n"
TRAIN = "train: {steps: 160, batch: 4, accumulate: 2, eval_every: 20, save_every: 8, log_every: 4, keep: 2}\n"
CONFIGS = {
    "llama": LANGUAGE + TRAIN + """
model: {type: gpt, layers: 1, heads: 2, kv_heads: 1, width: 16, context: 16, dropout: 0.1, bias: false, norm: rms,
        positions: rotary, mlp: swiglu, untied_head: true}
optimizer: {lr: 0.01}
schedule: {warmup: 10, min_lr: 0.001}
""",
    "lstm": LANGUAGE + TRAIN + """
model: {type: lstm, layers: 1, embedding: 8, width: 16, context: 12, dropout: 0.1}
optimizer: {lr: 0.01}
""",
    "resnet": """
task: classification
data: {path: small-images-idx3-ubyte, source: idx, val_fraction: 0.3, shift: 1, flip: true}
model: {type: resnet, depth: 8, width: 4}
optimizer: {lr: 0.05}
train: {steps: 60, batch: 8, accumulate: 2, eval_every: 6, save_every: 5, log_every: 3, keep: 1}
""",
    "tables": """
task: classification
data: {path: rows.csv, source: csv, val_fraction: 0.3, test_path: rows.csv}
model: {type: mlp, hidden: [8], dropout: 0.2}
optimizer: {lr: 0.05}
train: {steps: 4000, batch: 8, eval_every: 10, save_every: 9, log_every: 10, keep: 1, patience: 30,
        class_weights: balanced}
""",
    "device": LANGUAGE + """
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
optimizer: {lr: 0.01}
schedule: {warmup: 10, min_lr: 0.001}
train: {steps: 60, batch: 4, accumulate: 2, eval_every: 20, save_every: 6, log_every: 4, keep: 2}
device: %s
""" % ARGUMENTS.device}
KEEP = {"llama": 2, "lstm": 2, "resnet": 1, "tables": 1, "device": 2}

# The signals to send, and the exit codes that may follow. None: the run continues. A stop before the first step gives the
# same exit code as a stop after a save.
SIGNALS = {
    "TERM": ([signal.SIGTERM], {143}),
    "INT": ([signal.SIGINT], {130}),
    "INT twice": ([signal.SIGINT, signal.SIGINT], {130}),
    "HUP": ([signal.SIGHUP], {129}),
    "USR1": ([signal.SIGUSR1], None),
    "STOP, CONT": ([signal.SIGSTOP, signal.SIGCONT], None)}
DONE = {0, 7}
ORDERED = {0, 7, 129, 130, 143}

Scenario = collections.namedtuple("Scenario", "name threads")
Whole = collections.namedtuple("Whole", "weights metrics seconds")

# ---- the command ----


def start(scenario, *words):
    env = dict(os.environ, OMP_NUM_THREADS=str(scenario.threads))
    return subprocess.Popen([COMMAND, *words, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)


def begin(scenario, run):
    """Trains, or resumes if the folder is a run. A folder that did not become a run is trained anew."""
    if os.path.exists(os.path.join(run, "config.yaml")):
        return start(scenario, "resume", run)
    return start(scenario, "train", scenario.name + ".yaml", "--run", run)


def finish(process, codes):
    _, errors = process.communicate(timeout=600)
    assert process.returncode in codes, (process.returncode, errors.decode())
    return process.returncode


def is_saving(run):
    """Returns True while a checkpoint is being written: its temporary folder exists."""
    try:
        return any(name.startswith(".") for name in os.listdir(os.path.join(run, "checkpoints")))
    except FileNotFoundError:
        return False


# ---- checks after an attack ----


def checkpoints(run):
    folder = os.path.join(run, "checkpoints")
    return sorted(int(name[5:]) for name in os.listdir(folder) if name.startswith("step-"))


def best(run):
    link = os.path.join(run, "checkpoints", "best")
    return int(os.readlink(link)[5:]) if os.path.islink(link) else None


def weights(run):
    """Returns the files of the last and of the best checkpoint, and the scores."""
    paths = ["scores.json"] + ["pictures.json"] * os.path.exists(os.path.join(run, "pictures.json"))
    for step in {checkpoints(run)[-1], best(run)} - {None}:
        paths += ["checkpoints/step-%d/%s" % (step, name)
                  for name in ("model.safetensors", "optimizer.safetensors", "state.json")]
    files = {"best": best(run)}
    for path in paths:
        with open(os.path.join(run, path), "rb") as file:
            files[path] = file.read()
    return files


def metrics(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [{k: v for k, v in line.items() if k not in UNEQUAL} for line in lines]


def verdict(scenario, run, whole):
    """Checks a run that was attacked and then finished."""
    assert weights(run) == whole.weights, run + ": weights, optimizer state or scores differ from the uninterrupted run"
    assert metrics(run) == whole.metrics, run + ": metrics differ from the uninterrupted run"
    info = subprocess.run([COMMAND, "info", run, "--check"], capture_output=True, text=True, check=False)
    assert info.returncode == 0 and "DAMAGED" not in info.stdout, (run, info.stdout, info.stderr)
    left = [name for _, folders, files in os.walk(run) for name in folders + files if name.endswith(".tmp")]
    assert not left, "%s: temporary files are left: %s" % (run, left)
    more = set(checkpoints(run)[:-KEEP[scenario.name]]) - {best(run)}
    assert not more, "%s: checkpoints that should have been removed: %s" % (run, more)


def unbroken(scenario):
    with open(scenario.name + ".yaml", "w", encoding="utf-8") as file:
        file.write(CONFIGS[scenario.name])
    name = "%s-%d" % scenario
    finish(begin(scenario, name + "-first"), {0})  # compiles a device's kernels
    began = time.monotonic()
    finish(begin(scenario, name + "-whole"), {0})
    return Whole(weights(name + "-whole"), metrics(name + "-whole"), time.monotonic() - began)


# ---- the attacks: each waits for its moment and returns what it did, or None if the process had ended ----


def wait_for(process, seconds, run=None):
    """Waits for the moment, or with `run` for the first save after it. Returns False if the process ended before."""
    moment = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() >= moment and (run is None or is_saving(run)):
            return True
        if run is None:
            time.sleep(0.001)
    return False


def kill(process, run, seconds, inside_save):
    if not wait_for(process, seconds, run if inside_save else None):
        return None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return "inside a save" if is_saving(run) else "elsewhere"


def send(process, run, seconds, name):
    """Sends signals. A stop must end the run soon, and other signals must not end it."""
    numbers, codes = SIGNALS[name]
    # A signal ends a process that has no handlers yet.
    while process.poll() is None and not os.path.exists(os.path.join(run, "lock")):
        time.sleep(0.001)
    if not wait_for(process, seconds):
        return None
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.02)
    sent = time.monotonic()
    if codes is None:
        return name
    finish(process, ORDERED if name != "INT twice" else ORDERED | {-2})
    took = time.monotonic() - sent
    assert took < LATE, "%s: %.1f seconds from SIG%s to the end" % (run, took, name)
    slowest[name] = max(slowest[name], took)
    return name


slowest = collections.Counter()


def attacked(chance, scenario, whole, label, attack, moments):
    """Attacks runs until an attack at each moment (seconds, argument) hit a running process. Counts the attacks."""
    done, runs, moments = collections.Counter(), 0, list(moments)
    while moments:
        run = "%s-%d-%s-%d" % (*scenario, label, runs)
        runs += 1
        process = begin(scenario, run)
        while moments:
            what = attack(process, run, *moments[0])
            if what is None:  # the process had ended: attack earlier next time
                moments[0] = (chance.uniform(0, 0.6) * moments[0][0], moments[0][1])
                break
            done[what] += 1
            moments.pop(0)
            if process.poll() is not None:
                process = begin(scenario, run)
        finish(process, DONE)
        finish(start(scenario, "resume", run), DONE)
        verdict(scenario, run, whole)
    done["runs"] += runs
    return done


def kills(chance, scenario, whole, count):
    """Kills runs, in two cases of five inside a save."""
    return attacked(chance, scenario, whole, "killed", kill,
                    [(chance.uniform(0, 0.6 * whole.seconds), i % 5 < 2) for i in range(count)])


def signals(chance, scenario, whole, count):
    """Sends each signal at `count` moments, spread over the whole run."""
    moments = [((i + chance.random()) / count * whole.seconds, name) for i in range(count) for name in SIGNALS]
    chance.shuffle(moments)
    return attacked(chance, scenario, whole, "signalled", send, moments)


def races(chance, scenario, whole, count):
    """Starts commands in one folder at once: one of them trains, the others report that the folder is in use."""
    done = collections.Counter()
    for i in range(count):
        run = "%s-%d-raced-%d" % (*scenario, i)
        if i % 2:  # a race of resume commands, in a run that was killed
            process = begin(scenario, run)
            if kill(process, run, chance.uniform(0.3, 0.9) * whole.seconds, False) is None:
                finish(process, {0})
        codes = []
        for process in [begin(scenario, run) for _ in range(3)]:
            codes.append(finish(process, {0, 2, 7, 9}))
        assert codes.count(0) == 1 or 7 in codes, "%s: ended with %s" % (run, codes)
        finish(start(scenario, "resume", run), DONE)
        verdict(scenario, run, whole)
        done["races"] += 1
        done["reports of a folder in use"] += codes.count(9) + codes.count(2)
    return done


# ---- which attacks to run ----

ATTACKS = {"kills": kills, "signals": signals, "races": races}
EVERY = [Scenario(name, threads) for name in CONFIGS for threads in (1, 2)]
# Attack, scenario, count. For signals the count is the number of moments for each signal.
PLAN = {
    True: [("kills", scenario, 10) for scenario in EVERY] + [("signals", scenario, 2) for scenario in EVERY] +
          [("races", Scenario(name, 2), 10) for name in CONFIGS],
    False: [("kills", Scenario("llama", 1), 6), ("kills", Scenario("tables", 1), 5), ("kills", Scenario("lstm", 2), 3),
            ("signals", Scenario("llama", 1), 1), ("signals", Scenario("tables", 2), 1),
            ("races", Scenario("tables", 1), 4), ("kills", Scenario("device", 1), 4)]}


def write_data(chance):
    words = ["the", "loom", "weft", "warp", "thread", "and", "shuttle", "cloth", "a", "of", "\n"]
    with open("text.txt", "w", encoding="utf-8") as file:
        file.write(" ".join(chance.choice(words) for _ in range(3000)))
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("a,b,side\n")
        for _ in range(60):
            a, b = chance.random(), chance.random()
            file.write("%g,%g,%s\n" % (a, b, "left" if a + 0.3 * chance.random() > b else "right"))
    labels = [i % 3 for i in range(60)]
    with open("small-images-idx3-ubyte", "wb") as file:  # a square in one of three places, with noise
        file.write(bytes([0, 0, 8, 3, 0, 0, 0, 60, 0, 0, 0, 8, 0, 0, 0, 8]))
        for label in labels:
            file.write(bytes(chance.randrange(60) + 150 * (label * 2 <= x < label * 2 + 3)
                             for _ in range(8) for x in range(8)))
    with open("small-labels-idx1-ubyte", "wb") as file:
        file.write(bytes([0, 0, 8, 1, 0, 0, 0, 60]) + bytes(labels))


def has_device():
    found = subprocess.run([COMMAND, "devices"], capture_output=True, text=True, check=False).stdout
    return any(line.startswith(ARGUMENTS.device + ":") for line in found.splitlines())


def is_wanted(attack, scenario):
    if ARGUMENTS.attacks:
        return attack in ARGUMENTS.attacks or attack + ":" + scenario.name in ARGUMENTS.attacks
    return FULL or scenario.name != "device"


def main():
    chance = random.Random(SEED)
    print("seed %d" % SEED)
    write_data(chance)
    wholes = {}
    for name, scenario, count in PLAN[FULL]:
        if not is_wanted(name, scenario):
            continue
        if scenario.name == "device" and not has_device():
            print("%s: skipped, there is no device %s" % (name, ARGUMENTS.device))
            continue
        if scenario not in wholes:
            wholes[scenario] = unbroken(scenario)
        began = time.monotonic()
        done = ATTACKS[name](chance, scenario, wholes[scenario], count)
        print("%-8s %-7s %d threads: %s (%.0f s)" % (name, *scenario, ", ".join(
            "%s %d" % item for item in sorted(done.items())), time.monotonic() - began), flush=True)
    for name, seconds in sorted(slowest.items()):
        print("SIG%s: %.2f s to the end, at most" % (name, seconds))
    print("kill_resume: fail=0")


with tempfile.TemporaryDirectory(prefix="weft-kill-") as folder:
    os.environ["WEFT_KERNEL_CACHE"] = os.path.join(folder, "kernels")
    os.chdir(folder)
    try:
        main()
    finally:
        os.chdir("/")
