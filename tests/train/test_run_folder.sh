#!/usr/bin/env bash
# Tests the run folder: how many checkpoints are kept, damage, links, moved folders, and two runs that start at once. strace
# delays system calls or makes them fail. Everything happens in a temporary folder, with tiny models.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"
cat >mlp.yaml <<'YAML'
task: classification
data: {source: csv, path: table.csv, val_fraction: 0.2}
model: {type: mlp, hidden: [8]}
train: {steps: 12, batch: 8, save_every: 2, eval_every: 2, log_every: 2, keep: 2}
YAML

# checkpoints RUN: prints the names of the checkpoints on one line, without links.
checkpoints() { find "$1/checkpoints" -mindepth 1 -maxdepth 1 -type d -printf '%f ' | tr ' ' '\n' | sort -V | xargs; }

# ---- train.keep checkpoints remain, whenever a run ends ----
expect 0 '' "$weft" train mlp.yaml --quiet --run kept --set train.keep=1 --set optimizer.lr=0.001
check "the last is the best" [ "$(readlink kept/checkpoints/best)" = step-12 ]
check "the best before it is gone" [ "$(checkpoints kept)" = step-12 ]
expect 0 '' "$weft" train mlp.yaml --quiet --run many --set train.keep=3 --set train.keep_best=false
check "three are kept" [ "$(checkpoints many)" = "step-8 step-10 step-12" ]
expect 7 'nothing to do' "$weft" resume many --set train.keep=2
check "with nothing to do too" [ "$(checkpoints many)" = "step-10 step-12" ]

# ---- a damaged checkpoint is not counted ----
truncate -s 100 many/checkpoints/step-12/model.safetensors
expect 7 'cannot be used' "$weft" resume many --set train.steps=10 --set train.keep=1
check "the last whole one is kept" [ "$(checkpoints many)" = "step-10 step-12" ]
expect 0 'cannot be used' "$weft" resume many --set train.steps=11 --set train.keep=1
check "and the one after it" [ "$(checkpoints many)" = "step-11 step-12" ]
expect 3 'step-11 +intact' "$weft" info many --check

# ---- links within a run folder ----
expect 0 '' "$weft" train mlp.yaml --quiet --run mine
cp -r mine foreign
rm -r foreign/checkpoints
ln -s ../mine/checkpoints foreign/checkpoints
expect 8 'foreign/checkpoints is a symbolic link' "$weft" resume foreign --set train.steps=14
one_line
check "nothing was removed" [ "$(checkpoints mine)" = "step-10 step-12" ]
ln -s mine linked
expect 0 '' "$weft" resume linked/ --set train.steps=14 --quiet
check "a link to the folder is followed" [ "$(checkpoints mine)" = "step-12 step-14" ]

# ---- a run folder that is moved, and one that is removed, while it trains ----
# await COMMAND...: repeats the command until it succeeds, at most 60 seconds.
await() {
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
    return 1
}
has_step() { compgen -G "$1/checkpoints/step-*" >/dev/null; }
newer() { [ "$(checkpoints "$1")" != "$2" ]; }
# endless RUN: trains until it is stopped, and writes at most every half second.
endless() {
    exec "$weft" train mlp.yaml --run "$1" --set train.steps=100000000 --set train.save_every=16000 \
        --set train.eval_every=16000 --set train.log_every=16000
}
endless before >said 2>&1 &
training=$!
check "it saves" await has_step before
sleep 0.1
mv before after
was=$(checkpoints after)
check "it saves in the new place" await newer after "$was"
kill "$training"
wait "$training"
check "it stops as ever" [ $? = 143 ]
check "and says where it is" grep -q "resume $PWD/after" said
check "the old place stays empty" [ ! -e before ]
expect 0 'stopped' "$weft" info after --check
endless gone >said 2>&1 &
training=$!
check "it saves" await has_step gone
sleep 0.1
kill -STOP "$training"
rm -r gone
kill -CONT "$training"
wait "$training"
check "training ends" [ $? = 8 ]
check "the error names the folder" grep -q '^weft: .*gone' said
check "no folder is made again" [ ! -e gone ]

# ---- a bad bit in the metrics ----
expect 0 '' "$weft" train mlp.yaml --quiet --run bad
sed -i '2s/"/b/' bad/metrics.jsonl
expect 0 'bad/metrics.jsonl:2 is damaged' "$weft" resume bad --set train.steps=14
check "the other lines are kept" [ "$(grep -c 'step": ' bad/metrics.jsonl)" = 7 ]
check "the report says so" grep -q 'metrics.jsonl:2 is damaged' bad/report.html
expect 0 'bad/metrics.jsonl:2 is damaged' "$weft" runs .
expect 0 'last loss' "$weft" compare bad bad

# ---- folders that cannot be removed ----
mkdir -p many/checkpoints/step-11/1/2/3/4/5 # deeper than any checkpoint
rm -r many/checkpoints/step-12
expect 0 'step-11 holds 1, which is not Weft.s: the folder is not removed' \
    "$weft" resume many --set train.steps=14
check "training went on" [ "$(checkpoints many | grep -o 'step-14')" = step-14 ]

if ! strace -f -o trace true 2>/dev/null; then
    echo "test_run_folder: cells=$cells fail=$fail; the rest is skipped: strace is not installed or may not trace"
    [ "$fail" = 0 ]
    exit
fi

# inject RULE COMMAND...: runs the command under strace with -e inject=RULE.
inject() {
    local rule=$1
    shift
    # The leak sanitizer does not work in a traced process.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq -o trace -e "trace=${rule%%:*}" -e "inject=$rule" "$@"
}

# ---- two runs in one new folder: the first checks the folder, then sleeps while the second trains ----
inject fsync:delay_enter=3000000:when=1 "$weft" train mlp.yaml --quiet --run twice >late 2>&1 &
late=$!
for _ in $(seq 100); do # the folder exists before the flush
    [ -d twice ] && break
    sleep 0.05
done
expect 0 '' "$weft" train mlp.yaml --quiet --run twice
cp twice/metrics.jsonl whole.jsonl
wait "$late"
check "the late run ends with 2" [ $? = 2 ]
check "the late run says why" grep -q "twice: this folder holds a run already; continue it with: weft resume twice;" late
check "the metrics are those of the first run" cmp -s twice/metrics.jsonl whole.jsonl
expect 0 'done' "$weft" info twice --check

# ---- the disk fails while an old checkpoint is removed ----
expect 0 'cannot remove flaky/checkpoints/step-[0-9]*: Input/output error' \
    inject unlinkat:error=EIO:when=4 "$weft" train mlp.yaml --run flaky --set train.keep=1
check "training went on" [ "$(readlink flaky/checkpoints/best)" = step-12 ]

# ---- the disk fails while a folder is read ----
expect 8 'cannot access new/config.yaml: Input/output error' \
    inject newfstatat:error=EIO -P new/config.yaml "$weft" train mlp.yaml --quiet --run new
expect 8 'cannot access flaky/samples: Input/output error' \
    inject newfstatat:error=EIO -P flaky/samples "$weft" resume flaky --set train.steps=14
expect 8 'cannot list flaky/samples: Input/output error' \
    inject getdents64:error=EIO -P flaky/samples "$weft" resume flaky --set train.steps=14
expect 8 'cannot list .: Input/output error' inject getdents64:error=EIO:when=1 "$weft" runs .
mkdir -p photos/square photos/round
"$weft" init cnn --data photos --out cnn.yaml >/dev/null
expect 8 'cannot list .*photos/round: Input/output error' \
    inject getdents64:error=EIO -P photos/round "$weft" train cnn.yaml --quiet --run never
expect 8 'cannot open flaky/metrics.jsonl: Input/output error' \
    inject newfstatat:error=EIO -P flaky/metrics.jsonl "$weft" resume flaky --set train.steps=14

# ---- signals interrupt writes ----
expect 0 '' inject write:error=EINTR:when=2+3 "$weft" train mlp.yaml --quiet --run interrupted
check "the metrics are whole" [ "$(wc -l <interrupted/metrics.jsonl)" = 6 ]
expect 0 'done' "$weft" info interrupted --check

echo "test_run_folder: cells=$cells fail=$fail"
[ "$fail" = 0 ]
