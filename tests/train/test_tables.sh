#!/usr/bin/env bash
# Tests models of tables with the command: linear and logistic regression from csv, JSON and npy, their predictions and
# scores.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

# y = 3 a - 2 b + 10 without noise; whether y is above 12; three classes by the value of a
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
check "3 * 10 - 2 + 10" awk 'NR == 3 {exit !($1 > 37.9 && $1 < 38.1)}' out
expect 0 '' "$weft" train linear.yaml --run json --set data.path=line.json --quiet
check "json and csv give the same bits" cmp {linear,json}/checkpoints/step-500/model.safetensors
expect 0 '' "$weft" train linear.yaml --run interp --device interp --set train.epochs=50 --quiet
expect 0 '' "$weft" predict linear input.csv
cp out cpu
expect 0 '' "$weft" predict linear input.csv --device interp
check "another device predicts the same" awk 'NR == FNR {a[FNR] = $1; next} {d = a[FNR] - $1; if (d < 0) d = -d; if (d > 1e-4) bad = 1} END {exit bad}' cpu out
# two targets: each is scaled by its own mean and deviation
printf '{"x": [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]], "y": [[1001, 0.1], [1002, 0.2], [1003, 0.3], [1004, 0.4], [1005, 0.5], [1006, 0.6], [1007, 0.7], [1008, 0.8], [1009, 0.9], [1010, 1]]}' >two.json
expect 0 '' "$weft" train linear.yaml --run two --set data.path=two.json --quiet
printf '{"x": [[20]]}' >twenty.json
expect 0 '^(1020|1019.99)[0-9.]*	(2|2.0000|1.9999)' "$weft" predict two twenty.json
# a ridge reduces the slopes, but not the bias; adamw has no ridge
expect 0 '' "$weft" train linear.yaml --run ridge --set model.ridge=108 --quiet
expect 0 'R2 0\.[5-9]' "$weft" eval ridge
expect 2 'model.ridge: .*choose adam' "$weft" train linear.yaml --run bad --set model.ridge=1 --set optimizer.type=adamw
expect 2 'use logistic for classes' "$weft" train linear.yaml --run bad --set task=classification
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
expect 2 'use linear for numbers' "$weft" train logistic.yaml --run bad --set task=regression
expect 0 '' "$weft" init gpt --data text.txt --out gpt.yaml
expect 2 'a text has no fixed number of windows' "$weft" train gpt.yaml --set train.batch=full
expect 0 '' "$weft" verify logistic.yaml --devices cpu,interp --steps 2
expect 0 'activations' "$weft" plan logistic.yaml
weighed=(--set train.class_weights=[1,3] --set train.label_smoothing=0.2 --set train.accumulate=2 --set train.batch=16)
expect 0 '' "$weft" train logistic.yaml --run weighed "${weighed[@]}" --set train.steps=2 --set train.log_every=1 --quiet
expect 0 '' "$weft" verify logistic.yaml --devices cpu --steps 2 "${weighed[@]}"
check "verify runs the steps of training" python3 -c '
import json, re
trained = [json.loads(l)["loss"] for l in open("weighed/metrics.jsonl")][-1]
verified = float(re.search("the last: ([0-9.]+)", open("out").read()).group(1))
assert abs(trained - verified) < 1e-6, (trained, verified)'

# ---- the learned coefficients ----
expect 0 '' "$weft" show linear --csv
check "3 a - 2 b + 10, whatever the scaling" awk -F, 'function near(x, y) {d = x - y; return d < 1e-3 && d > -1e-3}
    $2 == "a" {n += near($3, 3)} $2 == "b" {n += near($3, -2)} $2 == "(bias)" {n += near($3, 10)} $1 == "y" {n++} END {exit n != 6}' out
expect 0 '^  a +(3|2.9999[0-9]*|3.0000[0-9]*) ' "$weft" show linear
expect 0 '"output": "below", "bias": -?[0-9.]+, "bias_standardised": [-0-9.]+, "coefficients": \[\{"column": "a", "coefficient": ' "$weft" show side --json
expect 0 'class middle' "$weft" show third
expect 0 '^  1 +[0-9]' "$weft" show json # without column names
expect 0 '' "$weft" train linear.yaml --run raw --quiet --set data.standardize=false --set model.bias=false --set train.epochs=3
expect 0 '[(]bias[)] +0 +0$' "$weft" show raw
check "unscaled, both are one" awk '$1 == "a" {exit $2 != $3}' out
expect 0 '' "$weft" init mlp --data line.csv --out mlp.yaml
expect 0 '' "$weft" train mlp.yaml --run mlp --quiet --set task=regression --set model.hidden=[4] --set train.epochs=1
expect 0 'layer .*parameters' "$weft" show mlp
expect 2 'has no coefficients' "$weft" show mlp --csv

# ---- early stopping, the best checkpoint, class weights ----
# noise: 70 % are of class no, independent of the columns
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
expect 7 'the run stopped early; to continue, use --set train.patience=0' "$weft" resume early
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
cp -r part lost && rm lost/checkpoints/best
expect 0 '' "$weft" resume lost --set train.patience=0 --set train.steps=54 --quiet
check "a resumed run knows its best again" cmp {early,lost}/checkpoints/best/model.safetensors
cp -rL part copied # like scp -r
expect 0 "copied, step ${best#step-}\$" "$weft" eval copied
expect 0 '' "$weft" resume copied --set train.patience=0 --set train.steps=54 --quiet
check "whose best is a link again" cmp <(readlink early/checkpoints/best) <(readlink copied/checkpoints/best)
expect 0 '' "$weft" train logistic.yaml --run unkept "${noise[@]}" --set train.steps=45 --set train.keep_best=false --quiet
expect 0 '' "$weft" resume unkept --set train.keep_best=true --set train.steps=54 --quiet
check "whose best is gone has another one" test -e unkept/checkpoints/best/model.safetensors
"$weft" resume unkept --set train.steps=1000000 --quiet 2>err & running=$!
for _ in $(seq 100); do [ -e unkept/scores.json ] && sleep 0.1; done
{ kill -9 $running && wait $running; } 2>err
check "scores of fewer steps go when training goes on" test ! -e unkept/scores.json
cp -r side unscored && rm unscored/scores.json
expect 7 'all steps of the run are done' "$weft" resume unscored
check "scores are made up for" cmp {side,unscored}/scores.json
check "and what it said of them stays" bash -c 'grep -o "\"val_loss\": [0-9.]*" side/summary.json | grep -qFf - unscored/summary.json'
expect 0 "step-${best#step-}  intact  best" "$weft" info early --check
expect 2 'there is no validation data' "$weft" train logistic.yaml --run bad --set train.patience=1 --set data.val_fraction=0
check "no best but where it is asked for" test ! -e side/checkpoints/best

# a warning if all predictions are of one class
expect 0 'all 60 validation samples are predicted as class no, the most frequent class of the training data' "$weft" train logistic.yaml --run one \
    "${noise[@]}" --set train.epochs=3
check "it is in the log" grep -q 'train.class_weights=balanced' one/log.txt
expect 0 '' "$weft" train logistic.yaml --run balanced "${noise[@]}" --set train.epochs=3 --set train.class_weights=balanced
check "balanced it takes some for the other" bash -c '! grep -q "samples are predicted as class" out'
check "and their recall is not 0" python3 -c '
import json
yes = json.load(open("balanced/scores.json"))["validation"]["classes"][1]
assert yes["class"] == "yes" and yes["recall"] > 0, yes'
expect 0 '' "$weft" train logistic.yaml --run listed "${noise[@]}" --set train.epochs=3 --set train.class_weights=[0.5,1.5] --quiet
expect 2 'train.class_weights: 3 weights, but there are 2 classes' "$weft" train logistic.yaml --run bad "${noise[@]}" --set train.class_weights=[1,2,3]
expect 2 'at least one weight must be above 0' "$weft" train logistic.yaml --run bad "${noise[@]}" --set train.class_weights=[0,0]
expect 0 '' "$weft" train logistic.yaml --run unweighed "${noise[@]}" --set train.batch=1 --set train.epochs=1 --set train.class_weights=[0,1] --quiet
expect 2 "train.class_weights: give balanced, or a list of numbers.*'heavy'" "$weft" train logistic.yaml --run bad "${noise[@]}" --set train.class_weights=[heavy,1]
expect 2 'train.class_weights: 70 weights, but there are 2 classes' "$weft" train logistic.yaml --run bad \
    --set train.class_weights="[$(seq -s, 70)]"
expect 2 'train.label_smoothing: only classes and tokens can be smoothed' "$weft" train linear.yaml --run bad --set train.label_smoothing=0.1
expect 2 'only task classification uses this key' "$weft" train linear.yaml --run bad --set train.class_weights=balanced

# if the loss is NaN, the message says what to try
expect 6 'the loss is .*; try --set optimizer.lr=10, which is 100 now, or --set optimizer.clip=1' "$weft" train linear.yaml --run wild \
    --set optimizer.type=sgd --set optimizer.lr=100
one_line
expect 6 'or --set data.standardize=true' "$weft" train linear.yaml --run wilder --set optimizer.type=sgd --set optimizer.lr=0.1 --set data.standardize=false

# ---- bad input: the message gives row and column, or the byte ----
# bad FILE TEXT PATTERN [SETTING...]: writes the text to the file. The error must be one line that matches the pattern.
bad() {
    local file=$1 pattern=$3
    printf "%b" "$2" >"$file"
    shift 3
    expect 3 "$file: $pattern" "$weft" train linear.yaml --run bad --set data.path="$file" "$@"
    one_line
}
bad missing.csv 'a,b,y\n1,2,3\n2,3,\n' 'line 3 .row 2., column 3 ."y".: the cell is missing'
bad target.csv 'a,b,y\n1,2,3\n2,3,many\n' 'line 3 .row 2., column 3 ."y".: expected a number'
bad short.csv 'a,b,y\n1,2,3\n2,4\n' 'line 3 .row 2.: 2 cells, expected 3 .*the first missing is column 3'
bad long.csv 'a,b,y\n1,2,3\n2,4,5,6\n' 'line 3 .row 2.: 4 cells, expected 3 .*column 4 is one too many'
bad nan.csv 'a,b,y\n1,2,3\n2,4,nan\n' 'line 3 .row 2., column 3 ."y".: the cell is missing, expected a number, found "nan"'
bad code.csv 'a,b,y\n1,2,3\n2,4,-999\n' 'line 3 .row 2., column 3 ."y".: the cell is missing, expected a number' --set data.missing=[-999]
bad header.csv 'a,b,y\n' 'line 1: the file ends without a row'
bad ragged.json '{"x": [[1, 2], [3, 4, 5]], "y": [1, 2]}' 'ragged rows: x.1. has 3 values, x.0. has 2'
bad word.json '{"x": [[1, 2], [3, "a"]], "y": [1, 2]}' 'x.1..1.: expected a number, found a string'
bad few.json '{"x": [[1, 2], [3, 4]], "y": [1]}' 'there are 2 samples, but 1 targets'
bad empty.json '{"x": [[], []], "y": [1, 2]}' 'row 1 has no numbers'
bad none.json '{"x": [], "y": []}' 'there are no samples'
bad cut.json '{"x": [[1],[2]' 'line 1, column 15, byte 14'
bad lost.json '{"y": [1]}' 'no key "x"'
class=(--set model.type=logistic --set task=classification)
for word in NA NaN null unk; do # in R and pandas, words for a missing cell
    bad class.csv "a,ok\n1,yes\n2,no\n3,$word\n" 'line 4 .row 3., column 2 ."ok".: the cell is missing, expected a class .*found "'"$word" \
        "${class[@]}" --set data.missing=[unk]
done
bad minus.json '{"x": [[1],[2],[3]], "y": [0,1,-1]}' 'y.2.: class -1, but classes are 0 to 1' "${class[@]}"
bad half.json '{"x": [[1],[2],[3]], "y": [0,1,0.5]}' 'y.2.: 0.5 has a fraction' "${class[@]}"
bad same.json '{"x": [[1],[2],[3]], "y": [0,0,0]}' 'all 3 samples are of one class' "${class[@]}"
printf '\xef\xbb\xbf{"x": [[1],[2],[3]], "y": [0,1,0]}' >marked.json
expect 0 '' "$weft" train linear.yaml --run marked --quiet --set data.path=marked.json --set train.epochs=1 "${class[@]}"
printf 'a\ty\n1\t2\n3\t4\n' >tab.csv
expect 0 '' "$weft" train linear.yaml --run tab --quiet --set data.path=tab.csv --set data.delimiter=tab --set train.epochs=1
expect 2 'is the delimiter right' "$weft" train linear.yaml --run bad --set data.path=tab.csv --set data.delimiter=,
printf 'a,k\n1,0\n2,1\n3,0\n' >small.csv
printf 'a,k\n1,0\n2,5\n' >outside.csv
expect 3 'outside.csv: row 2, column "k": class 5, but the training data has 0 to 1' "$weft" train linear.yaml --run bad \
    --set data.path=small.csv --set data.test_path=outside.csv "${class[@]}"
printf 'a,k\n1,yes\n2,no\n' >named.csv
printf 'a,k\n1,yes\n2,maybe\n' >unnamed.csv
expect 3 'unnamed.csv: line 3 .row 2., column 2 ."k".: not one of the given classes, found "maybe"' "$weft" train linear.yaml \
    --run bad --set data.path=named.csv --set data.test_path=unnamed.csv "${class[@]}"
printf 'a,k\n1,0\n2,maybe\n' >words.csv
expect 3 'words.csv: row 2, column "k": class "maybe", but the classes of the training data are numbers' "$weft" train linear.yaml --run bad \
    --set data.path=small.csv --set data.test_path=words.csv "${class[@]}"
# ten images of 2 x 2: the last one truncated; compressed and truncated; a test label that training data lacks
{ printf '\000\000\010\003\000\000\000\012\000\000\000\002\000\000\000\002'; head -c 40 /dev/zero; } >full-images-idx3-ubyte
head -c 53 full-images-idx3-ubyte >cut-images-idx3-ubyte
gzip -c full-images-idx3-ubyte | head -c 30 >packed-images-idx3-ubyte.gz
for name in full cut; do { printf '\000\000\010\001\000\000\000\012'; head -c 10 /dev/zero; } >$name-labels-idx1-ubyte; done
cp full-images-idx3-ubyte other-images-idx3-ubyte
{ printf '\000\000\010\001\000\000\000\012'; head -c 9 /dev/zero; printf '\007'; } >other-labels-idx1-ubyte
images=(--set data.source=idx "${class[@]}")
expect 3 'cut-images-idx3-ubyte: byte 53: .*40 bytes .*37 are there' "$weft" train linear.yaml --run bad --set data.path=cut-images-idx3-ubyte "${images[@]}"
one_line
expect 3 'packed-images-idx3-ubyte.gz: byte [0-9]+: the gzip stream is cut off' "$weft" train linear.yaml --run bad \
    --set data.path=packed-images-idx3-ubyte.gz "${images[@]}"
expect 3 'other-labels-idx1-ubyte: byte 17: class 7, but the training data has 0 to 0' "$weft" train linear.yaml --run bad \
    --set data.path=full-images-idx3-ubyte --set data.test_path=other-images-idx3-ubyte "${images[@]}"
: >empty.txt
expect 3 'empty.txt: the file is empty' "$weft" train gpt.yaml --run bad --set data.path=empty.txt
printf '' >empty.bin
expect 3 'empty.bin' "$weft" train gpt.yaml --run bad --set data.path=empty.bin
one_line

# the files of the run
check "metrics of numbers" grep -q '"val_r2": [01].*"val_rmse": .*"val_mae": ' linear/metrics.jsonl
check "metrics of classes" grep -q '"val_f1": .*"val_auc": ' side/metrics.jsonl
check "as csv" grep -q 'loss_scale,val_f1,val_auc,val_r2,val_rmse,val_mae,val_margin$' side/metrics.csv
# ---- the task follows from the target's numbers ----
python3 -c "
for name, value in ('prices', lambda i: 7 * i), ('halves', lambda i: i % 4 / 2), ('digits', lambda i: i % 10):
    with open(name + '.csv', 'w', encoding='utf-8') as out:
        print('a,b,y', *(f'{i % 7},{i % 11},{value(i)}' for i in range(150)), sep='\n', file=out)"
expect 0 'task: regression, because the target has more than 100 different numbers; to predict classes, use --set task=' \
    "$weft" train mlp --data prices.csv --set train.epochs=2 --run prices
expect 0 'R2' "$weft" eval prices
expect 0 '' "$weft" resume prices --set train.epochs=3 --quiet
check "the run keeps its task" grep -q '^task: regression' prices/config.yaml
expect 0 'task: regression, because the target has numbers with fractions' "$weft" plan mlp --data halves.csv
expect 0 '4 classes' "$weft" plan mlp --data halves.csv --set task=classification
expect 0 'task: classification, because the target has few different numbers; to predict numbers, use --set task=regression' \
    "$weft" plan mlp --data digits.csv
check "as many classes as digits" grep -q '10 classes' out
{ echo x,price; for i in $(seq 200); do echo "$i,$((100000 + i % 90 * 300))"; done; } >rents.csv
expect 0 'task: regression, because the target has more than 20 different numbers, and fewer than 5 rows of each' "$weft" plan mlp --data rents.csv
expect 0 'logistic-1-90, ' "$weft" plan logistic --data rents.csv

# ---- classes that are numbers are those that occur ----
{ echo x,zip; for i in $(seq 100); do echo "$i,$([ "$i" -gt 50 ] && echo 10115 || echo 80331)"; done; } >zip.csv
printf 'x,zip\n1,80331\n2,80331\n99,10115\n' >some_zips.csv
printf 'x,zip\n1,80331\n2,10116\n' >other_zip.csv
python3 - <<'PYTHON'
import json, struct
rows = [row.split(",") for row in open("zip.csv").read().split()[1:]]
x, y = [[int(a)] for a, _ in rows], [int(b) for _, b in rows]
json.dump({"x": x, "y": y}, open("zip.json", "w"))
json.dump({"x": [[1], [99]], "y": [80331, 10115]}, open("some_zips.json", "w"))
for name, shape, kind, values in ("zip", "(100, 1)", "f8", [a for a, in x]), ("codes", "(100,)", "i8", y):
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), "d" if kind == "f8" else "q"), *values))
PYTHON
for form in csv json npy; do
    labels=()
    [ $form = npy ] && labels=(--set data.labels=[codes.npy])
    expect 0 'logistic-1-2, 2 parameters' "$weft" plan logistic --data zip.$form "${labels[@]}"
    expect 0 '' "$weft" train logistic --data zip.$form "${labels[@]}" --run zip_$form --set train.steps=300 --quiet
    expect 0 'accuracy (100.00|9[0-9.]+) %' "$weft" eval zip_$form
    expect 0 '' "$weft" resume zip_$form --set train.steps=310 --quiet
done
expect 0 '^80331' "$weft" predict zip_csv some_zips.csv
check "its accuracy is that of the codes" grep -q 'accuracy 100.00 % of 3' err
expect 0 'accuracy 100.00 %' "$weft" eval zip_json some_zips.json
expect 0 'accuracy 100.00 %' "$weft" eval zip_csv some_zips.csv
expect 3 'not one of the given classes, found "10116"' "$weft" eval zip_csv other_zip.csv
{ echo x,grade; for i in $(seq 90); do echo "$i,$((i / 31))"; done; } >grades.csv # 0, 1, 2 have no names
printf 'x,grade\n3,0\n88,2\n' >two_grades.csv
expect 0 '' "$weft" train logistic --data grades.csv --run grades --set train.steps=400 --quiet
expect 0 'accuracy 100.00 %' "$weft" eval grades two_grades.csv
expect 0 '' "$weft" init mlp --data prices.csv --out prices.yaml
expect 0 'task: regression, because' "$weft" plan prices.yaml

check "accuracy is its first card" awk '/class="cards"/ {at = NR} at && NR == at + 1 {exit !/>[0-9.]+ %<.*validation accuracy/}' third/report.html
# ---- an id as the target: logits of 12,000 samples and 12,000 classes would take 576 MB ----
{ echo x,id; for i in $(seq 24000); do echo "$i,n$((i / 2))"; done; } >ids.csv
if ! ldd "$weft" | grep -q 'lib[a-z]*san\.so'; then
    check "memory for many classes" python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert most < 300 << 10, "%d KiB" % most' "$weft" train mlp --data ids.csv --run ids --set train.steps=1 --set model.hidden=[2] \
        --set data.val_fraction=0.5 --quiet
    check "their scores" grep -q '"accuracy"' ids/scores.json
fi

check "the report has the confusion" grep -q 'rows are true classes' third/report.html
check "and R2" grep -q '>R2<' linear/report.html

echo "test_tables: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
