#!/usr/bin/env python3
"""Trains with several processes again and again. At a random moment one of them is killed, stopped, slowed down, or gets a
wrong byte in its weights; or it is killed while all of them write a checkpoint. Each time all must end in the time limit, or go on if the process is only slow, and the newest
checkpoint must be whole. Must not know: what the processes exchange.

Use: process_faults.py WEFT MPIRUN TRIALS SEED"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

LIMIT = 2.0  # seconds: train.timeout
MOST = 45.0  # seconds in which all processes must have ended: a save waits ten times as long as a step
CONFIG = """task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16}
optimizer: {type: sgd, lr: 1.0e-12}
schedule: {type: constant, warmup: 0}
train: {steps: 100000000, batch: 4, accumulate: 4, eval_every: 0, save_every: 25, log_every: 5, timeout: 2}
"""


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def corrupt(pid, wanted):
    """Changes a byte of the weights wherever the process holds them. Returns how often they were found."""
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if not match or "[v" in line:
                continue
            start, end = (int(text, 16) for text in match.groups())
            try:
                memory.seek(start)
                content = memory.read(end - start)
            except (OSError, ValueError):
                continue
            at = content.find(wanted)
            while at >= 0:
                memory.seek(start + at)
                memory.write(bytes([content[at] ^ 0x40]))
                found += 1
                at = content.find(wanted, at + 1)
    return found


def await_save(run):
    """Returns as soon as a process has begun its file of a checkpoint, and not later than in 5 seconds."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if list(pathlib.Path(run).glob("checkpoints/.step-*.tmp/optimizer-*")):
                return
        except FileNotFoundError:  # the folder has been renamed
            pass


def trial(weft, mpirun, number, draw):
    run, ranks = f"trial-{number}", draw.choice([2, 4])
    what = ["kill", "stop", "slow", "corrupt", "save"][number % 5]
    victim = draw.randrange(1 if what == "corrupt" else 0, ranks)
    # a process whose state is divided receives the weights of others, so a wrong byte does not stay
    divides = what == "save" or (what != "corrupt" and draw.random() < 0.5)
    options = ["--set", "train.shard=optimizer", "--set", "optimizer.type=adamw"] if divides else []
    for old in pathlib.Path(".").glob("pid.*"):
        old.unlink()
    with open("output.txt", "wb") as output:
        job = subprocess.Popen([mpirun, "-n", str(ranks), "./rank.sh", "train", "long.yaml", "--run", run, "--quiet"] + options,
                               stdout=output, stderr=output)
    deadline = time.monotonic() + 60
    while not list(pathlib.Path(run).glob("checkpoints/step-*/state.json")):
        if time.monotonic() > deadline or job.poll() is not None:
            return f"{what}: training did not begin: {pathlib.Path('output.txt').read_text()[-500:]}"
        time.sleep(0.05)
    pid = int(pathlib.Path(f"pid.{victim}").read_text())
    pids = [int(path.read_text()) for path in pathlib.Path(".").glob("pid.*")]
    time.sleep(draw.random())
    if what == "save":
        await_save(run)
    if what in ("kill", "save"):
        os.kill(pid, signal.SIGKILL)
    elif what == "stop":
        os.kill(pid, signal.SIGSTOP)
    elif what == "slow":
        for _ in range(6):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(LIMIT / 4)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        if job.poll() is not None:
            return f"slow: the job ended: {pathlib.Path('output.txt').read_text()[-500:]}"
        os.kill(int(pathlib.Path("pid.0").read_text()), signal.SIGTERM)
    else:
        newest = max(pathlib.Path(run).glob("checkpoints/step-*/model.safetensors"), key=os.path.getmtime)
        weights = newest.read_bytes()
        os.kill(pid, signal.SIGSTOP)
        found = corrupt(pid, weights[len(weights) // 2:len(weights) // 2 + 64])
        os.kill(pid, signal.SIGCONT)
        if not found:
            return "corrupt: the weights were not found in memory"
    began = time.monotonic()
    while job.poll() is None or any(alive(p) for p in pids):
        if time.monotonic() - began > MOST:
            for p in pids:
                if alive(p):
                    os.kill(p, signal.SIGKILL)
            job.kill()
            return f"{what} rank {victim} of {ranks}: no end after {MOST} s: {pathlib.Path('output.txt').read_text()[-500:]}"
        time.sleep(0.05)
    said = pathlib.Path("output.txt").read_text(errors="replace")
    wanted = {"stop": f"no answer from rank {victim} ", "corrupt": f"rank {victim} \\(.*\\): other parameters than rank 0"}
    if what in wanted and not re.search(wanted[what], said):
        return f"{what} rank {victim} of {ranks}: the message is missing: {said[-700:]}"
    check = subprocess.run([weft, "info", run, "--check"], capture_output=True, text=True)
    if check.returncode != 0:
        return f"{what} rank {victim} of {ranks}: the run is damaged: {check.stderr}"
    return None


def main():
    weft, mpirun, trials, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    pathlib.Path("long.yaml").write_text(CONFIG)
    failures = 0
    for number in range(trials):
        problem = trial(weft, mpirun, number, draw)
        if problem:
            failures += 1
            print(f"FAIL: trial {number}: {problem}")
    print(f"{trials} trials with {mpirun}, seed {seed}, {failures} failures")
    return failures != 0


sys.exit(main())
