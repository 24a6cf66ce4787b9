#!/usr/bin/env bash
# Trains a small GPT on the simulated HIP runtime with wavefronts of 64 and of 32 lanes, and on the simulated CUDA driver.
# All weights and states of the optimizer must have the same bits on HIP, since a warp has 32 lanes in both. CUDA has
# exponentials of its own, so its losses may differ in their last digits.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/train/command.sh
. "$here/../train/command.sh"
cuda=$WEFT_BINARY_DIR/fake-cuda
hip=$WEFT_BINARY_DIR/fake-hip
if [ ! -e "$hip/libamdhip64.so.6" ] || [ ! -e "$cuda/libcuda.so.1" ]; then
    echo "skipped, there is no simulated driver in this build"
    exit 77
fi
cat >gpt.yaml <<'YAML'
data: {path: text.txt}
model: {layers: 1, heads: 2, width: 16, context: 16, dropout: 0.1}
train: {steps: 6, batch: 4, eval_every: 3, save_every: 3, log_every: 1}
schedule: {warmup: 2, type: constant}
YAML

# run NAME DEVICE WAVE FOLDER: with Weft's own kernels for matmuls, as HIP has no others
run() {
    LD_LIBRARY_PATH=$4 FAKE_HIP_WAVE=$3 WEFT_MATMUL=own "$weft" train gpt.yaml --device "$2" --run "$1" --quiet || {
        echo "FAIL: $1"
        exit 1
    }
}
run cuda cuda 64 "$cuda"
run hip-64 hip 64 "$hip"
run hip-32 hip 32 "$hip"
compared=0
for file in hip-64/checkpoints/*/*.safetensors; do
    cmp "$file" "hip-32/${file#hip-64/}" || {
        echo "FAIL: ${file#hip-64/} differs between wavefronts of 64 and of 32"
        exit 1
    }
    compared=$((compared + 1))
done
[ "$compared" -ge 4 ] || {
    echo "FAIL: only $compared files were compared"
    exit 1
}
losses() { grep -o '"loss": [0-9.]*' "$1/metrics.jsonl" | cut -d' ' -f2; }
paste <(losses cuda) <(losses hip-64) | awk '
    { d = $1 - $2; if (d < 0) d = -d; if (NF < 2 || d > 1e-5) bad = 1 }
    END { exit bad || NR != 6 }' || {
    echo "FAIL: the losses of cuda and hip-64: $(losses cuda | xargs), $(losses hip-64 | xargs)"
    exit 1
}
echo "train hip: $compared files have the same bits"
