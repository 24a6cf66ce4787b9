#!/usr/bin/env bash
# Tests bench/compare: a ratio of medians on an idle machine, a refusal on a busy one, and a peer that fails.
set -u
if ! command -v python3 >/dev/null || [ ! -r /proc/stat ]; then
    echo "compare: skipped, it needs python3 and /proc/stat"
    exit 0
fi
weft=${WEFT_COMMAND:?names the weft command}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0

# expect CODE PATTERN ARGUMENTS...
expect() {
    local code=$1 pattern=$2 got
    shift 2
    python3 bench/compare --weft "$weft" --threads 1 --rest 0.01 "$@" >"$out" 2>&1
    got=$?
    if [ "$got" != "$code" ] || ! grep -Eq -- "$pattern" "$out"; then
        failed=1
        echo "FAIL: $*: exit $got (wanted $code), output lacks '$pattern'"
        cat "$out"
    fi
}

peer='{"workload": "xor200", "peer": "made-up", "seconds_per_step_min": 1, "seconds_per_step_median": 2}'
expect 0 '"peer_median": 2(\.0)?, "peer_least": 1, "peer_over_weft": [0-9]{4,}' \
    --runs 2 --limit 1000 --json xor200 -- echo "$peer"
expect 0 'weft is [0-9]+\.[0-9]+ times as fast' --runs 1 --limit 1000 xor200 -- echo "$peer"
other='{"workload": "another", "peer": "also", "seconds_per_step_min": 1, "seconds_per_step_median": 3}'
expect 0 '^\| xor200 \| .* \| 2 s \([0-9.]+\) \| 3 s \([0-9.]+\) \|$' \
    --runs 1 --limit 1000 --table xor200 -- echo "$peer" -- echo "$other"
expect 3 'refused: the machine was not idle' --patience 0 --limit -1 xor200 -- echo "$peer"
expect 1 'exit status 1' --runs 1 --limit 1000 xor200 -- false
expect 2 'command is missing' xor200
exit $failed
