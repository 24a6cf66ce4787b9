#!/usr/bin/env bash
# Tests recurrent language models with the command: lstm on characters and gru on words. They train on streams whose states
# are carried from window to window, are resumed within an epoch and across its end, and then generate and are evaluated.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

expect 0 '' "$weft" init lstm --data text.txt --out lstm.yaml
check "streams are the default" grep -q '^  streams: true$' lstm.yaml
small=(--quiet --set train.batch=4 --set model.width=8 --set model.context=16 --set schedule.warmup=2 --set train.steps=0
    --set train.save_every=7 --set train.eval_every=20 --set train.keep=100)

expect 0 '' "$weft" train lstm.yaml --run whole "${small[@]}" --set train.epochs=2
last=$(find whole/checkpoints -maxdepth 1 -name 'step-*' | sed 's/.*step-//' | sort -n | tail -1)
check "the states are saved" grep -aq '"h"' "whole/checkpoints/step-$last/model.safetensors"
for at in 7 $((last / 2 / 7 * 7 + 7)); do
    cp -r whole part
    for step in part/checkpoints/step-*; do [ "${step##*step-}" -gt "$at" ] && rm -r "$step"; done
    expect 0 '' "$weft" resume part --quiet
    check "resumed from step $at to the same bits" cmp {whole,part}/checkpoints/step-"$last"/model.safetensors
    rm -r part
done
expect 0 '' "$weft" train lstm.yaml --run parts "${small[@]}" --set train.epochs=2 --set train.accumulate=5
check "epochs of streams are whole steps" test -d parts/checkpoints/step-$((2 * (last / 2 / 5)))
expect 0 '' "$weft" train lstm.yaml --run still "${small[@]}" --set train.epochs=2 --set data.streams=false
check "without streams there are no states" bash -c "! grep -aq '\"h\"' still/checkpoints/step-*/model.safetensors"
expect 0 'validation loss .* perplexity' "$weft" eval whole
expect 0 '' "$weft" eval whole --json
check "perplexity is e to the power of the loss" python3 -c '
import json, math
v = json.load(open("out"))["validation"]
assert abs(v["perplexity"] / math.exp(v["loss"]) - 1) < 1e-6, v'
expect 0 'the weft' "$weft" generate whole --prompt "the weft" --tokens 100 --temperature 0
cp out once
expect 0 '' "$weft" generate whole --prompt "the weft" --tokens 100 --temperature 0
check "generated again" cmp out once

expect 0 '' "$weft" init gru --data text.txt --out gru.yaml
expect 0 '' "$weft" train gru.yaml --run words "${small[@]}" --set train.epochs=3 --set data.tokenizer=word \
    --set model.untied_head=false --set model.dropout=0.2 --set model.context=8
expect 0 '' "$weft" generate words --prompt "over and under" --tokens 10
expect 0 '' "$weft" train lstm.yaml --run largest "${small[@]}" --set train.batch=auto --set train.steps=1 --set schedule.warmup=0
expect 2 'too few tokens|too few for' "$weft" train lstm.yaml --run few "${small[@]}" --set train.epochs=1 --set train.batch=1000

echo "test_recurrent_models: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
