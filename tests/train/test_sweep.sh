#!/usr/bin/env bash
# A search over values: what a newcomer types and sees on 80 columns, grids and random draws, stopping and going on, bad input.
# shellcheck source=tests/train/command.sh
terminal=$(dirname "$(readlink -f "$0")")/terminal.py
. "$(dirname "$0")/command.sh"
seq 60 | awk 'BEGIN {print "x,y"} {print $1 "," 3 * $1 + $1 % 5}' >numbers.csv

# ---- the first use ----
quick=(linear --data numbers.csv --set data.target=y --set train.epochs=40)
expect 0 '^best: R2 0\.[0-9]+ with optimizer.lr=0.1 model.ridge=(0|1)$' python3 "$terminal" 80 "$weft" sweep "${quick[@]}" \
    optimizer.lr=0.001,0.01,0.1 model.ridge=0,1
check "no line is longer than the terminal" awk '{gsub(/━/, "-")} length($0) > 80 && !/^(next|to train)/ {print; exit 1}' out
check "a line for each run, the best first" awk '/^0\.[01]+ +[01] +R2 / {n++; r = $4; if (n > 1 && r > last) bad = 1; last = r} END {exit !(n == 6 && !bad)}' out
check "each run is told when it ends" grep -Eq '^\[6/6\] lr=[0-9.]+,ridge=[01]: R2 [0-9.]+, [0-9.]+ s$' out
check "the best can be used" grep -Eq '^next: .*weft predict runs/sweep-linear-1/lr=0.1,ridge=[01] FILE$' out
printf 'x\n7\n' >seven.csv
expect 0 '^[0-9.]+$' "$weft" predict "$(awk '/^next: / {print $4}' out)" seven.csv
"$weft" sweep "${quick[@]}" optimizer.lr=0.001,0.01,0.1 model.ridge=0,1 --run runs/sweep-linear-1 >again
check "runs that have ended are not trained again" grep -q '^0 runs' again
eval "$(sed -n 's/^to train with these values: [^ ]*/"$weft"/p' again) --run best --quiet"
check "the command trains the best model again" cmp best/scores.json "$(awk '/^next: / {print $4}' again)/scores.json"
check "the plots have the results and the curves" sh -c '
    grep -q "Validation R2 over optimizer.lr" runs/sweep-linear-1/sweep.html && grep -q "log10 of optimizer.lr" runs/sweep-linear-1/sweep.html &&
    grep -q ">lr=0.01,ridge=1<" runs/sweep-linear-1/sweep.html && ! grep -Eq "https?://|<script [a-z]" runs/sweep-linear-1/sweep.html'
expect 0 '^4 runs, .*in more$' "$weft" sweep "${quick[@]}" optimizer.lr=0.01,0.1 model.ridge=0,1 --run more
expect 0 '^2 runs, .*in more$' "$weft" sweep "${quick[@]}" optimizer.lr=0.01,0.1,0.2 model.ridge=0,1 --run more
check "values can be added" test "$(grep -c ', as before$' out)" = 4
expect 0 '^lr=0.2,ridge=1 +done' "$weft" runs more --where optimizer.lr=0.2
expect 0 '' "$weft" sweep text.yaml --help
expect 0 'next: .*generate' "$weft" sweep gpt --data text.txt --set train.steps=4 --set model.layers=1 model.width=16,32 model.heads=2
expect 0 '"values": ' "$weft" sweep mlp --data table.csv --set train.epochs=2 model.activation=relu,tanh 'model.hidden=[8],[8,4]' --json
check "JSON has values and facts, the best first" python3 - <<'END'
import json
sweep = json.load(open("out"))
runs = sweep["runs"]
assert len(runs) == 4 and {(r["values"]["model.activation"], r["values"]["model.hidden"]) for r in runs} == {
    ("relu", "[8]"), ("relu", "[8,4]"), ("tanh", "[8]"), ("tanh", "[8,4]")}
assert [r["value"] for r in runs] == sorted((r["value"] for r in runs), reverse=True)
assert sweep == json.load(open(sweep["folder"] + "/sweep.json"))
END
check "keys with the same last part have their whole names" sh -c '"$0" sweep linear --data numbers.csv --set train.epochs=2 optimizer.type=sgd,adam schedule.type=constant |
    grep -q "optimizer.type=sgd,schedule.type=constant"' "$weft"
WEFT_CONFIG=logistic expect 0 '^best: ' "$weft" sweep optimizer.lr=0.1,0.2 --data table.csv --set train.epochs=2

# ---- random draws ----
draws=(sweep linear --data numbers.csv --set data.target=y --set train.epochs=1 optimizer.lr=0.0001..0.1 model.ridge=0..4
    train.log_every=10..90 'schedule.type=constant,linear')
"$weft" "${draws[@]}" --random 24 --run drawn --json >drawn.json
"$weft" "${draws[@]}" --random 6 --run fewer --json >fewer.json
"$weft" "${draws[@]}" --random 6 --seed 2 --run other --json >other.json
check "draws are in their ranges, and the same for the same seed" python3 - <<'END'
import json
def points(name):
    return [tuple(sorted(r["values"].items())) for r in json.load(open(name))["runs"]]
drawn = [dict(p) for p in points("drawn.json")]
assert len(drawn) == 24
rates = sorted(p["optimizer.lr"] for p in drawn)
assert 1e-4 <= rates[0] < 1e-3 and 1e-2 < rates[-1] <= 0.1 and rates[12] < 0.02, rates
assert all(0 <= p["model.ridge"] <= 4 for p in drawn) and any(p["model.ridge"] > 2 for p in drawn)
assert all(p["train.log_every"] == int(p["train.log_every"]) and 10 <= p["train.log_every"] <= 90 for p in drawn)
assert {p["schedule.type"] for p in drawn} == {"constant", "linear"}
assert set(points("fewer.json")) < set(points("drawn.json")) and not set(points("other.json")) & set(points("drawn.json"))
END
expect 0 '^3 runs' "$weft" sweep "${quick[@]}" optimizer.lr=0.01,0.1 model.ridge=0,1,2,3 --random 3
expect 0 '^2 runs' "$weft" sweep "${quick[@]}" optimizer.lr=0.01,0.1 --random 9

# ---- the same bits with any number of processes; stops, and a kill of the command ----
long=(sweep mlp --data table.csv --set model.hidden=64 --set train.epochs=1500 --set train.save_every=500 'optimizer.lr=0.001,0.002,0.003')
OMP_NUM_THREADS=2 expect 0 '^3 runs, 2 at a time' "$weft" "${long[@]}" --run one --jobs 2
for signal in INT KILL; do
    "$weft" "${long[@]}" --run $signal --jobs 2 >stopped.out 2>&1 &
    pid=$!
    for _ in $(seq 600); do
        [ -e $signal/lr=0.001/checkpoints/step-500 ] && break
        sleep 0.02
    done
    kill -$signal $pid
    wait $pid 2>/dev/null
    for _ in $(seq 250); do # after a kill the runs save, too
        "$weft" runs $signal | grep -q running || break
        sleep 0.02
    done
    expect 0 'lr=0.001 +(stopped|done) ' "$weft" runs $signal
    expect 0 '^best: ' "$weft" "${long[@]}" --run $signal
    for lr in 0.001 0.002 0.003; do
        check "$signal: the same bits of $lr" cmp {one,$signal}/lr=$lr/checkpoints/step-1500/model.safetensors
    done
done

# ---- progress: one line that is redrawn on a terminal, plain lines elsewhere ----
cat >progress.py <<'END'
"""progress.py WIDTH: checks what a sweep of 5 runs showed on a terminal (0: in a file)."""
import re, sys
width = int(sys.argv[1])
results, drawn = {}, []
for line in open("out", encoding="utf-8").read().split("\n"):
    ended = re.match(r"\[(\d)/5\] (\S+): (diverged, )?(?:R2 (\S+)|.*), [0-9.]+ s(.*)$", line)
    if ended:
        assert int(ended[1]) == len(results) + 1, line
        results[ended[2]] = float(ended[4]) if ended[4] else float("-inf")
        tail = ended[5]
        assert bool(tail) == (width == 0 and len(results) < 5), line
    elif "/5 runs" in line:
        assert len(line) < width, line
        assert re.search(r"(\d)/5 runs", line)[1] == str(len(results)), line
        tail = line
        drawn.append(line)
    else:
        assert "weft: " not in line or line.startswith("weft: "), line
        continue
    best = re.search(r"  best R2 (\S+)( \((\S+)\))?", tail)
    if best:
        assert float(best[1]) == max(results.values()), (line, results)
        assert not best[3] or results[best[3]] == float(best[1]), (line, results)
    if tail:
        assert bool(re.search(r"  \d+:\d\d left$", tail)) == (len(results) > 0), line
        if width != 30 and max(results.values(), default=float("-inf")) > float("-inf"):
            assert best, line
assert len(results) == 5, results
assert bool(drawn) == (width > 0)
if width > 60:
    assert any("━" in line for line in drawn) and any("(lr=" in line for line in drawn), drawn
END
some=(linear --data numbers.csv --set data.target=y --set optimizer.type=sgd --set train.epochs=400 --jobs 2)
for columns in 30 60 100; do
    expect 0 '^best: ' python3 "$terminal" $columns "$weft" sweep "${some[@]}" optimizer.lr=0.001,0.01,0.1,0.2,1000
    check "the line fits $columns columns, and tells the truth" python3 progress.py $columns
done
expect 0 '^best: ' "$weft" sweep "${some[@]}" optimizer.lr=0.001,0.01,0.1,0.2,1000
check "a file has plain lines" python3 progress.py 0
check "and nothing for a terminal" sh -c "! grep -q '$(printf '\033\\|\r')' out"

# ---- a run that diverges does not end the search ----
expect 0 '^1000 .* - .* diverged$' "$weft" sweep linear --data numbers.csv --set data.target=y --set optimizer.type=sgd --set train.epochs=300 \
    optimizer.lr=1000,0.1
check "it comes last" awk '/^0.1 / {a = NR} /^1000 / {b = NR} END {exit !(a && a < b)}' out

# ---- bad input ----
refused() { # refused PATTERN ARGUMENT...: exit 2, one line of error, and no folder
    rm -rf bad
    expect 2 "$1" "$weft" sweep "${@:2}" --run bad
    one_line
    check "no folder is made: $1" test ! -e bad
}
refused 'sweep: name keys and the values to try' linear --data numbers.csv
refused 'CONFIG is missing' optimizer.lr=0.1
refused 'sweep optimizer.rate=1: unknown key optimizer.rate' linear --data numbers.csv optimizer.rate=1
refused 'sweep optimizer.lr: write KEY=VALUE' linear --data numbers.csv optimizer.lr
refused "sweep: optimizer.lr: give a number, not 'x'" linear --data numbers.csv optimizer.lr=0.1,x
refused 'give a number' linear --data numbers.csv optimizer.lr=0.1,
refused 'a range needs --random N' linear --data numbers.csv optimizer.lr=0.1..1
refused 'write a range as LOW..HIGH' linear --data numbers.csv optimizer.lr=1..0.1 --random 3
refused 'write a range as LOW..HIGH' linear --data numbers.csv optimizer.lr=..0.1 --random 3
refused 'optimizer.lr is given twice' linear --data numbers.csv optimizer.lr=1 optimizer.lr=2
refused 'more than 1000 combinations' linear --data numbers.csv "train.seed=$(seq -s, 40)" "train.epochs=$(seq -s, 40)"
refused 'schedule.min_lr: the end of the schedule is above its beginning, optimizer.lr' linear --data numbers.csv optimizer.lr=1,0.01 --set schedule.min_lr=0.1
refused 'two combinations would have the same folder' linear --data numbers.csv data.target=y/z,y-z
expect 2 'this run was trained with train.epochs: 1500' "$weft" "${long[@]}" --run one --set train.epochs=3
expect 2 'one/lr=0.001: this folder is a run itself' "$weft" sweep linear --data numbers.csv optimizer.lr=0.1 --run one/lr=0.001
expect 8 'nowhere.csv' "$weft" sweep linear --data nowhere.csv optimizer.lr=0.1,0.2 --jobs 1

echo "test_sweep: cells=$cells fail=$fail skip=0"
[ $fail = 0 ]
