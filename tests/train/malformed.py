#!/usr/bin/env python3
"""Changes files of runs, seals them again, and lets every command read them. A command must end with the exit code and the
message of the table, and without a finding of a sanitizer. Needs no packages.

    malformed.py WEFT

The working folder holds the runs table (mlp), text (gpt) and adapters (a Llama with lora.rank)."""

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

WEFT = sys.argv[1]
MASK = 2**64 - 1
CHECKPOINT, WEIGHTS = "checkpoints/step-2/state.json", "checkpoints/step-2/model.safetensors"
READ = {"table": [["predict", "run", "table.csv"], ["export", "run", "--to", "c"]],
        "text": [["generate", "run", "--tokens", "3"], ["export", "run", "--to", "c"], ["export", "run", "--to", "gpt2"]],
        "adapters": [["generate", "run", "--tokens", "3", "--prompt", "the"]] +
                    [["export", "run", "--to", to] for to in ("huggingface", "gguf", "gguf-lora", "peft")]}
ALL = [["eval", "run"], ["export", "run", "--to", "safetensors"]]
TRAINS = ["resume", "run", "--set", "train.steps=3", "--quiet"]
failures, cells = [], 0


def mixed(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def checksum(data):
    """That of src/io/sum.h, of less than 1 MiB."""
    a, b = 0x9e3779b97f4a7c15, 0x2545f4914f6cdd1d
    for word in [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)] + [len(data)]:
        a = mixed(((a ^ word) + 0x9e3779b97f4a7c15) & MASK)
        b = ((b << 29 | b >> 35) + word * 0xff51afd7ed558ccd + 1) & MASK
    return "%08x:%016x" % (zlib.crc32(data), a)


def seal(path, value):
    """Writes a sealed file, see src/io/seal.h."""
    value.pop("checksum", None)
    body = json.dumps(value, indent=1).encode()[:-2] + b","
    with open(path, "wb") as file:
        file.write(body + b'\n "checksum": "%s"\n}\n' % checksum(body).encode())


def change_sealed(name, change):
    with open("run/" + name, encoding="utf-8") as file:
        value = json.load(file)
    change(value)
    seal("run/" + name, value)


def change_published(change):
    with open("run/published/config.json", encoding="utf-8") as file:
        value = json.load(file)
    change(value)
    with open("run/published/config.json", "w", encoding="utf-8") as file:
        json.dump(value, file)


def change_tokenizer(change):
    """Changes the tokenizer of a text, whose checksum data.json holds."""
    with open("run/tokenizer.json", encoding="utf-8") as file:
        value = json.load(file)
    change(value)
    with open("run/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(value, file)
    with open("run/tokenizer.json", "rb") as file:
        sum_of_file = checksum(file.read())
    change_sealed("data.json", lambda data: data.update(tokenizer=sum_of_file))


def change_weights(change):
    """Changes {name: (dtype, shape, bytes)} of the weights, and describes them in state.json."""
    with open("run/" + WEIGHTS, "rb") as file:
        data = file.read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {name: (t["dtype"], t["shape"], data[size + t["data_offsets"][0]:size + t["data_offsets"][1]])
               for name, t in json.loads(data[8:size]).items() if name != "__metadata__"}
    change(tensors)
    header, body, entries = {}, b"", []
    for name, (dtype, shape, values) in sorted(tensors.items()):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(values)]}
        entries.append({"name": name, "dtype": dtype.lower(), "shape": shape, "offset": len(body), "checksum": checksum(values)})
        body += values
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    head = struct.pack("<Q", len(text)) + text
    for entry in entries:
        entry["offset"] += len(head)
    with open("run/" + WEIGHTS, "wb") as file:
        file.write(head + body)

    def describe(state):
        state["files"][0].update(bytes=len(head + body), crc32="%08x" % zlib.crc32(head + body), header_bytes=len(head),
                                 header_checksum=checksum(head), tensors=entries)
    change_sealed(CHECKPOINT, describe)


def expect(what, words, code, says):
    global cells
    cells += 1
    done = subprocess.run([WEFT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    errors = done.stderr.decode(errors="replace")
    told = [line for line in errors.splitlines() if line.startswith("weft: ")]
    if done.returncode != code or "Sanitizer" in errors or (code and (len(told) != 1 or says not in told[0])):
        failures.append(f"{what}: weft {' '.join(words)}: exit {done.returncode}, wanted {code} and '{says}':\n{errors[:3000]}")


def refused(run, what, change, argument, says):
    """Changes a copy of a run. All commands must refuse it."""
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree(run, "run", symlinks=True)
    change(argument)
    for words in ALL + READ[run] + [TRAINS]:
        expect(f"{run}, {what}", words, 3, says)


def put(*path, value=None):
    """Returns a function that sets a value, or deletes it."""
    def change(tree):
        for key in path[:-1]:
            tree = tree[key]
        if value is None:
            del tree[path[-1]]
        else:
            tree[path[-1]] = value
    return change


def rename(tensors):
    tensors["weird"] = tensors.pop(sorted(tensors)[0])


def turn(tensors):
    name = sorted(name for name in tensors if len(tensors[name][1]) == 2)[0]
    dtype, shape, values = tensors[name]
    tensors[name] = (dtype, shape + [1], values)


for sample in ("table", "text", "adapters"):  # the same seals as Weft's, and what is not changed is accepted
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree(sample, "run", symlinks=True)
    for file in ("data.json", CHECKPOINT):
        change_sealed(file, lambda value: None)
    change_weights(lambda tensors: None)
    for command in ALL + READ[sample] + [["info", "run", "--check"], TRAINS]:
        expect(f"{sample}, the same", command, 0, "")
    refused(sample, "a tensor has another name", change_weights, rename, "/model.safetensors: ")
    refused(sample, "a tensor has another shape", change_weights, turn, "/model.safetensors: ")
    refused(sample, "a checksum is missing", lambda change: change_sealed(CHECKPOINT, change),
            put("files", 0, "tensors", 0, "checksum"), "/state.json: ")

for path in (("mean", 0), ("classes", 0), ("table", 1, "kind"), ("features",), ("deviation",)):
    refused("table", f"without {path}", lambda change: change_sealed("data.json", change), put(*path), "data.json: ")
for key, value in (("vocab_size", -1), ("num_attention_heads", 0), ("rope_theta", 0), ("model_type", "x"), ("hidden_size", 2**40)):
    refused("adapters", f"{key} {value}", change_published, put(key, value=value), f"published/config.json: {key}: ")
refused("adapters", "an id of 2^63 - 1", change_tokenizer, put("model", "vocab", "a", value=2**63 - 1), "vocab: id 9223372036854775807")
refused("adapters", "an id twice", change_tokenizer, put("model", "vocab", "a", value=3), "have one id")
refused("text", "a vocabulary of numbers", change_tokenizer, put("vocabulary", value=[1, 2]), "tokenizer.json: vocabulary: ")

print("\n".join(failures))
print(f"malformed: {cells} commands, {len(failures)} failures")
sys.exit(len(failures) > 0)
