#!/usr/bin/env bash
# L1 penalties: linear and logistic regression end at the minimum of the penalised loss, with the same zeros
# (lasso_reference.py; scikit-learn takes part if it is installed). Other models get zeros, too.
# shellcheck source=tests/train/command.sh
here=$(dirname "$(readlink -f "$0")")
. "$here/command.sh"

# Six columns, of which two have no effect. `c` is nearly `a`, so that the penalty must choose.
awk 'function random() { s = s * 16807 % 2147483647; return s / 2147483647 - 0.5 }
     BEGIN { s = 42; print "a,b,c,d,e,f,y"
             for (i = 0; i < 120; i++) {
                 a = random(); b = 10 * random(); c = a + 0.3 * random(); d = random(); e = random(); f = 5 * random()
                 printf "%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f\n", a, b, c, d, e, f, 7 * a - 0.4 * b + 0.5 * f + 2 * random() + 3 } }' >rows.csv
awk -F, 'NR == 1 {print} NR > 1 {OFS = ","; $7 = $7 + $1 * 3 > 3 ? 1 : 0; print}' rows.csv >classes.csv

# solved TYPE FILE LASSO RIDGE OPTION...: trains on all rows and compares the coefficients.
solved() {
    local type=$1 file=$2 lasso=$3 ridge=$4
    shift 4
    rm -rf run
    expect 0 '' "$weft" train "$type" --data "$file" --run run --quiet --set data.val_fraction=0 \
        --set model.lasso="$lasso" --set model.ridge="$ridge" --set train.epochs=2000 "$@"
    "$weft" show run --json >shown.json
    check "$type, lasso $lasso, ridge $ridge, $*" python3 "$here/lasso_reference.py" "$file" shown.json "$type" "$lasso" "$ridge"
    [ -n "$compared" ] || compared=$(cat checked)
}

compared=
solved linear rows.csv 0.1 0
solved linear rows.csv 0.1 24 # an elastic net
solved linear rows.csv 0.3 0 --set optimizer.type=sgd --set optimizer.lr=0.1 --set optimizer.momentum=0.5
solved linear rows.csv 0.1 0 --set optimizer.type=adamw
solved linear rows.csv 0.2 0 --device interp --set optimizer.type=sgd --set optimizer.lr=0.2 --set train.epochs=400
solved logistic classes.csv 4 0
solved logistic classes.csv 4 2

expect 0 '' "$weft" train linear --data rows.csv --run none --quiet --set model.lasso=1
expect 0 '"standardised": -?0.0,' "$weft" show none --json
check "a lasso of 1 leaves no weight" sh -c '! grep -Eq "\"standardised\": -?(0\.[0-9]*[1-9]|[1-9])" out'

# ---- other models: zeros in matrices, not in biases ----
zeros() { # zeros RUN: prints the share of exact zeros of each tensor of the newest checkpoint
    python3 - "$1" <<'END'
import glob, json, struct, sys
path = sorted(glob.glob(sys.argv[1] + "/checkpoints/step-*/model.safetensors"))[-1]
data = open(path, "rb").read()
size = struct.unpack("<Q", data[:8])[0]
for name, tensor in json.loads(data[8:8 + size]).items():
    if name == "__metadata__": continue
    begin, end = (8 + size + offset for offset in tensor["data_offsets"])
    values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    print(name, sum(v == 0 for v in values) / len(values))
END
}
net=(train mlp --data rows.csv --quiet --set task=regression --set model.hidden=32 --set optimizer.lr=0.01 --set schedule.type=constant)
expect 0 '' "$weft" "${net[@]}" --run dense --set train.epochs=60
expect 0 '' "$weft" "${net[@]}" --run sparse --set train.epochs=60 --set optimizer.l1=0.03
expect 0 '' zeros dense
check "without a penalty no weight is 0" awk '/weight/ && $2 > 0 {exit 1}' out
expect 0 '' zeros sparse
check "with it most are, but no bias" awk '/0.weight/ {w = $2} /bias/ && $2 > 0.5 {bad = 1} END {exit !(w > 0.5 && !bad)}' out
expect 0 '' "$weft" "${net[@]}" --run resumed --set train.epochs=25 --set optimizer.l1=0.03
expect 0 '' "$weft" resume resumed --set train.epochs=60 --quiet
check "a resumed run has the same bits" cmp resumed/checkpoints/step-60/model.safetensors sparse/checkpoints/step-60/model.safetensors
expect 2 'optimizer.l1' "$weft" train mlp --data rows.csv --run bad --set optimizer.l1=-1
expect 2 'optimizer.l1 cannot change' "$weft" resume sparse --set optimizer.l1=0.1
expect 0 'warning: .*model.lasso has no effect: a mlp does not use it' "$weft" train mlp --data rows.csv --run lost --quiet --set model.lasso=0.1 \
    --set train.epochs=1

echo "test_lasso: cells=$cells fail=$fail; $compared"
[ $fail = 0 ]
