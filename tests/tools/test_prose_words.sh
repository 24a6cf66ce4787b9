#!/usr/bin/env bash
# Tests tools/prose_words.py on sentences: what a blind rename leaves is wrong, and names of the field are right.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHONPATH=tools python3 - <<'END'
import prose_words

words = prose_words.known()
wrong = {
    "Lanes lie outer the lane dimension.": "outer the",
    "It is a entry of the table.": "a entry",
    "An tile has 32 terms.": "An tile",
    "The sum of the the rows.": "the the",
    "A qubsed of the rows.": "qubsed" if words else None,
}
right = ["An mlp reads an npy file in a uniform way.", "The outer one of a pair.", "`outer the` is code. 5 %zu bytes.",
         "weft_conv2d, prefetched rows and jansson's words.", "Packs a again."]
failed = 0
for sentence, part in wrong.items():
    said = [what for _, what in prose_words.faults([(1, sentence)], words)]
    if part and (len(said) != 1 or part not in said[0]):
        failed += 1
        print(f"FAIL: {sentence} gives {said}")
for sentence in right:
    said = list(prose_words.faults([(1, sentence)], words))
    if said:
        failed += 1
        print(f"FAIL: {sentence} gives {said}")
print(f"prose_words: {len(wrong) + len(right)} sentences, {failed} wrong", "" if words else "(spelling skipped)")
raise SystemExit(failed > 0)
END
