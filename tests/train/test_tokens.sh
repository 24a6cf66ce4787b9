#!/usr/bin/env bash
# Turns a text into files of tokens, trains a gpt on them, exports its weights with GPT-2's names, and starts another gpt from
# these weights. Also tests refusals. Everything happens in a temporary folder, with tiny models.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

for i in $(seq 300); do echo "the weft goes over and under the warp, line $((i * 7919 % 1000))"; done >text.txt
cat >gpt.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16}
train: {steps: 20, batch: 4, eval_every: 10, save_every: 10, log_every: 5}
schedule: {warmup: 2, type: constant}
YAML
bytes=$(wc -c <text.txt)
weights=checkpoints/step-20/model.safetensors
train() { "$weft" train gpt.yaml --quiet "$@"; }

# ---- the same tokens give the same weights, whatever file they come from ----
expect 0 '' train --run text --set data.tokenizer=byte
expect 0 "^$bytes tokens of $bytes bytes of text, 1.00 bytes a token, in 1 file, [0-9.]+ MB a second\$" \
    "$weft" tokenize text.txt --tokenizer text/tokenizer.json --out t.bin
check "two bytes a token behind a header" test "$(wc -c <t.bin)" = $((1024 + 2 * bytes))
gzip -k text.txt
expect 0 'in 3 files' "$weft" tokenize text.txt.gz --tokenizer text/tokenizer.json --out part.bin --shard $((bytes / 3 + 1))
check "files are numbered" test -s part-000002.bin
check "and no more than that" test ! -e part-000003.bin
tail -c +1025 t.bin >raw.bin
for data in t.bin raw.bin 'part-*.bin'; do
    run=run-${data%%[.*]*}
    expect 0 '' train --run "$run" --set data.path="$data" --set data.tokenizer_path=text/tokenizer.json
    check "$data: the weights of the text" cmp "text/$weights" "$run/$weights"
done
expect 0 '' train --run bare --set data.path=t.bin --set model.vocab=256 --set model.tokens=256
check "without a tokenizer too" cmp "text/$weights" "bare/$weights"
expect 2 'model.tokens: the value is 300; give at least the [0-9]+ tokens of the data, and at most the 256 rows of the embedding table' \
    train --set data.path=t.bin --set model.vocab=256 --set model.tokens=300
expect 2 'model.tokens: the value is 9; give at least' train --set data.path=t.bin --set model.tokens=9
one_line
expect 0 '[0-9]+ [0-9]+' "$weft" generate bare --prompt '116 104' --tokens 5
expect 0 'the' "$weft" generate run-t --prompt 'the ' --tokens 20
expect 0 'validation +loss' "$weft" eval run-part-

# ---- GPT-2's tokens of a text of several blocks, as by tiktoken ----
sample=${WEFT_TEST_DATA:-}/wikitext-2/train.txt.gz gpt2=${WEFT_TEST_DATA:-}/gpt2-bpe
if [ -r "$sample" ] && [ -d "$gpt2" ]; then
    expect 0 '^2448382 tokens of 10797148 bytes' "$weft" tokenize "$sample" --tokenizer "$gpt2" --out wiki.bin
    check "the tokens" test "$(tail -c +1025 wiki.bin | cksum)" = "639633110 4896764"
    rm wiki.bin
else
    echo "test_tokens: GPT-2's tokens skipped: no wikitext-2 and gpt2-bpe in WEFT_TEST_DATA"
fi

# ---- an evaluation of a few batches does not change training ----
expect 0 '' train --run few --set data.tokenizer=byte --set train.eval_batches=1
check "the weights are the same" cmp "text/$weights" "few/$weights"
val() { sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -1; }
check "the loss is another" test "$(val text)" != "$(val few)"
expect 0 '' train --run most --set data.tokenizer=byte --set train.eval_batches=1000
check "more batches than there are are all" test "$(val text)" = "$(val most)"
expect 0 "validation +loss $(val text | cut -c1-6)" "$weft" eval few

# ---- resume, from another folder, is exact ----
mkdir elsewhere
expect 0 '' train --run half --set data.path='part-*.bin' --set data.tokenizer_path=text/tokenizer.json --set train.steps=10
(cd elsewhere && "$weft" resume ../half --quiet --set train.steps=20) >out 2>err || cat out err
check "a resumed run has the same weights" cmp "text/$weights" "half/$weights"
cp t.bin kept.bin
printf 'x' | dd of=t.bin bs=1 seek=2000 conv=notrunc 2>/dev/null
expect 3 'the data is not what' "$weft" resume run-t --set train.steps=30
mv kept.bin t.bin

# ---- more rows than tokens ----
expect 0 '' train --run wide --set data.path=t.bin --set data.tokenizer_path=text/tokenizer.json --set model.vocab=320
expect 0 '' "$weft" generate wide --tokens 400 --temperature 50
close() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > 0 && a - b < 1e-5 && b - a < 1e-5)}'; }
check "rows that are no token change nothing" close "$(val run-t)" "$(val wide)"
expect 0 '' "$weft" export wide --to gpt2 --out wide.safetensors
check "and are not exported" grep -aq '"wte.weight":{"dtype":"F32","shape":\[256,16\]' wide.safetensors
expect 0 '' train --run other --set data.path=t.bin --set model.norm_eps=0.001 --set model.mlp_width=24 --set train.steps=1 \
    --set schedule.warmup=0
expect 0 '' "$weft" export other --to gpt2 --out other.safetensors
check "the configuration has the model's own numbers" python3 -c 'import json; c = json.load(open("config.json")); exit(not (
    c["layer_norm_epsilon"] == 0.001 and c["n_inner"] == 24))'
expect 2 'model.vocab: the value is 200, but the data has 256 tokens' train --set data.tokenizer=byte --set model.vocab=200
one_line

# ---- exporting and importing weights ----
expect 0 '' "$weft" export run-t --to gpt2 --out weights.safetensors
check "its configuration lies beside it" python3 -c 'import json; c = json.load(open("config.json")); exit(not (
    c["model_type"] == "gpt2" and c["vocab_size"] == 256 and c["n_positions"] == 16 and c["n_embd"] == 16 and
    c["n_layer"] == 1 and c["n_head"] == 2 and c["n_inner"] is None and c["tie_word_embeddings"] and c["eos_token_id"] is None))'
expect 0 '' "$weft" export run-t --to gpt2 --out weights.safetensors # replaces the file
mkdir taken
echo '{"model_type": "bert"}' >taken/config.json
expect 2 'taken/config.json exists already and was not written by weft export' "$weft" export run-t --to gpt2 --out taken/model.safetensors
one_line
check "and nothing was written" test ! -e taken/model.safetensors
expect 0 "every node agrees to the bit" "$weft" verify gpt.yaml --devices cpu,cpu --steps 1 --set data.path=t.bin \
    --set model.init=weights.safetensors
cp out first
expect 0 "every node agrees to the bit" "$weft" verify gpt.yaml --devices cpu,cpu --steps 1 --set data.path=t.bin --set model.vocab=256
check "verify begins with the weights of model.init" bash -c '! cmp -s first out'
expect 8 'absent.safetensors' "$weft" verify gpt.yaml --devices cpu,cpu --set data.path=t.bin --set model.init=absent.safetensors
check "matrices are transposed" grep -aq '"h.0.attn.c_attn.weight":{"dtype":"F32","shape":\[16,48\]' weights.safetensors
expect 0 '' train --run again --set data.path=t.bin --set model.init=weights.safetensors --set train.steps=1 \
    --set schedule.warmup=0 --set optimizer.lr=1e-12 --set schedule.min_lr=0 --set train.save_every=1
loss() { "$weft" eval "$1" --json | sed 's/.*"validation_loss": \([0-9.]*\).*/\1/;s/.*"loss": \([0-9.]*\).*/\1/'; }
check "it goes on where they were" awk -v a="$(loss run-t)" -v b="$(loss again)" 'BEGIN {exit !(a > 0 && a - b < 1e-4 && b - a < 1e-4)}'
check "and has their vocabulary" grep -q 'vocab: 256  # follows from other keys' again/config.yaml
check "and tokens" grep -q 'tokens: 256  # follows from other keys' again/config.yaml
rm weights.safetensors
expect 0 '' "$weft" resume again --quiet --set train.steps=2
expect 8 'absent.safetensors' train --set data.path=t.bin --set model.init=absent.safetensors
one_line
"$weft" export run-t --to gpt2 --out weights.safetensors
expect 3 "'wte.weight' is f32 \[256,16\], but this model has f32 \[256,32\]" \
    train --set data.path=t.bin --set model.init=weights.safetensors --set model.width=32
one_line
expect 3 "the file has no tensor 'h.1.ln_1.weight'" train --set data.path=t.bin --set model.init=weights.safetensors --set model.layers=2
one_line

# ---- GPT-2 small's configuration, made small ----
expect 0 'width: 768' "$weft" init gpt2
expect 0 '' "$weft" init gpt2 --data t.bin --out gpt2.yaml
expect 0 '' "$weft" train gpt2.yaml --quiet --run small --set data.tokenizer_path=text/tokenizer.json --set data.tokenizer=byte \
    --set model.layers=1 --set model.heads=2 --set model.width=8 --set model.context=8 --set model.vocab=256 \
    --set train.batch=2 --set train.accumulate=2 --set train.steps=3 --set schedule.warmup=1

# ---- a vocabulary beyond 16 bits: files of u32 ----
mkdir large
{
    echo '{"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null,'
    echo '"model": {"type": "WordLevel", "unk_token": "w0", "vocab": {'
    for i in $(seq 0 69998); do echo "\"w$i\": $i,"; done
    echo '"w69999": 69999}}}'
} >large/tokenizer.json
for i in $(seq 400); do echo "w$((i * 7919 % 70000)) w69999"; done >large.txt
expect 0 '^800 tokens of' "$weft" tokenize large.txt --tokenizer large --out large.bin
check "four bytes a token" test "$(wc -c <large.bin)" = $((1024 + 4 * 800))
expect 0 '' "$weft" train gpt --data large.bin --quiet --run large-run --set data.tokenizer_path=large --set model.layers=1 \
    --set model.heads=2 --set model.width=8 --set model.context=8 --set train.batch=2 --set train.steps=3 --set schedule.warmup=1
expect 0 '\[70000,8\]' "$weft" show large-run

# ---- refusals ----
head -c 3000 t.bin >cut.bin
expect 3 'cut.bin: its header promises [0-9]+ tokens, but 1976 bytes follow it: it was cut' train --set data.path=cut.bin
one_line
head -c 2001 raw.bin >odd.bin
expect 3 'odd.bin: it has 2001 bytes; a file of 16-bit tokens has an even number' train --set data.path=odd.bin
one_line
{ printf '\001'; tail -c +2 t.bin; } >magic.bin
expect 3 'magic.bin: begins with the number 20240385' train --set data.path=magic.bin
one_line
printf '\001\000\377\377\002\000' >large.bin
expect 3 'large.bin: the text has token 65535, but the model knows only 0 to 255' \
    train --set data.path=large.bin --set data.tokenizer_path=text/tokenizer.json
one_line
expect 8 'none-\*.bin: there is no such file' train --set data.path='none-*.bin'
one_line
mkdir gpt2
expect 8 'gpt2: the folder has neither encoder.json nor vocab.json' train --set data.tokenizer_path=gpt2
one_line
echo '{"a": 0, "b": 1}' >gpt2/encoder.json
expect 8 'gpt2: the folder has neither vocab.bpe nor merges.txt' "$weft" tokenize text.txt --tokenizer gpt2 --out x.bin
one_line
echo '#version: 0.2' >gpt2/vocab.bpe
expect 3 'vocab.bpe: there are no merges' "$weft" tokenize text.txt --tokenizer gpt2 --out x.bin
one_line
expect 2 'bpe and pipeline are read from files' train --set data.tokenizer=bpe
one_line
expect 2 'this tokenizer has the kind byte, but data.tokenizer is word' \
    train --set data.tokenizer_path=text/tokenizer.json --set data.tokenizer=word
one_line
expect 2 'give one text' "$weft" tokenize text.txt text.txt --tokenizer text/tokenizer.json
expect 2 'tokenizer is missing' "$weft" tokenize text.txt --out x.bin
expect 8 'absent.txt' "$weft" tokenize absent.txt --tokenizer text/tokenizer.json --out x.bin
expect 2 'no gpt|is not a run folder' "$weft" export nowhere --to gpt2 --out x
check "no run folder was made by failures" test ! -e runs

# Training a tokenizer, and printing ids.
for i in 1 2 3 4 5 6 7 8; do echo "low lower lowest, newer newest wider $i"; done >low.txt
expect 0 'tokens/tokenizer.json: 280 tokens' "$weft" tokenize --train 280 low.txt text.txt --out tokens
expect 0 '^[0-9]+( [0-9]+)+$' "$weft" tokenize low.txt --tokenizer tokens
expect 0 '^[0-9]+ tokens of' "$weft" tokenize low.txt --tokenizer tokens/tokenizer.json --out low.bin
expect 0 '' train --run low --set data.path=low.txt --set data.tokenizer_path=tokens --set train.steps=2 --set schedule.warmup=0 --set data.val_fraction=0
expect 0 'low' "$weft" generate low --prompt low --tokens 3
expect 2 'a vocabulary of 256' "$weft" tokenize --train 256 low.txt --out small-tokens
expect 2 'pattern must be' "$weft" tokenize --train 300 low.txt --pattern none
expect 2 'leave --tokenizer out' "$weft" tokenize --train 300 low.txt --tokenizer tokens

echo "test_tokens: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
