#!/usr/bin/env bash
# Training on preferences (DPO) in the command: what is found and shown, resume, eval, export, and what is refused. The
# model is a small Llama.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_dpo_runs: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1
python3 - <<'EOF'
import json


def says(role, text):
    return [{"role": role, "content": text}]


with open("pairs.jsonl", "w") as f:
    for i in range(60):
        good, bad = says("assistant", "the weft goes over"), says("assistant", "no idea %d" % i)
        f.write(json.dumps({"prompt": says("user", "thread %d" % i), "chosen": good, "rejected": bad}) + "\n")
with open("held.jsonl", "w") as f:
    for i in range(10):
        ask = says("user", "yarn %d" % i)
        f.write(json.dumps({"prompt": "yarn", "chosen": ask + says("assistant", "the weft goes over"),
                            "rejected": ask + says("assistant", "no idea")}) + "\n")
with open("texts.jsonl", "w") as f:
    for i in range(8):
        f.write(json.dumps({"prompt": "the weft", "chosen": " goes over", "rejected": " stops"}) + "\n")
    f.write(json.dumps({"chosen": "the weft goes", "rejected": "the weft goes"}) + "\n")
    f.write(json.dumps({"prompt": "the " * 60, "chosen": "weft", "rejected": "warp"}) + "\n")
    f.write(json.dumps({"prompt": "the", "chosen": " weft", "rejected": " warp" * 60}) + "\n")
EOF

tune=(--set model.init=model --set optimizer.lr=0.01 --set schedule.warmup=0 --set train.log_every=1 --device cpu)
lora=("${tune[@]}" --set lora.rank=4)

# ---- a run: found by its keys ----
expect 0 'data: 70 pairs of answers, [0-9]+ tokens, from pairs.jsonl' "$weft" train gpt --data pairs.jsonl \
    --set data.test_path=held.jsonl "${lora[@]}" --set train.epochs=4 --run run
check "it computes the reference" grep -q '^reference: ' out
check "it says what the model prefers before" grep -qE 'likelier in [0-9.]+ % of the training pairs' out
check "an epoch has 14 steps of 4 pairs" grep -q 'run: 56 steps, 14 an epoch' out
check "the source is kept" grep -q 'source: preferences' run/config.yaml
check "the first loss is log 2" python3 -c '
import json, math
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
assert abs(lines[0]["loss"] - math.log(2)) < 1e-5, lines[0]
assert lines[-1]["loss"] < 0.2 and lines[-1]["val_accuracy"] == 1 and lines[-1]["val_margin"] > 1, lines[-1]
scores = json.load(open("run/scores.json"))["test"]
assert scores["accuracy"] == 1 and scores["margin"] > 1 and "perplexity" not in scores, scores'
check "the end shows the margin" grep -qE 'validation margin [1-9]' out
check "the report shows it" grep -q 'Validation margin of rewards' run/report.html
expect 0 'test +loss 0\.[0-9]+  accuracy 100.00 %  margin [1-9][0-9.]+  \(10 pairs\)' "$weft" eval run
cp out before.txt
expect 0 'new data +loss 0\.[0-9]+  accuracy 100.00 %  margin [1-9][0-9.]+  \(10 pairs\)' "$weft" eval run held.jsonl
check "new data have the same scores" bash -c '[ "$(grep -o "loss.*10 pairs" out)" = "$(grep -o "loss.*10 pairs" before.txt)" ]'
expect 0 'step' "$weft" plan gpt --data pairs.jsonl "${lora[@]}"
expect 0 '' "$weft" export run --to peft --out adapter
check "adapters for peft" test -s adapter/adapter_model.safetensors
expect 0 '^the weft' "$weft" generate run --prompt "the weft" --tokens 4
expect 0 '' "$weft" export run --to c --out plain
expect 1 'a training step on preferences cannot be written' "$weft" export run --to c --training --out step
one_line

expect 0 'reference.json  intact' "$weft" info run --check
expect 2 'run: this folder holds a run already' "$weft" train gpt --data pairs.jsonl "${lora[@]}" --run run
check "it says so at once" bash -c '! grep -q reference out'

# ---- resume: the same bits ----
for kind in lora full; do
    set=("${lora[@]}" --set lora.dropout=0.1 --set train.accumulate=2)
    [ "$kind" = full ] && set=("${tune[@]}" --set dpo.label_smoothing=0.1 --set dpo.beta=0.5)
    set+=(--set train.steps=12 --set train.eval_every=4 --set train.save_every=6 --set train.keep=9 --quiet)
    expect 0 '' "$weft" train gpt --data pairs.jsonl "${set[@]}" --run "whole-$kind"
    expect 0 '' "$weft" train gpt --data pairs.jsonl "${set[@]}" --run "parts-$kind"
    rm -r "parts-$kind/checkpoints/step-12"
    [ "$kind" = full ] && mv model away # the run has the reference itself
    expect 0 '' "$weft" resume "parts-$kind" --quiet
    [ "$kind" = full ] && mv away model
    check "$kind: the same weights" cmp {whole,parts}-"$kind"/checkpoints/step-12/model.safetensors
    check "$kind: the same states" cmp {whole,parts}-"$kind"/checkpoints/step-12/optimizer.safetensors
    check "$kind: the same metrics" python3 -c '
import json, sys
def lines(run):
    keys = ("step", "loss", "val_loss", "val_accuracy", "val_margin")
    return [[json.loads(line).get(k) for k in keys] for line in open(run + "/metrics.jsonl")]
assert lines("whole-" + sys.argv[1]) == lines("parts-" + sys.argv[1])' "$kind"
    check "$kind: the same scores" cmp {whole,parts}-"$kind"/scores.json
done
rm -r parts-full/checkpoints
expect 0 '' "$weft" resume parts-full --quiet
check "a run without a checkpoint begins again" cmp {whole,parts}-full/checkpoints/step-12/model.safetensors

# ---- bf16, packed weights, several devices, texts ----
expect 0 '' "$weft" train gpt --data pairs.jsonl "${lora[@]}" --set lora.weights=bf16 --set train.steps=2 --run half --quiet
expect 0 '' "$weft" quantize model --to q8_0 --out packed.gguf
expect 0 '' "$weft" train gpt --data pairs.jsonl "${lora[@]}" --set model.init=packed.gguf --set lora.weights=packed \
    --set train.epochs=3 --run packed --quiet
expect 0 'validation +loss 0\.[0-4][0-9]+  accuracy 100.00' "$weft" eval packed
few=("${tune[@]}" --set train.accumulate=2 --set train.steps=4 --set train.batch=2 --quiet)
expect 0 '' "$weft" train gpt --data pairs.jsonl "${few[@]}" --set "devices=[cpu, cpu]" --run two
expect 0 '' "$weft" train gpt --data pairs.jsonl "${few[@]}" --run one
check "two devices learn what one does" python3 -c '
import json
def losses(run):
    return [json.loads(line)["loss"] for line in open(run + "/metrics.jsonl")]
assert max(abs(a - b) for a, b in zip(losses("one"), losses("two"))) < 1e-4, (losses("one"), losses("two"))'
expect 0 'equal in 1 pairs, from which nothing is learned' "$weft" train gpt --data texts.jsonl "${lora[@]}" \
    --set data.val_fraction=0 --set train.batch=2 --set model.context=64 --set train.epochs=1 --run texts
check "long pairs are counted" grep -q 'longer than model.context: 1 pairs lost their ends, 1 were left out' out
expect 0 '' "$weft" train gpt --data texts.jsonl "${lora[@]}" --set train.precision=bf16 --set train.recompute=block \
    --set train.head_chunks=2 --set train.steps=2 --run spares --quiet

# ---- what is refused: one line ----
bad() { # CODE MESSAGE LINE: a file with this line
    printf '%s\n%s\n' '{"chosen": "a b", "rejected": "a c"}' "$3" >bad.jsonl
    expect "$1" "$2" "$weft" train gpt --data bad.jsonl "${lora[@]}" --run bad
    one_line
}
bad 3 'bad.jsonl:2: "chosen": missing' '{"messages": []}'
bad 3 'bad.jsonl:2: "rejected": missing' '{"prompt": "a", "chosen": "b"}'
bad 3 'bad.jsonl:2: "rejected": the answer is empty: give a text, or remove the line' \
    '{"prompt": "a", "chosen": "b", "rejected": ""}'
bad 3 'bad.jsonl:2: "chosen": there is no answer' '{"chosen": [{"role": "user", "content": "a"}], "rejected": []}'
bad 3 'bad.jsonl:2: no pair that Weft knows' '{"chosen": "a", "rejected": ["b"]}'
bad 3 'bad.jsonl:2: column ' '{"chosen": "a", '
expect 2 'preferences are for published models' "$weft" train gpt --data pairs.jsonl --run bad
one_line
expect 2 'set a longer context' "$weft" train gpt --data pairs.jsonl "${lora[@]}" --set model.context=4 --run bad
one_line
expect 2 'use dpo.label_smoothing' "$weft" train gpt --data pairs.jsonl "${lora[@]}" --set train.label_smoothing=0.1 --run bad
one_line
sed -i 's/thread 7/thread x/' pairs.jsonl
expect 3 'reference.json: not of these pairs' "$weft" resume whole-lora --set train.steps=14
one_line
sed -i 's/thread x/thread 7/' pairs.jsonl
sed -i 's/"train": \[-/"train": [-1/' whole-lora/reference.json
expect 3 'reference.json' "$weft" resume whole-lora --set train.steps=14
one_line
rm whole-lora/reference.json
expect 3 'reference.json: missing' "$weft" resume whole-lora --set train.steps=14
one_line

echo "test_dpo_runs: cells=$cells fail=$fail"
[ "$fail" = 0 ]
