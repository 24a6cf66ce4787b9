"""Shared by the peers' scripts: options, data, timing, the JSON line. Steps are complete, as in `weft bench`: draw and
gather a batch from data in memory, forward, loss, backward, update. Read next: train.py."""

import argparse
import gzip
import json
import os
import resource
import statistics
import time

import numpy
import torch

IMAGES = ["fashion-mnist/train-images-idx3-ubyte.gz", "train-images-idx3-ubyte.gz"]
LABELS = ["fashion-mnist/train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte.gz"]


def arguments(workloads, about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("workload", choices=list(workloads))
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--steps", type=int, default=0, help="timed steps; 0: the default of the workload")
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "2")))
    parser.add_argument("--only", help="run only single operations whose name contains this text")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="f32", choices=["f32", "tf32", "bf16"], help="bf16: autocast")
    parser.add_argument("--graphs", action="store_true", help="with --compile: CUDA graphs (mode reduce-overhead)")
    parser.add_argument("--data", help="a folder with fashion-mnist/*.gz and tinyshakespeare.txt")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    torch.set_default_device(args.device)
    torch.set_float32_matmul_precision("high" if args.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    return args


def compiled(args, function):
    """Returns the function, compiled if the options say so, in their precision."""
    if args.compile:
        function = torch.compile(function, mode="reduce-overhead" if args.graphs else None)
    if args.precision != "bf16":
        return function

    def cast(*inputs):
        with torch.autocast(args.device, dtype=torch.bfloat16):
            return function(*inputs)
    return cast


# ---- data as in weft bench: real if a folder is given, else synthetic ----

def find(folder, names):
    paths = [os.path.join(folder, name) for name in names] if folder else []
    return next((path for path in paths if os.path.exists(path)), None)


def on_device(args, array):
    return torch.from_numpy(array).to(args.device)


def idx(path):
    """Reads the array of an idx.gz file: two zeros, a type, the rank, big-endian extents, bytes."""
    with gzip.open(path) as file:
        raw = file.read()
    shape = numpy.frombuffer(raw, ">u4", raw[3], 4)
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def images(args):
    """Returns images of 784 numbers in 0..1, and labels."""
    x, y = find(args.data, IMAGES), find(args.data, LABELS)
    if x and y:
        x, y = idx(x), idx(y)
    else:
        y = numpy.random.default_rng(1).integers(0, 10, 60000)
        x = numpy.random.default_rng(2).integers(0, 256, (60000, 784)) * (numpy.arange(784) // 79 == y[:, None])
    x = numpy.ascontiguousarray(x.reshape(len(x), 784), dtype=numpy.float32) / 255
    return on_device(args, x), on_device(args, y.astype(numpy.int64))


def color_images(args):
    """Returns images of CIFAR-10's size (channels first, in 0..1), and labels."""
    path = find(args.data, ["cifar10/train-4000.bin.gz"])
    if path:
        with gzip.open(path) as file:
            rows = numpy.frombuffer(file.read(), numpy.uint8).reshape(-1, 3073)
        x, y = rows[:, 1:], rows[:, 0]
    else:
        y = numpy.random.default_rng(1).integers(0, 10, 4000)
        x = numpy.random.default_rng(2).integers(0, 256, (4000, 3072)) * (numpy.arange(3072) // 308 == y[:, None])
    x = numpy.ascontiguousarray(x.reshape(-1, 3, 32, 32), dtype=numpy.float32) / 255
    return on_device(args, x), on_device(args, y.astype(numpy.int64))


def characters(args):
    """Returns the ids of a text, and the number of different ids."""
    path = find(args.data, ["tinyshakespeare.txt", "input.txt"])
    if path:
        with open(path, "rb") as file:
            raw = numpy.frombuffer(file.read(), numpy.uint8)
        kinds, ids = numpy.unique(raw, return_inverse=True)
        return on_device(args, ids.astype(numpy.int64)), len(kinds)
    return (65 * torch.rand(1115394) ** 3).long(), 65


# ---- timing ----

def wait(args):
    if args.device == "cuda":
        torch.cuda.synchronize()


def timed(args, step, steps, warmup, block=1):
    """Returns the seconds of a step of each timed block, and the first and the last loss. A block ends with a wait for the
    device, as in `weft bench`."""
    first = step() if warmup else None
    for _ in range(warmup - 1):
        step()
    wait(args)
    seconds, loss = [], None
    for _ in range(max(1, steps // block)):
        start = time.perf_counter()
        for _ in range(block):
            loss = step()
        wait(args)
        seconds.append((time.perf_counter() - start) / block)
    first = loss if first is None else first
    return seconds, [None if value is None else float(value) for value in (first, loss)]


def report(workload, args, seconds, losses=(None, None), parts=1):
    """Prints one JSON line. A step repeats its operation `parts` times, and the line gives the time of one."""
    card = {"device": torch.cuda.get_device_name(), "precision": args.precision, "compiled": args.compile,
            "graphs": args.graphs,
            "peak_device_mb": torch.cuda.max_memory_allocated() / 1e6} if args.device == "cuda" else {}
    print(json.dumps({
        "workload": workload, "peer": "torch", "version": torch.__version__, "threads": args.threads, **card,
        "seconds_per_step_min": min(seconds) / parts, "seconds_per_step_median": statistics.median(seconds) / parts,
        "loss_first": losses[0], "loss_last": losses[1],
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)
