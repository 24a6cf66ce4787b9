#!/usr/bin/env bash
# `weft plan --ranks` says the memory of a process before it trains. The test compares the plan with the buffers that
# each of 2 and of 4 processes had at its peak, for each value of train.shard.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"

{
    awk 'BEGIN { for (c = 0; c < 32; c++) printf "x%d,", c; print "kind" }'
    awk 'BEGIN { for (r = 0; r < 256; r++) { for (c = 0; c < 32; c++) printf "%d,", (r * 31 + c * 7) % 13; print "k" r % 4 } }'
} >wide.csv
cat >gpt.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 4, heads: 4, width: 128, context: 64}
train: {steps: 4, batch: 8, eval_every: 0, save_every: 0}
END
cat >mlp.yaml <<'END'
task: classification
data: {path: wide.csv, target: kind}
model: {type: mlp, hidden: [1024, 512]}
train: {steps: 4, batch: 16, eval_every: 0, save_every: 0}
END

# near PLAN RUN RANKS SHARD: each process had the buffers of the plan. At a save rank 0 collects a divided state.
cat >near.py <<'END'
import json, sys
plan, run, ranks, shard = sys.argv[1:]
rows = [r for r in json.load(open(plan))["ranks"] if r["ranks"] == int(ranks) and r["shard"] == shard]
assert len(rows) == 1, rows
for p in json.load(open(run + "/processes.json"))["processes"]:
    ratio = p["buffers_peak"] / rows[0]["total"]
    print(f'{run}, rank {p["rank"]}: {p["buffers_peak"]} bytes, {ratio:.4f} of the plan')
    if shard == "none" or p["rank"] > 0:
        assert 0.97 < ratio < 1.03, ratio
    assert p["exchange_memory"] == rows[0]["exchange"], (p, rows[0])
END

expect 2 "'1': give numbers of processes, from 2 to" "$weft" plan gpt.yaml --ranks 1
expect 2 "'2,': give numbers of processes" "$weft" plan gpt.yaml --ranks 2,
expect 2 '4 devices of all processes cannot divide the batches of a step' "$weft" plan gpt.yaml --ranks 4 --set train.accumulate=6
expect 2 "there is no time of a step" "$weft" plan gpt.yaml --ranks 2 --network 50
expect 2 "give their number with --ranks" "$weft" plan gpt.yaml --network 50
expect 0 "each process sends 50 Gbit/s, a message takes 3 us, a step without an exchange 100 ms" \
    "$weft" plan gpt.yaml --ranks 2,4 --network 50 --latency 3 --step-time 100
check "no prediction is faster than a step without an exchange" awk '
    NF == 6 && $2 ~ /^(none|optimizer|gradients|parameters)$/ { n++; if ($4 < 100 || $4 > 100.1 + $3) exit 1 }
    END { exit n != 8 }' out
expect 0 "predicted, not measured: each process" "$weft" plan gpt.yaml --card h200 --ranks 8 --network 400
expect 0 'one of 4 processes: 2 x 8 samples of a step, MB' "$weft" plan gpt.yaml --ranks 2,4 --set train.accumulate=8
check "each value of train.shard takes less memory than the one before" awk '
    NF == 10 && /^(none|optimizer|gradients|parameters) / { if ($1 != "none" && $9 >= all) exit 1; all = $9; n++ }
    END { exit n != 8 }' out
expect 0 'predicted' "$weft" plan gpt.yaml --card h200 --ranks 2 --network 400
check "linked cards divide parameters, too, and need no memory of the host" awk '
    NF == 10 && $1 == "parameters" && $10 == 0 { found = 1 } END { exit !found }' out
expect 2 'only processes on cpu, cuda or hip can exchange gradients' "$weft" plan gpt.yaml --ranks 2 --set train.shard=gradients --device opencl
expect 2 'only processes on cpu, cuda or hip can exchange gradients' "$weft" plan gpt.yaml --ranks 2 --set train.shard=parameters --device opencl

found=0
for mpi in openmpi mpich; do
    if [ ! -e "$(dirname "$weft")/libweft-$mpi.so" ] || ! command -v mpirun.$mpi >/dev/null; then continue; fi
    found=1
    for model in gpt mlp; do
        for change in train.seed=1 train.accumulate=8 train.precision=bf16; do
            "$weft" plan $model.yaml --ranks 2,4 --set $change --json >plan.json
            for n in 2 4; do
                for shard in $(python3 -c 'import json; print(*sorted({r["shard"] for r in json.load(open("plan.json"))["ranks"]}))'); do
                    rm -rf run
                    expect 0 '' mpirun.$mpi -n $n "$weft" train $model.yaml --set $change --set train.shard="$shard" --run run --quiet
                    check "$model, $change, $n processes, $shard" python3 near.py plan.json run $n "$shard"
                    cat checked
                done
            done
        done
    done
    break # the engine makes no difference
done

echo "$cells checks, $fail failures"
[ "$fail" = 0 ] || exit 1
[ $found = 1 ] || echo "skipped: the memory of several processes: neither Open MPI nor MPICH is installed"
