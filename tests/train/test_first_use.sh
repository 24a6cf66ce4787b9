#!/usr/bin/env bash
# What a newcomer types first, and what he sees: training without a configuration, and terminals of several widths.
# shellcheck source=tests/train/command.sh
terminal=$(dirname "$(readlink -f "$0")")/terminal.py
. "$(dirname "$0")/command.sh"

small=(--set model.width=16 --set model.heads=2 --set model.layers=1 --set model.context=8 --set train.log_every=1)

# ---- a model's name instead of a configuration ----
expect 0 'next: .*weft generate runs/gpt-L1-H2-E16-cpu-1 --prompt TEXT' "$weft" train gpt --data text.txt "${small[@]}" \
    --set train.steps=5
check "the result comes last, with a sample and the report" awk '/^step 5\/5/ {step = NR} /^validation loss/ {loss = NR}
    /^the model writes:/ {sample = NR} /^report: / {report = NR} /^next: / {next_command = NR}
    END {exit !(step && step < loss && loss < sample && sample < report && report < next_command)}' out
check "without --verbose nothing tells of the device's time" sh -c '! grep -Eq "where the time|busy|matmul" out'
mkdir letters && cp text.txt letters/one.txt && cp text.txt letters/two.txt
expect 0 'validation loss' "$weft" train gpt --data letters "${small[@]}" --run runs/letters
expect 0 'path: "letters/\*.txt"' "$weft" init gpt --data 'letters/*.txt'
expect 0 '' "$weft" generate runs/gpt-L1-H2-E16-cpu-1 --prompt the --tokens 5
expect 0 '^weft: generate: the model has never seen these characters, so they are left out of the prompt: Ω🙂$' \
    "$weft" generate runs/gpt-L1-H2-E16-cpu-1 --prompt 'Ωthe 🙂weft' --tokens 5
check "the rest of the prompt is continued" grep -q '^the weft' out
check "a text that is piped needs no note on the seed" sh -c '! grep -q seed err'
written() { # written NAME OPTION...: keeps what generate writes on a terminal
    local name=$1
    shift
    expect 0 '^the ' python3 "$terminal" 80 "$weft" generate runs/gpt-L1-H2-E16-cpu-1 --prompt 'the ' --tokens 40 "$@"
    mv out "$name"
}
written first && written again && written other --seed 2
check "without --seed the text is always the same" cmp -s first again
check "another seed gives another text" sh -c '! cmp -s first other'
check "this is said" grep -q 'seed 1: without --seed the text is always the same; for another text, use --seed 2' first
check "only without --seed" sh -c '! grep -q seed other'

# ---- a folder with a space, also in its quotes: suggested commands work as they are ----
expect 0 "next: .*weft generate 'my \"run\"' --prompt TEXT" "$weft" train gpt --data text.txt "${small[@]}" \
    --set train.steps=2 --run 'my "run"'
expect 2 "continue it with: weft resume 'my \"run\"'; or choose another --run" \
    "$weft" train gpt --data text.txt "${small[@]}" --run 'my "run"'
mkdir 'all runs' && mv 'my "run"' 'all runs/'
expect 0 "^1 run in \./all runs: .*weft runs './all runs'" "$weft" runs .
expect 2 "to list the steps: weft info 'all runs/my \"run\"'" "$weft" generate 'all runs/my "run"' --checkpoint first
mkdir 'the command' && ln -s "$weft" 'the command/weft'
expect 0 "next: 'the command/weft' predict" 'the command/weft' train mlp --data table.csv --set train.epochs=1 --run named

# ---- messages name what was typed, and a remedy ----
expect 3 'text.txt.*does not tell its format.*data.source=csv' "$weft" train mlp --data text.txt
expect 2 '^weft: train: --quiet takes no value' "$weft" train gpt --data text.txt --quiet=yes
expect 2 "model.activation: give identity, .*, softplus or elu, not 'x(α){29}'$" \
    "$weft" train mlp --data table.csv --set "model.activation=x$(printf 'α%.0s' $(seq 50))"
check "no character is cut" sh -c '! grep -q "x[0-9a-f][0-9a-f]" err'
expect 0 'next: .*weft predict runs/mlp.* FILE' "$weft" train mlp --data table.csv --set train.epochs=2
expect 0 'accuracy [0-9.]+ %' "$weft" train logistic --data table.csv --set train.epochs=2
expect 2 'train text --data FILE' "$weft" train
expect 2 'data.path is missing: .* --data PATH' "$weft" train gpt
expect 8 'nowhere.txt' "$weft" train gpt --data nowhere.txt
expect 8 'nowhere.txt: No such file' "$weft" init gpt --data nowhere.txt
expect 0 'matmul' "$weft" plan gpt --data text.txt --json
echo 'model: {type: mlp}' >gpt # a file goes before a name
expect 0 'mlp' "$weft" train gpt --data table.csv --set train.epochs=1
rm gpt

# ---- the length of the run ----
expect 0 '' "$weft" train gpt --data text.txt "${small[@]}" --run short --set train.steps=40 --quiet
check "one step in twenty warms up" grep -q '  warmup: 2  # follows from other keys' short/config.yaml
expect 0 '' "$weft" train gpt --data text.txt "${small[@]}" --run tiny --set train.steps=2 --quiet
check "a short run has no warm-up" grep -q '  warmup: 0  # follows' tiny/config.yaml

# ---- evaluations during training use a part, the end uses all ----
expect 0 '' "$weft" train gpt --data text.txt "${small[@]}" --run part --set train.steps=4 --set train.eval_every=2 \
    --set train.eval_batches=1 --quiet
expect 0 '' "$weft" train gpt --data text.txt "${small[@]}" --run all --set train.steps=4 --set train.eval_every=2 \
    --set train.eval_batches=0 --quiet
cat >losses.py <<'END'
import json, sys
def losses(run):
    lines = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    return [line["val_loss"] for line in lines if "val_loss" in line], json.load(open(f"{run}/scores.json"))
part, part_scores = losses("part")
whole, whole_scores = losses("all")
assert len(part) == len(whole) == 2 and part != whole, (part, whole)
assert part_scores["validation"] == whole_scores["validation"]
END
check "the final scores do not depend on train.eval_batches" python3 losses.py

# ---- values without an effect ----
expect 0 'weft: warning: --set: optimizer.momentum has no effect: optimizer.type adamw does not use it' \
    "$weft" train gpt --data text.txt "${small[@]}" --run warned --set train.steps=2 --set optimizer.momentum=0.9
printf 'data:\n  path: text.txt\n  flip: true\n' >flip.yaml
expect 0 'weft: warning: flip.yaml:3: data.flip has no effect: a gpt does not use it' \
    "$weft" train flip.yaml "${small[@]}" --run flipped --set train.steps=2
"$weft" init gpt --data text.txt >plain.yaml
expect 0 '' "$weft" train plain.yaml "${small[@]}" --run plain --set train.steps=2 --quiet
check "a file of weft init has no warning" test ! -s err
expect 0 '' "$weft" resume warned --set train.steps=3 --quiet
check "a resumed run warns no second time" test ! -s err

# ---- files without content, and names that are none ----
: >empty.csv
: >empty.json
: >empty.jsonl
: >empty.parquet
printf '\n \n' >blank.jsonl
printf '\xef\xbb\xbf' >mark.csv
for file in empty.csv empty.json mark.csv; do
    expect 3 "$file: the file is empty$" "$weft" train mlp --data $file --quiet
    one_line
done
for file in empty.json empty.jsonl blank.jsonl; do
    expect 3 "$file: the file is empty$" "$weft" train gpt --data $file --quiet
    one_line
done
for model in mlp gpt; do # also without DuckDB
    expect 3 'empty.parquet: this is no Parquet file' env WEFT_DUCKDB_LIB=/no/such.so "$weft" train $model --data empty.parquet --quiet
    one_line
done
expect 8 'gtp: there is no such file, and no such model type: name a configuration or one of gpt, mlp, ' \
    "$weft" train gtp --data text.txt --quiet
one_line
expect 8 'cannot open gtp.yaml: No such file' "$weft" train gtp.yaml --data text.txt --quiet

# ---- terminals ----
for columns in 30 60 80 200; do
    expect 0 'step 40/40' python3 "$terminal" $columns "$weft" train gpt --data text.txt "${small[@]}" \
        --run "terminal-$columns" --set train.steps=40 --set train.eval_every=10
    check "a line of progress fits $columns columns" python3 -c "
lines = [line for line in open('out', encoding='utf-8').read().split('\n') if 'step ' in line and '/40' in line]
assert lines and max(len(line) for line in lines) < $columns, lines"
done
check "a wide terminal shows all metrics" grep -Eq 'step 40/40  epoch .*loss .*val .*accuracy .*lr .*tokens/s .*left' out

echo "test_first_use: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
