#!/usr/bin/env bash
# train.freeze: parameters that training leaves as they are, in whole runs, after resuming, and with wrong patterns.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

for i in $(seq 300); do echo "the weft goes over and under the warp, line $((i * 7919 % 1000))"; done >text.txt
cat >gpt.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 2, heads: 2, width: 8, context: 16}
schedule: {warmup: 1}
train: {steps: 4, batch: 4, eval_every: 0, save_every: 1, keep: 9, freeze: [wte.weight, 'h.0.*', '!h.0.ln_*']}
END

# changed RUN: prints the names of the parameters that differ between steps 1 and 4.
changed() {
    python3 - "$1" <<'END'
import json, struct, sys
def tensors(step):
    data = open(f"{sys.argv[1]}/checkpoints/step-{step}/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {n: data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]] for n, e in head.items() if n != "__metadata__"}
first, last = tensors(1), tensors(4)
print(" ".join(n for n in sorted(first) if first[n] != last[n]))
END
}

expect 0 'train.freeze: training changes 1,?048 of the parameters' "$weft" train gpt.yaml --run frozen
names=$(changed frozen)
check "frozen parameters stay: $names" test "$(grep -cE 'wte|h\.0\.(attn|mlp)' <<<"$names")" = 0
check "the others change: $names" grep -q 'h.0.ln_1.weight.* h.1.attn.c_attn.weight.* ln_f.weight' <<<"$names"
expect 0 'weft_none' bash -c "echo weft_none; python3 -c \"
import json, struct
data = open('frozen/checkpoints/step-4/optimizer.safetensors', 'rb').read()
names = json.loads(data[8:8 + struct.unpack('<Q', data[:8])[0]])
assert not any('wte' in n or 'h.0.attn' in n for n in names), names
assert any('h.1.attn' in n for n in names)\""

# ---- resuming ----
expect 0 '' "$weft" train gpt.yaml --run two --quiet --set train.steps=2
expect 0 '' "$weft" resume two --quiet --set train.steps=4
check "a resumed run has the same bits" cmp two/checkpoints/step-4/model.safetensors frozen/checkpoints/step-4/model.safetensors

# ---- the last layer of another model alone ----
seq 60 | awk '{print $1 / 60 "," $1 % 3 "," ($1 % 2 ? "a" : "b")}' >table.csv
expect 0 '' "$weft" train mlp --data table.csv --run mlp --quiet --set train.steps=4 --set train.save_every=1 --set train.keep=9 \
    --set train.epochs=0 --set 'train.freeze=[*, !2.*]' --set model.hidden=[8]
check "only the last layer changes: $(changed mlp)" test "$(changed mlp)" = "2.bias 2.weight"

# ---- refusals ----
expect 2 "train.freeze: no parameter matches 'h.7.\*'; the last one is 'ln_f.bias'" "$weft" train gpt.yaml --run bad --set 'train.freeze=[h.7.*]'
expect 2 'no parameter to train, all are frozen' "$weft" train gpt.yaml --run bad --set 'train.freeze=[*]'
check "no run was made" test ! -e bad

echo "test_freeze: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
