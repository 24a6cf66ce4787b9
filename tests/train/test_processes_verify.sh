#!/usr/bin/env bash
# Resumes runs in several processes, which divide the verification of a checkpoint: a damaged byte is found wherever it is,
# and all processes go on from the same earlier checkpoint. A process that is not ready ends all of them.
# shellcheck source=tests/train/command.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"
cat >gpt.yaml <<'END'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16}
schedule: {type: constant, warmup: 0}
train: {steps: 6, batch: 4, accumulate: 4, exact_sum: true, eval_every: 3, save_every: 3, timeout: 5}
END

# flip FILE BYTE: changes a byte
flip() {
    python3 - "$@" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    at = int(sys.argv[2])
    file.seek(at)
    byte = file.read(1)[0]
    file.seek(at)
    file.write(bytes([byte ^ 4]))
PYTHON
}

found=0
for mpi in openmpi mpich; do
    has_mpi $mpi || continue
    found=1
    mpirun="mpirun.$mpi"
    parts=(1 4 7 10) # tenths of a file
    [ $mpi = openmpi ] || parts=(6)
    for shard in none optimizer; do
        expect 0 '' $mpirun -n 4 ./rank.sh train gpt.yaml --run $mpi-$shard --quiet --set train.shard=$shard
        expect 0 '' "$weft" resume $mpi-$shard --quiet --set train.steps=9
        rm -r $mpi-$shard/checkpoints/step-9
        trial=0
        for file in "$mpi-$shard"/checkpoints/step-6/*.safetensors; do
            size=$(stat -c %s "$file")
            for part in "${parts[@]}"; do
                n=$((2 + 2 * (trial % 2)))
                trial=$((trial + 1))
                cp -r $mpi-$shard damaged
                flip "damaged/checkpoints/step-6/${file##*/}" $((size * part / 10 - 1))
                expect 3 "${file##*/}: .*: damaged, use an earlier checkpoint" $mpirun -n $n ./rank.sh resume damaged --strict
                check "$mpi: it is said once" test "$(cat out err | grep -c 'weft: .*damaged')" = 1
                expect 0 'continuing from the earlier checkpoint step-3' $mpirun -n $n ./rank.sh resume damaged --set train.steps=6
                check "$mpi: with the same weights" cmp damaged/checkpoints/step-6/model.safetensors $mpi-$shard/checkpoints/step-6/model.safetensors
                rm -r damaged
            done
        done
        cp -r $mpi-$shard damaged
        for file in damaged/checkpoints/step-*/model.safetensors; do flip "$file" 3000; done
        expect 3 'and every earlier checkpoint is damaged, too' $mpirun -n 2 ./rank.sh resume damaged
        rm -r damaged
    done

    # ---- a process that is not ready: rank 0 or another one ----
    for other in 0 1; do
        for case in "--set data.path=none.txt|cannot open .*none.txt" "--set optimizer.lr=0.5|resume: optimizer.lr cannot change"; do
            export OTHER_RANK=$other OTHER_ARGUMENTS=${case%%|*}
            $mpirun -n 2 ./rank.sh resume $mpi-none --set train.steps=9 --quiet >out 2>&1
            check "$mpi: rank $other with ${case%%|*} is refused" test $? != 0
            check "$mpi: no process waits for it until its time is over: $(cat out)" bash -c '! grep -q waited out'
            check "$mpi: it is said once: $(cat out)" test "$(grep -Ec -- "weft: .*${case##*|}" out)" = 1
        done
    done
    unset OTHER_RANK OTHER_ARGUMENTS
    mkdir nothing
    cp $mpi-none/.weft $mpi-none/*.* nothing
    mkdir nothing/checkpoints
    expect 0 '' $mpirun -n 2 ./rank.sh resume nothing --quiet
    check "$mpi: a run without a checkpoint begins" cmp nothing/checkpoints/step-6/model.safetensors $mpi-none/checkpoints/step-6/model.safetensors
    rm -r nothing
done

echo "$cells checks, $fail failures"
[ "$fail" = 0 ] || exit 1
[ $found = 1 ] || echo "skipped: a divided verification: neither Open MPI nor MPICH is installed"
