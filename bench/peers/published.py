#!/usr/bin/env python3
"""Compares published models in Weft with llama.cpp (decoding, prompts), with peft and PyTorch (a LoRA step), and with
transformers and PyTorch (a step of a classifier of texts).

    published.py --weft build/weft --folder SmolLM2 --data chats.jsonl              a LoRA step, with torch and peft
    published.py --weft build/weft --encoder all-MiniLM-L6-v2                       a step of a classifier, with torch
    published.py --weft build/weft --gguf SmolLM2.gguf --llama-bench llama-bench    tokens per second
    published.py --weft build/weft --gguf SmolLM2.gguf --llama-batched-bench llama-batched-bench [--folder SmolLM2]
                                                        tokens per second of 16 prompts, 1, 4 and 8 at once

The two sides run in turns on the same threads. Prints the median of each, and the ratio. The time of decoding in Weft is
the difference of two runs of `weft generate`, so that starting and loading do not count. With --folder, Weft takes the weights
of the folder for several prompts; the GGUF file should then have the same type.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BATCH, CONTEXT, RANK, STEPS = 2, 512, 8, 5
TEXTS, TOKENS = 16, 64 # of a batch of texts, and of each text
PROMPTS, FIRST, SIZES = 16, 17, (1, 4, 8)  # several prompts; the tokens of each that are not timed; how many at once


def run(command, threads):
    """Runs a command. Returns its output, its seconds, and the peak of its memory in MB."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return output, time.monotonic() - started, usage.ru_maxrss / 1024


def lora_weft(o, folder):
    """Returns the seconds of a step of `weft train`, and the peak of memory."""
    command = [o.weft, "train", "gpt", "--data", o.data, "--run", os.path.join(folder, f"run{time.monotonic_ns()}")]
    for setting in (f"model.init={o.folder}", f"lora.rank={RANK}", f"lora.targets=[{','.join(TARGETS)}]",
                    f"train.batch={BATCH}", f"model.context={CONTEXT}", f"train.steps={STEPS}", "train.log_every=1",
                    "data.val_fraction=0", "train.eval_every=0"):
        command += ["--set", setting]
    output, _, memory = run(command, o.threads)
    rates = [float(r) * (1000 if k else 1) for r, k in re.findall(r"([\d.]+)(k?) tokens/s", output)]
    return BATCH * CONTEXT / statistics.median(rates), memory


def lora_peft(o):
    """The same step with peft, in a process of its own."""
    output, _, memory = run([sys.executable, __file__, "--peft", o.folder, "--threads", str(o.threads)], o.threads)
    return float(output.split()[-1]), memory


def peft_step(folder, threads):
    """Prints the median of the seconds of steps after the first."""
    import peft
    import torch
    import transformers
    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules=TARGETS))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    ids = torch.randint(0, model.config.vocab_size, (BATCH, CONTEXT))
    times = []
    for _ in range(STEPS):
        started = time.monotonic()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.monotonic() - started)
    print(statistics.median(times[1:]))


def texts_weft(o, folder):
    """Returns the seconds of a step of a classifier with `weft train`, and the peak of memory."""
    data = os.path.join(folder, "texts.csv")
    with open(data, "w", encoding="utf-8") as file:  # two more tokens are the special ones
        file.write("text,label\n" + "".join(f"{' '.join(['the'] * (TOKENS - 2))},{i % 2}\n" for i in range(2 * TEXTS)))
    command = [o.weft, "train", "encoder", "--data", data, "--run", os.path.join(folder, f"run{time.monotonic_ns()}")]
    for setting in (f"model.init={o.encoder}", f"train.batch={TEXTS}", f"train.steps={4 * STEPS}", "train.log_every=1",
                    "data.val_fraction=0", "train.eval_every=0"):
        command += ["--set", setting]
    output, _, memory = run(command, o.threads)
    rates = [float(r) * (1000 if k else 1) for r, k in re.findall(r"([\d.]+)(k?) samples/s", output)]
    return TEXTS / statistics.median(rates), memory


def texts_torch(o):
    """The same step with transformers, in a process of its own."""
    output, _, memory = run([sys.executable, __file__, "--torch", o.encoder, "--threads", str(o.threads)], o.threads)
    return float(output.split()[-1]), memory


def torch_step(folder, threads):
    """Prints the median of the seconds of steps after the first."""
    import torch
    import transformers
    torch.set_num_threads(threads)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, num_labels=2).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
    ids = torch.randint(1000, model.config.vocab_size, (TEXTS, TOKENS))
    mask, labels = torch.ones_like(ids), torch.arange(TEXTS) % 2
    times = []
    for _ in range(4 * STEPS):
        started = time.monotonic()
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.monotonic() - started)
    print(statistics.median(times[1:]))


def rates_weft(o):
    """Returns tokens per second: of a prompt, and of decoding."""
    long = " ".join(["the"] * o.prompt)

    def seconds(prompt, tokens):
        command = [o.weft, "generate", o.gguf, "--prompt", prompt, "--tokens", str(tokens), "--temperature", "0"]
        return run(command, o.threads)[1]
    start = min(seconds("the", 1) for _ in range(3))
    return o.prompt / (seconds(long, 1) - start), o.decode / (seconds("the", 1 + o.decode) - start)


def rates_llama(o):
    output, _, _ = run([o.llama_bench, "-m", o.gguf, "-t", str(o.threads), "-p", str(o.prompt), "-n", str(o.decode),
                        "-r", "1", "-o", "json"], o.threads)
    rows = json.loads(output)
    return (next(r["avg_ts"] for r in rows if r["n_prompt"]), next(r["avg_ts"] for r in rows if r["n_gen"]))


def batch_weft(o, prompts, batch):
    """Returns tokens per second of `batch` prompts at once, after their first tokens."""
    def measure(tokens):
        output, seconds, _ = run([o.weft, "generate", o.folder or o.gguf, "--prompts", prompts, "--batch", str(batch), "--tokens",
                                  str(tokens), "--temperature", "0"], o.threads)
        return sum(json.loads(line)["tokens"] for line in output.splitlines()), seconds
    few, start = measure(FIRST)
    all_tokens, end = measure(FIRST + o.decode)
    return (all_tokens - few) / (end - start)


def batch_llama(o, batch):
    output, _, _ = run([o.llama_batched_bench, "-m", o.gguf, "-t", str(o.threads), "-c", "8192", "-npp", "32", "-ntg", str(o.decode),
                        "-npl", str(batch), "--output-format", "jsonl"], o.threads)
    return next(json.loads(line)["speed_tg"] for line in output.splitlines() if line.startswith("{"))


def batches(o, folder):
    prompts = os.path.join(folder, "prompts.txt")
    with open(prompts, "w", encoding="utf-8") as file:
        for i in range(PROMPTS):  # of 32 tokens or so; they go on for ever
            file.write("Counting: " + ", ".join(str(k) for k in range(i + 1, i + 9)) + ",\n")
    rounds = [[(batch_weft(o, prompts, batch), batch_llama(o, batch)) for batch in SIZES] for _ in range(o.runs)]
    for i, batch in enumerate(SIZES):
        show(f"{batch} at once", "tokens/s", [r[i][0] for r in rounds], [r[i][1] for r in rounds], True)


def show(what, unit, ours, theirs, more_is_better):
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{what}: Weft {a:.4g} {unit}, peer {b:.4g} {unit}, ratio {a / b if more_is_better else b / a:.2f}")


def show_step(what, pairs):
    """Shows the times and the peak memory of a step: pairs of ours and the peer's."""
    for i, (name, unit) in enumerate(((what, "s"), ("peak memory", "MB"))):
        show(name, unit, [w[i] for w, _ in pairs], [p[i] for _, p in pairs], False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--weft", "--folder", "--data", "--gguf", "--llama-bench", "--llama-batched-bench", "--peft", "--encoder",
                 "--torch"):
        parser.add_argument(name)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--decode", type=int, default=128)
    o = parser.parse_args()
    if o.peft:
        return peft_step(o.peft, o.threads)
    if o.torch:
        return torch_step(o.torch, o.threads)
    if o.encoder:
        with tempfile.TemporaryDirectory() as folder:
            pairs = [(texts_weft(o, folder), texts_torch(o)) for _ in range(o.runs)]
        show_step("classifier step", pairs)
    if o.llama_batched_bench:
        with tempfile.TemporaryDirectory() as folder:
            return batches(o, folder)
    if o.folder:
        with tempfile.TemporaryDirectory() as folder:
            pairs = [(lora_weft(o, folder), lora_peft(o)) for _ in range(o.runs)]
        show_step("LoRA step", pairs)
    if o.gguf:
        pairs = [(rates_weft(o), rates_llama(o)) for _ in range(o.runs)]
        show("prompt", "tokens/s", [w[0] for w, _ in pairs], [p[0] for _, p in pairs], True)
        show("decoding", "tokens/s", [w[1] for w, _ in pairs], [p[1] for _, p in pairs], True)
    return None


if __name__ == "__main__":
    main()
