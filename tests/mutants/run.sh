#!/bin/bash
# Tests the tests: each patch of this folder plants one fault into a copy of the tree, and the test that it names (its
# second line, "test: NAME ARGUMENTS") must then fail. With a line "card: FOLDERS VARIABLE=1" the test runs on the simulated
# GPU in these folders of the build, with these variables, and must not be skipped. Builds only what changed. Runs only
# with WEFT_MUTANTS=1 (`make mutants`); MUTANTS="a b" picks some. Prints one line a fault and a verdict.
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
card_of() { sed -n 's/^card: //p' "$1"; }
targets=$(for patch in "${patches[@]}"; do test_of "$patch" | cut -d' ' -f1; done | sort -u)

mkdir "$scratch/tree"
for part in CMakeLists.txt include src tests tools packaging bench; do cp -rp "$root/$part" "$scratch/tree/" || exit 1; done
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
cmake -S "$scratch/tree" -B "$scratch/build" -G "$generator" -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; exit 1; }
build() { cmake --build "$scratch/build" -j "$(nproc)" --target "$@" >"$scratch/log" 2>&1; }
# run PATCH: runs the test that it names
run() {
    local word words
    read -ra words <<<"$(test_of "$1")"
    (
        [ -z "$(card_of "$1")" ] || export WEFT_TEST_GPU=cuda WEFT_KERNEL_CACHE=off
        for word in $(card_of "$1"); do
            [[ $word = *=* ]] || word="LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$scratch/build/$word"
            export "${word?}"
        done
        cd "$scratch/tree" && timeout 300 "$scratch/build/${words[0]}" "${words[@]:1}"
    ) >"$scratch/out" 2>&1
}

# Patches for a simulated GPU that is not there are left out.
card_targets() {
    case $1 in
    fake-ptx) echo ptx_nvrtc ;;
    fake-hip) echo fake_hip fake_hiprtc ;;
    fake-cuda) echo fake_cuda fake_nvrtc fake_nvml fake_blas fake_nccl fake_cudnn ;;
    esac
}
known=$(cmake --build "$scratch/build" --target help)
for i in "${!patches[@]}"; do
    for word in $(card_of "${patches[i]}"); do
        for target in $(card_targets "$word"); do
            if grep -q "$target" <<<"$known"; then
                targets="$targets $target"
            else
                unset "patches[i]"
            fi
        done
    done
done
# shellcheck disable=SC2086
build $targets || { tail -40 "$scratch/log"; exit 1; }
failed=0
passed=
for patch in "${patches[@]}"; do # without a fault each of the tests must pass, else catching one means nothing
    line="$(card_of "$patch"): $(test_of "$patch")"
    grep -qxF -- "$line" <<<"$passed" && continue
    passed+=$'\n'$line
    run "$patch" && { [ -z "$(card_of "$patch")" ] || ! grep -q SKIPPED "$scratch/out"; } && continue
    echo "FAIL $line fails without a fault, or is skipped"
    tail -20 "$scratch/out"
    failed=$((failed + 1))
done

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
        run "$patch" && verdict="SURVIVED: $(sed -n 's/^what: //p' "$patch")"
    fi
    cp "$scratch/original" "$file"
    [ "$verdict" = caught ] || failed=$((failed + 1))
    echo "$name by $test: $verdict"
done
echo "mutants: cells=${#patches[@]} fail=$failed"
[ "$failed" = 0 ]
