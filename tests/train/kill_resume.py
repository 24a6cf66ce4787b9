"""Kills small runs with SIGKILL at random moments, some of them inside a save, and resumes them until they are done; their
weights, best checkpoints, scores and logs must then equal an unbroken run's byte for byte (rates, times and memory excepted).
A gpt, and on the cpu a network of rows, which keeps its best checkpoint.

usage: kill_resume.py COMMAND [KILLS [DEVICE]]     seeded by $WEFT_SEED (default 1), which is printed
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

COMMAND = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
SEED = int(os.environ.get("WEFT_SEED", "1"))
STEPS = 160
CONFIGS = {"gpt": """
task: language-model
data: {path: text.txt, val_fraction: 0.1}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
optimizer: {lr: 0.01}
schedule: {warmup: 10, min_lr: 0.001}
train: {steps: %d, batch: 4, accumulate: 2, eval_every: 20, save_every: 8, log_every: 4, keep: 2}
device: %s
""" % (STEPS, DEVICE), "rows": """
task: classification
data: {path: rows.csv, source: csv, val_fraction: 0.3, test_path: rows.csv}
model: {type: mlp, hidden: [8], dropout: 0.2}
optimizer: {lr: 0.05}
train: {steps: %d, batch: 8, eval_every: 4, save_every: 9, log_every: 4, keep: 1, class_weights: balanced}
device: %s
""" % (STEPS, DEVICE)}
KEPT = {"gpt": 3, "rows": 2}  # train.keep and the best
UNEQUAL = {"tokens_per_second", "samples_per_second", "epoch_seconds", "memory_peak"}


def start(*words):
    env = dict(os.environ, OMP_NUM_THREADS="1", WEFT_DEVICE=DEVICE)
    return subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)


def finish(process, wanted):
    _, errors = process.communicate(timeout=300)
    assert process.returncode in wanted, (process.returncode, errors.decode())


def metrics(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [{k: v for k, v in line.items() if k not in UNEQUAL} for line in lines]


def weights(run):
    """Files of the last and of the best checkpoint, and what was made of them at the end."""
    folder, files = os.path.join(run, "checkpoints"), {}
    steps = {"step-%d" % STEPS}
    if os.path.islink(os.path.join(folder, "best")):
        files["best"] = os.readlink(os.path.join(folder, "best"))
        steps.add(files["best"])
    paths = [os.path.join(folder, step, name) for step in sorted(steps)
             for name in ("model.safetensors", "optimizer.safetensors", "state.json")]
    for path in paths + [os.path.join(run, "scores.json")]:
        with open(path, "rb") as file:
            files[os.path.relpath(path, run)] = file.read()
    return files


def saving(run):
    """True while a checkpoint is being written: its temporary folder is there."""
    try:
        return any(name.startswith(".") for name in os.listdir(os.path.join(run, "checkpoints")))
    except FileNotFoundError:
        return False


def kill_once(process, run, inside_save, delay):
    """Waits for the moment and kills. Returns (was running, was inside a save)."""
    begun = time.monotonic()
    while process.poll() is None:
        now = time.monotonic() - begun
        if inside_save and now >= delay and saving(run):
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True, saving(run)
        if not inside_save and now >= delay:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True, saving(run)
        if not inside_save:
            time.sleep(0.001)
    return False, False


def torture(chance, name, kills, saves):
    """Kills runs of a configuration so often, so many times within a save. Returns what came of it."""
    config = name + ".yaml"
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIGS[name])
    finish(start("train", config, "--run", name + "-first"), {0})  # which compiles a device's kernels
    began = time.monotonic()
    finish(start("train", config, "--run", name + "-whole"), {0})
    length = time.monotonic() - began
    expected, expected_metrics = weights(name + "-whole"), metrics(name + "-whole")
    hits = in_save = runs = 0
    while hits < kills or in_save < saves:
        run = "%s-killed-%d" % (name, runs)
        runs += 1
        assert runs <= 10 * kills, "too few kills hit a running process"
        process = start("train", config, "--run", run)
        while True:
            inside = in_save < saves or chance.random() < 0.3
            hit, was_saving = kill_once(process, run, inside, chance.uniform(0, 0.6 * length))
            hits += hit
            in_save += was_saving
            process.stderr.close()
            if not hit or hits >= 2 * kills:
                break
            if os.path.exists(os.path.join(run, "config.yaml")):
                process = start("resume", run)
            else:  # killed before it was a run: nothing is lost, the folder may be taken again
                shutil.rmtree(run, ignore_errors=True)
                process = start("train", config, "--run", run)
        finish(start("resume", run), {0, 7})
        assert weights(run) == expected, run + ": other weights, optimizer state or scores than the unbroken run"
        assert metrics(run) == expected_metrics, run + ": other metrics than the unbroken run"
        left = [n for _, folders, files in os.walk(run) for n in folders + files if n.endswith(".tmp")]
        assert not left, "left behind: %s" % left
        steps = [n for n in os.listdir(os.path.join(run, "checkpoints")) if n.startswith("step-")]
        assert len(steps) <= KEPT[name], "more checkpoints than are kept: %s" % steps
    return hits, in_save, runs


def main():
    chance = random.Random(SEED)
    print("seed %d" % SEED)
    words = ["the", "loom", "weft", "warp", "thread", "and", "shuttle", "cloth", "a", "of", "\n"]
    with open("text.txt", "w", encoding="utf-8") as file:
        file.write(" ".join(chance.choice(words) for _ in range(3000)))
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("a,b,side\n")
        for _ in range(60):
            a, b = chance.random(), chance.random()
            file.write("%g,%g,%s\n" % (a, b, "left" if a + 0.3 * chance.random() > b else "right"))
    of_rows = KILLS // 3 if DEVICE == "cpu" else 0  # elsewhere it is the kernels that cost
    done = [torture(chance, "gpt", KILLS - of_rows, 3)]
    if of_rows:
        done.append(torture(chance, "rows", of_rows, 0))
    hits, in_save, runs = map(sum, zip(*done))
    print("kill_resume: kills=%d inside_a_save=%d runs=%d equal=%d fail=0" % (hits, in_save, runs, runs))


with tempfile.TemporaryDirectory(prefix="weft-kill-") as folder:
    os.chdir(folder)
    try:
        main()
    finally:
        os.chdir("/")
