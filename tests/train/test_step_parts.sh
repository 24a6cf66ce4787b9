#!/usr/bin/env bash
# A step of K batches of B samples is a step of one batch of K x B, on one device, on several and in several processes: for
# each kind of loss, data and network, with unequal weights, classes, lengths of answers, and a short last batch. Also what
# weights of rows and of classes give, by numbers that plain Python computes.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_step_parts: skipped, python3 is missing"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
python3 "$tree/tests/train/make_published.py" llama || exit 1
python3 "$tree/tests/train/make_published.py" bert --encoder || exit 1
cat >runs.py <<'END'
import json
import struct


def tensors(run, step):
    """The weights of a checkpoint by their names, each as a list of floats."""
    data = open(f"{run}/checkpoints/step-{step}/model.safetensors", "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, tensor in json.loads(data[8:8 + length]).items():
        if tensor.get("dtype") != "F32":
            continue
        begin, end = tensor["data_offsets"]
        found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
    return found


def losses(run):
    return [json.loads(line)["loss"] for line in open(run + "/metrics.jsonl")]
END
cat >same.py <<'END'
"""same.py STEP RUN RUN...: the weights and losses of the runs are those of the first, but for rounding."""
import sys

from runs import losses, tensors

step, one, *others = sys.argv[1:]
wanted, before = tensors(one, step), tensors(one, 1)
assert any(before[name] != wanted[name] for name in wanted), "training changed nothing"
for run in others:
    got = tensors(run, step)
    assert got.keys() == wanted.keys()
    for name in wanted:
        size = max(map(abs, wanted[name]))
        far = max(abs(a - b) for a, b in zip(got[name], wanted[name]))
        assert far <= 2e-5 * size + 1e-7, f"{run}: {name} is off by {far:.2g} of {size:.2g}"
    assert len(losses(run)) == len(losses(one))
    for number, (a, b) in enumerate(zip(losses(run), losses(one)), 1):
        assert abs(a - b) <= 2e-5 * abs(b) + 1e-7, f"{run}: the loss of step {number} is {a}, not {b}"
END
python3 - <<'END'
import json
import random
import struct

draw = random.Random(3)
ROWS = 11  # batches of 4 leave a short one of 3
weights = [100, 1, 7, 0.5, 30, 2, 1, 12, 0.1, 3, 60]


def number():
    return round(draw.uniform(-2, 2), 3)


def words(count):
    return " ".join(draw.choice(["over", "under", "the", "weft"]) for _ in range(count))


rows = [(number(), number(), w) for w in weights]


def table(name, target, values):
    with open(name, "w") as f:
        f.write(f"a,b,w,{target}\n" + "".join(f"{a},{b},{w},{y}\n" for (a, b, w), y in zip(rows, values)))


table("rows.csv", "y", [round(3 * a - b + number(), 3) for a, b, _ in rows])
table("two.csv", "kind", ["yes" if i in (1, 6) else "no" for i in range(ROWS)])
table("three.csv", "kind", [("cat", "dog", "owl", "dog", "dog", "dog")[i % 6] for i in range(ROWS)])
json.dump({"x": [[a, b] for a, b, _ in rows], "y": [[a + number(), b * a] for a, b, _ in rows]}, open("targets.json", "w"))
with open("pictures-images-idx3-ubyte", "wb") as f:
    f.write(struct.pack(">IIII", 0x803, ROWS, 8, 8) + bytes(draw.randrange(256) for _ in range(ROWS * 64)))
with open("pictures-labels-idx1-ubyte", "wb") as f:
    f.write(struct.pack(">II", 0x801, ROWS) + bytes(1 if i in (0, 3) else 0 for i in range(ROWS)))
with open("texts.csv", "w") as f:
    f.write("text,w,label\n" + "".join(f"{words(1 + i % 4)},{w},{'fine' if i % 4 else 'poor'}\n" for i, w in enumerate(weights)))
with open("chats.jsonl", "w") as f:
    for i in range(ROWS):
        f.write(json.dumps({"prompt": words(9 - i % 9), "completion": " " + words(1 + i % 9)}) + "\n")
with open("pairs.jsonl", "w") as f:
    for i in range(ROWS):
        f.write(json.dumps({"prompt": words(3), "chosen": " " + words(1 + i % 5), "rejected": " " + words(5 - i % 5)}) + "\n")
END

launcher=
for mpi in openmpi mpich; do
    [ -e "$(dirname "$weft")/libweft-$mpi.so" ] && command -v mpirun.$mpi >/dev/null && launcher=$mpi && break
done
[ -n "$launcher" ] || echo "several processes: skipped, no MPI is installed"
steps=4 # an epoch of 11 samples has 3
plain=(--set data.val_fraction=0 --set optimizer.type=sgd --set schedule.type=constant --set schedule.warmup=0 --set train.eval_every=0
    --quiet)

# parts NAME ARGUMENT...: trains with 4 samples a step, in 1, 2 and 4 micro-batches, on 2 devices and in 2 processes.
parts() {
    local name=$1 set runs
    shift
    set=("${plain[@]}" --set optimizer.lr=0.1 --set train.steps="$steps" --set train.log_every=1 --set train.save_every=1 --set train.keep=9 "$@")
    runs=("$name-2" "$name-4" "$name-devices")
    expect 0 '' "$weft" train "${set[@]}" --run "$name-1" --set train.batch=4
    expect 0 '' "$weft" train "${set[@]}" --run "$name-2" --set train.batch=2 --set train.accumulate=2
    set+=(--set train.batch=1 --set train.accumulate=4)
    expect 0 '' "$weft" train "${set[@]}" --run "$name-4"
    expect 0 '' "$weft" train "${set[@]}" --run "$name-devices" --set 'devices=[cpu,cpu]'
    if [ -n "$launcher" ]; then
        expect 0 '' env WEFT_MPI=$launcher "$weft" launch -n 2 -- train "${set[@]}" --run "$name-ranks"
        runs+=("$name-ranks")
    fi
    check "$name: a step in parts is the same step" python3 same.py "$steps" "$name-1" "${runs[@]}"
}

weighted=(--set data.weight=w)
parts linear linear --data rows.csv "${weighted[@]}"
parts ridge linear --data rows.csv "${weighted[@]}" --set model.ridge=2 --set optimizer.clip=0.5
parts targets linear --data targets.json
parts network mlp --data rows.csv "${weighted[@]}" --set model.hidden=[5]
parts binary logistic --data two.csv "${weighted[@]}" --set train.class_weights=balanced
parts classes logistic --data three.csv --set 'train.class_weights=[1,5,0.2]' --set train.label_smoothing=0.1
parts network3 mlp --data three.csv "${weighted[@]}" --set model.hidden=[5] --set train.class_weights=balanced
parts smoothed mlp --data two.csv --set model.hidden=[5] --set train.label_smoothing=0.1
parts auto autoencoder --data pictures-images-idx3-ubyte --set model.hidden=[6,3]
parts cnn cnn --data pictures-images-idx3-ubyte --set model.filters=[4] --set train.class_weights=balanced
parts encoder encoder --data texts.csv "${weighted[@]}" --set model.init=bert --set train.class_weights=balanced
small=(--set model.layers=1 --set model.width=16 --set model.context=16)
parts gpt gpt --data text.txt "${small[@]}" --set model.heads=2
parts lstm lstm --data text.txt "${small[@]}" --set data.streams=false
llama=(--set model.init=llama --set model.context=64)
parts chats gpt --data chats.jsonl "${llama[@]}" --set optimizer.clip=0.1
parts lora gpt --data chats.jsonl "${llama[@]}" --set lora.rank=2
parts pairs gpt --data pairs.jsonl "${llama[@]}"

# ---- the right numbers ----
# A step of gradient descent from 0 for weighted squared errors, by its definition.
printf 'x,w,y\n1,100,1\n2,1,5\n-1,1,3\n0.5,1,-2\n' >four.csv
for batch in 4 2 1; do
    expect 0 '' "$weft" train linear --data four.csv "${plain[@]}" "${weighted[@]}" --set data.standardize=false --set train.steps=1 \
        --set optimizer.lr=0.01 --set train.batch=$batch --set train.accumulate=$((4 / batch)) --run four-$batch
    check "weights of rows in batches of $batch" python3 -c '
import sys
from runs import tensors
rows = [(1, 100, 1), (2, 1, 5), (-1, 1, 3), (0.5, 1, -2)]
total = sum(w for _, w, _ in rows)
wanted = [0.02 * sum(w * y * x for x, w, y in rows) / total, 0.02 * sum(w * y for _, w, y in rows) / total]
got = [value for tensor in tensors(sys.argv[1], 1).values() for value in tensor]
assert len(got) == 2 and all(abs(a - b) < 1e-8 for a, b in zip(sorted(got), sorted(wanted))), (got, wanted)' four-$batch
done

# The least squares of a constant are the weighted mean, 9.9; without weights it is 5. With balanced classes the best
# constant is 0, the log odds of a half; without them it is -2.2.
for i in $(seq 40); do echo "$((i % 2 * 2 - 1)),$((i / 2 % 2 ? 1 : 99)),$((i / 2 % 2 ? 0 : 10))"; done | sed '1i x,w,y' >mean.csv
for i in $(seq 40); do echo "$((i % 2 * 2 - 1)),$((i <= 4))"; done | sed '1i x,kind' >rare.csv
for batch in full 8 1; do
    expect 0 '' "$weft" train linear --data mean.csv "${plain[@]}" "${weighted[@]}" --set train.batch=$batch --set train.steps=2000 \
        --set data.standardize=false --set optimizer.lr=0.01 --run mean-$batch
    expect 0 '' "$weft" train logistic --data rare.csv "${plain[@]}" --set train.class_weights=balanced --set train.batch=$batch \
        --set train.steps=4000 --set optimizer.lr=0.02 --run rare-$batch
    check "fits in batches of $batch" python3 -c '
import sys
from runs import tensors
for run, steps, wanted, within in ("mean", 2000, 9.9, 0.15), ("rare", 4000, 0, 0.15):
    bias = next(t[0] for name, t in tensors(f"{run}-{sys.argv[1]}", steps).items() if "bias" in name)
    assert abs(bias - wanted) < within, f"{run}: the bias is {bias}, not {wanted}"' $batch
done

echo "test_step_parts: cells=$cells fail=$fail"
[ "$fail" = 0 ]
