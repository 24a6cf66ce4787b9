#!/usr/bin/env bash
# Published models in the command: use, fine-tune, resume, export, and what is refused. The model is a small Llama.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_published: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/make_published.py" model || exit 1

# ---- the model itself ----
greedy=(--tokens 12 --temperature 0 --prompt "the weft goes")
expect 0 '^the weft goes' "$weft" generate model "${greedy[@]}"
cp out before.txt
expect 0 'new data +loss [4-6]\.' "$weft" eval model text.txt
expect 2 'which has no data of its own' "$weft" eval model
one_line
expect 0 'llama' "$weft" info model

# ---- fine-tuning ----
expect 0 '' "$weft" train gpt --data text.txt --set train.steps=1 --set model.width=16 --run plain --quiet
tune=(--set model.init=model --set train.batch=4 --set model.context=32 --set optimizer.lr=0.01 --set schedule.warmup=0
    --set train.eval_every=20 --set train.save_every=20 --set data.tokenizer_path=model --device cpu)
expect 0 'loss' "$weft" train gpt --data text.txt "${tune[@]}" --set train.steps=40 --run run
check "the run keeps config.json" grep -q '"model_type": "llama"' run/published/config.json
check "the run says what the model is" grep -q 'layers: 2 ' run/config.yaml
check "and how wide" grep -q 'width: 32 ' run/config.yaml
mv model away # the run needs it no longer
expect 0 '^the weft goes' "$weft" generate run "${greedy[@]}"
cp out tuned.txt
check "it learned something" bash -c '! cmp -s before.txt tuned.txt'
expect 0 'validation +loss [0-3]\.' "$weft" eval run
expect 0 '' "$weft" resume run --set train.steps=60 --quiet

# ---- chat ----
printf 'hello\n\n/save talk.json\n/system be brief\nand again\n/save two.json\n/what\n/exit\nnever read\n' >lines.txt
expect 0 'wrote talk.json' "$weft" chat run --temperature 0 --tokens 8 --system "be kind" <lines.txt
check "the conversation is JSON" python3 -c '
import json
one, two = json.load(open("talk.json"))["messages"], json.load(open("two.json"))["messages"]
assert [m["role"] for m in one] == ["system", "user", "assistant"], one
assert one[0]["content"] == "be kind" and one[1]["content"] == "hello", one
assert [m["content"] for m in two][:2] == ["be brief", "and again"] and len(two) == 3, two'
check "a wrong command shows the others" grep -q '/clear' err
expect 0 '' "$weft" chat run --tokens 4 </dev/null
expect 2 'a published model, so it has no chat template' "$weft" chat plain
one_line
check "its output is only the answer" bash -c "echo hi | '$weft' chat run --temperature 0 --tokens 4 2>&1 | grep -qv hi"

# ---- export ----
expect 0 'wrote .*export/model.safetensors' "$weft" export run --to huggingface
expect 0 '^the weft goes' "$weft" generate run "${greedy[@]}"
cp out tuned.txt
expect 0 '^the weft goes' "$weft" generate run/export "${greedy[@]}"
check "the export answers as the run" cmp out tuned.txt
mv away model
expect 2 'for runs that began with a published model' "$weft" export plain --to huggingface
one_line

# ---- what is refused: one line, exit code 3 for bad files ----
expect 2 'model.layers: the value 4 does not fit the model that model.init names' "$weft" train gpt --data text.txt \
    "${tune[@]}" --set model.layers=4 --run bad
one_line
expect 0 'model.init has no effect' "$weft" train lstm --data text.txt --set model.init=model --set train.steps=1 --run lstm
cp -r model unknown
sed -i 's/"llama"/"rwkv7"/' unknown/config.json
expect 3 "does not know 'rwkv7'; it knows gpt2, gpt_neox, llama" "$weft" generate unknown --prompt a
one_line
cp -r model missing
rm missing/model.safetensors
expect 3 'missing: the folder has no model.safetensors' "$weft" generate missing --prompt a
one_line
cp -r model cut
truncate -s 20000 cut/model.safetensors
expect 3 'cut/model.safetensors' "$weft" generate cut --prompt a
one_line
cp -r model shape
sed -i 's/"intermediate_size": 48/"intermediate_size": 64/' shape/config.json
expect 3 "'model.layers.0.mlp.* by config.json" "$weft" generate shape --prompt a
one_line
printf 'GGUF\003\000\000\000' >broken.gguf
expect 3 'broken.gguf: byte 8' "$weft" generate broken.gguf --prompt a
one_line
sed -i 's/{% for m/{% include x %}{% for m/' unknown/tokenizer_config.json
sed -i 's/rwkv7/llama/' unknown/config.json
expect 3 "unknown/tokenizer_config.json.*line 1.*include" "$weft" chat unknown
one_line
expect 2 'is not a run folder .* and no published model' "$weft" generate nowhere --prompt a

echo "test_published: cells=$cells fail=$fail"
[ "$fail" = 0 ]
