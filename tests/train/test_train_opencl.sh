#!/usr/bin/env bash
# The command on an OpenCL device: a small GPT and an MLP reach the CPU's losses, a run stopped on one device goes on
# on the other, a model trained on one is evaluated on the other, and weft verify finds every node the same.
set -u
weft=$(readlink -f "${WEFT_COMMAND:?names the weft command}")
work=$(mktemp -d /tmp/weft-opencl-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMP_NUM_THREADS=1 WEFT_KERNEL_CACHE=$work/kernels
unset WEFT_DEVICE WEFT_CONFIG
if ! "$weft" devices 2>&1 | grep -q '^ *opencl:[0-9]'; then
    echo "skipped, no OpenCL device"
    exit 77
fi

for i in $(seq 120); do echo "the weft goes over and under the warp, line $((i * 7919 % 1000))"; done >text.txt
cat >gpt.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
train: {steps: 20, batch: 4, eval_every: 10, save_every: 10, log_every: 1}
schedule: {warmup: 2, type: constant}
YAML
{
    echo "a,b,kind"
    for i in $(seq 60); do echo "$((i % 7)).5,$((i % 5)),$([ $((i % 2)) = 0 ] && echo even || echo odd)"; done
} >table.csv
cat >mlp.yaml <<'YAML'
task: classification
data: {source: csv, path: table.csv, test_path: table.csv, val_fraction: 0.2}
model: {type: mlp, hidden: [8]}
train: {steps: 20, batch: 8, eval_every: 10, save_every: 10, log_every: 1}
schedule: {warmup: 2, type: constant}
YAML

fail() {
    echo "FAIL: $*"
    exit 1
}

# same RUN OTHER: every loss of the two logs agrees to 1e-4, and there are as many.
same() {
    paste -d, <(cut -d, -f3 "$1/metrics.csv") <(cut -d, -f3 "$2/metrics.csv") | awk -F, '
        NR > 1 { d = $1 - $2; if (d < 0) d = -d; if ($1 == "" || $2 == "" || !(d <= 1e-4)) bad = 1 }
        END { exit bad || NR < 10 }' || fail "the losses of $1 and $2 differ"
}

for model in gpt mlp; do
    for device in cpu opencl; do
        "$weft" train $model.yaml --device $device --run $model-$device --quiet || fail "$model on $device"
        "$weft" train $model.yaml --device $device --run $model-$device-half --set train.steps=10 --quiet ||
            fail "$model on $device, half"
    done
    same $model-cpu $model-opencl
    "$weft" resume $model-cpu-half --device opencl --set train.steps=20 --quiet || fail "$model resumed on opencl"
    "$weft" resume $model-opencl-half --device cpu --set train.steps=20 --quiet || fail "$model resumed on the CPU"
    same $model-cpu $model-cpu-half
    same $model-cpu $model-opencl-half
    for device in cpu opencl; do
        "$weft" eval $model-opencl --device $device | grep -o 'loss [0-9.]*' | cut -c1-9 >eval-$device
    done
    { [ -s eval-cpu ] && cmp -s eval-cpu eval-opencl; } || fail "$model: eval differs: $(cat eval-cpu eval-opencl)"
    "$weft" verify $model.yaml --devices cpu,opencl | grep -q 'every node agrees' || fail "$model: verify"
done
"$weft" generate gpt-cpu --device cpu --tokens 20 >text-cpu && "$weft" generate gpt-cpu --device opencl --tokens 20 >text-opencl
cmp -s text-cpu text-opencl || fail "other text: $(cat text-cpu text-opencl)"
echo "training on opencl: cells=15 fail=0"
