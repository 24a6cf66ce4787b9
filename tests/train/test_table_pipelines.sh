#!/usr/bin/env bash
# Trains on three tables as people have them, unedited: like the Titanic's passengers, the census "Adult", and house prices. The
# scores on the test rows must reach those of scikit-learn's pipelines (impute, scale, one-hot; logistic, ridge, MLP) within
# 0.5 %. tables_pipelines.py makes the tables and knows scikit-learn's scores; with scikit-learn it computes them again.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
pipelines=${WEFT_SOURCE_DIR:?}/tests/train/tables_pipelines.py
python3 "$pipelines" write .

# model TABLE TYPE SCORES SETTING...: trains, and adds a line with the scores to the file "results".
model() {
    local table=$1 type=$2 scores=$3
    shift 3
    expect 0 '' "$weft" train "$type" --data "$table-train.csv" --set data.test_path="$table-test.csv" --run "$table-$type" --quiet "$@"
    expect 0 '' "$weft" eval "$table-$type" --json
    python3 -c '
import json, sys
test = json.load(open("out", encoding="utf-8"))["test"]
print(*sys.argv[1:3], *(f"{s}={test[s]}" for s in sys.argv[3].split()))' "$table" "$type" "$scores" >>results
}

net=(--set 'model.hidden=[32]' --set train.epochs=40 --set train.batch=64)
all=(--set model.ridge=1 --set data.val_fraction=0)
model titanic logistic 'accuracy auc' "${all[@]}" --set data.target=Survived
model titanic mlp 'accuracy auc' "${net[@]}" --set data.target=Survived
model adult logistic 'accuracy auc' "${all[@]}"
model adult mlp 'accuracy auc' "${net[@]}"
model housing linear r2 "${all[@]}"
model housing mlp r2 "${net[@]}"
check "scikit-learn's scores are reached" python3 "$pipelines" compare . results
cat checked

# a sale of a place that training has not seen, and one without a date
printf 'id;rooms;area;place;heating;sold;garage;age\nH;3;76;P999;oil;2020-10-21T04:36;Yes;40\nH;3;76;P001;;;No;\n' >odd.csv
expect 0 '' "$weft" predict housing-mlp odd.csv
check "both have a price" awk 'NF == 1 && $1 == $1 + 0 {n++} END {exit n != 2}' out

echo "test_table_pipelines: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
