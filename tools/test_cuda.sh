#!/usr/bin/env bash
# tools/test_cuda.sh BUILD [REGEX]: runs every test for CUDA on a real card: all ops and gradients, layers, losses,
# optimizers and parity, the tests of the device, and training with the command. It prints each test, its time, and at the
# end the card. Without a card it prints each test as skipped. REGEX selects tests by name. WRAP is a command in front of
# each program: WRAP="compute-sanitizer --error-exitcode 1" checks every memory access of every kernel.
# CMake writes the list of tests to BUILD/cuda-tests.txt.
set -uo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?names the build folder}" && pwd) || exit 1
only=${2:-.}
logs=$build/test-cuda # also holds the records for docs/op-matrix.md
read -r -a wrap <<<"${WRAP:-}"
mkdir -p "$logs" && rm -f "$logs"/*.log
export WEFT_SOURCE_DIR=$source WEFT_BINARY_DIR=$build WEFT_KERNEL_CACHE=${WEFT_KERNEL_CACHE:-off}

card=$("$build/weft" devices 2>/dev/null | grep '^cuda')
ran=0 failed=0 skipped=0

# one NAME COMMAND...: runs the command and writes its output to a file of its own.
one() {
    local name=$1 from=$SECONDS code
    shift
    [[ $name =~ $only ]] || return 0
    if ! grep -q '^cuda:0' <<<"$card" || grep -q '^cuda:0 *absent' <<<"$card"; then
        echo "skipped  $name: no card"
        skipped=$((skipped + 1))
        return
    fi
    (cd "$source" && "$@") >"$logs/$name.log" 2>&1
    code=$?
    case $code in
    0) ran=$((ran + 1)) && echo "ok       $name, $((SECONDS - from)) s" ;;
    77) skipped=$((skipped + 1)) && echo "skipped  $name: $(grep -m 1 -i skipped "$logs/$name.log")" ;;
    *) ran=$((ran + 1)) failed=$((failed + 1)) && echo "FAILED   $name, exit $code, $((SECONDS - from)) s: $logs/$name.log" ;;
    esac
}

while read -r kind name; do
    case $kind in
    matrix)
        one "$name" "${wrap[@]}" "$build/$name" cuda --record "$logs/$name.tsv"
        one "${name}_calls" "${wrap[@]}" "$build/$name" cuda --op matmul --calls 1 # small matmuls with cuBLASLt too
        ;;
    device) one "$name" env WEFT_TEST_DEVICE=cuda "${wrap[@]}" "$build/$name" ;;
    gpu) one "$name" env WEFT_TEST_GPU=cuda "${wrap[@]}" "$build/$name" ;;
    script) one "$name" env WEFT_TEST_GPU=cuda WEFT_COMMAND="$build/weft" bash "$source/tests/train/$name.sh" ;;
    esac
done <"$build/cuda-tests.txt"
echo "test-cuda: $ran ran, $failed failed, $skipped skipped; ${card:-no CUDA device}"
[ $failed = 0 ]
