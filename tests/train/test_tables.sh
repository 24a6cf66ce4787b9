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

echo "test_tables: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
