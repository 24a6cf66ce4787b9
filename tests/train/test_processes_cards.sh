#!/usr/bin/env bash
# Trains one model with several processes, each on a card of its own, which exchange gradients by NCCL or RCCL: the same
# bits for any number of them. Where NCCL cannot serve all of them, the memory of the host does, and one line says why. A
# process that dies, hangs or fails ends all in time. The cards, NCCL and RCCL are those of the tests (tests/cuda/fake.h).
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/train/command.sh
. "$here/command.sh"
# shellcheck source=tests/train/processes.sh
. "$here/processes.sh"
if [ ! -e "$WEFT_BINARY_DIR/fake-cuda/libnccl.so.2" ] || [ ! -e "$WEFT_BINARY_DIR/fake-hip/librccl.so.1" ]; then
    echo "skipped, there is no simulated driver in this build"
    exit 77
fi
has_mpi openmpi || exit 77
mpirun=mpirun.openmpi
export FAKE_CUDA_CARDS=4 FAKE_NCCL_FOLDER=$work FAKE_NCCL_LOG=$work/calls
libraries=${LD_LIBRARY_PATH:-}

# Its gradients are not a multiple of 64 numbers, so that four processes add up some of them in the way of small sums.
cat >gpt.yaml <<'YAML'
task: language-model
data: {path: text.txt}
model: {type: gpt, layers: 1, heads: 2, width: 32, context: 16, dropout: 0.1}
train: {steps: 4, batch: 4, accumulate: 4, exact_sum: true, eval_every: 2, save_every: 2, log_every: 1, timeout: 30}
YAML
sed -e 's/steps: 4/steps: 1000000/' -e 's/eval_every: 2/eval_every: 0/' -e 's/save_every: 2/save_every: 20/' \
    -e 's/timeout: 30/timeout: 4/' gpt.yaml >long.yaml

# together N RUN PATTERN ARGUMENTS...: trains with n processes. What they call of NCCL is in the file calls.
together() {
    local n=$1 run=$2 pattern=$3
    shift 3
    rm -f calls
    expect 0 "$pattern" $mpirun -n "$n" ./rank.sh train gpt.yaml --device "$device" --run "$run" "$@"
}

# called NAME N PATTERN: each of n processes has made such calls of NCCL.
called() { check "$1: the calls of NCCL: $(cat calls)" test "$(grep -Ec -- "^rank [0-9] of $2 .*$3" calls)" = "$2"; }

# by_host NAME N REASON: the run is the same as without NCCL, and the reason is said once, with "rank 1" and so on.
by_host() {
    same one-cuda "$1" 4
    check "$1: no calls of NCCL" test -z "$(grep destroyed calls 2>/dev/null)"
    check "$1: the reason: $(cat err)" test "$(grep -Ec -- "gradients are exchanged through the memory of the host: $2" err)" = 1
    check "$1: the log has it" grep -Eq "gradients are exchanged through the memory of the host" "$1/log.txt"
}

# ---- the same bits ----
for device in cuda hip; do
    library=NCCL
    [ $device = hip ] && library=RCCL
    export LD_LIBRARY_PATH=$WEFT_BINARY_DIR/fake-$device:$libraries
    expect 0 '' "$weft" train gpt.yaml --device $device --run one-$device --quiet
    together 2 $device-2 '' --quiet
    same one-$device $device-2 4
    called $device-2 2 'sums=0 sends=8 receives=8 gathers=4 broadcasts=0 destroyed'
    check "$device-2: the log names the library" grep -q "$library 2.28.1 exchanges the gradients" $device-2/log.txt
    together 4 $device-optimizer-4 '' --quiet --set train.shard=optimizer # the last part is shorter
    same one-$device $device-optimizer-4 4
    called $device-optimizer-4 4 'sums=0 sends=16 receives=16 gathers=4 broadcasts=16 destroyed'
    together 4 $device-free '' --quiet --set train.exact_sum=false
    called $device-free 4 'sums=4 sends=0 receives=0 gathers=0 broadcasts=0 destroyed'
    together 2 $device-gradients-2 '' --quiet --set train.shard=gradients
    same one-$device $device-gradients-2 4
    called $device-gradients-2 2 'sums=0 sends=[0-9]+ receives=[0-9]+ gathers=[0-9]+ broadcasts=[0-9]+ destroyed'
    together 2 $device-parameters-2 '' --quiet --set train.shard=parameters
    same one-$device $device-parameters-2 4
done
check "RCCL and NCCL leave no folder" test -z "$(find . -name 'fake-nccl-*')"

device=cuda
export LD_LIBRARY_PATH=$WEFT_BINARY_DIR/fake-cuda:$libraries
together 4 cuda-4 '' --quiet
same one-cuda cuda-4 4
called cuda-4 4 'sums=0 sends=16 receives=16 gathers=8 broadcasts=0 destroyed'
together 2 cuda-optimizer-2 '' --quiet --set train.shard=optimizer
same one-cuda cuda-optimizer-2 4
called cuda-optimizer-2 2 'sums=0 sends=8 receives=8 gathers=4 broadcasts=8 destroyed'
together 4 cuda-gradients-4 '' --quiet --set train.shard=gradients
same one-cuda cuda-gradients-4 4
together 4 cuda-parameters-4 '' --quiet --set train.shard=parameters
same one-cuda cuda-parameters-4 4
together 4 moved '' --quiet --set train.steps=2
expect 0 '' $mpirun -n 2 ./rank.sh resume moved --set train.steps=4 --quiet
expect 0 '' "$weft" train gpt.yaml --device cuda --run moved-one --quiet --set train.steps=2
expect 0 '' "$weft" resume moved-one --set train.steps=4 --quiet
same moved-one moved 4
if has_mpi mpich; then
    mpirun=mpirun.mpich together 2 mpich '' --quiet
    same one-cuda mpich 4
    called mpich 2 'sends=[1-9][0-9]* .*destroyed'
fi

# Kernels that forget an order between NCCL and a program, in the race detector: shapes and values are the same.
export FAKE_CUDA_RACES=1
together 2 races '' --quiet --set train.steps=1 --set train.shard=optimizer
together 2 races-parameters '' --quiet --set train.steps=1 --set train.shard=parameters
unset FAKE_CUDA_RACES

# ---- what NCCL cannot serve ----
mkdir old
ln -s "$WEFT_BINARY_DIR/fake-cuda/libnvidia-ml.so.1" old/libnccl.so.2 # a library that lacks NCCL's functions
for case in "WEFT_CUDA_PATH=$work/old|rank 1 \(.*\): NCCL is not there: .* install a newer NCCL" \
    "FAKE_NCCL_VERSION=22703|rank 1 \(.*\) has NCCL 2.27.3, but rank 0 \(.*\) has NCCL 2.28.1: install the same" \
    "FAKE_NCCL_REFUSE=1|rank 1 \(.*\): unhandled system error, as the test wishes"; do
    export OTHER_RANK=1 OTHER_VARIABLE=${case%%|*}
    run=host-${OTHER_VARIABLE%%=*}
    together 2 "$run" '' --set train.timeout=8
    by_host "$run" "${case#*|}"
    unset OTHER_RANK OTHER_VARIABLE
done
FAKE_CUDA_CARDS=1 together 2 host-shared ''
by_host host-shared 'ranks 0 and 1 share a card \(0000:3A:00.0\) of .*: start as many processes as there are cards'

# ---- a process that dies, hangs or fails ----
for device in cuda hip; do
    export LD_LIBRARY_PATH=$WEFT_BINARY_DIR/fake-$device:$libraries
    begin 2 dead-$device --device $device
    kill -KILL "$(cat pid.1)"
    ended "a dead process" "." dead-$device
done
device=cuda
export LD_LIBRARY_PATH=$WEFT_BINARY_DIR/fake-cuda:$libraries OTHER_RANK=1 OTHER_VARIABLE=FAKE_NCCL_STOP=200
begin 2 stopped --device cuda
ended "a process that hangs" 'rank 0 \(.*\): step [0-9]+: waited 4 s for the gradients: no answer from rank 1 \(' stopped
OTHER_RANK=0
begin 2 leader --device cuda
ended "a leader that hangs" 'rank 1 \(.*\): step [0-9]+: waited 4 s for the gradients: no answer from rank 0 \(' leader
OTHER_RANK=1 OTHER_VARIABLE=FAKE_NCCL_FAIL=200
begin 2 failed --device cuda
ended "NCCL that fails" 'rank 1 \(.*\): NCCL 2.28.1 fails to exchange the gradients: internal error, as the test wishes' failed
unset OTHER_RANK OTHER_VARIABLE

echo "processes on cards: cells=$cells fail=$fail"
[ "$fail" = 0 ]
