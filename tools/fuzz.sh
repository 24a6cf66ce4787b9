#!/usr/bin/env bash
# Builds the fuzz targets in the build folder $1 and runs each for $2 seconds. New inputs go to FOLDER/corpus/NAME,
# findings to FOLDER/findings. Inputs in tests/fuzz/corpus/NAME, if there are any, are used first.
set -euo pipefail
build=$1 seconds=$2 jobs=${3:-2}
root=$(cd "$(dirname "$0")/.." && pwd)

cmake -S "$root" -B "$build" >/dev/null
targets=()
for source in "$root"/tests/fuzz/fuzz_*.c; do
    if [ -e "$source" ]; then targets+=("$(basename "$source" .c)"); fi
done
if [ ${#targets[@]} -eq 0 ]; then
    echo "no targets in tests/fuzz"
    exit 1
fi
cmake --build "$build" -j "$jobs" --target "${targets[@]}"

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
