#!/usr/bin/env bash
# Tests the command as users call it: usage, exit codes, one clear line for an error, run folders, signals, generate, eval,
# predict. Everything happens in a temporary folder, with tiny models.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

cat >gpt.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16}
train: {steps: 40, batch: 4, eval_every: 20, save_every: 10, log_every: 5}
schedule: {warmup: 2, type: constant}
YAML
cat >mlp.yaml <<'YAML'
task: classification
data: {source: csv, path: table.csv, test_path: table.csv, val_fraction: 0.2}
model: {type: mlp, hidden: [8]}
train: {epochs: 4, batch: 16, log_every: 2}
YAML
cat >line.yaml <<'YAML'
task: regression
data: {source: csv, path: table.csv, columns: [a], target: b, val_fraction: 0.2}
model: {type: mlp, hidden: [8]}
train: {epochs: 2, batch: 16}
YAML

# ---- usage ----
expect 2 'usage: weft COMMAND' "$weft"
expect 0 'usage: weft COMMAND' "$weft" --help
expect 0 '^weft [0-9]+\.[0-9]+' "$weft" --version
expect 2 'did you mean train\?' "$weft" trian
one_line
for command in train resume cv sweep generate predict eval show runs compare info init demo devices doctor plan profile verify bench; do
    expect 0 "usage: weft $command" "$weft" "$command" --help
done
expect 2 'unknown option --stesp' "$weft" train gpt.yaml --stesp 3
one_line
expect 2 'CONFIG is missing' "$weft" train
expect 2 'missing: DIR' "$weft" resume
expect 2 'one argument too many' "$weft" devices extra
expect 2 'a value is missing after --device' "$weft" train gpt.yaml --device
expect 2 '^weft: generate: --tokens cannot take the value many' "$weft" generate x --tokens many
expect 2 'init: there is no model type gnn: choose one of ' "$weft" init gnn
expect 2 'there is no workload nothing' "$weft" bench nothing
expect 2 'gpt, mlp, xor or device' "$weft" demo cnn
expect 0 'cpu' "$weft" devices
expect 0 'WEFT_CPU_ISA: must be' env WEFT_CPU_ISA=sse9 "$weft" devices

# ---- configuration ----
expect 8 'none.yaml' "$weft" train none.yaml
one_line
printf 'model:\n  layer: 2\n' >bad.yaml
expect 3 'bad.yaml:2:3: unknown key model.layer; did you mean model.layers\?' "$weft" train bad.yaml
one_line
expect 2 'did you mean train.steps\?' "$weft" train gpt.yaml --set train.step=3
one_line
expect 2 'heads must divide' "$weft" train gpt.yaml --set model.heads=3
expect 8 'absent.txt' "$weft" train gpt.yaml --set data.path=absent.txt
printf 'abc\377def' >broken.txt
expect 3 'broken.txt' "$weft" train gpt.yaml --set data.path=broken.txt
one_line
expect 4 'computes nothing' "$weft" train gpt.yaml --device null
one_line
expect 4 'abacus' "$weft" train gpt.yaml --device abacus
one_line
expect 0 'device [a-z0-9:]*, as auto chooses: ' "$weft" train gpt.yaml --device auto --run chosen --set train.steps=4 --set schedule.warmup=1
expect 0 'a step runs on 1 thread' env OMP_NUM_THREADS=1 "$weft" train gpt.yaml --run alone --device cpu --set train.steps=4 --set schedule.warmup=1
expect 2 'too few' "$weft" train gpt.yaml --set model.context=100000
printf 'a,b,kind\n1,odd\n' >bad.csv
expect 3 'bad.csv' "$weft" train mlp.yaml --set data.path=bad.csv
one_line
expect 0 'model:' "$weft" init gpt
expect 0 '' "$weft" init mlp --data table.csv --out made.yaml
expect 2 'made.yaml exists already: .*--force' "$weft" init mlp --out made.yaml
expect 2 'run: give the name of a folder' "$weft" train gpt.yaml --run ''
printf 'a,kind\n1,x\344\n2,y\n' >latin.csv
expect 3 'latin.csv: line 2, byte 4 of the line: 0xe4 is not UTF-8' "$weft" train mlp.yaml --set data.path=latin.csv \
    --set data.test_path=latin.csv --set data.val_fraction=0
one_line
check "no run folder was made by failures" test ! -e runs

# ---- data parallel training on several devices ----
expect 2 'use train.accumulate: 2' "$weft" train gpt.yaml --set 'devices=[cpu,cpu]'
expect 2 'devices: cpu and interp are of different kinds' "$weft" train gpt.yaml --set 'devices=[cpu,interp]' --set train.accumulate=2
expect 0 '' "$weft" train gpt.yaml --quiet --run single --set train.accumulate=2 --set model.dropout=0.2
expect 0 'and on cpu: the devices share the micro-batches' "$weft" train gpt.yaml --run pair --set train.accumulate=2 --set model.dropout=0.2 \
    --set 'devices=[cpu,cpu]' --set train.steps=25
expect 0 '' "$weft" resume pair --quiet --set train.steps=40
(umask 027 && "$weft" train gpt.yaml --run masked --quiet --set train.steps=10)
check "files of a run are readable as umask says" \
    test "$(stat -c %a masked/config.yaml masked/checkpoints/*/model.safetensors | sort -u)" = 640
check "two of a kind give the bits of one" cmp {single,pair}/checkpoints/step-40/model.safetensors
expect 0 '' "$weft" generate pair --tokens 3
eight=(--set train.accumulate=8 --set train.exact_sum=true --set train.steps=12 --set model.dropout=0.2 --quiet)
expect 0 '' "$weft" train gpt.yaml --run eight "${eight[@]}"
expect 0 '' "$weft" train gpt.yaml --run eight-four "${eight[@]}" --set 'devices=[cpu,cpu,cpu,cpu]'
check "with exact sums four of a kind give the bits of one" cmp eight{,-four}/checkpoints/step-12/model.safetensors
expect 0 '' "$weft" train gpt.yaml --run eight-line "${eight[@]}" --set train.exact_sum=false
check "and without exact sums other ones" bash -c '! cmp -s eight{,-line}/checkpoints/step-12/model.safetensors'
expect 2 'train.exact_sum: true needs 1, 2, 4, 8, ... batches for each device in a step, and there are 3' \
    "$weft" train gpt.yaml --set train.accumulate=6 --set train.exact_sum=true --set 'devices=[cpu,cpu]'
expect 0 '' "$weft" train gpt.yaml --run three --set train.accumulate=6 --set 'devices=[cpu,cpu]' --set train.steps=2 \
    --set schedule.warmup=0 --quiet
half=(--set train.accumulate=2 --set train.precision=f16 --set train.loss_scale=1e8)
expect 0 '' "$weft" train gpt.yaml --quiet --run half-single "${half[@]}"
expect 0 '' "$weft" train gpt.yaml --quiet --run half-pair "${half[@]}" --set 'devices=[cpu,cpu]'
for file in model optimizer; do
    check "and of f16's scale" cmp half-{single,pair}/checkpoints/step-40/$file.safetensors
done

# ---- training, names of folders, their contents ----
expect 0 'where the time went' "$weft" train gpt.yaml --verbose
check "the parts of the time that were taken add up to 100 %" awk '/^where/ {on = 1; next} /in all/ {exit !(sum > 99.95 && sum < 100.05 && n >= 7 && !none)}
    on {sum += $(NF - 1); n++; none = none || /convolution/}' out
check "and the run is so much faster without its products" grep -Eq '^if matmul took no time, this run would be [1-9][0-9.]+ times faster$' out
run=runs/gpt-L1-H2-E16-cpu-1
for file in config.yaml env.json log.txt metrics.jsonl metrics.csv report.html tokenizer.json summary.json \
    checkpoints/step-40/model.safetensors checkpoints/step-40/optimizer.safetensors checkpoints/step-40/state.json \
    samples/step-40.txt; do
    check "$file is there" test -s "$run/$file"
done
check "metrics have the promised keys" grep -Eq '"step": 40, .*"loss": .*"lr": .*"grad_norm": .*"tokens_per_second": .*"val_loss": .*"memory_peak": ' "$run/metrics.jsonl"
check "one line a logged step" test "$(wc -l <"$run/metrics.jsonl")" = 8
check "origins are written down" grep -q 'width: 16  # gpt.yaml:2' "$run/config.yaml"
check "the loss falls" awk -F, 'NR == 2 { first = $3 } { last = $3 } END { exit !(last < first) }' "$run/metrics.csv"

# The memory that is printed before the first step must be close to the peak: at most 1.2 times.
announced() {
    local run=$1 said peak
    said=$(sed -n 's/^memory: \([0-9]*\)\.\([0-9]\) MB.*/\1\2/p' out)
    peak=$(sed -n 's/.*"memory_peak": \([0-9]*\).*/\1/p' "$run"/metrics.jsonl | tail -1)
    echo "said $said tenths of a MB, peak $((peak * 10 >> 20))"
    [ -n "${ASAN_OPTIONS:-}" ] && return # a sanitizer needs memory of its own
    [ "$peak" -gt 0 ] && [ $((peak * 100)) -le $((said * 12 << 20)) ] && [ $((peak * 120)) -ge $((said * 10 << 20)) ]
}
# (A malloc that fills new memory touches pages that would otherwise stay unused.)
expect 0 'memory: [0-9.]+ MB: parameters' env -u MALLOC_PERTURB_ "$weft" train gpt.yaml --run small
check 'memory of a small model' announced small
expect 0 'memory: [0-9.]+ MB: parameters' env -u MALLOC_PERTURB_ "$weft" train gpt.yaml --run middle --set train.steps=4 --set train.batch=8 \
    --set model.width=256 --set model.layers=4 --set model.heads=4 --set model.context=128
check 'memory of a middle model' announced middle

# Prints the memory of a step and the batch that fits. The run stores this batch.
expect 0 'activations' "$weft" plan gpt.yaml
expect 0 '^at its peak +(kB|MB)$' "$weft" plan gpt.yaml
expect 0 '^at its peak +GB$' "$weft" plan gpt.yaml --set train.batch=4096 --set model.width=256 --card h200
check "a plan says what would save memory" grep -q 'train.batch: .* saves' out
expect 0 '"fits": true' "$weft" plan gpt.yaml --device cuda --json
expect 0 'rtx3060 .*360 GB/s' "$weft" plan --card list
expect 0 'predicted, not measured: .* tokens a second' "$weft" plan gpt.yaml --card h200
check "the dearest launches are named with their reason" grep -Eq '^ +[0-9.]+ +[0-9.]+ +[0-9]+x +(launch|latency|too few blocks|memory|cache|compute|instructions) +(weft|library) ' out
expect 0 '"predicted": \{' "$weft" plan gpt.yaml --card h200 --json
check "the JSON has ten launches at most" python3 -c '
import json
p = json.load(open("out"))["predicted"]
assert 0 < p["step_seconds"] < 1 and p["tokens_per_second"] > 0 and 0 < len(p["dearest"]) <= 10, p
assert all(0 < d["share"] <= 1 and d["reason"] and d["what"] for d in p["dearest"]), p
assert sum(d["seconds"] for d in p["dearest"]) <= 1.000001 * p["batch_seconds"], p'
expect 0 '"predicted": null' "$weft" plan gpt.yaml --json
expect 2 'neither one of h200, h100, a100, l4, rtx4090, rtx3060, nor a file' "$weft" plan gpt.yaml --card voodoo
echo '{"name": "mine", "like": "l4", "bandwidth": 600}' >mine.json
expect 0 'mine, compute capability 8.9, 58 multiprocessors, 24 GB at 600 GB/s' "$weft" plan gpt.yaml --card mine.json
echo '{"like": "l4", "bandwith": 600}' >mine.json
expect 3 'there is no key bandwith' "$weft" plan gpt.yaml --card mine.json
expect 2 'give none, gelu, norm or block' "$weft" plan gpt.yaml --set train.recompute=sometimes
expect 4 'plans are made for' "$weft" plan gpt.yaml --device interp
expect 0 'train.batch [0-9]+: the largest' "$weft" train gpt.yaml --run fitting --set train.batch=auto --set train.steps=1 --set schedule.warmup=0 \
    --set train.recompute=norm --set train.head_chunks=3
check "the run keeps its batch" grep -Eq '^  batch: [0-9]+ ' fitting/config.yaml
expect 0 '' "$weft" resume fitting --set train.steps=2 --quiet

# A short run stores its default warm-up.
grep -v warmup gpt.yaml >short.yaml
expect 0 '' "$weft" train short.yaml --run short --set train.steps=20 --quiet
expect 7 'nothing to do' "$weft" resume short
expect 0 '' "$weft" resume short --set train.steps=22 --quiet

expect 0 '' env WEFT_CONFIG=gpt.yaml "$weft" train --quiet
check "quiet prints nothing" test ! -s out
check "a number is not used twice" test -d runs/gpt-L1-H2-E16-cpu-2
expect 0 '' "$weft" train gpt.yaml --run again --quiet
check "the same seed, the same bits" cmp "$run/checkpoints/step-40/model.safetensors" again/checkpoints/step-40/model.safetensors
expect 2 'weft resume again' "$weft" train gpt.yaml --run again
expect 7 'nothing to do' "$weft" resume again
one_line
expect 0 '' "$weft" resume again --set train.steps=50 --quiet
check "more steps were done" test -d again/checkpoints/step-50
expect 2 'optimizer.lr cannot change: the checkpoints of again were made with 0.001' "$weft" resume again --set train.steps=60 --set optimizer.lr=0.5
expect 0 'again +done +50/50' "$weft" runs .
echo "the warp" >>text.txt
expect 3 'the data is not what' "$weft" resume again --set train.steps=60
sed -i '$d' text.txt
expect 2 'is not a run folder' "$weft" resume nowhere

# ---- mixed precision ----
llama=(--set model.norm=rms --set model.positions=rotary --set model.mlp=swiglu --set model.kv_heads=1 --set model.bias=false)
expect 0 '' "$weft" train gpt.yaml --run llama "${llama[@]}" --set train.label_smoothing=0.1 --quiet
expect 0 'the' "$weft" generate llama --prompt 'the ' --tokens 20 --seed 3
expect 1 "GPT-2's format is for models" "$weft" export llama --to gpt2 --out llama.safetensors
expect 2 'must divide model.heads' "$weft" train gpt.yaml --set model.kv_heads=3
expect 0 '' "$weft" train gpt.yaml --run mixed --set train.precision=bf16 --quiet
expect 0 '' "$weft" train gpt.yaml --run halted --set train.precision=bf16 --set train.steps=20 --quiet
expect 0 '' "$weft" resume halted --set train.steps=40 --quiet
check "bf16 goes on to the same bits" cmp {mixed,halted}/checkpoints/step-40/model.safetensors
expect 0 'the' "$weft" generate mixed --prompt 'the ' --tokens 20 --seed 3
cp out first
expect 0 'the' "$weft" generate mixed --prompt 'the ' --tokens 20 --seed 3 --precision bf16
check "weights rounded while loading, the same text" cmp first out
expect 0 'the' "$weft" generate mixed --prompt 'the ' --tokens 20 --seed 3 --precision f32
expect 0 '' "$weft" export mixed --to gpt2 --out mixed.safetensors
check "what is exported is f32" grep -aq '"F32"' mixed.safetensors
check "nothing of it is bf16" bash -c '! grep -aq "\"BF16\"" mixed.safetensors'
expect 0 '' "$weft" train mlp.yaml --run mixed-mlp --set train.precision=bf16 --quiet

# f16: the loss scale starts too large, falls, grows again, and is restored from a checkpoint
half=(--set train.precision=f16 --set train.loss_scale=1e9 --set train.loss_scale_every=7 --set train.log_every=1)
expect 0 '' "$weft" train gpt.yaml --run half "${half[@]}" --quiet
expect 0 '' "$weft" train gpt.yaml --run half-halted "${half[@]}" --set train.steps=20 --quiet
expect 0 '' "$weft" resume half-halted --set train.steps=40 --quiet
for file in model optimizer; do
    check "f16 goes on to the same bits" cmp half{,-halted}/checkpoints/step-40/$file.safetensors
done
check "the scale is logged" bash -c 'grep -o "\"loss_scale\": [0-9.e+]*" half/metrics.jsonl | sort -u | wc -l | grep -qvx 1'
check "and no other run has one" bash -c '! grep -q loss_scale mixed/metrics.jsonl'
expect 0 'the' "$weft" generate half --prompt 'the ' --tokens 20 --seed 3
expect 0 'validation +loss' "$weft" eval half
expect 2 'train.loss_scale cannot change' "$weft" resume half --set train.loss_scale=2 --set train.steps=50
expect 0 '' "$weft" train mlp.yaml --run half-mlp --set train.precision=f16 --quiet
expect 2 'train.loss_scale: .*1' "$weft" train gpt.yaml --run bad --set train.precision=f16 --set train.loss_scale=0.5
expect 2 'train.loss_scale_every' "$weft" train gpt.yaml --run bad --set train.loss_scale_every=0

# ---- using a model ----
expect 0 'the' "$weft" generate "$run" --prompt 'the ' --tokens 40 --seed 3
cp out first
expect 0 '' "$weft" generate "$run" --prompt 'the ' --tokens 40 --seed 3
check "the same seed, the same text" cmp first out
expect 0 '' "$weft" generate "$run" --tokens 100 --temperature 0 --top-k 5
expect 0 'the' "$weft" generate "$run" --prompt 'the ' --tokens 40 --seed 3 --precision bf16
expect 0 'the' "$weft" generate "$run" --prompt 'the ' --tokens 40 --seed 3 --precision f16
expect 2 'precision f8: a model trained in f32 can be used in f32, bf16 or f16' "$weft" generate "$run" --precision f8
expect 4 'computes nothing' "$weft" generate "$run" --device null
expect 2 'precision bf16: matmul computes in f32 only' "$weft" bench matmul --precision bf16
expect 2 'precision f64: mlp computes in f32, bf16 and f16' "$weft" bench mlp --precision f64
expect 2 'precision half: mlp' "$weft" bench mlp --precision half
expect 2 'recompute half: give none, gelu, norm or block' "$weft" bench mlp --recompute half
expect 2 'recompute gelu: .* a workload that trains layers' "$weft" bench generate_chargpt --recompute gelu
# recomputing gives the same loss in less memory
for what in none gelu; do
    "$weft" bench chargpt_small --recompute $what --steps 2 --warmup 1 --json >recompute_$what
done
number() { grep -Eo "\"$2\": [0-9.e+]+" "$1" | grep -Eo '[0-9.e+]+$'; }
check "--recompute keeps the loss" test "$(number recompute_none loss_last)" = "$(number recompute_gelu loss_last)"
check "--recompute takes less memory" awk "BEGIN { exit !($(number recompute_gelu arena_mb) < 0.9 * $(number recompute_none arena_mb)) }"
expect 0 '"recompute": "gelu"' cat recompute_gelu
for precision in bf16 f16; do
    expect 0 "\"dtype\": \"$precision\".*\"loss_last\": [0-9]" "$weft" bench mlp --precision $precision --steps 2 --warmup 1 --json
done
expect 0 '"dtype": "bf16"' "$weft" bench generate_chargpt --precision bf16 --steps 1 --warmup 0 --json
"$weft" generate "$run" --tokens 3000 2>err | head -c 5 >/dev/null
check "a reader that left is no error line" test ! -s err
expect 3 'prompt|character' "$weft" generate "$run" --prompt 'Ω'
expect 0 'are left out of the prompt: Ωé$' "$weft" generate "$run" --prompt 'Ωthe é' --tokens 5
expect 0 '^the ' "$weft" generate "$run" --prompt 'Ωthe é' --tokens 5
expect 0 'validation +loss' "$weft" eval "$run"
expect 0 '"validation": \{"loss": [0-9.]+, "accuracy"' "$weft" eval "$run" --json
expect 0 'gpt-L1-H2-E16-cpu-1 +done +40/40' "$weft" runs
expect 0 'best loss' "$weft" compare "$run" again
expect 0 'step-40  intact' "$weft" info "$run" --check

expect 0 'test accuracy' "$weft" train mlp.yaml --run classes
check "whole numbers are written as such" grep -q '"epoch": 4,' classes/metrics.jsonl
expect 0 '2/2' "$weft" train mlp.yaml --run two --set train.steps=2
expect 2 'only one of' "$weft" train mlp.yaml --set train.steps=2 --set train.epochs=2
check "accuracy is logged" grep -q '"val_accuracy": ' classes/metrics.jsonl
check "samples a second" grep -q '"samples_per_second": ' classes/metrics.jsonl
printf 'a,b\n1.5,2\n3.5,4\n' >input.csv
expect 0 '^(even|odd)	0\.[0-9]+$' "$weft" predict classes input.csv
check "a header, one line a row" test "$(wc -l <out)" = 3
cp out first
printf 'b,note,a\n2,x,1.5\n4,y,3.5\n' >mixed.csv # columns are found by name, in any order
expect 0 '' "$weft" predict classes mixed.csv
check "columns go by name" cmp first out
printf '1.5,2\n3.5,4\n' >bare.csv
expect 0 '' "$weft" predict classes bare.csv
check "columns without names go by position" cmp first out
expect 0 '' "$weft" predict classes table.csv # the target column is ignored
check "a header, one line a row" test "$(wc -l <out)" = 61
printf 'a,c\n1.5,2\n' >other.csv
expect 3 'no column named "b"' "$weft" predict classes other.csv
printf 'a\n1.5\n' >narrow.csv
expect 3 'narrow.csv' "$weft" predict classes narrow.csv
expect 2 'is not a language model' "$weft" generate classes
expect 0 'accuracy' "$weft" eval classes
expect 0 '' "$weft" train line.yaml --run numbers --quiet
printf 'a\n1.5\n2.5\n' >numbers.csv
expect 0 '^-?[0-9.]+$' "$weft" predict numbers numbers.csv
expect 0 'root mean square error' "$weft" eval numbers
expect 2 "use 'weft generate'" "$weft" predict "$run" input.csv

# ---- damage, divergence, a full disk, two runs at once, signals ----
cp -r "$run" damaged
printf 'x' | dd of=damaged/checkpoints/step-40/model.safetensors bs=1 seek=700 conv=notrunc 2>/dev/null
expect 3 'DAMAGED|model.safetensors' "$weft" info damaged --check
expect 0 'model.safetensors' "$weft" generate damaged --tokens 3
expect 3 'model.safetensors' "$weft" resume damaged --strict --set train.steps=50
expect 0 '' "$weft" resume damaged --set train.steps=50 --quiet
check "the older checkpoint gives the same bits" cmp damaged/checkpoints/step-50/model.safetensors again/checkpoints/step-50/model.safetensors
expect 6 'step [0-9]+: the loss is' "$weft" train gpt.yaml --run wild --set optimizer.type=sgd --set optimizer.lr=1e6 \
    --set optimizer.clip=0 --set schedule.warmup=0 --set train.save_every=1 --set train.steps=400
one_line
check "the last checkpoint is kept" "$weft" info wild --check
expect 8 'needed|large|full|space' bash -c "ulimit -f 40; exec '$weft' train gpt.yaml --run full --set model.width=64"

"$weft" train gpt.yaml --run long --set train.steps=1000000 --set train.save_every=100000 >long.out 2>&1 &
pid=$!
for _ in $(seq 100); do
    grep -qs 'step 10/' long.out && break
    sleep 0.1
done
expect 9 'long' "$weft" resume long
one_line
kill -USR1 $pid
for _ in $(seq 100); do
    ls long/checkpoints/step-* >/dev/null 2>&1 && break
    sleep 0.1
done
check "SIGUSR1 saves" ls long/checkpoints/step-*
kill -INT $pid
wait $pid
got=$?
check "SIGINT gives exit 130, not $got" test $got = 130
check "it says how to go on" grep -q 'weft resume long' long.out
expect 0 'intact' "$weft" info long --check
"$weft" train gpt.yaml --run killed --set train.steps=1000000 --set train.save_every=1 --set train.keep=50 >killed.out 2>&1 &
pid=$!
for _ in $(seq 100); do
    grep -qs 'step 10/' killed.out && break
    sleep 0.1
done
expect 0 'killed +running' "$weft" runs .
for _ in $(seq 40); do
    "$weft" info killed --check || break # meanwhile the run removes checkpoints
done >checked.out 2>&1
check "a run that goes on is sound: $(tail -n 3 checked.out)" test "$(grep -c summary.json checked.out)" = 40
kill -KILL $pid
wait $pid 2>/dev/null
expect 0 'killed +killed +[1-9][0-9]*/1000000' "$weft" runs .
for signal in INT:130 TERM:143; do
    "$weft" train gpt.yaml --run "stop-$signal" --set train.steps=1000000 >stop.out 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        grep -qs 'step 10/' stop.out && break
        sleep 0.1
    done
    kill -"${signal%:*}" $pid
    wait $pid
    got=$?
    check "SIG${signal%:*} gives exit ${signal#*:}, not $got" test $got = "${signal#*:}"
    expect 0 'intact' "$weft" info "stop-$signal" --check
done
# shellcheck disable=SC2016
check "a closed standard output is an error" bash -c '"$1" devices >&- 2>/dev/null; [ $? = 8 ]' - "$weft"
expect 8 'standard output' bash -c "'$weft' init gpt >/dev/full"

# ---- verify ----
expect 2 'CONFIG is missing' "$weft" verify --devices cpu
expect 2 'devices is missing' "$weft" verify gpt.yaml
expect 2 'two names' "$weft" verify gpt.yaml --devices cpu,cpu,cpu
expect 4 'abacus' "$weft" verify gpt.yaml --devices cpu,abacus
one_line
expect 0 'every node agrees' "$weft" verify gpt.yaml --devices cpu,interp --steps 2
expect 0 'every node agrees to the bit' "$weft" verify mlp.yaml --devices cpu,cpu
expect 0 'losses of 3 steps agree' "$weft" verify gpt.yaml --devices cpu --steps 3
for precision in bf16 f16; do
    expect 0 'every node agrees' "$weft" verify gpt.yaml --devices cpu,interp --steps 2 --set train.precision=$precision
    expect 1 'differs: .* on null' "$weft" verify gpt.yaml --devices cpu,null --set train.precision=$precision
done
expect 1 'differs: .* on null' "$weft" verify mlp.yaml --devices cpu,null
# The batch is all data, and the targets have the mean 0: the gradient of the bias is the rounding of a sum. Adam would make whole steps of it.
awk 'BEGIN {print "a,b,y"; for (i = 1; i <= 100; i++) print i * 7919 % 1000 / 7 "," i * 104729 % 997 / 3 "," i * 611953 % 991 / 11}' >numbers.csv
expect 0 '' "$weft" init linear --data numbers.csv --out linear.yaml
expect 0 'agrees; furthest' "$weft" verify linear.yaml --devices cpu,interp
check "steps of rounding errors are not compared" grep -q 'gradient of linear is 0 but for rounding, .* so these are steps of sgd' out
expect 0 'losses of 5 steps agree' "$weft" verify linear.yaml --devices cpu,interp --set optimizer.type=sgd

# ---- profile ----
expect 2 'CONFIG is missing' "$weft" profile
expect 2 'steps and --warmup' "$weft" profile gpt.yaml --steps 0
expect 8 'no/such' "$weft" profile gpt.yaml --steps 2 --trace no/such
one_line
before=$(ls runs | wc -l)
expect 0 'in all; the bound is' "$weft" profile gpt.yaml --steps 4 --set schedule.warmup=30 # longer than the profile
expect 0 'in all; the bound is' "$weft" profile gpt.yaml --steps 4 --trace trace.json
check "it makes no run folder" test "$(ls runs | wc -l)" = "$before"
check "every stage is there" awk '/^stage/ {on = 1} /^part/ {on = 0} on && /^(data|forward|loss|backward|optimizer|host|in all) / {n++} END {exit n != 7}' out
check "what a part is worth" grep -Eq '^matmul +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+x +[0-9.]+ +[0-9.]+x$' out
check "its shares add up" awk '/^stage/ {on = 1; next} /^in all/ {exit !(sum > 99.95 && sum < 100.05)} on {sum += $3}' out
expect 0 '"step_at_bound": [0-9.e-]+' "$weft" profile mlp.yaml --steps 5 --json
expect 0 '"stage": "optimizer"' "$weft" profile mlp.yaml --steps 5 --json --device interp
if command -v python3 >/dev/null; then
    check "the JSON is JSON" python3 -c '
import json
p = json.load(open("out"))
assert p["steps"] == 5 and abs(sum(p["stages"].values()) / p["seconds_per_step"] - 1) < 1e-3
assert {k["stage"] for k in p["kernels"]} >= {"forward", "backward", "optimizer"}'
    check "phases and parts of a resumed run are the same time" python3 -c '
import glob, json
for path in ("again/summary.json", glob.glob("runs/gpt*1/summary.json")[0]):
    s = json.load(open(path))
    phases, parts = sum(s["phases"].values()), sum(s["parts"].values())
    assert 0 < phases and abs(phases - s["seconds"]) < 1e-6 and abs(phases - parts) < 0.02 * phases, s'
    check "the trace is one" python3 -c '
import json
events = json.load(open("trace.json"))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
assert tracks == {1: "host", 2: "cpu"}
runs = sorted((e["ts"], e["dur"]) for e in events if e["name"] == "run")
assert len(runs) == 4
commands = [e for e in events if e.get("tid") == 2 and e["ph"] == "X"]
assert {c["cat"] for c in commands} >= {"forward", "backward", "optimizer"}
assert all(any(t - 1 <= c["ts"] and c["ts"] + c["dur"] <= t + d + 1 for t, d in runs) for c in commands)
assert any(e["name"] == "data" for e in events)'
fi

# ---- demo xor, bench ----
expect 0 '1 xor 0 = 0.9' "$weft" demo xor
expect 0 'cpu works: matmuls of size 1024' "$weft" demo device --device cpu
expect 0 'matmul is left out.*' "$weft" demo device --device interp
expect 1 'null: the bytes read back differ from the bytes sent' "$weft" demo device --device null
expect 4 'opencl' "$weft" demo device --device opencl:99
expect 4 'is missing before or after a comma' "$weft" demo device --device ,
expect 0 '"workload": "xor200", "peer": "weft"' "$weft" bench xor200 --json
expect 0 '"seconds_per_step_loop": [0-9.e-]+, "seconds_per_step_queued": [0-9.e-]+, .*"record_ns_per_node": [0-9.]+' "$weft" bench xor200 --json
expect 0 '"loss_last": [0-9.e-]+, "peak_rss_mb": [0-9.]+, "plan_mb": [0-9.e-]+, "arena_mb": [0-9.e-]+' \
    "$weft" bench gd_small --steps 20 --json
expect 0 'calls +GFLOP/s' "$weft" bench xor200 --steps 10 --profile
expect 0 '"workload": "gemm_f32_n8", .*"matmuls": 1000, .*"gflops": [0-9]' "$weft" bench matmul --only n8 --json --steps 1
check "gemm is listed" grep -q '^gemm  *square' <("$weft" bench list)
"$weft" bench gemm --only 128 --json >gemm
for way in naive library own; do
    check "gemm: $way is near f64" grep -Eq "\"variant\": \"$way\", .*\"n\": 128, \"gflops\": [0-9].*\"error\": [1-9.]+e-07}" gemm
done
check "gemm: no more than was asked for" test "$(wc -l <gemm)" = 3
expect 0 '   128 +[0-9.]+ +[0-9.e-]+ +[0-9.]+ +[1-9][.][0-9]e-03 .* - +-' "$weft" bench gemm --only 128 --precision bf16
expect 2 'give f32, tf32, f64, f16 or bf16' "$weft" bench gemm --precision f8
check "--only chooses lines" test "$("$weft" bench matmul --only n48 --json --steps 1 | grep -c workload)" = 1

echo "test_cli: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
