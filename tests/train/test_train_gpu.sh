#!/usr/bin/env bash
# Tests the command on a GPU device, $WEFT_TEST_GPU or opencl. A small GPT and an MLP on images must reach the CPU's losses.
# A run that was stopped on one device continues on the other. A model that was trained on one device is evaluated and
# predicts on the other. weft verify must find that every node agrees. The images are Fashion-MNIST's if $WEFT_TEST_DATA has
# them.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/train/command.sh
. "$here/command.sh"
gpu=${WEFT_TEST_GPU:-opencl}
if ! "$weft" devices 2>&1 | grep "^ *$gpu:[0-9]" | grep -vq absent; then
    echo "skipped, no $gpu device"
    exit 77
fi

cat >gpt.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
train: {steps: 20, batch: 4, eval_every: 10, save_every: 10, log_every: 1}
schedule: {warmup: 2, type: constant}
YAML

# be N: prints a 4-byte big-endian number, as in idx files.
be() { printf '%b' "$(printf '\\0%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"; }
images=${WEFT_TEST_DATA:-}/fashion-mnist/t10k-images-idx3-ubyte.gz
if [ ! -r "$images" ] || [ "$gpu" = cuda ]; then # 100 images of 6 x 6, brighter for higher classes
    images=$work/some-images-idx3-ubyte
    { be 2051 && be 100 && be 6 && be 6; } >"$images"
    { be 2049 && be 100; } >some-labels-idx1-ubyte
    for i in $(seq 0 99); do
        for j in $(seq 36); do printf '%b' "$(printf '\\0%03o' $((i % 3 * 80 + (i * 37 + j * 11) % 60)))"; done >>"$images"
        printf '%b' "$(printf '\\0%03o' $((i % 3)))" >>some-labels-idx1-ubyte
    done
fi
cat >images.yaml <<YAML
task: classification
data: {source: idx, path: "$images"}
model: {type: mlp, hidden: [16]}
train: {steps: 20, batch: 16, eval_every: 10, save_every: 10, log_every: 1}
schedule: {warmup: 2, type: constant}
YAML

fail() {
    echo "FAIL: $*"
    exit 1
}

# same RUN OTHER: both logs must have the same number of losses, which agree to 1e-4.
same() {
    paste -d, <(cut -d, -f3 "$1/metrics.csv") <(cut -d, -f3 "$2/metrics.csv") | awk -F, '
        NR > 1 { d = $1 - $2; if (d < 0) d = -d; if ($1 == "" || $2 == "" || !(d <= 1e-4)) bad = 1 }
        END { exit bad || NR < 10 }' || fail "the losses of $1 and $2 differ"
}

models="gpt images" # no mlp on tables: it is the image mlp with other sizes, and kernels take long to compile
for model in $models; do
    for device in cpu "$gpu"; do
        "$weft" train $model.yaml --device $device --run $model-$device --quiet || fail "$model on $device"
        "$weft" train $model.yaml --device $device --run $model-$device-half --set train.steps=10 --quiet ||
            fail "$model on $device, half"
    done
    same $model-cpu "$model-$gpu"
    "$weft" resume $model-cpu-half --device "$gpu" --set train.steps=20 --quiet || fail "$model resumed on $gpu"
    "$weft" resume "$model-$gpu-half" --device cpu --set train.steps=20 --quiet || fail "$model resumed on the CPU"
    same $model-cpu $model-cpu-half
    same $model-cpu "$model-$gpu-half"
    for device in cpu "$gpu"; do
        "$weft" eval "$model-$gpu" --device $device | grep -o 'loss [0-9.]*' | cut -c1-9 >eval-$device
    done
    { [ -s eval-cpu ] && cmp -s eval-cpu "eval-$gpu"; } || fail "$model: eval differs: $(cat eval-cpu eval-$gpu)"
    "$weft" verify $model.yaml --devices "cpu,$gpu" | grep -q 'every node agrees' || fail "$model: verify"
done
grep -q '"gpu_' gpt-cpu/metrics.jsonl && fail "a CPU has no telemetry"
if [ "$gpu" = cuda ]; then # telemetry of NVML or of the tests' simulated library
    { grep -q '"gpu_power": ' gpt-cuda/summary.json && grep -q 'watts of the card' gpt-cuda/report.html &&
        "$weft" compare gpt-cpu gpt-cuda | grep -Eq "^card's watts +- +[0-9.]+"; } || fail "no telemetry in what is shown: $("$weft" compare gpt-cpu gpt-cuda)"
    { grep -q '"gpu_utilisation": .*"gpu_power": ' gpt-cuda/metrics.jsonl && grep -q 'Card: watts' gpt-cuda/report.html; } ||
        fail "no telemetry: $(tail -1 gpt-cuda/metrics.jsonl)"
fi
"$weft" generate gpt-cpu --device cpu --tokens 20 >text-cpu && "$weft" generate gpt-cpu --device "$gpu" --tokens 20 >"text-$gpu"
cmp -s text-cpu "text-$gpu" || fail "other text: $(cat text-cpu text-$gpu)"
for device in cpu "$gpu"; do
    "$weft" predict "images-$gpu" "$images" --device $device | cut -f1 >classes-$device
done
{ [ "$(wc -l <classes-cpu)" -gt 100 ] && cmp -s classes-cpu "classes-$gpu"; } || fail "predict: other classes"
# several devices: two cards, or one card twice; the output is that of one, whatever the number of batches and of prompts
other=$gpu:0
"$weft" devices 2>&1 | grep "^ *$gpu:1 " | grep -vq absent && other=$gpu:1
printf 'the weft\nline\nwarp\n' >prompts.txt
for devices in "$gpu:0" "$gpu:0,$other"; do
    for model in $models; do "$weft" eval "$model-cpu" --devices "$devices" --json || fail "eval on $devices"; done >"scores-$devices"
    "$weft" predict images-cpu "$images" --devices "$devices" >"answers-$devices" || fail "predict on $devices"
    "$weft" generate gpt-cpu --prompts prompts.txt --tokens 12 --devices "$devices" >"texts-$devices" || fail "generate on $devices"
done
for what in scores answers texts; do
    { [ -s "$what-$gpu:0" ] && cmp "$what-$gpu:0" "$what-$gpu:0,$other"; } || fail "$what of two devices"
done
"$weft" demo xor --device "$gpu" | grep -q '1 xor 0 = 0.9' || fail "demo xor"
if [ "$gpu" != cuda ]; then # the simulated CUDA driver is too slow for large matmuls
    "$weft" demo device --device "$gpu" >demo || fail "demo device: $(cat demo)"
    grep -q "^$gpu:0 works: " demo || fail "demo device: $(cat demo)"
fi
"$weft" profile gpt.yaml --device "$gpu" >profile || fail "profile: $(cat profile)"
for row in '\([0-9.]+ s to open the device\), which took .* to compile$' '^the device is busy [0-9]+ % of the time' \
    'of its memory [0-9.]+ MiB are in use, [0-9.]+ at most$' '^a step: [0-9.]+ uploads, [0-9.]+ downloads, 1.00 programs$' \
    '^(upload|download|waiting|compile) +[0-9.]+ +[0-9.]+$'; do
    grep -Eq "$row" profile || fail "profile: no '$row' in $(cat profile)"
done
"$weft" bench gemm --device "$gpu" --only 128 --json >gemm
grep -Eq "\"variant\": \"own\", \"device\": \"$gpu:0\", .*\"error\": [0-9.]+e-0[78]}" gemm || fail "bench gemm: $(cat gemm)"
if [ "$gpu" = cuda ] && "$weft" devices | grep -q 'cuBLASLt  *[1-9]'; then
    grep -Eq '"variant": "vendor", "device": "cuda:0", .*"error": [0-9.]+e-0[78]}' gemm || fail "bench gemm: $(cat gemm)"
fi
"$weft" train gpt.yaml --device "$gpu:99" 2>&1 | grep -q "there is none; there are $gpu:0" || fail "$gpu:99"
if [ "$gpu" != cuda ] && command -v python3 >/dev/null; then # after kill -9 and resume the bits are the same
    python3 "$here/kill_resume.py" "$weft" --device "$gpu" kills:device || fail "killed and resumed"
fi
echo "training on $gpu: $models"
