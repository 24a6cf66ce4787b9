#!/usr/bin/env python3
"""Trains with several processes again and again. At a random moment one of them is killed, stopped, slowed down, or gets a
wrong byte in its weights; or it is killed while all of them write a checkpoint. Each time all must end in the time limit, or go on if the process is only slow. The checkpoints that
were complete must be whole, and training goes on from the newest one. Must not know: what the processes exchange.

Use: process_faults.py build/weft [--mpi openmpi|mpich] [--trials 50] [--seed 1] [--only kill,stop,slow,corrupt,save]"""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

KINDS = ["kill", "stop", "slow", "corrupt", "save"]
LIMIT = 2.0  # seconds: train.timeout
MOST = 45.0  # seconds in which all processes must have ended: a save waits ten times as long as a step
CONFIG = """task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16}
optimizer: {type: sgd, lr: 1.0e-12}
schedule: {type: constant, warmup: 0}
train: {steps: 100000000, batch: 4, accumulate: 4, eval_every: 0, save_every: 25, log_every: 5, timeout: 2}
"""

# A process notes its number before it becomes weft.
RANK = """#!/usr/bin/env bash
echo $$ >pid.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
exec "$@"
"""
MPI_OF_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none", "OMP_NUM_THREADS": "1"}


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


def output():
    return pathlib.Path("output.txt").read_text(errors="replace")


def checkpoints(run):
    """The steps of the complete checkpoints."""
    return {int(path.parent.name[5:]) for path in pathlib.Path(run).glob("checkpoints/step-*/state.json")}


def await_save(run):
    """Returns as soon as a process has begun its file of a checkpoint, and not later than in 5 seconds."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if list(pathlib.Path(run).glob("checkpoints/.step-*.tmp/optimizer*")):
                return
        except FileNotFoundError:  # the folder has been renamed
            pass


def harm(what, pid, run):
    """Does the process harm. Returns a problem of the test, or None."""
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
    else:
        newest = max(pathlib.Path(run).glob("checkpoints/step-*/model.safetensors"), key=os.path.getmtime)
        weights = newest.read_bytes()
        os.kill(pid, signal.SIGSTOP)
        found = corrupt(pid, weights[len(weights) // 2:len(weights) // 2 + 64])
        os.kill(pid, signal.SIGCONT)
        return None if found else "the weights were not found in memory"
    return None


def end(job, pids):
    """Waits until all processes have ended. Returns a problem, or None."""
    began = time.monotonic()
    while job.poll() is None or any(alive(p) for p in pids):
        if time.monotonic() - began > MOST:
            for p in pids:
                if alive(p):
                    os.kill(p, signal.SIGKILL)
            job.kill()
            return f"no end after {MOST} s: {output()[-500:]}"
        time.sleep(0.05)
    return None


def look(weft, run, before):
    """Checks the run folder. `before`: the checkpoints that were complete. Returns a problem, or None."""
    check = subprocess.run([weft, "info", run, "--check"], capture_output=True, text=True)
    if check.returncode != 0:
        return f"the run is damaged: {check.stderr}"
    after = checkpoints(run)
    if not after or max(after) < max(before):
        return f"a checkpoint is lost: there were {sorted(before)}, there are {sorted(after)}"
    more = subprocess.run([weft, "resume", run, "--quiet", "--set", f"train.steps={max(after) + 3}"], capture_output=True, text=True)
    if more.returncode != 0 or max(checkpoints(run)) != max(after) + 3:
        return f"training does not go on from step {max(after)}: {more.stderr}"
    return None


def message(mpi, what, victim):
    """What must be said, as a pattern. The launcher of MPICH does not number the process that was killed. Its library UCX ends a
    process that reads the memory of one that is gone, and the launcher may name that process instead."""
    killed = f"rank {victim} " if mpi == "openmpi" else "KILLED BY SIGNAL: 9|EXIT CODE: 9|returned -1: No such process"
    return {"kill": killed, "save": killed, "stop": f"no answer from rank {victim} ",
            "corrupt": f"rank {victim} \\(.*\\): other parameters than rank 0"}.get(what, "")


def trial(weft, mpi, what, run, draw):
    """Returns who was harmed, and a problem or None."""
    ranks = draw.choice([2, 4])
    victim = draw.randrange(1 if what == "corrupt" else 0, ranks)
    name = f"{what} rank {victim} of {ranks}"
    # a process whose state is divided receives the weights of others, so a wrong byte does not stay
    divides = what == "save" or (what != "corrupt" and draw.random() < 0.5)
    shard = draw.choice(["optimizer", "gradients", "parameters"])
    options = ["--set", f"train.shard={shard}", "--set", "optimizer.type=adamw"] if divides else []
    for old in pathlib.Path(".").glob("pid.*"):
        old.unlink()
    with open("output.txt", "wb") as file:
        job = subprocess.Popen([f"mpirun.{mpi}", "-n", str(ranks), "./rank.sh", weft, "train", "long.yaml", "--run", run, "--quiet"] + options,
                               stdout=file, stderr=file)
    deadline = time.monotonic() + 60
    while not checkpoints(run):
        if time.monotonic() > deadline or job.poll() is not None:
            return name, f"training did not begin: {output()[-500:]}"
        time.sleep(0.05)
    pid = int(pathlib.Path(f"pid.{victim}").read_text())
    pids = [int(path.read_text()) for path in pathlib.Path(".").glob("pid.*")]
    time.sleep(draw.random())
    before = checkpoints(run)
    problem = harm(what, pid, run)
    if what == "slow" and job.poll() is not None:
        problem = f"the job ended: {output()[-500:]}"
    elif what == "slow":
        os.kill(int(pathlib.Path("pid.0").read_text()), signal.SIGTERM)
    problem = end(job, pids) or problem
    if not problem and not re.search(message(mpi, what, victim), output()):
        problem = f"the message is missing: {output()[-700:]}"
    return name, problem or look(weft, run, before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of faults, with commas between them")
    asked = parser.parse_args()
    weft, kinds = str(pathlib.Path(asked.weft).resolve()), asked.only.split(",")
    draw, made, failed = random.Random(asked.seed), collections.Counter(), collections.Counter()
    os.environ.update(MPI_OF_ROOT)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-faults-") as folder:
        os.chdir(folder)
        pathlib.Path("long.yaml").write_text(CONFIG)
        pathlib.Path("text.txt").write_text("".join(f"the weft goes over and under the warp, line {i * 7919 % 1000}\n" for i in range(120)))
        pathlib.Path("rank.sh").write_text(RANK)
        os.chmod("rank.sh", 0o755)
        for number in range(asked.trials):
            what = kinds[number % len(kinds)]
            name, problem = trial(weft, asked.mpi, what, f"trial-{number}", draw)
            made[what] += 1
            failed[what] += problem is not None
            if problem:
                print(f"FAIL: trial {number}: {name}: {problem}", flush=True)
        os.chdir("/")
    for what in kinds:
        print(f"{what}: {made[what]} trials, {failed[what]} failures")
    print(f"{asked.trials} trials with {asked.mpi}, seed {asked.seed}, {sum(failed.values())} failures, {time.monotonic() - began:.0f} s")
    return sum(failed.values()) != 0


sys.exit(main())
