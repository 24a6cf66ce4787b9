#!/usr/bin/env bash
# Tests tables as people have them: columns of numbers, yes or no, categories and dates, missing cells, an index, other
# delimiters; what the summary says about them, what predict does with them, and the messages for bad tables.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

# An index, numbers with missing cells, a category with missing cells, a boolean, dates, texts that do not repeat. The price
# depends on the rooms, the town, the garden and whether the area is missing.
python3 - <<'END'
towns, effect = ["Lyon", "Paris, 5e", 'the "Old" Port'], [0, 300, -100]
with open("homes.csv", "w", encoding="utf-8") as f:
    print(',rooms,area,town,garden,sold,note,price', file=f)
    for i in range(200):
        town, area = i * 7 % 3, "" if i % 9 == 4 else 40 + i * 37 % 80
        price = 100 * (i % 5) + (0 if i % 40 == 7 else effect[town]) + (50 if i % 2 else 0) + (500 if area == "" else 0)
        name = "" if i % 40 == 7 else '"%s"' % towns[town].replace('"', '""')
        print(i, i % 5, area, name, "Yes" if i % 2 else "no", f"20{20 + i % 3}-0{1 + i % 9}-1{i % 10}", f"note {i * i}", price,
              sep=",", file=f)
END

# summary COMMAND...: the lines under the first one, up to the one about the device. They go to the file "summary".
summary() {
    expect 0 '' "$weft" "$@"
    awk 'NR > 1 {if (/^(device )?(cpu|cuda)/) exit; print}' out >summary
}

# says LINE...: the summary has these lines.
says() {
    for line in "$@"; do check "the summary says: $line" grep -qxF "$line" summary; done
}

# ---- kinds, and what is done with them ----
set_up=(--set data.target=price --set train.steps=2000)
expect 0 '' "$weft" init linear --data homes.csv --out homes.yaml
summary train homes.yaml --run homes "${set_up[@]}"
says 'data: 200 rows, 8 columns, from homes.csv' 'inputs: 2 columns of numbers: rooms, area (22 missing)' \
    'inputs: 1 column of yes or no: garden' 'inputs: 1 column of dates: sold' 'inputs: 1 category: town (3 values, 5 missing)' \
    'left out (an index): the first column' 'left out (hardly a value repeats): note' 'target: price, 1 number'
expect 0 'R2 (1.0000|0.99)' "$weft" eval homes
expect 0 '' "$weft" show homes --json
check "each input has its coefficient" python3 -c '
import json
c = {row["column"]: row["coefficient"] for row in json.load(open("out", encoding="utf-8"))["outputs"][0]["coefficients"]}
for name, wanted in ("rooms", 100), ("area (missing)", 500), ("garden", 50):
    assert abs(c[name] - wanted) < 1, (name, c)
assert abs(c["town=Paris, 5e"] - c["town=Lyon"] - 300) < 1 and abs(c["town=the \"Old\" Port"] - c["town=Lyon"] + 100) < 1, c
parts = ["year", "season, sine", "season, cosine", "Monday", "Sunday"]
assert "town (missing)" in c and all(f"sold ({part})" in c for part in parts) and len(c) == 2 + 1 + 1 + 4 + 10, c'
cp homes/data.json kept.json
summary resume homes --set train.steps=2010
check "a resumed run says the same" grep -qxF 'left out (hardly a value repeats): note' summary
check "and keeps what it knows" cmp kept.json homes/data.json
expect 0 '' "$weft" train homes.yaml --run plain "${set_up[@]}" --set train.steps=30 --set schedule.type=constant --quiet
expect 0 '' "$weft" train homes.yaml --run parts "${set_up[@]}" --set train.steps=12 --set schedule.type=constant --quiet
expect 0 '' "$weft" resume parts --set train.steps=30 --quiet
check "a resumed run gives the same bits" cmp {plain,parts}/checkpoints/step-30/model.safetensors

# ---- predict: columns in another order, unknown values, missing cells ----
head -40 homes.csv >some.csv
expect 0 '' "$weft" predict homes some.csv
cp out in_order
python3 - <<'END'
import csv
rows = list(csv.reader(open("some.csv", encoding="utf-8")))
with open("turned.csv", "w", encoding="utf-8", newline="") as f:
    csv.writer(f).writerows([row[:0:-1] + ["more"] for row in rows])
with open("semicolons.csv", "w", encoding="utf-8", newline="") as f:
    csv.writer(f, delimiter=";").writerows([row[:7] for row in rows])
END
expect 0 '' "$weft" predict homes turned.csv
check "the order of columns does not matter" cmp out in_order
expect 0 '' "$weft" predict homes semicolons.csv
check "nor does the delimiter, or the target" cmp out in_order
printf 'rooms,area,town,garden,sold\n1,60,Nice,no,2021-05-11\n1,60,,no,2021-05-11\n1,,Lyon,no,2021-05-11\n' >odd.csv
expect 0 '' "$weft" predict homes odd.csv
check "an unknown town, a missing town, a missing area" awk 'NR > 1 && (NF != 1 || $1 != $1 + 0) {bad = 1} END {exit bad || NR < 4}' out
check "a missing area costs 500" awk '{y = $NF} END {exit !(y > 500 && y < 750)}' out
printf 'rooms,area,town,garden\n1,60,Nice,no\n' >lacks.csv
expect 3 'lacks.csv: no column named "sold"; the columns are "rooms", "area", "town", "garden"' "$weft" predict homes lacks.csv
one_line
printf 'rooms,area,town,garden,sold\n1,60,Lyon,no,2021-05-11\n1,much,Lyon,no,2021-05-11\n' >words.csv
expect 3 'words.csv: line 3 .row 2., column "area": expected a number, found "much"' "$weft" predict homes words.csv
one_line
printf 'rooms,area,town,garden,sold\n1,60,Lyon,no,11.5.2021\n' >dates.csv
expect 3 'dates.csv: line 2 .row 1., column "sold": expected a date such as 2024-12-31' "$weft" predict homes dates.csv

# ---- numbers alone: a later file may have missing cells ----
printf 'a,b,y\n' >numbers.csv
for i in $(seq 30); do echo "$i,$((i * i % 11)),$((3 * i))" >>numbers.csv; done
expect 0 '' "$weft" train linear --data numbers.csv --set data.val_fraction=0 --run numbers --quiet
printf 'a,b\n,4\n15.5,4\n' >gap.csv
expect 0 '' "$weft" predict numbers gap.csv
check "a missing number is the mean" awk 'NF == 1 {v[++n] = $1} END {d = v[n] - v[n - 1]; exit !(n > 1 && d < 1e-3 && d > -1e-3)}' out

# ---- without names ----
tail -n +2 homes.csv >bare.csv
summary train linear --data bare.csv --set train.steps=20 --run bare
says 'data: 200 rows, 8 columns without names, from bare.csv' 'left out (hardly a value repeats): 7'
expect 0 '^  4=Lyon ' "$weft" show bare
expect 0 '' "$weft" predict bare bare.csv
tail -n +2 lacks.csv >cut.csv
expect 3 'cut.csv: no column named' "$weft" predict bare cut.csv

# ---- numbers as names: those of pandas, and years ----
{ echo 0,1,2; for i in $(seq 60); do echo "$((i * 37 % 11)),$i,$((i * 37 % 11 * 10))"; done; } >numbered.csv
summary train linear --data numbered.csv --run numbered
says 'data: 60 rows, 3 columns, from numbered.csv' 'header: line 1, with numbers (--set data.header=no takes it for a row)' \
    'inputs: 2 columns of numbers: 0, 1' 'target: 2, 1 number'
printf '1,0\n70,3\n' >swapped.csv
expect 0 '^(30|29\.999|30\.000)' "$weft" predict numbered swapped.csv
check "one row, found by its names" test "$(wc -l <out)" = 2
printf '3,70\n' >nameless.csv
expect 0 '^(30|29\.999|30\.000)' "$weft" predict numbered nameless.csv
summary plan linear --data numbered.csv --set data.header=no
says 'data: 61 rows, 3 columns without names, from numbered.csv' 'target: the last column, 1 number'
{ echo id,2019,2020,y; for i in $(seq 60); do echo "$i,$((i * 37 % 11)),$((i * 7 % 13)),$((i % 2))"; done; } >years.csv
summary plan logistic --data years.csv
says 'inputs: 3 columns of numbers: id, 2019, 2020' 'target: y, 2 classes, 30 rows each: 0, 1'

# ---- data.kinds, data.columns, data.missing, data.max_levels ----
summary plan linear --data homes.csv --set data.target=price --set 'data.kinds=[rooms=category,n*=none,=number]' --set data.max_levels=2
says 'inputs: 2 columns of numbers: , area (22 missing)' 'left out (data.kinds says so): note' \
    'inputs: 2 categories: rooms (2 values and other), ...'
expect 3 'no column named "row"; the columns are "", "rooms", "area"' "$weft" plan linear --data homes.csv --set data.target=price \
    --set 'data.columns=[-row]'
summary plan linear --data homes.csv --set data.target=price --set 'data.columns=[-n*,-sold,-town]'
says 'inputs: 2 columns of numbers: rooms, area (22 missing)' 'not used: 3 columns: town, sold, note'
expect 2 'no input column is named .attic.; the input columns are "", "rooms"' "$weft" plan linear --data homes.csv \
    --set data.target=price --set 'data.kinds=[attic=number]'
expect 2 "data.kinds: 'rooms=word': write NAME=KIND; kinds are number, boolean, date, category, none, or an order of words such as low<middle<high" "$weft" plan linear \
    --data homes.csv --set data.target=price --set 'data.kinds=[rooms=word]'
expect 3 'column "town": expected a number, found "Lyon" .data.kinds' "$weft" plan linear --data homes.csv --set data.target=price \
    --set 'data.kinds=[town=number]'
expect 0 '' "$weft" train linear --data homes.csv --set data.target=price --set 'data.kinds=[rooms=category]' --set train.steps=3 \
    --set 'data.columns=[*,-note]' --run given --quiet
expect 0 '' "$weft" resume given --set train.steps=4 --quiet
expect 0 'rooms=4 ' "$weft" show given

# ---- words in an order ----
printf 'state,y\n' >states.csv
for i in $(seq 60); do w=(good poor fair ''); echo "${w[$((i % 4))]},$((i % 4 == 0 ? 20 : i % 4 == 1 ? 0 : i % 4 == 2 ? 10 : 7))" >>states.csv; done
summary train linear --data states.csv --set 'data.kinds=[state=poor<fair<good]' --set data.val_fraction=0 --set train.steps=2000 --run states
says 'inputs: 1 column of words in order: state (3 values, 15 missing)'
expect 0 '' "$weft" show states --csv
check "a step of the order costs 10" awk -F, '$2 == "state" {exit !($3 > 9.99 && $3 < 10.01)}' out
printf 'state\ngood\n' >state.csv
expect 0 '^(20|19.99|20.0)[0-9]*$' "$weft" predict states state.csv
printf 'state\nawful\n' >state.csv
expect 3 'state.csv: line 2 .row 1., column "state": expected a value of its order in data.kinds, found "awful"' "$weft" predict states state.csv
expect 3 'column "state": expected a value of its order in data.kinds, found "fair" .data.kinds names' "$weft" plan linear \
    --data states.csv --set 'data.kinds=[state=poor<good]'
expect 2 "'poor<<good': a word of the order is empty or repeated" "$weft" plan linear --data states.csv --set 'data.kinds=[state=poor<<good]'
expect 2 'write NAME=KIND' "$weft" plan linear --data states.csv --set 'data.kinds=[state=ordinal]'

# ---- decimal commas ----
printf 'size;town;price\n' >commas.csv
for i in $(seq 60); do echo "$((i % 9)),5;$([ $((i % 2)) = 0 ] && echo Lyon || echo Nice);$((2 * (i % 9) + i % 2 * 5)),25" >>commas.csv; done
expect 3 'column 3 ."price".: expected a number with a decimal point .set decimal to comma' "$weft" plan linear --data commas.csv
expect 3 'column "size": expected a number, found "1,5": for numbers with a decimal comma set data.decimal=comma; or set data.kinds' \
    "$weft" plan logistic --data commas.csv --set data.target=town
expect 0 '' "$weft" train linear --data commas.csv --set data.decimal=comma --set train.steps=2000 --run commas --quiet
expect 0 '' "$weft" show commas --csv
check "its slope is 2" awk -F, '$2 == "size" {exit !($3 > 1.999 && $3 < 2.001)}' out
printf 'size;town\n10,5;Lyon\n10,5;\n' >comma.csv
expect 0 '' "$weft" predict commas comma.csv
check "10,5 costs 20.25" awk 'NF == 1 {n++} $1 > 20.24 && $1 < 20.26 {right++} END {exit !(n >= 2 && right == 1)}' out
printf 'size;town\n10.5;Lyon\n' >point.csv
expect 3 'point.csv: line 2 .row 1., column "size": expected a number' "$weft" predict commas point.csv

# ---- data.weight: a row of weight 3 counts as three rows ----
python3 - <<'END'
for name, several in ("weighed", False), ("repeated", True):
    for part, rows in ("train", range(60)), ("test", range(60, 90)):
        with open(f"{name}-{part}.csv", "w", encoding="utf-8") as f:
            print("a,times,town,y,side", file=f)
            for i in rows:
                times, y = 1 + i * i % 3, 3 * (i % 10) + i * 7 % 5
                for _ in range(times if several else 1):
                    print(i % 10, times, "Lyon" if i % 4 else "Nice", y, "low" if y < 15 else "high", sep=",", file=f)
END
# weighed RUN TABLE TYPE TARGET SETTING...: trains on the table, and keeps coefficients and scores.
weighed() {
    local run=$1 table=$2 type=$3 target=$4
    shift 4
    expect 0 '' "$weft" train "$type" --data "$table-train.csv" --set data.test_path="$table-test.csv" --set data.target="$target" \
        --set data.val_fraction=0 --set data.standardize=false --set 'data.columns=[a,town]' --set train.steps=3000 --run "$run" --quiet "$@"
    expect 0 '' "$weft" show "$run" --json
    cp out "$run.coefficients"
}
for model in 'linear y' 'logistic side'; do
    read -r type target <<<"$model"
    weighed "$type-weighed" weighed "$type" "$target" --set data.weight=times --set model.ridge=2
    weighed "$type-repeated" repeated "$type" "$target" --set model.ridge=2
    weighed "$type-plain" weighed "$type" "$target" --set model.ridge=2
    check "$type: coefficients and scores are those of repeated rows" python3 -c '
import json, sys
def read(run):
    test = json.load(open(run + "/scores.json"))["test"]
    numbers = [c["coefficient"] for c in json.load(open(run + ".coefficients"))["outputs"][0]["coefficients"]]
    return numbers + [test[s] for s in ("loss", "accuracy", "precision", "f1", "auc", "r2", "rmse", "mae") if s in test]
def far(a, b): return max(abs(x - y) / (abs(x) + abs(y)) for x, y in zip(a, b))
weighed, repeated, plain = (read(sys.argv[1] + "-" + run) for run in ("weighed", "repeated", "plain"))
assert far(weighed, repeated) < 1e-3, (weighed, repeated)
assert far(weighed, plain) > 1e-2, (weighed, plain)' "$type"
done
summary plan mlp --data weighed-train.csv --set data.target=side --set data.weight=times
says 'weights of the rows: times' 'data: 60 rows, 5 columns, from weighed-train.csv'
net=(--data weighed-train.csv --set data.target=side --set data.weight=times --set train.batch=8 --set 'model.hidden=[4]' --quiet
    --set schedule.type=constant)
expect 0 '' "$weft" train mlp "${net[@]}" --set train.epochs=4 --run whole
expect 0 '' "$weft" train mlp "${net[@]}" --set train.epochs=1 --run begun
expect 0 '' "$weft" resume begun --set train.epochs=4 --quiet
last=$(ls whole/checkpoints | sort -V | tail -1)
check "a resumed run gives the same bits" cmp {whole,begun}/checkpoints/"$last"/model.safetensors
expect 0 'accuracy' "$weft" eval whole
cut -d, -f1,3,4 weighed-test.csv >bare-test.csv
expect 0 '' "$weft" predict whole bare-test.csv
expect 0 '' "$weft" verify mlp --data weighed-train.csv --set data.target=side --set data.weight=times --devices cpu --steps 2
expect 3 'no column named "weight"; the columns are' "$weft" plan mlp --data weighed-train.csv --set data.weight=weight
printf 'a,w,y\n1,1,2\n2,0,3\n' >zero.csv
expect 3 'line 3 .row 2., column 2 ."w".: expected a weight above 0 .leave the row out' "$weft" plan linear --data zero.csv --set data.weight=w
printf '{"x": [[1], [2]], "y": [1, 2]}' >x.json
expect 2 'data.weight: only csv files with a target can have weights' "$weft" plan linear --data x.json --set data.weight=w

# ---- bad tables ----
# bad FILE PATTERN LINE...: writes the lines to the file. The error must be one line that matches the pattern.
bad() {
    local file=$1 pattern=$2
    shift 2
    printf '%s\n' "$@" >"$file"
    expect 3 "$file: $pattern" "$weft" plan linear --data "$file"
    one_line
}
rows() { for i in $(seq 1 "$1"); do echo "$i,$((i * 3))"; done; }
dates() { for i in $(seq 10 29); do echo "2024-01-$i,$((i * 3))"; done; }
# shellcheck disable=SC2046
bad typo.csv 'line 22 .row 21., column "a": expected a number, found "1O", unlike nearly all .*data.missing=.1O.; or set data.kinds=.a=cat' \
    a,y $(rows 20) 1O,5
# shellcheck disable=SC2046
bad mixed.csv 'line 2 .row 1., column "day": expected a date such as .*found "soon"' day,y soon,4 $(dates)
bad void.csv 'no column is left to predict from; "a" is left out: all cells are missing' a,y ,1 NA,2 '?,3'
bad ragged.csv 'line 4 .row 3.: 1 cell, expected 2' a,y x,1 z,2 w v,4
# shellcheck disable=SC2046
bad huge.csv 'no column is left to predict from; "id" is left out: hardly a value repeats' id,y $(for i in $(seq 20); do echo "id$i,$i"; done)
printf 'a,y\n' >odd_dash.csv
for i in $(seq 30); do echo "$([ "$i" = 3 ] && echo - || echo "$i"),$i" >>odd_dash.csv; done
summary plan linear --data odd_dash.csv --set data.missing=[-]
says 'inputs: 1 column of numbers: a (1 missing)'
# a category of which the validation file has no cells, and a column that only the validation rows have
printf 'a,kind,y\n' >first.csv
for i in $(seq 30); do echo "$i,$([ $((i % 2)) = 0 ] && echo red || echo blue),$((i * 2))" >>first.csv; done
printf 'kind,a,y\n,3,6\n,4,8\n' >second.csv
expect 0 '' "$weft" train linear --data first.csv --set data.val_path=second.csv --set data.val_fraction=0 --run two --quiet
expect 0 'R2' "$weft" eval two
printf 'a,y\n3,6\n4,8\n' >third.csv
expect 3 'third.csv: no column named "kind"; the columns are "a", "y"' "$weft" train linear --data first.csv \
    --set data.val_path=third.csv --set data.val_fraction=0 --run three
# latin-1, and a description that was edited
printf 'a,kind,y\n1,caf\351,2\n2,th\351,3\n3,th\351,4\n' >latin.csv
for columns in '*' a; do # also in a column that is not read
    expect 3 'latin.csv: line 2, byte 6 of the line: 0xe9 is not UTF-8.* iconv -f WINDOWS-1252 -t UTF-8' \
        "$weft" plan linear --data latin.csv --set "data.columns=['$columns']"
done
printf 'l\344nge,breite,y\n1,2,3\n2,3,4\n3,4,5\n' >latin.csv
expect 3 'latin.csv: line 1, byte 2 of the line: 0xe4 is not UTF-8' "$weft" plan linear --data latin.csv
one_line
sed -i 's/"Lyon"/"Nice"/' homes/data.json
expect 3 'data.json: .*(damaged|edited)' "$weft" predict homes odd.csv

echo "test_columns: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
