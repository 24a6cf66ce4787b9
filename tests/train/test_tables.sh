#!/usr/bin/env bash
# Models of tables by the command: linear and logistic regression from csv, JSON and npy, what they predict and how good
# that is.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

# y = 3 a - 2 b + 10 without noise, and what is above 12 of it; three classes by where a lies
{
    echo "a,b,y"
    for i in $(seq 120); do
        a=$((i * 37 % 50)) b=$((i * 13 % 20))
        echo "$a,$b,$((3 * a - 2 * b + 10))"
    done
} >line.csv
awk -F, 'NR == 1 {print "a,b,side"} NR > 1 {print $1 "," $2 "," ($3 > 60 ? "above" : "below")}' line.csv >side.csv
awk -F, 'NR == 1 {print "a,b,third"} NR > 1 {print $1 "," $2 "," ($1 < 15 ? "low" : $1 < 35 ? "middle" : "high")}' line.csv >third.csv
{
    printf '{"x": ['
    awk -F, 'NR > 1 {printf "%s[%s, %s]", (NR > 2 ? ", " : ""), $1, $2}' line.csv
    printf '], "y": ['
    awk -F, 'NR > 1 {printf "%s%s", (NR > 2 ? ", " : ""), $3}' line.csv
    printf ']}\n'
} >line.json

# ---- linear ----
expect 0 '' "$weft" init linear --data line.csv --out linear.yaml
check "it is linear" grep -q '^  type: linear$' linear.yaml
check "its batch is full" grep -q '^  batch: full$' linear.yaml
expect 0 'linear-2-1, 3 parameters' "$weft" train linear.yaml --run linear
expect 0 'R2 1.0000  root mean square error ([0-9.]+e-0[5-9]|0.000)' "$weft" eval linear
expect 0 '"r2": (1.0|0.9999)' "$weft" eval linear --json
printf 'b,a\n0,0\n1,10\n' >input.csv
expect 0 '^(10|9.99|10.0)' "$weft" predict linear input.csv
check "3 * 10 - 2 + 10" awk 'NR == 2 {exit !($1 > 37.9 && $1 < 38.1)}' out
expect 0 '' "$weft" train linear.yaml --run json --set data.path=line.json --quiet
check "json and csv give the same bits" cmp {linear,json}/checkpoints/step-500/model.safetensors
expect 0 '' "$weft" train linear.yaml --run interp --device interp --set train.epochs=50 --quiet
expect 0 '' "$weft" predict linear input.csv
cp out cpu
expect 0 '' "$weft" predict linear input.csv --device interp
check "another device predicts the same" awk 'NR == FNR {a[FNR] = $1; next} {d = a[FNR] - $1; if (d < 0) d = -d; if (d > 1e-4) bad = 1} END {exit bad}' cpu out
# two targets are scaled each by its own
printf '{"x": [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]], "y": [[1001, 0.1], [1002, 0.2], [1003, 0.3], [1004, 0.4], [1005, 0.5], [1006, 0.6], [1007, 0.7], [1008, 0.8], [1009, 0.9], [1010, 1]]}' >two.json
expect 0 '' "$weft" train linear.yaml --run two --set data.path=two.json --quiet
printf '{"x": [[20]]}' >twenty.json
expect 0 '^(1020|1019.99)[0-9.]*	(2|2.0000|1.9999)' "$weft" predict two twenty.json
# a ridge pulls the slopes, not the bias, towards 0; beside adamw there is none
expect 0 '' "$weft" train linear.yaml --run ridge --set model.ridge=108 --quiet
expect 0 'R2 0\.[5-9]' "$weft" eval ridge
expect 2 'model.ridge: .*choose adam' "$weft" train linear.yaml --run bad --set model.ridge=1 --set optimizer.type=adamw
expect 2 'logistic is the one for classes' "$weft" train linear.yaml --run bad --set task=classification
expect 0 '' "$weft" train linear.yaml --run mini --set train.batch=16 --set train.epochs=60 --quiet
expect 0 'R2 (1.0000|0.99)' "$weft" eval mini

# ---- logistic ----
expect 0 '' "$weft" init logistic --data side.csv --out logistic.yaml
expect 0 'logistic-2-2, 3 parameters' "$weft" train logistic.yaml --run side
expect 0 'accuracy (100.00|9[0-9.]+) %' "$weft" eval side
expect 0 '^(above|below)	(1.0000|0.[5-9][0-9]+)$' "$weft" predict side input.csv
check "10 is below 60" grep -q '^below' out
expect 0 'logistic-2-3, 9 parameters' "$weft" train logistic.yaml --run third --set data.path=third.csv
expect 0 '"confusion": \[\[' "$weft" eval third --json
expect 2 'linear is the one for numbers' "$weft" train logistic.yaml --run bad --set task=regression
expect 0 '' "$weft" init gpt --data text.txt --out gpt.yaml
expect 2 'full is for rows' "$weft" train gpt.yaml --set train.batch=full
expect 0 '' "$weft" verify logistic.yaml --devices cpu,interp --steps 2
expect 0 'activations' "$weft" plan logistic.yaml

# ---- what they have learned ----
expect 0 '' "$weft" show linear --csv
check "3 a - 2 b + 10, whatever the scaling" awk -F, 'function near(x, y) {d = x - y; return d < 1e-3 && d > -1e-3}
    $2 == "a" {n += near($3, 3)} $2 == "b" {n += near($3, -2)} $2 == "(bias)" {n += near($3, 10)} $1 == "y" {n++} END {exit n != 6}' out
expect 0 '^  a +(3|2.9999[0-9]*|3.0000[0-9]*) ' "$weft" show linear
expect 0 '"output": "below", "bias": -?[0-9.]+, "bias_standardised": [-0-9.]+, "coefficients": \[\{"column": "a", "coefficient": ' "$weft" show side --json
expect 0 'class middle' "$weft" show third
expect 0 '^  1 +[0-9]' "$weft" show json # names no columns
expect 0 '' "$weft" train linear.yaml --run raw --quiet --set data.standardize=false --set model.bias=false --set train.epochs=3
expect 0 '[(]bias[)] +0 +0$' "$weft" show raw
check "unscaled, both are one" awk '$1 == "a" {exit $2 != $3}' out
expect 0 '' "$weft" init mlp --data line.csv --out mlp.yaml
expect 0 '' "$weft" train mlp.yaml --run mlp --quiet --set task=regression --set model.hidden=[4] --set train.epochs=1
expect 0 'layer .*parameters' "$weft" show mlp
expect 2 'has no coefficients' "$weft" show mlp --csv

# ---- early stopping, the best checkpoint, weights of classes ----
# noise: 70 % of class no, which nothing foretells
awk 'BEGIN {srand(3); print "a,b,answer"; for (i = 0; i < 200; i++) print rand() "," rand() "," (rand() < 0.7 ? "no" : "yes")}' >noise.csv
noise=(--set data.path=noise.csv --set train.batch=16 --set optimizer.lr=0.1 --set schedule.type=constant --set data.val_fraction=0.3)
expect 0 'stopped early: the last 3 evaluations' "$weft" train logistic.yaml --run early "${noise[@]}" --set train.steps=900 --set train.patience=3
check "the best is kept" test -L early/checkpoints/best
best=$(readlink early/checkpoints/best)
expect 0 "early, step ${best#step-}\$" "$weft" eval early
expect 0 "early, step [0-9]+" "$weft" eval early --checkpoint last
check "which is another one" bash -c "! grep -q 'step ${best#step-}\$' out"
expect 0 "early, step ${best#step-}\$" "$weft" eval early --checkpoint "${best#step-}"
expect 2 'best, last or the number of a step' "$weft" eval early --checkpoint first
expect 8 'step-12345' "$weft" predict early input.csv --checkpoint 12345
expect 7 'it stopped early; --set train.patience=0' "$weft" resume early
expect 0 'early +stopped early' "$weft" runs .
check "the lowest validation loss is its" python3 -c '
import json, sys
lines = [json.loads(l) for l in open("early/metrics.jsonl")]
losses = {l["step"]: l["val_loss"] for l in lines if "val_loss" in l}
best = min(losses, key=losses.get)
assert "step-%d" % best == sys.argv[1], (best, sys.argv)
assert len([s for s in losses if s > best]) == 3
scores = json.load(open("early/scores.json"))
assert scores["step"] == best and abs(scores["validation"]["loss"] - losses[best]) < 1e-6' "$best"
expect 0 '' "$weft" train logistic.yaml --run part "${noise[@]}" --set train.steps=9 --set train.patience=3 --quiet # an epoch
expect 0 '' "$weft" resume part --set train.steps=900 --quiet
check "a resumed run stops where it would have" diff <(ls early/checkpoints) <(ls part/checkpoints)
for file in model optimizer state; do
    for name in best "$(ls early/checkpoints | sort -V | tail -1)"; do
        ending=$([ $file = state ] && echo json || echo safetensors)
        check "with the same $file in $name" cmp {early,part}/checkpoints/"$name"/$file."$ending"
    done
done
expect 0 '' "$weft" resume early --set train.patience=0 --set train.steps=54 --quiet
check "without patience it goes on" grep -q '54 of 54\|"step": 54' early/summary.json
expect 2 'no validation data to be patient about' "$weft" train logistic.yaml --run bad --set train.patience=1 --set data.val_fraction=0
check "no best but where it is asked for" test ! -e side/checkpoints/best

# all of one class, which is said
expect 0 'all 60 validation samples are taken for class no, which most of the training data have' "$weft" train logistic.yaml --run one \
    "${noise[@]}" --set train.epochs=3
check "it is in the log" grep -q 'train.class_weights=balanced' one/log.txt
expect 0 '' "$weft" train logistic.yaml --run balanced "${noise[@]}" --set train.epochs=3 --set train.class_weights=balanced
check "balanced it takes some for the other" bash -c '! grep -q "samples are taken for class" out'
check "and their recall is not 0" python3 -c '
import json
yes = json.load(open("balanced/scores.json"))["validation"]["classes"][1]
assert yes["class"] == "yes" and yes["recall"] > 0, yes'
expect 0 '' "$weft" train logistic.yaml --run listed "${noise[@]}" --set train.epochs=3 --set train.class_weights=[0.5,1.5] --quiet
expect 2 'train.class_weights: 3 weights, but there are 2 classes' "$weft" train logistic.yaml --run bad "${noise[@]}" --set train.class_weights=[1,2,3]
expect 2 "train.class_weights: balanced, or a list of numbers.*'heavy'" "$weft" train logistic.yaml --run bad "${noise[@]}" --set train.class_weights=[heavy,1]
expect 2 'goes with task: classification' "$weft" train linear.yaml --run bad --set train.class_weights=balanced

# a loss that is no number says what to run
expect 6 'the loss is .*; try --set optimizer.lr=10, which is 100 now, or --set optimizer.clip=1' "$weft" train linear.yaml --run wild \
    --set optimizer.type=sgd --set optimizer.lr=100
one_line
expect 6 'or --set data.standardize=true' "$weft" train linear.yaml --run wilder --set optimizer.type=sgd --set optimizer.lr=0.1 --set data.standardize=false

# what the files of a run say of it
check "metrics of numbers" grep -q '"val_r2": [01].*"val_rmse": .*"val_mae": ' linear/metrics.jsonl
check "metrics of classes" grep -q '"val_f1": .*"val_auc": ' side/metrics.jsonl
check "as csv" grep -q 'loss_scale,val_f1,val_auc,val_r2,val_rmse,val_mae$' side/metrics.csv
check "the report has the confusion" grep -q 'what they were taken for' third/report.html
check "and R2" grep -q '>R2<' linear/report.html

echo "test_tables: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
