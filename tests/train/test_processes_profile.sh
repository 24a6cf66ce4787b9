#!/usr/bin/env bash
# Profiles steps that several processes share: rank 0 prints its tables and a row for each process, and a process that
# differs or dies is told once, in time.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"
cat >gpt.yaml <<'END'
data: {path: text.txt}
model: {layers: 2, heads: 2, width: 16, context: 16}
train: {steps: 12, batch: 4, accumulate: 4, timeout: 2}
END
sed 's/warp/wasp/' text.txt >other.txt

# ranks FILE: prints the rows of the table of processes, without the first column
ranks() { sed -n '/^process  *us a step  *computing  *waiting  *hidden  *%hidden/,/^$/p' "$1" | sed 1d; }

found=0
for mpi in openmpi mpich; do
    has_mpi $mpi || continue
    found=1
    mpirun="mpirun.$mpi"
    for n in 2 4; do
        expect 0 "$n processes by .*; these are the tables of rank 0" $mpirun -n $n ./rank.sh profile gpt.yaml --steps 5 --warmup 2
        check "$mpi: a row for each of $n processes" test "$(ranks out | awk 'NF >= 8 {print $1}' | tr '\n' ' ')" = "$(seq 0 $((n - 1)) | tr '\n' ' ')"
        ranks out >rows
        check "$mpi: computing and waiting make a step: $(cat rows)" awk \
            'NF >= 8 && ($2 - $3 - $4 > 1 || $3 + $4 - $2 > 1 || $3 <= 0 || $4 < 0 || $5 < 0) {exit 1}' rows
        check "$mpi: one process prints" test "$(grep -c 'steps after 2' out)" = 1
        check "$mpi: the exchange is a part" grep -Eq '^exchange +[0-9.]+ +[0-9.]+ +[0-9.]+' out
    done
    $mpirun -n 2 ./rank.sh profile gpt.yaml --steps 5 --json --trace trace.json >json 2>err
    check "$mpi: JSON has both" python3 - <<'PYTHON'
import json
profile = json.load(open("json"))
rows = profile["processes"]
assert [row["rank"] for row in rows] == [0, 1], rows
for row in rows:
    assert 0 <= row["waiting"] < row["seconds_per_step"] and row["hidden"] >= 0 and row["memory_peak"] > 1e6 and row["machine"], row
assert abs(rows[0]["seconds_per_step"] - profile["seconds_per_step"]) < 1e-6
assert json.load(open("trace.json"))["traceEvents"]
PYTHON
    expect 0 '2 processes by' env WEFT_MPI=$mpi "$weft" launch -n 2 -- profile gpt.yaml --steps 3 --set train.shard=optimizer

    # ---- processes that differ, or die ----
    for case in "--set data.path=other.txt|rank 1 \(.*\): other data than rank 0" \
        "--set optimizer.lr=0.5|rank 1 \(.*\): another configuration than rank 0" \
        "--set data.path=none.txt|rank 1 \(.*\): cannot open .*none.txt"; do
        export OTHER_RANK=1 OTHER_ARGUMENTS=${case%%|*}
        $mpirun -n 2 ./rank.sh profile gpt.yaml >out 2>&1
        check "$mpi: ${case%%|*} is refused" test $? != 0
        check "$mpi: it is said once: $(cat out)" test "$(grep -Ec -- "weft: .*${case##*|}" out)" = 1
    done
    unset OTHER_RANK OTHER_ARGUMENTS
    $mpirun -n 3 ./rank.sh profile gpt.yaml >out 2>&1
    check "$mpi: three processes for four batches" test "$(grep -c 'use train.accumulate: 12' out)" = 1
    rm -f pid.*
    $mpirun -n 2 ./rank.sh profile gpt.yaml --steps 1000000 >out 2>&1 &
    job=$!
    wait_for_line . pid.1
    sleep 1
    kill -STOP "$(cat pid.1)"
    wait $job
    check "$mpi: a process that hangs is an error" test $? != 0
    check "$mpi: it is told: $(cat out)" grep -Eq 'rank 0 \(.*\): .*waited (2|20) s for .*: no answer from rank 1 \(' out
done
expect 0 '' "$weft" profile gpt.yaml --steps 2
check "one process has no such table" bash -c '! grep -q "^process " out'

echo "$cells checks, $fail failures"
[ "$fail" = 0 ] || exit 1
[ $found = 1 ] || echo "skipped: profiles of several processes: neither Open MPI nor MPICH is installed"
