#!/usr/bin/env bash
# Tests of the command source this file. It makes a temporary folder that is removed at the end, sets $weft to the command,
# and writes two small data sets, text.txt and table.csv. $cells counts checks and $fail counts failures.
set -u
# shellcheck disable=SC2034
weft=$(readlink -f "${WEFT_COMMAND:?names the weft command}")
work=$(mktemp -d /tmp/weft-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) # pictures.py
export PYTHONPATH
cd "$work" || exit 1
export OMP_NUM_THREADS=1 WEFT_KERNEL_CACHE=$work/kernels XDG_STATE_HOME=$work/state
unset WEFT_DEVICE WEFT_CONFIG WEFT_DEBUG

for i in $(seq 120); do echo "the weft goes over and under the warp, line $((i * 7919 % 1000))"; done >text.txt
{
    echo "a,b,kind"
    for i in $(seq 60); do echo "$((i % 7)).5,$((i % 5)),$([ $((i % 2)) = 0 ] && echo even || echo odd)"; done
} >table.csv

cells=0 fail=0

# expect CODE PATTERN COMMAND...: checks the exit code, and that the output matches an extended regular expression.
expect() {
    local code=$1 pattern=$2 got
    shift 2
    "$@" >out 2>err
    got=$?
    cells=$((cells + 1))
    if [ "$got" != "$code" ] || { [ -n "$pattern" ] && ! cat out err | grep -Eq -- "$pattern"; }; then
        fail=$((fail + 1))
        echo "FAIL: $* : exit $got (wanted $code), output lacks '$pattern'"
        head -c 2000 out err
    fi
}

# one_line: checks that the last error was a single line that begins with "weft: ".
one_line() {
    cells=$((cells + 1))
    if [ "$(wc -l <err)" != 1 ] || ! grep -q '^weft: ' err; then
        fail=$((fail + 1))
        echo "FAIL: not one line of error:"
        cat err
    fi
}

check() { # check NAME COMMAND...: the command must succeed; "out" holds the last output
    local name=$1
    shift
    cells=$((cells + 1))
    if ! "$@" >checked 2>&1; then
        fail=$((fail + 1))
        echo "FAIL: $name: $*"
        head -c 2000 checked
    fi
}

# wait_for_line PATTERN FILE: waits until a line of the file matches, at most half a minute.
wait_for_line() {
    local _
    for _ in $(seq 600); do
        grep -Eqs -- "$1" "$2" && return
        sleep 0.05
    done
    echo "no '$1' in $2"
}

# during FROM TO CHANGE PATTERN: trains on the images TO, a copy of FROM that CHANGE changes. The run must say PATTERN.
during() {
    rm -rf "$2" live
    cp -r "$1" "$2"
    "$weft" train cnn --data "$2" --set 'model.image=[3,8,8]' --set model.filters=[4] --set train.steps=1000000 --set train.log_every=1 \
        --quiet --run live --set data.in_files=true --set train.save_every=1000000 --set train.eval_every=1000000 >out 2>err &
    local process=$! tries=0
    until [ -s live/metrics.jsonl ] || [ $((tries++)) = 300 ]; do sleep 0.1; done
    bash -c "$3"
    for ((tries = 0; tries < 300; tries++)); do kill -0 $process 2>/dev/null || break; sleep 0.1; done
    kill $process 2>/dev/null
    wait $process
    local code=$?
    check "$3: ends the run with code 3, not $code" test $code = 3
    check "$3: is told" grep -Eq "$4" err
}

# peak LIMIT COMMAND...: the command must succeed with at most LIMIT MB of resident memory.
peak() {
    python3 - "$@" <<'PYTHON'
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print("peak %.0f MB" % peak)
sys.exit(code if code else peak > float(sys.argv[1]))
PYTHON
}
