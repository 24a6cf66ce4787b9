"""Measures commands on an idle machine: each runs alone, and a run that other processes disturbed is discarded.
Read next: compare (one workload, any peer), table (all workloads)."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Returns the processor seconds that the whole machine has worked since its start, stolen time included."""
    with open("/proc/stat", encoding="ascii") as file:
        values = [int(word) for word in file.readline().split()[1:9]]
    idle, waiting = values[3], values[4]
    return (sum(values) - idle - waiting) / TICKS


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_until_idle(limit, patience, rest):
    """Returns False if the machine did not become idle in time."""
    deadline = time.monotonic() + patience
    while True:
        busy, start = busy_seconds(), time.monotonic()
        time.sleep(rest)
        if (busy_seconds() - busy) / (time.monotonic() - start) <= limit:
            return True
        if time.monotonic() > deadline:
            return False


class Disturbed(Exception):
    pass


def run_once(command, args, **variables):
    """Runs the command until a run is undisturbed and returns its JSON lines. `variables` are added to its environment."""
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads), **variables)
    for _ in range(args.tries):
        if not wait_until_idle(args.limit, args.patience, args.rest):
            raise Disturbed(f"the machine was not idle within {args.patience:g} seconds")
        own, busy, start = children_seconds(), busy_seconds(), time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=args.timeout, env=env)
        wall = time.monotonic() - start
        others = (busy_seconds() - busy - (children_seconds() - own)) / wall
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-1000:]}")
        if others <= args.limit:
            return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        print(f"  disturbed by {others:.2f} processors of other processes, repeating", file=sys.stderr)
    raise Disturbed(f"{args.tries} runs in a row were disturbed")


def median_of(runs, workload):
    lines = [line for run in runs for line in run if line.get("workload") == workload]
    return {"median": statistics.median(line["seconds_per_step_median"] for line in lines),
            "least": min(line["seconds_per_step_min"] for line in lines),
            "spread": max(line["seconds_per_step_median"] for line in lines)
            / min(line["seconds_per_step_median"] for line in lines),
            "line": lines[0], "runs": len(lines)}


def add_options(parser):
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=0.12, help="processors that other processes may use")
    parser.add_argument("--rest", type=float, default=1.0, help="seconds that the machine must be idle before a run")
    parser.add_argument("--patience", type=float, default=120, help="seconds to wait for an idle machine")
    parser.add_argument("--tries", type=int, default=4, help="attempts for each run")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds allowed for one run")
