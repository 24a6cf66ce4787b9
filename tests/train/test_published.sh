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

# ---- adapters: the run holds them alone ----
mv away model
lora=("${tune[@]}" --set lora.rank=4 --set "lora.targets=[q_proj, v_proj, down_proj]" --set lora.alpha=8)
expect 0 'adapters of rank 4: training changes 1.* parameters' "$weft" train gpt --data text.txt "${lora[@]}" \
    --set train.steps=40 --run lora
check "a checkpoint is small" test "$(stat -c %s lora/checkpoints/step-40/model.safetensors)" -lt 12000
expect 0 '^the weft goes' "$weft" generate lora "${greedy[@]}"
cp out adapted.txt
check "adapters change the answers" bash -c '! cmp -s before.txt adapted.txt'
expect 0 '' "$weft" export lora --to huggingface --out merged
expect 0 '^the weft goes' "$weft" generate merged "${greedy[@]}"
check "merged weights answer as the run" cmp out adapted.txt
expect 0 'wrote adapter/adapter_config.json' "$weft" export lora --to peft --out adapter
check "peft's names" grep -q base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight adapter/adapter_model.safetensors
check "peft's configuration" python3 -c '
import json
c = json.load(open("adapter/adapter_config.json"))
assert c["r"] == 4 and c["lora_alpha"] == 8 and c["target_modules"] == ["q_proj", "v_proj", "down_proj"], c'
expect 0 'wrote adapter.gguf' "$weft" export lora --to gguf-lora --out adapter.gguf
check "llama.cpp's names" grep -q blk.0.attn_q.weight.lora_a adapter.gguf
expect 2 'for runs with adapters' "$weft" export run --to gguf-lora
one_line
expect 0 '' "$weft" export lora --to safetensors --out plain.safetensors
check "other formats get merged weights" bash -c '! grep -q lora_A plain.safetensors'
expect 2 'for runs with adapters' "$weft" export run --to peft
one_line
expect 0 '' "$weft" train gpt --data text.txt "${lora[@]}" --set train.steps=60 --run whole --quiet
expect 0 '' "$weft" train gpt --data text.txt "${lora[@]}" --set train.steps=60 --run parts --quiet --set train.save_every=30 \
    --set train.keep=9
rm -r parts/checkpoints/step-60
expect 0 '' "$weft" resume parts --quiet
check "resumed adapters have the same bits" cmp {whole,parts}/checkpoints/step-60/model.safetensors
expect 0 '' "$weft" train gpt --data text.txt "${lora[@]}" --set lora.weights=bf16 --set train.steps=5 --run half --quiet
expect 0 '^the weft goes' "$weft" generate half "${greedy[@]}"
expect 0 '' "$weft" quantize model --to q8_0 --out packed.gguf
packed=("${lora[@]}" --set model.init=packed.gguf --set data.tokenizer_path=packed.gguf --set lora.weights=packed)
expect 0 'memory: ' "$weft" train gpt --data text.txt "${packed[@]}" --set train.steps=40 --run packed
expect 0 '^the weft goes' "$weft" generate packed "${greedy[@]}"
cp out packed.txt
expect 0 '' "$weft" resume packed --set train.steps=50 --quiet
expect 0 '' "$weft" export packed --to huggingface --out unpacked --checkpoint 40
expect 0 '^the weft goes' "$weft" generate unpacked "${greedy[@]}"
check "weights that were packed, with adapters added, answer alike" cmp out packed.txt
expect 2 'lora.rank: .* name its folder or GGUF file in model.init' "$weft" train gpt --data text.txt --set lora.rank=4
one_line
expect 2 "the target 'qkv' is unknown" "$weft" train gpt --data text.txt "${lora[@]}" --set "lora.targets=[qkv]" --run bad
one_line
mv model away
expect 8 'holds only adapters for this model' "$weft" generate lora "${greedy[@]}"
one_line
cp -r away model
printf 'x' | dd of=model/model.safetensors bs=1 seek=9000 conv=notrunc status=none
expect 3 'were trained for weights with' "$weft" generate lora "${greedy[@]}"
one_line
rm -r model

# ---- chats as training data ----
cp -r away model
python3 - <<'EOF'
import json
with open("chats.jsonl", "w") as f:
    for i in range(60):
        f.write(json.dumps({"messages": [{"role": "user", "content": "thread %d" % i},
                                         {"role": "assistant", "content": "the weft goes over the warp"}]}) + "\n")
with open("texts.jsonl", "w") as f:
    f.write(json.dumps({"prompt": "the weft", "completion": " goes over the warp"}) + "\n" * 2)
    f.write(json.dumps({"text": "the weft goes"}) + "\n")
EOF
talk=("${tune[@]}" --set model.context=96 --set train.steps=0 --set train.epochs=8)
expect 0 'learned: .* tokens, those of the answers' "$weft" train gpt --data chats.jsonl "${talk[@]}" --run talk
check "the model answers a conversation of the data" grep -qE '^  .*thread [0-9]+' out
check "chat follows" grep -qE 'next: .*weft chat talk$' out
check "conversations are packed" grep -qE '60 conversations of [0-9]+ tokens, in [0-9]+ rows of 96' out
expect 0 'new data +loss [0-3]' "$weft" eval talk chats.jsonl
expect 0 '' "$weft" train gpt --data chats.jsonl "${talk[@]}" --set lora.rank=2 --run adapted --quiet
expect 0 '' "$weft" train gpt --data texts.jsonl "${talk[@]}" --set data.val_fraction=0 --set train.batch=1 --run texts --quiet
expect 0 '' "$weft" resume talk --set train.epochs=9 --quiet
echo '{"message": []}' >bad.jsonl
expect 3 'bad.jsonl:1: no form that Weft knows' "$weft" train gpt --data bad.jsonl "${talk[@]}" --run bad
one_line
expect 2 'chats are for published models' "$weft" train gpt --data chats.jsonl --run bad
one_line
expect 2 'set a longer context' "$weft" train gpt --data chats.jsonl "${talk[@]}" --set model.context=4 --run bad
one_line
rm -r model

# ---- chat ----
printf 'hello\n\n/save talk.json\n/system be brief\nand again\n/save two.json\n/what\n/exit\nnever read\n' >lines.txt
expect 0 'wrote talk.json' "$weft" chat run --temperature 0 --tokens 8 --system "be kind" --commands <lines.txt
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
expect 0 'wrote run/export/model.gguf' "$weft" export run --to gguf --type f32
expect 0 '^the weft goes' "$weft" generate run/export/model.gguf "${greedy[@]}"
check "the GGUF file answers as the run" cmp out tuned.txt
expect 0 'wrote mine.gguf' "$weft" export run --to gguf --out mine.gguf
check "f16 is half of it" bash -c '[ $(stat -c %s mine.gguf) -lt $(($(stat -c %s run/export/model.gguf) * 6 / 10)) ]'
# ---- learned positions: a run keeps all of them, and an older run has fewer ----
python3 "$tree/tests/train/make_published.py" gpt2 --like "$tree/tests/unit/published/models/gpt2.json" || exit 1
exports() { # exports RUN N PATTERN: three formats have N positions, and write what the run writes
    expect 0 '^the weft goes' "$weft" generate "$1" "${greedy[@]}"
    cp out "$1.txt"
    for to in huggingface gpt2 gguf; do
        local place=$1-$to type=()
        [ $to = gguf ] && place=$place.gguf type=(--type f32)
        expect 0 "$3" "$weft" export "$1" --to $to --out "$place" "${type[@]}"
        [ $to = gguf ] || check "$place has $2 positions" grep -q "n_positions\": $2," "$place/config.json"
        [ $to = gpt2 ] && cp gpt2/tokenizer*.json "$place"
        expect 0 '^the weft goes' "$weft" generate "$place" "${greedy[@]}"
        check "$place answers as the run" cmp out "$1.txt"
    done
}
learn=(--set train.batch=4 --set train.steps=2 --set model.context=32 --set train.save_every=1 --quiet)
expect 0 '' "$weft" train gpt --data text.txt --set model.init=gpt2 "${learn[@]}" --run long
exports long 64 'wrote long'
expect 0 '' "$weft" export long --to c --out long-c
check "a text in C is as long as those of the training" grep -q 'CONTEXT 32 ' long-c/model.h
cp -r gpt2 short
sed -i 's/"n_positions": 64/"n_positions": 32/' short/config.json
expect 0 '' "$weft" train gpt --data text.txt --set model.init=short "${learn[@]}" --run older
cp gpt2/config.json older/published/config.json # as in runs that kept only model.context positions
exports older 32 'kept 32 of the 64 positions|wrote older-gpt2'
expect 0 '' "$weft" resume older --set train.steps=3 --quiet
rm -r gpt2 short

# ---- GGUF files for transformers ----
mv away model
expect 0 '' "$weft" quantize model --to f32 --out file.gguf
expect 0 'wrote folder/config.json' "$weft" export file.gguf --to huggingface --out folder
check "names, class and tokens of transformers" bash -c 'grep -q model.layers.0.self_attn.q_proj folder/model.safetensors &&
    grep -q LlamaForCausalLM folder/config.json && grep -q "eos_token_id.: 0" folder/config.json'
expect 0 '^the weft goes' "$weft" generate folder "${greedy[@]}"
check "the folder answers as the model" cmp out before.txt

# ---- what export refuses ----
expect 2 'for runs that began with a published model' "$weft" export plain --to huggingface
one_line
expect 2 'for runs that began with a published model' "$weft" export plain --to gguf
one_line
expect 2 'type q9: give f32, f16, bf16, q8_0' "$weft" export run --to gguf --type q9
one_line
expect 2 'type is for --to gguf' "$weft" export run --to huggingface --type f16
one_line

# ---- quantising ----
expect 0 'before +[0-9.]+ MB of weights, 32.00 bits each' "$weft" quantize model --to q8_0 --out small.gguf --data text.txt
check "it says what came of it" grep -Eq '^after .* (8|9)\.[0-9]+ bits each +small.gguf$' out
check "perplexity hardly changes" python3 -c '
import re
before, after = map(float, re.search(r"perplexity ([0-9.]+) before, ([0-9.]+) after, on text.txt", open("out").read()).groups())
assert 20 < before < 600 and abs(after / before - 1) < 0.02, (before, after)'
expect 0 'name a text with --data' "$weft" quantize model --to q4_k
check "the default name" test -s model-q4_k.gguf
expect 0 '^the weft goes' "$weft" generate model-q4_k.gguf "${greedy[@]}"
expect 0 '' "$weft" quantize small.gguf --to f16
check "a GGUF file is quantised, too" test -s small-f16.gguf
expect 0 'wrote again.gguf' "$weft" export small.gguf --to gguf --out again.gguf
check "with the same bytes, but for the name" bash -c '[ $(stat -c %s again.gguf) = $(stat -c %s small-f16.gguf) ]'
expect 0 'wrote model/export/model.gguf' "$weft" export model --to gguf --type q8_0
rm -r model/export
expect 2 'name the new one in --out' "$weft" export small.gguf --to gguf
one_line
expect 2 'to is missing: give f32, f16' "$weft" quantize model
one_line
expect 2 'to q3: give f32, f16, bf16, q8_0' "$weft" quantize model --to q3
one_line
expect 2 'run is a run: use weft export run --to gguf --type q8_0' "$weft" quantize run --to q8_0
one_line
expect 2 'plain.txt is no published model' "$weft" quantize plain.txt --to q8_0
one_line
expect 8 'nowhere/x.gguf' "$weft" quantize model --to q8_0 --out nowhere/x.gguf
check "no line but the size before" bash -c '[ $(wc -l <err) = 1 ] && grep -q "^weft: " err'
printf a >short.txt
expect 3 "the text is too short" "$weft" quantize model --to q8_0 --data short.txt
check "no temporary files are left" bash -c '! ls -A | grep -q "tmp$"'

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
