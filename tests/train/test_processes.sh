#!/usr/bin/env bash
# Trains one model with several processes, by Open MPI and by MPICH: the same bits for any number of them, also after a
# resume with another number, and a message and an end in time if a process dies, hangs, or differs from the others.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"

cat >gpt.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
train: {steps: 12, batch: 4, accumulate: 4, exact_sum: true, eval_every: 6, save_every: 6, log_every: 3, timeout: 2}
END
cat >chain.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
schedule: {type: constant, warmup: 0}
train: {steps: 12, batch: 4, accumulate: 4, exact_sum: true, eval_every: 3, save_every: 3, keep: 2, log_every: 3, timeout: 2}
END
cat >long.yaml <<'END'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 16, context: 16}
schedule: {type: constant, warmup: 0}
train: {steps: 1000000, batch: 4, accumulate: 4, eval_every: 0, save_every: 40, log_every: 10, timeout: 2}
END

{
    printf '\0\0\x08\x03\0\0\0\x60\0\0\0\x08\0\0\0\x08'
    awk 'BEGIN {for (i = 0; i < 96 * 64; i++) printf "%c", 33 + int(i / 64) % 3 * 30 + i % 7}'
} >small-images-idx3-ubyte
{
    printf '\0\0\x08\x01\0\0\0\x60'
    for i in $(seq 0 95); do printf '%b' "\\x0$((i % 3))"; done
} >small-labels-idx1-ubyte

expect 0 '' "$weft" train gpt.yaml --run one --quiet
expect 0 '' "$weft" train mlp --data table.csv --set data.target=kind --set train.epochs=4 --set train.batch=4 \
    --set train.accumulate=4 --set train.exact_sum=true --run mlp-one --quiet
expect 0 '' "$weft" train lstm --data text.txt --set train.steps=6 --set train.batch=4 --set train.accumulate=4 --set data.streams=false \
    --set model.width=16 --set model.context=16 --set train.exact_sum=true --run lstm-one --quiet
cnn=(cnn --data small-images-idx3-ubyte --set model.filters=4 --set model.hidden=8 --set train.steps=4 --set train.batch=4
    --set train.accumulate=4 --set train.exact_sum=true --set data.val_fraction=0.3)
expect 0 '' "$weft" train "${cnn[@]}" --run cnn-one --quiet
eight=(--set train.accumulate=8 --set train.precision=bf16 --set optimizer.clip=0.05)
expect 0 '' "$weft" train gpt.yaml "${eight[@]}" --run eight-one --quiet

expect 0 '' "$weft" train chain.yaml --set train.steps=9 --run chain --quiet
expect 0 '' "$weft" train gpt.yaml --set train.steps=6 --run moved --quiet
expect 0 '' "$weft" resume moved --set train.steps=12 --quiet
expect 0 '' "$weft" train gpt.yaml --set train.steps=6 --run moved-twice --quiet
expect 0 '' "$weft" resume moved-twice --set train.steps=9 --quiet
expect 0 '' "$weft" resume moved-twice --set train.steps=12 --quiet
best=(--set train.keep_best=true --set optimizer.lr=1 --set train.save_every=2 --set train.eval_every=2)
expect 0 '' "$weft" train gpt.yaml "${best[@]}" --run best-one --quiet

found=0
for mpi in openmpi mpich; do
    has_mpi $mpi || continue
    found=1
    mpirun="mpirun.$mpi"

    # ---- the same bits ----
    for n in 2 4; do
        expect 0 '' $mpirun -n $n ./rank.sh train gpt.yaml --run $mpi-$n --quiet
        same one $mpi-$n 12
    done
    check "$mpi: a row for each process in the report" test "$(grep -c 'class="share"><div class="bar"' $mpi-4/report.html)" -ge 4
    check "$mpi: figures of all" test "$(grep -o '"computing"' $mpi-4/processes.json | wc -l)" = 4
    for n in 2 4; do
        for shard in optimizer gradients parameters; do
            expect 0 '' $mpirun -n $n ./rank.sh train gpt.yaml --set train.shard=$shard --run $mpi-$shard-$n --quiet
            same one $mpi-$shard-$n 12
        done
    done
    check "$mpi: a file of each process" test "$(find $mpi-optimizer-4/checkpoints/step-12 -name 'optimizer-0000?-of-00004.safetensors' | wc -l)" = 4
    expect 0 '' "$weft" info $mpi-optimizer-4 --check
    expect 0 '' "$weft" info $mpi-gradients-4 --check
    expect 0 '' "$weft" info $mpi-parameters-4 --check
    check "$mpi: the model has written a sample" test -n "$(ls $mpi-parameters-4/samples)"
    expect 0 '' "$weft" export $mpi-gradients-4 --to safetensors --out $mpi-exported.safetensors
    expect 0 '' $mpirun -n 4 ./rank.sh train gpt.yaml --set train.shard=optimizer --set train.steps=6 --run $mpi-resharded --quiet
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-resharded --set train.steps=12 --quiet
    same moved $mpi-resharded 12

    # what was divided in one way is resumed in another one, and the best checkpoint is measured by all processes
    expect 0 '' $mpirun -n 4 ./rank.sh train gpt.yaml --set train.shard=parameters --set train.steps=6 --run $mpi-redivided --quiet
    sed -i 's/shard: parameters/shard: gradients/' $mpi-redivided/config.yaml
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-redivided --set train.steps=9 --quiet
    sed -i 's/shard: gradients/shard: parameters/' $mpi-redivided/config.yaml
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-redivided --set train.steps=12 --quiet
    same moved-twice $mpi-redivided 12
    expect 0 '' $mpirun -n 4 ./rank.sh train gpt.yaml "${best[@]}" --set train.shard=parameters --run $mpi-best --quiet
    same best-one $mpi-best 12

    # the state moves from 4 processes to 2, to 1, and to 3, whose sums have an order of their own
    for shard in none optimizer gradients parameters; do
        run=$mpi-chain-$shard
        expect 0 '' $mpirun -n 4 ./rank.sh train chain.yaml --set train.shard=$shard --set train.steps=3 --run "$run" --quiet
        expect 0 '' $mpirun -n 2 ./rank.sh resume "$run" --set train.steps=6 --quiet
        expect 0 '' "$weft" resume "$run" --set train.steps=9 --quiet
        same chain "$run" 9
        check "$run: two checkpoints are kept" test "$(find "$run/checkpoints" -name 'step-*' | wc -l)" = 2
        run=$mpi-three-$shard
        expect 0 '' $mpirun -n 4 ./rank.sh train chain.yaml --set train.accumulate=12 --set train.exact_sum=false \
            --set train.shard=$shard --set train.steps=3 --run "$run" --quiet
        expect 0 '' $mpirun -n 3 ./rank.sh resume "$run" --set train.steps=6 --quiet
    done
    same $mpi-three-none $mpi-three-optimizer 6 # without exact sums, divided gradients have an order of their own
    check "$mpi: two files of two processes" test -e $mpi-chain-optimizer/checkpoints/step-6/optimizer-00002-of-00002.safetensors

    # a damaged file of one process: all go on from the checkpoint before
    truncate -s 300 $mpi-three-optimizer/checkpoints/step-6/optimizer-00002-of-00003.safetensors
    expect 3 'optimizer-00002-of-00003.safetensors: size: 300 bytes' "$weft" info $mpi-three-optimizer --check
    expect 0 'continuing from the earlier checkpoint step-3' $mpirun -n 3 ./rank.sh resume $mpi-three-optimizer
    same $mpi-three-none $mpi-three-optimizer 6

    expect 0 'processes by .* share the 4 batches of a step' $mpirun -n 4 ./rank.sh train gpt.yaml --set train.steps=6 --run $mpi-moved
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-moved --set train.steps=12 --quiet
    same moved $mpi-moved 12
    expect 0 '' $mpirun -n 2 ./rank.sh train mlp --data table.csv --set data.target=kind --set train.epochs=4 \
        --set train.batch=4 --set train.accumulate=4 --run mlp-$mpi --quiet
    same mlp-one mlp-$mpi "$(sed -n 's/.*"step": \([0-9]*\).*/\1/p' mlp-one/scores.json | head -1)"
    expect 0 '' $mpirun -n 2 ./rank.sh train lstm --data text.txt --set train.steps=6 --set train.batch=4 \
        --set train.accumulate=4 --set model.width=16 --set model.context=16 --run lstm-$mpi --quiet
    same lstm-one lstm-$mpi 6
    for n in 2 4; do
        for shard in gradients parameters; do
            expect 0 '' $mpirun -n $n ./rank.sh train mlp --data table.csv --set data.target=kind --set train.epochs=4 \
                --set train.batch=4 --set train.accumulate=4 --set train.shard=$shard --run mlp-$shard-$mpi-$n --quiet
            same mlp-one mlp-$shard-$mpi-$n "$(sed -n 's/.*"step": \([0-9]*\).*/\1/p' mlp-one/scores.json | head -1)"
            expect 0 '' $mpirun -n $n ./rank.sh train lstm --data text.txt --set train.steps=6 --set train.batch=4 \
                --set train.accumulate=4 --set model.width=16 --set model.context=16 --set train.shard=$shard \
                --run lstm-$shard-$mpi-$n --quiet
            same lstm-one lstm-$shard-$mpi-$n 6
            expect 0 '' $mpirun -n $n ./rank.sh train "${cnn[@]}" --set train.shard=$shard --run cnn-$shard-$mpi-$n --quiet
            same cnn-one cnn-$shard-$mpi-$n 4
            # each process adds up batches of its own; in bf16 the rounded copies of the parameters must follow
            expect 0 '' $mpirun -n $n ./rank.sh train gpt.yaml "${eight[@]}" --set train.shard=$shard --run eight-$shard-$mpi-$n --quiet
            same eight-one eight-$shard-$mpi-$n 12
        done
    done
    expect 7 'all steps of the run are done' $mpirun -n 2 ./rank.sh resume $mpi-2
    expect 0 '' env WEFT_MPI=$mpi "$weft" launch -n 2 -- train gpt.yaml --run $mpi-launched --quiet
    same one $mpi-launched 12
    WEFT_MPI=$mpi "$weft" launch -n 2 -- train gpt.yaml --set train.steps=1000000 --run $mpi-launch-ended --quiet >out 2>err &
    launched=$!
    for _ in $(seq 400); do [ -s $mpi-launch-ended/metrics.jsonl ] && break || sleep 0.1; done
    kill -TERM $launched
    wait $launched
    check "a stopped launch ends with 128 + the signal" test $? = 143

    # ---- a process that dies or hangs: if it hangs while it saves, the others wait ten times as long ----
    begin 2 $mpi-dead
    kill -KILL "$(cat pid.1)"
    ended "a dead process" "." $mpi-dead
    begin 2 $mpi-stopped
    kill -STOP "$(cat pid.1)"
    ended "a process that hangs" "rank 0 \(.*\): step [0-9]+: waited (2|20) s for .*: no answer from rank 1 \(" $mpi-stopped
    begin 2 $mpi-leader
    kill -STOP "$(cat pid.0)"
    ended "a leader that hangs" "rank 1 \(.*\): step [0-9]+: waited (2|20) s for .*: no answer from rank 0 \(" $mpi-leader
    last=$(find $mpi-stopped/checkpoints -name 'step-*' | sed 's/.*-//' | sort -n | tail -1)
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-stopped --quiet --set train.steps=$((last + 20))
    expect 0 '' "$weft" info $mpi-stopped --check

    # ---- a process that cannot write: one message, and the last complete checkpoint stays ----
    begin 4 $mpi-full --set train.shard=optimizer
    prlimit --pid "$(cat pid.2)" --fsize=2000
    ended "a full disk" 'weft: rank 2 \(.*\): cannot write .*optimizer-00003-of-00004.safetensors: File too large' $mpi-full
    check "$mpi: it is said once: $(cat $mpi-full.out)" test "$(grep -c 'weft: ' $mpi-full.out)" = 1
    check "$mpi: the log has it" grep -q 'rank 2 (.*): cannot write' $mpi-full/log.txt
    check "$mpi: nothing unfinished is left" test -z "$(find $mpi-full/checkpoints -name '.*.tmp')"
    last=$(find $mpi-full/checkpoints -name 'step-*' | sed 's/.*-//' | sort -n | tail -1)
    expect 0 '' $mpirun -n 2 ./rank.sh resume $mpi-full --quiet --set train.steps=$((last + 20))

    # ---- a loss that is not finite: all see it, and one tells it ----
    $mpirun -n 2 ./rank.sh train mlp --data table.csv --set data.target=a --set task=regression --set optimizer.type=sgd \
        --set optimizer.lr=1e6 --set train.batch=4 --set train.steps=50 --run $mpi-diverged --quiet >out 2>&1
    check "$mpi: a loss that is not finite: $(cat out)" test "$(grep -c 'weft: .*the loss is -*\(nan\|inf\)' out)" = 1
    check "$mpi: the run says so" grep -q diverged $mpi-diverged/summary.json

    # ---- a signal that only one process receives ----
    begin 2 $mpi-signal
    kill -TERM "$(cat pid.1)"
    wait "$job"
    check "a signal to one process stops and saves all" grep -q "stopped by a signal" $mpi-signal/log.txt
    check "the run is sound" "$weft" info $mpi-signal --check

    # ---- faults at random moments ----
    check "$mpi: random faults" python3 "$here/process_faults.py" "$weft" --mpi $mpi --trials "${WEFT_FAULT_TRIALS:-5}" --seed "${WEFT_FAULT_SEED:-1}"
    grep FAIL checked

    # ---- processes that differ ----
    sed 's/warp/wasp/' text.txt >other.txt
    for case in "--set data.path=other.txt|rank 1 \(.*\): other data than rank 0" \
        "--set optimizer.lr=0.5|rank 1 \(.*\): another configuration than rank 0" \
        "--set data.path=none.txt|rank 1 \(.*\): cannot open .*none.txt"; do
        export OTHER_RANK=1 OTHER_ARGUMENTS=${case%%|*}
        rm -rf differs
        $mpirun -n 2 ./rank.sh train gpt.yaml --run differs --quiet >out 2>&1
        check "$mpi: ${case%%|*} is refused" test $? != 0
        check "$mpi: it is said once: $(cat out)" test "$(grep -Ec -- "weft: .*${case##*|}" out)" = 1
    done
    unset OTHER_RANK OTHER_ARGUMENTS
    $mpirun -n 3 ./rank.sh train gpt.yaml --run differs --quiet >out 2>&1
    check "three processes for four batches" test "$(grep -c 'use train.accumulate: 12' out)" = 1
    $mpirun -n 2 ./rank.sh train lstm --data text.txt --set data.streams=true >out 2>&1
    check "streams of several processes" grep -q 'one device must compute all of them' out
    $mpirun -n 2 ./rank.sh train text --data text.txt >out 2>&1
    check "time of several processes" grep -q 'measures the time of a step in one process' out
done

# ---- without an engine ----
expect 1 'cannot be opened' env WEFT_MPI=/nowhere/libweft-none.so "$weft" train gpt.yaml
expect 1 'srun started 2 tasks without MPI' env SLURM_STEP_NUM_TASKS=2 "$weft" train gpt.yaml
expect 0 '' env SLURM_STEP_NUM_TASKS=2 WEFT_MPI=off "$weft" train gpt.yaml --quiet
expect 0 '' env OMPI_COMM_WORLD_SIZE=1 "$weft" train gpt.yaml --quiet
expect 2 "of 'train', 'resume' and 'profile', not of 'eval'" "$weft" launch -n 2 -- eval one
expect 2 'give the number of processes' "$weft" launch -n 0 -- train gpt.yaml
expect 1 'there is no mpirun' env PATH=/nowhere "$weft" launch -n 2 -- train gpt.yaml

echo "$cells checks, $fail failures"
[ "$fail" = 0 ] || exit 1
[ $found = 1 ] || echo "skipped: training with several processes: neither Open MPI nor MPICH is installed"
