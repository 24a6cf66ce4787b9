#!/bin/bash
# Tests the tests: each patch of this folder plants one fault into a copy of the tree, and the test that it names (its
# second line, "test: NAME ARGUMENTS") must then fail. A test_cuda_* runs on the simulated driver. Builds only what changed. Runs only with WEFT_MUTANTS=1 (`make
# mutants`); MUTANTS="a b" picks some. Prints one line a fault and a verdict.
set -u
if [ "${WEFT_MUTANTS:-0}" != 1 ]; then
    echo "skipped: set WEFT_MUTANTS=1"
    exit 77
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-mutants.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export WEFT_GRAPHS=400 WEFT_PROGRAMS=100 WEFT_GRAPH_FAILURES=1 WEFT_SOURCE_DIR="$scratch/tree" OMP_NUM_THREADS=2

patches=()
for name in ${MUTANTS:-$(cd "$root/tests/mutants" && ls -- *.patch)}; do
    patches+=("$root/tests/mutants/${name%.patch}.patch")
done
test_of() { sed -n 's/^test: //p' "$1"; }
targets=$(for patch in "${patches[@]}"; do test_of "$patch" | cut -d' ' -f1; done | sort -u)

mkdir "$scratch/tree"
for part in CMakeLists.txt include src tests tools packaging; do cp -rp "$root/$part" "$scratch/tree/" || exit 1; done
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
cmake -S "$scratch/tree" -B "$scratch/build" -G "$generator" -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; exit 1; }
build() { cmake --build "$scratch/build" -j "$(nproc)" --target "$@" >"$scratch/log" 2>&1; }
run() {
    local on=()
    [[ $1 == test_cuda_* ]] && on=(env WEFT_TEST_GPU=cuda "LD_LIBRARY_PATH=$scratch/build/fake-cuda")
    (cd "$scratch/tree" && timeout 100 "${on[@]}" "$scratch/build/$1" "${@:2}") >"$scratch/out" 2>&1
}

[[ $targets == *test_cuda_* ]] && targets+=" fake_cuda fake_nvrtc"
# shellcheck disable=SC2086
build $targets || { tail -40 "$scratch/log"; exit 1; }
failed=0
while read -r line; do # without a fault each of the tests must pass, else catching one means nothing
    # shellcheck disable=SC2086
    run $line || { echo "FAIL $line fails without a fault"; tail -20 "$scratch/out"; failed=$((failed + 1)); }
done < <(for patch in "${patches[@]}"; do test_of "$patch"; done | sort -u)

for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    file="$scratch/tree/$(sed -n 's|^+++ b/||p' "$patch")"
    test=$(test_of "$patch")
    cp "$file" "$scratch/original"
    verdict=caught
    if ! patch -d "$scratch/tree" -p1 -s -F3 --no-backup-if-mismatch <"$patch" >"$scratch/log" 2>&1; then
        verdict="does not apply: renew the patch"
    elif ! build "${test%% *}"; then
        verdict="does not build: $(grep -m1 error "$scratch/log")"
    else
        # shellcheck disable=SC2086
        run $test && verdict="SURVIVED: $(sed -n 's/^what: //p' "$patch")"
    fi
    cp "$scratch/original" "$file"
    [ "$verdict" = caught ] || failed=$((failed + 1))
    echo "$name by $test: $verdict"
done
echo "mutants: cells=${#patches[@]} fail=$failed"
[ "$failed" = 0 ]
