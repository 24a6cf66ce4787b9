#!/usr/bin/env bash
# Counts the instructions of a training step with callgrind. One thread, AVX2 and Weft's own matmul give the same count on
# any x86 machine. The test fails if a step executes over 2 % more than instructions.tsv has for this compiler.
#   tests/bench/test_instructions.sh [--update]       --update writes the counts (make instructions)
set -u
unset MALLOC_PERTURB_ # filling memory would count as work of the step
build=${WEFT_BINARY_DIR:?names the build folder}
weft=${WEFT_COMMAND:-$build/weft}
table=tests/bench/instructions.tsv

skip() {
    echo "instructions: skipped, $1"
    exit 77
}
of_compiler() { awk -F '"' -v name="$1" '$1 ~ name " $" { print $2; exit }' "$build"/CMakeFiles/*/CMakeCCompiler.cmake; }
of_build() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
version=$(of_compiler CMAKE_C_COMPILER_VERSION)
compiler=$(of_compiler CMAKE_C_COMPILER_ID)-${version%%.*}
command -v valgrind >/dev/null || skip "valgrind is not installed"
[ "$(uname -m)" = x86_64 ] || skip "the counts are for x86-64"
if [ "$(of_build CMAKE_BUILD_TYPE)" != RelWithDebInfo ] || [ -n "$(of_build WEFT_SANITIZE)" ]; then
    skip "the counts are for the ordinary build"
fi
grep -q avx2 /proc/cpuinfo || skip "the processor has no AVX2"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
strip --strip-debug -o "$folder/weft" "$weft" || exit 1 # older valgrinds cannot read all debug information of clang
# count FUNCTION STEPS WORKLOAD ARGUMENTS...: prints the instructions per step inside the function
count() {
    local function=$1 steps=$2
    shift 2
    if ! WEFT_CPU_ISA=avx2 WEFT_MATMUL=own valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect="$function" "$folder/weft" bench "$@" --threads 1 --steps "$steps" >"$out" 2>&1; then
        cat "$out" >&2
        return 1
    fi
    sed -n "s/^==[0-9]*== Collected : //p" "$out" | awk -v steps="$steps" '{ printf "%.0f\n", $1 / steps }'
}
# measure NAME: prints the instructions of a step: held XOR program, ordinary XOR loop, small GPT, small Llama (batch of one)
measure() {
    case $1 in
    xor_held) count weft_optimizer_run 1000 xor10000 ;;
    xor_loop) count weft__bench_loop 1000 xor10000 ;;
    llama_small) count 'time_blocks*' 1 llama_small --batch 1 --warmup 1 ;;
    gpt_small) count 'time_blocks*' 1 chargpt_small --batch 1 --warmup 1 ;;
    esac
}

failed=0
known=$(grep "^$compiler"$'\t' "$table")
if [ "${1:-}" != --update ] && [ -z "$known" ]; then
    skip "$table has no counts for $compiler: 'make instructions' adds them"
fi
for name in xor_held xor_loop gpt_small llama_small; do
    now=$(measure $name) || exit 1
    if [ "${1:-}" = --update ]; then
        sed -i "/^$compiler\t$name\t/d" "$table"
        printf '%s\t%s\t%s\n' "$compiler" "$name" "$now" >>"$table"
        echo "$compiler $name: $now"
        continue
    fi
    was=$(awk -F '\t' -v name="$name" '$2 == name { print $3 }' <<<"$known")
    change=$(awk -v now="${now:-0}" -v was="${was:-0}" 'BEGIN { printf "%+.2f", was ? 100 * (now / was - 1) : 100 }')
    echo "$compiler $name: $now instructions per step, $change % against $was"
    if [ "${now:-0}" -le 0 ] || awk -v change="$change" 'BEGIN { exit !(change > 2) }'; then
        echo "FAIL: $name: over 2 % more. If this is intended, run 'make instructions' to write the new counts."
        failed=1
    elif awk -v change="$change" 'BEGIN { exit !(change < -2) }'; then
        echo "fewer: run 'make instructions' to write the new counts"
    fi
done
if [ "${1:-}" = --update ]; then
    { head -n 1 "$table" && tail -n +2 "$table" | LC_ALL=C sort; } >"$out" && cat "$out" >"$table"
fi
exit $failed
