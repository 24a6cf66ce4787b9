#!/usr/bin/env bash
# Checks the results in docs/results.md: accuracy and R2 of linear and logistic regression on real tables must be within 0.01
# of scikit-learn's (tables_reference.py) for the same model and the same rows. Skipped if WEFT_TEST_DATA has no tables.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
data=${WEFT_TEST_DATA:-}/tabular
[ -e "$data/iris.csv" ] || {
    echo "test_table_figures skipped: no tabular/iris.csv in WEFT_TEST_DATA"
    exit 0
}

# figure NAME TYPE KEY WANTED KEY WANTED...: trains with a ridge of 1 and tests on every fifth row. Each score must be within
# 0.01 of the wanted value.
figure() {
    local name=$1 type=$2
    awk 'NR == 1 || (NR - 1) % 5' "$data/$name.csv" >train.csv
    awk 'NR == 1 || (NR - 1) % 5 == 0' "$data/$name.csv" >test.csv
    expect 0 '' "$weft" init "$type" --data train.csv --out "$name.yaml"
    expect 0 '' "$weft" train "$name.yaml" --run "$name" --set data.test_path=test.csv --set data.val_fraction=0 \
        --set model.ridge=1 --quiet
    expect 0 '' "$weft" eval "$name" --json
    cp out "$name.scores"
    shift 2
    while [ $# -gt 0 ]; do
        check "$name: $1 is near $2" awk -v key="\"$1\": " -v wanted="$2" '{
            sub(/"classes".*/, ""); at = index($0, key); d = substr($0, at + length(key)) - wanted
            exit !(at && d < 0.01 && d > -0.01)}' "$name.scores"
        shift 2
    done
}

figure iris logistic accuracy 0.9333 auc 1.0000 f1 0.9327 loss 0.1558
figure breast_cancer logistic accuracy 1.0000 auc 1.0000 f1 1.0000 loss 0.0421
figure digits logistic accuracy 0.9638 auc 0.9986 f1 0.9625 loss 0.1166
figure diabetes linear r2 0.4453
# the coefficients, in the units of the data, agree up to what 500 steps leave
expect 0 '' "$weft" show diabetes --csv
check "bmi's is 5.37" awk -F, '$2 == "bmi" {d = $3 - 24.7324 / $6; exit !(d < 0.05 && d > -0.05)}' out

echo "test_table_figures: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
