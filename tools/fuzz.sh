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

# The library of DuckDB's Python package, which `make duckdb` fetches, needs the symbols of Python.
packages=$root/build/duckdb
python=$(PYTHONPATH=$packages python3 -c 'import duckdb, sysconfig
print(sysconfig.get_config_var("LIBDIR") + "/" + sysconfig.get_config_var("INSTSONAME"))' 2>/dev/null || true)
library=$(compgen -G "$packages/_duckdb*.so" || true)
if [ -n "$library" ]; then export WEFT_DUCKDB_LIB=$library; fi

mkdir -p "$build/findings"
failed=() skipped=0
for target in "${targets[@]}"; do
    name=${target#fuzz_}
    mkdir -p "$build/corpus/$name"
    seeds=()
    if [ -d "$root/tests/fuzz/corpus/$name" ]; then seeds=("$root/tests/fuzz/corpus/$name"); fi
    log=$build/findings/$target.log preload='' status=0
    if [ "$target" = fuzz_parquet ]; then preload=$python; fi
    LD_PRELOAD=$preload "$build/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
        "$build/corpus/$name" "${seeds[@]}" >"$log" 2>&1 || status=$?
    if [ $status = 0 ]; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "$target: $runs runs in $seconds seconds, no finding"
    elif [ $status = 77 ]; then
        skipped=$((skipped + 1))
        echo "$target: $(grep -m 1 '^skipped' "$log")"
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
if [ $skipped = ${#targets[@]} ]; then exit 77; fi
