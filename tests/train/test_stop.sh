#!/usr/bin/env bash
# Stops the command at points where a stop could be delayed: an evaluation, a step of many micro-batches, output that nobody
# reads, a pipe in the place of a file, and the work before the first step. A resumed run must equal an uninterrupted run.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

# An evaluation (about 180 times as many tokens) or a step of 400 micro-batches takes much longer than a second of steps.
for i in $(seq 12000); do echo "the weft goes over and under the warp, line $((i * 7919 % 1000))"; done >long.txt
cat >slow.yaml <<'END'
task: language-model
data: {path: long.txt, val_fraction: 0.5}
model: {type: gpt, layers: 2, heads: 2, width: 64, context: 64, dropout: 0.1}
optimizer: {lr: 0.01}
schedule: {warmup: 2}
train: {steps: 8, batch: 8, eval_every: 4, eval_batches: 0, save_every: 100, log_every: 1, keep: 1, patience: 5, keep_best: true}
END

# stopped CODE NAME: stops the process $pid and waits for its end. ctest ends a test that hangs.
stopped() {
    local code=$1 name=$2 got
    kill -TERM "$pid"
    wait "$pid"
    got=$?
    check "$name: exit $code, not $got" test "$got" = "$code"
}

# same A B: compares weights, optimizer state, scores and metrics (except rates and memory) of two runs.
same() {
    local file
    for file in checkpoints/step-8/model.safetensors checkpoints/step-8/optimizer.safetensors checkpoints/step-8/state.json \
        checkpoints/best/model.safetensors scores.json; do
        check "$2: the same $file" cmp "$1/$file" "$2/$file"
    done
    check "$2: the same metrics" cmp \
        <(sed -E 's/"(tokens_per_second|memory_peak|epoch_seconds)": [0-9.e+]+,? ?//g' "$1/metrics.jsonl") \
        <(sed -E 's/"(tokens_per_second|memory_peak|epoch_seconds)": [0-9.e+]+,? ?//g' "$2/metrics.jsonl")
    check "$2: the same samples" diff -r "$1/samples" "$2/samples"
}

# ---- an evaluation ----
expect 0 '' "$weft" train slow.yaml --run whole --quiet
"$weft" train slow.yaml --run evaluation >evaluation.out 2>&1 &
pid=$!
wait_for_line '"step": 3' evaluation/metrics.jsonl
sleep 0.3
stopped 143 "a stop in an evaluation"
check "it is said how to go on" grep -q 'weft resume evaluation' evaluation.out
check "the step whose evaluation was cut short is kept" ls evaluation/checkpoints/step-4
check "it is not logged yet" test "$(wc -l <evaluation/metrics.jsonl)" = 3
expect 0 'intact' "$weft" info evaluation --check
"$weft" resume evaluation >evaluation.out 2>&1 & # this stops in the same evaluation
pid=$!
wait_for_line 'resumed' evaluation/log.txt
sleep 0.3
stopped 143 "a stop in an evaluation that was due"
expect 0 '' "$weft" resume evaluation --quiet
same whole evaluation

# ---- the evaluation of the last step, and the final evaluation ----
"$weft" train slow.yaml --run last >last.out 2>&1 &
pid=$!
wait_for_line '"step": 7' last/metrics.jsonl
sleep 0.3
stopped 143 "a stop in the last evaluation"
expect 0 '' "$weft" resume last --quiet
same whole last

# ---- a step of many micro-batches ----
expect 0 '' "$weft" train slow.yaml --run parts-whole --quiet --set train.accumulate=30
"$weft" train slow.yaml --run parts --set train.accumulate=30 >parts.out 2>&1 &
pid=$!
wait_for_line '"step": 1' parts/metrics.jsonl
stopped 143 "a stop between the batches of a step"
expect 0 '' "$weft" resume parts --quiet
same parts-whole parts

# ---- before the first step ----
"$weft" train slow.yaml --run first --set train.accumulate=400 >first.out 2>&1 &
pid=$!
wait_for_line 'steps' first.out
stopped 143 "a stop in the first step"
check "nothing was saved, which is said" grep -q '^weft: stopped before the first step: nothing was saved' first.out
check "there is no checkpoint" test ! -e first/checkpoints/step-1
"$weft" resume first >first.out 2>&1 &
pid=$!
wait_for_line 'resumed' first/log.txt
stopped 143 "a stop in the first step after resuming"
check "the message says that the run is unchanged" grep -q 'the run is unchanged$' first.out

# ---- output that nobody reads ----
mkfifo output
"$weft" train slow.yaml --run unread --set train.steps=100000 --set train.eval_every=0 --set train.patience=0 \
    --set model.width=8 >output 2>&1 &
pid=$!
exec 7<output # opened, never read
sleep 4
stopped 143 "a stop while output is held up"
exec 7<&-
expect 0 'intact' "$weft" info unread --check

# ---- pipes instead of files ----
for file in metrics.jsonl metrics.csv log.txt events.out.tfevents.0000000000.weft; do
    expect 0 '' "$weft" train slow.yaml --run piped --quiet --set train.steps=3 --set train.eval_every=0
    rm "piped/$file"
    mkfifo "piped/$file"
    expect 8 "$file: not a regular file" timeout 20 "$weft" resume piped --set train.steps=4
    rm -r piped
done

echo "test_stop: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
