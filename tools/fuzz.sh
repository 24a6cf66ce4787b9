#!/usr/bin/env bash
# Runs fuzz targets of the build folder $1, each for $2 seconds: those that follow, or all. New inputs go to
# FOLDER/corpus/NAME, findings to FOLDER/findings. Inputs in tests/fuzz/corpus/NAME, if there are any, are used first.
set -euo pipefail
build=$1 seconds=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in "$root"/tests/fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
fi

mkdir -p "$build/findings"
failed=()
for target in "${targets[@]}"; do
    name=${target#fuzz_}
    mkdir -p "$build/corpus/$name"
    seeds=()
    if [ -d "$root/tests/fuzz/corpus/$name" ]; then seeds=("$root/tests/fuzz/corpus/$name"); fi
    log=$build/findings/$target.log
    if "$build/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
        "$build/corpus/$name" "${seeds[@]}" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "$target: $runs runs in $seconds seconds, no finding"
    else
        failed+=("$target")
        tail -30 "$log"
        echo "$target: a finding, see $log"
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "findings in: ${failed[*]}"
    exit 1
fi
