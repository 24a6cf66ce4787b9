#!/usr/bin/env bash
# Lists and comparisons of runs: weft runs and weft compare, on terminals of 80 columns, as JSON, and with bad input.
# shellcheck source=tests/train/command.sh
terminal=$(dirname "$(readlink -f "$0")")/terminal.py
. "$(dirname "$0")/command.sh"

train() { expect 0 '' "$weft" train "$@" --quiet; }
train logistic --data table.csv --set train.epochs=2 --set optimizer.lr=0.02 --run runs/run2
train logistic --data table.csv --set train.epochs=10 --set optimizer.lr=0.1 --run runs/run10
seq 40 | awk 'BEGIN {print "x,y"} {print $1 "," 3 * $1 + $1 % 3 / 2}' >numbers.csv
train linear --data numbers.csv --set data.target=y --set train.epochs=20 --run runs/line
train gpt --data text.txt --set train.steps=2 --set model.width=16 --set model.heads=2 --set model.layers=1 --run runs/words
train logistic --data table.csv --set train.epochs=3 --run runs/group/one

# ---- weft runs ----
expect 0 '^run2 +done +2/2 +accuracy [0-9.]+ % +[0-9.]+ s +[A-Z][a-z][a-z] [ 0-9][0-9] [0-9:]{5} +[0-9]+$' "$weft" runs
check "numbers in names count by value" awk '/^run2 / {two = NR} /^run10 / {ten = NR} END {exit !(two && two < ten)}' out
expect 0 '^line .* R2 0\.[0-9]{4} ' "$weft" runs
expect 0 '^words .* loss [0-9.]{6} ' "$weft" runs
expect 0 '^1 run in runs/group: .*weft runs runs/group$' "$weft" runs
expect 0 '^one +done' "$weft" runs runs/group
expect 0 '^line ' python3 "$terminal" 80 "$weft" runs
check "a terminal's width is kept" awk 'length($0) > 80 {exit 1}' out
expect 0 '^run  *status  *result$' python3 "$terminal" 36 "$weft" runs
first() { tail -n +2 out | head -1 | cut -d' ' -f1; }
expect 0 '' "$weft" runs --sort steps
check "the longest run comes first" test "$(first)" = line
expect 0 '' "$weft" runs --sort steps --reverse
check "or last" test "$(first)" != line
sed -i '1s/^20[0-9][0-9]-[0-9]*-[0-9]*/2001-02-03/' runs/run2/log.txt
expect 0 'run2 .* Feb  3  2001 ' "$weft" runs --sort started --reverse
check "the newest run comes first, or last" test "$(first)" = run2
for key in name result loss time weights; do expect 0 '^run2 ' "$weft" runs --sort $key; done
expect 0 '^run10 ' "$weft" runs --model logistic --where optimizer.lr=1e-1 --status "done"
check "the others are not listed" test "$(wc -l <out)" = 2
expect 2 'runs: --sort size: give name, result' "$weft" runs --sort size
one_line
expect 2 'unknown key optimizer.rate' "$weft" runs --where optimizer.rate=1
expect 2 "^weft: --model: model.type: give gpt, .*, not 'tree'" "$weft" runs --model tree
expect 2 '^weft: --where optimizer.lr: write KEY=VALUE' "$weft" runs --where optimizer.lr
expect 7 'no such folder' "$weft" runs nowhere
cp -r runs/run2 runs/broken
echo '{' >runs/broken/summary.json
expect 0 '^broken: .*summary.json' "$weft" runs
expect 0 '"run": "runs/broken", "error": ".*summary.json' "$weft" runs --json
rm -r runs/broken
"$weft" runs --json >list.json
check "JSON has the same facts" python3 - <<'END'
import json
runs = {r.get("run"): r for r in json.load(open("list.json"))["runs"]}
assert runs["runs/line"]["metric"] == "r2" and 0 < runs["runs/line"]["value"] <= 1
assert runs["runs/run10"]["metric"] == "accuracy" and runs["runs/run10"]["steps"] == 10
assert runs["runs/words"]["metric"] == "loss" and runs["runs/words"]["started"].endswith("Z")
END

# ---- weft compare ----
expect 0 '^optimizer.lr +0.02 +0.1$' "$weft" compare runs/run2 runs/run10
check "the configuration comes before the results" awk '/^configuration +A +B$/ {a = NR} /^results +A +B$/ {b = NR}
    END {exit !(a && a < b)}' out
check "only what differs is shown" sh -c '! grep -q "train.seed\|data.path" out'
check "two runs have ratios" grep -Eq '^steps +2 +10 +x 5.000$' out
expect 0 'the configurations are the same' "$weft" compare runs/run2 runs/run2
expect 0 '^C  runs/line$' "$weft" compare runs/run2 runs/run10 runs/line
expect 0 '^model.type +logistic +linear$' "$weft" compare runs/run2 runs/line
expect 0 '' "$weft" compare runs/words runs/line
check "keys that a model does not use are no difference" sh -c '! grep -q "model.norm " out && grep -q "model.width *16 *-$" out'
expect 0 '^results +D' python3 "$terminal" 80 "$weft" compare runs/run2 runs/run10 runs/line runs/words
check "a terminal's width is kept" awk 'length($0) > 80 {exit 1}' out
expect 0 'curves: curves.html' "$weft" compare runs/run2 runs/run10 --out curves.html
check "a page with a curve of each run" test "$(grep -o 'class="key s[01]">runs/run[0-9]*<' curves.html | sort -u | wc -l)" = 2
check "the page needs no network" sh -c '! grep -Eq "https?://|<script [a-z]" curves.html'
"$weft" compare runs/run2 runs/run10 runs/line --json >compared.json
check "JSON of three runs" python3 - <<'END'
import json
c = json.load(open("compared.json"))
assert c["differences"]["optimizer.lr"] == [0.02, 0.1, 0.05] and c["differences"]["train.epochs"] == [2, 10, 20]
assert [r["run"] for r in c["runs"]] == ["runs/run2", "runs/run10", "runs/line"]
END
expect 2 'compare: give at least two runs, not only runs/run2' "$weft" compare runs/run2
one_line
expect 2 'compare: missing: A B' "$weft" compare
expect 0 '^D  runs/words$' "$weft" compare runs
check "the runs of a folder, in natural order" test "$(sed -n '2,3s/.*  //p' out | tr '\n' ' ')" = "runs/run2 runs/run10 "
expect 0 '^C  runs/line$' "$weft" compare runs/run2 runs/group runs/line
mkdir nothing
expect 2 'nothing is not a run folder' "$weft" compare runs/run2 nothing
expect 2 'nowhere is not a run folder' "$weft" compare runs/run2 nowhere
expect 8 'nowhere/curves.html' "$weft" compare runs/run2 runs/run10 --out nowhere/curves.html

echo "test_run_lists: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
