#!/usr/bin/env bash
# Cross-validation: what a newcomer types and sees on 80 columns, the same bits with any number of processes, stopping and
# going on, and bad input.
# shellcheck source=tests/train/command.sh
terminal=$(dirname "$(readlink -f "$0")")/terminal.py
. "$(dirname "$0")/command.sh"

# ---- the first use ----
expect 0 '^accuracy [0-9.]+ %, standard deviation [0-9.]+ %, of 5 folds' python3 "$terminal" 80 "$weft" cv logistic --data table.csv
check "no line is longer than the terminal" awk '{gsub(/━/, "-")} length($0) > 80 && !/^next: / {print; exit 1}' out
check "a line for each fold, its mean and deviation" test "$(grep -Ec '^(fold-[1-5]|mean|deviation) +[0-9.]+ +[0-9.]+ %' out)" = 7
check "each fold is told when it ends" grep -Eq '^\[5/5\] fold-[1-5]: accuracy [0-9.]+ %, [0-9.]+ s$' out
check "the last line trains on all rows" grep -Eq '^next: .*weft train logistic --data table.csv --set data.val_fraction=0$' out
eval "$(sed -n 's/^next: [^ ]*/"$weft"/p' out) --run whole --quiet"
check "that command works" grep -q '"status": "done"' whole/summary.json
check "a folder for each fold, and the scores" test -e runs/cv-logistic-1/fold-5/report.html -a -e runs/cv-logistic-1/cv.json
expect 0 '^fold-2 +done' "$weft" runs runs/cv-logistic-1
expect 0 'fold-1' "$weft" cv logistic --data table.csv --folds 2 --set train.seed=2
check "the next one gets a new folder" test -e runs/cv-logistic-2/fold-2 -a ! -e runs/cv-logistic-2/fold-3

# ---- figures ----
seq 47 | awk 'BEGIN {print "x,y"} {print $1 "," 3 * $1 + $1 % 5}' >numbers.csv
"$weft" cv linear --data numbers.csv --set data.target=y --folds 4 --jobs 3 --json >cv.json
check "the JSON that is printed is in the folder" cmp <(python3 -m json.tool cv.json) <(python3 -m json.tool runs/cv-linear-1/cv.json)
check "mean and deviation are those of the folds" python3 - <<'END'
import glob, json, statistics
cv = json.load(open("cv.json"))
for key in ("r2", "loss", "rmse", "mae"):
    folds = [fold["scores"][key] for fold in cv["folds"]]
    scores = [json.load(open(f"{fold['run']}/scores.json"))["validation"] for fold in cv["folds"]]
    assert len(folds) == 4 and all(abs(a - b[key]) < 1e-6 * abs(a) for a, b in zip(folds, scores))
    assert abs(cv["mean"][key] - statistics.mean(folds)) < 1e-6
    assert abs(cv["deviation"][key] - statistics.stdev(folds)) < 1e-6
assert sum(score["samples"] for score in scores) == 47
END
expect 0 '' "$weft" train linear --data numbers.csv --set data.target=y --set data.folds=4 --set data.fold=3 --run third
check "a fold is a run as any other" cmp third/checkpoints/step-500/model.safetensors runs/cv-linear-1/fold-3/checkpoints/step-500/model.safetensors
check "its summary says so" grep -q 'validation: 12 rows (a fold)' out

# ---- images ----
{
    printf '\0\0\x08\x03\0\0\0\x1e\0\0\0\x08\0\0\0\x08'
    awk 'BEGIN {for (i = 0; i < 30 * 64; i++) printf "%c", 33 + int(i / 64) % 3 * 30 + i % 7}'
} >small-images-idx3-ubyte
{
    printf '\0\0\x08\x01\0\0\0\x1e'
    for i in $(seq 0 29); do printf '%b' "\\x0$((i % 3))"; done
} >small-labels-idx1-ubyte
expect 0 '^accuracy .* of 3 folds' "$weft" cv cnn --data small-images-idx3-ubyte --folds 3 --set model.filters=4 --set model.hidden=8 --set train.epochs=2
check "each fold has as many of each class" python3 - <<'END'
import json
for fold in (1, 2, 3):
    scores = json.load(open(f"runs/cv-cnn-1/fold-{fold}/scores.json"))["validation"]
    assert [c["samples"] for c in scores["classes"]] == [3, 3, 4] or sum(c["samples"] for c in scores["classes"]) == 10
    assert all(c["samples"] in (3, 4) for c in scores["classes"]), scores["classes"]
END

# ---- the same bits with any number of processes; a stop and going on ----
long=(cv mlp --data table.csv --folds 3 --set model.hidden=64 --set train.epochs=1500 --set train.save_every=500
    --set model.dropout=0.1)
expect 0 '^ *[^ ]* *[1-3]/4 runs  best R2 0\.[0-9]+ \(fold-[1-4]\)  0:[0-9]{2} left$' \
    python3 "$terminal" 80 "$weft" cv linear --data numbers.csv --set data.target=y --folds 4 --set train.epochs=400
OMP_NUM_THREADS=2 expect 0 '^3 runs, 2 at a time, in one$' "$weft" "${long[@]}" --run one --jobs 2
expect 0 '^3 runs, 1 at a time, in three$' "$weft" "${long[@]}" --run three
same() { # same FOLDER: its folds have the bits of those in "one"
    for fold in 1 2 3; do
        check "$1: the same fold $fold" cmp {one,"$1"}/fold-$fold/checkpoints/step-1500/model.safetensors
        check "$1: the same scores of fold $fold" cmp {one,"$1"}/fold-$fold/scores.json
    done
}
same three
for signal in INT TERM; do
    "$weft" "${long[@]}" --run "$signal" --jobs 2 >stopped.out 2>&1 &
    pid=$!
    for _ in $(seq 600); do
        [ -e "$signal/fold-1/checkpoints/step-500" ] && break
        sleep 0.02
    done
    kill -$signal $pid
    wait $pid
    code=$?
    check "$signal ends it with 128 + the signal, not $code" test $code = $((128 + $([ $signal = INT ] && echo 2 || echo 15)))
    check "it says how to go on" grep -q "^weft: stopped: [0-2] of 3 runs have ended; to continue, add --run $signal to the same command" stopped.out
    expect 0 'fold-1 +stopped' "$weft" runs "$signal"
    check "no process is left" sh -c '! grep -q running out'
    check "what was begun is whole" "$weft" info "$signal/fold-1" --check
    expect 0 'of 3 folds' "$weft" "${long[@]}" --run "$signal"
    same "$signal"
done
expect 0 '^\[3/3\] fold-3: .*, as before$' "$weft" "${long[@]}" --run one
check "runs that have ended are not trained again" grep -q '^0 runs' out

# ---- bad input ----
expect 2 'cv: --folds 1: give a number from 2 to 1000' "$weft" cv logistic --data table.csv --folds 1
one_line
expect 2 '^weft: cv: cross-validation is for tables and images' "$weft" cv gpt --data text.txt
expect 2 'CONFIG is missing' "$weft" cv
expect 2 'data.path is missing' "$weft" cv logistic
expect 8 'fold-1: .*nowhere.csv' "$weft" cv logistic --data nowhere.csv --run empty --jobs 1
one_line
check "no empty folder stays" test ! -e empty
head -4 numbers.csv >few.csv
expect 2 'data.folds: 3 samples cannot be divided into 5 parts' "$weft" cv linear --data few.csv --jobs 1
expect 2 'the folds are parts of the training data, so leave out data.val_path' "$weft" cv logistic --data table.csv --set data.val_path=table.csv
expect 2 'one/fold-1: this run was trained with train.epochs: 1500, which now has another value: name another folder' "$weft" "${long[@]}" --run one --set train.epochs=7
one_line
expect 2 '--run whole: this folder is a run itself' "$weft" cv logistic --data table.csv --run whole
expect 2 'data.fold: give a number from 1 to data.folds' "$weft" train logistic --data table.csv --set data.folds=3
expect 2 'data.folds: give at least 2 parts' "$weft" train logistic --data table.csv --set data.folds=1
expect 0 'diverged' "$weft" cv linear --data numbers.csv --set data.target=y --folds 2 --set optimizer.type=sgd --set optimizer.lr=1000 \
    --set train.epochs=300 --run lost

echo "test_cv: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
