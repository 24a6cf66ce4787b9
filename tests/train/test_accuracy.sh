#!/usr/bin/env bash
# Tests that classifiers show their accuracy wherever one looks: on the terminal and in metrics.jsonl, TensorBoard and the
# report while they train, and in the results at the end. Tables, images and text.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }

# twenty images of 8 x 8 as idx files: those of class 1 are brighter
{
    printf '\0\0\x08\x03\0\0\0\x14\0\0\0\x08\0\0\0\x08'
    awk 'BEGIN {for (i = 0; i < 20; i++) for (j = 0; j < 64; j++) printf "%c", 33 + i % 2 * 20 + (i * 7 + j * 5) % 37}'
} >images-idx3-ubyte
{
    printf '\0\0\x08\x01\0\0\0\x14'
    for i in $(seq 0 19); do printf '%b' "\\x0$((i % 2))"; done
} >labels-idx1-ubyte

cat >accuracy.py <<'END_OF_SCRIPT'
"""accuracy.py RUN STEPS: every place tells the accuracies of metrics.jsonl, which has those of STEPS."""
import json, re, struct, sys
run, steps = sys.argv[1], [int(step) for step in sys.argv[2].split(",")]
logged = {line["step"]: line["val_accuracy"] for line in map(json.loads, open(run + "/metrics.jsonl")) if "val_accuracy" in line}
assert sorted(logged) == steps, (sorted(logged), steps)
assert all(0 <= a <= 1 for a in logged.values()), logged


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a protobuf message, as pairs of number and value."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


events, at, told, rates = open(run + "/events.out.tfevents.0000000000.weft", "rb").read(), 0, {}, {}
while at < len(events):
    size = struct.unpack_from("<Q", events, at)[0]
    event = dict(fields(events[at + 12:at + 12 + size]))
    for _, value in fields(event.get(5, b"")):
        value = dict(fields(value))
        if value[1] == b"accuracy/validation":
            told[event.get(2, 0)] = struct.unpack("<f", value[2])[0]
        if value[1] == b"learning_rate":
            rates[event.get(2, 0)] = struct.unpack("<f", value[2])[0]
    at += size + 16
assert sorted(told) == steps, (sorted(told), steps)
assert all(abs(told[s] - logged[s]) < 1e-6 for s in steps), (told, logged)

assert rates == {line["step"]: struct.unpack("<f", struct.pack("<f", line["lr"]))[0] for line in map(json.loads, open(run + "/metrics.jsonl"))}, rates

final = json.load(open(run + "/scores.json"))["validation"]["accuracy"]
assert abs(json.load(open(run + "/summary.json"))["val_accuracy"] - final) < 1e-9
page, shown = open(run + "/report.html").read(), "%.2f %%" % (final * 100)
assert re.search(r'<div class="cards">\s*<div class="card"><b>%s</b><span>validation accuracy<' % re.escape(shown), page), shown
assert ">Validation accuracy</figcaption>" in page or "accuracy" not in page
path = re.search(r'aria-label="Validation accuracy".*?<path[^>]* d="M[^L]*L([^"]*)"', page, re.S).group(1)
points = {float(x): float(y) for x, y in (point.split() for point in path.split("L"))}
assert sorted(points) == steps and all(abs(points[s] - logged[s]) < 1e-5 for s in steps), (points, logged)
print("validation accuracy %s" % shown)
END_OF_SCRIPT

# shows NAME COMMAND...: trains the run NAME of 8 steps, which evaluates after steps 4 and 8
shows() {
    local name=$1
    shift
    expect 0 '^step 4/8 .* accuracy [0-9.]+ %' "$weft" train "$@" --run "$name" --set train.steps=8 --set train.eval_every=4 \
        --set train.log_every=2 --set schedule.warmup=0
    cp out "$name.out"
    check "$name: the same everywhere" python3 accuracy.py "$name" 4,8
    check "$name: the end says it" grep -q "^$(cat checked)$" "$name.out"
    expect 0 "accuracy $(sed 's/validation accuracy //' checked)" "$weft" eval "$name"
}
expect 0 '' "$weft" init logistic --data table.csv --out logistic.yaml
shows logistic logistic.yaml --set data.val_fraction=0.3
expect 0 '' "$weft" init mlp --data table.csv --out mlp.yaml
shows mlp mlp.yaml --set data.val_fraction=0.3 --set train.batch=8 --set optimizer.lr=0.05
expect 0 '' "$weft" init cnn --data images-idx3-ubyte --out cnn.yaml
shows cnn cnn.yaml --set data.val_fraction=0.3 --set train.batch=4 --set model.filters=[2]
expect 0 '' "$weft" init gpt --data text.txt --out gpt.yaml
shows gpt gpt.yaml --set model.layers=1 --set model.width=16 --set model.heads=2 --set model.context=16 --set train.batch=2 \
    --set train.eval_batches=1
# the best checkpoint is not the last one: the results are those of the best
expect 0 '' "$weft" train mlp.yaml --run best --quiet --set data.val_fraction=0.3 --set train.batch=8 --set train.steps=40 \
    --set train.eval_every=5 --set train.log_every=5 --set optimizer.lr=5 --set optimizer.clip=0 --set train.keep_best=true --set schedule.type=constant
check "the best step is an earlier one" bash -c '[ "$(readlink best/checkpoints/best)" != step-40 ]'
check "the report shows its accuracy" python3 accuracy.py best 5,10,15,20,25,30,35,40

echo "$cells cells, $fail failures"
exit $((fail > 0))
