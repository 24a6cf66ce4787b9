#!/usr/bin/env bash
# Tests bench/table with a made-up peer: rows, page and chart. Rows of other workloads must stay, and on a busy machine
# nothing may change.
set -u
if ! command -v python3 >/dev/null || [ ! -r /proc/stat ]; then
    echo "table: skipped, it needs python3 and /proc/stat"
    exit 77
fi
weft=${WEFT_COMMAND:?names the weft command}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# A Python environment whose torch takes 2 seconds per step, and 1 second with warm memory.
mkdir -p "$folder/venv/bin"
cat >"$folder/venv/bin/python" <<'PEER'
#!/bin/sh
[ "$1" = -c ] && echo "torch 0" && exit
echo "{\"workload\": \"$2\", \"peer\": \"torch\", \"seconds_per_step_min\": 1, \"peak_rss_mb\": 1000, \
\"seconds_per_step_median\": $([ -n "${GLIBC_TUNABLES:-}" ] && echo 1 || echo 2)}"
PEER
chmod +x "$folder/venv/bin/python"
printf 'before\n<!-- measured by make bench-compare: begin -->\nold\n<!-- measured: end -->\nafter\n' >"$folder/page.md"

table() {
    python3 bench/table --weft "$weft" --venv "$folder/venv" --threads 1 --rest 0.01 --runs 2 --results "$folder/results.json" \
        --page "$folder/page.md" "$@" >"$folder/out" 2>&1
}
expect() { # expect FILE PATTERN
    grep -Eq -- "$2" "$folder/$1" && return
    failed=1
    echo "FAIL: $1 lacks '$2'"
    cat "$folder/$1" "$folder/out"
}

table --limit 1000 xor10000 || failed=1
expect out '^\| xor10000 +\| [0-9.]+ .?s +\| 2 s +\| torch +\| [0-9.e+]+( \(below\))? +\| at most 1 us'
expect results.json '"workload": "xor10000_queued"'
table --limit 1000 mlp || failed=1
expect out '^\| mlp +\| [0-9.]+ .?s +\| 1 s +\| torch, (compiled, )?warm memory +\| [0-9.]+( \(below\))? +\| 1.2 +\|'
expect out '\(plan [0-9]+\) +\| [0-9.]+ +\| 0.5 '
expect page.md '^\| xor10000_loop '
expect page.md '^\| mlp '
expect results.svg 'mlp</text>'
[ "$(grep -Ec '^(before|after|old)$' "$folder/page.md")" = 2 ] || { failed=1 && cat "$folder/page.md"; }
cp "$folder/page.md" "$folder/page.was"
table --patience 0 --limit -1 xor10000
[ $? = 3 ] || failed=1
expect out 'xor10000: refused: the machine was not idle'
cmp "$folder/page.md" "$folder/page.was" || failed=1
table nothing
[ $? = 2 ] || failed=1
[ "$failed" = 0 ] || echo "FAIL: a wrong exit status, or a change in the rest of the page"
exit $failed
