#!/usr/bin/env python3
"""Tokenizes texts with GPT-2's tokenizer, by weft tokenize and by tiktoken in turns, with one thread each. Prints the
medians in MB of text per second. The ids must be the same.

    python bench/peers/tokens.py --weft build/weft --gpt2 FOLDER TEXT...     FOLDER: has encoder.json and vocab.bpe, or both with .gz
"""
import argparse
import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from array import array

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def content(path):
    with open(path, "rb") as f:
        data = f.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def encoding(folder, work):
    paths = []
    for name in ("vocab.bpe", "encoder.json"):
        path = os.path.join(folder, name)
        paths.append(os.path.join(work, name))
        with open(paths[-1], "wb") as f:
            f.write(content(path if os.path.exists(path) else path + ".gz"))
    ranks = data_gym_to_mergeable_bpe_ranks(*paths)
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--gpt2", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("texts", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        gpt2, out = encoding(args.gpt2, work), os.path.join(work, "out.bin")
        for path in args.texts:
            data = content(path)
            text, weft, other = data.decode(), [], []
            for _ in range(args.rounds):
                said = subprocess.run([args.weft, "tokenize", path, "--tokenizer", args.gpt2, "--out", out], check=True,
                                      capture_output=True, text=True).stdout
                weft.append(float(re.search(r"([0-9.]+) MB a second", said).group(1)))
                start = time.perf_counter()
                ids = gpt2.encode_ordinary(text)
                other.append(len(data) / (time.perf_counter() - start) / 1e6)
            with open(out, "rb") as f:
                mine = array("H", f.read()[1024:])
            if sys.byteorder != "little":
                mine.byteswap()
            same = mine.tolist() == ids
            print(f"{path}: {len(data)} bytes, {len(ids)} tokens: weft {statistics.median(weft):.1f} MB/s, tiktoken "
                  f"{statistics.median(other):.1f}; ids {'the same' if same else 'DIFFER'}")
            if not same:
                sys.exit(1)


if __name__ == "__main__":
    main()
