#!/usr/bin/env bash
# The run folder when calls are late or fail, through strace: two runs that begin at once.
# Everything happens in a temporary folder; the models are tiny.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"
if ! strace -f -o trace true 2>/dev/null; then
    echo "test_run_strace: skipped, strace is not installed or may not trace"
    exit 77
fi
cat >mlp.yaml <<'YAML'
task: classification
data: {source: csv, path: table.csv, val_fraction: 0.2}
model: {type: mlp, hidden: [8]}
train: {steps: 12, batch: 8, save_every: 2, eval_every: 2, log_every: 2, keep: 2}
YAML

# inject RULE COMMAND...: the command, with calls changed as strace's -e inject=RULE says.
inject() {
    local rule=$1
    shift
    strace -f -qq -o trace -e "trace=${rule%%:*}" -e "inject=$rule" "$@"
}

# ---- two runs into one new folder: the first looks at it, then sleeps while the second trains ----
inject fsync:delay_enter=3000000:when=1 "$weft" train mlp.yaml --quiet --run twice >late 2>&1 &
late=$!
for _ in $(seq 100); do # the folder is there before it is flushed
    [ -d twice ] && break
    sleep 0.05
done
expect 0 '' "$weft" train mlp.yaml --quiet --run twice
cp twice/metrics.jsonl whole.jsonl
wait "$late"
check "the late run ends with 2" [ $? = 2 ]
check "the late run says why" grep -q "twice: holds a run already" late
check "the metrics are those of the first run" cmp -s twice/metrics.jsonl whole.jsonl
expect 0 'done' "$weft" info twice --check

echo "test_run_strace: cells=$cells fail=$fail"
[ "$fail" = 0 ]
